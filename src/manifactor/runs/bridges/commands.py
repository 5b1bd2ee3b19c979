"""Lines of a shell: commands with quoted words, and comments."""

from collections.abc import Iterable
from pathlib import Path
from textwrap import wrap

from manifactor._support.errors import one_line
from manifactor._support.escapes import printable, shell_line


def command(*words: str | Path) -> str:
    """Return a command as one line; words with blanks or signs of the shell are quoted.

    >>> command("cd", Path("/data/my run;2"))
    "cd '/data/my run;2'\\n"
    """
    return shell_line(*words) + "\n"


def comment(text: str, *, width: int | None = 88) -> str:
    """Return a text as lines of a comment.

    >>> comment("one bin after the other")
    '# one bin after the other\\n'
    """
    # Line ends in the name of a file would end the comment: all blanks are made one.
    line = printable(one_line(text))
    if width is None:
        return f"# {line}\n"
    lines = wrap(line, width - 2, break_long_words=False, break_on_hyphens=False)
    return "".join(f"# {line}\n" for line in lines)


def warning_comments(messages: Iterable[str]) -> str:
    """Return warnings as comments, for the reader of a file of commands."""
    return "".join(comment(f"WARNING: {message}") for message in messages)
