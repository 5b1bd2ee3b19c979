"""Are the factors those of a product? Their functions, and what coordinates (places) predict."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist
from scipy.stats import rankdata
from sklearn.decomposition import PCA

import manifactor.statistics as statistics
from manifactor._support.threads import map_threads
from manifactor._support.values import quotient
from manifactor.factors.factor import Factor, Reading
from manifactor.judging.measures.places import PlacedSamples
from manifactor.models.peeling.division import Split, excess_in_halves
from manifactor.models.peeling.peeling import Look
from manifactor.models.peeling.purity import impurity
from manifactor.models.sums.independence import independent_parts, is_bell, principal_coordinates
from manifactor.operators.geometry import batch_size
from manifactor.operators.laplacian import Spectrum
from manifactor.statistics import NOT_MEASURED, Measurement

# Products are taken up to this ratio above the low spectrum, and the spectrum must reach as far: an
# eigenfunction is a mixture of products a little above and below.
PRODUCT_MARGIN = 1.3
# Permutations of the places, which make 1/200 the smallest p-value.
PERMUTATIONS = 199


def completeness(spectrum: Spectrum, factors: Sequence[Factor]) -> float:
    """Return how far pure functions and their products are the low eigenfunctions.

    The least of three numbers: the share of low eigenfunctions that lie, for the most part, in the
    span of the products, and the ratio of the numbers of both either way round. On a twisted
    product the sums of the factors' eigenvalues are too many or too few. Low is what lies below the
    products of the factors' lowest functions, and the first 16 functions at least.
    """
    lowest = sorted(factor.eigenvalues[0] for factor in factors)
    # Above the products of the factors' lowest functions, with room for the error of an eigenvalue.
    above_products = 1.1 * sum(lowest[-2:])
    # A few pure functions without any product between them would explain only themselves.
    above_few = spectrum.eigenvalues[:16][-1]
    top = min(max(above_products, above_few), spectrum.eigenvalues[-1] / PRODUCT_MARGIN)
    low = (spectrum.eigenvalues <= top) & (spectrum.eigenvalues > 0)
    if not low.any():
        return 0.0
    # The error of a share is below 1/sqrt(20,000) = .007.
    thin = statistics.random_rows(len(spectrum.weights), 20_000)
    weights = spectrum.weights[thin]
    root = np.sqrt(weights / weights.sum())[:, None]
    # Orthonormal under the weights, so that squared coefficients are shares.
    products, sums = _products_below(factors, PRODUCT_MARGIN * top, thin)
    basis = np.linalg.qr(products * root)[0]
    low_functions = spectrum.functions[thin][:, low]
    # A repeated eigenvalue mixes functions, but not the span of the products.
    inside = ((basis.T @ (low_functions * root)) ** 2).sum(axis=0)
    # The constant function is a product of constants, but not a low eigenfunction.
    ratio = max(1, int((sums <= top).sum()) - 1) / low.sum()
    return float(min((inside > 0.5).mean(), ratio, 1 / ratio))


def _products_below(
    factors: Sequence[Factor], limit: float, thin: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Products of one function of each factor, (n, r), and sums of eigenvalues, (r,).

    Those whose sum is below the limit; the constant is a function of every factor.
    """
    n = len(thin)
    products, sums = np.ones((n, 1)), np.zeros(1)
    for factor in factors:
        functions = np.column_stack([np.ones(n), factor.functions[thin]])
        eigenvalues = np.concatenate([[0.0], factor.eigenvalues])
        sums = (sums[:, None] + eigenvalues).ravel()
        products = (products[:, :, None] * functions[:, None]).reshape(n, -1)
        # Dropped at once: the products of three factors would be too many otherwise.
        below = sums < limit
        products, sums = products[:, below], sums[below]
    return products, sums


