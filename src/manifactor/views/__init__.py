"""A run to look at: in words, on one page, in the browser."""
