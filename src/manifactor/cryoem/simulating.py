"""The commands that simulate data: `simulate` and `demo`."""

import sys
from dataclasses import fields
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np

from manifactor._support.errors import extra, shell_line
from manifactor._support.files import whole_folder, write_whole
from manifactor._support.progress import ProgressBars
from manifactor._support.stages import Stages
from manifactor.command.outputs import own, require_ending, require_new
from manifactor.command.terminal import show
from manifactor.cryoem.averages import average, write_averages
from manifactor.cryoem.options import (
    OF_ALL_VIEWS,
    OF_MOLECULES,
    OF_ONE_VIEW,
    OF_SHAPES,
    DemoOptions,
    SimulateOptions,
)
from manifactor.cryoem.simulate.all_views import PreferredDirections, ViewSimulation, simulate_views
from manifactor.cryoem.simulate.molecule import read_molecule
from manifactor.cryoem.simulate.one_view import Simulation, simulate_particles
from manifactor.cryoem.simulate.writing import write_dataset
from manifactor.datasets import sample
from manifactor.runs.archive import is_run
from manifactor.runs.folder import read_record, require_new_run
from manifactor.runs.options import flag_of
from manifactor.runs.run import Run, open_run
from manifactor.runs.task import Task
from manifactor.scores import coordinate_correlation
from manifactor.views.report import write_report
from manifactor.views.words import found_text


def simulate(options: SimulateOptions) -> None:
    """Write samples of a shape, or particle images of a moving molecule."""
    if options.shape == "molecule":
        _refuse(options, "shapes", "molecule", OF_SHAPES)
        _simulate_molecule(options)
    else:
        _refuse(options, "the molecule", options.shape, *OF_MOLECULES)
        _simulate_shape(options)


def _refuse(options: SimulateOptions, what: str, given: str, *groups: str) -> None:
    """Refuse options of another kind of simulation: they would have no effect."""
    for each in fields(options):
        if each.metadata["group"] in groups and getattr(options, each.name) != each.default:
            raise ValueError(
                f"{flag_of(each)} is an option for {what}; got it with {given}. Leave it out."
            )


def _simulate_shape(options: SimulateOptions) -> None:
    out = require_ending(options.out or f"{options.shape}.npz", ".npz")
    require_new(out, overwrite=options.overwrite)
    X, truth = sample(
        options.shape,
        options.n,
        noise=options.noise,
        ambient_dimension=options.ambient_dimension,
        sampling=options.sampling,
        random_state=options.seed,
    )
    arrays = {f"truth{i}": latent for i, latent in enumerate(truth, start=1)}
    write_whole(out, lambda file: np.savez(file, X=X, **arrays))  # type: ignore[arg-type]
    n_samples, n_columns = X.shape
    show(
        f"{out}: {n_samples} samples with {n_columns} columns (X), "
        f"{len(truth)} true factors (truth1, ...)"
    )


def _simulate_molecule(options: SimulateOptions) -> None:
    out = Path(options.out or "molecule")
    require_new(out, mark="truth.csv", overwrite=options.overwrite)
    if options.views == "all":
        _refuse(options, "one view", "--views all", OF_ONE_VIEW)
        option = " --all-views"
        simulated: Simulation | ViewSimulation = simulate_views(
            options.n,
            preferred=PreferredDirections() if options.preferred else None,
            pose_error=options.pose_error,
            view_correlation=options.correlate,
            **_molecule_settings(options),
        )
    else:
        _refuse(options, "--views all", "one view", OF_ALL_VIEWS)
        option = ""
        how = {"in_plane": options.in_plane, "route": options.route, **_molecule_settings(options)}
        simulated = simulate_particles(options.n, **how)
    _write(out, simulated)
    following = shell_line("manifactor", "fit", out / "particles.star")
    show(
        f"{out}: particles.star and particles.mrcs with {options.n} images, and "
        f"truth.csv. Next: {following}{option}"
    )


