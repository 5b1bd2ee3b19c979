"""The grammar of the command line: every command with its options and its help.

Cheap to import: what a command needs is imported when it runs.
"""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import Any, Literal, NoReturn

from manifactor._support import __version__
from manifactor._support.files import restore
from manifactor.command import EXIT_BAD_INPUT, terminal
from manifactor.runs.options import (
    FitOptions,
    add_options,
    argument,
    cluster_option,
    flag_of,
    given,
    number,
    option,
    out_option,
    seed_option,
    view,
    width_option,
)

run_argument = partial(argument, "run folder written by manifactor fit", metavar="RUN", reads=True)
overwrite_option = partial(option, default=False)


@dataclass(frozen=True)
class DemoOptions:
    """The options of `demo`."""

    out: str = out_option(
        "run folder; the simulated images go into FOLDER-data", "demo-run", metavar="FOLDER"
    )
    # With 2500 images both motions correlate with the truth by 0.99 or more.
    n: int = option("number of images", 2500, metavar="N")


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
    n: int = option("number of samples or images", 3000)
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
class ShownOptions:
    """What `report` and `explore` show of a run."""

    run: str = run_argument()
    view: tuple[float, float] | None = option(
        "particles of all views: show them from this direction, in degrees (default: "
        "from the one that shows each factor best)",
        type=view,
        metavar="ROT,TILT",
    )
    width: float | None = option(
        "largest angle to the direction in which images are averaged, in degrees "
        "(default: 10, or up to 30 if there are fewer than 150 images)",
        metavar="DEGREES",
    )
    volumes: str | None = option(
        "show a series of .mrc volumes along a factor, such as that which cryodrgn "
        "eval_vol writes for manifactor export",
        metavar="FOLDER",
    )
    volumes_along: int | None = option(
        "factor that the volumes lie along (default: the one on which they spread)", metavar="K"
    )


@dataclass(frozen=True)
class ReportOptions(ShownOptions):
    """The options of `report`."""

    # Off by default: the images are read once more.
    movies: bool = option("write a movie along each factor beside the page, as GIF and MP4", False)
    out: str | None = out_option(
        "page to write, .html (default: RUN/report.html, which is replaced)", metavar="FILE"
    )
    overwrite: bool = overwrite_option("replace an existing file of --out")


@dataclass(frozen=True)
class ExploreOptions(ShownOptions):
    """The options of `explore`."""

    port: int | None = option("port of the page on this machine (default: 8642, or any free port)")
    # Off by default: whoever has the page's address could otherwise write files.
    save_to: str | None = option(
        "folder in which the page may save selections (default: download only)", metavar="FOLDER"
    )


@dataclass(frozen=True)
class SelectOptions:
    """The options of `select`."""

    run: str = run_argument()
    # The first --range belongs to the first --factor.
    factor: tuple[int, ...] = option(
        "factor that the next --range is on, counted from 1; may be repeated", (), metavar="K"
    )
    range: tuple[tuple[float, float], ...] = option(
        "range of the coordinate: two numbers in [0, 1] on an interval, two angles in "
        "degrees on a circle, where 350 10 crosses 0 (default: all samples)",
        (),
        nargs=2,
        metavar=("LOW", "HIGH"),
    )
    column: tuple[tuple[str, str, str], ...] = option(
        "range of any other column of numbers: of coordinates.csv, of the particles "
        "(rlnDefocusU, ctf/df1_A) or of the table that was fitted; may be repeated",
        (),
        nargs=3,
        metavar=("NAME", "LOW", "HIGH"),
    )
    cluster: int | None = option(
        "number of a cluster of particles of --all-views, from 1, the largest first", metavar="N"
    )
    # Samples far from all that were fitted have a coordinate, but confidence 0.
    min_confidence: float = option(
        "smallest confidence on every factor, in [0, 1]",
        0.0,
        type=number(low=0, high=1),
        metavar="C",
    )
    invert: bool = option("write all samples that were not selected instead", False)
    out: str = out_option(
        "file to write; its ending chooses the format: .star, .cs, .csv, .pkl, .npy, .parquet",
        required=True,
        metavar="FILE",
    )
    overwrite: bool = overwrite_option("replace an existing file")


@dataclass(frozen=True)
class CompareOptions:
    """The options of `compare`."""

    runs: tuple[str, ...] = argument(
        "two run folders or more", metavar="RUN", nargs="+", reads=True
    )
    out: str | None = out_option(
        "table to write, .csv: where the samples of the second of two runs lie on the factors of "
        "the first that it shares",
        metavar="FILE",
    )
    overwrite: bool = overwrite_option("replace an existing file")


