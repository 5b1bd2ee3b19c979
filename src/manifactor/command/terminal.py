"""Messages of the library, with the options of a command for its parameters."""

import os
import re
import sys
import warnings
from argparse import ArgumentParser
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from re import Match

from tqdm import tqdm

from manifactor._support import progress
from manifactor._support.errors import one_line, printable

# `name` or `name=value`, as the library writes its parameters.
PARAMETER = re.compile(r"`(\w+)(?:=([^`]+))?`")

# Parameters that the command line calls otherwise.
RENAMED = {
    "n": "n_samples",
    "bins": "n_bins",
    "snr": "signal_to_noise",
    "correlate": "view_correlation",
}


def options_of(command: ArgumentParser) -> dict[str, str]:
    """Return the options of a command by the parameters that they set."""
    # argparse has no public way to list what a parser knows.
    return {
        RENAMED.get(action.dest, action.dest): action.option_strings[-1]
        for action in command._actions
        if action.option_strings
    }


def in_options(text: str, options: Mapping[str, str]) -> str:
    """Return a message that names options where they set a parameter.

    >>> options = {"n_factors": "--n-factors", "method": "--method"}
    >>> in_options("`n_factors` must be 2 with `method='sum'`, not `X`.", options)
    '--n-factors must be 2 with --method sum, not `X`.'
    """

    def named(found: Match[str]) -> str:
        parameter, value = found.groups()
        if parameter not in options:
            return found[0]
        words = [options[parameter], *([] if value is None else [value.strip("'\"")])]
        return " ".join(words)

    return PARAMETER.sub(named, text)


# All output to the terminal: results, notes, warnings, errors and progress bars.

# Of many pieces of one kind the remaining time can be told.
COUNTED = f"{progress.BAR} {{n_fmt}} of {{total_fmt}}, {{elapsed}}, {{remaining}} left"


class ProgressBars(progress.ProgressBars):
    """Progress bars of a command; of images and places, the remaining time is told."""

    def __init__(self, steady: Collection[str] = ("images", "places")) -> None:
        """Start without bars."""
        super().__init__(steady)


def show(text: str, *, alone: bool = False) -> None:
    """Print a result to standard output.

    A character that the output does not take is escaped. Where nothing can be printed, as on a full
    disk, that is said once, and the command goes on to write its files.
    """
    if sys.stdout is None:  # closed by whoever started this process
        return
    code = sys.stdout.encoding or "utf-8"
    text = printable(text, but="\n")
    known = text.encode(code, errors="backslashreplace").decode(code)
    try:
        # Flushed at once: `explore` and `reproduce` run for long after they print, and a program
        # that reads their output through a pipe waits for the line.
        print(known, flush=True)
    except OSError as problem:
        silence()
        if alone:
            problem.filename = "standard output"
            raise
        # Whoever closed a pipe has seen enough, as `head` has.
        if not isinstance(problem, BrokenPipeError):
            note(f"standard output takes no more text: {problem.strerror}.")


def silence() -> None:
    """Let what is printed from now on go nowhere."""
    # Python would complain once more when it flushes the output at its end.
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def note(text: str) -> None:
    """Print a note, which is no result, to standard error."""
    _report("note: ", text)


def error(text: object) -> None:
    """Print an error in one line to standard error."""
    _report("error: ", text)


def interrupted(text: object, *, how: str = "interrupted") -> None:
    """Print how the command was interrupted, and what is left of it."""
    _report(f"{how}; ", text)


@contextmanager
def one_line_warnings(reworded: Callable[[str], str] = str) -> Iterator[None]:
    """Print warnings in one line each, without the source line that issued them."""

    def show_warning(message, *_, **__) -> None:
        _report("warning: ", reworded(str(message)))

    # `catch_warnings` restores `showwarning` as well as the filters.
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = show_warning
        yield


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Return a table with its columns aligned to the left.

    >>> print(aligned([["view", "verdict"], ["north", "none"]]))
    view   verdict
    north  none
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def counted(items: Iterable, total: int, unit: str, *, n_done: int = 0) -> tqdm:
    """Return the items as an iterator with a progress bar that counts them."""
    return _tqdm(items, total=total, initial=n_done, desc=unit, bar_format=COUNTED)


@contextmanager
def counted_pieces(total: int, unit: str, *, n_done: int = 0) -> Iterator[Callable[[float], None]]:
    """Yield a function that shows the share of the pieces to do that is done.

    The parameters are those of `counted`.
    """
    with counted((), total, unit, n_done=n_done) as bar:

        def report(fraction: float) -> None:
            done = n_done + round(fraction * (total - n_done))
            bar.update(done - bar.n)

        yield report


def _tqdm(*items: Iterable, **options) -> tqdm:
    # `disable=None` is tqdm's value for "only on a terminal".
    return tqdm(*items, disable=None, file=sys.stderr, **options)


def _report(kind: str, message: object) -> None:
    # Messages of other libraries may have several lines; scripts that read standard error rely on
    # one line for each message.
    line = printable(one_line(message))
    if sys.stderr is None:
        return
    # Where it cannot be printed, as on a full disk, the command goes on all the same.
    with suppress(OSError):
        print(f"manifactor: {kind}{line}", file=sys.stderr, flush=True)
