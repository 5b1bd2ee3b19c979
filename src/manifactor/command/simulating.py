"""The grammar of the commands that simulate data: `simulate` and `demo`."""

import sys
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np

from manifactor import datasets
from manifactor._support.errors import extra, shell_line
from manifactor._support.files import whole_folder, write_whole
from manifactor.command.options import (
    Options,
    add,
    add_out,
    add_overwrite,
    add_seed,
    name_in_project,
    number,
    own,
    require_ending,
    require_new_file,
    require_new_folder,
)
from manifactor.command.terminal import ProgressBars, show
from manifactor.cryoem.averages.averaging import average, write_averages
from manifactor.cryoem.simulate.writing import write_dataset, write_views
from manifactor.runs.archive import is_run
from manifactor.runs.folder import read_record, require_new_run
from manifactor.runs.run import Run, open_run
from manifactor.runs.task import Task
from manifactor.scores import coordinate_correlation
from manifactor.views.report import write_report
from manifactor.views.words import about_particles, summary

# Options of the two kinds of simulation, and their defaults. No number for the noise: two shapes of
# the paper come with its noise unless told.
SHAPE_DEFAULTS: dict[str, Any] = {"noise": None, "ambient_dimension": None, "sampling": "uniform"}
MOLECULE_DEFAULTS: dict[str, Any] = {
    "motions": "x",
    "snr": 10.0,
    "correlation": 0.0,
    "defocus": None,
    "size": None,
    "pixel_size": None,
    "structure": None,
    "rotor": None,
    "assembly": None,
    "symmetry": 4,
    "views": "one",
}
# Options of the molecule in one view and in all views, and their defaults.
ONE_VIEW_DEFAULTS: dict[str, Any] = {"in_plane": False, "route": "atoms"}
ALL_VIEWS_DEFAULTS: dict[str, Any] = {"preferred": False, "pose_error": 0.0, "correlate": 0.0}


def demo_options(command) -> None:
    """Add the options of `demo`."""
    text = "run folder; the simulated images go into FOLDER-data"
    add_out(command, text, metavar="FOLDER", default="demo-run")
    # With 2500 images both motions correlate with the truth by 0.99 or more.
    add(command, "--n", "number of images", type=int, default=2500, metavar="N")


def simulate_options(command) -> None:
    """Add the options of `simulate`."""
    names = ", ".join(sorted(datasets.SHAPES))
    text = f"molecule for particle images, or one of the shapes {names}"
    add(command, "shape", text, metavar="SHAPE")
    add(command, "--n", "number of samples or images", type=int, default=3000)
    add_seed(command)
    # The default depends on SHAPE, so the help says it and the command sets it.
    text = ".npz file (default: SHAPE.npz), or for the molecule a folder (default: molecule)"
    add_out(command, text, metavar="PATH")
    add_overwrite(command, "replace the output of an earlier simulation")
    _shape_options(command.add_argument_group("options for shapes"))
    title = "options for the molecule"
    _image_options(command.add_argument_group(title))
    _one_view_options(command.add_argument_group(f"{title} in one view"))
    _all_views_options(command.add_argument_group(f"{title} in all views"))
    _structure_options(command.add_argument_group(f"{title}'s structure"))


def _shape_options(shapes: Options) -> None:
    usual = SHAPE_DEFAULTS
    text = (
        "standard deviation of Gaussian noise, in units of the shape "
        "(default: none; 0.05 for rectangle_z and rectangle_xyz)"
    )
    add(shapes, "--noise", text, type=number(low=0), metavar="SD")
    text = "rotate the shape into a random subspace of D dimensions"
    add(shapes, "--ambient-dimension", text, type=int, metavar="D")
    text = (
        "uniform; weighted: the density varies fivefold along each factor; "
        "dependent: the density couples neighbouring factors; "
        "duplicates: a tenth of the samples are copies; "
        "outliers: one in a hundred lies off the shape"
    )
    # No `choices`: the library's own error names the argument and the valid values.
    add(shapes, "--sampling", text, default=usual["sampling"], metavar="NAME")


def _image_options(molecule: Options) -> None:
    usual = MOLECULE_DEFAULTS
    text = "one: a single direction; all: random directions, with poses in the STAR file"
    choices = {"choices": ["one", "all"], "default": usual["views"]}
    add(molecule, "--views", text, **choices)
    text = (
        "x: rotation, and stretch along x; xy: rotation, and stretch along x and y; "
        "with --views all also stretches: stretch along x and y, and rigid: no motion"
    )
    add(molecule, "--motions", text, default=usual["motions"], metavar="AXES")
    # 10 and more is easy, 3 to 10 is like the paper's data, 1 is hopeless.
    text = "signal-to-noise ratio of the fourth principal component; inf for images without noise"
    ratio = number(above=0, infinite=True)
    add(molecule, "--snr", text, type=ratio, default=usual["snr"])
    # Motions that depend on each other are no product; this makes data to show it.
    text = "correlation between rotation and stretch along x, in [-1, 1]"
    add(molecule, "--correlation", text, type=number(), default=usual["correlation"], metavar="R")
    text = (
        "range of the defocus in Angstrom; "
        "the images then have a contrast transfer function (default: no CTF)"
    )
    bounds = ("LOW", "HIGH")
    add(molecule, "--defocus", text, type=number(), nargs=2, metavar=bounds)
    # The defaults depend on --views: the library has them.
    text = "width of an image in pixels, even for one view (default: 108; all views 48)"
    add(molecule, "--size", text, type=int, metavar="PIXELS")
    text = "width of a pixel in Angstrom (default: 2; all views 5.5)"
    add(molecule, "--pixel-size", text, type=number(), metavar="A")


