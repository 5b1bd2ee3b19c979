"""Options of a command, each written once: a field of a dataclass. Cheap to import."""

import re
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from functools import partial
from math import inf, isfinite, isinf
from pathlib import Path
from typing import Any, Literal, get_args

# `name` or `name=value`, as the library writes its parameters.
PARAMETER = re.compile(r"`(\w+)(?:=([^`]+))?`")


def option(
    text: str | Callable[[], str],
    default: Any = None,
    *,
    group: str = "",
    flag: str | None = "",
    reads: bool = False,
    parameter: str = "",
    of: Sequence[str] = (),
    **how,
) -> Any:
    """Return a field that is an option: a flag if its default is False, repeated if it is ().

    `how` are arguments of argparse's `add_argument`, below the heading `group` of the help. A file
    that the option `reads` must exist. `parameter` is the library's name of it, if another,
    and `of` are the kinds of inputs that it goes with; all if empty.
    """
    if default is False:
        how["action"] = "store_true"
    elif default == ():
        how["action"] = "append"
    about: dict[str, Any] = {"text": text, "group": group, "flag": flag, "how": how, "reads": reads}
    about |= {"parameter": parameter, "of": of}
    return field(default=default, metadata=about)


# A field without a flag.
argument = partial(option, flag=None)


def seed_option() -> Any:
    """Return the random seed."""
    text = "random seed; the same seed gives the same result"
    return option(text, 0, type=number(int, low=0, high=2**32 - 1))


def out_option(text: str, default: str | None = None, **how) -> Any:
    """Return the file or folder to write."""
    return option(text, default, type=output_name, **how)


def width_option(**how) -> Any:
    """Return the angle around a view within which particles count as seen from it."""
    # None where it is not given: without a view it is refused.
    text = "largest angle to the direction of --view, in degrees (default: 10)"
    return option(text, metavar="DEGREES", **how)


def cluster_option(pieces: str, **how) -> Any:
    """Return who does the pieces of a command's work."""
    text = (
        f"do the {pieces} in processes of this machine, local (one a core, or a GPU) or local:N, "
        "or on the workers of a Dask cluster: the address of a scheduler, such as "
        "tcp://node1:8786, or its scheduler file (.json). All workers must see the same files"
    )
    return option(text, metavar="WHERE", **how)


def flag_of(each: Field) -> str | None:
    """Return the flag of an option; None for an argument without one."""
    flag = each.metadata["flag"]
    return f"--{each.name.replace('_', '-')}" if flag == "" else flag


def flags_of(options: Any) -> dict[str, str]:
    """Return the flags of a command by the parameters of the library that they set."""
    # Where two options set a parameter, the one that was typed, or else the later one.
    known = sorted(fields(options), key=lambda each: getattr(options, each.name) != each.default)
    flags = {each.metadata["parameter"] or each.name: flag_of(each) for each in known}
    return {name: flag for name, flag in flags.items() if flag is not None}


def in_options(text: str, options: Mapping[str, str]) -> str:
    """Return a message that names options where they set a parameter."""

    def named(match: re.Match[str]) -> str:
        parameter, value = match.groups()
        if parameter not in options:
            return match[0]
        typed = "" if value is None else value.strip("'\"")
        return f"{options[parameter]} {typed}".rstrip()

    return PARAMETER.sub(named, text)


def add_options(parser: ArgumentParser, options: type) -> None:
    """Add the fields of a dataclass to a parser; their help ends with their default."""
    groups: dict[str, Any] = {"": parser}
    for each in fields(options):
        title, how = each.metadata["group"], _read_as(each.type) | each.metadata["how"]
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        flag, text = flag_of(each), each.metadata["text"]
        text = text() if callable(text) else text
        if flag is not None:
            # What may be repeated is added to a list.
            how |= {"dest": each.name, "default": [] if each.default == () else each.default}
        if not (each.default is None or each.default is False or each.default == ()):
            text += f" (default: {each.default})"
        # argparse formats help texts with the % operator.
        groups[title].add_argument(flag or each.name, help=text.replace("%", "%%"), **how)


