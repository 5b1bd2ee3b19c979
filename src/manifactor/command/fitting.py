"""What a fit will cost, printed before it starts."""

import os
import shutil
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from manifactor._support.errors import shell_line
from manifactor._support.files import real_path, replace_folder
from manifactor._support.workers import Here, Processes, Workers, WorkersLost
from manifactor.command import terminal
from manifactor.command.fit_options import SETTINGS
from manifactor.command.options import chosen_workers, own, require_new_folder
from manifactor.command.signals import leaving
from manifactor.command.terminal import ProgressBars, aligned, note, show
from manifactor.cryoem.all_views.fitting import AllViewsTask
from manifactor.cryoem.files.formats import ParticleChoice
from manifactor.estimators import ManifoldFactorizer
from manifactor.runs.archive import is_run, load
from manifactor.runs.checkpoints import Checkpoints, other_fit, require_checkpoints
from manifactor.runs.cost import Cost
from manifactor.runs.fitting import Opened
from manifactor.runs.folder import require_new_run
from manifactor.runs.parts import FOLDER as PARTS_FOLDER
from manifactor.runs.several import (
    FAILED,
    TABLE,
    clear_away,
    finished_rows,
    finished_runs,
    fit_side_by_side,
    forecast_side_by_side,
    named_tasks,
)
from manifactor.runs.task import Task
from manifactor.spectral.forecast import Forecast
from manifactor.spectral.pipeline import kept_stages
from manifactor.tables.columns import ColumnChoice
from manifactor.tables.files import array_name
from manifactor.tables.images import UnreadImages
from manifactor.tables.reading import ImageSettings, Input
from manifactor.tables.stores import in_parts
from manifactor.views.words import about_particles, all_views_lines, summary


def n_workers(arguments: Namespace, otherwise: Workers = Here()) -> int:
    """Return how many workers there are: those of --cluster, or others."""
    with chosen_workers(arguments, otherwise) as workers:
        return workers.count


def elsewhere(device: str | None, cost: Forecast) -> str:
    """Return where the cost holds, for a device whose own cost is not known."""
    on_cpu = device in (None, "cpu")
    if on_cpu or cost.device_memory:
        return ""
    return " on the CPU, and less on the device"


def show_cost(cost: Cost, where: str = "", *, of: str = "part") -> None:
    """Print the cost of a fit, and that of each of its parts, or views."""
    dominant = ""
    if of == "part":
        share = cost.longest.seconds / cost.seconds
        dominant = f", {share:.0%} of it {cost.longest.name}"
    show(f"The fit will take {cost}{where}{dominant}.\n", alone=True)
    show(aligned(cost.as_rows(of)), alone=True)


def note_long_fit(cost: Forecast, where: str, *, patience: float = 20.0) -> None:
    """Announce a fit that takes longer than `patience`, in seconds."""
    # Shorter fits are over before the forecast has been read.
    if cost.seconds > patience:
        note(f"the fit will take {cost}{where}.")


# What an interrupted fit has left, beside the run folder that it was to write.

Found = TypeVar("Found")


def checkpoint_folder(out: Path) -> Path:
    """Return the folder that holds the work on a run until the run is complete."""
    # Hidden, and beside the run folder: that one appears only when it is complete.
    return out.parent / f".{out.name}.stages"


def delete_checkpoints(folder: Path) -> None:
    """Delete what an interrupted fit has left, since this one starts afresh."""
    if folder.is_dir():
        note(
            f"deleting the checkpoints of an interrupted fit in {folder}; "
            "--resume would have continued it."
        )
        shutil.rmtree(folder, ignore_errors=True)


def require_resumable(out: Path, arguments: Namespace) -> None:
    """Refuse to resume what is not there, or is of several runs."""
    if not arguments.resume:
        return
    folder = checkpoint_folder(out)
    require_checkpoints(folder)
    for each in (folder, folder / PARTS_FOLDER):
        clear_away(each)
    if finished_runs(folder):
        raise other_fit(folder, "they are of several inputs or views")


