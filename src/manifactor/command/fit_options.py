"""The grammar of the command `fit`."""

from manifactor.command.options import (
    Options,
    add,
    add_cluster,
    add_out,
    add_overwrite,
    add_seed,
    add_view_width,
    number,
    number_or,
    view,
    whole_number_or,
)
from manifactor.estimators import ManifoldFactorizer
from manifactor.factoring.settings import METHOD_NAMES, SENSE_NAMES
from manifactor.spectral.neighbors import SEARCHES
from manifactor.spectral.preparation import PREPARATIONS

# Parameters of `ManifoldFactorizer` that the command line offers, in the order of its help. The
# defaults are the class's own.
SETTINGS: dict[str, dict] = {
    "n_factors": {
        "type": whole_number_or("auto"),
        "metavar": "K",
        "help": "number of factors; auto to find it",
    },
    "method": {
        "choices": list(METHOD_NAMES),
        "help": "gradients: eigenfunctions of different factors have orthogonal "
        "gradients; "
        "triplets: Algorithm 1 of Product Manifold Learning; "
        "sum: samples are a sum of one function of each factor; "
        "deflation: deprecated, the same as sum",
    },
    "sense": {
        "choices": ["auto", *SENSE_NAMES],
        "help": "sense in which the data are to be a product. "
        "geometry: the metric is a product; "
        "sum: samples are a sum of one function of each factor; "
        "volume: the metric is a product up to a common stretch; "
        "density: metric and density are products; "
        "auto: geometry, then the others if it is no product",
    },
    "n_functions": {
        "type": whole_number_or("auto"),
        "metavar": "N",
        "help": "number of eigenfunctions, the constant one included",
    },
    # The full kernel is the paper's; its memory grows with the square of the samples.
    "n_neighbors": {
        "type": whole_number_or("auto", "all"),
        "metavar": "N",
        "help": "neighbours of each sample; all for the full kernel",
    },
    "bandwidth": {
        "type": number_or("auto", "local"),
        "metavar": "EPS",
        "help": "eps of the kernel exp(-d^2/eps), in squared units of the samples; "
        "local scales distances by those to the 8th neighbour",
    },
    "density_correction": {
        "type": number(),
        "metavar": "ALPHA",
        "help": "from 0, no correction for the sampling density, to 1, full correction",
    },
    # The paper measures in quarters of an eigenvalue, hence the factor of 4.
    "eigenvalue_tolerance": {
        "type": number_or("auto"),
        "metavar": "TOL",
        "help": "for --method triplets: largest difference between an eigenvalue and "
        "the sum of its parts' (4 times the paper's delta)",
    },
    "similarity_threshold": {
        "type": number_or("auto"),
        "metavar": "COSINE",
        "help": "for --method triplets: smallest absolute cosine between a function "
        "and a product, in [0, 1] (the paper's gamma)",
    },
    # In many noisy dimensions all distances are nearly equal, so auto is the default.
    "preparation": {
        "choices": PREPARATIONS,
        "help": "auto drops principal components that are noise, or that distances "
        "do not depend on; images and volumes have their own preparation",
    },
    "neighbors": {"choices": ["auto", *SEARCHES], "help": "algorithm of the neighbour search"},
    # Solvers and devices are checked by the library, which knows what is installed.
    "solver": {"help": "eigensolver: auto, dense, arpack or chebyshev"},
    "device": {"help": "cpu, or a device that torch knows, such as cuda"},
}


def fit_options(command) -> None:
    """Add the options of `fit`."""
    text = (
        "samples, one a row: .npy .npz .csv .tsv .txt .parquet .pkl .cs, a Zarr store "
        "or a folder of .parquet files; images of one view: .star .cs .mrcs .mrc; or a "
        "folder of .mrc volumes. "
        "Several inputs are fitted as several views"
    )
    add(command, "input", text, metavar="INPUT", nargs="+")
    # The default depends on INPUT, so the help says it and the command sets it.
    text = "run folder (default: the name of INPUT with -run appended)"
    add_out(command, text, metavar="RUN")
    add_overwrite(command, "replace an earlier run with everything in its folder")
    add_seed(command)
    text = (
        "samples to fit; the others are placed on the factors afterwards. "
        "auto: at most 3000 images, or 20000 samples of other kinds; all: every sample"
    )
    count = whole_number_or("auto", "all")
    add(command, "--fit-samples", text, type=count, default="auto", metavar="N")
    text = (
        "csv: one table of coordinates, from a table that is read as a whole; parquet: "
        "a folder of parts, from a table of any size. auto: parquet for more than a "
        "million rows, or a gigabyte"
    )
    formats = {"choices": ["auto", "csv", "parquet"], "default": "auto"}
    add(command, "--coordinates", text, **formats)
    _start_options(command.add_argument_group("cost, and work already done"))
    _table_options(command.add_argument_group("tables"))
    _particle_options(command.add_argument_group("particles"))
    _image_options(command.add_argument_group("images"))
    _setting_options(command.add_argument_group("method"))