def _one_view_options(molecule: Options) -> None:
    text = "rotate each image in its plane and shift it, at random"
    add(molecule, "--in-plane", text, action="store_true")
    text = (
        "atoms: project moved atoms; volumes: interpolate densities "
        "as in the paper, about a hundred times slower"
    )
    add(molecule, "--route", text, default=ONE_VIEW_DEFAULTS["route"])


def _all_views_options(molecule: Options) -> None:
    usual = ALL_VIEWS_DEFAULTS
    text = "prefer four directions instead of drawing uniform ones"
    add(molecule, "--preferred", text, action="store_true")
    text = (
        "root mean square angle between the poses in the STAR file and the true ones, "
        "which truth.csv holds"
    )
    degrees = {"type": number(), "default": usual["pose_error"], "metavar": "DEGREES"}
    add(molecule, "--pose-error", text, **degrees)
    text = "correlation between the stretch along x and the elevation of the view, in [-1, 1]"
    share = {"type": number(), "default": usual["correlate"], "metavar": "R"}
    add(molecule, "--correlate", text, **share)


def _structure_options(structure: Options) -> None:
    usual = MOLECULE_DEFAULTS
    # A channel is built in, so that no file is needed and nothing is downloaded.
    text = "PDB or mmCIF file to use instead of the built-in channel; needs --rotor"
    add(structure, "--structure", text, metavar="FILE")
    text = "what rotates about z: chains (A) or ranges of residues (A:219-421)"
    add(structure, "--rotor", text, nargs="+", metavar="PART")
    text = "biological assembly to build from the file (default: the atoms as stored)"
    add(structure, "--assembly", text, metavar="NAME")
    # The built-in channel has four equal subunits.
    text = "order of the rotor's symmetry: it looks the same after 360/N degrees"
    add(structure, "--symmetry", text, type=int, default=usual["symmetry"], metavar="N")


# The commands that simulate data: `simulate` and `demo`.


def simulate(arguments: Namespace) -> None:
    """Write samples of a shape, or particle images of a moving molecule."""
    if arguments.shape == "molecule":
        _refuse_unused(arguments, SHAPE_DEFAULTS, "shapes")
        _simulate_molecule(arguments)
    else:
        for usual in (MOLECULE_DEFAULTS, ONE_VIEW_DEFAULTS, ALL_VIEWS_DEFAULTS):
            _refuse_unused(arguments, usual, "the molecule")
        _simulate_shape(arguments)


def _refuse_unused(
    arguments: Namespace, usual: Mapping, what: str, given: str | None = None
) -> None:
    """Refuse options of another kind of simulation: they would have no effect."""
    for name, default in usual.items():
        if getattr(arguments, name) != default:
            option = f"--{name.replace('_', '-')}"
            raise ValueError(
                f"{option} is an option for {what}; got it with "
                f"{given or arguments.shape}. Leave it out."
            )


def _simulate_shape(arguments: Namespace) -> None:
    out = require_ending(arguments.out or f"{arguments.shape}.npz", ".npz")
    require_new_file(out, overwrite=arguments.overwrite)
    X, truth = datasets.sample(
        arguments.shape,
        arguments.n,
        noise=arguments.noise,
        ambient_dimension=arguments.ambient_dimension,
        sampling=arguments.sampling,
        random_state=arguments.seed,
    )
    arrays = {"X": X}
    for i, latent in enumerate(truth, start=1):
        arrays[f"truth{i}"] = latent
    write_whole(out, lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]
    n_samples, n_columns = X.shape
    show(
        f"{out}: {n_samples} samples with {n_columns} columns (X), "
        f"{len(truth)} true factors (truth1, ...)"
    )


def _simulate_molecule(arguments: Namespace) -> None:
    out = Path(arguments.out or "molecule")
    require_new_folder(out, mark="truth.csv", overwrite=arguments.overwrite)
    if arguments.views == "all":
        _refuse_unused(arguments, ONE_VIEW_DEFAULTS, "one view", "--views all")
        _write_all_views(out, arguments)
        option = " --all-views"
    else:
        _refuse_unused(arguments, ALL_VIEWS_DEFAULTS, "--views all", "one view")
        _write_simulation(out, _one_view(arguments))
        option = ""
    following = shell_line("manifactor", "fit", out / "particles.star") + option
    show(
        f"{out}: particles.star and particles.mrcs with {arguments.n} images, and "
        f"truth.csv. Next: {following}"
    )