def with_checkpoints(
    out: Path,
    arguments: Namespace,
    work: Callable[..., Found],
    *,
    check: Callable[[Workers], None] = lambda workers: None,
) -> Found:
    """Do the work of a fit, and keep long stages until its run folder is written."""
    folder = checkpoint_folder(out)

    def left() -> str:
        # Stages of a few seconds are not written, so there may be nothing to resume.
        text = "checkpoints are kept; repeat the command with --resume to continue"
        return text if folder.is_dir() else ""

    with leaving(left), chosen_workers(arguments, Here()) as workers, ProgressBars() as bars:
        check(workers)
        found = work(
            overwrite=arguments.overwrite,
            stages=_checkpoints(folder, arguments),
            callback=bars,
            workers=workers,
        )
    shutil.rmtree(folder, ignore_errors=True)
    return found


def _checkpoints(folder: Path, arguments: Namespace) -> Checkpoints:
    """Return what is kept of an interrupted fit or of an earlier run."""
    if not arguments.resume:
        delete_checkpoints(folder)
    stages = Checkpoints(folder, resume=arguments.resume)
    if arguments.reuse is not None:
        stages.kept = kept_stages(load(arguments.reuse).diffusion_).kept
    return stages


# The command `fit` for several inputs or views: a run folder for each.


def fit_views(tasks: Sequence[Task], out: Path, arguments: Namespace) -> None:
    """Fit views at the same time and print one row for each."""
    require_new_folder(out, mark=TABLE, overwrite=arguments.overwrite)
    named = named_tasks(tasks)
    folder = checkpoint_folder(out)
    # Workers first: without them, nothing that was kept is deleted. They are gone when it is said
    # what is left.
    with _kept(folder, len(named)), chosen_workers(arguments, Processes()) as workers:
        n_done = _start(named, folder, resume=arguments.resume)
        with terminal.counted_pieces(len(named), "views", n_done=n_done) as report:
            rows = fit_side_by_side(named, folder, workers=workers, report=report)
    replace_folder(folder, out)
    show(terminal.aligned([list(rows[0]), *(list(row.values()) for row in rows)]))
    failed = sum(row["verdict"] == FAILED for row in rows)
    failures = f"; {failed} failed" if failed else ""
    show(f"A run folder for each view, and this table as {TABLE}: {out}{failures}")


def _start(tasks: dict[str, Task], folder: Path, *, resume: bool) -> int:
    """Make the folder of the runs; return how many it already holds."""
    if not resume:
        delete_checkpoints(folder)
        folder.mkdir()
        return 0
    require_checkpoints(folder)
    n_done = len(finished_rows(tasks, folder))
    note(f"{n_done} of {len(tasks)} views are finished; continuing with the others.")
    return n_done


@contextmanager
def _kept(folder: Path, total: int) -> Iterator[None]:
    """Keep the finished runs if anything stops the others; remove an empty folder."""
    try:
        with leaving(lambda: _left(folder, total)):
            yield
    except WorkersLost:
        # Its message says how to go on, which must be possible even now.
        raise
    except Exception:  # it is raised again
        _left(folder, total)
        raise


def _left(folder: Path, total: int) -> str:
    """Say which runs are left, and remove a folder in which there are none."""
    clear_away(folder)
    n_done = len(finished_runs(folder))
    if not n_done:
        with suppress(OSError):
            folder.rmdir()
        return ""
    return (
        f"{n_done} of {total} views are finished and kept; repeat the command with "
        "--resume to continue"
    )


# The command `fit`: an input, or several views of a molecule, to run folders.

# Options that have no effect on particles of all views.
NOT_OF_ALL_VIEWS = (
    "view",
    "width",
    "particles",
    "ind",
    "components",
    "phase_flip",
    "standardise",
    "columns",
    "drop",
    "fit_samples",
    "coordinates",
    "preparation",
    "reuse",
)


def fit(arguments: Namespace) -> None:
    """Factor an input, or several views side by side, and write a run folder."""
    if arguments.all_views:
        _fit_all_views(arguments)
        return
    if arguments.symmetry != "C1":
        raise ValueError(
            "--symmetry goes with --all-views; images of one view have none. Add "
            "--all-views, or leave it out."
        )
    tasks = tasks_of(arguments)
    _require_compatible(arguments, tasks)
    # Absolute, since "." and ".." have no name; a link keeps its own.
    first = Path(os.path.abspath(tasks[0].path))
    out = Path(arguments.out or f"{first.stem}-run")
    _require_inputs_outside(tasks, out)
    if arguments.cluster is not None:
        # Workers may work in another folder.
        tasks, out = [task.anywhere for task in tasks], out.absolute()
    if len(tasks) > 1 and arguments.dry_run:
        # Fewer views than cores share all of them.
        processes = Processes(min(Processes().count, len(tasks)))
        count = n_workers(arguments, processes)
        show_cost(forecast_side_by_side(tasks, n_workers=count), of="view")
    elif len(tasks) > 1:
        fit_views(tasks, out, arguments)
    else:
        _fit_one(tasks[0], out, arguments)


