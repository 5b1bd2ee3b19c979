"""The table of commands and `main`, which runs one of them."""

import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from manifactor._support.files import claims_released
from manifactor.command import (
    EXIT_BAD_INPUT,
    EXIT_CLOSED_PIPE,
    EXIT_DONE,
    shortages,
    signals,
    terminal,
)
from manifactor.command.arguments import parse_arguments
from manifactor.command.completing import completion
from manifactor.command.exporting import average, export, select
from manifactor.command.fitting import fit
from manifactor.command.showing import explore, report
from manifactor.command.simulating import demo, simulate
from manifactor.command.terminal import in_options
from manifactor.command.viewing import views

COMMANDS: dict[str, Callable[[Namespace], None]] = {
    "demo": demo,
    "simulate": simulate,
    "views": views,
    "fit": fit,
    "report": report,
    "explore": explore,
    "select": select,
    "average": average,
    "export": export,
    "completion": completion,
}

BUG = "This is a mistake in manifactor, not in your data. Please report it with the lines above."

# Errors of a path itself; others, such as that of a full disk, lie elsewhere.
WRONG_PATH = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command."""
    options: dict[str, str] = {}
    try:
        arguments = parse_arguments(sys.argv[1:] if argv is None else argv, COMMANDS)
        options = arguments.options
        reworded = partial(in_options, options=options)
        with terminal.one_line_warnings(reworded), claims_released():
            arguments.command(arguments)
    except KeyboardInterrupt as stop:
        # A terminal that was closed, which sends SIGHUP, takes no more lines.
        with suppress(OSError):
            terminal.interrupted(signals.left(stop), how=signals.how(stop))
        return signals.exit_code(stop)
    except BrokenPipeError:
        # Whoever reads the output has seen enough, as `head` has.
        terminal.silence()
        return EXIT_CLOSED_PIPE
    # What the library raises for bad input, and what the machine is short of; anything else is a
    # bug, whose traceback is needed to fix it.
    except Exception as error:
        words = shortages.shortage(error)
        if not words and not isinstance(error, ValueError | OSError):
            error.add_note(BUG)
            raise
        terminal.error(in_options(words or _in_words(error), options))
        return EXIT_BAD_INPUT
    # From the parser, which has printed its message: --help, --version, wrong usage.
    except SystemExit as stop:
        return int(stop.code or EXIT_DONE)
    return EXIT_DONE


def _in_words(error: Exception) -> str:
    """Return the message of an error; that of a file without the system's number."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        advice = ""
        if isinstance(error, WRONG_PATH):
            advice = " Check its name and its permissions."
        return f"{error.filename} cannot be used: {error.strerror}.{advice}"
    return str(error).strip() or type(error).__name__