def _start_options(start: Options) -> None:
    text = "print the expected memory and time, and exit"
    add(start, "--dry-run", text, action="store_true")
    # A checkpoint has a key of samples and settings; with other options none matches.
    text = (
        "continue an interrupted fit from its checkpoints, or several views with those "
        "that are not finished; repeat all other options"
    )
    add(start, "--resume", text, action="store_true")
    # Another --n-factors or --method needs the same neighbours and the same spectrum.
    text = "take the stages that would be the same from an earlier run"
    add(start, "--reuse", text, metavar="RUN")
    pieces = "fits of several inputs or views, pieces of --all-views, parts of a table"
    add_cluster(start, pieces)


def _table_options(tables: Options) -> None:
    # Numbers count from 0, as in every message.
    text = (
        "columns to use: names, numbers from 0, or ranges such as 3-8, separated by "
        "commas (default: all that hold numbers)"
    )
    add(tables, "--columns", text, metavar="LIST")
    text = "columns to leave out, such as an index or a label; as for --columns"
    add(tables, "--drop", text, metavar="LIST")
    # Off by default: unit variance lifts noisy columns to the level of the signal.
    text = (
        "scale each column to unit variance; of images, each principal component, as in the paper"
    )
    add(tables, "--standardise", text, action="store_true")


def _particle_options(particles: Options) -> None:
    # Coordinates from cryoDRGN and others come without the particles; with both, the factors can be
    # written back into the STAR or cs file.
    text = (
        "particles that the samples in INPUT belong to, .star or .cs; two .cs files "
        "are joined by uid, such as the results of a job and its passthrough file"
    )
    add(particles, "--particles", text, metavar="ORIGINAL")
    text = "cryoDRGN's ind.pkl: the particles of ORIGINAL that INPUT has, in its order"
    add(particles, "--ind", text, metavar="FILE")
    # Data sets are moved and copied without the project around them.
    text = "folder that holds the stacks (default: the project's folder)"
    add(particles, "--datadir", text, metavar="FOLDER")
    text = "pixel size of the images in Angstrom (default: what the files state)"
    add(particles, "--pixel-size", text, type=number(), metavar="A")
    repeated = {"type": int, "action": "append", "default": [], "metavar": "N"}
    text = "use the particles of this class; may be repeated"
    add(particles, "--class", text, dest="classes", **repeated)
    text = "use the particles of this optics group; may be repeated"
    add(particles, "--optics-group", text, dest="optics_groups", **repeated)
    text = (
        "use the particles seen from this direction, in degrees; may be repeated, for several views"
    )
    how = {"type": view, "action": "append", "metavar": "ROT,TILT"}
    add(particles, "--view", text, **how)
    add_view_width(particles)
    text = (
        "use the particles of all views, whose angles must be known: every particle "
        "gets one place on each motion, with its deviation"
    )
    add(particles, "--all-views", text, action="store_true")
    text = (
        "point group of the molecule in all its states, oriented as in RELION, for "
        "--all-views: Cn, Dn, T, O, I1 to I4"
    )
    add(particles, "--symmetry", text, default="C1", metavar="GROUP")


def _image_options(images: Options) -> None:
    # None, not a number, stands for what is measured on the images.
    text = "correct the phases for the contrast transfer function"
    add(images, "--phase-flip", text, action="store_true")
    text = "radius of the circular mask in Angstrom (default: half the box)"
    add(images, "--mask-radius", text, type=number(), metavar="A")
    text = "resolution of the low-pass filter in Angstrom (default: from the images)"
    add(images, "--low-pass", text, type=number(), metavar="A")
    text = (
        "number of principal components, unweighted "
        "(default: all above the noise, weighted by signal to noise)"
    )
    add(images, "--components", text, type=int, metavar="K")


def _setting_options(method: Options) -> None:
    defaults = ManifoldFactorizer().get_params()
    for name, how in SETTINGS.items():
        option = {key: value for key, value in how.items() if key != "help"}
        flag = f"--{name.replace('_', '-')}"
        add(method, flag, how["help"], default=defaults[name], **option)
