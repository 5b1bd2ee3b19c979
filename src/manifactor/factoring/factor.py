"""One factor: its functions, its shape, and where every sample lies on it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.neighbors import NearestNeighbors

from manifactor.spectral.spectrum import Spectrum

MAX_CHART = 6  # functions an embedding may have
BALLS = 300  # neighbourhoods in which the dimension is measured
CHECKED = 2  # functions beyond the embedding's that vouch for a sample's place
REGRESSION_SAMPLES = 4000
REGRESSION_NEIGHBORS = 20


@dataclass(frozen=True)
class Factor:
    """One factor of the manifold.

    Attributes
    ----------
    functions : ndarray of shape (n_samples, n_functions)
        Functions that depend on this factor alone, ascending eigenvalue, mean square 1.
    eigenvalues : ndarray of shape (n_functions,)
        This factor's own spectrum.
    topology : "interval", "circle" or "other"
    dimension : int
        Intrinsic dimension.
    embedding : ndarray of shape (n_samples, n_coordinates)
        An interval's coordinate, a circle's cosine and sine, or the functions in `chart`.
    coordinate : ndarray of shape (n_samples,) or None
        Arc length from 0 to 1 on an interval, angle from 0 to 2 pi on a circle; None otherwise.
    confidence : ndarray of shape (n_samples,)
        From 0 to 1: how well the sample's place predicts the factor's other functions there; 0 if it has none.
    coefficients : ndarray of shape (n_spectrum_functions, n_functions)
        The functions as combinations of the spectrum's.
    chart : tuple of int
        Columns of `functions` that the place is read from.
    """

    functions: np.ndarray
    eigenvalues: np.ndarray
    topology: str
    dimension: int
    embedding: np.ndarray
    coordinate: np.ndarray | None
    confidence: np.ndarray
    coefficients: np.ndarray
    chart: tuple[int, ...]

    def place(self, spectrum_functions: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Embedding and coordinate of samples, given the spectrum's functions at them."""
        return PLACES[self.topology]((spectrum_functions @ self.coefficients)[:, self.chart])

    def __str__(self) -> str:
        shape = {"interval": "an interval", "circle": "a circle"}.get(self.topology)
        shape = shape or f"a {self.dimension}-dimensional shape"
        return f"{shape}, {len(self.eigenvalues)} functions, eigenvalues from {self.eigenvalues[0]:.4g}"


def make_factor(spectrum: Spectrum, coefficients: np.ndarray) -> Factor:
    """The factor whose functions are these combinations of the spectrum's, whatever method found them.

    Parameters
    ----------
    spectrum : Spectrum
    coefficients : ndarray of shape (n_spectrum_functions, n_functions)
        Unit columns.
    """
    eigenvalues = spectrum.eigenvalues @ coefficients**2
    order = np.argsort(eigenvalues, kind="stable")
    coefficients, eigenvalues = coefficients[:, order], eigenvalues[order]
    functions = spectrum.functions @ coefficients
    topology, chart = _shape(functions, eigenvalues)
    embedding, coordinate = PLACES[topology](functions[:, chart])
    return Factor(
        functions=functions,
        eigenvalues=eigenvalues,
        topology=topology,
        dimension=_dimension(embedding) if topology == "other" else 1,
        embedding=embedding,
        coordinate=coordinate,
        confidence=_confidence(embedding, np.delete(functions, chart, axis=1)[:, :CHECKED]),
        coefficients=coefficients,
        chart=chart,
    )


def selection(spectrum: Spectrum, indices) -> np.ndarray:
    """Coefficients that pick functions of a spectrum by their indices."""
    return np.eye(len(spectrum.eigenvalues))[:, np.asarray(indices, dtype=int)]


def residuals(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """What leave-one-out nearest-neighbour regression on `source` leaves of `target`, same shape as `target`."""
    k = min(REGRESSION_NEIGHBORS, len(source) - 1)
    near = NearestNeighbors(n_neighbors=k).fit(source).kneighbors(return_distance=False)
    return target - target[near].mean(axis=1)


def predictability(source: np.ndarray, target: np.ndarray) -> float:
    """R^2 with which places `source` predict `target`, the mean over its columns, at least 0.

    Long samples are thinned evenly. The mean of k neighbours has a k-th of the noise itself, which is taken into
    account: two independent arrays give 0, not -1/k.
    """
    thin = slice(None, None, -(-len(source) // REGRESSION_SAMPLES))
    source, target = source[thin], target[thin].reshape(len(source[thin]), -1)
    k = min(REGRESSION_NEIGHBORS, len(source) - 1)
    left = (residuals(source, target) ** 2).mean(axis=0) / (1 + 1 / k)
    return float(np.clip(1 - left / target.var(axis=0), 0, 1).mean())


def _place_on_interval(functions: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """The lowest function of an interval is sqrt(2) cos(pi t)."""
    t = np.arccos(np.clip(functions[:, 0] / np.sqrt(2), -1, 1)) / np.pi
    return t[:, None], t


def _place_on_circle(functions: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    angle = np.arctan2(functions[:, 1], functions[:, 0]) % (2 * np.pi)
    angle[angle == 2 * np.pi] = 0.0  # what % makes of an angle just below 0
    return np.column_stack([np.cos(angle), np.sin(angle)]), angle


def _place_elsewhere(functions: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    return functions, None


PLACES: dict[str, Callable] = {"interval": _place_on_interval, "circle": _place_on_circle, "other": _place_elsewhere}


def _shape(functions: np.ndarray, eigenvalues: np.ndarray) -> tuple[str, tuple[int, ...]]:
    """Topology, and the functions that tell places apart.

    On a circle the two lowest functions are a cosine and a sine: neither predicts the other, and their squares add up
    to a constant. On an interval the lowest predicts all others.
    """
    if functions.shape[1] > 1 and eigenvalues[1] < 2 * eigenvalues[0]:
        radius = np.hypot(functions[:, 0], functions[:, 1])
        independent = predictability(functions[:, :1], functions[:, 1]) < 0.5
        if independent and radius.std() < 0.18 * radius.mean():
            return "circle", (0, 1)
    chart = [0]
    for j in range(1, functions.shape[1]):
        if len(chart) < MAX_CHART and predictability(functions[:, chart], functions[:, j]) < 0.7:
            chart.append(j)
    return ("interval", (0,)) if len(chart) == 1 else ("other", tuple(chart))


def _dimension(embedding: np.ndarray) -> int:
    """Directions in which a ball of .3 of the cloud's radius extends: those with a tenth of its variance or more."""
    radius = 0.3 * np.sqrt(embedding.var(axis=0).sum())
    centres = embedding[:: -(-len(embedding) // BALLS)]
    balls = NearestNeighbors(radius=radius).fit(embedding).radius_neighbors(centres, return_distance=False)
    spreads = [np.linalg.eigvalsh(np.cov(embedding[ball].T)) for ball in balls if len(ball) > embedding.shape[1]]
    if not spreads:
        return embedding.shape[1]
    share = np.median([spread / spread.sum() for spread in spreads], axis=0)
    return max(1, int((share > 0.1).sum()))


def _confidence(embedding: np.ndarray, others: np.ndarray) -> np.ndarray:
    if not others.shape[1]:
        return np.zeros(len(embedding))
    return np.clip(1 - (residuals(embedding, others) ** 2).mean(axis=1), 0, 1)
