"""Averages along a factor, or on the grid of two: mean images or volumes, pictures, a movie."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from manifactor.cryoem.movies import chimerax_script, write_movie
from manifactor.cryoem.mrc import write_stack, write_volume
from manifactor.cryoem.pictures import grid_picture, projections, strip, write_png
from manifactor.cryoem.views import View
from manifactor.runs.averages import weighted_means
from manifactor.runs.bins import Matching, bin_labels, grid_labels, match
from manifactor.runs.places import Place
from manifactor.runs.task import Run

MOST_GIGABYTES = 8


@dataclass(frozen=True)
class Averages:
    """Mean images, or volumes, of bins.

    Attributes
    ----------
    means : ndarray of shape (n_bins, *shape), float32
    shape : tuple of int
        Bins along each factor.
    centres : tuple of ndarray
        Of the bins along each factor.
    places : tuple of Place
        On the factors.
    matching : Matching
        Weights and effective sizes.
    pixel_size : float
        Angstrom.
    """

    means: np.ndarray
    shape: tuple[int, ...]
    centres: tuple[np.ndarray, ...]
    places: tuple[Place, ...]
    matching: Matching
    pixel_size: float

    @property
    def of_volumes(self) -> bool:
        """Whether these are volumes."""
        return self.means.ndim == 4

    @property
    def images(self) -> np.ndarray:
        """The means as images, (n_bins, height, width): volumes are seen from the side that shows most."""
        return projections(self.means) if self.of_volumes else self.means

    @property
    def captions(self) -> list[list[str]]:
        """Of the bins along each factor."""
        return [
            _captions(place, centre)
            for place, centre in zip(self.places, self.centres, strict=True)
        ]

    def __str__(self) -> str:
        sizes, counts = self.matching.effective_sizes, self.matching.counts
        text = f"{len(counts)} bins of {counts.min()} to {counts.max()} samples"
        before, after = self.matching.unevenness
        if self.matching.n_cells > 1:
            text += (
                f"; matched over the other factors, whose means differed between bins by up to {before:.2f} standard "
                f"deviations and now by {after:.2f}; effective sizes from {sizes.min():.0f}, "
                f"{self.matching.dropped:.0%} of the samples unused"
            )
        empty = int((sizes == 0).sum())
        return text + (
            f"; {empty} bins have too few samples and are blank" if empty else ""
        )


def average(
    run: Run,
    factors: Sequence[int],
    *,
    n_bins: int,
    matched: bool,
    most: int | None = None,
) -> Averages:
    """Mean images or volumes of a run along one factor or on the grid of two.

    Parameters
    ----------
    run : Run
    factors : sequence of int
        One or two, counted from 1.
    n_bins : int
        Along each factor.
    matched : bool
        Whether to weight the samples so that every bin has the same distribution of all other factors.
    most : int or None
        Samples to average at most, drawn at random, the same ones every time; None for all. Others are not read.
    """
    if len(set(factors)) != len(factors) or len(factors) not in (1, 2):
        raise ValueError(
            f"averages go along one factor or two different ones; got {list(factors)}."
        )
    places = tuple(run.place(factor) for factor in factors)
    for factor, place in zip(factors, places, strict=True):
        if place.topology == "other":
            raise ValueError(
                f"averages go along intervals and circles; factor {factor} has more dimensions."
            )
    images = run.images()
    source = images.source if isinstance(images, View) else images
    if len(source) != len(run.rows):
        raise ValueError(
            f"the input has {len(source)} images now and had {len(run.rows)} when fitted. Fit again."
        )
    binned = [
        bin_labels(place.coordinate, place.topology, n_bins=n_bins) for place in places
    ]
    labels = (
        binned[0][0]
        if len(binned) == 1
        else grid_labels(binned[0][0], binned[1][0], n_columns=n_bins)
    )
    others = (
        [place for i, place in enumerate(run.places, start=1) if i not in factors]
        if matched
        else []
    )
    if matched and not others:
        raise ValueError(
            "--match holds the other factors still; this run has none beside. Leave it out."
        )
    count = n_bins ** len(places)
    size = 8e-9 * count * float(np.prod(source.shape))
    if size > MOST_GIGABYTES:
        raise ValueError(
            f"the averages must fit into {MOST_GIGABYTES} GB of memory; {count} bins would take {size:.0f}. Take fewer "
            "bins, or downsample the volumes."
        )
    rows = None
    if most is not None and most < len(labels):
        rows = np.sort(
            np.random.default_rng(0).choice(len(labels), most, replace=False)
        )
        labels = np.where(np.isin(np.arange(len(labels)), rows), labels, -1)
    matching = match(labels, others, n_bins=count)
    means = weighted_means(
        images.blocks(rows), labels, weights=matching.weights, n_bins=count
    )
    centres = tuple(centre for _, centre in binned)
    return Averages(
        means, (n_bins,) * len(places), centres, places, matching, source.pixel_size
    )


def write_averages(averages: Averages, folder: Path) -> list[str]:
    """Write means, pictures and a movie into a folder; the names of what was written, the most telling first."""
    written: list[str] = []
    shown, captions = averages.images, averages.captions
    if len(averages.shape) == 2:
        grid = shown.reshape(*averages.shape, *shown.shape[1:])
        write_png(
            folder / "averages.png",
            grid_picture(grid, rows=captions[0], columns=captions[1]),
        )
        written.append("averages.png")
    else:
        circular = averages.places[0].topology == "circle"
        write_png(folder / "averages.png", strip(shown, captions=captions[0]))
        write_movie(folder / "averages.gif", shown, circular=circular)
        written += ["averages.gif", "averages.png"]
    written += (
        _write_volumes(averages, folder)
        if averages.of_volumes
        else _write_images(averages, folder)
    )
    lines = [
        "bin,samples,effective_size,"
        + ",".join(f"centre{i + 1}" for i in range(len(averages.shape)))
    ]
    for k, where in enumerate(np.ndindex(*averages.shape)):
        at = ",".join(
            f"{centre[i]:.6g}"
            for centre, i in zip(averages.centres, where, strict=True)
        )
        lines.append(
            f"{k + 1},{averages.matching.counts[k]},{averages.matching.effective_sizes[k]:.1f},{at}"
        )
    (folder / "bins.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [*written, "bins.csv"]


def _write_images(averages: Averages, folder: Path) -> list[str]:
    write_stack(
        folder / "averages.mrcs", averages.means, pixel_size=averages.pixel_size
    )
    return ["averages.mrcs"]


def _write_volumes(averages: Averages, folder: Path) -> list[str]:
    kept = [
        k
        for k in range(len(averages.means))
        if averages.matching.effective_sizes[k] > 0
    ]
    names = [f"average_{k + 1:03d}.mrc" for k in kept]
    for k, name in zip(kept, names, strict=True):
        write_volume(folder / name, averages.means[k], pixel_size=averages.pixel_size)
    circular = averages.places[0].topology == "circle"
    (folder / "averages.cxc").write_text(
        chimerax_script(names, circular=circular), encoding="utf-8"
    )
    return ["averages.cxc", *names]


def _captions(place: Place, centres: np.ndarray) -> list[str]:
    return [
        f"{centre:.0f}°" if place.topology == "circle" else f"{centre:.2f}"
        for centre in centres
    ]
