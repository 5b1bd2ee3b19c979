"""The grammar of the command line: every command with its options and its help.

Cheap to import: what a command needs is imported when it runs.
"""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import cache, partial
from textwrap import fill
from typing import Any, Literal, NoReturn

from manifactor._support import __version__
from manifactor._support.plugins import loaded
from manifactor.command import EXIT_BAD_INPUT, terminal
from manifactor.runs.options import (
    FitOptions,
    add_options,
    argument,
    given,
    number,
    option,
    out_option,
    view,
)

run_argument = partial(argument, "run folder written by manifactor fit", metavar="RUN", reads=True)
overwrite_option = partial(option, default=False)


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
class CompletionOptions:
    """The options of `completion`."""

    shell: Literal["bash", "zsh", "fish"] = argument(
        "shell to write the script for: bash, zsh, fish", metavar="SHELL"
    )


@dataclass(frozen=True)
class Command:
    """Options and help of one command."""

    order: float  # place in the help: that of a first session; make data, fit, look, hand on
    function: str  # what does the work, "module:name"; imported when the command runs
    options: type
    summary: str  # the line in `manifactor --help`
    description: str  # the paragraph in `manifactor COMMAND --help`
    epilog: str | None = None


def examples(*lines: str) -> str:
    """Return the end of a command's help."""
    return "\n".join(["examples:", *(f"  manifactor {line}" for line in lines)])


COMMANDS: dict[str, Command] = {
    "fit": Command(
        4,
        "manifactor.command.fitting:fit",
        FitOptions,
        "factor samples, images of one view, or volumes, and write a run folder",
        "Factor samples, coordinates of particles, particle images of one view, or "
        "volumes. The run folder receives the verdict, every sample's coordinate on "
        "each factor and, for particles, a STAR or cs file with the coordinates. "
        "Everything that is not given is chosen from the data.",
        examples(
            "fit data.npz --out run",
            "fit table.csv --drop id,label --standardise --out run",
            "fit table.csv --time t --trajectory run --out run",
            "fit z.50.pkl --particles particles.star --out run",
            "fit particles.star --view 180,120 --width 8 --out run",
        ),
    ),
    "report": Command(
        5,
        "manifactor.command.runs:report",
        ReportOptions,
        "describe a run in words, and write RUN/report.html",
        "Print a description of a run, and write a page with figures to "
        "RUN/report.html, or to another file.",
    ),
    "explore": Command(
        6,
        "manifactor.command.runs:explore",
        ExploreOptions,
        "look at a run in the browser and select samples",
        "Serve a local web page on a run: move along factors, see the average images, "
        "select samples and save them. Ctrl-C stops the server.",
    ),
    "select": Command(
        7,
        "manifactor.command.runs:select",
        SelectOptions,
        "write the samples in a range of a factor, for other programs",
        "Write the samples whose coordinates lie in the given ranges, or all others, "
        "for RELION, cryoSPARC, cryoDRGN or as a table.",
        examples(
            "select run --factor 1 --range .2 .4 --out subset.star",
            "select run --factor 2 --range 350 10 --out part.csv",
            "select run --column rlnClassNumber 3 3 --invert --out rest.star",
        ),
    ),
    "landscape": Command(
        9,
        "manifactor.command.runs:landscape",
        LandscapeOptions,
        "write the free energy along a factor, or on the grid of two",
        "Write the density of samples along a factor, or on the grid of two, as a free energy in "
        "kT with its uncertainty, corrected for deviations: a table and a picture.",
        examples("landscape run --factor 1", "landscape run --factor 1 --factor 2"),
    ),
    "compare": Command(
        11,
        "manifactor.command.runs:compare",
        CompareOptions,
        "show which factors two runs or more share",
        "Print which factors runs of the same samples share, or runs of different samples in the "
        "same columns, such as half sets; with what R^2, and which are private.",
        examples("compare run-a run-b", "compare run-a run-b --out b-as-a.csv"),
    ),
    "completion": Command(
        12,
        "manifactor.command.terminal:completion",
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


@cache
def commands() -> dict[str, Command]:
    """Return all commands by name, in their order."""
    known = COMMANDS | loaded("commands")
    return dict(sorted(known.items(), key=lambda item: item[1].order))


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


def command_parser(wanted: Sequence[str] | None = None) -> Parser:
    """Return the parser of the program; the wanted commands, or all, have their options."""
    parser = Parser(
        prog="manifactor",
        description="Factor a data manifold into its independent factors.",
        epilog="Options of a command: manifactor COMMAND --help.",
    )
    parser.add_argument("--version", action="version", version=f"manifactor {__version__}")
    subparsers = parser.add_subparsers(
        required=True, metavar="COMMAND", title="commands", dest="command"
    )
    for name, command in commands().items():
        subparser = subparsers.add_parser(
            name,
            help=command.summary,
            description=fill(command.description),
            epilog=command.epilog,
            # Keeps the lines of examples and of the list of files as they are.
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if wanted is None or name in wanted:
            add_options(subparser, command.options)
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
    if not name.startswith("-") and name not in commands():
        near = get_close_matches(name, commands(), n=1)
        advice = f"; did you mean {near[0]}?" if near else f". Choose from {', '.join(commands())}."
        terminal.error(f"there is no command {name!r}{advice} See manifactor --help.")
        raise SystemExit(EXIT_BAD_INPUT)
    # argparse takes a value that starts with a minus, as in --view -180,120, for an option unless
    # it is joined to its flag.
    joined = "\0".join(argv).replace("\0--view\0", "\0--view=")
    parsed = parser.parse_args(joined.split("\0"))
    return parsed.command, given(commands()[parsed.command].options, parsed)


def require_inputs(options: Any) -> None:
    """Refuse files and folders to read that do not exist, before anything is imported."""
    for each in fields(options):
        value = getattr(options, each.name) if each.metadata["reads"] else ()
        for path in [value] if isinstance(value, str) else value:
            if not os.path.lexists(path):
                raise ValueError(f"{path} does not exist. Check its name.")
