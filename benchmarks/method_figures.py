"""Draw the figures of docs/method.md, docs/parameters.md and docs/separable.md.

Those of the first two are of the examples plot_method_*.py and plot_parameters_*.py. All are
without a background, for light and for dark pages. `python benchmarks/method_figures.py separable`
draws those of one page alone; "method" and "parameters" are the others.
"""

import io
import runpy
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from PIL import Image

from manifactor import ManifoldFactorizer, datasets, plots

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "docs" / "figures"

sys.path.append(str(ROOT / "docs" / "_extensions"))
from gallery_groups import clear_figures  # noqa: E402


def draw(example: Path) -> None:
    """Run an example; save its figures as NAME-1.png and so on."""
    runpy.run_path(str(example))
    name = example.stem.removeprefix("plot_").replace("_", "-")
    for number in plt.get_fignums():
        save(plt.figure(number), f"{name}-{number}")
    plt.close("all")


def save(figure, name: str) -> None:
    """Save a figure under docs/figures."""
    path = FIGURES / f"{name}.png"
    pixels = io.BytesIO()
    figure.savefig(pixels, dpi=160)
    image = Image.open(pixels).convert("RGBA")
    image.quantize(255, Image.Quantize.FASTOCTREE, dither=0).save(path, optimize=True)
    print(path.relative_to(ROOT))


def draw_separable() -> None:
    """Draw lines of the coordinates found on three shapes, and how lengths change on two."""
    fits = {}
    for shape, n_samples in {"annulus": 3000, "vase": 3000, "ellipse": 10_000}.items():
        X, _ = datasets.sample(shape, n_samples, random_state=0)
        fits[shape] = ManifoldFactorizer(random_state=0).fit(X)
        print(shape, fits[shape].evidence_)
    with plots.style():
        webs = plots.new_figure(7.6, 2.8)
        for ax, (shape, fit) in zip(webs.subplots(1, 3), fits.items(), strict=True):
            # A vase stands upright: its height is the last column.
            X = fit.diffusion_.points
            plots.web(ax, fit, xy=X[:, [0, -1]])
            ax.set_title(f"{shape}, {len(X):,} samples")
        save(webs, "separable-webs")
        lengths = plots.new_figure(6.4, 2.4)
        for ax, shape in zip(lengths.subplots(1, 2), ("annulus", "vase"), strict=True):
            plots.warp(ax, fits[shape]).set_title(shape)
        save(lengths, "separable-lengths")


if __name__ == "__main__":
    chosen = sys.argv[1:] or ["separable", "method", "parameters"]
    clear_figures(None, "")
    if "separable" in chosen:
        draw_separable()
    for kind in ("method", "parameters"):
        for path in sorted((ROOT / "examples").glob(f"plot_{kind}_*.py")) if kind in chosen else []:
            draw(path)
