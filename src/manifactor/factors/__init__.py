"""A factor: its shape and its places."""
