"""Progress of stages: bars on a terminal and in a notebook, lines elsewhere."""

import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from importlib import import_module
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:  # numpy is not imported for a message
    from tqdm import tqdm

    from manifactor._support.stages import Callback

# The start of every progress bar on a terminal, in tqdm's format.
BAR = "{desc:<12} |{bar:24}|"


class ProgressBars:
    """One progress bar for each stage on a terminal, nothing in a pipe or a file.

    Called as ``bars(stage, fraction)``; a bar is closed when its fraction reaches 1.
    """

    def __init__(self, steady: Collection[str] = (), *, notebook: bool = False) -> None:
        """Start without bars."""
        self.steady = steady
        self.notebook = notebook
        self.open: dict[str, tqdm] = {}

    def __call__(self, stage: str, fraction: float) -> None:
        """Show the fraction of a stage that is done."""
        if stage not in self.open:
            make = _notebook_bar if self.notebook else _terminal_bar
            self.open[stage] = make(stage, _times(steady=stage in self.steady))
        bar = self.open[stage]
        bar.update(fraction - bar.n)
        if fraction >= 1:
            # The sum of all steps may be rounded to less, which notebooks mark as an error.
            bar.n = 1.0
            self.open.pop(stage).close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_) -> None:
        # A stage that was interrupted leaves its bar open; closing it ends its line, so that the
        # message which follows starts on a line of its own.
        for bar in self.open.values():
            bar.close()


class StageLines:
    """One line for each finished stage, with its seconds, on standard output.

    Called as ``lines(stage, fraction)``.
    """

    def __init__(self, name: str) -> None:
        """Start without stages."""
        self.name = name
        self.begun: dict[str, float] = {}

    def __call__(self, stage: str, fraction: float) -> None:
        """Print the stage when it is done."""
        begin = self.begun.setdefault(stage, time.perf_counter())
        if fraction >= 1:
            seconds = time.perf_counter() - self.begun.pop(stage, begin)
            line = f"[{self.name}] {stage}: {seconds:.2f} s"
            import_module("tqdm").tqdm.write(line, file=sys.stdout)


@contextmanager
def shown_progress(
    callback: "Callback | None", *, verbose: Any, name: str, steady: Collection[str] = ()
) -> "Iterator[Callback | None]":
    """Yield a callback that shows the stages of a computation, and calls another one."""
    if not isinstance(verbose, Integral) or verbose < 0:
        raise ValueError(
            f"`verbose` must be True, False or a whole number from 0; got {verbose!r}."
        )
    if not verbose:
        yield callback
        return
    with _bars_or_none(steady) as bars:
        show = StageLines(name) if bars is None else bars

        def both(stage: str, fraction: float) -> None:
            show(stage, fraction)
            if callback is not None:
                callback(stage, fraction)

        yield both


@contextmanager
def _bars_or_none(steady: Collection[str]) -> Iterator[ProgressBars | None]:
    """Yield progress bars where they can be drawn."""
    notebook = _in_notebook()
    on_terminal = sys.stderr is not None and sys.stderr.isatty()
    if not (notebook or on_terminal):
        yield None
        return
    with ProgressBars(steady, notebook=notebook) as bars:
        yield bars


def _in_notebook() -> bool:
    """Return whether tqdm finds a notebook that can draw its bars."""
    if "IPython" not in sys.modules:
        return False
    # It warns where a package is missing that the bars need, and names it.
    found = import_module("tqdm.auto").tqdm
    return issubclass(found, import_module("tqdm.notebook").tqdm)


def _times(*, steady: bool) -> str:
    """Return the times that a bar shows, in tqdm's format."""
    # The parts of most stages take unequal times, so a remaining time would mislead.
    return "{elapsed}, {remaining} left" if steady else "{elapsed_s:.1f} s"


def _terminal_bar(stage: str, times: str) -> "tqdm":
    # `disable=None` is tqdm's value for "only on a terminal".
    make = import_module("tqdm").tqdm
    how = {"total": 1.0, "desc": stage, "bar_format": f"{BAR} {times}"}
    return make(disable=None, file=sys.stderr, **how)


def _notebook_bar(stage: str, times: str) -> "tqdm":
    make = import_module("tqdm.auto").tqdm
    return make(total=1.0, desc=stage, bar_format=f"{{desc}} {{bar}} {times}")
