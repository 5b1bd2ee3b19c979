"""Errors that a caller may want to tell from others."""


class NothingFoundError(ValueError):
    """A search shows nothing, or less than was asked for.

    Whoever tries several searches catches it. Any other ValueError is an error.
    """
