"""All output to the terminal: results, notes, warnings, errors and progress bars."""

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from manifactor._support.errors import one_line, printable
from manifactor._support.progress import BAR

# A line of a result that is coloured on a terminal: green if the coordinates can be used as they
# are, yellow if with care, and bold without a colour otherwise.
VERDICT = re.compile(r"^(Verdict: )((\w+).*)$", re.MULTILINE)
COLOURS = {"product": ";32", "separable": ";32", "one": ";32", "partial": ";33"}


def show(text: str, *, alone: bool = False) -> None:
    """Print a result to standard output, with escapes for characters that it does not take.

    Where nothing can be printed, as on a full disk, that is said once, and the command goes on to
    write its files; a text that is `alone` what was asked for must be printed.
    """
    if sys.stdout is None:  # closed by whoever started this process
        return
    code = sys.stdout.encoding or "utf-8"
    text = printable(text, but="\n")
    text = text.encode(code, errors="backslashreplace").decode(code)
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
        text = VERDICT.sub(lambda at: f"{at[1]}\033[1{COLOURS.get(at[3], '')}m{at[2]}\033[m", text)
    try:
        # Flushed at once: `explore` runs for long after it prints, and a program that reads its
        # output through a pipe waits for the line.
        print(text, flush=True)
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


def report(kind: str, message: object) -> None:
    """Print a message of some kind in one line, on which scripts rely, to standard error."""
    line = printable(one_line(message))
    # Where it cannot be printed, as on a full disk, the command goes on all the same.
    with suppress(OSError):
        if sys.stderr is not None:
            print(f"manifactor: {kind}{line}", file=sys.stderr, flush=True)


# A note is not a result.
note, error = partial(report, "note: "), partial(report, "error: ")


@contextmanager
def one_line_warnings(reworded: Callable[[str], str] = str) -> Iterator[None]:
    """Print warnings in one line each, without the source line that issued them."""

    def show_warning(message, *_, **__) -> None:
        report("warning: ", reworded(str(message)))

    # `catch_warnings` restores `showwarning` as well as the filters.
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = show_warning
        yield


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Return a table with its columns aligned to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = (map(str.ljust, row, widths) for row in rows)
    return "\n".join("  ".join(cells).rstrip() for cells in padded)


@contextmanager
def count_pieces(total: int, unit: str) -> Iterator[Callable[[float], None]]:
    """Yield a function that shows how much is done."""
    from tqdm import tqdm

    # `disable=None` is tqdm's value for "only on a terminal".
    how = {"total": total, "desc": unit, "disable": None, "file": sys.stderr}
    look = f"{BAR} {{n_fmt}} of {{total_fmt}}, {{elapsed}}, {{remaining}} left"
    with tqdm(bar_format=look, **how) as bar:
        yield lambda part: bar.update(round(part * total) - bar.n)


def completion(options: Any) -> None:
    """Print the script with which a shell completes commands, options and their values."""
    import argcomplete

    show(argcomplete.shellcode(["manifactor"], shell=options.shell), alone=True)
