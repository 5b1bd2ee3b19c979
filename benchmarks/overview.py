"""Draw the pictures of the README from a run of `manifactor demo`.

manifactor demo
python benchmarks/overview.py demo-run docs

Writes motions.webp, mean images that move along each factor, and samples.png, the data and where
they lie on the factors. Neither has a background: they are shown on light and on dark pages.
"""

import argparse
import io
from pathlib import Path

import mrcfile
import numpy as np
from PIL import Image

from manifactor import load, plots
from manifactor.cryoem.averages import average
from manifactor.runs.run import Run, open_run

# Frames of a turn, of some hundred images each, and of a way along the interval and back.
N_FRAMES = 24
N_PLACES = N_FRAMES // 2 + 1
MILLISECONDS = 110
# Inches of each picture, which has half of a wide page and all of a narrow one.
SIZE = (4.2, 3.3)
RESOLUTION = 180
# Images of the data, in rows and columns.
MONTAGE = (3, 3)
# Parts of the height and width of an image that hold the molecule.
SHOWN = (slice(0.0, 0.9), slice(0.14, 0.86))


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
    bare(ax).set_title("Given: 2,500 noisy images")


def draw_places(ax, fit) -> None:
    """Draw where the samples lie on the circle and the interval."""
    circle, interval = order(fit)
    angle = np.degrees(fit.factors_[circle].coordinate)
    height = fit.factors_[interval].coordinate
    ax.scatter(angle, height, s=3, c=angle, cmap=plots.circle_map(), linewidths=0)
    ax.set(xticks=[0, 180, 360], yticks=[0, 1], xlim=(0, 360), ylim=(0, 1))
    ax.set(xlabel="a circle (degrees)", ylabel="an interval")
    ax.set_title(f"Found: {fit.n_factors_} factors")


def bare(ax):
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return ax


def order(fit) -> tuple[int, int]:
    """Return the number of the circle and that of the interval, from 0."""
    found = [factor.topology for factor in fit.factors_]
    if sorted(found) != ["circle", "interval"]:
        raise SystemExit(f"the demo has a circle and an interval; got {found}.")
    return found.index("circle"), found.index("interval")


def samples_picture(folder: Path, fit) -> bytes:
    """Return the picture of the data and of their places on the factors, as a .png file."""
    stack = folder.with_name(f"{folder.name}-data") / "particles.mrcs"
    images = mrcfile.read(stack)[: MONTAGE[0] * MONTAGE[1]]
    figure = plots.new_figure(*SIZE)
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.1])
    draw_samples(left, images)
    draw_places(right, fit)
    return small(pixels(figure), "PNG", optimize=True)


def motions_picture(fit, run: Run) -> bytes:
    """Return mean images that move along both factors, as an animated .webp file."""
    circle, interval = order(fit)
    turning = moving(run, circle, N_FRAMES)
    way = [*range(N_PLACES), *range(N_PLACES - 2, 0, -1)]  # there and back
    stretching = moving(run, interval, N_PLACES)[way]
    figure = plots.new_figure(*SIZE)
    above, below = figure.subplots(2, 2, height_ratios=[6, 1])
    titles = ("A circle: the top turns", "An interval: the lower part stretches")
    shown = [
        bare(ax).imshow(images[0], cmap="gray", vmin=images.min(), vmax=images.max())
        for ax, images in zip(above, (turning, stretching), strict=True)
    ]
    for ax, title in zip(above, titles, strict=True):
        ax.set_title(title)
    dots = [dial(below[0], plots.colour(circle)), bar(below[1], plots.colour(interval))]
    frames = []
    for frame in range(N_FRAMES):
        angle = 2 * np.pi * frame / N_FRAMES
        places = (np.cos(angle), np.sin(angle)), (way[frame] / (N_PLACES - 1), 0)
        for image, images in zip(shown, (turning, stretching), strict=True):
            image.set_data(images[frame])
        for dot, (x, y) in zip(dots, places, strict=True):
            dot.set_data([x], [y])
        frames.append(pixels(figure))
    file = io.BytesIO()
    timing = {"duration": MILLISECONDS, "loop": 0}
    frames[0].save(
        file, "WEBP", save_all=True, append_images=frames[1:], quality=60, method=6, **timing
    )
    return file.getvalue()


def moving(run: Run, factor: int, n_bins: int) -> np.ndarray:
    """Return mean images along a factor, numbered from 0, the other factor held still."""
    return cropped(average(run, [factor + 1], n_bins=n_bins, matched=True).means)


def dial(ax, colour: str):
    """Draw a circle; return the dot that shows a place on it."""
    turn = np.linspace(0, 2 * np.pi, 200)
    ax.plot(np.cos(turn), np.sin(turn), color=plots.GREY, linewidth=1)
    bare(ax).set(aspect="equal", xlim=(-1.4, 1.4), ylim=(-1.4, 1.4))
    return ax.plot([], [], "o", color=colour, markersize=7)[0]


def bar(ax, colour: str):
    """Draw an interval; return the dot that shows a place on it."""
    ax.plot((0, 1), (0, 0), color=plots.GREY, linewidth=1, marker="|")
    bare(ax).set(xlim=(-0.3, 1.3), ylim=(-1.4, 1.4))
    return ax.plot([], [], "o", color=colour, markersize=7)[0]


def pixels(figure) -> Image.Image:
    """Return a figure as an image without background."""
    settings = plots.PlotSettings(resolution=RESOLUTION)
    return Image.open(io.BytesIO(plots.clear_picture(figure, ".png", settings=settings)))


def small(image: Image.Image, kind: str, **options) -> bytes:
    """Return an image of 255 colours as the content of a file."""
    file = io.BytesIO()
    image.quantize(255, Image.Quantize.FASTOCTREE, dither=0).save(file, kind, **options)
    return file.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", type=Path, help="folder that `manifactor demo` wrote")
    parser.add_argument("folder", type=Path, help="where the pictures are written")
    arguments = parser.parse_args()
    fit = load(arguments.run)
    with plots.style(plots.CLEAR):
        motions = motions_picture(fit, open_run(arguments.run))
        (arguments.folder / "motions.webp").write_bytes(motions)
        (arguments.folder / "samples.png").write_bytes(samples_picture(arguments.run, fit))


if __name__ == "__main__":
    main()
