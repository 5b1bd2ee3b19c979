"""Coordinates in which the Laplacian separates, where lengths along one depend on another.

On an annulus, a cone or an ellipse every eigenfunction is a product of functions of single
coordinates, although the data are not a product. The directions of these coordinates, the web, are
eigenvectors of a Killing tensor. Functions that vary along one of them only are the factors; where
a circle shrinks to a point or is sewn to itself, as at the centre of a disc and between the foci of
an ellipse, its angle is no such function, but eigenfunctions divided by their size at each place on
the other factor tell it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from manifactor._support.errors import NothingFoundError
from manifactor._support.threads import map_threads
from manifactor.factoring.commuting import killing_tensors
from manifactor.factoring.factor import Factor, make_factors
from manifactor.factoring.factorization import Factorization
from manifactor.factoring.gradients.division import excess_in_halves
from manifactor.factoring.gradients.geometry import (
    Geometry,
    beside_constant,
    measure_geometry,
    smooth_coordinates,
)
from manifactor.factoring.judging.criteria import CRITERIA, LOWEST_FUNCTIONS, judge
from manifactor.factoring.judging.evidence import Evidence
from manifactor.factoring.measures import Measurement, product
from manifactor.factoring.methods import judge_places
from manifactor.factoring.prediction import predictability
from manifactor.spectral.diffusion import Diffusion, DiffusionSettings
from manifactor.spectral.neighbors import chosen
from manifactor.spectral.pipeline import diffuse
from manifactor.spectral.spectrum import Spectrum

# Samples at which fields are compared: sums over fewer add their own error to mu, .006 at 1,000 of
# 3,000 samples where all of them have .001.
N_ROWS = 10_000
# Functions of a half, more than fields are compared by.
FUNCTIONS_OF_HALF = 36
C, M = 10.0, 100


@dataclass(frozen=True)
class View:
    """A geometry with the coordinates that its gradients are taken in."""

    geometry: Geometry
    coordinates: np.ndarray  # (n_distinct, p)


@dataclass(frozen=True)
class Web:
    """Orthogonal directions of two coordinates, or groups of them, at the rows of a geometry."""

    axes: tuple[np.ndarray, ...]  # (n_rows, p, d): of each
    # (n_rows,): difference between the tensor's eigenvalues in both, the squared length of one of
    # them in units of the other
    gap: np.ndarray
    mu: Measurement  # how far the tensor fails to commute with the Laplacian


def find_separation(
    diffusion: Diffusion, n_asked: int | None, *, rng: np.random.Generator
) -> Factorization:
    """Find two factors in whose coordinates the Laplacian separates, and weigh them."""
    if diffusion.points is None:
        raise ValueError(
            "coordinates that separate are sought among samples; got a precomputed graph of "
            "distances. Pass samples, or leave `sense` at its default."
        )
    if n_asked not in (None, 2):
        raise NothingFoundError(f"two factors separate at most; {n_asked} were asked for.")
    whole, *halves = _views(diffusion, rng)
    web = find_web(whole, halves, max(2, round(diffusion.dimension)))
    weighed = []
    for factors in factor_web(whole.geometry, web, diffusion):
        weighed.append((factors, weigh(factors, web, diffusion)))
        if weighed[-1][1].verdict == "separable":
            break
    factors, evidence = min(weighed, key=lambda each: _shortcomings(each[1]))
    return Factorization(factors, evidence, diffusion)


def _shortcomings(evidence: Evidence) -> tuple[int, float]:
    """Number of failed tests, then the largest leakage; the less the better."""
    return len(evidence.failed), float(np.nanmax(evidence.leakage))


def _views(diffusion: Diffusion, rng: np.random.Generator) -> list[View]:
    """The whole diffusion, and two of halves of the samples, each with a graph of its own.

    The halves of the kernel on all samples would be noisier by ten times, not by two.
    """
    points = np.asarray(chosen(diffusion.points, diffusion.graph.distinct))
    order = rng.permutation(len(points))
    settings = DiffusionSettings(
        n_functions=min(FUNCTIONS_OF_HALF, len(points) // 4),
        preparation="none",
        n_jobs=diffusion.settings.n_jobs,
    )
    halves = [np.sort(half[:N_ROWS]) for half in np.array_split(order, 2)]
    parts = [diffusion.settled(), *(diffuse(points[half], settings, rng=rng) for half in halves)]

    def view(part: Diffusion, rng: np.random.Generator) -> View:
        samples = np.asarray(chosen(part.points, part.graph.distinct))
        geometry = measure_geometry(part.distinct, part.affinity, samples, n_rows=N_ROWS, rng=rng)
        return View(geometry, smooth_coordinates(part.distinct, samples))

    return map_threads(view, parts, rng.spawn(len(parts)))


def find_web(whole: View, halves: Sequence[View], dimension: int) -> Web:
    """Return the directions that separate best, and how well they do."""
    tensors, *in_halves = (killing_tensors(view.geometry, view.coordinates) for view in (whole, *halves))
    # The first tensor is the metric.
    mu = float(tensors.mu[1])
    noise = excess_in_halves(mu, [half.mu[1] for half in in_halves])
    frames = _tangents(whole.geometry, dimension)
    values, vectors = np.linalg.eigh(_on_tangents(tensors.at_rows(1), frames, whole.geometry))
    gaps = np.diff(values, axis=1)
    split = 1 + int(np.argmax(np.median(gaps, axis=0)))
    axes = frames @ vectors
    gap = values[:, split:].mean(axis=1) - values[:, :split].mean(axis=1)
    return Web((axes[:, :, :split], axes[:, :, split:]), gap, Measurement(mu, float(noise)))


def _tangents(geometry: Geometry, dimension: int) -> np.ndarray:
    """Orthonormal directions of the manifold at the rows, (n_rows, p, d)."""
    low = geometry.gradients[:, :, :20] / np.sqrt(geometry.eigenvalues[:20])
    outer = low @ low.transpose(0, 2, 1)
    averaged = (geometry.average @ outer.reshape(len(outer), -1)).reshape(outer.shape)
    return np.linalg.eigh(averaged)[1][:, :, -dimension:]


def _on_tangents(tensor: np.ndarray, frames: np.ndarray, geometry: Geometry) -> np.ndarray:
    """A tensor field as matrices in tangent frames, (n_rows, d, d)."""
    if tensor.shape[1] != frames.shape[1]:
        # Written in the gradients of the lowest functions.
        frames = geometry.gradients[:, :, : tensor.shape[1]].transpose(0, 2, 1) @ frames
    return frames.transpose(0, 2, 1) @ tensor @ frames


def factor_web(geometry: Geometry, web: Web, diffusion: Diffusion) -> Iterator[tuple[Factor, ...]]:
    """Yield factors of a web, made in several ways.

    Either both have functions of their own; or one of them has, the base, and the eigenfunctions
    that it does not explain, freed from it, tell the place on the other, the fibre; or one of them
    is a circle that is sewn to itself, whose own functions tell its cosine, and an eigenfunction
    that both do not explain tells the side.
    """
    spectrum = diffusion.spectrum
    pure = [beside_constant(pure_functions(geometry, web.axes[1 - b])) for b in range(2)]
    yield make_factors(spectrum, pure)
    weights = _flat_weights(web, geometry, diffusion)
    for base, axes in zip(pure, reversed(web.axes), strict=True):
        fibre = _unexplained(spectrum, [base[:, :1]], 1 + axes.shape[2])
        charted = [1, fibre.shape[1]]
        yield make_factors(spectrum, [base, fibre], charted=charted, chart_weights=weights)
    odd = _unexplained(spectrum, [block[:, :1] for block in pure], 1)
    if not odd.shape[1]:
        return
    for base, sewn in (pure, pure[::-1]):
        folded = np.hstack([sewn[:, :1], odd])
        yield make_factors(spectrum, [base, folded], charted=[1, 2], folded=1)


def pure_functions(geometry: Geometry, others: np.ndarray) -> np.ndarray:
    """Return the lowest functions with the least energy along other directions.

    They need not be eigenfunctions, but are combinations of them.

    Shapes: others (n_rows, p, d) -> (n_functions - 1, r).
    """
    along = others.transpose(0, 2, 1) @ geometry.gradients
    along *= np.sqrt(geometry.row_weights)[:, None, None]
    along = along.reshape(-1, along.shape[2])
    energy = along.T @ along
    if M < len(energy):
        energy[M:] = 0; energy[:, M:] = 0; energy[range(M, len(energy)), range(M, len(energy))] = 1e6
    functions = np.linalg.eigh(np.diag(geometry.eigenvalues) + C * energy)[1][:, :12]
    own = geometry.rayleigh(functions)
    leak = (functions * (energy @ functions)).sum(axis=0) / own
    clean = leak < max(4 * leak.min(), 0.02)
    ascending = np.argsort(own[clean])
    return functions[:, clean][:, ascending]


def _unexplained(spectrum: Spectrum, known: Sequence[np.ndarray], count: int) -> np.ndarray:
    """The lowest eigenfunctions that known functions do not predict, as coefficients."""
    values = spectrum.combined(np.hstack(known))
    predicted = predictability(values / values.std(axis=0), spectrum.functions[:, 1:16])
    which = 1 + np.flatnonzero(predicted < 0.5)[:count]
    return np.eye(len(spectrum.eigenvalues))[:, which]


def _flat_weights(web: Web, geometry: Geometry, diffusion: Diffusion) -> np.ndarray:
    """Weights under which places on two separating coordinates are independent.

    The area is the gap times the product of the coordinates' own lengths.
    """
    points = chosen(diffusion.points, diffusion.graph.distinct)
    nearest = KDTree(points[geometry.rows]).query(points)[1]
    gap = np.maximum(web.gap, 0.1 * np.median(web.gap))[nearest]
    weights = diffusion.spectrum.weights / gap[diffusion.graph.inverse]
    return weights / weights.sum()


def weigh(factors: Sequence[Factor], web: Web, diffusion: Diffusion) -> Evidence:
    """Return the evidence on factors of a web."""
    inliers = ~diffusion.graph.outliers
    lowest = diffusion.spectrum.functions[:, 1 : 1 + LOWEST_FUNCTIONS]
    leaks = product.leakage(factors)
    numbers: dict[str, float | Measurement] = {
        "commutator": web.mu,
        "warp": float(np.std(np.log(np.maximum(web.gap, 0.02 * np.median(web.gap))))),
        "explained": product.explained(factors, diffusion.points, inliers),
        "lowest functions": product.explained(factors, lowest, inliers),
        "leakage": float(np.nanmax(leaks)),
    }
    of_places = judge_places(factors, diffusion.points, inliers=inliers, sense="separable")
    tests = judge(numbers, strict=True) + of_places
    return Evidence(tests, leakage=leaks, sense="separable")
