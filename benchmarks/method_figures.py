"""Draw the figures of docs/method.md, of the examples plot_method_*.py, and of docs/separable.md.

`python benchmarks/method_figures.py separable` draws the latter alone.
"""

import runpy
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from manifactor import ManifoldFactorizer, datasets, plots

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "docs" / "figures"


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
    path.write_bytes(plots.picture(figure)[".png"])
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
    FIGURES.mkdir(exist_ok=True)
    draw_separable()
    if sys.argv[1:] == ["separable"]:
        sys.exit()
    for path in sorted((ROOT / "examples").glob("plot_method_*.py")):
        draw(path)