def tasks_of(arguments: Namespace) -> list[Task]:
    """Return one task for each input and view."""
    paths = [Path(path) for path in arguments.input]
    views = arguments.view or [None]
    return [_task(arguments, path, view) for path in paths for view in views]


def _task(arguments: Namespace, path: Path, view: tuple[float, float] | None) -> Task:
    images = ImageSettings(
        phase_flip=arguments.phase_flip,
        mask_radius=arguments.mask_radius,
        low_pass=arguments.low_pass,
        components=arguments.components,
        standardise=arguments.standardise,
    )
    return Task(
        path,
        particles=arguments.particles,
        indices=arguments.ind,
        view=view,
        width=arguments.width,
        images=images,
        columns=ColumnChoice(arguments.columns, arguments.drop),
        choice=_particle_choice(arguments),
        settings={name: getattr(arguments, name) for name in SETTINGS},
        seed=arguments.seed,
        n_fitted=arguments.fit_samples,
        coordinates=arguments.coordinates,
    )


def _particle_choice(arguments: Namespace) -> ParticleChoice:
    return ParticleChoice(
        arguments.datadir,
        arguments.pixel_size,
        tuple(arguments.classes),
        tuple(arguments.optics_groups),
    )


def _require_compatible(arguments: Namespace, tasks: Sequence[Task]) -> None:
    """Refuse options that exclude each other."""
    n_tasks = len(tasks)
    if n_tasks > 1 and arguments.reuse:
        raise ValueError(
            "--reuse works with one input and one view; "
            f"got {n_tasks}. Remove the option, or fit the views one by one."
        )
    divided = n_tasks > 1 or in_parts(tasks[0].path, tasks[0].coordinates)
    if arguments.cluster is not None and not divided:
        raise ValueError(
            "--cluster divides several inputs or views, particles of --all-views, or "
            "the rows of a large table among workers; this is one fit, which runs in "
            "one process on all cores. Leave it out."
        )
    if arguments.resume and arguments.reuse:
        raise ValueError(
            "--resume continues this run and --reuse starts from another one; "
            "pass only one of them."
        )


def _fit_one(task: Task, out: Path, arguments: Namespace) -> None:
    """Fit one input, or print what that would cost."""
    _require_usable_paths(out, arguments)
    opened = task.open()
    for text in opened.notes:
        note(text)
    _note_missing_angles(opened)
    _note_array(opened)
    if arguments.dry_run:
        cost = task.forecast(opened, n_workers=n_workers(arguments))
        show_cost(cost, elsewhere(arguments.device, cost))
        return
    cost = task.forecast(opened)
    note_long_fit(cost, elsewhere(arguments.device, cost))
    given = task.read(opened)
    _note_constant_columns(given)
    work = partial(task.fit, given, out)
    estimator, record = with_checkpoints(out, arguments, work)
    _note_unused_run(arguments.reuse, estimator)
    _show_result(record, estimator, out=out, what="Coordinates of every sample")


def _fit_all_views(arguments: Namespace) -> None:
    """Fit particles of all views, or print what that would cost."""
    path = _one_file_of_particles(arguments)
    out = Path(arguments.out or f"{path.with_suffix('').name}-run")
    _require_outside([path], out)
    if not arguments.dry_run:
        _require_usable_out(out, arguments)
    task = _all_views_task(arguments, path)
    if arguments.cluster is not None:
        # Workers may work in another folder.
        task, out = task.anywhere, out.absolute()
    particles, source = task.read()
    if arguments.dry_run:
        show_cost(task.forecast(source, n_workers=n_workers(arguments)))
        return

    def check(workers: Workers) -> None:
        # Each worker holds its share of the images.
        note_long_fit(task.forecast(source, n_workers=workers.count), "")

    work = partial(task.fit, particles, source, out)
    estimator, record = with_checkpoints(out, arguments, work, check=check)
    _show_result(record, estimator, out=out, what="Places of every particle")


