"""Random parts of many samples, each with a graph and a spectrum of its own.

They give a rough look at the whole.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.random import Generator

from manifactor._support.errors import held_warnings
from manifactor.spectral.filter_plan import block_width
from manifactor.spectral.kernel import Affinity, affinity
from manifactor.spectral.laplacian import SpectrumSettings, laplacian_spectrum
from manifactor.spectral.neighbors import NeighborGraph
from manifactor.spectral.spectrum import Spectrum


@dataclass(frozen=True)
class PartSettings:
    """Settings of `draw_parts`."""

    # Above so many samples two parts tell as much about noise as two halves, and cost less.
    parted_above: int = 60_000

    # A part is the eighth part of the samples, within these limits.
    divisor: int = 8
    smallest: int = 10_000
    largest: int = 100_000

    # A part of more samples starts from the spectrum of a part of its own, which takes a third of
    # the products that random vectors take.
    nested_above: int = 30_000

    # Spectra of parts and halves serve as noise estimates and starting vectors only: a tenth of the
    # sampling error is accurate enough.
    spectrum: SpectrumSettings = field(default_factory=lambda: SpectrumSettings(accuracy=0.1))


@dataclass(frozen=True)
class Part:
    """Some of the distinct samples, the walk between them, and its spectrum."""

    rows: np.ndarray  # (n_rows,): the samples
    affinity: Affinity
    spectrum: Spectrum

    def settled(self) -> "Part":
        """Return the same with its kernel on the host."""
        return replace(self, affinity=self.affinity.settled(), spectrum=self.spectrum.settled())

    def with_functions(
        self, count: int, *, rng: Generator, settings: PartSettings = PartSettings()
    ) -> "Part":
        """Return the same with `count` functions and some to spare."""
        more = with_spare(count, len(self.rows))
        spectrum = _rough_spectrum(self.affinity, more, None, rng, settings)
        return replace(self, spectrum=spectrum)


def part_size(n_samples: int, *, settings: PartSettings = PartSettings()) -> int:
    """Return the number of samples of a part."""
    share = n_samples // settings.divisor
    return min(max(share, settings.smallest), settings.largest)


def draw_parts(
    samples: np.ndarray,
    n_functions: int,
    *,
    search: Callable[[np.ndarray], NeighborGraph],
    walk_of: Callable[[NeighborGraph], Affinity] = affinity,
    rng: Generator,
    settings: PartSettings = PartSettings(),
) -> tuple[Part, ...]:
    """Draw two disjoint parts of many samples and compute their spectra.

    The first has more functions, since the solver of the whole starts from them.

    Shapes: samples (n_distinct, n_features).
    """
    drawn = rng.permutation(len(samples))
    size = part_size(len(samples), settings=settings)
    solved = partial(_part, search=search, walk_of=walk_of, rng=rng, settings=settings)
    # Warnings about a part are not shown; the same problem in the whole sample is reported there.
    with held_warnings():
        first = solved(samples, np.sort(drawn[:size]), with_spare(n_functions, size))
        second = solved(samples, np.sort(drawn[size : 2 * size]), n_functions)
    return first, second


def with_spare(n_functions: int, n_samples: int) -> int:
    """Return the functions to compute for a start of a solver that wants so many.

    The solver's block is wider, and profits where a part shows its spare vectors too.
    """
    return (n_functions + block_width(n_samples, n_functions)) // 2


def _part(
    samples: np.ndarray,
    rows: np.ndarray,
    n_functions: int,
    *,
    search: Callable[[np.ndarray], NeighborGraph],
    walk_of: Callable[[NeighborGraph], Affinity],
    rng: Generator,
    settings: PartSettings,
) -> Part:
    """Return some rows of the samples with their walk and its spectrum."""
    graph = search(samples[rows])
    walk = walk_of(graph)
    rows = rows[graph.distinct]
    start = None
    if len(rows) > settings.nested_above:
        size = part_size(len(rows), settings=settings)
        chosen = np.sort(rng.permutation(len(rows))[:size])
        inner = _part(
            samples[rows],
            chosen,
            with_spare(n_functions, size),
            search=search,
            walk_of=walk_of,
            rng=rng,
            settings=settings,
        )
        start = inner.rows, inner.spectrum
    spectrum = _rough_spectrum(walk, n_functions, start, rng, settings)
    return Part(rows, walk, spectrum)


def _rough_spectrum(
    walk: Affinity,
    count: int,
    start: tuple[np.ndarray, Spectrum] | None,
    rng: Generator,
    settings: PartSettings,
) -> Spectrum:
    """Compute a spectrum with spare functions, for a solver that starts from them."""
    most = len(walk.degree) // 2
    return laplacian_spectrum(
        walk, min(count, most), start=start, spare=True, rng=rng, settings=settings.spectrum
    )
