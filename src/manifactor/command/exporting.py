"""Commands that write files from a run: `select`, `average` and `export`."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from manifactor._support.files import real_path, whole_folder, write_bytes
from manifactor._support.stages import Stages
from manifactor._support.workers import Here, Workers
from manifactor.command.arguments import AverageOptions, ExportOptions, SelectOptions
from manifactor.command.outputs import chosen_workers, require_new
from manifactor.command.terminal import ProgressBars, note, show
from manifactor.cryoem import averages as averaging
from manifactor.cryoem import export as bridges
from manifactor.cryoem.all_views.volumes import (
    MODEL_FILE,
    known_motions,
    needs_volumes,
    require_plain,
    volumes_along,
)
from manifactor.cryoem.averages import places_along, write_averages
from manifactor.runs.folder import has_parts, read_record, read_run
from manifactor.runs.run import Run, open_run, select_from_parts, selected, selection
from manifactor.tables.images import checked_width
from manifactor.tables.stores import is_stored


@contextmanager
def reported_volumes(run: Run) -> Iterator[Stages]:
    """Yield stages that draw progress bars; say first what takes a while."""
    if needs_volumes(run):
        note(
            "volumes along the factors are computed from the images, once, and kept in "
            f"{run.folder / MODEL_FILE}."
        )
    with ProgressBars() as bars:
        yield Stages().start(bars)


def select(options: SelectOptions) -> None:
    """Write the samples in ranges of factors."""
    ranges = _ranges(options)
    out = Path(options.out)
    require_new(out, overwrite=options.overwrite)
    columns, least = _column_ranges(options), options.min_confidence
    how: dict[str, Any] = {
        "columns": columns,
        "least_confidence": least,
        "inverted": options.invert,
    }
    folder = Path(options.run)
    _require_not_an_input(out, read_record(folder))
    if has_parts(folder):
        count, total = select_from_parts(folder, out, ranges, **how)
        show(f"{out}: {count} of {total} samples")
        return
    run = open_run(folder)
    chosen = selected(run, ranges, **how)
    write_bytes(out, selection(run, chosen, out.suffix.lower()))
    show(f"{out}: {len(chosen)} of {len(run.rows)} samples")


def _ranges(options: SelectOptions) -> list[tuple[int, float, float]]:
    """Pair each factor with its range."""
    factors, bounds = options.factor, options.range
    if len(factors) != len(bounds):
        raise ValueError(
            "every --factor needs its own --range; "
            f"got {len(factors)} --factor and {len(bounds)} --range."
        )
    return [(factor, *ends) for factor, ends in zip(factors, bounds, strict=True)]


def _column_ranges(options: SelectOptions) -> list[tuple[str, float, float]]:
    """Return the name and the range of each column."""
    ranges = []
    for name, low, high in options.column:
        try:
            ranges.append((name, float(low), float(high)))
        except ValueError:
            raise ValueError(
                f"--column needs a name and two numbers; got {name} {low} {high}."
            ) from None
    return ranges


def _require_not_an_input(out: Path, record: dict) -> None:
    # --overwrite is meant for earlier selections; the samples themselves may exist
    # nowhere else. Tables in folders are changed by any file that is added.
    inputs = [Path(record[name]) for name in ("input", "particles") if name in record]
    path = real_path(out)
    if any(path == each or (each in path.parents and is_stored(each)) for each in inputs):
        raise ValueError(
            f"{out} is the input of the run and is not replaced. Choose another --out."
        )


def average(options: AverageOptions) -> None:
    """Write mean images or volumes along a factor, or on the grid of two."""
    width = checked_width(options.width, options.view)
    run = open_run(options.run)
    factors = "x".join(map(str, options.factor))
    out = Path(options.out or run.folder / f"average-factor{factors}")
    require_new(out, mark="bins.csv", overwrite=options.overwrite)
    # Before the bins are made, so that matching sees only the particles averaged.
    if options.view is not None:
        run = run.seen_from(options.view, width=width)
    with chosen_workers(options.cluster, Here()) as workers:
        averages = _averages(run, options, workers)
    with whole_folder(out) as folder:
        written = write_averages(averages, folder)
    show(f"{averages}.\n{out}: {shortened(written)}")


def _averages(run: Run, options: AverageOptions, workers: Workers) -> averaging.Averages:
    """Return mean images, or volumes of particles of all views."""
    plain = {"matched": options.match, "halves": options.halves}
    has_model = (run.folder / MODEL_FILE).exists() or needs_volumes(run)
    # Without a view, particles of all views have volumes instead of mean images.
    if options.view is None and has_model:
        # Before volumes are computed.
        require_plain(**plain)
        places_along(run, options.factor)
        with reported_volumes(run) as stages:
            motions = known_motions(run, read_run(run.folder)[1], stages=stages, workers=workers)
        if motions is not None:
            return volumes_along(run, motions, options.factor, n_bins=options.bins)
    with ProgressBars() as bars:
        how: dict[str, Any] = {"report": partial(bars, "images"), "workers": workers, **plain}
        return averaging.average(run, options.factor, n_bins=options.bins, **how)


def shortened(names: list[str], *, n_shown: int = 4) -> str:
    """List the first names; volumes have a file for each bin."""
    more = ["..."] if len(names) > n_shown else []
    return ", ".join([*names[:n_shown], *more])


def export(options: ExportOptions) -> None:
    """Write files and commands for a program that makes volumes along a factor."""
    run = open_run(options.run)
    name = f"{options.to}-factor{options.factor}"
    out = Path(options.out or run.folder / name)
    require_new(out, mark="commands.txt", overwrite=options.overwrite)
    with chosen_workers(options.cluster, Here()) as workers:
        files = bridges.export(
            run,
            options.factor,
            options.to,
            n_bins=options.bins,
            folder=out,
            training=Path(options.training) if options.training else None,
            workers=workers,
        )
    with whole_folder(out) as folder:
        for name, content in files.items():
            (folder / name).write_bytes(content)
    commands = files["commands.txt"].decode().rstrip("\n")
    show(f"{out}: {shortened(list(files))}. To run, from any folder:\n{commands}")
