"""A wide mixture of random problems, which the probability of results is learnt from.

>>> problem = draw(1)
>>> problem.family in FAMILIES, len(problem.X) == len(problem.truth[0])
(True, True)

Beside the random problems of the calibration there are all families of shapes, products through
random maps, sums of curves in few columns, tails of noise, spikes, counts and single curves, each
of 300 to 3,000 samples.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from manifactor import datasets
from manifactor.datasets.products import Interval, Truth, circle, normal, product, uneven, von_mises
from manifactor.datasets.sampling import rotated_into
from manifactor.datasets.shapes import SIDES_AT_60_DEGREES
from studies import families

N_SAMPLES = (300, 3000)
# Samples, truths that are each right, and the member of the family.
Drawn = tuple[np.ndarray, Sequence[Truth], str]


@dataclass(frozen=True)
class Problem:
    """Samples, the family that they were drawn from, and which of it.

    What is not a product has two right answers: one factor, the samples, and the coordinates that
    separate, or those of a product that a map has bent. The first of them is the truth.
    """

    X: np.ndarray
    truths: tuple[Truth, ...]
    family: str
    member: str

    @property
    def truth(self) -> Truth:
        """The true factors."""
        return self.truths[0]


def draw(seed: int, *, family: str | None = None, n_samples: int | None = None) -> Problem:
    """Draw problem number `seed`, of a random family or of one, with as many samples as asked for.

    Problems of the calibration have 6,000 samples at most.
    """
    rng = np.random.RandomState(seed)
    names, shares = zip(*((name, share) for name, (share, _) in FAMILIES.items()), strict=True)
    drawn = str(rng.choice(names, p=np.array(shares) / sum(shares)))
    usual = round(np.exp(rng.uniform(*np.log(N_SAMPLES))))
    n = n_samples or usual
    X, truths, member = FAMILIES[family or drawn][1](n, rng)
    columns = [tuple(np.asarray(t).reshape(n, -1) for t in truth) for truth in truths]
    return Problem(X, tuple(columns), family or drawn, member)


def _of_calibration(n: int, rng) -> Drawn:
    """Draw a problem of the calibration: products of all kinds, near-products, irreducible ones."""
    while True:
        problem = datasets.random_problem(int(rng.randint(2**31)))
        if len(problem.X) >= n:
            break
    truths = [problem.truth, *problem.coordinates]
    if problem.description.startswith("parallelogram"):
        # A sum along two sides.
        truths.append(_sides(problem.truth[0] @ np.linalg.inv(SIDES_AT_60_DEGREES)))
    return problem.X[:n], [[t[:n] for t in truth] for truth in truths], problem.kind


def _of_families(group: str, n: int, rng) -> Drawn:
    """Draw a shape of a group, even or not, with noise of up to a twentieth of its size."""
    names = families.SYMMETRIC if group == "symmetric" else families.FAMILIES[group]
    # Bodies of revolution are symmetric, too, but have coordinates that separate.
    names = [name for name in names if group != "symmetric" or name not in BODIES]
    density = rng.choice(list(families.DENSITIES), p=(0.6, 0.25, 0.15))
    name = str(rng.choice(names))
    X, truth = families.draw(group, name, n, density=density, random_state=rng)
    found = truth.circles if isinstance(truth, families.Symmetry) else truth
    if name in NEARLY:
        found = NEARLY[name](X)
    # None of these is a product.
    truths = [(X,), found] if len(found) > 1 else [(X,)]
    return _rotated(_with_noise(X, rng), rng), truths, name


def _sides(X: np.ndarray) -> Truth:
    return X[:, [0]], X[:, [1]]


def _angles(X: np.ndarray) -> Truth:
    """Return the angles of a torus of radius 1 around the third axis."""
    away = np.hypot(X[:, 0], X[:, 1])
    tube = np.c_[away - 1, X[:, 2]]
    return X[:, :2] / away[:, None], tube / np.linalg.norm(tube, axis=1)[:, None]


def _axes(X: np.ndarray) -> Truth:
    """Return the coordinates along the main axes."""
    return _sides(X @ np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2].T)


# Shapes that are nearly products, and their factors.
NEARLY: dict[str, Callable[[np.ndarray], Truth]] = {
    "stadium": _sides,
    "peanut": _axes,
    "holed_rectangle": _sides,
    "bumpy_sheet": _sides,
    "bumpy_torus": _angles,
}


def _with_noise(X: np.ndarray, rng, *, most: float = 0.05) -> np.ndarray:
    size = np.sqrt(X.var(axis=0).sum())
    return X + rng.normal(scale=size * rng.choice([0.0, rng.uniform(0, most)]), size=X.shape)


def _rotated(X: np.ndarray, rng) -> np.ndarray:
    room = max(0, 12 - X.shape[1])
    return rotated_into(X, X.shape[1] + rng.randint(0, room + 1), rng)


def _parts(n: int, rng, count: int | None = None) -> list[tuple[np.ndarray, np.ndarray]]:
    """Draw intervals and circles, even or not, as columns and truth."""
    choices: Sequence[Callable[[float], object]] = [
        lambda size: Interval(size),
        lambda size: circle(size / np.pi),
        lambda size: normal(size / 4),
        lambda size: uneven(circle(size / np.pi), von_mises(1.0)),
    ]
    count = count or 2 + int(rng.uniform() < 0.3)
    drawn = [
        choices[rng.choice(4, p=(0.35, 0.35, 0.15, 0.15))](np.exp(rng.uniform(0, 1)))
        for _ in range(count)
    ]
    samples = [product(part)(n, rng) for part in drawn]
    return [(X, truth[0]) for X, truth in samples]


def _through_maps(n: int, rng) -> Drawn:
    """Draw a product and send it through a random smooth map, gentle or wild."""
    columns, truth = zip(*_parts(n, rng), strict=True)
    X = np.hstack(columns)
    X = (X - X.mean(axis=0)) / X.std()
    p = X.shape[1]
    width = rng.randint(p, 10)
    strength = rng.uniform(0.1, 1.5)
    hidden = np.tanh(strength * X @ rng.normal(size=(p, 30)) + rng.normal(size=30))
    if rng.uniform() < 0.5:
        # A shift of every sample, which keeps neighbours apart where it is small.
        X = X + 0.15 * hidden @ rng.normal(size=(30, p))
        return _with_noise(X, rng, most=0.02), [truth], "near"
    X = hidden @ rng.normal(size=(30, max(width, p + 2)))
    return _with_noise(X, rng, most=0.02), [(X,), truth], "far"


def _curve(rng, *, closed: bool) -> Callable[[np.ndarray], np.ndarray]:
    """Draw a curve in two or three columns that keeps apart from itself."""
    c = int(rng.choice([2, 2, 3]))
    numbers = np.arange(1, 4)
    steps = np.linspace(0, 2 * np.pi if closed else np.pi, 100)
    while True:
        waves = rng.normal(size=(3, 2, c)) * np.array([1.0, 0.3, 0.1])[:, None, None]

        def curve(t: np.ndarray, waves=waves) -> np.ndarray:
            angles = np.outer(t, numbers)
            return np.cos(angles) @ waves[:, 0] + np.sin(angles) @ waves[:, 1]

        points = curve(steps)
        apart = np.abs(steps[:, None] - steps)
        far = np.minimum(apart, 2 * np.pi - apart if closed else np.pi) > 1
        if (cdist(points, points)[far] > 0.5 * np.sqrt(points.var(axis=0).sum())).all():
            return curve


def _sums(n: int, rng) -> Drawn:
    """Draw a sum of curves in few columns; two of them may lie in one plane, nearly."""
    count = int(rng.choice([2, 2, 3, 4]))
    p = int(rng.randint(count + 1, 11))
    flat = count == 2 and rng.uniform() < 0.3
    height = rng.uniform(0.05, 0.3)
    X = np.zeros((n, p))
    truth = []
    for number in range(count):
        closed = rng.uniform() < 0.6
        t = rng.uniform(0, 2 * np.pi if closed else np.pi, size=n)
        columns = np.c_[np.cos(t), np.sin(t)]
        if not flat and rng.uniform() < 0.5:
            columns = _curve(rng, closed=closed)(t)[:, :p]
        axes = np.linalg.qr(rng.normal(size=(p, columns.shape[1])))[0].T
        if flat:  # the second of two circles is tilted a little
            axes = np.eye(p)[:2] + number * height * np.eye(p)[[2, 2]] * [[1], [0]]
        X += rng.uniform(0.4, 1.6) * columns @ axes
        truth.append(np.c_[np.cos(t), np.sin(t)] if closed else t[:, None])
    member = f"{count} terms{' near a plane' if flat else ''}"
    return _with_noise(X, rng, most=0.03), [truth], member


def _tails(n: int, rng) -> Drawn:
    """Draw a product with noise of Student's t with 2 to 5 degrees of freedom."""
    columns, truth = zip(*_parts(n, rng), strict=True)
    X = _rotated(np.hstack(columns), rng)
    scale = np.sqrt(X.var(axis=0).sum()) * rng.uniform(0.003, 0.02)
    freedom = rng.choice([2, 3, 5])
    return X + scale * rng.standard_t(freedom, size=X.shape), [truth], f"t({freedom})"


