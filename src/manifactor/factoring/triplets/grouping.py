"""The triplet method's groups of functions: triplets, separability, maximum cut."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse.csgraph import connected_components

from manifactor.factoring.triplets.maxcut import Cut, CutSettings, max_cut
from manifactor.factoring.triplets.search import (
    Triplets,
    TripletSettings,
    best_similarity,
    find_triplets,
)
from manifactor.spectral.spectrum import Spectrum


@dataclass(frozen=True)
class GroupingSettings:
    """Settings of `group_functions`."""

    # Eigenvalue of a product may miss the sum of its parts' by this share of its own, where no
    # tolerance is given.
    relative_tolerance: float = 0.1
    # Least similarity of a function with a product, where no threshold is given: the paper's gamma.
    similarity: float = 0.7
    # Groups that "auto" looks for at most.
    most_groups: int = 5
    # Share of the separability that the cut of "auto" must cut.
    separated: float = 0.95
    triplets: TripletSettings = field(default_factory=TripletSettings)
    cut: CutSettings = field(default_factory=CutSettings)


@dataclass(frozen=True)
class Grouping:
    """Groups of functions, one for each factor."""

    triplets: Triplets
    # Indices of functions; empty where nothing can be separated
    groups: tuple[np.ndarray, ...] = ()
    cut: Cut | None = None
    # Unconnected pieces of the graph of functions that occur in a product together
    n_pieces: int = 0
    why_none: str = ""  # why nothing can be separated, "" if there are groups


def group_functions(
    spectrum: Spectrum,
    *,
    n_groups: int | None,
    tolerance: float | None,
    threshold: float | None,
    exclude: Sequence[int] = (),
    settings: GroupingSettings = GroupingSettings(),
    rng: np.random.Generator,
) -> Grouping:
    """Return groups of functions whose products are functions, too."""
    relative = settings.relative_tolerance * spectrum.eigenvalues
    allowed = relative if tolerance is None else np.asarray(tolerance)
    similar = settings.similarity if threshold is None else threshold
    triplets = find_triplets(
        spectrum,
        tolerance=allowed,
        threshold=similar,
        max_parts=n_groups or 2,
        settings=settings.triplets,
    )
    functions, separability = triplets.separability(exclude=exclude)
    # Triplets whose functions are all excluded separate nothing.
    if not separability.any():
        why = _why_no_triplet(spectrum, triplets, allowed, similar)
        return Grouping(triplets, why_none=why)
    cut = _cut(separability, n_groups, settings, rng)
    n_found = cut.labels.max() + 1
    return Grouping(
        triplets,
        groups=tuple(functions[cut.labels == label] for label in range(n_found)),
        cut=cut,
        n_pieces=int(connected_components(separability, directed=False)[0]),
    )


def _cut(
    separability: np.ndarray,
    n_groups: int | None,
    settings: GroupingSettings,
    rng: np.random.Generator,
) -> Cut:
    """Maximum cut into as many groups as asked for, or as are needed."""
    if n_groups is not None:
        return max_cut(separability, n_groups, settings=settings.cut, rng=rng)
    # Each pair counts twice in the symmetric matrix.
    enough = settings.separated * separability.sum() / 2
    for count in range(2, settings.most_groups + 1):
        cut = max_cut(separability, count, settings=settings.cut, rng=rng)
        if cut.objective >= enough:
            break
    return cut


def _why_no_triplet(
    spectrum: Spectrum, triplets: Triplets, tolerance: np.ndarray, threshold: float
) -> str:
    """Why nothing can be separated, and what the nearest triplet would have needed."""
    if len(triplets):
        return (
            f"all {len(triplets)} triplets have excluded functions; what `exclude` "
            "leaves is one factor"
        )
    best = best_similarity(spectrum, tolerance=tolerance)
    count = len(spectrum.eigenvalues) - 1
    if best == 0:
        return (
            f"no two of the {count} functions have eigenvalues that add up to a "
            "third's within `eigenvalue_tolerance`; raise it or `n_functions`"
        )
    return (
        f"none of the {count} functions is the product of lower ones; the most similar "
        f"reaches {best:.2f} where `similarity_threshold` asks for {threshold:.2f}; "
        "lower it, raise `eigenvalue_tolerance` or add samples"
    )
