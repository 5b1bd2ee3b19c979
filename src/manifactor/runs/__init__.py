"""A run on disk, and what is made of it."""
