"""Text from files and of paths, written so that it steers no terminal and no shell."""

import os
import shlex
from unicodedata import category

# Control characters, invisible ones that turn the direction of writing, bytes of file names that
# are no text, and ends of lines or paragraphs.
UNSAFE = ("Cc", "Cf", "Cs", "Zl", "Zp")


def printable(text: str, *, but: str = "") -> str:
    r"""Return a text whose control characters are written as escapes.

    >>> print(printable("\x1b[2Jname"))
    \x1b[2Jname
    """
    # Nearly all texts are plain, and this tells so at once.
    if text.isprintable():
        return text
    return "".join(_escape(sign) if is_unsafe(sign) and sign not in but else sign for sign in text)


def is_unsafe(sign: str) -> bool:
    """Return whether a character is not to be sent to a terminal."""
    return category(sign) in UNSAFE


def _escape(sign: str) -> str:
    return sign.encode("unicode_escape").decode("ascii")


def shell_line(*words: str | os.PathLike[str]) -> str:
    r"""Return a command for a shell in one line, its words quoted where needed.

    Words with control characters are quoted as bash, ksh and zsh read them.

    >>> print(shell_line("cd", "my run;2"))
    cd 'my run;2'
    >>> print(shell_line("cd", "two\nlines"))
    cd $'two\x0alines'
    """
    return " ".join(_quoted(os.fspath(word)) for word in words)


def _quoted(word: str) -> str:
    if not any(map(is_unsafe, word)):
        return shlex.quote(word)
    # In bytes: a name that is no text has no characters.
    signs = (chr(byte) for byte in os.fsencode(word))
    safe = (
        sign if " " <= sign <= "~" and sign not in "\\'" else f"\\x{ord(sign):02x}"
        for sign in signs
    )
    return f"$'{''.join(safe)}'"
