"""`main`, which runs a command: its errors, warnings and signals become lines and exit codes."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pkgutil import resolve_name

from manifactor._support.files import claims
from manifactor.command import EXIT_BAD_INPUT, endings, terminal
from manifactor.command.arguments import commands, parse_arguments, require_inputs
from manifactor.runs.options import flags_of, in_options

BUG = "This is a mistake in manifactor, not in your data. Please report it with the lines above."


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    0 if it did its work, 2 for bad input or a machine that is too small, 128 and the number of a
    signal that ended it, and 1, with a traceback, for a mistake of ours.
    """
    flags: dict[str, str] = {}
    try:
        name, options = parse_arguments(sys.argv[1:] if argv is None else argv)
        flags = flags_of(options)
        reworded = partial(in_options, options=flags)
        with terminal.one_line_warnings(reworded), claims:
            require_inputs(options)
            resolve_name(commands()[name].function)(options)
    except KeyboardInterrupt as stop:
        # A terminal that was closed, which sends SIGHUP, takes no more lines.
        with suppress(OSError):
            left = str(stop) or "no partial output was left"
            terminal.report(f"{endings.how(stop)}; ", f"{left}.")
        return 128 + endings.signal_of(stop)
    except BrokenPipeError:
        # Whoever reads the output has seen enough, as `head` has: 128 + SIGPIPE, as shells have it.
        terminal.silence()
        return 141
    # What the library raises for bad input, and what the machine is short of; anything else is a
    # bug, whose traceback is needed to fix it.
    except Exception as error:
        words = endings.shortage(error)
        # A matrix that cannot be solved is ours: numpy says so by a ValueError, too.
        ours = type(error).__name__ == "LinAlgError"
        if not words and (ours or not isinstance(error, ValueError | OSError)):
            error.add_note(BUG)
            raise
        terminal.error(in_options(words or _in_words(error), flags))
        return EXIT_BAD_INPUT
    # From the parser, which has printed its message: --help, --version, wrong usage.
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def _in_words(error: Exception) -> str:
    """Return the message of an error; that of a file without the system's number."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        # Errors of a path itself; others, such as that of a full disk, lie elsewhere.
        wrong = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)
        advice = " Check its name and its permissions." if isinstance(error, wrong) else ""
        return f"{error.filename} cannot be used: {error.strerror}.{advice}"
    return str(error).strip() or type(error).__name__
