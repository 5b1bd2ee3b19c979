"""Averages of half sets: how far a mean image is noise."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from manifactor._support.workers import Here, Workers, ignored
from manifactor.cryoem.averages.matching import Matching, MatchingSettings, match
from manifactor.cryoem.averages.means import correction, weighted_means
from manifactor.cryoem.files.mrc import write_stack, write_volume
from manifactor.cryoem.files.stacks import ImageArray, ImageSource
from manifactor.cryoem.movies import chimerax_script, movie_bytes
from manifactor.cryoem.one_view.views import View
from manifactor.cryoem.pictures import grid_picture, projections, strip, write_png
from manifactor.runs.places import Place, bin_labels, grid_labels
from manifactor.runs.run import Run


@dataclass(frozen=True)
class HalfAverages:
    """Means of the two half sets of every bin."""

    means: np.ndarray  # (2, n_bins, *shape): zeros where a half has no weight
    filled: np.ndarray  # (2, n_bins): whether the half of a bin has any weight

    @property
    def correlations(self) -> np.ndarray:
        """Correlation over the pixels of the two halves of every bin, (n_bins,).

        nan for a bin that lacks a half.
        """
        one, two = self.means.reshape(2, self.means.shape[1], -1).astype(float)
        one = one - one.mean(axis=1, keepdims=True)
        two = two - two.mean(axis=1, keepdims=True)
        sizes = np.sqrt((one**2).sum(axis=1) * (two**2).sum(axis=1))
        known = self.filled.all(axis=0) & (sizes > 0)
        products = (one * two).sum(axis=1)
        return np.divide(products, sizes, out=np.full(len(sizes), np.nan), where=known)

    def __str__(self) -> str:
        known = self.correlations[np.isfinite(self.correlations)]
        if not len(known):
            return "no bin has samples of both half sets"
        return f"the averages of half sets correlate by {known.min():.3f} to {known.max():.3f}"


def half_sets(run: Run) -> np.ndarray:
    """Return the half set of every sample, 0 or 1.

    They are those of the particles (rlnRandomSubset, alignments3D/split), or drawn at random, the
    same every time.
    """
    if "particles" in run.record:
        known = run.particles.microscope.get("half set")
        if known is not None and len(np.unique(known)) == 2:
            return np.unique(known, return_inverse=True)[1]
    n_samples = len(run.rows)
    return np.random.default_rng(0).permutation(n_samples) % 2


def half_averages(
    mean: Callable[..., np.ndarray],
    labels: np.ndarray,
    half: np.ndarray,
    *,
    weights: np.ndarray,
    n_bins: int,
) -> tuple[np.ndarray, HalfAverages]:
    """Compute the weighted mean of every bin, and of its two halves.

    Shapes: half (n,) -> means (n_bins, *shape).
    """
    # Each half of a bin is a bin of its own, so that images are read once.
    split = np.where(labels >= 0, labels + n_bins * half, -1)
    parts = mean(split, weights=weights, n_bins=2 * n_bins)
    inside = split >= 0
    total = np.bincount(split[inside], weights[inside], minlength=2 * n_bins)
    total = total.reshape(2, n_bins)
    parts = parts.reshape(2, n_bins, *parts.shape[1:])
    both = np.maximum(total.sum(axis=0), np.finfo(float).tiny)
    means = np.einsum("hb,hb...->b...", total / both, parts).astype(np.float32)
    return means, HalfAverages(parts, total > 0)


# Averages along a factor, or on the grid of two.
#
# These are mean images or volumes, pictures of them, and a movie.


@dataclass(frozen=True)
class AveragingSettings:
    """Settings of `average`."""

    matching: MatchingSettings = field(default_factory=MatchingSettings)

    # Of the sums, which are in memory all at once, in double precision.
    max_gigabytes: float = 8

    # Blocks of 64 MiB of images that a worker sums: some seconds of work. What it sends back is no
    # larger than the sums of some bins, or twice the images.
    n_blocks: int = 8


@dataclass(frozen=True)
class Averages:
    """Mean images, or volumes, of bins."""

    means: np.ndarray  # (n_bins, *shape)
    shape: tuple[int, ...]  # number of bins along each factor
    centres: tuple[np.ndarray, ...]  # of the bins along each factor
    places: tuple[Place, ...]  # on the factors
    matching: Matching  # weights and effective sizes
    pixel_size: float  # angstrom
    halves: HalfAverages | None = None  # means of half of the samples of every bin
    pixel_size_stated: bool = True  # whether a file says the pixel size
    ctf_corrected: bool = False  # whether the CTF was divided out of the means

    @property
    def width(self) -> float | None:
        """Width of an image in Angstrom; None if it is unknown."""
        return self.pixel_size * self.images.shape[2] if self.pixel_size_stated else None

    @property
    def of_volumes(self) -> bool:
        """Whether these are volumes."""
        return self.means.ndim == 4

    @property
    def images(self) -> np.ndarray:
        """The means as images, (n_bins, height, width).

        Volumes are seen from the side that shows most.
        """
        return projections(self.means) if self.of_volumes else self.means

    @property
    def is_circular(self) -> bool:
        """Whether the averages go around a circle."""
        return self.places[0].topology == "circle"

    @property
    def filled(self) -> np.ndarray:
        """The bins that have a mean: a bin without weight has none."""
        return np.flatnonzero(self.matching.effective_sizes > 0)

    @property
    def movies(self) -> dict[str, bytes]:
        """Movies along a single factor, by the ending of their files."""
        return movie_bytes(self.images, circular=self.is_circular)

    @property
    def captions(self) -> list[list[str]]:
        """Of the bins along each factor."""
        pairs = zip(self.places, self.centres, strict=True)
        return [place_captions(place, centres) for place, centres in pairs]

    def __str__(self) -> str:
        matching = self.matching
        counts, sizes = matching.counts, matching.effective_sizes
        text = f"{len(counts)} bins of {counts.min()} to {counts.max()} samples"
        # With one cell nothing was held still.
        if matching.n_cells > 1:
            before, after = matching.unevenness
            text += (
                f"; matched over the other factors, whose means differed between bins "
                f"by up to {before:.2f} standard deviations and now by {after:.2f}; "
                f"effective sizes from {sizes.min():.0f}, {matching.dropped:.0%} of "
                "the samples unused"
            )
        n_empty = int((sizes == 0).sum())
        if n_empty:
            text += f"; {n_empty} bins have too few samples and are blank"
        return text if self.halves is None else f"{text}; {self.halves}"


def place_captions(place: Place, centres: np.ndarray) -> list[str]:
    """Return displayed coordinates on a factor in words."""
    # Bins are rarely narrower than a degree or a hundredth.
    form = "{:.0f}°" if place.topology == "circle" else "{:.2f}"
    return [form.format(centre) for centre in centres]


def average(
    run: Run,
    factors: Sequence[int],
    *,
    n_bins: int,
    matched: bool,
    halves: bool = False,
    most: int | None = None,
    workers: Workers = Here(),
    report: Callable[[float], None] = ignored,
    settings: AveragingSettings = AveragingSettings(),
) -> Averages:
    """Average images or volumes of a run along one factor or on the grid of two."""
    # Wrong factors are refused before images are opened, which may take a while.
    places = places_along(run, factors)
    others = _places_beside(run, factors) if matched else []
    images = run.images()
    source = images.source if isinstance(images, View) else images
    _require_as_many(source, run)
    n_cells = n_bins ** len(places)
    _require_memory(n_cells * (1 + halves), source.shape, settings.max_gigabytes)

    labels, centres = binned(places, n_bins)
    labels, rows = _averaged(labels, most)
    matching = match(labels, others, n_bins=n_cells, settings=settings.matching)
    means, both = _means(
        images,
        labels,
        weights=matching.weights,
        n_bins=n_cells,
        half=half_sets(run) if halves else None,
        rows=rows,
        n_blocks=settings.n_blocks,
        workers=workers,
        report=report,
    )
    return Averages(
        means=means,
        shape=(n_bins,) * len(places),
        centres=centres,
        places=places,
        matching=matching,
        pixel_size=source.pixel_size,
        halves=both,
        pixel_size_stated=source.pixel_size_stated,
        ctf_corrected=isinstance(images, View) and images.weigh,
    )


def _averaged(labels: np.ndarray, most: int | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the bins of so many samples, and their rows; None for all."""
    if most is None or most >= len(labels):
        return labels, None
    rows = _drawn(len(labels), most)
    # In no bin, the samples left out count neither for means nor for matching.
    drawn = np.isin(np.arange(len(labels)), rows)
    return np.where(drawn, labels, -1), rows


