"""Whatever the user has, read as samples."""
