"""Files and commands for a program that reconstructs volumes along a factor."""

from collections.abc import Callable
from pathlib import Path

from manifactor._support.warning import warn_caller
from manifactor._support.workers import Here, Workers
from manifactor.runs.bins import bin_labels
from manifactor.runs.bridges.aspire import aspire_files
from manifactor.runs.bridges.bin_files import cryosparc_files, relion_files
from manifactor.runs.bridges.commands import warning_comments
from manifactor.runs.bridges.cryodrgn import cryodrgn_files
from manifactor.runs.bridges.recovar import recovar_files
from manifactor.runs.bridges.request import Request
from manifactor.runs.run import Run

BRIDGES: dict[str, Callable[[Request], dict[str, bytes]]] = {
    "cryodrgn": cryodrgn_files,
    "recovar": recovar_files,
    "aspire": aspire_files,
    "relion": relion_files,
    "cryosparc": cryosparc_files,
}


def export(
    run: Run,
    factor: int,
    program: str,
    *,
    n_bins: int,
    folder: Path | None = None,
    training: Path | None = None,
    workers: Workers = Here(),
) -> dict[str, bytes]:
    """Return files, by name, that let a program reconstruct volumes along a factor.

    "commands.txt" holds the commands, each with the folder in which it runs. The other factors are
    held still: points along the factor have one place on them, weights one distribution.
    """
    _require_program(program, training)
    if folder is None:
        folder = run.folder / f"{program}-factor{factor}"
    request = _request(
        run, factor, n_bins=n_bins, folder=folder.absolute(), training=training, workers=workers
    )
    files = BRIDGES[program](request)
    warnings = request.warnings
    for message in warnings:
        warn_caller(message, UserWarning)
    commands = warning_comments(warnings).encode() + files["commands.txt"]
    return {**files, "commands.txt": commands}


def _require_program(program: str, training: Path | None) -> None:
    if program not in BRIDGES:
        raise ValueError(f"the program must be one of {', '.join(BRIDGES)}; got {program}.")
    if training is not None and program != "cryodrgn":
        raise ValueError(
            f"--training is the folder of a cryoDRGN model; {program} uses none. Leave it out."
        )


def _request(
    run: Run, factor: int, *, n_bins: int, folder: Path, training: Path | None, workers: Workers
) -> Request:
    """Return the run in bins along a factor."""
    place = run.place(factor)
    if place.topology == "other":
        raise ValueError(
            f"points go along intervals and circles; factor {factor} has more dimensions."
        )
    others = [other for i, other in enumerate(run.places, start=1) if i != factor]
    labels, centres = bin_labels(place.displayed, place.topology, n_bins=n_bins)
    return Request(run, place, others, labels, centres, folder, training, workers)