def _read_as(kind: Any) -> dict[str, Any]:
    """Return what an annotation says of a value: a number, one of some words, or any text."""
    parts: list[Any] = [kind]
    for part in parts:  # which grows
        parts += get_args(part)
    words = [part for part in parts if isinstance(part, str)]
    for each in (int, float):
        if each in parts:
            return {"type": number(each, *words)}
    return {"choices": words} if words else {}


def given(options: type, parsed: object) -> Any:
    """Return what was parsed as an object of the dataclass of a command."""
    values = {each.name: getattr(parsed, each.name) for each in fields(options)}
    return options(**{k: tuple(v) if isinstance(v, list) else v for k, v in values.items()})


def typed(options: Any) -> list[str]:
    """Return the options that are not the usual ones as arguments, those of groups first."""
    out: list[str] = []
    for each in sorted(fields(options), key=lambda each: not each.metadata["group"]):
        value, flag = getattr(options, each.name), flag_of(each)
        if flag is None or value == each.default:
            continue
        if value is True:
            out.append(flag)
            continue
        for one in value if each.default == () else [value]:
            # A view may start with a minus, which looks like a flag.
            out += [f"{flag}={_word(one)}"] if isinstance(one, tuple) else [flag, _word(one)]
    return out


def _word(value: Any) -> str:
    """Return a value as it is typed, a number with the fewest digits that give it back."""
    if isinstance(value, tuple):
        return ",".join(map(_word, value))
    if not isinstance(value, float):
        return str(value)
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


# Types of values, for argparse; it puts the name of a type into its error message.


def number(
    kind: type = float,
    *words: str,
    low: float = -inf,
    high: float = inf,
    above: float = -inf,
    infinite: bool = False,
) -> Callable[[str], Any]:
    """Return a type for argparse: a number within limits, which NaN never is, or a word."""

    def parse(text: str) -> Any:
        if text in words:
            return text
        value = kind(text)
        known = kind is int or isfinite(value) or (infinite and isinf(value))
        if known and low <= value <= high and value > above:
            return value
        what = "whole " if kind is int else "" if infinite else "finite "
        raise ArgumentTypeError(f"must be a {what}number{limits}; got {text!r}")

    limits = "" if low == -inf else f" of at least {low:.10g}"
    if isfinite(low) and isfinite(high):
        limits = f" in [{low:.10g}, {high:.10g}]"
    elif isfinite(above):
        limits = f" above {above:g}"
    parse.__name__ = " or ".join(["whole number" if kind is int else "number", *words])
    return parse


def output_name(text: str) -> str:
    """Parse the name of an output; an unset variable of a shell gives an empty one."""
    if not text:
        raise ArgumentTypeError("must be the name of a file or folder; got ''")
    return text


def view(text: str) -> tuple[float, float]:
    """Parse a viewing direction, RELION's angles rot and tilt in degrees."""
    try:
        rot, tilt = (float(part) for part in text.split(","))
    except ValueError:
        raise ArgumentTypeError(
            f"a view must be two angles in degrees, ROT,TILT; got {text!r}"
        ) from None
    if not (isfinite(rot) and -180 <= tilt <= 180):
        raise ArgumentTypeError(
            f"the tilt of a view must lie between -180 and 180 degrees; got {text!r}"
        )
    return rot, tilt


# The options of `fit`. Kinds of inputs, and what to do about an option that does not go with one.
TABLE, PARTS = "coordinates", "a table that is read in parts"
IMAGES, STACK, VOLUMES = "a file of particles", "a stack of images", "a folder of volumes"
ALL_VIEWS = "particles of all views"
INSTEAD = {
    TABLE: "Name their particles with --particles, and choose some of them afterwards: manifactor "
    "select --column rlnClassNumber 3 3.",
    PARTS: "Add --coordinates csv, or leave it out.",
    STACK: "Give its STAR or .cs file instead, or leave it out.",
}
OF_FILES, OF_STACKS = (IMAGES, ALL_VIEWS), (IMAGES, STACK)
# Options below a heading of the help.
COST, PARTICLES, METHOD = "cost, and work already done", "particles", "method"
_cost, _table = partial(option, group=COST), partial(option, group="tables", of=(TABLE, PARTS))
_particle, _image = partial(option, group=PARTICLES), partial(option, group="images")
_method = partial(option, group=METHOD)
_moves = partial(
    option, group="tables in time: factors that move independently of each other", of=(TABLE,)
)
# Options that tell the moves of the rows of a table.
OF_MOVES = ("time", "trajectory", "trajectories", "bursts", "pairs", "lag")
# Options that turn images into samples, and those that say which images are used.
OF_IMAGES = ("phase_flip", "mask_radius", "low_pass", "components", "standardise")
OF_PARTICLES = ("datadir", "pixel_size", "classes", "optics_groups")
# Files that are read beside the input.
BESIDE = ("particles", "ind", "bursts", "pairs")


