"""Averages along a factor, or on the grid of two: mean images or volumes, pictures, a movie."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy import fft

from manifactor._support.threads import cores
from manifactor._support.workers import Here, Workers, ignored
from manifactor.cryoem.components import distances, shell_means, shells
from manifactor.cryoem.files.stacks import write_stack, write_volume
from manifactor.cryoem.one_view import View, particle_ctf
from manifactor.runs.places import Matching, Place, bin_labels, grid_labels, match
from manifactor.runs.run import Run, places_along, require_as_many
from manifactor.views import pictures

# The sums of all bins are in memory at once, in double precision.
MAX_GIGABYTES = 8.0


def weighted_means(
    images: View,
    labels: np.ndarray,
    *,
    weights: np.ndarray,
    n_bins: int,
    workers: Workers = Here(),
    report: Callable[[float], None] = ignored,
) -> np.ndarray:
    """Compute the mean of every bin, (n_bins, *shape); a sample of label -1 is in no bin."""
    shape = images.source.shape
    inside = np.flatnonzero(labels >= 0)
    # Eight blocks of 64 MiB are some seconds of work. What a worker sends back is no larger than
    # the sums of some bins, or twice the images.
    pieces = images.source.block_rows(inside, n_blocks=8)
    jobs = [(images[rows], labels[rows], weights[rows]) for rows in pieces]
    sums = np.zeros((n_bins, *shape))
    for bins, part in workers.map(_piece_sums, jobs, report=report):
        sums[bins] += part
    total = np.bincount(labels[inside], weights[inside], minlength=n_bins)
    total = total.reshape(-1, *[1] * len(shape))
    # In place: sums of large volumes fill much of the memory.
    return np.divide(sums, total, out=sums, where=total > 0).astype(np.float32)


def _piece_sums(
    images: View, labels: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the bins of one piece of the images, and the weighted sums of each."""
    # A sample without weight has no entry, so that its NaN cannot spoil a sum.
    used = weights > 0
    bins = np.unique(labels[used])
    shape = images.source.shape
    # In double precision, small changes on a large offset survive many samples.
    sums = np.zeros((len(bins), prod(shape)))
    for rows, block in images.blocks():
        kept = np.flatnonzero(used[rows])
        entries = (weights[rows][kept], (np.searchsorted(bins, labels[rows][kept]), kept))
        # A sparse product reads the block once, however many bins there are.
        summing = sp.csr_array(entries, shape=(len(bins), len(rows)))
        sums += summing @ block.reshape(len(block), -1)
    return bins, sums.reshape(-1, *shape)


# Wiener's filter. Images are multiplied by their CTF before they are averaged (`View.weigh`): a
# mean is the signal times the mean of the squared CTF, and noise. The filter divides it out again.


def correction(
    images: View, labels: np.ndarray, *, weights: np.ndarray, n_bins: int
) -> Callable[[np.ndarray], np.ndarray]:
    """Return what divides the CTF, if images were multiplied by it, out of the means of bins."""
    particles, size = images.particles, images.source.shape[-1]
    if particles is None or not images.weigh:
        return lambda means: means
    n_shells = int(shells(size)[0].max()) + 1
    radius = np.arange(n_shells) / (size * images.source.pixel_size)
    # Four directions over half a turn: astigmatism repeats after it, and images are turned in their
    # plane.
    angles = np.arange(4) * np.pi / 4
    frequencies = np.outer(np.cos(angles), radius), np.outer(np.sin(angles), radius)
    # The weighted mean of the squared CTF of every bin, by shell.
    sums = np.zeros((n_bins, n_shells))
    used = np.flatnonzero((labels >= 0) & (weights > 0))
    # The CTF of 2000 particles takes some 10 MB.
    for start in range(0, len(used), 2000):
        rows = used[start : start + 2000]
        power = (particle_ctf(particles[rows], frequencies) ** 2).mean(axis=1)
        np.add.at(sums, labels[rows], weights[rows, None] * power)
    total = np.bincount(labels[used], weights[used], minlength=n_bins)
    powers = sums / np.maximum(total, np.finfo(float).tiny)[:, None]
    return partial(restored, powers=powers)


