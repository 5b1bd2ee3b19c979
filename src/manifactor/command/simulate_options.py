"""The grammar of the commands that simulate data: `simulate` and `demo`."""

from typing import Any

from manifactor import datasets
from manifactor.command.options import Options, add, add_out, add_overwrite, add_seed, number

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
