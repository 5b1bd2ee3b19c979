"""Samples to prepared samples: principal components that are noise are removed.

In many components of noise, all distances are nearly equal. From samples in many columns, such as
images, components that distances between neighbours do not depend on are removed, too, since each
column costs time.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from manifactor._support.parameters import Choice
from manifactor.spectral.noise import (
    NoiseSettings,
    UnevenNoiseSettings,
    components_beside_noise,
    first_noise_component,
    noise_components,
)
from manifactor.spectral.principal import (
    PrincipalAxes,
    PrincipalSettings,
    all_axes,
    centred_rows,
    drawn_rows,
    leading_axes,
    over_blocks,
)

PREPARATIONS = ("auto", "none")


@dataclass(frozen=True)
class PreparationSettings:
    """Settings of `choose_preparation`."""

    # Fewer samples cannot tell noise from signal.
    fewest_samples: int = 150

    # In more columns, the covariance costs more than all that follows: the leading components are
    # computed without it.
    most_columns: int = 1000

    # Distances in so few columns cost little: there only noise is removed, which so many samples
    # tell from signal.
    few_columns: int = 64
    most_samples: int = 250_000

    # Leading components that are computed first; their number is doubled until they are enough.
    # More than the most would cost about as much as they save.
    first_components: int = 32
    most_components: int = 128

    # As many components are kept as it takes for the others to change squared distances between
    # neighbours by less than this share. The kernel then changes by 0.001, where the sampling error
    # of its sums is 0.1, and what is lost of a factor is 30 times smaller than the distance between
    # neighbours.
    distance_share: float = 1e-3

    # The share if that takes too many components, as for images with sharp edges: the squared
    # distance to the 8th neighbour varies by 1/sqrt(8) from sample to sample.
    coarse_share: float = 0.2

    # The neighbour whose distance is measured, and the number of samples for which.
    neighbor: int = 8
    measured_samples: int = 200

    # A projection on more components than this share of the columns saves little time.
    largest_kept_share: float = 0.5

    noise: NoiseSettings = field(default_factory=NoiseSettings)
    uneven_noise: UnevenNoiseSettings = field(default_factory=UnevenNoiseSettings)
    principal: PrincipalSettings = field(default_factory=PrincipalSettings)


@dataclass(frozen=True)
class Preparation:
    """The principal components that are kept."""

    mean: np.ndarray  # (n_features,)
    components: np.ndarray  # (n_features, n_kept): principal axes
    reason: str  # which components were dropped, and why

    def __repr__(self) -> str:
        n_columns, n_kept = self.components.shape
        return f"Preparation({n_kept} of {n_columns} principal components kept)"

    def __str__(self) -> str:
        kept = self.components.shape[1]
        return f"{kept} principal component{'' if kept == 1 else 's'}"

    def __call__(
        self, X: np.ndarray, *, settings: PreparationSettings = PreparationSettings()
    ) -> np.ndarray:
        """Return prepared samples, (n, n_kept)."""
        prepared = np.empty((len(X), self.components.shape[1]))

        def work(rows: slice) -> None:
            prepared[rows] = (X[rows] - self.mean) @ self.components

        for _ in over_blocks(work, X, settings.principal):
            pass
        return prepared


def choose_preparation(
    X: np.ndarray, *, settings: PreparationSettings = PreparationSettings()
) -> Choice:
    """Choose the preparation of samples, (n_samples, n_features).

    Samples of any width are read in blocks of rows; a memory map is never read whole.

    >>> rng = np.random.default_rng(0)
    >>> line = np.c_[np.linspace(-5, 5, 2000), np.zeros((2000, 9))]
    >>> choose_preparation(line)
    Choice(value=None, why='no principal components are isotropic Gaussian noise')
    >>> choose_preparation(line + 0.1 * rng.normal(size=line.shape)).why
    '9 of 10 principal components are isotropic Gaussian noise and were dropped'
    """
    n_samples, n_columns = X.shape
    if n_samples < settings.fewest_samples:
        fewest = settings.fewest_samples
        return Choice(None, f"fewer than {fewest} samples cannot tell noise from signal")
    if n_columns <= settings.noise.shortest_tail:
        return Choice(None, f"noise cannot be told from signal in {n_columns} columns")
    if n_columns > settings.most_columns:
        counts = _counts(X, settings)
        found = (leading_axes(X, count, settings.principal) for count in counts)
        return _choose_from_leading(X, found, settings)
    if n_columns <= settings.few_columns:
        X = drawn_rows(X, settings.most_samples)
    return _choose_from_all(X, all_axes(X, settings.principal), settings)


def _choose_from_all(X: np.ndarray, found: PrincipalAxes, settings: PreparationSettings) -> Choice:
    """Return the choice from all components of samples in few columns."""
    without = Choice(None, "no principal components are isotropic Gaussian noise")
    if X.shape[1] > settings.few_columns:
        leading = [found.leading(settings.most_components)]
        without = _choose_from_leading(X, leading, settings)
    if without.value is not None:
        return without
    return _choose_without_noise(X, found, without, settings)


def _choose_without_noise(
    X: np.ndarray, found: PrincipalAxes, otherwise: Choice, settings: PreparationSettings
) -> Choice:
    """Return the choice without noise, isotropic or uneven; else `otherwise`."""
    n_found, n_columns = len(found.variance), X.shape[1]
    if not n_found:
        return Choice(None, "all samples are equal")
    noise = _isotropic_tail(X, found, settings)
    # Nothing sets noise apart from signal where there is no signal.
    if noise == n_found:
        gaussian = Choice(None, "all principal components look like one Gaussian")
        return gaussian if otherwise.value is None else otherwise
    if n_columns <= settings.most_columns:
        kept = components_beside_noise(X, found, settings=settings.uneven_noise)
        if 0 < len(kept) < n_found - noise:
            because = "they have no more variance than with random signs"
            return _without(found.chosen(kept), n_columns, because=because)
    return _without_noise(found, noise, n_columns) if noise else otherwise


def _counts(X: np.ndarray, settings: PreparationSettings) -> Iterator[int]:
    """Yield numbers of leading components, each twice the one before."""
    count = settings.first_components
    # Components of nearly as many samples are fitted to their noise.
    most = min(settings.most_components, len(X) // 2)
    while count < most:
        yield count
        count *= 2
    yield most


def _choose_from_leading(
    X: np.ndarray, leading: Iterable[PrincipalAxes], settings: PreparationSettings
) -> Choice:
    """Return the choice from leading components of samples in many columns.

    `leading` has more and more of them, and is used as far as necessary.
    """
    for found in leading:
        if found.total <= 0:
            return Choice(None, "all samples are equal")
        needed = _components_of_distances(X, found, settings.distance_share, settings)
        if needed is not None:
            return _among_needed(X, found.leading(needed), settings)
        first = _first_noise_component(X, found, settings)
        if first == 0:
            return Choice(None, "all principal components look like noise")
        if first is not None:
            because = "samples are uncorrelated with each other in them"
            return _without(found.leading(first), X.shape[1], because=because)
    needed = _components_of_distances(X, found, settings.coarse_share, settings)
    if needed is not None:
        return _without_negligible(found, X, settings)
    return Choice(
        None,
        f"the principal components beyond the first {len(found.variance)} of "
        f"{X.shape[1]:,} are not only noise, and distances between neighbours depend "
        "on them",
    )


def _among_needed(X: np.ndarray, needed: PrincipalAxes, settings: PreparationSettings) -> Choice:
    """Return the choice from the components that distances depend on.

    Noise may have few dimensions, such as that of few columns rotated into many.
    """
    negligible = _without_negligible(needed, X, settings)
    return _choose_without_noise(X, needed, negligible, settings)


def _isotropic_tail(X: np.ndarray, found: PrincipalAxes, settings: PreparationSettings) -> int:
    """Return how many of the last components are isotropic Gaussian noise."""
    return noise_components(
        found.scores(X, settings.principal), found.variance, len(X), settings=settings.noise
    )


def _first_noise_component(
    X: np.ndarray, found: PrincipalAxes, settings: PreparationSettings
) -> int | None:
    """Return the first of the components that are noise; None if none of them is."""
    count, rng = settings.noise.compared, np.random.default_rng(0)
    some = centred_rows(X, found.mean, count, rng)
    return first_noise_component(
        some,
        found.axes,
        variance=found.variance,
        rest=found.rest,
        n_samples=len(X),
        settings=settings.noise,
    )


def _components_of_distances(
    X: np.ndarray, found: PrincipalAxes, share: float, settings: PreparationSettings
) -> int | None:
    """Return how many components distances between neighbours depend on.

    None if they are more than were found. The squared distance of two samples in the other
    components is twice the variance of those on average, and hardly more for neighbours.
    """
    rest = 2 * found.rest
    rounding = settings.principal.rank_tolerance * found.total
    # Twice the total variance is the mean squared distance of any two samples, and neighbours are
    # nearer: no need to measure their distance.
    if rest[-1] > max(rounding, share * 2 * found.total):
        return None
    near = _neighbor_distance(X, found, settings)
    enough = rest <= max(rounding, share * near)
    return int(np.argmax(enough)) if enough.any() else None


def _neighbor_distance(X: np.ndarray, found: PrincipalAxes, settings: PreparationSettings) -> float:
    """Return the median squared distance to the 8th neighbour in the components."""
    rng = np.random.default_rng(0)
    some = centred_rows(X, found.mean, settings.measured_samples, rng) @ found.axes
    # The nearest is the sample itself.
    n_nearest = settings.neighbor + 1
    nearest = np.full((len(some), n_nearest), np.inf)
    for block in found.scores(X, settings.principal):
        squares = _squared_distances(some, block)
        nearest = np.partition(np.column_stack([nearest, squares]), n_nearest - 1, axis=1)[
            :, :n_nearest
        ]
    return float(np.median(nearest.max(axis=1)))


def _squared_distances(some: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return squared distances between rows, (n_some, n_others)."""
    lengths = (some**2).sum(axis=1)[:, None] + (others**2).sum(axis=1)
    return np.maximum(0.0, lengths - 2 * some @ others.T)


