"""Parts that random problems are made of: curves and surfaces with places that may depend.

>>> source = Source(500, np.random.RandomState(0))
>>> drawn = product_of([curve(source, u) for u in source.places(2)])
>>> len(drawn.truths[0]), drawn.is_product
(2, True)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import ndtr, ndtri
from scipy.stats import beta

from manifactor.datasets.products import Truth, ring


@dataclass(frozen=True)
class Source:
    """Where a problem is drawn from: how many samples, random numbers, dependence of places."""

    n: int
    rng: np.random.RandomState
    dependence: float = 0.0  # correlation of the Gaussians behind any two places

    def places(self, count: int) -> np.ndarray:
        """Draw places from 0 to 1 on so many factors, (count, n), by a Gaussian copula."""
        own, shared = self.rng.normal(size=(count, self.n)), self.rng.normal(size=self.n)
        return ndtr(np.sqrt(1 - self.dependence) * own + np.sqrt(self.dependence) * shared)

    def count(self) -> int:
        """Draw a number of factors: two, seldom three or four."""
        return int(self.rng.choice([2, 3, 4], p=(0.65, 0.27, 0.08)))

    def between(self, low: float, high: float) -> float:
        """Draw a positive number of which the logarithm is even."""
        return float(np.exp(self.rng.uniform(*np.log((low, high)))))


@dataclass(frozen=True)
class Part:
    """Points of one factor and its truth; finer ones, if the factor itself has coordinates."""

    name: str
    columns: np.ndarray  # (n, c)
    truth: np.ndarray  # (n, d)
    finer: Truth = ()


@dataclass(frozen=True)
class Drawn:
    """Samples without noise, truths that are each right, and what kind they are of.

    A single truth, the samples, says that one factor is a right answer.
    """

    X: np.ndarray
    truths: Sequence[Truth]
    member: str
    # Whether "product" is the right verdict: of lengths, of densities, or as a sum
    is_product: bool = False
    size: float = 0.0  # deviation of the smallest factor's part of the samples; 0 if not known
    is_noisy: bool = False  # whether there is noise already

    @property
    def smallest(self) -> float:
        """Deviation of the smallest factor, estimated where it is not known."""
        spread = np.sqrt(self.X.var(axis=0).sum())
        return self.size or float(spread / np.sqrt(max(2, *map(len, self.truths))))


def quantiles(density: Callable[[np.ndarray], np.ndarray], u: np.ndarray) -> np.ndarray:
    """Return the places from 0 to 1 below which shares `u` of a density lie."""
    grid = np.linspace(0, 1, 2001)
    below = np.r_[0, np.cumsum(density((grid[1:] + grid[:-1]) / 2))]
    return np.interp(u, below / below[-1], grid)


def uneven_places(source: Source, u: np.ndarray) -> tuple[str, np.ndarray]:
    """Return places of a random density: one or several peaks, a gap, or a fall to one end."""
    rng = source.rng
    peaks, steep, at = rng.randint(1, 4), rng.uniform(0.3, 2.5), rng.uniform()
    start, width = rng.uniform(0.2, 0.6), rng.uniform(0.04, 0.2)
    a, b = rng.uniform(1, 5, size=2)
    laws: dict[str, Callable[[], np.ndarray]] = {
        "peaks": lambda: quantiles(
            lambda x: np.exp(steep * np.cos(2 * np.pi * (peaks * x - at))), u
        ),
        "gap": lambda: quantiles(lambda x: 1.0 - ((x > start) & (x < start + width)), u),
        "beta": lambda: beta.ppf(u, a, b),
    }
    law = str(rng.choice(list(laws)))
    return law, laws[law]()


CURVES = ("interval", "circle", "normal", "uneven interval", "uneven circle", "bent", "closed bent")
CURVE_SHARES = (0.25, 0.25, 0.1, 0.12, 0.12, 0.08, 0.08)


def curve(source: Source, u: np.ndarray, *, kinds: Sequence[str] = CURVES) -> Part:
    """Draw a curve, at places, with a length of 1 to 6, or as far to the other side of a circle."""
    rng, size = source.rng, source.between(1, 6)
    shares = np.array([CURVE_SHARES[CURVES.index(kind)] for kind in kinds])
    kind = str(rng.choice(list(kinds), p=shares / shares.sum()))
    if kind == "normal":
        z = ndtri(u)[:, None]
        return Part(kind, size / 4 * z, z)
    name = kind
    if kind.startswith("uneven"):
        law, u = uneven_places(source, u)
        name = f"{kind} ({law})"
    closed = "circle" in kind or "closed" in kind
    angle = 2 * np.pi * u if closed else np.pi * u
    if "bent" in kind:
        columns = bent(rng, closed=closed)(angle)
        columns *= size / 3 / np.sqrt(columns.var(axis=0).sum())
    else:
        columns = size / np.pi * ring(angle) if closed else size * u[:, None]
    return Part(name, columns, ring(angle) if closed else u[:, None])


def bent(rng, *, closed: bool) -> Callable[[np.ndarray], np.ndarray]:
    """Draw a curve in two or three columns that keeps apart from itself."""
    c = int(rng.choice([2, 2, 3]))
    numbers = np.arange(1, 4)
    steps = np.linspace(0, 2 * np.pi if closed else np.pi, 100)
    while True:
        waves = rng.normal(size=(3, 2, c)) * np.array([1.0, 0.3, 0.1])[:, None, None]

        def at(t: np.ndarray, waves=waves) -> np.ndarray:
            angles = np.outer(t, numbers)
            return np.cos(angles) @ waves[:, 0] + np.sin(angles) @ waves[:, 1]

        points = at(steps)
        apart = np.abs(steps[:, None] - steps)
        far = np.minimum(apart, 2 * np.pi - apart if closed else np.pi) > 1
        if (cdist(points, points)[far] > 0.5 * np.sqrt(points.var(axis=0).sum())).all():
            return at


def surface(source: Source, u: np.ndarray) -> Part:
    """Draw a disc, a sphere or a torus of revolution, of which one coordinate is at places."""
    rng, size = source.rng, source.between(1, 4)
    name = str(rng.choice(["disc", "sphere", "torus"]))
    angle = 2 * np.pi * rng.uniform(size=source.n)
    around = ring(angle)
    if name == "disc":
        radius = np.sqrt(u)[:, None]
        return Part(name, size / 2 * radius * around, radius * around, (radius, around))
    if name == "sphere":
        points = np.c_[np.sqrt(4 * u * (1 - u))[:, None] * around, 2 * u - 1]
        return Part(name, size / np.pi * points, points)
    tube, thin = ring(2 * np.pi * u), rng.uniform(0.3, 0.6)
    points = np.c_[(1 + thin * tube[:, :1]) * around, thin * tube[:, 1]]
    return Part(name, size / 2 * points, points, (around, tube))


def truths_of(parts: Sequence[Part]) -> list[Truth]:
    """Return the truths of parts: one factor each, or finer."""
    truths: list[Truth] = [tuple(part.truth for part in parts)]
    if any(part.finer for part in parts):
        truths.append(sum(((part.finer or (part.truth,)) for part in parts), ()))
    return truths


def names_of(parts: Sequence[Part]) -> str:
    """Return the names of parts, in an order that does not depend on the draw."""
    return " x ".join(sorted(part.name for part in parts))


def product_of(parts: Sequence[Part]) -> Drawn:
    """Return the product of parts, each in columns of its own."""
    sizes = [np.sqrt(part.columns.var(axis=0).sum()) for part in parts]
    X = np.hstack([part.columns for part in parts])
    return Drawn(X, truths_of(parts), names_of(parts), True, float(min(sizes)))


def mapped(
    parts: Sequence[Part],
    f: Callable[[np.ndarray], np.ndarray],
    rng: np.random.RandomState,
    *,
    member: str = "",
    is_product: bool = False,
    may_be_one: bool = False,
) -> Drawn:
    """Return a product behind a map; with `may_be_one`, one factor is a right answer, too."""
    blocks = [part.columns for part in parts]
    X = f(np.hstack(blocks))
    # How far samples move, in the mean, when one factor moves alone.
    some, other = rng.choice(len(X), size=(2, min(len(X), 500)))
    sizes = []
    for k, block in enumerate(blocks):
        moved = [block[other] if j == k else each[some] for j, each in enumerate(blocks)]
        sizes.append(np.sqrt(((f(np.hstack(moved)) - X[some]) ** 2).sum(axis=1).mean() / 2))
    truths = [*([(X,)] if may_be_one else []), *truths_of(parts)]
    said = ", ".join(filter(None, [names_of(parts), member]))
    return Drawn(X, truths, said, is_product, float(min(sizes)))


def one_factor(X: np.ndarray, member: str, *finer: Truth) -> Drawn:
    """Return samples that are one factor, unless a finer truth is right, too."""
    return Drawn(X, [(X,), *finer], member)