def _require_as_many(source: ImageSource | ImageArray, run: Run) -> None:
    if len(source) != len(run.rows):
        raise ValueError(
            f"the input has {len(source)} images now and had {len(run.rows)} when "
            "fitted. Fit again."
        )


def _means(
    images: View | ImageSource,
    labels: np.ndarray,
    *,
    weights: np.ndarray,
    n_bins: int,
    half: np.ndarray | None,
    **reading,
) -> tuple[np.ndarray, HalfAverages | None]:
    """Return the means of bins, and of their half sets, corrected for the CTF."""
    mean: Callable[..., np.ndarray] = partial(weighted_means, images, **reading)
    correct = correction(images, labels, weights=weights, n_bins=n_bins)
    if half is None:
        return correct(mean(labels, weights=weights, n_bins=n_bins)), None
    means, both = half_averages(mean, labels, half, weights=weights, n_bins=n_bins)
    corrected = np.stack([correct(each) for each in both.means])
    return correct(means), replace(both, means=corrected)


def places_along(run: Run, factors: Sequence[int]) -> tuple[Place, ...]:
    """Return the places on the factors to average along."""
    # A picture has two directions, so there is no grid of three factors.
    distinct = len(set(factors)) == len(factors)
    if not distinct or len(factors) not in (1, 2):
        raise ValueError(
            f"averages go along one factor or two different ones; got {list(factors)}."
        )
    places = tuple(run.place(factor) for factor in factors)
    for factor, place in zip(factors, places, strict=True):
        if place.topology == "other":
            raise ValueError(
                f"averages go along intervals and circles; factor {factor} has more dimensions."
            )
    return places