def _without_noise(found: PrincipalAxes, noise: int, n_columns: int) -> Choice:
    n_found = len(found.variance)
    of = f"{n_columns}" if n_columns <= n_found else f"{n_found} relevant"
    reason = f"{noise} of {of} principal components are isotropic Gaussian noise and were dropped"
    return _kept(found.leading(n_found - noise), reason)


def _without(found: PrincipalAxes, n_columns: int, *, because: str) -> Choice:
    dropped = n_columns - len(found.variance)
    reason = (
        f"{dropped:,} of {n_columns:,} principal components are noise and were dropped: {because}"
    )
    return _kept(found, reason)


def _without_negligible(
    found: PrincipalAxes, X: np.ndarray, settings: PreparationSettings
) -> Choice:
    n_kept, n_columns = len(found.variance), X.shape[1]
    of = f"{n_kept} of {n_columns:,} principal components"
    depend = f"distances between neighbours depend on {of}"
    if n_kept > settings.largest_kept_share * n_columns:
        return Choice(None, f"{depend}, too many for a projection to save time")
    share = found.rest[-1] / found.total
    reason = f"{depend}; the others, {share:.0e} of the variance, were dropped"
    return _kept(found, reason)


def _kept(found: PrincipalAxes, reason: str) -> Choice:
    return Choice(Preparation(found.mean, found.axes, reason), reason)