@dataclass(frozen=True)
class LandscapeOptions:
    """The options of `landscape`."""

    run: str = run_argument()
    factor: tuple[int, ...] = option("factor, counted from 1; twice for two", (), metavar="K")
    out: str | None = out_option(
        "table to write, .csv; a picture lies beside it (default: RUN/landscape-factorK.csv)",
        metavar="FILE",
    )
    overwrite: bool = overwrite_option("replace an existing file")


@dataclass(frozen=True)
class BinOptions:
    """What `average` and `export` share."""

    run: str = run_argument()
    bins: int = option("number of bins along a factor", 10, metavar="N")
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


@dataclass(frozen=True)
class CompletionOptions:
    """The options of `completion`."""

    shell: Literal["bash", "zsh", "fish"] = argument(
        "shell to write the script for: bash, zsh, fish", metavar="SHELL"
    )


@dataclass(frozen=True)
class Grammar:
    """Options and help of one command."""

    home: str  # module that has the command's function, of the same name
    options: type
    summary: str  # the line in `manifactor --help`
    description: str  # the paragraph in `manifactor COMMAND --help`
    epilog: str | None = None


def _examples(*commands: str) -> str:
    return "\n".join(["examples:", *(f"  manifactor {line}" for line in commands)])


# In the order of a first session: make data, fit, look, hand on.
GRAMMAR: dict[str, Grammar] = {
    "demo": Grammar(
        "simulating",
        DemoOptions,
        "simulate a molecule with two motions, factor its images and average them",
        "Simulate images of a molecule with two independent motions, factor them "
        "without any knowledge of the motions, average them along each motion and "
        "write a report. An earlier demo in the same folder is replaced.",
    ),
    "simulate": Grammar(
        "simulating",
        SimulateOptions,
        "write samples of a built-in shape, or images of a moving molecule",
        "Write samples of a built-in shape with the truth behind each sample, or "
        "particle images of a moving molecule with a STAR file and the truth.",
        _examples(
            "simulate torus --n 3000 --seed 1 --out data.npz",
            "simulate molecule --n 2500 --snr 10 --out data",
            "simulate molecule --views all --n 60000 --out data",
        ),
    ),
    "views": Grammar(
        "runs",
        ViewsOptions,
        "show from which directions particles are seen",
        "List the most populated viewing directions of particles with poses, draw a "
        "map of all directions, and print the command that fits the best view.",
        _examples("views particles.star", "views J12_particles.cs --width 8"),
    ),
    "fit": Grammar(
        "fitting",
        FitOptions,
        "factor samples, images of one view, or volumes, and write a run folder",
        "Factor samples, coordinates of particles, particle images of one view, or "
        "volumes. The run folder receives the verdict, every sample's coordinate on "
        "each factor and, for particles, a STAR or cs file with the coordinates. "
        "Everything that is not given is chosen from the data.",
        _examples(
            "fit data.npz --out run",
            "fit table.csv --drop id,label --standardise --out run",
            "fit table.csv --time t --trajectory run --out run",
            "fit z.50.pkl --particles particles.star --out run",
            "fit particles.star --view 180,120 --width 8 --out run",
        ),
    ),
    "report": Grammar(
        "runs",
        ReportOptions,
        "describe a run in words, and write RUN/report.html",
        "Print a description of a run, and write a page with figures to "
        "RUN/report.html, or to another file.",
    ),
    "explore": Grammar(
        "runs",
        ExploreOptions,
        "look at a run in the browser and select samples",
        "Serve a local web page on a run: move along factors, see the average images, "
        "select samples and save them. Ctrl-C stops the server.",
    ),
    "select": Grammar(
        "runs",
        SelectOptions,
        "write the samples in a range of a factor, for other programs",
        "Write the samples whose coordinates lie in the given ranges, or all others, "
        "for RELION, cryoSPARC, cryoDRGN or as a table.",
        _examples(
            "select run --factor 1 --range .2 .4 --out subset.star",
            "select run --factor 2 --range 350 10 --out part.csv",
            "select run --column rlnClassNumber 3 3 --invert --out rest.star",
        ),
    ),
    "average": Grammar(
        "runs",
        AverageOptions,
        "average images or volumes along a factor, or on the grid of two",
        "Average the images or volumes of a run in bins along a factor, or on the grid "
        "of two factors: a stack or volumes, a picture and a movie.",
        _examples("average run --factor 1 --match"),
    ),
    "landscape": Grammar(
        "runs",
        LandscapeOptions,
        "write the free energy along a factor, or on the grid of two",
        "Write the density of samples along a factor, or on the grid of two, as a free energy in "
        "kT with its uncertainty, corrected for deviations: a table and a picture.",
        _examples("landscape run --factor 1", "landscape run --factor 1 --factor 2"),
    ),
    "export": Grammar(
        "runs",
        ExportOptions,
        "write files and commands for programs that reconstruct volumes",
        "Write the files with which another program computes volumes along a factor, "
        "and the commands to run it.",
        _examples("export run --to relion --factor 1 --bins 8"),
    ),
    "compare": Grammar(
        "runs",
        CompareOptions,
        "show which factors two runs or more share",
        "Print which factors runs of the same samples share, or runs of different samples in the "
        "same columns, such as half sets; with what R^2, and which are private.",
        _examples("compare run-a run-b", "compare run-a run-b --out b-as-a.csv"),
    ),
    "completion": Grammar(
        "terminal",
        CompletionOptions,
        "print a script that completes commands and options in a shell",
        "Print a script with which bash, zsh or fish complete commands, options and "
        "their values. Write it to where the shell looks for such scripts.",
        """files in which the shells look for the script:
  bash  ~/.local/share/bash-completion/completions/manifactor
  zsh   _manifactor in a folder of $fpath
  fish  ~/.config/fish/completions/manifactor.fish

examples:
  manifactor completion fish > ~/.config/fish/completions/manifactor.fish
  eval "$(manifactor completion bash)"     (for this shell alone)""",
    ),
}

