"""Errors that a caller may want to tell from others, and what errors say."""


class NothingFoundError(ValueError):
    """A search shows nothing, or less than was asked for.

    Whoever tries several searches catches it. Any other ValueError is an error.
    """


def first_sentence(error: Exception) -> str:
    """Return the first sentence of an error without its full stop, or its class.

    Other libraries go on with advice, which may fill a page.

    >>> first_sentence(RuntimeError("CUDA out of memory. Tried to allocate 2 MiB."))
    'CUDA out of memory'
    """
    first, *_ = str(error).splitlines() or [type(error).__name__]
    return first.partition(". ")[0].rstrip(".")


def one_line(message: object) -> str:
    r"""Return an error, warning or text in one line, with single blanks.

    >>> one_line(ValueError("bad header\n  in line 3"))
    'bad header in line 3'
    """
    return " ".join(str(message).split())