def _places_beside(run: Run, factors: Sequence[int]) -> list[Place]:
    """Return the places on the factors to hold still."""
    others = [place for i, place in enumerate(run.places, start=1) if i not in factors]
    if not others:
        raise ValueError(
            "--match holds the other factors still; this run has no other factors. Leave it out."
        )
    return others


def _require_memory(n_bins: int, shape: tuple[int, ...], max_gigabytes: float) -> None:
    """Refuse more bins than memory can hold."""
    # Eight bytes a pixel. All bins are in memory at once, as samples come in any order.
    size = 8e-9 * n_bins * float(np.prod(shape))
    if size > max_gigabytes:
        raise ValueError(
            f"the averages must fit into {max_gigabytes:g} GB of memory; {n_bins} bins "
            f"would take {size:.0f}. Take fewer bins, or downsample the volumes."
        )


def binned(places: Sequence[Place], n_bins: int) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """Return the bin of every sample, and the centres along each factor."""
    bins = [bin_labels(place.displayed, place.topology, n_bins=n_bins) for place in places]
    along, centres = zip(*bins, strict=True)
    if len(along) == 1:
        return along[0], centres
    return grid_labels(*along, n_columns=n_bins), centres


def _drawn(n_samples: int, most: int) -> np.ndarray:
    """Return the ascending rows of so many samples, the same ones every time."""
    # A fixed seed: a report that is made twice shows the same averages.
    rng = np.random.default_rng(0)
    return np.sort(rng.choice(n_samples, most, replace=False))