# Parameters of the library that the command line calls otherwise.
RENAMED = {
    "n": "n_samples",
    "bins": "n_bins",
    "snr": "signal_to_noise",
    "correlate": "view_correlation",
    "time": "times",
    "trajectory": "trajectories",
}


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Print the error without the usage, which fills a screen for `fit`."""
        terminal.error(f"{message}. See {self.prog} --help.")
        raise SystemExit(EXIT_BAD_INPUT)

    def parse_known_args(self, args=None, namespace=None):
        """Parse arguments; refuse unknown ones here, where the command is known."""
        # argparse hands those of a command up, and points to the help of the program.
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown


def command_parser(wanted: Sequence[str] = tuple(GRAMMAR)) -> Parser:
    """Return the parser of the program; the wanted commands have their options."""
    parser = Parser(
        prog="manifactor",
        description="Factor a data manifold into its independent factors.",
        epilog="Options of a command: manifactor COMMAND --help.",
    )
    parser.add_argument("--version", action="version", version=f"manifactor {__version__}")
    subparsers = parser.add_subparsers(
        required=True, metavar="COMMAND", title="commands", dest="command"
    )
    for name, grammar in GRAMMAR.items():
        command = subparsers.add_parser(
            name,
            help=grammar.summary,
            description=fill(grammar.description),
            epilog=grammar.epilog,
            # Keeps the lines of examples and of the list of files as they are.
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name in wanted:
            add_options(command, grammar.options)
    return parser


def parse_arguments(argv: Sequence[str]) -> tuple[str, Any]:
    """Return the name of the command that was typed, and its options."""
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what may follow what was typed
        import argcomplete

        argcomplete.autocomplete(command_parser(os.environ.get("COMP_LINE", "").split()))
    parser = command_parser(argv)
    if not argv:
        parser.print_help()
        raise SystemExit(0)
    name = argv[0]
    if not name.startswith("-") and name not in GRAMMAR:
        near = get_close_matches(name, GRAMMAR, n=1)
        advice = f"; did you mean {near[0]}?" if near else f". Choose from {', '.join(GRAMMAR)}."
        terminal.error(f"there is no command {name!r}{advice} See manifactor --help.")
        raise SystemExit(EXIT_BAD_INPUT)
    # argparse takes a value that starts with a minus, as in --view -180,120, for an option unless
    # it is joined to its flag.
    joined = "\0".join(argv).replace("\0--view\0", "\0--view=")
    parsed = parser.parse_args(joined.split("\0"))
    return parsed.command, given(GRAMMAR[parsed.command].options, parsed)


def flags_of(options: Any) -> dict[str, str]:
    """Return the flags of a command by the parameters of the library that they set."""
    # Where two options set a parameter, the one that was typed, or else the later one.
    known = sorted(fields(options), key=lambda each: getattr(options, each.name) != each.default)
    flags = {RENAMED.get(each.name, each.name): flag_of(each) for each in known}
    return {name: flag for name, flag in flags.items() if flag is not None}


def require_inputs(options: Any) -> None:
    """Refuse files and folders to read that do not exist, before anything is imported."""
    for each in fields(options):
        value = getattr(options, each.name) if each.metadata["reads"] else ()
        for path in [value] if isinstance(value, str) else value:
            if restore(Path(path)):
                terminal.note(f"a killed command had half replaced {path}, which is whole again.")
            if not os.path.lexists(path):
                raise ValueError(f"{path} does not exist. Check its name.")
