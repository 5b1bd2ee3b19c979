"""Files of any supported format, read as samples."""
