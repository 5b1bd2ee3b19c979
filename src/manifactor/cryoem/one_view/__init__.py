"""one_view."""
