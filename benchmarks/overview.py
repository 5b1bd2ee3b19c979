"""Draw the picture of the README from a run of `manifactor demo`.

manifactor demo
python benchmarks/overview.py demo-run docs/overview.png
"""

import argparse
from pathlib import Path

import mrcfile
import numpy as np

from manifactor import load, plots
from manifactor.cryoem.averages import average
from manifactor.runs.run import open_run

# Mean images in a strip: as many as are still clear where the picture is small.
N_BINS = 5
# Images of the data, in rows and columns.
MONTAGE = (3, 3)
# Parts of the height and width of an image that hold the molecule.
SHOWN = (slice(0.0, 0.9), slice(0.2, 0.8))


def cropped(images: np.ndarray) -> np.ndarray:
    """Cut off the empty borders of images."""
    rows, columns = (
        slice(int(part.start * n), int(part.stop * n))
        for part, n in zip(SHOWN, images.shape[1:], strict=True)
    )
    return images[:, rows, columns]


def montage(images: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Join images into one, in rows and columns."""
    rows, columns = shape
    return np.vstack([np.hstack(list(images[r * columns :][:columns])) for r in range(rows)])


def draw_samples(ax, images: np.ndarray) -> None:
    shown = cropped(images)
    ax.imshow(montage(shown, MONTAGE), cmap="gray", interpolation="antialiased")
    for edge in range(1, MONTAGE[0]):
        ax.axhline(edge * shown.shape[1] - 0.5, color="white", linewidth=1)
    for edge in range(1, MONTAGE[1]):
        ax.axvline(edge * shown.shape[2] - 0.5, color="white", linewidth=1)
    ax.set(xticks=[], yticks=[], title="Samples: noisy images")
    ax.spines[:].set_visible(False)


def draw_places(ax, fit) -> None:
    """Draw where the samples lie on the circle and the interval."""
    circle, interval = order(fit)
    angle = np.degrees(fit.factors_[circle].coordinate)
    height = fit.factors_[interval].coordinate
    ax.scatter(angle, height, s=4, c=angle, cmap=plots.circle_map(), linewidths=0)
    ax.set(xticks=[0, 180, 360], yticks=[0, 1], xlim=(0, 360), ylim=(0, 1))
    ax.set(xlabel="a circle (degrees)", ylabel="an interval")
    ax.set_title(f'Verdict "{fit.verdict_}": {fit.n_factors_} factors')


def order(fit) -> tuple[int, int]:
    """Return the number of the circle and that of the interval, from 0."""
    found = [factor.topology for factor in fit.factors_]
    if sorted(found) != ["circle", "interval"]:
        raise SystemExit(f"the demo has a circle and an interval; got {found}.")
    return found.index("circle"), found.index("interval")


def draw(folder: Path):
    """Return the figure: samples, places on the factors, mean images along each."""
    fit, run = load(folder), open_run(folder)
    stack = folder.with_name(f"{folder.name}-data") / "particles.mrcs"
    images = mrcfile.read(stack)[: MONTAGE[0] * MONTAGE[1]]
    figure = plots.new_figure(9.4, 3.1)
    left, middle, right = figure.subfigures(1, 3, width_ratios=[2.2, 2.9, 4.3])
    draw_samples(left.subplots(), images)
    draw_places(middle.subplots(), fit)
    titles = ("Along the circle: the top turns", "Along the interval: the lower part stretches")
    for ax, factor, title in zip(right.subplots(2, 1), order(fit), titles, strict=True):
        means = average(run, [factor + 1], n_bins=N_BINS, matched=True).means
        plots.averages(ax, cropped(means))
        ax.set_title(title)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", type=Path, help="folder that `manifactor demo` wrote")
    parser.add_argument("picture", type=Path)
    arguments = parser.parse_args()
    with plots.style():
        draw(arguments.run).savefig(arguments.picture, dpi=140, facecolor="white")


if __name__ == "__main__":
    main()
