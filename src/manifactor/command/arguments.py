"""The command line's grammar: every command with its options."""

import argparse
from collections.abc import Callable, Mapping

from manifactor import datasets
from manifactor._support.version import __version__
from manifactor.estimators import ManifoldFactorizer
from manifactor.factoring.factorize import METHODS
from manifactor.runs.bridges import BRIDGES
from manifactor.runs.selection import SELECTIONS
from manifactor.spectral.neighbors import SEARCHES
from manifactor.spectral.preparation import PREPARATIONS


def _count_or(*words: str) -> Callable[[str], int | str]:
    def parse(text: str) -> int | str:
        return text if text in words else int(text)

    parse.__name__ = f"whole number or {' or '.join(words)}"
    return parse


def _number_or(*words: str) -> Callable[[str], float | str]:
    def parse(text: str) -> float | str:
        return text if text in words else float(text)

    parse.__name__ = f"number or {' or '.join(words)}"
    return parse


def _view(text: str) -> tuple[float, float]:
    rot, tilt = (float(part) for part in text.split(","))
    return rot, tilt


_view.__name__ = "ROT,TILT"

SETTINGS: dict[str, dict] = {
    "n_factors": {"type": _count_or("auto"), "help": "how many factors to look for"},
    "method": {"choices": list(METHODS), "help": "how to find them"},
    "n_functions": {"type": _count_or("auto"), "help": "eigenfunctions to compute"},
    "n_neighbors": {
        "type": _count_or("auto", "all"),
        "help": "neighbours of each sample; all for the full kernel",
    },
    "bandwidth": {
        "type": _number_or("auto", "local"),
        "help": "eps of the kernel exp(-d^2/eps)",
    },
    "density_correction": {"type": float, "help": "0 (none) to 1 (full)"},
    "eigenvalue_tolerance": {
        "type": _number_or("auto"),
        "help": "the paper's delta, times 4",
    },
    "similarity_threshold": {
        "type": _number_or("auto"),
        "help": "the paper's gamma",
    },
    "preparation": {
        "choices": PREPARATIONS,
        "help": "against noise; images have their own",
    },
    "neighbors": {"choices": ["auto", *SEARCHES], "help": "how neighbours are sought"},
    "solver": {"help": "eigensolver: auto, dense, arpack or chebyshev"},
    "device": {"help": "cpu, or a device that torch knows, such as cuda"},
}


def build_parser(
    commands: Mapping[str, Callable], parser_class: type
) -> argparse.ArgumentParser:
    """The parser; `commands` gives the function of each command."""
    parser = parser_class(
        prog="manifactor",
        description="Factor a data manifold into its independent factors.",
    )
    parser.add_argument(
        "--version", action="version", version=f"manifactor {__version__}"
    )
    adders = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, (text, fill) in GRAMMAR.items():
        command = adders.add_parser(
            name, help=text, description=text[0].upper() + text[1:] + "."
        )
        fill(command)
        command.set_defaults(command=commands[name])
    return parser


def _demo(command) -> None:
    command.add_argument(
        "--out",
        default="demo-run",
        help="run folder (demo-run); the data go into OUT-data",
    )


def _simulate(command) -> None:
    command.add_argument(
        "shape", metavar="SHAPE", help=f"molecule, {', '.join(sorted(datasets.SHAPES))}"
    )
    command.add_argument("--n", type=int, default=3000, help="samples (3000)")
    command.add_argument("--seed", type=int, default=0, help="random seed (0)")
    command.add_argument(
        "--out", help="file to write (SHAPE.npz); for the molecule a folder (molecule)"
    )
    command.add_argument(
        "--overwrite", action="store_true", help="replace what is there"
    )
    shapes = command.add_argument_group("shapes")
    shapes.add_argument(
        "--noise", type=float, help="standard deviation of Gaussian noise"
    )
    shapes.add_argument(
        "--ambient-dimension", type=int, metavar="D", help="rotate into R^D"
    )
    shapes.add_argument(
        "--sampling",
        default="uniform",
        help=f"{', '.join(datasets.SAMPLINGS)} (uniform)",
    )
    molecule = command.add_argument_group("molecule: particle images with a STAR file")
    molecule.add_argument(
        "--motions",
        default="x",
        help="x: turn and stretch along x; xy: along x and y (x)",
    )
    molecule.add_argument(
        "--snr",
        type=float,
        default=10.0,
        help="signal to noise of the 4th principal component; inf for none (10)",
    )
    molecule.add_argument(
        "--correlation", type=float, default=0.0, help="between turn and stretch (0)"
    )
    molecule.add_argument(
        "--defocus",
        type=float,
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="range in A, for a CTF",
    )
    molecule.add_argument(
        "--in-plane", action="store_true", help="turn and shift each image at random"
    )
    molecule.add_argument("--size", type=int, default=108, help="pixels (108)")
    molecule.add_argument("--pixel-size", type=float, default=2.0, help="A (2)")
    molecule.add_argument(
        "--route",
        default="atoms",
        help="atoms (fast) or volumes (the paper's recipe) (atoms)",
    )
    molecule.add_argument(
        "--structure", metavar="FILE", help="your own PDB or mmCIF file; needs --rotor"
    )
    molecule.add_argument(
        "--rotor",
        nargs="+",
        metavar="PART",
        help="what turns about z: chains (A) or ranges of residues (A:219-421)",
    )
    molecule.add_argument(
        "--assembly", metavar="NAME", help="biological assembly of the file to build"
    )
    molecule.add_argument(
        "--symmetry",
        type=int,
        default=4,
        help="of the rotor: a turn by 360/SYMMETRY is none (4)",
    )