def _one_view(arguments: Namespace) -> datasets.Simulation:
    return datasets.simulate_particles(
        arguments.n,
        in_plane=arguments.in_plane,
        route=arguments.route,
        **_molecule_settings(arguments),
    )


def _write_all_views(out: Path, arguments: Namespace) -> None:
    simulation = datasets.simulate_views(
        arguments.n,
        preferred=datasets.PreferredDirections() if arguments.preferred else None,
        pose_error=arguments.pose_error,
        view_correlation=arguments.correlate,
        **_molecule_settings(arguments),
    )
    with whole_folder(out) as folder, ProgressBars() as bars:
        write_views(folder, simulation, name=name_in_project(out), callback=bars)


def _molecule_settings(arguments: Namespace) -> dict[str, Any]:
    """Return the arguments that simulations of one view and of all views share."""
    defocus = None if arguments.defocus is None else tuple(arguments.defocus)
    pixels = {"size": arguments.size, "pixel_size": arguments.pixel_size}
    given = {name: value for name, value in pixels.items() if value is not None}
    return {
        "motions": arguments.motions,
        "signal_to_noise": arguments.snr,
        "correlation": arguments.correlation,
        "defocus": defocus,
        "molecule": _own_molecule(arguments),
        "symmetry": arguments.symmetry,
        "random_state": arguments.seed,
        **given,
    }


def _own_molecule(arguments: Namespace) -> datasets.Molecule | None:
    """Return the molecule in the user's file, or None for the built-in one."""
    if (arguments.structure is None) != (arguments.rotor is None):
        raise ValueError(
            "--structure and --rotor must be given together: a file, and the part of "
            "it that rotates."
        )
    if arguments.structure is None:
        return None
    return datasets.read_molecule(
        arguments.structure, rotor=arguments.rotor, assembly=arguments.assembly
    )


def _write_simulation(out: Path, simulation: datasets.Simulation) -> None:
    with whole_folder(out) as folder:
        write_dataset(folder, simulation, name=name_in_project(out))


@dataclass(frozen=True)
class DemoSettings:
    """Settings of `demo`, beside its options."""

    # Fixed: the demo is the same for everyone, as in the documentation's pictures.
    seed: int = 0
    # The top is fourfold symmetric: 12 frames show its turn in steps of 7.5 degrees, and each is
    # the mean of about 200 images.
    n_bins: int = 12


def demo(arguments: Namespace, *, settings: DemoSettings = DemoSettings()) -> None:
    """Simulate a molecule with two motions, factor its images and average them."""
    # Needed for the report, at the end; a missing package must show at the start.
    extra("matplotlib")
    out = Path(arguments.out)
    data = out.with_name(f"{out.name}-data")
    _require_earlier_demo(out, data)
    show(
        f"Simulating {arguments.n} noisy images of a channel whose top rotates and "
        "whose lower part stretches. The fit is not told about these motions."
    )
    simulation = datasets.simulate_particles(arguments.n, random_state=settings.seed)
    _write_simulation(data, simulation)
    _fit_demo(data / "particles.star", out)
    _average_motions(open_run(out), simulation, settings)
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
    require_new_folder(data, mark="truth.csv", overwrite=True)


def _fit_demo(images: Path, out: Path) -> None:
    task = Task(images)
    with ProgressBars() as bars:
        estimator, record = task.fit(task.read(), out, overwrite=True, callback=bars)
    show("\n".join(["", summary(record, estimator), *about_particles(record)]))


def _average_motions(run: Run, simulation: datasets.Simulation, settings: DemoSettings) -> None:
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
        averages = average(run, [i], n_bins=settings.n_bins, matched=True)
        with whole_folder(run.folder / f"average-factor{i}") as folder:
            write_averages(averages, folder)


def _program() -> str:
    """Return how this program was called; `python -m` leaves a module's path."""
    called = Path(sys.argv[0])
    return "python -m manifactor" if called.name == "__main__.py" else str(called)


def _show_demo_files(out: Path, data: Path) -> None:
    page = write_report(out)
    movies = sorted(out.glob("average-factor*/averages.gif"))
    # From `make demo` the command is not on the path; the line must work when pasted.
    program = "manifactor" if which("manifactor") else _program()
    show(f"\nMovies of the motions: {' and '.join(map(str, movies))}")
    show(
        f"Coordinates of every particle: {out / 'particles.star'} (for RELION) and "
        f"{out / 'coordinates.csv'}"
    )
    show(f"Report, to open in a browser: {page}. Simulated images: {data}")
    following = shell_line("explore", out)
    show(f"To move along the motions yourself, run: {program} {following}")
