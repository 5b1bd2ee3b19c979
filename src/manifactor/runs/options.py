"""The options of a fit: what the command `fit` takes, and what a run folder says of itself.

Cheap to import: the help of the command line is made from it.
"""

from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from manifactor._support.options import (
    argument,
    cluster_option,
    option,
    out_option,
    seed_option,
    typed,
    view,
    width_option,
)

# Options below a heading of the help.
COST, PARTICLES, METHOD = "cost, and work already done", "particles", "method"
_cost, _table = partial(option, group=COST), partial(option, group="tables")
_particle, _image = partial(option, group=PARTICLES), partial(option, group="images")
_method = partial(option, group=METHOD)
# Options that concern the command alone; the others say what is computed.
OF_THE_COMMAND = ("out", "overwrite", "dry_run", "resume", "reuse", "cluster")


@dataclass(frozen=True)
class FitOptions:
    """The options of `fit`, in the order of its help."""

    input: tuple[str, ...] = argument(
        "samples, one a row: .npy .npz .csv .tsv .txt .parquet .pkl .cs, a Zarr store "
        "or a folder of .parquet files; images of one view: .star .cs .mrcs .mrc; or a "
        "folder of .mrc volumes. "
        "Several inputs are fitted as several views",
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

    dry_run: bool = _cost("print the expected memory and time, and exit", False)
    # A checkpoint has a key of samples and settings; with other options none matches.
    resume: bool = _cost(
        "continue an interrupted fit from its checkpoints, or several views with those "
        "that are not finished; repeat all other options",
        False,
    )
    # Another --n-factors or --method needs the same neighbours and the same spectrum.
    reuse: str | None = _cost(
        "take the stages that would be the same from an earlier run", metavar="RUN"
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
    )

    # Coordinates from cryoDRGN and others come without the particles; with both, the factors can be
    # written back into the STAR or cs file.
    particles: str | None = _particle(
        "particles that the samples in INPUT belong to, .star or .cs; two .cs files "
        "are joined by uid, such as the results of a job and its passthrough file",
        metavar="ORIGINAL",
    )
    ind: str | None = _particle(
        "cryoDRGN's ind.pkl: the particles of ORIGINAL that INPUT has, in its order", metavar="FILE"
    )
    # Data sets are moved and copied without the project around them.
    datadir: str | None = _particle(
        "folder that holds the stacks (default: the project's folder)", metavar="FOLDER"
    )
    pixel_size: float | None = _particle(
        "pixel size of the images in Angstrom (default: what the files state)", metavar="A"
    )
    classes: tuple[int, ...] = _particle(
        "use the particles of this class; may be repeated", (), flag="--class", metavar="N"
    )
    optics_groups: tuple[int, ...] = _particle(
        "use the particles of this optics group; may be repeated",
        (),
        flag="--optics-group",
        metavar="N",
    )
    view: tuple[tuple[float, float], ...] = _particle(
        "use the particles seen from this direction, in degrees; may be repeated, for "
        "several views",
        (),
        type=view,
        metavar="ROT,TILT",
    )
    width: float | None = width_option(group=PARTICLES)
    all_views: bool = _particle(
        "use the particles of all views, whose angles must be known: every particle "
        "gets one coordinate on each motion, with its deviation",
        False,
    )
    symmetry: str = _particle(
        "point group of the molecule in all its states, oriented as in RELION, for "
        "--all-views: Cn, Dn, T, O, I1 to I4",
        "C1",
        metavar="GROUP",
    )

    # None, not a number, stands for what is measured on the images.
    phase_flip: bool = _image("correct the phases for the contrast transfer function", False)
    mask_radius: float | None = _image(
        "radius of the circular mask in Angstrom (default: half the box)", metavar="A"
    )
    low_pass: float | None = _image(
        "resolution of the low-pass filter in Angstrom (default: from the images)", metavar="A"
    )
    components: int | None = _image(
        "number of principal components, unweighted "
        "(default: all above the noise, weighted by signal to noise)",
        metavar="K",
    )

    # Parameters of `ManifoldFactorizer`, with its defaults.
    n_factors: int | Literal["auto"] = _method(
        "number of factors; auto to find it", "auto", metavar="K"
    )
    method: Literal["gradients", "sum", "deflation", "triplets"] = _method(
        "gradients: eigenfunctions of different factors have orthogonal gradients; "
        "triplets: Algorithm 1 of Product Manifold Learning; "
        "sum: samples are a sum of one function of each factor; "
        "deflation: deprecated, the same as sum",
        "gradients",
    )
    sense: Literal["auto", "geometry", "sum", "volume", "density"] = _method(
        "sense in which the data are to be a product. "
        "geometry: the metric is a product; "
        "sum: samples are a sum of one function of each factor; "
        "volume: the metric is a product up to a common stretch; "
        "density: metric and density are products; "
        "auto: geometry, then the others if it is not a product",
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
    neighbors: Literal["auto", "kd_tree", "brute", "faiss"] = _method(
        "algorithm of the neighbour search", "auto"
    )
    # Solvers and devices are checked by the library, which knows what is installed.
    solver: str = _method("eigensolver: auto, dense, arpack or chebyshev", "auto")
    device: str = _method("cpu, or a device that torch knows, such as cuda", "cpu")

    def values(self, *names: str) -> dict[str, Any]:
        """Return some options by name."""
        return {name: getattr(self, name) for name in names}

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of `ManifoldFactorizer`."""
        names = [each.name for each in fields(self) if each.metadata["group"] == METHOD]
        return self.values(*names)

    @property
    def anywhere(self) -> "FitOptions":
        """The same options for a process that may work in another folder.

        A link stays a link, since what belongs to it may lie beside it.
        """
        paths = self.values("particles", "ind", "datadir")
        known: dict[str, Any] = {
            name: str(Path(path).absolute()) for name, path in paths.items() if path is not None
        }
        return replace(self, **known)

    def arguments(self, path: Path, view: tuple[float, float] | None = None) -> list[str]:
        """Return arguments of `manifactor` that repeat the fit of an input, from any folder."""
        usual = FitOptions().values(*OF_THE_COMMAND)
        views = () if view is None else (view,)
        return ["fit", str(path.absolute()), *typed(replace(self.anywhere, **usual, view=views))]