def _fit(command) -> None:
    command.add_argument(
        "input",
        metavar="INPUT",
        nargs="+",
        help=".npy .npz .csv .tsv .txt .parquet .pkl .cs: one sample a row; .star, .cs or .mrcs: images of one view; "
        "a folder of .mrc volumes; several for several views",
    )
    command.add_argument("--out", help="run folder (named after the input)")
    command.add_argument(
        "--overwrite",
        action="store_true",
        help="replace an earlier run and all that is in its folder",
    )
    command.add_argument("--seed", type=int, default=0, help="random seed (0)")
    command.add_argument(
        "--dry-run", action="store_true", help="say what it will cost, and stop"
    )
    command.add_argument(
        "--resume", action="store_true", help="go on where the same command was stopped"
    )
    command.add_argument(
        "--reuse",
        metavar="RUN",
        help="take what is the same from an earlier run of the same samples",
    )
    command.add_argument(
        "--fit-samples",
        type=_count_or("auto", "all"),
        default="auto",
        metavar="N",
        help="samples to fit, the others are placed: auto (3000 images, 20000 of all else), all, or a number (auto)",
    )
    particles = command.add_argument_group("particles")
    particles.add_argument(
        "--particles",
        metavar="ORIGINAL",
        help=".star or .cs that the coordinates belong to",
    )
    particles.add_argument(
        "--ind", metavar="FILE", help="cryoDRGN's ind.pkl: which of them"
    )
    particles.add_argument(
        "--view",
        type=_view,
        action="append",
        metavar="ROT,TILT",
        help="images seen from here only; may be repeated",
    )
    particles.add_argument(
        "--width", type=float, default=10.0, help="degrees around the view (10)"
    )
    particles.add_argument(
        "--phase-flip", action="store_true", help="correct the phases of the CTF"
    )
    particles.add_argument(
        "--mask-radius",
        type=float,
        metavar="A",
        help="of the circular mask (half the box)",
    )
    particles.add_argument(
        "--low-pass", type=float, metavar="A", help="resolution kept (from the data)"
    )
    particles.add_argument(
        "--components",
        type=int,
        metavar="K",
        help="principal components, unweighted (weighted)",
    )
    particles.add_argument(
        "--standardise",
        action="store_true",
        help="components of unit variance, as in the paper",
    )
    defaults = ManifoldFactorizer().get_params()
    settings = command.add_argument_group("settings, chosen from the data unless given")
    for name, options in SETTINGS.items():
        text = f"{options['help']} ({defaults[name]})"
        settings.add_argument(
            f"--{name.replace('_', '-')}",
            default=defaults[name],
            **{**options, "help": text},
        )


def _run(command) -> None:
    command.add_argument("run", metavar="RUN", help="folder that fit wrote")


def _explore(command) -> None:
    _run(command)
    command.add_argument(
        "--port",
        type=int,
        help="of this machine (8642 if free, any free one otherwise)",
    )
    command.add_argument(
        "--save-to",
        metavar="FOLDER",
        help="let the page save selections here, not only download them",
    )