def _spikes(n: int, rng) -> Drawn:
    """Draw periodic signals with narrow peaks, each in columns of its own."""
    blocks, truth = [], []
    for _ in range(2):
        phase = rng.uniform(0, 2 * np.pi, size=n)
        delays = np.linspace(0, 2 * np.pi, rng.randint(3, 12), endpoint=False)
        sharpness = np.exp(rng.uniform(-1, 3))
        blocks.append(np.exp(sharpness * (np.cos(phase[:, None] - delays) - 1)))
        truth.append(np.c_[np.cos(phase), np.sin(phase)])
    return _with_noise(np.hstack(blocks), rng, most=0.03), [truth], "two signals"


def _counts(n: int, rng) -> Drawn:
    """Draw counts in channels, of peaks that move or grow each on its own."""
    channels = np.linspace(0, 1, rng.randint(15, 50))
    rates, truth = np.full((n, len(channels)), 0.5), []
    centres = (np.arange(2) + 0.5) / 2
    for centre in centres:
        t = rng.uniform(-1, 1, size=n)
        width = rng.uniform(0.05, 0.12)
        moves = rng.uniform() < 0.5
        at = centre + 0.12 * t if moves else np.full(n, centre)
        height = np.ones(n) if moves else np.exp(t)
        rates += height[:, None] * np.exp(-0.5 * ((channels - at[:, None]) / width) ** 2)
        truth.append(t[:, None])
    return rng.poisson(rates * np.exp(rng.uniform(2, 6))).astype(float), [truth], "two peaks"


