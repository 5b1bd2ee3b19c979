"""Random parts of many samples, each with a graph and a spectrum of its own.

They give a rough look at the whole.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from manifactor._support.errors import held_warnings
from manifactor.spectral.filter_plan import block_width
from manifactor.spectral.kernel import Affinity, affinity
from manifactor.spectral.laplacian import laplacian_spectrum
from manifactor.spectral.neighbors import NeighborGraph
from manifactor.spectral.spectrum import Spectrum

# Above this number of samples two parts tell as much about noise as two halves, and cost less.
PARTED_ABOVE = 60_000

# A part is the eighth part of the samples, within these limits.
SMALLEST_PART = 10_000
LARGEST_PART = 100_000

# A part of more samples starts from the spectrum of a part of its own, which takes a third of the
# products that random vectors take.
NESTED_ABOVE = 30_000

# Spectra of parts and halves serve as noise estimates and starting vectors only: a tenth of the
# sampling error is accurate enough.
ROUGH_ACCURACY = 0.1


@dataclass(frozen=True)
class Part:
    """Some of the distinct samples, the walk between them, and its spectrum."""

    rows: np.ndarray  # (n_rows,): the samples
    affinity: Affinity
    spectrum: Spectrum

    def with_functions(self, count: int, *, rng: Generator) -> "Part":
        """Return the same with `count` functions and some to spare."""
        more = with_spare(count, len(self.rows))
        return replace(self, spectrum=_rough_spectrum(self.affinity, more, None, rng))


def part_size(n_samples: int) -> int:
    """Return the number of samples of a part."""
    return min(max(n_samples // 8, SMALLEST_PART), LARGEST_PART)


def draw_parts(
    samples: np.ndarray,
    n_functions: int,
    *,
    search: Callable[[np.ndarray], NeighborGraph],
    walk_of: Callable[[NeighborGraph], Affinity] = affinity,
    rng: Generator,
) -> tuple[Part, ...]:
    """Draw two disjoint parts of many samples and compute their spectra.

    The first has more functions, since the solver of the whole starts from them.

    Shapes: samples (n_distinct, n_features).
    """

    def solved(samples: np.ndarray, rows: np.ndarray, n_functions: int) -> Part:
        graph = search(samples[rows])
        walk, rows, start = walk_of(graph), rows[graph.distinct], None
        if len(rows) > NESTED_ABOVE:
            size = part_size(len(rows))
            some = np.sort(rng.permutation(len(rows))[:size])
            inner = solved(samples[rows], some, with_spare(n_functions, size))
            start = inner.rows, inner.spectrum
        return Part(rows, walk, _rough_spectrum(walk, n_functions, start, rng))

    drawn, size = rng.permutation(len(samples)), part_size(len(samples))
    # Warnings about a part are not shown; the same problem in the whole sample is reported there.
    with held_warnings():
        first = solved(samples, np.sort(drawn[:size]), with_spare(n_functions, size))
        second = solved(samples, np.sort(drawn[size : 2 * size]), n_functions)
    return first, second


def with_spare(n_functions: int, n_samples: int) -> int:
    """Return the number of functions to compute for a start of a solver.

    The solver's block is wider, and profits where a part shows its spare vectors too.
    """
    return (n_functions + block_width(n_samples, n_functions)) // 2


def _rough_spectrum(
    walk: Affinity, count: int, start: tuple[np.ndarray, Spectrum] | None, rng: Generator
) -> Spectrum:
    """Compute a spectrum with spare functions, for a solver that starts from them."""
    most = len(walk.degree) // 2
    return laplacian_spectrum(
        walk, min(count, most), start=start, spare=True, accuracy=ROUGH_ACCURACY, rng=rng
    )
