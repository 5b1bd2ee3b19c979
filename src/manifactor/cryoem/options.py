"""The commands of cryo-EM, with their options and help; cheap to import."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

from manifactor.command.arguments import Command, examples, overwrite_option, run_argument
from manifactor.runs.options import (
    argument,
    cluster_option,
    number,
    option,
    out_option,
    seed_option,
    view,
    width_option,
)


@dataclass(frozen=True)
class DemoOptions:
    """The options of `demo`."""

    out: str = out_option(
        "run folder; the simulated images go into FOLDER-data", "demo-run", metavar="FOLDER"
    )
    # With 2500 images both motions correlate with the truth by 0.99 or more.
    n: int = option("number of images", 2500, metavar="N", parameter="n_samples")


def _shapes() -> str:
    from manifactor.datasets import SHAPES

    return f"molecule for particle images, or one of the shapes {', '.join(sorted(SHAPES))}"


# Headings of the options of `simulate`, which go with some kinds of simulation only.
OF_SHAPES, OF_THE_MOLECULE = "options for shapes", "options for the molecule"
OF_ONE_VIEW, OF_ALL_VIEWS = f"{OF_THE_MOLECULE} in one view", f"{OF_THE_MOLECULE} in all views"
OF_THE_STRUCTURE = f"{OF_THE_MOLECULE}'s structure"
OF_MOLECULES = (OF_THE_MOLECULE, OF_THE_STRUCTURE, OF_ONE_VIEW, OF_ALL_VIEWS)
_shape, _molecule = partial(option, group=OF_SHAPES), partial(option, group=OF_THE_MOLECULE)
_one_view, _all_views = partial(option, group=OF_ONE_VIEW), partial(option, group=OF_ALL_VIEWS)
_structure = partial(option, group=OF_THE_STRUCTURE)


@dataclass(frozen=True)
class SimulateOptions:
    """The options of `simulate`. None is the library's own default."""

    shape: str = argument(_shapes, metavar="SHAPE")
    n: int = option("number of samples or images", 3000, parameter="n_samples")
    seed: int = seed_option()
    # The default depends on SHAPE: the command sets it.
    out: str | None = out_option(
        ".npz file (default: SHAPE.npz), or for the molecule a folder (default: molecule)",
        metavar="PATH",
    )
    overwrite: bool = overwrite_option("replace the output of an earlier simulation")

    noise: float | None = _shape(
        "standard deviation of Gaussian noise, in units of the shape "
        "(default: none; 0.05 for rectangle_z and rectangle_xyz)",
        type=number(low=0),
        metavar="SD",
    )
    ambient_dimension: int | None = _shape(
        "rotate the shape into a random subspace of D dimensions", metavar="D"
    )
    # No `choices`: the library's own error names the argument and the valid values.
    sampling: str = _shape(
        "uniform; weighted: the density varies fivefold along each factor; dependent: the density "
        "couples neighbouring factors; duplicates: a tenth of the samples are copies; outliers: "
        "one in a hundred lies off the shape",
        "uniform",
        metavar="NAME",
    )

    views: Literal["one", "all"] = _molecule(
        "one: a single direction; all: random directions, with poses in the STAR file", "one"
    )
    motions: str = _molecule(
        "x: rotation, and stretch along x; xy: rotation, and stretch along x and y; "
        "with --views all also stretches: stretch along x and y, and rigid: no motion",
        "x",
        metavar="AXES",
    )
    # 10 and more is easy, 3 to 10 is like the paper's data, 1 is hopeless.
    snr: float = _molecule(
        "signal-to-noise ratio of the fourth principal component; inf for images without noise",
        10.0,
        type=number(above=0, infinite=True),
        parameter="signal_to_noise",
    )
    # Motions that depend on each other are not a product; this makes data to show it.
    correlation: float = _molecule(
        "correlation between rotation and stretch along x, in [-1, 1]", 0.0, metavar="R"
    )
    defocus: tuple[float, float] | None = _molecule(
        "range of the defocus in Angstrom; "
        "the images then have a contrast transfer function (default: no CTF)",
        nargs=2,
        metavar=("LOW", "HIGH"),
    )
    size: int | None = _molecule(
        "width of an image in pixels, even for one view (default: 108; all views 48)",
        metavar="PIXELS",
    )
    pixel_size: float | None = _molecule(
        "width of a pixel in Angstrom (default: 2; all views 5.5)", metavar="A"
    )
    in_plane: bool = _one_view("rotate each image in its plane and shift it, at random", False)
    route: str = _one_view(
        "atoms: project moved atoms; volumes: interpolate densities "
        "as in the paper, about a hundred times slower",
        "atoms",
    )
    preferred: bool = _all_views("prefer four directions instead of drawing uniform ones", False)
    pose_error: float = _all_views(
        "root mean square angle between the poses in the STAR file and the true ones, "
        "which truth.csv holds",
        0.0,
        metavar="DEGREES",
    )
    correlate: float = _all_views(
        "correlation between the stretch along x and the elevation of the view, in [-1, 1]",
        0.0,
        metavar="R",
        parameter="view_correlation",
    )
    # A channel is built in, so that no file is needed and nothing is downloaded.
    structure: str | None = _structure(
        "PDB or mmCIF file to use instead of the built-in channel; needs --rotor", metavar="FILE"
    )
    rotor: tuple[str, ...] | None = _structure(
        "what rotates about z: chains (A) or ranges of residues (A:219-421)",
        nargs="+",
        metavar="PART",
    )
    assembly: str | None = _structure(
        "biological assembly to build from the file (default: the atoms as stored)", metavar="NAME"
    )
    # The built-in channel has four equal subunits.
    symmetry: int = _structure(
        "order of the rotor's symmetry: it looks the same after 360/N degrees", 4, metavar="N"
    )


