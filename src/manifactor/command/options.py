"""Checks on what a command is about to write, made before any work starts."""

import os
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf, isfinite, isinf
from pathlib import Path
from typing import Any, Protocol

from manifactor._support.files import claim, require_place
from manifactor._support.workers import Workers
from manifactor.command.terminal import note

REMEDY = "Choose another --out."


def own(place: Path) -> None:
    """Refuse an output that cannot be written, or that another command is writing.

    What killed commands have left beside it is removed, or put into its place.
    """
    require_place(place, remedy=REMEDY)
    if claim(place):
        note(f"a killed command had half replaced {place}, which is whole again.")


def require_new_file(path: Path, *, overwrite: bool) -> None:
    """Refuse a file that exists, unless it may be overwritten."""
    own(path)
    require_replaceable(path, overwrite=overwrite)


def require_replaceable(path: Path, *, overwrite: bool) -> None:
    """Refuse a file that exists, beside one that this command owns already."""
    _require_new(path, ours=path.is_file(), overwrite=overwrite)


def require_new_folder(folder: Path, *, mark: str, overwrite: bool) -> None:
    """Refuse a folder that exists, unless it may be overwritten."""
    own(folder)
    _require_new(folder, ours=(folder / mark).is_file(), overwrite=overwrite)


def _require_new(out: Path, *, ours: bool, overwrite: bool) -> None:
    # A link that leads nowhere does not exist, but somebody made it.
    if not os.path.lexists(out):
        return
    if not ours:
        raise ValueError(f"{out} was not written by this command and is not replaced. {REMEDY}")
    if not overwrite:
        raise ValueError(
            f"the output must not exist yet; {out} does. Choose another --out, or pass --overwrite."
        )


def require_ending(path: str, ending: str) -> Path:
    """Return the path of a file; refuse a name with another ending, or with none."""
    if not path.lower().endswith(ending):
        raise ValueError(f"--out must end in {ending}; got {path}.")
    return Path(path)


def name_in_project(folder: Path) -> str:
    """Return the folder as RELION names it: relative to the project's folder.

    The project's folder is the current one if `folder` lies in it. For a folder elsewhere, only its
    last part is known to be right.
    """
    elsewhere = folder.is_absolute() or ".." in folder.parts
    return folder.name if elsewhere else str(folder)


# Options and types of values that several commands share.


class Options(Protocol):
    """What options are added to: a parser, or a group of options with a heading."""

    def add_argument(self, *names: str, **how: Any) -> Any:
        """Add an option."""


def add(options: Options, name: str, text: str, **how: Any) -> None:
    """Add an option whose help ends with its default, if it has one."""
    default = how.get("default")
    # Options that may be repeated start from an empty list, which says nothing.
    if default is not None and default != []:
        text += f" (default: {default})"
    # argparse formats help texts with the % operator.
    options.add_argument(name, help=text.replace("%", "%%"), **how)


def add_run(options: Options) -> None:
    """Add the run folder that a command reads."""
    add(options, "run", "run folder written by manifactor fit", metavar="RUN")


def add_seed(options: Options) -> None:
    """Add the random seed."""
    text = "random seed; the same seed gives the same result"
    add(options, "--seed", text, type=whole_number(low=0, high=2**32 - 1), default=0)


def add_out(options: Options, text: str, **how: Any) -> None:
    """Add the file or folder to write."""
    add(options, "--out", text, type=output_name, **how)


def add_overwrite(options: Options, text: str) -> None:
    """Add the flag that allows an earlier output to be replaced."""
    add(options, "--overwrite", text, action="store_true")


def add_view_width(options: Options) -> None:
    """Add the angle around a view within which particles count as seen from it."""
    # None where it is not given: without a view it is refused.
    text = "largest angle to the direction of --view, in degrees (default: 10)"
    add(options, "--width", text, type=number(), metavar="DEGREES")


