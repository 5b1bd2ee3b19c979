"""averages."""
