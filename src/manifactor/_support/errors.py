"""Errors that a caller may want to tell from others, and what errors say."""


class NothingFoundError(ValueError):
    """A search shows nothing, or less than was asked for.

    Whoever tries several searches catches it. Any other ValueError is an error.
    """


def first_sentence(error: Exception) -> str:
    """Return the first sentence of an error without its full stop, or its class.

    Other libraries go on with advice, which may fill a page.

    Examples
    --------
    >>> first_sentence(RuntimeError("CUDA out of memory. Tried to allocate 2 MiB."))
    'CUDA out of memory'
    """
    first, *_ = str(error).splitlines() or [type(error).__name__]
    return first.partition(". ")[0].rstrip(".")


def one_line(error: Exception) -> str:
    """Return what an error says, on one line.

    Examples
    --------
    >>> one_line(ValueError("the file\\n  is damaged."))
    'the file is damaged.'
    """
    return " ".join(str(error).split())
