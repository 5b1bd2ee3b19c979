"""Errors and warnings: what they say, and the caller's line that they name."""

import os
import shlex
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from unicodedata import category


class NothingFoundError(ValueError):
    """A search shows nothing, or less than was asked for.

    Whoever tries several searches catches it. Any other ValueError is an error.
    """

    warned: "tuple[Warned, ...]" = ()  # what may be the reason


def first_sentence(error: BaseException) -> str:
    """Return the first sentence of an error, after which libraries give advice, or its class."""
    first, *_ = str(error).splitlines() or [type(error).__name__]
    return first.partition(". ")[0].rstrip(".")


def one_line(message: object) -> str:
    """Return an error, warning or text in one line, with single blanks."""
    return " ".join(str(message).split())


def listed(items: Iterable[str]) -> str:
    """Return items as a list in a sentence: "a, b and c"."""
    *first, last = list(items) or ["none"]
    return f"{', '.join(first)} and {last}" if first else last


# The extra that installs each optional package; "cryoem" for all others.
EXTRAS = {
    **dict.fromkeys(("cloudpickle", "dask", "distributed", "zarr"), "cluster"),
    **dict.fromkeys(("pydantic", "starlette", "uvicorn"), "explore"),
    **dict.fromkeys(("PIL", "jinja2", "matplotlib"), "plots"),
    **{"cv2": "video", "faiss": "ann", "torch": "gpu"},
}


def extra(name: str) -> ModuleType:
    """Import a module of an optional package."""
    try:
        return import_module(name)
    except MemoryError:
        raise
    # Nothing but the package is inside; a broken one may raise anything.
    except Exception as error:
        package = name.partition(".")[0]
        install = f"pip install 'manifactor[{EXTRAS.get(package, 'cryoem')}]'"
        # The package itself may not be found, or one that it imports.
        missing = isinstance(error, ModuleNotFoundError) and (error.name or package).split(".")[0]
        if missing == package:
            raise ValueError(f"this needs the package {package}: {install}.") from error
        raise ValueError(
            f"the package {package} does not load: {first_sentence(error)}. "
            f"Install it anew: {install}."
        ) from error


# Text from files and of paths, written so that it steers no terminal and no shell.


def printable(text: str, *, but: str = "") -> str:
    """Return a text whose control characters are written as escapes."""
    # Nearly all texts are plain, and this tells so at once.
    if text.isprintable():
        return text
    return "".join(
        sign.encode("unicode_escape").decode() if is_unsafe(sign) and sign not in but else sign
        for sign in text
    )


def is_unsafe(sign: str) -> bool:
    """Return whether a character is not to be sent to a terminal.

    Such are control characters, invisible ones that turn the direction of writing, bytes of file
    names that are not text, and ends of lines or paragraphs.
    """
    return category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def shell_line(*words: str | os.PathLike[str]) -> str:
    """Return a command for a shell in one line, its words quoted where needed."""
    return " ".join(_quoted(os.fspath(word)) for word in words)


def _quoted(word: str) -> str:
    if not any(map(is_unsafe, word)):
        return shlex.quote(word)
    # As bash, ksh and zsh read it, in bytes: a name that is not text has no characters.
    safe = (
        chr(byte) if 32 <= byte < 127 and byte not in b"\\'" else f"\\x{byte:02x}"
        for byte in os.fsencode(word)
    )
    return f"$'{''.join(safe)}'"


# Warnings that name the caller's line, however deep inside they arise.


@dataclass(frozen=True)
class Warned:
    """A warning as data of a result, issued only if the result is the one returned."""

    message: str
    category: type[Warning]


def warn_all(warned: Iterable[Warned]) -> None:
    """Issue the warnings of a result with the line that called this package, each once."""
    for each in dict.fromkeys(warned):
        warn_caller(each.message, each.category)


@contextmanager
def reasons_told() -> Iterator[None]:
    """Warn of what may be the reason where a search shows nothing."""
    try:
        yield
    except NothingFoundError as error:
        warn_all(error.warned)
        raise


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn with the line that called this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] == "manifactor":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
