"""Random factoring problems: products, near-products or irreducible shapes."""

from dataclasses import dataclass

import numpy as np

from manifactor.datasets.kinds import draw_shape
from manifactor.datasets.problem_settings import EVEN_PROBLEMS, ProblemSettings
from manifactor.datasets.products import Truth
from manifactor.datasets.sampling import rotated_into

__all__ = ["EVEN_PROBLEMS", "Problem", "ProblemSettings", "random_problem"]


@dataclass(frozen=True)
class Problem:
    """Samples and the truth behind them.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
    truth : tuple of ndarray of shape (n_samples, c_i)
        One for each true factor; an irreducible shape has one.
    description : str
    kind : str
        A key of `KINDS`, or "irreducible".
    product : bool
        Whether the verdict "product" is right: there are several true factors, and the
        samples fill their product. It is wrong of an irreducible shape, and of a
        near-product, which has two true factors all the same.
    """

    X: np.ndarray
    truth: Truth
    description: str
    kind: str
    product: bool


def random_problem(seed: int, *, settings: ProblemSettings = ProblemSettings()) -> Problem:
    """Return problem number `seed`, with 1 to 3 factors and 800 to 6000 samples.

    A quarter of the problems are irreducible. The others are products of intervals,
    circles and spheres, with even, Gaussian or other soft densities, with wells, with a
    gap, with a weak factor or with a warped metric; or they are near-products. Half of
    the problems have noise, of up to a fortieth of the smallest factor. The shape is
    rotated into up to 20 dimensions (images are not) and scaled by a power of ten.

    ``settings=EVEN_PROBLEMS`` draws even products and the simplest irreducible shapes
    only.

    Parameters
    ----------
    seed : int
    settings : ProblemSettings
    """
    rng = np.random.RandomState(seed)
    fewest, most = np.log(settings.n_samples)
    n = int(np.exp(rng.uniform(fewest, most)))
    drawn = draw_shape(rng, settings)
    X, truth = drawn.shape(n, rng)
    X = _rotated(X, rng, settings)
    largest_noise = drawn.smallest_extent / settings.extent_over_noise
    noise = largest_noise * rng.choice([0.0, rng.uniform()])
    scale = 10 ** rng.uniform(-settings.largest_exponent, settings.largest_exponent)
    if noise:
        X = X + rng.normal(scale=noise, size=X.shape)
    description = f"{drawn.name}, n = {n}, noise {noise:.3f}, in R^{X.shape[1]}, times {scale:.1e}"
    return Problem(scale * X, truth, description, drawn.kind, drawn.product)


def _rotated(X: np.ndarray, rng, settings: ProblemSettings) -> np.ndarray:
    """Return the samples in a random subspace of a larger space, unless it is small."""
    room = settings.largest_ambient_dimension - X.shape[1]
    if room < 0:
        return X
    dimension = X.shape[1] + rng.randint(0, room + 1)
    return rotated_into(X, dimension, rng)