def restored(means: np.ndarray, powers: np.ndarray) -> np.ndarray:
    """Return means of images with their CTF, of mean squares (n_bins, n_shells), divided out."""
    # Signal and noise are measured in the means themselves: noise outside of the disc that the
    # molecule fills, signal in what is left of each shell.
    size = means.shape[-1]
    shell, multiplicity = shells(size)
    spectra = fft.rfft2(means, norm="ortho", workers=cores())
    filled = np.flatnonzero(powers.max(axis=1) > 0)
    if not len(filled):
        return means
    # Beyond this radius, in units of the box, a mean shows noise only: white noise, of which the
    # variance before it was multiplied is wanted.
    outside = distances(np.arange(size) - size // 2, 2) > 0.48 * size
    common = powers[filled].mean(axis=0)
    transferred = (common[shell] * multiplicity).sum() / multiplicity.sum()
    noise = float(means[filled][:, outside].var(axis=1).mean() / transferred)
    _, by_shell = shell_means((np.abs(spectra[filled]) ** 2).mean(axis=0))
    signal = np.maximum(by_shell - noise * common, 0) / common**2
    # Where there is no signal, nothing is let through.
    relative = np.divide(noise, signal, out=np.full(len(signal), np.inf), where=signal > 0)
    denominator = (powers + relative)[:, shell]
    # A bin without images has no CTF, and stays empty.
    empty = np.isinf(denominator) | (denominator == 0)
    spectra = np.divide(spectra, denominator, out=np.zeros_like(spectra), where=~empty)
    return fft.irfft2(spectra, s=(size, size), norm="ortho", workers=cores()).astype(np.float32)


@dataclass(frozen=True)
class HalfAverages:
    """Means of the two half sets of every bin, which show how far a mean is noise."""

    means: np.ndarray  # (2, n_bins, *shape): zeros where a half has no weight
    filled: np.ndarray  # (2, n_bins): whether the half of a bin has any weight

    @property
    def correlations(self) -> np.ndarray:
        """Correlation over pixels of the two halves of every bin, (n_bins,); nan without both."""
        halves = self.means.reshape(2, self.means.shape[1], -1).astype(float)
        one, two = halves - halves.mean(axis=2, keepdims=True)
        sizes = np.sqrt((one**2).sum(axis=1) * (two**2).sum(axis=1))
        known = self.filled.all(axis=0) & (sizes > 0)
        products = (one * two).sum(axis=1)
        return np.divide(products, sizes, out=np.full(len(sizes), np.nan), where=known)

    def __str__(self) -> str:
        known = self.correlations[np.isfinite(self.correlations)]
        if not len(known):
            return "no bin has samples of both half sets"
        return f"the averages of half sets correlate by {known.min():.3f} to {known.max():.3f}"


@dataclass(frozen=True)
class Averages:
    """Mean images, or volumes, of bins."""

    means: np.ndarray  # (n_bins, *shape)
    centres: tuple[np.ndarray, ...]  # of the bins along each factor
    places: tuple[Place, ...]  # on the factors
    matching: Matching  # weights and effective sizes
    pixel_size: float | None  # angstrom; None if no file states it
    halves: HalfAverages | None = None  # means of half of the samples of every bin
    ctf_corrected: bool = False  # whether the CTF was divided out of the means
    of_model: bool = False  # whether these are volumes of the model of all particles
    in_array: bool = False  # whether images are of an array, of picture files or of a film

    @property
    def width(self) -> float | None:
        """Width of an image in Angstrom; None if it is unknown."""
        return None if self.pixel_size is None else self.pixel_size * self.images.shape[2]

    @property
    def of_volumes(self) -> bool:
        """Whether these are volumes."""
        return self.means.ndim == 4 and not pictures.is_colour(self.means)

    @property
    def images(self) -> np.ndarray:
        """The means as images, (n_bins, height, width); volumes from the side that shows most."""
        return pictures.projections(self.means) if self.of_volumes else self.means

    @property
    def is_circular(self) -> bool:
        """Whether the averages go around a circle."""
        return self.places[0].topology == "circle"

    @property
    def filled(self) -> np.ndarray:
        """The bins that have a mean: one without weight has none; a model is known everywhere."""
        return np.flatnonzero((self.matching.effective_sizes > 0) | self.of_model)

    @property
    def captions(self) -> list[list[str]]:
        """Displayed coordinates of the bins along each factor."""
        return list(map(place_captions, self.places, self.centres))

    def __str__(self) -> str:
        matching = self.matching
        counts, sizes = matching.counts, matching.effective_sizes
        if self.of_model:
            return (
                f"{len(counts)} volumes of the model that all {counts.sum()} particles gave, at "
                f"the centres of bins of {counts.min()} to {counts.max()} particles"
            )
        text = f"{len(counts)} bins of {counts.min()} to {counts.max()} samples"
        # With one cell nothing was held still.
        if matching.n_cells > 1:
            before, after = matching.unevenness
            text += (
                "; matched over the other factors, whose means differed between bins by up to "
                f"{before:.2f} standard deviations and now by {after:.2f}; effective sizes from "
                f"{sizes.min():.0f}, {matching.dropped:.0%} of the samples unused"
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
) -> Averages:
    """Average up to `most` images or volumes, the same every time, along one factor or two."""
    # Wrong factors are refused before images are opened, which may take a while.
    places = places_along(run, factors)
    others = [place for i, place in enumerate(run.places, start=1) if i not in factors]
    if matched and not others:
        raise ValueError(
            "--match holds the other factors still; this run has no other factors. Leave it out."
        )
    images = run.images()
    source, n_samples = images.source, len(run.rows)
    require_as_many(run, len(source), "images")
    n_cells = n_bins ** len(places)
    require_memory(n_cells * (1 + halves), source.shape)
    labels, centres = binned(places, n_bins)
    if most is not None and most < n_samples:
        chosen = np.random.default_rng(0).choice(n_samples, most, replace=False)
        # In no bin, the samples left out count neither for means nor for matching.
        labels = np.where(np.isin(np.arange(n_samples), chosen), labels, -1)
    matching = match(labels, others if matched else [], n_bins=n_cells)
    weights = matching.weights
    correct = correction(images, labels, weights=weights, n_bins=n_cells)
    how: dict[str, Any] = {"weights": weights, "workers": workers, "report": report}
    both = None
    if halves:
        # Each half of a bin is a bin of its own, so that images are read once.
        split = np.where(labels >= 0, labels + n_cells * half_sets(run), -1)
        parts = weighted_means(images, split, n_bins=2 * n_cells, **how)
        means, both = half_averages(parts, split, weights)
        both = replace(both, means=np.stack(list(map(correct, both.means))))
    else:
        means = weighted_means(images, labels, n_bins=n_cells, **how)
    return Averages(
        means=correct(means),
        centres=centres,
        places=places,
        matching=matching,
        pixel_size=source.stated_size,
        halves=both,
        ctf_corrected=images.weigh,
        in_array=not source.files and source.stated_size is None,
    )


def require_memory(n_bins: int, shape: tuple[int, ...]) -> None:
    """Refuse averages that would not fit into memory."""
    # Eight bytes a pixel. All bins are in memory at once, as samples come in any order.
    size = 8e-9 * n_bins * prod(shape)
    if size > MAX_GIGABYTES:
        raise ValueError(
            f"the averages must fit into {MAX_GIGABYTES:g} GB of memory; {n_bins} bins "
            f"would take {size:.0f}. Take fewer bins, or downsample the volumes."
        )


def binned(places: Sequence[Place], n_bins: int) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """Return the bin of every sample, and the centres along each factor."""
    bins = [bin_labels(place.displayed, place.topology, n_bins=n_bins) for place in places]
    along, centres = zip(*bins, strict=True)
    if len(along) == 1:
        return along[0], centres
    return grid_labels(*along, n_columns=n_bins), centres


def half_sets(run: Run) -> np.ndarray:
    """Return the half set of every sample, 0 or 1: the particles' own, or drawn at random."""
    if "particles" in run.record:
        known = run.particles.microscope.get("half set")
        if known is not None and len(np.unique(known)) == 2:
            return np.unique(known, return_inverse=True)[1]
    return np.random.default_rng(0).permutation(len(run.rows)) % 2


def half_averages(
    parts: np.ndarray, split: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, HalfAverages]:
    """Return the means of bins, given those of their first and second halves, (2 * n_bins, ...)."""
    inside = split >= 0
    total = np.bincount(split[inside], weights[inside], minlength=len(parts)).reshape(2, -1)
    parts = parts.reshape(*total.shape, *parts.shape[1:])
    both = np.maximum(total.sum(axis=0), np.finfo(float).tiny)
    means = np.einsum("hb,hb...->b...", total / both, parts).astype(np.float32)
    return means, HalfAverages(parts, total > 0)


# Averages as files: stacks or volumes, pictures, a movie and a table of the bins.


def write_averages(averages: Averages, folder: Path) -> list[str]:
    """Write means, pictures and a movie into a folder; return the names of the files."""
    names = _write_pictures(averages, folder)
    means = _write_means(averages, averages.means, averages.filled, folder)
    if averages.of_volumes:
        script = pictures.chimerax_script(means, circular=averages.is_circular)
        (folder / "averages.cxc").write_text(script, encoding="utf-8")
        names.append("averages.cxc")
    names += means
    halves = averages.halves
    if halves is not None:
        for number in (0, 1):
            filled = np.flatnonzero(halves.filled[number])
            end = f"_half{number + 1}"
            names += _write_means(averages, halves.means[number], filled, folder, end=end)
    (folder / "bins.csv").write_text(_bins_table(averages), encoding="utf-8")
    return [*names, "bins.csv"]


def _write_pictures(averages: Averages, folder: Path) -> list[str]:
    shown, (rows, *columns) = averages.images, averages.captions
    files = {}
    if columns:
        # A grid has no order in which to play it, so there is no movie.
        grid = shown.reshape(*map(len, averages.centres), *shown.shape[1:])
        picture = pictures.grid_picture(grid, rows=rows, columns=columns[0])
    else:
        files = pictures.movie_bytes(shown, circular=averages.is_circular)
        picture = pictures.strip(shown, captions=rows)
    files[".png"] = pictures.png_bytes(picture)
    for kind, content in files.items():
        (folder / f"averages{kind}").write_bytes(content)
    return [f"averages{kind}" for kind in files]


def _write_means(
    averages: Averages, means: np.ndarray, filled: np.ndarray, folder: Path, *, end: str = ""
) -> list[str]:
    """Write images as a stack, or a map for each volume; return the names of the files."""
    size = averages.pixel_size or 1.0
    if averages.in_array:
        np.save(folder / f"averages{end}.npy", means)
        return [f"averages{end}.npy"]
    if not averages.of_volumes:
        write_stack(folder / f"averages{end}.mrcs", means, pixel_size=size)
        return [f"averages{end}.mrcs"]
    # Where there is no volume, zeros would be a gap in the movie. Leading zeros keep the order
    # where a program sorts by name.
    names = [f"average_{k + 1:03d}{end}.mrc" for k in filled]
    for k, name in zip(filled, names, strict=True):
        write_volume(folder / name, means[k], pixel_size=size)
    return names


def _bins_table(averages: Averages) -> str:
    """Return a table in CSV with one row for each bin."""
    grid = np.meshgrid(*averages.centres, indexing="ij")
    matching, halves = averages.matching, averages.halves
    columns: dict[str, Iterable] = {
        "bin": range(1, len(matching.counts) + 1),
        "samples": matching.counts,
        "effective_size": map("{:.1f}".format, matching.effective_sizes),
    }
    for i, along in enumerate(grid, start=1):
        columns[f"centre{i}"] = map("{:.6g}".format, along.ravel())
    if halves is not None:
        columns["half_correlation"] = map("{:.4f}".format, halves.correlations)
    lines = [columns, *zip(*columns.values(), strict=True)]
    return "".join(",".join(map(str, line)) + "\n" for line in lines)
