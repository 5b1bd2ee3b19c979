"""Random parts of many samples, each with a graph and a spectrum of its own: a rough look at the whole."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from manifactor.spectral.kernel import Affinity, affinity
from manifactor.spectral.neighbors import NeighborGraph
from manifactor.spectral.spectrum import Spectrum, laplacian_spectrum

PARTED = 60_000  # samples above which two parts tell as much about noise as two halves, and cost less
SHARE, SMALLEST, LARGEST = (
    8,
    10_000,
    100_000,
)  # a part is the eighth part of the samples, within these limits
ROUGH = 0.1  # accuracy of the spectra of parts and halves


@dataclass(frozen=True)
class Part:
    """Some of the distinct samples, the walk between them, and its spectrum."""

    rows: np.ndarray
    affinity: Affinity
    spectrum: Spectrum

    def settled(self) -> "Part":
        """The same with its kernel on this machine's side."""
        return replace(
            self, affinity=self.affinity.settled(), spectrum=self.spectrum.settled()
        )

    def with_functions(self, count: int, *, rng: np.random.Generator) -> "Part":
        """The same with `count` functions and some to spare."""
        return replace(self, spectrum=_rough_spectrum(self.affinity, count, rng))


def part_size(n_samples: int) -> int:
    """How many samples a part has."""
    return min(max(n_samples // SHARE, SMALLEST), LARGEST)


def draw_parts(
    samples: np.ndarray,
    n_functions: int,
    *,
    search: Callable[[np.ndarray], NeighborGraph],
    density_correction: float,
    rng: np.random.Generator,
) -> tuple[Part, ...]:
    """Two disjoint parts of many samples, (n_distinct, n_features), each with the graph that `search` makes of it."""
    drawn = rng.permutation(len(samples))
    size = part_size(len(samples))
    parts = []
    for rows in (np.sort(drawn[:size]), np.sort(drawn[size : 2 * size])):
        with warnings.catch_warnings(
            action="ignore"
        ):  # what a part is short of, the whole may have
            graph = search(samples[rows])
            walk = affinity(graph, density_correction=density_correction)
            parts.append(
                Part(
                    rows[graph.distinct], walk, _rough_spectrum(walk, n_functions, rng)
                )
            )
    return tuple(parts)


def _rough_spectrum(walk: Affinity, count: int, rng: np.random.Generator) -> Spectrum:
    """The spare functions are for a solver that starts from them."""
    return laplacian_spectrum(
        walk, min(count, len(walk.degree) // 2), accuracy=ROUGH, spare=True, rng=rng
    )