@dataclass(frozen=True)
class ViewsOptions:
    """The options of `views`."""

    input: str = argument(
        "particles with poses, .star or .cs; their images are not read",
        metavar="PARTICLES",
        reads=True,
    )
    # The same default as that of `fit --view`.
    width: float = option(
        "largest angle to a direction at which particles are counted, in degrees",
        10.0,
        metavar="DEGREES",
    )
    rows: int = option("number of directions to list", 8, type=number(int, low=1), metavar="N")
    # The default depends on PARTICLES: the command sets it.
    out: str | None = out_option(
        "picture to write: .png, .svg or .pdf (default: PARTICLES-views.png)", metavar="FILE"
    )
    overwrite: bool = overwrite_option("replace an existing picture")


@dataclass(frozen=True)
class BinOptions:
    """What `average` and `export` share."""

    run: str = run_argument()
    bins: int = option("number of bins along a factor", 10, metavar="N", parameter="n_bins")
    overwrite: bool = overwrite_option("replace an earlier output of this command")


@dataclass(frozen=True)
class AverageOptions(BinOptions):
    """The options of `average`."""

    factor: tuple[int, ...] = option(
        "factor, counted from 1; given twice, the grid of two factors",
        (),
        required=True,
        metavar="K",
    )
    # Without matching, a bin that holds other states of a second motion shows that motion, too.
    match: bool = option(
        "weight samples so that all bins have the same distribution of other factors", False
    )
    # By how much the halves of a bin differ is what of its average is noise.
    halves: bool = option(
        "average both half sets of every bin, too, and print how they correlate", False
    )
    view: tuple[float, float] | None = option(
        "average the images seen from this direction only, in degrees",
        type=view,
        metavar="ROT,TILT",
    )
    width: float | None = width_option()
    # Inside the run folder: when `fit --overwrite` replaces the run, averages of the old one go
    # with it.
    out: str | None = out_option("folder to write (default: RUN/average-factorK)", metavar="FOLDER")
    cluster: str | None = cluster_option("sums of images")


@dataclass(frozen=True)
class ExportOptions(BinOptions):
    """The options of `export`."""

    to: Literal["cryodrgn", "recovar", "aspire", "relion", "cryosparc"] = option(
        "program to export to", required=True
    )
    factor: int = option("factor, counted from 1", required=True, metavar="K")
    training: str | None = option(
        "cryodrgn: folder of the trained model, with config.yaml and weights.N.pkl "
        "(default: the folder of the coordinates)",
        metavar="FOLDER",
    )
    out: str | None = out_option("folder to write (default: RUN/PROGRAM-factorK)", metavar="FOLDER")
    cluster: str | None = cluster_option("files of bins")


DEMO = Command(
    1,
    "manifactor.cryoem.simulating:demo",
    DemoOptions,
    "simulate a molecule with two motions, factor its images and average them",
    "Simulate images of a molecule with two independent motions, factor them "
    "without any knowledge of the motions, average them along each motion and "
    "write a report. An earlier demo in the same folder is replaced.",
)
SIMULATE = Command(
    2,
    "manifactor.cryoem.simulating:simulate",
    SimulateOptions,
    "write samples of a built-in shape, or images of a moving molecule",
    "Write samples of a built-in shape with the truth behind each sample, or "
    "particle images of a moving molecule with a STAR file and the truth.",
    examples(
        "simulate torus --n 3000 --seed 1 --out data.npz",
        "simulate molecule --n 2500 --snr 10 --out data",
        "simulate molecule --views all --n 60000 --out data",
    ),
)
VIEWS = Command(
    3,
    "manifactor.cryoem.commands:views",
    ViewsOptions,
    "show from which directions particles are seen",
    "List the most populated viewing directions of particles with poses, draw a "
    "map of all directions, and print the command that fits the best view.",
    examples("views particles.star", "views J12_particles.cs --width 8"),
)
AVERAGE = Command(
    8,
    "manifactor.cryoem.commands:average",
    AverageOptions,
    "average images or volumes along a factor, or on the grid of two",
    "Average the images or volumes of a run in bins along a factor, or on the grid "
    "of two factors: a stack or volumes, a picture and a movie.",
    examples("average run --factor 1 --match"),
)
EXPORT = Command(
    10,
    "manifactor.cryoem.commands:export",
    ExportOptions,
    "write files and commands for programs that reconstruct volumes",
    "Write the files with which another program computes volumes along a factor, "
    "and the commands to run it.",
    examples("export run --to relion --factor 1 --bins 8"),
)