def _one_curve(n: int, rng) -> Drawn:
    """Draw one closed or open curve."""
    closed = rng.uniform() < 0.5
    t = rng.uniform(0, 2 * np.pi if closed else np.pi, size=n)
    X = _rotated(_curve(rng, closed=closed)(t), rng)
    truth = np.c_[np.cos(t), np.sin(t)] if closed else t[:, None]
    return _with_noise(X, rng), [(truth,)], "closed" if closed else "open"


def _group(name: str) -> Callable[..., Drawn]:
    return lambda n, rng: _of_families(name, n, rng)


BODIES = ("vase", "prolate", "torus", "frustum")
# The share of each family, in percent, and how its problems are drawn.
FAMILIES: dict[str, tuple[int, Callable[..., Drawn]]] = {
    "calibration": (50, _of_calibration),
    "separable 2-D": (8, _group("separable 2-D")),
    "separable 3-D": (4, _group("separable 3-D")),
    "symmetric": (3, _group("symmetric")),
    "irreducible": (8, _group("irreducible")),
    "twisted": (3, _group("twisted")),
    "maps": (5, _through_maps),
    "sums": (8, _sums),
    "tails": (4, _tails),
    "spikes": (2, _spikes),
    "counts": (2, _counts),
    "one curve": (3, _one_curve),
}
