"""Local web page on a run: samples near a place on every factor, and selections."""