def whole_number(*, low: int | None = None, high: int | None = None) -> Callable[[str], int]:
    """Return a type for argparse: a whole number within limits.

    >>> whole_number(low=0)("12")
    12
    """

    def parse(text: str) -> int:
        value = int(text)
        if (low is None or value >= low) and (high is None or value <= high):
            return value
        raise ArgumentTypeError(f"must be a whole number{_limits(low, high)}; got {text!r}")

    parse.__name__ = "whole number"
    return parse


def number(
    *,
    low: float | None = None,
    high: float | None = None,
    above: float = -inf,
    infinite: bool = False,
) -> Callable[[str], float]:
    """Return a type for argparse: a number within limits, which NaN never is.

    >>> number(low=0, high=1)(".5")
    0.5
    """

    def parse(text: str) -> float:
        value = float(text)
        known = isfinite(value) or (infinite and isinf(value))
        least, most = (-inf if low is None else low), (inf if high is None else high)
        if known and least <= value <= most and value > above:
            return value
        limits = f" above {above:g}" if isfinite(above) else _limits(low, high)
        finite = "" if infinite else "finite "
        raise ArgumentTypeError(f"must be a {finite}number{limits}; got {text!r}")

    parse.__name__ = "number"
    return parse


def _limits(low: float | None, high: float | None) -> str:
    """Return limits in words, with a blank before; nothing without limits."""
    if low is not None and high is not None:
        return f" in [{low:.10g}, {high:.10g}]"
    if low is not None:
        return f" of at least {low:.10g}"
    return "" if high is None else f" of at most {high:.10g}"


def whole_number_or(*words: str) -> Callable[[str], int | str]:
    """Return a type for argparse: a whole number or one of the words."""

    def parse(text: str) -> int | str:
        return text if text in words else int(text)

    # argparse puts the name of the type into its error message.
    parse.__name__ = f"whole number or {' or '.join(words)}"
    return parse


def number_or(*words: str) -> Callable[[str], float | str]:
    """Return a type for argparse: a finite number or one of the words."""

    def parse(text: str) -> float | str:
        return text if text in words else number()(text)

    parse.__name__ = f"number or {' or '.join(words)}"
    return parse


def output_name(text: str) -> str:
    """Parse the name of an output; an unset variable of a shell gives an empty one."""
    if not text:
        raise ArgumentTypeError("must be the name of a file or folder; got ''")
    return text


def view(text: str) -> tuple[float, float]:
    """Parse a viewing direction, RELION's angles rot and tilt in degrees."""
    try:
        rot, tilt = (float(part) for part in text.split(","))
    except ValueError:
        raise ArgumentTypeError(
            f"a view must be two angles in degrees, ROT,TILT; got {text!r}"
        ) from None
    if not (isfinite(rot) and -180 <= tilt <= 180):
        raise ArgumentTypeError(
            f"the tilt of a view must lie between -180 and 180 degrees; got {text!r}"
        )
    return rot, tilt


# The option --cluster: who does the pieces of a command's work.


def add_cluster(options: Options, pieces: str) -> None:
    """Add the option that names a Dask cluster."""
    text = (
        f"do the {pieces} on the workers of a Dask cluster: local (one worker a core, "
        "or a GPU), local:N (N workers), the address of a scheduler, such as "
        "tcp://node1:8786, or its scheduler file (.json). All workers must see the "
        "same files"
    )
    add(options, "--cluster", text, metavar="WHERE")


@contextmanager
def chosen_workers(arguments: Namespace, otherwise: Workers) -> Iterator[Workers]:
    """Yield the workers of --cluster, or others where it was not given."""
    if arguments.cluster is None:
        yield otherwise
        return
    # Imported here: Dask takes a second to load.
    from manifactor.cluster import cluster_workers

    device = getattr(arguments, "device", None)
    with cluster_workers(arguments.cluster, device=device) as workers:
        pieces = "1 piece" if workers.count == 1 else f"{workers.count} pieces"
        where = f"; its dashboard: {workers.dashboard}" if workers.dashboard else "."
        note(f"the cluster does {pieces} at the same time{where}")
        yield workers