def agreement(full: Look, half: Look) -> float:
    """Return the smallest share of a factor's lowest functions that a half finds again.

    The share of the function in the span of the same factor's functions in half of the samples;
    both ways round, after the best matching of the factors.
    """
    thin = statistics.random_rows(len(half.part), 5000)
    root = np.sqrt(half.geometry.spectrum.weights[thin])[:, None]
    root /= np.linalg.norm(root)
    whole = _lowest_and_all(full, half.part[thin], root)
    parts = _lowest_and_all(half, thin, root)
    shares = [
        [min(_share(low, others), _share(other_low, block)) for other_low, others in parts]
        for low, block in whole
    ]
    # A half may find the factors in another order.
    return float(np.array(shares)[linear_sum_assignment(shares, maximize=True)].min())


def _lowest_and_all(
    look: Look, rows: np.ndarray, root: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Lowest functions, and the lowest eight, of each block of a look at some samples.

    Of mean 0 and norm 1 under the weights root**2, times root.
    """
    functions = look.geometry.spectrum.functions[rows, 1:]
    out = []
    for block in look.blocks:
        values = functions @ block
        values = (values - (root**2).T @ values) * root
        values = values / np.linalg.norm(values, axis=0)
        count = batch_size(look.geometry.rayleigh(block))
        out.append((values[:, :count], values[:, :8]))
    return out


def _share(functions: np.ndarray, others: np.ndarray) -> float:
    """Smallest share of a function in the span of others."""
    basis = np.linalg.qr(others)[0]
    return float(((basis.T @ functions) ** 2).sum(axis=0).min())


def twist(looks: Sequence[Look]) -> Measurement:
    """Return the `impurity` of the factors' lowest functions in all samples.

    Its noise is what halves of the samples add to it.
    """
    full, *halves = map_threads(lambda look: impurity(look.geometry, look.blocks), looks)
    if not halves:
        return Measurement(full)
    return Measurement(full, float(excess_in_halves(full, halves)))


def modulation(readings: Sequence[Reading], spectrum: Spectrum) -> float:
    """Return the largest change of a factor's variance along the others."""
    # A mean square of 4,000 samples is accurate to some 3 %.
    return max((each.chart.modulation(spectrum, 4000) for each in readings), default=0.0)


def undivided(splits: Sequence[Split]) -> Measurement:
    """Return the smallest q, less its noise, of functions that were not divided.

    A batch that fell into n blocks has n - 1 values of q near 0; the next one says whether one of
    the blocks might be divided once more. 1 where no batch has another.
    """
    following = [
        Measurement(float(s.q[s.n_blocks - 1]), float(s.noise[s.n_blocks - 1]))
        for s in splits
        if len(s.q) >= s.n_blocks
    ]
    return min(following, key=lambda q: q.net, default=Measurement(1.0))


# How much places on one factor tell of places on another.


def leakage(places: Sequence[np.ndarray]) -> np.ndarray:
    """Return the R^2 with which places, (n, c), predict others, (n_factors, n_factors)."""
    out = np.full((len(places), len(places)), np.nan)
    for i, source in enumerate(map(statistics.blurred, places)):
        others = [j for j in range(len(places)) if j != i]
        out[i, others] = _mean_r2(source, [places[j] for j in others])
    return out


def _mean_r2(places: np.ndarray, targets: Sequence[np.ndarray]) -> list[float]:
    """R^2 with which places predict each target, the mean over its columns."""
    # All targets at once, since the search for neighbours is what takes time.
    columns = statistics.predictability(places, np.hstack(targets))
    ends = np.cumsum([target.shape[1] for target in targets])[:-1]
    return [float(part.mean()) for part in np.split(columns, ends)]


def dependence(
    places: Sequence[np.ndarray], *, by_ranks: bool = True, rng: np.random.Generator
) -> float:
    """Return the permutation p-value of independent places.

    The first statistic is the sum of squared correlations between features of the factors' places:
    coordinates, their squares and products. For an interval these are, with `by_ranks`, waves of
    its ranks, which see more: also errors of places that were read off functions, which are flat at
    the ends of an interval. `by_ranks` also asks how near neighbours are in all places together:
    where a place is a function of others, however wild, they are nearer than in any permutation.

    Shapes: places (n, c), of distinct samples, since copies lie nearer than any permutation.
    """
    thin = statistics.random_rows(len(places[0]), 5000)
    first, *others = (_features(place[thin], by_ranks) for place in places)
    few = statistics.random_rows(len(places[0]), 1000)
    near, *others_near = (_even_places(place[few]) for place in places)
    # The order that was seen is one of the permutations (Phipson and Smyth, 2010). One factor stays
    # in place: only the order relative to it matters.
    correlations, together = [_correlation([first, *others])], [[near, *others_near]]
    for _ in range(PERMUTATIONS):
        correlations.append(_correlation([first, *_shuffled(others, rng)]))
        if by_ranks:
            together.append([near, *_shuffled(others_near, rng)])
    ranked = np.array(correlations)[:, None]
    if by_ranks:
        ranked = np.c_[ranked, np.negative(map_threads(_log_distance, together))]
    largest = quotient(ranked - ranked.mean(axis=0), ranked.std(axis=0)).max(axis=1)
    return float((largest >= largest[0]).mean())


def _shuffled(blocks: Sequence[np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
    return [block.take(rng.permutation(len(block)), axis=0) for block in blocks]


def _even_places(places: np.ndarray) -> np.ndarray:
    """Places with each column spread evenly, or on a circle or a surface as they are."""
    if places.shape[1] == 1:
        return rankdata(places, axis=0) / len(places)
    return places / (places.std() * np.sqrt(12))


def _log_distance(places: Sequence[np.ndarray]) -> float:
    """Mean logarithm of the distance to the third neighbour in all places together."""
    together = np.hstack(places)
    distances = KDTree(together).query(together, 4)[0][:, -1]
    return float(np.log(distances + np.finfo(float).tiny).mean())


def _correlation(features: Sequence[np.ndarray]) -> float:
    """Sum of squared correlations between orthonormal features of all pairs."""
    return sum(float(((one.T @ other) ** 2).sum()) for one, other in combinations(features, 2))


def _features(places: np.ndarray, by_ranks: bool) -> np.ndarray:
    """Functions of places that tell them apart, centred and made orthonormal."""
    if places.shape[1] == 1 and by_ranks:
        # Six waves of the ranks: the width of a square that stands on its corner is one of two
        # waves, in each of two clusters of four.
        ranks = rankdata(places[:, 0]) / len(places)
        features = np.cos(np.pi * np.outer(ranks, np.arange(1, 7)))
    else:
        i, j = np.triu_indices(places.shape[1])
        scaled = (places - places.mean(axis=0)) / places.std()
        features = np.column_stack([scaled, scaled[:, i] * scaled[:, j]])
    # The square of a circle's cosine is 1 less that of its sine: one of them is redundant, and
    # rounding must not make a feature of it.
    centred = features - features.mean(axis=0)
    left, strength, _ = np.linalg.svd(centred, full_matrices=False)
    return left[:, strength > 1e-3 * strength[0]]


def distance_correlation(places: Sequence[np.ndarray]) -> float:
    """Return the largest squared distance correlation between places on two factors.

    Without the bias of few samples (Szekely and Rizzo, 2014): 0 on average where places are
    independent, and 1 where they are the same. Unlike a p-value it does not grow with the samples.
    """
    few = statistics.random_rows(len(places[0]), 600)
    centred = [_centred_distances(_even_places(place[few])) for place in places]
    pairs = combinations(centred, 2)
    return max((float(np.vdot(one, other)) for one, other in pairs), default=NOT_MEASURED)


def _centred_distances(places: np.ndarray) -> np.ndarray:
    """Distances without the mean of rows and columns, without bias, and of norm 1; (n, n)."""
    distances, n = cdist(places, places), len(places)
    rows = distances.sum(axis=1) / (n - 2)
    centred = distances - rows - rows[:, None] + rows.sum() / (n - 1)
    np.fill_diagonal(centred, 0.0)
    return quotient(centred, np.linalg.norm(centred))


# How much of the samples the factors explain.


def explained(factors: Sequence[Factor], samples: np.ndarray | None, inliers: np.ndarray) -> float:
    """Return the smallest R^2 with which all factors predict a main direction.

    Of its variance without noise, which all directions have.

    Shapes: samples (n_samples, n_features), inliers (n_samples,).
    """
    if samples is None:
        return 1.0
    rows = statistics.random_rows(np.flatnonzero(inliers), 20_000)
    # Places in units of length: a function's gradient is the root of its eigenvalue.
    places = np.hstack(
        [f.embedding[rows] / (f.embedding.std() * np.sqrt(f.eigenvalues[0])) for f in factors]
    )
    samples = samples[rows]
    scores = PCA(min(20, *samples.shape), random_state=0).fit_transform(samples)
    told, variances = statistics.predictability(places, scores), scores.var(axis=0)
    # Noise is what is left in a quarter of the directions at least, and of three in two.
    left = np.sort((1 - told) * variances)[::-1]
    noise = left[max(1, len(left) // 4)] if len(left) > 1 else 0.0
    # No direction is main that noise of twice that variance would have; but one is.
    beyond = variances - 2 * noise > 0.01 * np.var(samples, axis=0).sum()
    beyond[0] = True
    signal = np.maximum(variances - noise, told * variances)
    return float(quotient(told * variances, signal)[beyond].min())


def least_explained_part(
    factors: Sequence[Factor], samples: np.ndarray | None, inliers: np.ndarray
) -> float:
    """Return the smallest R^2 with which all factors predict an independent part.

    A factor much smaller than the others has its functions beyond the computed spectrum and adds
    little to any distance. Where distances of the factors add up it is still a linear part of the
    samples that is independent of all others and no noise, whose distribution is bell-shaped. 1
    where there is no such part.

    Shapes: samples (n_samples, n_features), inliers (n_samples,).
    """
    if samples is None:
        return 1.0
    rows = statistics.random_rows(np.flatnonzero(inliers), statistics.PREDICTED_SAMPLES)
    centred = samples[rows] - samples[rows].mean(axis=0)
    coordinates, _ = principal_coordinates(centred)
    places = np.hstack([factor.embedding[rows] / factor.embedding.std() for factor in factors])
    found = [part.reading for part in independent_parts(coordinates) if not part.gaussian]
    # Noise may have heavier tails than a Gaussian.
    parts = [part for part in (coordinates @ reading for reading in found) if not is_bell(part)]
    return min(_mean_r2(places, parts)) if parts else 1.0


# Directions without any noise, and samples of which it is not known, are so far above it.
FAR_ABOVE = 100.0


@dataclass(frozen=True)
class Untold:
    """What samples of nearly the same place on every factor differ by."""

    direction: float  # size of a direction that no factor tells, in units of the smallest factor
    # Size of each factor along one direction, in units of the noise; () if that is not known
    above: tuple[float, ...] = ()
    smallest: float = NOT_MEASURED  # size of the smallest factor, in units of the largest

    @property
    def above_noise(self) -> float:
        """Size of the smallest factor along one direction, in units of the noise."""
        return min(self.above, default=FAR_ABOVE)


def untold(placed: PlacedSamples | None, dropped: float = 0.0) -> Untold:
    """Return what factors do not tell of the samples: a further direction, and noise.

    Samples with nearly the same place on every factor differ by noise, which has no direction, or
    along a further degree of freedom. What noise alone shows in its largest direction is taken off,
    so that the value at true coordinates is near 0 for any noise. What the curvature of the data
    adds grows with the fourth power of the distance between the places; neighbourhoods of two sizes
    tell how much that is. Without samples, or of a handful, there is no such direction, nor noise.
    Noise has at least the mean variance of components that were `dropped` from the samples.
    """
    few = 0 if placed is None else placed.joint.shape[1] + 8
    many = 3 * few
    if placed is None or placed.n_samples <= many:
        return Untold(0.0)
    samples = placed.samples
    if samples.shape[1] > 30:
        samples = PCA(30, random_state=0).fit_transform(samples)
    # Medians over 300 samples are accurate to a tenth.
    some, scaled, sizes = placed.nodes, [], []
    for place in placed.places:
        near = statistics.nearest_others(place, some, statistics.PREDICTION_NEIGHBORS)
        sizes.append(samples[near].mean(axis=1).var(axis=0).sum())
        # As large as what samples move by on average: where they are bent between neighbours, the
        # slopes of local fits are too small.
        scaled.append(place * np.sqrt(quotient(sizes[-1], place.var(axis=0).sum())))
    joint = np.hstack(scaled)
    near = statistics.nearest_others(joint, some, many)
    small, noise = _beyond_noise(joint[near[:, :few]], samples[near[:, :few]])
    large, _ = _beyond_noise(joint[near], samples[near])
    growth = (many / few) ** (4 / sum(placed.dimensions))
    left = max(0.0, (growth * small - large) / (growth - 1))
    # How far samples move with their places, also around a centre that is their mean, less noise.
    fits = placed.local_fits
    # Below a fourth of the length, a fit has failed.
    moves = np.median(np.diagonal(fits.metric, axis1=1, axis2=2), axis=0).clip(1 / 16)
    along = [
        float(place.var(axis=0).mean() * moves[rows].mean())
        for place, rows in zip(placed.places, fits.directions, strict=True)
    ]
    above = np.minimum(np.sqrt(quotient(np.array(along), np.array(max(noise, dropped)))), FAR_ABOVE)
    smallest = float(np.sqrt(quotient(min(sizes), max(sizes))))
    return Untold(float(np.sqrt(quotient(left, min(sizes)))), tuple(above.tolist()), smallest)


def _beyond_noise(places: np.ndarray, samples: np.ndarray) -> tuple[float, float]:
    """Return the largest variance that linear fits leave beyond noise, and the largest of noise.

    Of few samples, the variance is larger in some direction by chance: Gaussian noise with the
    variances of all neighbourhoods together tells how much larger than in the second direction.
    Medians over the neighbourhoods, as tails of noise would dominate a mean.

    Shapes: places (m, k, c), samples (m, k, p).
    """
    places = places - places.mean(axis=1, keepdims=True)
    samples = samples - samples.mean(axis=1, keepdims=True)
    basis, strengths, _ = np.linalg.svd(places, full_matrices=False)
    # Places on a curve extend in fewer directions than they have columns.
    extends = strengths > 0.05 * strengths[:, :1]
    basis = basis * extends[:, None, :]
    rest = samples - basis @ (basis.transpose(0, 2, 1) @ samples)
    freedom = places.shape[1] - 1 - extends.sum(axis=1)
    first, second = np.median(_two_largest(rest) / freedom[:, None], axis=0)
    squares = (rest**2).sum(axis=(1, 2))
    together = (quotient(rest, np.sqrt(squares)[:, None, None])).reshape(-1, rest.shape[2])
    axes = np.linalg.eigvalsh(together.T @ together)[::-1]
    # A hidden direction is no noise. The variances of noise that grows by column fall steadily.
    axes[0] = min(axes[0], 2 * axes[1] - axes[2]) if len(axes) > 2 else axes[-1]
    axes = np.maximum(axes, 0)
    drawn = np.random.default_rng(0).normal(size=(len(places), int(np.median(freedom)), len(axes)))
    of_noise = np.median(_two_largest(drawn * np.sqrt(axes)), axis=0) / drawn.shape[1]
    excess = first - second * quotient(*of_noise)
    return float(excess), float(second * quotient(axes[0], of_noise[1]))


def _two_largest(rest: np.ndarray) -> np.ndarray:
    """The two largest sums of squares along a direction, (m, 2), of samples (m, k, p)."""
    turned = rest.transpose(0, 2, 1)
    small = rest @ turned if rest.shape[1] < rest.shape[2] else turned @ rest
    values = np.linalg.eigvalsh(small)[:, ::-1]
    return np.c_[values, np.zeros(len(rest))][:, :2]


def told_of_pieces(places: Sequence[np.ndarray], label: np.ndarray) -> float:
    """Return the least R^2 with which a factor, or all of them, predict a piece of the samples."""
    pieces = np.eye(label.max() + 1)[label]
    # Neighbours on all factors together lie far off on each: a factor of classes is seen alone.
    known = [*places, np.hstack(places)]
    return float(max(statistics.predictability(each, pieces).min() for each in known))
