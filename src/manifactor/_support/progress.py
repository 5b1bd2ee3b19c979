"""Progress of stages: bars on a terminal and in a notebook, lines elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:  # numpy is not imported for a message
    from tqdm import tqdm

    from manifactor._support.stages import Callback

# The start of every progress bar on a terminal, in tqdm's format.
BAR = "{desc:<12} |{bar:24}|"
# Stages of parts that take equal times, so that the remaining time can be told.
STEADY = ("images", "places")


class ProgressBars:
    """One progress bar for each stage on a terminal, nothing in a pipe or a file."""

    def __init__(self) -> None:
        """Start without bars."""
        self.open: dict[str, tqdm] = {}

    def __call__(self, stage: str, fraction: float) -> None:
        """Show the fraction of a stage that is done; at 1, close its bar."""
        if stage not in self.open:
            times = "{elapsed}, {remaining} left" if stage in STEADY else "{elapsed_s:.1f} s"
            how: dict[str, Any] = {"bar_format": f"{{desc}} {{bar}} {times}"}
            if not _in_notebook():
                # `disable=None` is tqdm's value for "only on a terminal".
                how = {"bar_format": f"{BAR} {times}", "disable": None, "file": sys.stderr}
            self.open[stage] = import_module("tqdm.auto").tqdm(total=1.0, desc=stage, **how)
        bar = self.open[stage]
        bar.update(fraction - bar.n)
        if fraction >= 1:
            # The sum of all steps may be rounded to less, which notebooks mark as an error.
            bar.n = 1.0
            self.open.pop(stage).close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_) -> None:
        # Bars of interrupted stages: the next message starts on a line of its own.
        for bar in self.open.values():
            bar.close()


def _stage_lines(name: str) -> "Callback":
    """Return a callback that prints one line for each finished stage, with its seconds."""
    begun: dict[str, float] = {}

    def show(stage: str, fraction: float) -> None:
        begin = begun.setdefault(stage, time.perf_counter())
        if fraction >= 1:
            del begun[stage]
            line = f"[{name}] {stage}: {time.perf_counter() - begin:.2f} s"
            import_module("tqdm").tqdm.write(line, file=sys.stdout)

    return show


@contextmanager
def shown_progress(
    callback: "Callback | None", *, verbose: Any, name: str
) -> "Iterator[Callback | None]":
    """Yield a callback that shows the stages of a computation, and calls another one."""
    if not isinstance(verbose, Integral) or verbose < 0:
        raise ValueError(
            f"`verbose` must be True, False or a whole number from 0; got {verbose!r}."
        )
    if not verbose:
        yield callback
        return
    on_terminal = sys.stderr is not None and sys.stderr.isatty()
    with ProgressBars() as bars:
        show = bars if on_terminal or _in_notebook() else _stage_lines(name)

        def both(stage: str, fraction: float) -> None:
            show(stage, fraction)
            if callback is not None:
                callback(stage, fraction)

        yield both


def _in_notebook() -> bool:
    """Return whether tqdm finds a notebook that can draw its bars; else it may warn why not."""
    return "IPython" in sys.modules and issubclass(
        import_module("tqdm.auto").tqdm, import_module("tqdm.notebook").tqdm
    )
