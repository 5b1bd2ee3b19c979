"""Commands on runs: `report`, `explore`, `select`, `average`, `export`, `compare`; and `views`."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from glob import escape
from pathlib import Path
from secrets import token_urlsafe
from signal import SIGINT
from socket import gethostname
from textwrap import fill
from typing import Any

import numpy as np

from manifactor._support.errors import extra, listed, shell_line
from manifactor._support.files import real_path, require_writable, whole_folder, write_bytes
from manifactor._support.progress import ProgressBars
from manifactor._support.stages import Stages
from manifactor._support.workers import Here, Workers
from manifactor.command import arguments, signals
from manifactor.command.outputs import chosen_workers, own, require_ending, require_new
from manifactor.command.terminal import aligned, note, show
from manifactor.cryoem import averages as averaging
from manifactor.cryoem import export as bridges
from manifactor.cryoem.all_views.shown import Shown, Wanted, open_shown, read_volumes
from manifactor.cryoem.all_views.volumes import (
    MODEL_FILE,
    known_motions,
    needs_volumes,
    require_plain,
    volumes_along,
)
from manifactor.cryoem.averages import places_along, write_averages
from manifactor.cryoem.directions import Cone, known_directions, populated_views, sphere_cells
from manifactor.cryoem.files.formats import read_particles
from manifactor.cryoem.one_view import can_flip
from manifactor.estimators import ManifoldFactorizer
from manifactor.runs.alignment import LEAST_SHARED, Alignment, align_runs
from manifactor.runs.folder import has_parts, read_record, read_run
from manifactor.runs.landscape import landscape as landscape_of
from manifactor.runs.places import as_csv, coordinate_columns
from manifactor.runs.run import Run, open_run, select_from_parts, selected, selection
from manifactor.tables.reading import checked_width
from manifactor.tables.stores import is_stored
from manifactor.views import plots
from manifactor.views.report import REPORT_NAME, write_movies, write_report
from manifactor.views.words import TEXT_WIDTH, report_text, volume_sentences

# Commands that write files from a run: `select`, `average` and `export`.


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


def select(options: arguments.SelectOptions) -> None:
    """Write the samples in ranges of factors."""
    factors, bounds, out = options.factor, options.range, Path(options.out)
    if len(factors) != len(bounds):
        raise ValueError(
            "every --factor needs its own --range; "
            f"got {len(factors)} --factor and {len(bounds)} --range."
        )
    # The first --range belongs to the first --factor.
    ranges = [(factor, *ends) for factor, ends in zip(factors, bounds, strict=True)]
    require_new(out, overwrite=options.overwrite)
    columns, least = _column_ranges(options), options.min_confidence
    how: dict[str, Any] = {
        "columns": columns,
        "cluster": options.cluster,
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


def _column_ranges(options: arguments.SelectOptions) -> list[tuple[str, float, float]]:
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


def average(options: arguments.AverageOptions) -> None:
    """Write mean images or volumes along a factor, or on the grid of two."""
    width = checked_width(options.width, options.view)
    run = open_run(options.run)
    factors = "x".join(map(str, options.factor))
    seen = "" if options.view is None else "-view{:g},{:g}".format(*options.view)
    out = Path(options.out or run.folder / f"average-factor{factors}{seen}")
    require_new(out, mark="bins.csv", overwrite=options.overwrite)
    # Before the bins are made, so that matching sees only the particles averaged.
    if options.view is not None:
        run = run.seen_from(options.view, width=width)
    with chosen_workers(options.cluster, Here()) as workers:
        averages = _averages(run, options, workers)
    with whole_folder(out) as folder:
        written = write_averages(averages, folder)
    show(f"{averages}.\n{out}: {shortened(written)}")


def _averages(run: Run, options: arguments.AverageOptions, workers: Workers) -> averaging.Averages:
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


def shortened(names: list[str]) -> str:
    """List the first names; volumes have a file for each bin."""
    return ", ".join([*names[:4], "..."] if len(names) > 4 else names)


def landscape(options: arguments.LandscapeOptions) -> None:
    """Write the free energy along a factor, or on the grid of two."""
    run, factors = open_run(options.run, some=True), options.factor or (1,)
    name = f"landscape-factor{'x'.join(map(str, factors))}.csv"
    out = require_ending(options.out or str(run.folder / name), ".csv")
    for path in (out, out.with_suffix(".png")):
        require_new(path, overwrite=options.overwrite)
    found = landscape_of(places_along(run, factors))
    with plots.style(plots.CLEAR):
        figure = plots.new_figure(4.4, 3.2)
        plots.landscape(figure.subplots(), found, factors)
        write_bytes(out.with_suffix(".png"), plots.clear_picture(figure, ".png"))
    write_bytes(out, found.as_csv)
    show(f"{found}.\n{out}, {out.with_suffix('.png').name}")


def export(options: arguments.ExportOptions) -> None:
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


def compare(options: arguments.CompareOptions) -> None:
    """Print which factors of the first run others share; write one in the frame of the first."""
    names, out = options.runs, options.out and require_ending(options.out, ".csv")
    if len(names) < 2 or (out and len(names) > 2):
        need = "two runs with --out" if out else "two runs or more"
        raise ValueError(f"compare needs {need}; got {len(names)}.")
    if out:
        require_new(out, overwrite=options.overwrite)
    first, *others = (open_run(name, some=True) for name in names)
    found = [align_runs(first, other) for other in others]
    table = coordinate_columns(found[0].mapped(others[0].places), ".csv")
    table = {name: each for name, each in table.items() if np.isfinite(each).all()}
    if out and not table:
        raise ValueError(
            f"{names[0]} and {names[1]} share no factor, so that --out has no columns."
        )
    show(aligned([["factor", *names], *_shared([first, *others], found)]))
    for name, each in zip(names[1:], found, strict=True):
        show(f"{names[0]} and {name}: {each.samples.why}.")
    if out:
        write_bytes(out, as_csv({"sample": others[0].rows, **table}))
        show(f"{out}: samples of {names[1]} on the factors of {names[0]}")


def _shared(runs: Sequence[Run], found: Sequence[Alignment]) -> Iterator[list[str]]:
    """Yield a row for each factor of the first run, then for what only another one has."""
    cells = [{i: _private(*told) for i, told in each.explained[0].items()} for each in found]
    for known, each in zip(cells, found, strict=True):
        for (i, j, r2), how in zip(each.pairs, each.how, strict=True):
            known[i] = f"{j + 1} (R^2 {r2:.3f}, {how})"
    for i, place in enumerate(runs[0].places):
        yield [place.topology, str(i + 1), *(known[i] for known in cells)]
    for b, each in enumerate(found, start=1):
        for j, told in each.explained[1].items():
            row = [_private(*told), *["-"] * len(found)]
            row[b] = str(j + 1)
            yield [runs[b].places[j].topology, *row]


def _private(others: Sequence[int], r2: float) -> str:
    """Return what is said of a factor that this run does not share."""
    numbers = listed(str(k + 1) for k in others)
    together = f"{numbers} together" if len(others) > 1 else f"part of {numbers}"
    return f"{together if r2 >= LEAST_SHARED else 'private'} (R^2 {r2:.3f})"


# The commands that show a run, `report` and `explore`, and `views`: directions of particles.


def report(options: arguments.ReportOptions) -> None:
    """Print a run as text, and write the page that shows it."""
    folder = Path(options.run)
    record, estimator = read_run(folder)
    # Before anything is drawn, which takes seconds.
    out = _page_of(options)
    # The text first: it needs no matplotlib, the page does.
    run = open_run(folder, some=True)
    wanted = _wanted(options, run)
    show(report_text(record, estimator))
    shown = _shown(run, estimator, wanted)
    for sentence in volume_sentences(shown):
        show(fill(sentence, TEXT_WIDTH))
    for number, cone in enumerate(shown.cones, start=1):
        # Along a factor of more dimensions there are no averages.
        if run.place(number).topology != "other":
            show(f"Factor {number}: averages of {cone}")
    show(f"Report: {write_report(folder, estimator, out=out, shown=shown)}")
    if options.movies:
        written = write_movies(folder, page=out, shown=shown)
        movies = ", ".join(map(str, written))
        show(f"Movies: {movies or 'none, as no factor has one dimension'}")


def _wanted(options: arguments.ShownOptions, run: Run) -> Wanted:
    """Return what the user asked to see; refuse what the run cannot show."""
    folder, factor = options.volumes, options.volumes_along
    if factor is not None and folder is None:
        raise ValueError(
            "--volumes-along is the factor of a series of volumes; give its folder "
            "with --volumes, or leave it out."
        )
    volumes = None if folder is None else read_volumes(folder, run, factor=factor)
    wanted = Wanted(options.view, options.width, volumes)
    wanted.check(run)
    return wanted


def _shown(run: Run, fit: ManifoldFactorizer, wanted: Wanted) -> Shown:
    """Return what is shown of particles of all views, with a bar for what is slow."""
    with reported_volumes(run) as stages:
        return open_shown(run, fit, wanted, stages=stages)


def _page_of(options: arguments.ReportOptions) -> Path:
    """Return the file of the page; refuse one that cannot be written."""
    if options.out is not None:
        out = require_ending(options.out, ".html")
        movies = out.parent.glob(f"{escape(out.stem)}-factor*")
        require_new(out, overwrite=options.overwrite)
        for path in movies if options.movies else []:
            require_new(path, overwrite=options.overwrite)
        return out
    folder = Path(options.run)
    own(folder / REPORT_NAME)
    return folder / REPORT_NAME


def explore(options: arguments.ExploreOptions) -> None:
    """Serve a page on a run until interrupted."""
    # A missing package must show before the run is read, not after.
    for package in ("jinja2", "pydantic", "starlette", "uvicorn"):
        extra(package)
    # Imported here: no other command needs the explorer.
    from manifactor.views.explorer.scene import scene_of
    from manifactor.views.explorer.server import application, listening, serve, warm_up

    folder = None if options.save_to is None else Path(options.save_to)
    if folder is not None:
        require_writable(folder)
    # Other users of this machine can reach the port; the token keeps them out.
    token = token_urlsafe(16)
    run = open_run(options.run, some=True)
    wanted = _wanted(options, run)
    with listening(options.port) as bound:
        _, fit = read_run(run.folder)
        shown = _shown(run, fit, wanted)
        if shown.why:
            note(f"no volumes along the factors: {shown.why}")
        scene = scene_of(run, fit, shown)
        warm_up(scene)
        port = bound.getsockname()[1]
        show(f"Open in a browser on this machine: http://127.0.0.1:{port}/?token={token}")
        tunnel = f"ssh -L {port}:127.0.0.1:{port} {os.environ.get('USER', 'you')}@{gethostname()}"
        show(f"From another machine, first run there: {tunnel}")
        show("Stop with Ctrl-C.")
        try:
            with signals.answered_inside():
                serve(application(scene, token, folder=folder), bound)
        except KeyboardInterrupt as stop:
            # Ctrl-C is the way to stop the server, not an error.
            if signals.signal_of(stop) != SIGINT:
                raise
    show("Stopped.")


# From which directions particles are seen.


def views(options: arguments.ViewsOptions) -> None:
    """List the most populated viewing directions, and draw a map of all of them."""
    path = Path(options.input)
    out = Path(options.out or f"{path.stem}-views.png")
    if out.suffix not in (".png", ".svg", ".pdf"):
        raise ValueError(f"the picture must end in .png, .svg, .pdf; got {out.name}.")
    particles = read_particles(path)
    directions = known_directions(particles)
    require_new(out, overwrite=options.overwrite)
    width = options.width
    found = populated_views(directions, width=width, n_views=options.rows)
    # The text first: it needs no matplotlib, the picture does.
    show(_table(found, len(directions), width))
    best = found[0]
    # Below some hundreds of images, a fit is mostly refused or "cannot tell".
    if best.n_particles < 300:
        note(
            f"a fit of one view needs some hundreds of particles; the fullest has "
            f"{best.n_particles}. Enlarge --width, or fit all views (--all-views)."
        )
    # Without it, the defocus shows as a factor.
    flip = " --phase-flip" if can_flip(particles) else ""
    direction = f"--view {best.rot:g},{best.tilt:g} --width {width:g}{flip}"
    fit_command = shell_line("manifactor", "fit", path)
    show(f"Best view for a fit of one: {fit_command} {direction}")
    _draw(out, directions, found)
    show(f"Picture: {out}")


def _table(found: Sequence[Cone], n_particles: int, width: float) -> str:
    """Return the populated directions as a table, below a line that describes it."""
    # The share of the sphere that a cone covers.
    even = n_particles * (1 - np.cos(np.radians(width))) / 2
    heading = ["view", "rot", "tilt", "particles", "share", "relative to uniform"]
    rows = [
        [
            str(number),
            f"{view.rot:g}",
            f"{view.tilt:g}",
            str(view.n_particles),
            f"{view.n_particles / n_particles:.1%}",
            f"{view.n_particles / even:.2f}",
        ]
        for number, view in enumerate(found, start=1)
    ]
    about = f"{n_particles} particles; those within {width:g} degrees of a direction:"
    return f"{about}\n{aligned([heading, *rows])}"


def _draw(out: Path, directions: np.ndarray, found: Sequence[Cone]) -> None:
    cells = sphere_cells()
    with plots.style(plots.CLEAR):
        figure = plots.new_figure(6.4, 3.2)
        plots.sphere(
            figure.subplots(),
            cells,
            cells.counts(directions),
            label=f"particles in 1/{len(cells)} of the sphere",
            marks=[view.direction for view in found],
        )
        drawn = plots.clear_picture(figure, out.suffix)
    write_bytes(out, drawn)