@dataclass(frozen=True)
class FitOptions:
    """The options of `fit`, in the order of its help."""

    input: tuple[str, ...] = argument(
        "samples, one a row: .npy .npz .csv .tsv .txt .parquet .pkl .cs, a Zarr store or a folder "
        "of .parquet files; images: .npy, a folder of pictures (.png .jpg .tif), a stack of pages, "
        "a film; particles of one view: .star .cs .mrcs .mrc; or a folder of .mrc volumes. "
        "Several inputs are fitted as several views, or with --trajectories together",
        metavar="INPUT",
        nargs="+",
        reads=True,
    )
    # The default depends on INPUT: the command sets it.
    out: str | None = out_option(
        "run folder (default: the name of INPUT with -run appended)", metavar="RUN"
    )
    overwrite: bool = option("replace an earlier run with everything in its folder", False)
    seed: int = seed_option()
    fit_samples: int | Literal["auto", "all"] = option(
        "samples to fit; the others are placed on the factors afterwards. "
        "auto: at most 3000 images, or 20000 samples of other kinds; all: every sample",
        "auto",
        metavar="N",
    )
    coordinates: Literal["auto", "csv", "parquet"] = option(
        "csv: one table of coordinates, from a table that is read as a whole; parquet: "
        "a folder of parts, from a table of any size. auto: parquet for more than a "
        "million rows, or a gigabyte",
        "auto",
    )

    candidate: int = option(
        "return number K of all that was proposed, which run.json, the report and an unsure result "
        "list; 0 is the likeliest",
        0,
        type=number(int, low=0),
        metavar="K",
        parameter="k",
        of=(TABLE, PARTS, IMAGES, STACK, VOLUMES),
    )

    dry_run: bool = _cost("print the expected memory, and exit", False)
    resume: bool = _cost(
        "continue an interrupted fit of --all-views, of a large table in parts, or of several "
        "views, with what is not finished; repeat all other options",
        False,
    )
    cluster: str | None = cluster_option(
        "fits of several inputs or views, pieces of --all-views, parts of a table", group=COST
    )

    # Numbers count from 0, as in every message.
    columns: str | None = _table(
        "columns to use: names, numbers from 0, or ranges such as 3-8, separated by "
        "commas (default: all that hold numbers)",
        metavar="LIST",
    )
    drop: str | None = _table(
        "columns to leave out, such as an index or a label; as for --columns", metavar="LIST"
    )
    # Off by default: unit variance lifts noisy columns to the level of the signal.
    standardise: bool = _table(
        "scale each column to unit variance; of images, each principal component, as in the paper",
        False,
        of=(TABLE, PARTS, *OF_STACKS),
    )

    time: str | None = _moves(
        "column that holds the time of each row, in any order; it is not fitted",
        metavar="COLUMN",
        parameter="times",
    )
    trajectories: bool = _moves(
        "each INPUT is one trajectory, with its rows in the order of time or with --time; all are "
        "fitted together",
        False,
    )
    trajectory: str | None = _moves(
        "column that tells which trajectory each row belongs to, by numbers or names; it is not "
        "fitted. Without --time, rows of a trajectory are in the order of time",
        metavar="COLUMN",
        parameter="trajectories",
    )
    bursts: str | None = _moves(
        "samples that are a short move away from each row, .npy or .npz: an array of shape (rows, "
        "repeats, columns)",
        metavar="FILE",
    )
    pairs: str | None = _moves(
        "what followed each row of INPUT, a time --lag later, which may be long: a table with as "
        "many rows and the same columns",
        metavar="FILE",
    )
    lag: float | None = _moves(
        "time between --pairs (default: 1); of rows in time, those so far apart are pairs, or "
        "with 0 the metric of their steps (default: whichever tells more)",
        type=number(low=0),
        metavar="TAU",
    )

    # Coordinates from cryoDRGN and others come without the particles; with both, the factors can be
    # written back into the STAR or cs file.
    particles: str | None = _particle(
        "particles that the samples in INPUT belong to, .star or .cs; two .cs files "
        "are joined by uid, such as the results of a job and its passthrough file",
        metavar="ORIGINAL",
        of=(TABLE,),
    )
    ind: str | None = _particle(
        "cryoDRGN's ind.pkl: the particles of ORIGINAL that INPUT has, in its order",
        metavar="FILE",
        of=(TABLE,),
    )
    # Data sets are moved and copied without the project around them.
    datadir: str | None = _particle(
        "folder that holds the stacks (default: the project's folder)",
        metavar="FOLDER",
        of=OF_FILES,
    )
    pixel_size: float | None = _particle(
        "pixel size of the images in Angstrom (default: what the files state)",
        metavar="A",
        of=(*OF_STACKS, ALL_VIEWS),
    )
    classes: tuple[int, ...] = _particle(
        "use the particles of this class; may be repeated",
        (),
        flag="--class",
        metavar="N",
        of=OF_FILES,
    )
    optics_groups: tuple[int, ...] = _particle(
        "use the particles of this optics group; may be repeated",
        (),
        flag="--optics-group",
        metavar="N",
        of=OF_FILES,
    )
    view: tuple[tuple[float, float], ...] = _particle(
        "use the particles seen from this direction, in degrees; may be repeated, for "
        "several views",
        (),
        of=(IMAGES,),
        type=view,
        metavar="ROT,TILT",
    )
    width: float | None = width_option(group=PARTICLES)
    all_views: bool = _particle(
        "use the particles of all views, whose angles must be known: every particle "
        "gets one coordinate on each motion, with its deviation",
        False,
    )
    cluster_of: str | None = _particle(
        "use the particles of one cluster of an earlier run of --all-views, that of --which",
        metavar="RUN",
    )
    which: int = _particle("cluster of --cluster-of, the largest first", 1, metavar="N")
    symmetry: str = _particle(
        "point group of the molecule in all its states, oriented as in RELION, for "
        "--all-views: Cn, Dn, T, O, I1 to I4",
        "C1",
        metavar="GROUP",
    )

    # None, not a number, stands for what is measured on the images.
    phase_flip: bool = _image(
        "correct the phases for the contrast transfer function", False, of=OF_STACKS
    )
    mask_radius: float | None = _image(
        "radius of the circular mask in Angstrom (default: half the box)",
        metavar="A",
        of=(*OF_STACKS, ALL_VIEWS),
    )
    low_pass: float | None = _image(
        "resolution of the low-pass filter in Angstrom (default: from the images)",
        metavar="A",
        of=(*OF_STACKS, ALL_VIEWS),
    )
    components: int | None = _image(
        "number of principal components, unweighted "
        "(default: all above the noise, weighted by signal to noise)",
        metavar="K",
        of=OF_STACKS,
    )

    # Parameters of `ManifoldFactorizer`, with its defaults.
    n_factors: int | Literal["auto"] = _method(
        "number of factors; auto to find it", "auto", metavar="K"
    )
    method: Literal["gradients", "sum", "deflation", "triplets"] = _method(
        "gradients: eigenfunctions of different factors have orthogonal gradients; triplets: "
        "Algorithm 1 of Product Manifold Learning; sum: samples are a sum of one function of each "
        "factor; deflation: deprecated, the same as sum",
        "gradients",
    )
    sense: Literal["auto", "geometry", "sum", "volume", "density", "separable", "ica"] = _method(
        "sense in which the data are to be a product. geometry: the metric is a product; sum: "
        "samples are a sum of one function of each factor; volume: the metric is a product up to a "
        "common stretch; density: metric and density are products; separable: not a product, but "
        "eigenfunctions are; ica: factors are independent components; auto: geometry, then the "
        "others if it is not a product",
        "auto",
    )
    n_functions: int | Literal["auto"] = _method(
        "number of eigenfunctions, the constant one included", "auto", metavar="N"
    )
    # The full kernel is the paper's; its memory grows with the square of the samples.
    n_neighbors: int | Literal["auto", "all"] = _method(
        "neighbours of each sample; all for the full kernel", "auto", metavar="N"
    )
    bandwidth: float | Literal["auto", "local"] = _method(
        "eps of the kernel exp(-d^2/eps), in squared units of the samples; "
        "local scales distances by those to the 8th neighbour",
        "auto",
        metavar="EPS",
    )
    density_correction: float = _method(
        "from 0, no correction for the sampling density, to 1, full correction",
        1.0,
        metavar="ALPHA",
    )
    # The paper measures in quarters of an eigenvalue, hence the factor of 4.
    eigenvalue_tolerance: float | Literal["auto"] = _method(
        "for --method triplets: largest difference between an eigenvalue and "
        "the sum of its parts' (4 times the paper's delta)",
        "auto",
        metavar="TOL",
    )
    similarity_threshold: float | Literal["auto"] = _method(
        "for --method triplets: smallest absolute cosine between a function "
        "and a product, in [0, 1] (the paper's gamma)",
        "auto",
        metavar="COSINE",
    )
    # In many noisy dimensions all distances are nearly equal, so auto is the default.
    preparation: Literal["auto", "none"] = _method(
        "auto drops principal components that are noise, or that distances "
        "do not depend on; images and volumes have their own preparation",
        "auto",
    )
    transformation: Literal["auto", "none", "sqrt", "log", "ranks"] = _method(
        "function of every column, taken first: square root, logarithm or ranks. auto tries the "
        "square root of ten or more columns without negative values that are not a product",
        "auto",
        flag="--transform",
    )
    neighbors: Literal["auto", "kd_tree", "brute", "faiss"] = _method(
        "algorithm of the neighbour search", "auto"
    )
    # Solvers and devices are checked by the library, which knows what is installed.
    solver: str = _method("eigensolver: auto, dense, arpack or chebyshev", "auto")
    device: str = _method("cpu, or a device that torch knows, such as cuda", "cpu")

    def values(self, *names: str) -> dict[str, Any]:
        """Return some options by name."""
        return {name: getattr(self, name) for name in names}

    def require(self, path: Path, kind: str, *but: str) -> None:
        """Refuse options that do not go with a kind of input: nobody sees that they do nothing."""
        for each in fields(self):
            fitting = kind in (each.metadata["of"] or (kind,)) or each.name in but
            if not fitting and getattr(self, each.name) != each.default:
                raise ValueError(
                    f"{flag_of(each)} does not go with {kind}; got {path}. "
                    f"{INSTEAD.get(kind, 'Leave it out.')}"
                )

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of `ManifoldFactorizer`."""
        return self.values(*(f.name for f in fields(self) if f.metadata["group"] == METHOD))

    @property
    def anywhere(self) -> "FitOptions":
        """The same options for a process that may work in another folder."""
        paths = self.values(*BESIDE, "datadir", "cluster_of").items()
        # A link stays a link, since what belongs to it may lie beside it.
        known: Any = {name: str(Path(path).absolute()) for name, path in paths if path is not None}
        return replace(self, **known)

    def arguments(
        self, paths: Sequence[Path], view: tuple[float, float] | None = None
    ) -> list[str]:
        """Return arguments of `manifactor` that repeat the fit of an input, from any folder."""
        # Options that concern the command alone; the others say what is computed.
        of_command = ("out", "overwrite", "dry_run", "resume", "cluster")
        usual = FitOptions().values(*of_command)
        views = () if view is None else (view,)
        inputs = [str(path.absolute()) for path in paths]
        return ["fit", *inputs, *typed(replace(self.anywhere, **usual, view=views))]
