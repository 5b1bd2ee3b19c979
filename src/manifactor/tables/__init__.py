"""Files that a user has, read as samples: tables of all kinds, images and volumes."""