# Averages as files: stacks or volumes, pictures, a movie and a table of the bins.


def write_averages(averages: Averages, folder: Path) -> list[str]:
    """Write means, pictures and a movie into a folder."""
    write_pictures = _write_strip if len(averages.shape) == 1 else _write_grid
    write_means = _write_volumes if averages.of_volumes else _write_images
    written = write_pictures(averages, folder) + write_means(averages, folder)
    written += _write_halves(averages, folder)
    (folder / "bins.csv").write_text(_bins_table(averages), encoding="utf-8")
    return [*written, "bins.csv"]


def _write_strip(averages: Averages, folder: Path) -> list[str]:
    shown = averages.images
    picture = strip(shown, captions=averages.captions[0])
    write_png(folder / "averages.png", picture)
    movies = averages.movies
    for kind, content in movies.items():
        (folder / f"averages{kind}").write_bytes(content)
    # The movies first: they show the motion at a glance.
    return [*(f"averages{kind}" for kind in movies), "averages.png"]


def _write_grid(averages: Averages, folder: Path) -> list[str]:
    shown = averages.images
    rows, columns = averages.captions
    # A grid has no order in which to play it, so there is no movie.
    grid = shown.reshape(*averages.shape, *shown.shape[1:])
    picture = grid_picture(grid, rows=rows, columns=columns)
    write_png(folder / "averages.png", picture)
    return ["averages.png"]


def _write_images(averages: Averages, folder: Path) -> list[str]:
    path = folder / "averages.mrcs"
    write_stack(path, averages.means, pixel_size=averages.pixel_size)
    return [path.name]


def _write_volumes(averages: Averages, folder: Path) -> list[str]:
    # Where there is no volume, zeros would be a gap in the movie.
    filled = averages.filled
    # Leading zeros keep the order where a program sorts by name.
    names = [f"average_{k + 1:03d}.mrc" for k in filled]
    for k, name in zip(filled, names, strict=True):
        write_volume(folder / name, averages.means[k], pixel_size=averages.pixel_size)
    script = chimerax_script(names, circular=averages.is_circular)
    (folder / "averages.cxc").write_text(script, encoding="utf-8")
    return ["averages.cxc", *names]


def _write_halves(averages: Averages, folder: Path) -> list[str]:
    """Write the half-set averages, of images as stacks and of volumes as maps."""
    if averages.halves is None:
        return []
    names = []
    size = averages.pixel_size
    for number, means in enumerate(averages.halves.means, start=1):
        if not averages.of_volumes:
            names.append(f"averages_half{number}.mrcs")
            write_stack(folder / names[-1], means, pixel_size=size)
            continue
        for k in np.flatnonzero(averages.halves.filled[number - 1]):
            names.append(f"average_{k + 1:03d}_half{number}.mrc")
            write_volume(folder / names[-1], means[k], pixel_size=size)
    return names


def _bins_table(averages: Averages) -> str:
    """Return a table in CSV with one row for each bin."""
    n_factors = len(averages.shape)
    header = [f"centre{i}" for i in range(1, n_factors + 1)]
    columns = ["bin", "samples", "effective_size", *header]
    halves = averages.halves
    if halves is not None:
        columns.append("half_correlation")
    lines = [",".join(columns)]
    counts, sizes = averages.matching.counts, averages.matching.effective_sizes
    for k, position in enumerate(np.ndindex(*averages.shape)):
        pairs = zip(averages.centres, position, strict=True)
        cells = [f"{k + 1}", f"{counts[k]}", f"{sizes[k]:.1f}"]
        cells += [f"{along[i]:.6g}" for along, i in pairs]
        if halves is not None:
            cells.append(f"{halves.correlations[k]:.4f}")
        lines.append(",".join(cells))
    return "\n".join(lines) + "\n"
