"""Spectrum to factorization: the methods, and the result they share."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components

from manifactor.factoring.evidence import COMPLETE, Evidence, NoProductStructureWarning, completeness, leakage
from manifactor.factoring.factor import Factor, make_factor, selection
from manifactor.factoring.maxcut import Cut, max_cut
from manifactor.factoring.triplets import Triplets, best_similarity, find_triplets
from manifactor.spectral.spectrum import Spectrum

MAX_FACTORS = 5  # that "auto" looks for
SEPARATED = 0.95  # share of the separability that the cut of "auto" must cut
LEAKING = 1 / 3  # share of a factor that another one predicts, above which they are not independent
WHOLE = 8  # functions that describe the data when there is one factor


@dataclass(frozen=True)
class Factorization:
    """Factors, the one with the smallest eigenvalue first, and the evidence for them."""

    factors: tuple[Factor, ...]
    evidence: Evidence
    triplets: Triplets | None = None
    cut: Cut | None = None


def by_triplets(
    spectrum: Spectrum,
    n_factors: int | str,
    *,
    eigenvalue_tolerance: float | str,
    similarity_threshold: float,
    exclude: Sequence[int],
    rng: np.random.Generator,
) -> Factorization:
    """The paper's algorithm: triplets, separability matrix, maximum cut."""
    if n_factors == 1:
        return _whole(spectrum, "one factor was asked for")
    auto = isinstance(eigenvalue_tolerance, str)
    tolerance = 0.1 * spectrum.eigenvalues if auto else np.asarray(eigenvalue_tolerance)
    most = 2 if n_factors == "auto" else int(n_factors)
    triplets = find_triplets(spectrum, tolerance=tolerance, threshold=similarity_threshold, max_parts=most)
    functions, separability = triplets.separability(exclude=exclude)
    if not separability.any():
        reason = _why_no_triplet(spectrum, triplets, tolerance, similarity_threshold)
        warnings.warn(f"No product structure was found: {reason}", NoProductStructureWarning, stacklevel=2)
        return _whole(spectrum, reason, triplets)
    cut = _cut(separability, n_factors, rng)
    groups = [functions[cut.labels == label] for label in range(cut.labels.max() + 1)]
    factors = [make_factor(spectrum, selection(spectrum, group)) for group in groups]
    factors.sort(key=lambda factor: factor.eigenvalues[0])
    return Factorization(tuple(factors), _weigh(spectrum, factors, separability, cut, n_factors), triplets, cut)


METHODS: dict[str, Callable[..., Factorization]] = {"triplets": by_triplets}


def _cut(separability: np.ndarray, n_factors: int | str, rng: np.random.Generator) -> Cut:
    """The maximum cut into as many groups as asked for, or the fewest that separate nearly all that is separable."""
    if n_factors != "auto":
        return max_cut(separability, int(n_factors), rng=rng)
    for n_groups in range(2, MAX_FACTORS + 1):
        cut = max_cut(separability, n_groups, rng=rng)
        if cut.objective >= SEPARATED * separability.sum() / 2:
            break
    return cut


def _weigh(spectrum, factors, separability, cut: Cut, n_factors) -> Evidence:
    """Verdict of the triplet method."""
    explained = completeness(spectrum, factors)
    pieces = connected_components(separability, directed=False)[0]
    problems = []
    if pieces > 1:
        problems.append(
            f"the triplets fall into {pieces} unconnected pieces, each of which the cut may assign either way round"
        )
    if n_factors != "auto" and len(factors) < n_factors:
        problems.append(f"only {len(factors)} of the {n_factors} factors asked for were found")
    if explained < COMPLETE:
        problems.append(
            f"products of the functions found explain {explained:.0%} of the low spectrum, not {COMPLETE:.0%}"
        )
    quality = "the best there is" if cut.gap < 1e-6 else f"at most {cut.gap:.1%} below the best"
    leaked = leakage(factors)
    if np.nanmax(leaked) > LEAKING:
        problems.append(f"a sample's place on one factor predicts {np.nanmax(leaked):.0%} of another")
    return Evidence(
        verdict="partial" if problems else "product",
        reason="; ".join(problems) or f"the functions fall into {len(factors)} groups whose products are functions too",
        completeness=explained,
        leakage=leaked,
        details=f"the cut that made the groups is {quality}",
    )


def _whole(spectrum: Spectrum, reason: str, triplets: Triplets | None = None) -> Factorization:
    """The data as one factor."""
    indices = range(1, min(1 + WHOLE, len(spectrum.eigenvalues)))
    factor = make_factor(spectrum, selection(spectrum, indices))
    return Factorization((factor,), Evidence("none", reason), triplets)


def _why_no_triplet(spectrum: Spectrum, triplets: Triplets, tolerance, threshold: float) -> str:
    """Why nothing can be separated, and what the nearest triplet would have needed."""
    if len(triplets):
        return f"all {len(triplets)} triplets have excluded functions; what `exclude` leaves is one factor"
    best = best_similarity(spectrum, tolerance=tolerance)
    count = len(spectrum.eigenvalues) - 1
    if best == 0:
        return (
            f"no two of the {count} functions have eigenvalues that add up to a third's within "
            "`eigenvalue_tolerance`; raise it or `n_functions`"
        )
    return (
        f"none of the {count} functions is the product of lower ones; the most similar reaches {best:.2f} where "
        f"`similarity_threshold` asks for {threshold:.2f}; lower it, raise `eigenvalue_tolerance` or add samples"
    )
