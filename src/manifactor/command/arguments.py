"""The grammar of the command line: every command with its options and its help."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import NoReturn

from manifactor._support.version import __version__
from manifactor.command import EXIT_BAD_INPUT, terminal
from manifactor.command.completing import COMPLETION_FILES, completion_options
from manifactor.command.fit_options import fit_options
from manifactor.command.options import (
    add,
    add_cluster,
    add_out,
    add_overwrite,
    add_run,
    add_view_width,
    number,
    view,
)
from manifactor.command.simulating import demo_options, simulate_options
from manifactor.command.terminal import options_of
from manifactor.command.viewing import views_options
from manifactor.cryoem.export.programs import BRIDGES
from manifactor.runs.selection import SELECTIONS


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


def parse_arguments(argv: Sequence[str], commands: Mapping[str, Callable]) -> argparse.Namespace:
    """Parse the arguments; `command` of the result is the function to call."""
    return command_parser(commands).parse_args(_with_joined_views(argv))


def command_parser(commands: Mapping[str, Callable]) -> Parser:
    """Return the parser of the program, with a subparser for each command."""
    parser = Parser(
        prog="manifactor",
        description="Factor a data manifold into its independent factors.",
        epilog="Options of a command: manifactor COMMAND --help.",
    )
    version = f"manifactor {__version__}"
    parser.add_argument("--version", action="version", version=version)
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND", title="commands")
    for name, grammar in GRAMMAR.items():
        command = subparsers.add_parser(
            name,
            help=grammar.summary,
            description=fill(grammar.description),
            epilog=grammar.epilog,
            # Keeps the lines of examples and of the list of recipes as they are.
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        grammar.add_options(command)
        # The whole grammar is known to the command that completes it, and the options to messages.
        options = options_of(command)
        command.set_defaults(command=commands[name], parser=parser, options=options)
    return parser


def _with_joined_views(argv: Sequence[str]) -> list[str]:
    """Return the arguments with ``--view X`` as ``--view=X``."""
    # argparse takes a value that starts with a minus, as in --view -180,120, for an option unless
    # it is joined to its flag.
    joined: list[str] = []
    for argument in argv:
        if joined and joined[-1] == "--view":
            joined[-1] = f"--view={argument}"
        else:
            joined.append(argument)
    return joined


def _report_options(command) -> None:
    add_run(command)
    # Off by default: the images are read once more.
    text = "write a movie along each factor beside the page, as GIF and MP4"
    add(command, "--movies", text, action="store_true")
    _shown_options(command)
    text = "page to write, .html (default: RUN/report.html, which is replaced)"
    add_out(command, text, metavar="FILE")
    add_overwrite(command, "replace an existing file of --out")


def _explore_options(command) -> None:
    add_run(command)
    text = "port of the page on this machine (default: 8642, or any free port)"
    add(command, "--port", text, type=int)
    # Off by default: whoever has the page's address could otherwise write files.
    text = "folder in which the page may save selections (default: download only)"
    add(command, "--save-to", text, metavar="FOLDER")
    _shown_options(command)


def _shown_options(command) -> None:
    text = (
        "particles of all views: show them from this direction, in degrees (default: "
        "from the one that shows each factor best)"
    )
    add(command, "--view", text, type=view, metavar="ROT,TILT")
    text = (
        "largest angle to the direction in which images are averaged, in degrees "
        "(default: 10, or up to 30 if there are fewer than 150 images)"
    )
    add(command, "--width", text, type=number(), metavar="DEGREES")
    text = (
        "show a series of .mrc volumes along a factor, such as that which cryodrgn "
        "eval_vol writes for manifactor export"
    )
    add(command, "--volumes", text, metavar="FOLDER")
    text = "factor that the volumes lie along (default: the one on which they spread)"
    add(command, "--volumes-along", text, type=int, metavar="K")


def _select_options(command) -> None:
    add_run(command)
    text = "factor that the next --range is on, counted from 1; may be repeated"
    # Both are repeatable and are paired in order: the first --range belongs to the first --factor.
    repeated = {"action": "append", "default": []}
    add(command, "--factor", text, type=int, metavar="K", **repeated)
    text = (
        "range of the coordinate: two numbers in [0, 1] on an interval, two angles in "
        "degrees on a circle, where 350 10 crosses 0 (default: all samples)"
    )
    bounds = {"nargs": 2, "metavar": ("LOW", "HIGH")}
    add(command, "--range", text, type=number(), **bounds, **repeated)
    text = (
        "range of any other column of numbers: of coordinates.csv, of the particles "
        "(rlnDefocusU, ctf/df1_A) or of the table that was fitted; may be repeated"
    )
    bounds = {"nargs": 3, "metavar": ("NAME", "LOW", "HIGH")}
    add(command, "--column", text, **bounds, **repeated)
    # Samples far from all that were fitted have a coordinate, but confidence 0.
    text = "smallest confidence on every factor, in [0, 1]"
    share = number(low=0, high=1)
    add(command, "--min-confidence", text, type=share, default=0.0, metavar="C")
    text = "write all samples that were not selected instead"
    add(command, "--invert", text, action="store_true")
    endings = ", ".join(SELECTIONS)
    text = f"file to write; its ending chooses the format: {endings}"
    add_out(command, text, required=True, metavar="FILE")
    add_overwrite(command, "replace an existing file")


def _bin_options(command) -> None:
    add_run(command)
    text = "number of bins along a factor"
    add(command, "--bins", text, type=int, default=10, metavar="N")
    add_overwrite(command, "replace an earlier output of this command")


def _average_options(command) -> None:
    _bin_options(command)
    text = "factor, counted from 1; given twice, the grid of two factors"
    given = {"required": True, "metavar": "K"}
    add(command, "--factor", text, type=int, action="append", **given)
    # Without matching, a bin that holds other states of a second motion shows that motion, too.
    text = "weight samples so that all bins have the same distribution of other factors"
    add(command, "--match", text, action="store_true")
    # By how much the halves of a bin differ is what of its average is noise.
    text = "average both half sets of every bin, too, and print how they correlate"
    add(command, "--halves", text, action="store_true")
    text = "average the images seen from this direction only, in degrees"
    add(command, "--view", text, type=view, metavar="ROT,TILT")
    add_view_width(command)
    # Inside the run folder: when `fit --overwrite` replaces the run, averages of the old one go
    # with it.
    text = "folder to write (default: RUN/average-factorK)"
    add_out(command, text, metavar="FOLDER")
    add_cluster(command, "sums of images")


def _export_options(command) -> None:
    _bin_options(command)
    text = "program to export to"
    add(command, "--to", text, required=True, choices=list(BRIDGES))
    text = "factor, counted from 1"
    add(command, "--factor", text, type=int, required=True, metavar="K")
    text = (
        "cryodrgn: folder of the trained model, with config.yaml and weights.N.pkl "
        "(default: the folder of the coordinates)"
    )
    add(command, "--training", text, metavar="FOLDER")
    text = "folder to write (default: RUN/PROGRAM-factorK)"
    add_out(command, text, metavar="FOLDER")
    add_cluster(command, "files of bins")


@dataclass(frozen=True)
class Grammar:
    """Options and help of one command."""

    summary: str  # the line in `manifactor --help`
    description: str  # the paragraph in `manifactor COMMAND --help`
    add_options: Callable[[argparse.ArgumentParser], None]
    epilog: str | None = None


def _examples(*commands: str) -> str:
    return "\n".join(["examples:", *(f"  manifactor {line}" for line in commands)])


# In the order of a first session: make data, fit, look, hand on; then studies.
GRAMMAR: dict[str, Grammar] = {
    "demo": Grammar(
        "simulate a molecule with two motions, factor its images and average them",
        "Simulate images of a molecule with two independent motions, factor them "
        "without any knowledge of the motions, average them along each motion and "
        "write a report. An earlier demo in the same folder is replaced.",
        demo_options,
    ),
    "simulate": Grammar(
        "write samples of a built-in shape, or images of a moving molecule",
        "Write samples of a built-in shape with the truth behind each sample, or "
        "particle images of a moving molecule with a STAR file and the truth.",
        simulate_options,
        _examples(
            "simulate torus --n 3000 --seed 1 --out data.npz",
            "simulate molecule --n 2500 --snr 10 --out data",
            "simulate molecule --views all --n 60000 --out data",
        ),
    ),
    "views": Grammar(
        "show from which directions particles are seen",
        "List the most populated viewing directions of particles with poses, draw a "
        "map of all directions, and print the command that fits the best view.",
        views_options,
        _examples("views particles.star", "views J12_particles.cs --width 8"),
    ),
    "fit": Grammar(
        "factor samples, images of one view, or volumes, and write a run folder",
        "Factor samples, coordinates of particles, particle images of one view, or "
        "volumes. The run folder receives the verdict, every sample's coordinate on "
        "each factor and, for particles, a STAR or cs file with the coordinates. "
        "Everything that is not given is chosen from the data.",
        fit_options,
        _examples(
            "fit data.npz --out run",
            "fit table.csv --drop id,label --standardise --out run",
            "fit z.50.pkl --particles particles.star --out run",
            "fit particles.star --view 180,120 --width 8 --out run",
        ),
    ),
    "report": Grammar(
        "describe a run in words, and write RUN/report.html",
        "Print a description of a run, and write a page with figures to "
        "RUN/report.html, or to another file.",
        _report_options,
    ),
    "explore": Grammar(
        "look at a run in the browser and select samples",
        "Serve a local web page on a run: move along factors, see the average images, "
        "select samples and save them. Ctrl-C stops the server.",
        _explore_options,
    ),
    "select": Grammar(
        "write the samples in a range of a factor, for other programs",
        "Write the samples whose coordinates lie in the given ranges, or all others, "
        "for RELION, cryoSPARC, cryoDRGN or as a table.",
        _select_options,
        _examples(
            "select run --factor 1 --range .2 .4 --out subset.star",
            "select run --factor 2 --range 350 10 --out part.csv",
            "select run --column rlnClassNumber 3 3 --invert --out rest.star",
        ),
    ),
    "average": Grammar(
        "average images or volumes along a factor, or on the grid of two",
        "Average the images or volumes of a run in bins along a factor, or on the grid "
        "of two factors: a stack or volumes, a picture and a movie.",
        _average_options,
        _examples("average run --factor 1 --match"),
    ),
    "export": Grammar(
        "write files and commands for programs that reconstruct volumes",
        "Write the files with which another program computes volumes along a factor, "
        "and the commands to run it.",
        _export_options,
        _examples("export run --to relion --factor 1 --bins 8"),
    ),
    "completion": Grammar(
        "print a script that completes commands and options in a shell",
        "Print a script with which bash, zsh or fish complete commands, options and "
        "their values. Write it to where the shell looks for such scripts.",
        completion_options,
        COMPLETION_FILES,
    ),
}
