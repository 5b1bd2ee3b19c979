"""Groups of the gallery, the thumbnail of each example, and figures for light and dark pages.

sphinx-gallery makes a group of each folder. The examples stay in one folder, where links to them
are short: their entries are moved under the titles of their groups as the page is read.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from manifactor import plots


@dataclass(frozen=True)
class Example:
    """An example and its thumbnail: a figure's number, and a part of the figure.

    The part is left, top, right and bottom in parts of the figure's width and height.
    """

    name: str
    figure: int = 1
    part: tuple[float, float, float, float] = (0, 0, 1, 1)


# In the order of the page; examples that are in no group follow at its end.
GROUPS: dict[str, tuple[Example, ...]] = {
    "First steps": (
        Example("torus", 1, (0, 0.1, 0.345, 1)),
        Example("number_of_factors", 1, (0.68, 0.05, 1, 0.5)),
        Example("new_samples", 2, (0.055, 0.2, 0.265, 0.8)),
        Example("movie_along_a_factor", 1, (0.13, 0.34, 0.56, 1)),
        Example("columns", 1, (0, 0, 0.36, 1)),
        Example("pipeline", 1, (0.5, 0, 1, 1)),
        Example("million"),
    ),
    "What is a product, and what is not": (
        Example("no_product", 1, (0, 0.1, 0.33, 1)),
        Example("separable", 1, (0, 0, 0.43, 1)),
        Example("soft_densities", 1, (0.345, 0, 0.68, 0.52)),
        Example("colour_solid", 1, (0, 0, 0.5, 1)),
    ),
    "Images, films and spectra": (
        Example("weak_factors", 3, (0.06, 0, 0.5, 1)),
        Example("robot_camera", 3, (0.04, 0, 0.4, 1)),
        Example("spectra", 3, (0, 0, 0.51, 1)),
    ),
    "Recordings in time": (
        Example("pendulums_in_time", 1, (0, 0, 0.6, 1)),
        Example("autoencoder_in_time", 2, (0, 0, 0.51, 1)),
        Example("switches"),
    ),
    "Neurons": (
        Example("head_direction", 2, (0, 0.1, 0.31, 1)),
        Example("grid_cells", 1, (0.08, 0.1, 0.36, 0.84)),
        Example("grid_cell_lattice", 1, (0.34, 0.2, 0.66, 0.95)),
    ),
    "Molecules": (
        Example("cryoem_demo", 2, (0, 0.1, 0.4, 1)),
        Example("cryoem_all_views", 2, (0.115, 0, 0.645, 0.575)),
        Example("cryodrgn_latents", 1, (0.37, 0.14, 0.63, 0.9)),
        Example("molecular_dynamics", 1, (0, 0, 0.52, 1)),
    ),
    "How the method works": (
        Example("method_functions", 1, (0.25, 0.3, 0.76, 1)),
        Example("method_triplets", 1, (0, 0.25, 0.5, 1)),
        Example("method_gradients", 1, (0.5, 0.1, 0.76, 1)),
    ),
    "One parameter each": (
        Example("parameters_scale", 1, (0, 0.1, 0.5, 1)),
        Example("parameters_sense"),
        Example("parameters_n_factors", 1, (0, 0, 0.555, 1)),
        Example("parameters_preparation", 1, (0.52, 0, 1, 1)),
        Example("parameters_samples", 1, (0, 0, 0.5, 1)),
        Example("parameters_neighbors", 1),
        Example("parameters_functions", 1, (0.675, 0, 1, 1)),
        Example("parameters_bandwidth", 1, (0, 0, 0.5, 1)),
        Example("parameters_density_correction", 1, (0, 0.1, 0.66, 1)),
    ),
}
OTHERS = "More examples"
ORDER = tuple(f"plot_{example.name}.py" for group in GROUPS.values() for example in group)
# Pixels, twice those of the page.
THUMBNAIL = (440, 300)

# Of sphinx-gallery: the element around all entries, and one entry.
OPENING, CLOSING = '    <div class="sphx-glr-thumbnails">', ".. thumbnail-parent-div-close"
ENTRY = re.compile(
    r'^\.\. raw:: html\n\n    <div class="sphx-glr-thumbcontainer".*?:doc:`/gallery/plot_(\w+)`'
    r".*?\n    </div>\n",
    re.M | re.S,
)


@dataclass(frozen=True)
class GalleryOrder:
    """Sort key of an example's file name, as sphinx-gallery wants it.

    Attributes
    ----------
    src_dir : str
        Folder of the examples; not used.

    Examples
    --------
    >>> names = ["plot_a.py", "plot_million.py", "plot_torus.py"]
    >>> sorted(names, key=GalleryOrder(""))
    ['plot_torus.py', 'plot_million.py', 'plot_a.py']
    """

    src_dir: str

    def __call__(self, filename: str) -> tuple[int, str]:
        """Return the place of an example in the order, then its name."""
        known = filename in ORDER
        return (ORDER.index(filename) if known else len(ORDER), filename)


def in_groups(text: str) -> str:
    """Return the page of the gallery with a title above the entries of each group."""
    entries = {found[1]: found[0] for found in ENTRY.finditer(text)}
    if not entries:
        return text
    before, after = text[: text.index(OPENING)], text[text.index(CLOSING) :]
    # The directive that held the opening tag, and its comment.
    before = before[: before.rindex(".. raw:: html")].rstrip()
    before = before.removesuffix(".. thumbnail-parent-div-open").rstrip()
    titled = {title: [example.name for example in group] for title, group in GROUPS.items()}
    grouped = {name for names in titled.values() for name in names}
    titled[OTHERS] = [name for name in entries if name not in grouped]
    parts = [before]
    for title, names in titled.items():
        shown = [entries[name] for name in names if name in entries]
        if shown:
            opening = f".. raw:: html\n\n{OPENING}"
            closing = ".. raw:: html\n\n    </div>"
            parts += [f"{title}\n{'-' * len(title)}", opening, *shown, closing]
    # What follows the last closing tag: the hidden contents.
    return "\n\n".join([*parts, after[after.index("</div>") + len("</div>") :]])


def read_page(app, docname: str, source: list[str]) -> None:
    """Group the entries of the gallery."""
    if docname == "gallery/index":
        source[0] = in_groups(source[0])


def cut_thumbnails(app) -> None:
    """Make the thumbnail of each example from its part of its figure."""
    images = Path(app.srcdir) / "gallery" / "images"
    for example in (each for group in GROUPS.values() for each in group):
        figure = images / f"sphx_glr_plot_{example.name}_{example.figure:03}_2_00x.png"
        if figure.exists():  # none is drawn with DOCS_WITHOUT_FIGURES
            thumbnail = images / "thumb" / f"sphx_glr_plot_{example.name}_thumb.png"
            cut(Image.open(figure).convert("RGBA"), example.part).save(thumbnail)


def cut(figure: Image.Image, part: tuple[float, float, float, float]) -> Image.Image:
    """Return a part of a figure, as large as fits into a thumbnail."""
    width, height = figure.size
    left, top, right, bottom = part
    shown = figure.crop((left * width, top * height, right * width, bottom * height))
    scale = min(most / size for most, size in zip(THUMBNAIL, shown.size, strict=True))
    shown = shown.resize([round(scale * size) for size in shown.size], Image.Resampling.LANCZOS)
    thumbnail = Image.new("RGBA", THUMBNAIL)
    corner = [(most - size) // 2 for most, size in zip(THUMBNAIL, shown.size, strict=True)]
    thumbnail.paste(shown, tuple(corner))
    return thumbnail


def clear_figures(gallery_conf, filename: str) -> None:
    """Have an example draw for light and for dark pages, before it runs."""
    import matplotlib

    # Functions of `plots` that have a style of their own start from this one.
    clear = dict.fromkeys(("figure.facecolor", "axes.facecolor", "legend.facecolor"), "none")
    inks = {name: value for name, value in plots.CLEAR.items() if "color" in name}
    plots.STYLE.update(clear | inks | {"savefig.transparent": True})
    plots.INK = plots.CLEAR["text.color"]
    matplotlib.rcParams.update(clear | inks | {"savefig.transparent": True})


def setup(app) -> dict:
    """Connect with Sphinx, after sphinx-gallery has drawn all figures."""
    app.connect("builder-inited", cut_thumbnails, priority=900)
    app.connect("source-read", read_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