def _all_views_task(arguments: Namespace, path: Path) -> AllViewsTask:
    return AllViewsTask(
        path,
        choice=_particle_choice(arguments),
        symmetry=arguments.symmetry,
        low_pass=arguments.low_pass,
        mask_radius=arguments.mask_radius,
        settings={name: getattr(arguments, name) for name in SETTINGS},
        seed=arguments.seed,
    )


def _show_result(record: dict, estimator: ManifoldFactorizer, *, out: Path, what: str) -> None:
    """Print what was found, and where the coordinates and the details are."""
    found = [*all_views_lines(record), *about_particles(record)]
    show("\n".join([summary(record, estimator), *found, ""]))
    parts = "coordinates/part-*.parquet"
    coordinates = parts if "parts" in record else "coordinates.csv"
    show(f"{what}: {out / coordinates}.")
    show(f"For the details, run: {shell_line('manifactor', 'report', out)}")


def _one_file_of_particles(arguments: Namespace) -> Path:
    """Refuse what does not go with --all-views."""
    path = Path(arguments.input[0])
    if len(arguments.input) > 1 or path.suffix.lower() not in (".star", ".cs"):
        raise ValueError(
            "--all-views needs one STAR or .cs file of particles with angles; got "
            f"{' '.join(arguments.input)}."
        )
    usual = ManifoldFactorizer().get_params()
    for option in NOT_OF_ALL_VIEWS:
        given = getattr(arguments, option)
        if given and given != usual.get(option, "auto"):
            flag = option.replace("_", "-")
            raise ValueError(
                f"--{flag} does not go with --all-views, which uses the images, poses "
                "and CTF of all particles. Leave it out."
            )
    return path


def _require_inputs_outside(tasks: list[Task], out: Path) -> None:
    """Refuse an output folder that holds an input, which would be lost."""
    for task in tasks:
        given = (task.path, task.particles, task.indices)
        _require_outside([Path(each) for each in given if each is not None], out)


def _require_outside(inputs: Sequence[Path], out: Path) -> None:
    for given in inputs:
        path = real_path(given)
        if real_path(out) in [path, *path.parents]:
            raise ValueError(
                f"the input {given} lies in {out}, which the run would replace. "
                "Choose another --out."
            )


def _require_usable_paths(out: Path, arguments: Namespace) -> None:
    """Refuse paths that would fail after hours of work."""
    if not arguments.dry_run:
        _require_usable_out(out, arguments)
    if arguments.reuse is not None and not is_run(Path(arguments.reuse)):
        raise ValueError(
            f"--reuse must name the folder of an earlier run; {arguments.reuse} is not one."
        )


def _require_usable_out(out: Path, arguments: Namespace) -> None:
    own(out)
    require_new_run(out, overwrite=arguments.overwrite)
    require_resumable(out, arguments)


def _note_missing_angles(opened: Opened) -> None:
    # Without angles nothing shows whether the images are of one view, which the fit assumes: images
    # of several views differ mostly by the view.
    particles = opened.particles
    images = isinstance(opened, UnreadImages)
    if images and particles is not None and particles.angles is None:
        note("the particles have no angles; all images are taken as one view.")


def _note_array(opened: Opened) -> None:
    # An archive may hold labels only: the name tells whether these are the samples.
    path = opened.path
    if path is None or path.suffix.lower() != ".npz":
        return
    name = array_name(path)
    if name != "X":
        note(f"the samples are {name!r}, the only array of {path}.")


def _note_constant_columns(given: Input, *, many: int = 64) -> None:
    # Harmless to the fit, but often a sign of a wrong file or of an empty column. Among many
    # columns, such as pixels, some are usually constant.
    samples = given.samples
    n_columns = samples.shape[1]
    if not len(samples) or n_columns > many:
        return  # no samples are refused by the fit, with the number that it needs
    constant = np.flatnonzero(samples.min(axis=0) == samples.max(axis=0))
    if 0 < len(constant) < n_columns:
        first = int(constant[0])
        label = first if given.labels is None else given.labels[first]
        note(
            f"{len(constant)} of {n_columns} columns are constant and have no effect; "
            f"the first is column {label!r}."
        )


def _note_unused_run(reused: str | None, estimator: ManifoldFactorizer) -> None:
    # A stage has a time only if it was computed, and the search for neighbours is the first stage
    # that an earlier run can save.
    if reused is not None and "neighbours" in estimator.timings_:
        note(
            f"nothing of {reused} could be reused: its samples or settings differ. "
            "--fit-samples is one of these settings."
        )