def _select(command) -> None:
    _run(command)
    command.add_argument(
        "--factor",
        type=int,
        action="append",
        default=[],
        help="factor of the next --range, from 1",
    )
    command.add_argument(
        "--range",
        type=float,
        nargs=2,
        action="append",
        default=[],
        metavar=("LOW", "HIGH"),
        help="in [0, 1] on an interval, degrees on a circle, across 0 too; none for all samples",
    )
    command.add_argument(
        "--min-confidence", type=float, default=0.0, help="on every factor (0)"
    )
    command.add_argument(
        "--out", required=True, help=f"file to write: {' '.join(SELECTIONS)}"
    )
    command.add_argument(
        "--overwrite", action="store_true", help="replace an existing file"
    )


def _along(command) -> None:
    _run(command)
    command.add_argument("--bins", type=int, default=10, help="along a factor (10)")
    command.add_argument(
        "--overwrite",
        action="store_true",
        help="replace what this command wrote before",
    )


def _average(command) -> None:
    _along(command)
    command.add_argument(
        "--factor",
        type=int,
        action="append",
        required=True,
        help="from 1; two for their grid",
    )
    command.add_argument(
        "--match",
        action="store_true",
        help="the same distribution of the other factors in every bin",
    )
    command.add_argument(
        "--view", type=_view, metavar="ROT,TILT", help="images seen from here only"
    )
    command.add_argument(
        "--width", type=float, default=10.0, help="degrees around the view (10)"
    )
    command.add_argument("--out", help="folder to write (RUN/average-factor1)")


def _export(command) -> None:
    _along(command)
    command.add_argument(
        "--to", required=True, choices=list(BRIDGES), help="the program"
    )
    command.add_argument("--factor", type=int, required=True, help="from 1")
    command.add_argument("--out", help="folder to write (RUN/cryodrgn-factor1)")


def _bench(command) -> None:
    command.add_argument("question", choices=["accuracy"])
    command.add_argument(
        "--quick", action="store_true", help="a few small cases, in seconds"
    )
    command.add_argument(
        "--out", default="accuracy.jsonl", help="file to write (accuracy.jsonl)"
    )
    command.add_argument(
        "--overwrite", action="store_true", help="replace an existing file"
    )


RECIPES = """recipes, numbered as in the paper's code (the paper prints four of the figures):
  fig1    eigenfunctions of a rectangle, analytic and computed
  fig2    noisy rectangle: functions of each side (the paper's Figure 1)
  fig3    simulated cryo-EM images, three trials (Figure 2)
  fig4    the two criteria (Figure 3)
  fig5    separability matrix, similarities
  fig6    embeddings of each factor (Figure 4)
  fig7    cube: three factors
  trials  published method against default method, over seeds: 10 of the 22 minutes of all
  beyond  repeated eigenvalues, spheres, a robot arm
  table1  running times (Table 1): 6 minutes"""


def _reproduce(command) -> None:
    command.add_argument(
        "recipes", metavar="RECIPE", nargs="*", help="all, or some of those below (all)"
    )
    command.formatter_class = argparse.RawDescriptionHelpFormatter
    command.epilog = RECIPES
    command.add_argument(
        "--quick",
        action="store_true",
        help="few samples: shows that it works, in a minute",
    )
    command.add_argument(
        "--seed",
        type=int,
        default=0,
        help="random seed; the same gives the same numbers (0)",
    )
    command.add_argument(
        "--out",
        default="reproduction",
        help="folder that collects what is made (reproduction)",
    )
    command.add_argument(
        "--overwrite",
        action="store_true",
        help="make anew what the folder already holds",
    )


GRAMMAR: dict[str, tuple[str, Callable]] = {
    "demo": (
        "simulate a molecule with two motions, factor its images, average them",
        _demo,
    ),
    "simulate": (
        "write samples of a built-in shape, or particle images of a moving molecule",
        _simulate,
    ),
    "fit": (
        "factor samples, coordinates of particles, images of one view, or volumes",
        _fit,
    ),
    "report": (
        "describe a run in words, and on a page with pictures: RUN/report.html",
        _run,
    ),
    "explore": (
        "look at a run in the browser: move along factors, select samples, save them",
        _explore,
    ),
    "select": (
        "write the samples in ranges of factors, for RELION, cryoSPARC, cryoDRGN",
        _select,
    ),
    "average": (
        "mean images or volumes along a factor, or on the grid of two",
        _average,
    ),
    "export": (
        "files and commands for programs that make volumes along a factor",
        _export,
    ),
    "bench": ("measure accuracy on shapes of known truth", _bench),
    "reproduce": (
        "make every figure and the table of Product Manifold Learning, with numbers",
        _reproduce,
    ),
}