def _molecule_settings(options: SimulateOptions) -> dict[str, Any]:
    """Return the arguments that simulations of one view and of all views share."""
    if (options.structure is None) != (options.rotor is None):
        raise ValueError(
            "--structure and --rotor must be given together: a file, and the part of "
            "it that rotates."
        )
    names = ("motions", "correlation", "defocus", "symmetry", "size", "pixel_size")
    settings: dict[str, Any] = {name: getattr(options, name) for name in names}
    settings |= {"signal_to_noise": options.snr, "random_state": options.seed}
    if options.structure is not None and options.rotor is not None:
        settings["molecule"] = read_molecule(
            options.structure, rotor=options.rotor, assembly=options.assembly
        )
    # Where one is not given, each simulation has its own default.
    return {name: value for name, value in settings.items() if value is not None}


def _write(out: Path, simulation: Simulation | ViewSimulation) -> None:
    with whole_folder(out) as folder, ProgressBars() as bars:
        write_dataset(folder, simulation, name=_name_in_project(out), callback=bars)


def _name_in_project(folder: Path) -> str:
    """Return the folder as RELION names it: relative to the project's, the current one."""
    # For a folder elsewhere, only its last part is known to be right.
    elsewhere = folder.is_absolute() or ".." in folder.parts
    return folder.name if elsewhere else str(folder)


def demo(options: DemoOptions) -> None:
    """Simulate a molecule with two motions, factor its images and average them."""
    # Needed for the report, at the end; a missing package must show at the start.
    extra("matplotlib")
    out = Path(options.out)
    data = out.with_name(f"{out.name}-data")
    _require_earlier_demo(out, data)
    show(
        f"Simulating {options.n} noisy images of a channel whose top rotates and "
        "whose lower part stretches. The fit is not told about these motions."
    )
    simulation = simulate_particles(options.n, random_state=0)
    _write(data, simulation)
    task = Task(data / "particles.star")
    with ProgressBars() as bars:
        estimator, record = task.fit(task.read(), out, overwrite=True, stages=Stages(bars))
    show(f"\n{found_text(record, estimator)}")
    _average_motions(open_run(out), simulation)
    _show_demo_files(out, data)


def _require_earlier_demo(out: Path, data: Path) -> None:
    """Refuse folders that an earlier demo did not write."""
    own(out)
    images = str((data / "particles.star").resolve())
    if is_run(out) and read_record(out).get("input") != images:
        raise ValueError(
            f"the demo replaces earlier demos only; {out} is another run. Choose another --out."
        )
    require_new_run(out, overwrite=True)
    require_new(data, mark="truth.csv", overwrite=True)


def _average_motions(run: Run, simulation: Simulation) -> None:
    """Compare each factor with the true motion, and average along it."""
    # The true motions differ in topology, which tells which factor is which.
    turn, stretch = simulation.truth
    motions = {"circle": ("rotation", turn), "interval": ("stretch", stretch)}
    for i, place in enumerate(run.places, start=1):
        if place.topology not in motions:
            continue
        name, truth = motions[place.topology]
        correlation = coordinate_correlation(place.coordinate, truth)
        show(f"Factor {i} is the true {name}: correlation {correlation:.3f}.")
        # The top is fourfold symmetric: 12 frames show its turn in steps of 7.5 degrees, each of
        # which is the mean of about 200 images.
        averages = average(run, [i], n_bins=12, matched=True)
        with whole_folder(run.folder / f"average-factor{i}") as folder:
            write_averages(averages, folder)


def _show_demo_files(out: Path, data: Path) -> None:
    page = write_report(out)
    movies = sorted(out.glob("average-factor*/averages.gif"))
    # From `make demo` the command is not on the path; the line must work when pasted.
    called = Path(sys.argv[0])
    module = "python -m manifactor" if called.name == "__main__.py" else str(called)
    program = "manifactor" if which("manifactor") else module
    show(f"\nMovies of the motions: {' and '.join(map(str, movies))}")
    show(
        f"Coordinates of every particle: {out / 'particles.star'} (for RELION) and "
        f"{out / 'coordinates.csv'}"
    )
    show(f"Report, to open in a browser: {page}. Simulated images: {data}")
    following = shell_line("explore", out)
    show(f"To move along the motions yourself, run: {program} {following}")
