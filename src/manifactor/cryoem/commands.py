"""Commands of cryo-EM: `fit --all-views`, `views`, `average` and `export`."""

from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from manifactor._support.errors import shell_line
from manifactor._support.files import whole_folder, write_bytes
from manifactor._support.progress import ProgressBars
from manifactor._support.workers import Here, Workers
from manifactor.command.fitting import (
    n_workers_of,
    require_outside,
    require_usable_out,
    show_cost,
    show_result,
    with_checkpoints,
)
from manifactor.command.outputs import chosen_workers, require_new
from manifactor.command.runs import reported
from manifactor.command.terminal import aligned, note, show
from manifactor.cryoem import averages as averaging
from manifactor.cryoem import export as bridges
from manifactor.cryoem.all_views.fitting import cost_of_all_views, fit_all_views, read_all_views
from manifactor.cryoem.all_views.volumes import (
    MODEL_FILE,
    known_motions,
    needs_volumes,
    volumes_along,
    volumes_notice,
)
from manifactor.cryoem.averages import write_averages
from manifactor.cryoem.directions import (
    Cone,
    checked_width,
    known_directions,
    populated_views,
    sphere_cells,
)
from manifactor.cryoem.files.formats import read_particles
from manifactor.cryoem.maps import sphere
from manifactor.cryoem.one_view import can_flip
from manifactor.cryoem.options import AverageOptions, ExportOptions, ViewsOptions
from manifactor.cryoem.runs import seen_from
from manifactor.runs.folder import read_run
from manifactor.runs.options import ALL_VIEWS, FitOptions, flag_of
from manifactor.runs.run import Run, open_run, places_along
from manifactor.runs.task import Task
from manifactor.views import plots


def fit_particles(options: FitOptions) -> None:
    """Fit particles of all views, or print what that would cost."""
    task = _task_of_all_views(options)
    path = task.path
    out = Path(options.out or f"{path.stem}-run")
    require_outside([path, options.cluster_of], out)
    require_usable_out(out, options)
    if options.cluster is not None:
        # Workers may work in another folder.
        task, out = task.anywhere, out.absolute()
    particles, source, grid = read_all_views(task)
    if options.dry_run:
        show_cost(cost_of_all_views(task, source, n_workers=n_workers_of(options)))
        return

    def check(workers: Workers) -> None:
        # Each worker holds its share of the images.
        cost_of_all_views(task, source, n_workers=workers.count)

    given = task, particles, source, grid, out
    work = partial(fit_all_views, *given, overwrite=options.overwrite)
    show_result(*with_checkpoints([task], out, work, check=check), out, "particle")


def _task_of_all_views(options: FitOptions) -> Task:
    """Return the task of particles of all views; refuse what does not go with them."""
    path = Path(options.input[0])
    if len(options.input) > 1 or path.suffix.lower() not in (".star", ".cs"):
        raise ValueError(
            "--all-views needs one STAR or .cs file of particles with angles; got "
            f"{' '.join(options.input)}."
        )
    task = Task(path, options)
    options.require(path, ALL_VIEWS)
    # Options that have no effect on particles of all views, beside those of other inputs.
    idle = ("width", "fit_samples", "coordinates", "preparation", "transformation")
    for each in fields(options):
        if each.name in idle and getattr(options, each.name) != each.default:
            raise ValueError(f"{flag_of(each)} does not go with {ALL_VIEWS}. Leave it out.")
    return task


def views(options: ViewsOptions) -> None:
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
    # As many particles as a cone's share of the sphere.
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
    cells, marks = sphere_cells(), [view.direction for view in found]
    label = f"particles in 1/{len(cells)} of the sphere"
    with plots.style(plots.CLEAR):
        figure = plots.new_figure(6.4, 3.2)
        sphere(figure.subplots(), cells, cells.counts(directions), label=label, marks=marks)
        drawn = plots.clear_picture(figure, out.suffix)
    write_bytes(out, drawn)


def average(options: AverageOptions) -> None:
    """Write mean images or volumes along a factor, or on the grid of two."""
    width = checked_width(options.width, options.view)
    run = open_run(options.run)
    factors = "x".join(map(str, options.factor))
    seen = "" if options.view is None else "-view{:g},{:g}".format(*options.view)
    out = Path(options.out or run.folder / f"average-factor{factors}{seen}")
    require_new(out, mark="bins.csv", overwrite=options.overwrite)
    # Before the bins are made, so that matching sees only the particles averaged.
    if options.view is not None:
        run = seen_from(run, options.view, width=width)
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
        if any(plain.values()):
            option, why = (
                ("--match", "volumes of all views have the other factors held in their middle")
                if options.match
                else ("--halves", "the volumes of all views are of all particles")
            )
            raise ValueError(
                f"{option} is for means of images; {why}. Leave it out, or give a --view ROT,TILT."
            )
        places_along(run, options.factor)
        with reported([volumes_notice(run)]) as stages:
            motions = known_motions(run, read_run(run.folder)[1], stages=stages, workers=workers)
        if motions is not None:
            return volumes_along(run, motions, options.factor, n_bins=options.bins)
    with ProgressBars() as bars:
        how: dict[str, Any] = {"report": partial(bars, "images"), "workers": workers, **plain}
        return averaging.average(run, options.factor, n_bins=options.bins, **how)


def shortened(names: list[str]) -> str:
    """List the first names; volumes have a file for each bin."""
    return ", ".join([*names[:4], "..."] if len(names) > 4 else names)


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
