"""Families of random problems: products behind maps, sums, classes, images, and no products.

Each is a function of a `Source`. Parameters are drawn from wide ranges, not from a grid.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
from sklearn import datasets as tables

from manifactor import datasets
from manifactor.datasets.products import Truth, ring
from manifactor.datasets.sampling import rotated_into
from manifactor.datasets.shapes import SIDES_AT_60_DEGREES, shifting, turning
from studies import families
from studies.parts import (
    Drawn,
    Part,
    Source,
    bent,
    curve,
    mapped,
    names_of,
    one_factor,
    product_of,
    surface,
)


def _curves(source: Source, count: int | None = None, **kinds) -> list[Part]:
    return [curve(source, u, **kinds) for u in source.places(count or source.count())]


# Products, as they are and behind maps.


def curves(source: Source) -> Drawn:
    """Draw a product of two to four curves."""
    return product_of(_curves(source))


def surfaces(source: Source) -> Drawn:
    """Draw a product of a surface with a curve, seldom with another surface."""
    first, second = source.places(2)
    other = surface if source.rng.uniform() < 0.2 else curve
    return product_of([surface(source, first), other(source, second)])


def linear(source: Source) -> Drawn:
    """Draw a product behind a linear map that changes lengths and angles: a sum."""
    parts, rng = _curves(source), source.rng
    p = sum(part.columns.shape[1] for part in parts)
    turned, back = (np.linalg.qr(rng.normal(size=(p, p)))[0] for _ in range(2))
    stretch = np.geomspace(1, source.between(1, 6), p)
    return mapped(parts, lambda X: X @ (turned * stretch) @ back, rng, is_product=True)


def gentle_maps(source: Source) -> Drawn:
    """Draw a product behind a smooth map that keeps neighbours."""
    parts, rng = _curves(source), source.rng
    p = sum(part.columns.shape[1] for part in parts)
    steep, strong = source.between(0.1, 1.0), source.between(0.03, 0.3)
    into, shift, out = rng.normal(size=(p, 30)), rng.normal(size=30), rng.normal(size=(30, p))
    return mapped(
        parts, lambda X: X + strong * np.tanh(steep * X @ into + shift) @ out / np.sqrt(p), rng
    )


def wild_maps(source: Source) -> Drawn:
    """Draw a product behind a random smooth map, which may bend it beyond recognition."""
    parts, rng = _curves(source), source.rng
    p = sum(part.columns.shape[1] for part in parts)
    into = source.between(0.1, 1.0) * rng.normal(size=(p, 40))
    shift, out = rng.normal(size=40), rng.normal(size=(40, p + rng.randint(2, 10)))
    bend: Callable = (np.tanh, np.sin)[rng.randint(2)]
    return mapped(parts, lambda X: bend(X @ into + shift) @ out, rng, may_be_one=True)


def networks(source: Source) -> Drawn:
    """Draw a product behind a small random network."""
    parts, rng = _curves(source), source.rng
    widths = [sum(part.columns.shape[1] for part in parts)]
    widths += [int(rng.randint(8, 33)) for _ in range(rng.randint(1, 4))]
    gain = source.between(0.5, 2.5)
    layers = [
        (gain * rng.normal(size=(a, b)) / np.sqrt(a), 0.5 * rng.normal(size=b))
        for a, b in pairwise(widths)
    ]
    name = str(rng.choice(["tanh", "relu", "leaky"]))
    bend: dict[str, Callable] = {
        "tanh": np.tanh,
        "relu": lambda x: np.maximum(x, 0),
        "leaky": lambda x: np.maximum(x, 0.2 * x),
    }

    def f(X: np.ndarray) -> np.ndarray:
        for weights, shift in layers:
            X = bend[name](X @ weights + shift)
        return X

    return mapped(parts, f, rng, member=name, may_be_one=True)


def warps(source: Source) -> Drawn:
    """Draw a product of which every factor is bent by itself: still a product."""
    parts = []
    for part in _curves(source):
        strong = source.between(0.1, 1.5)
        X = part.columns / np.sqrt(part.columns.var(axis=0).sum())
        bend = (np.tanh, np.sinh, np.exp)[source.rng.randint(3)]
        lifted = np.c_[bend(strong * X) / strong, 0.3 * strong * X[:, :1] ** 2]
        parts.append(Part(part.name, source.between(0.5, 2) * lifted, part.truth))
    return product_of(parts)


# Orthogonal coordinates that are not lengths.


def inversions(source: Source) -> Drawn:
    """Draw a box in two to six dimensions, inverted in a sphere around a point outside."""
    rng = source.rng
    d = int(rng.choice([2, 3, 4, 5, 6], p=(0.3, 0.3, 0.2, 0.1, 0.1)))
    parts = _curves(source, d, kinds=("interval", "uneven interval"))
    X = np.hstack([part.columns for part in parts])
    away = rng.normal(size=d)
    reach = np.linalg.norm(X - X.mean(axis=0), axis=1).max()
    centre = X.mean(axis=0) + source.between(1.05, 3) * reach * away / np.linalg.norm(away)
    return mapped(parts, partial(_inverted, centre=centre, radius=2 * reach), rng)


def _inverted(X: np.ndarray, *, centre: np.ndarray, radius: float) -> np.ndarray:
    apart = X - centre
    return centre + radius**2 * apart / (apart**2).sum(axis=1, keepdims=True)


def complex_maps(source: Source) -> Drawn:
    """Draw a rectangle of the complex plane behind a conformal map."""
    parts, f, name = _conformal(source, source.places(2))
    return mapped(parts, f, source.rng, member=name)


def _conformal(source: Source, places: np.ndarray) -> tuple[list[Part], Callable, str]:
    rng, (u, v) = source.rng, places
    width, height = source.between(0.7, 2.0), source.between(0.7, 2.0)
    power, bend = source.between(0.4, 2.5), 0.3 * ring(rng.uniform(0, 2 * np.pi)) @ [1, 1j]
    maps: dict[str, Callable] = {
        "power": lambda z: (z + 0.3 + 1.1j * height) ** power,
        "exponential": np.exp,
        "bend": lambda z: z + bend * z**2,
        "inverse": lambda z: 1 / (z + 0.4 + 0.5j),
        "sine": lambda z: np.sin(z / 1.5 - width / 3),
        "tangent": lambda z: np.tanh(0.6 * z),
        "root": lambda z: np.sqrt(z + 0.2 + 1j),
    }
    name = str(rng.choice(list(maps)))
    sides = [
        Part("interval", size * x[:, None], x[:, None]) for size, x in ((width, u), (height, v))
    ]

    def f(X: np.ndarray) -> np.ndarray:
        z = maps[name](X[:, 0] + 1j * X[:, 1])
        return np.c_[z.real, z.imag]

    return sides, f, name


def orthogonal_maps(source: Source) -> Drawn:
    """Draw products of conformal maps with each other and with curves, in 3 to 6 dimensions."""
    rng = source.rng
    places = source.places(4)
    first, f, name = _conformal(source, places[:2])
    if rng.uniform() < 0.5:
        second, g, other = _conformal(source, places[2:])
        f_and_g = lambda X: np.c_[f(X[:, :2]), 1.5 * g(X[:, 2:])]  # noqa: E731
        return mapped([*first, *second], f_and_g, rng, member=f"{name} and {other}")
    third = curve(source, places[2])
    around = rng.uniform() < 0.5 and third.columns.shape[1] == 1
    if not around:
        return mapped([*first, third], lambda X: np.c_[f(X[:, :2]), X[:, 2:]], rng, member=name)
    # The plane as a half-plane that turns around an axis.
    angle = source.places(1)[0]
    turned = Part("circle", ring(2 * np.pi * angle), ring(2 * np.pi * angle))
    lowest = f(np.hstack([part.columns for part in first]))[:, 0].min()

    def revolve(X: np.ndarray) -> np.ndarray:
        plane = f(X[:, :2])
        return np.c_[(plane[:, :1] - lowest + 0.4) * X[:, 2:], plane[:, 1]]

    return mapped([*first, turned], revolve, rng, member=f"{name}, revolved")


# Sums.


def sums(source: Source) -> Drawn:
    """Draw a sum of curves in few columns; two of them may lie in one plane, nearly."""
    n, rng = source.n, source.rng
    count = int(rng.choice([2, 2, 3, 4]))
    p = int(rng.randint(count + 1, 11))
    flat = count == 2 and rng.uniform() < 0.3
    height = rng.uniform(0.05, 0.3)
    X = np.zeros((n, p))
    truth, sizes = [], []
    for number, u in enumerate(source.places(count)):
        closed = rng.uniform() < 0.6
        t = u * (2 * np.pi if closed else np.pi)
        columns = ring(t)
        if not flat and rng.uniform() < 0.5:
            columns = bent(rng, closed=closed)(t)[:, :p]
        axes = np.linalg.qr(rng.normal(size=(p, columns.shape[1])))[0].T
        if flat:  # the second of two circles is tilted a little
            axes = np.eye(p)[:2] + number * height * np.eye(p)[[2, 2]] * [[1], [0]]
        term = rng.uniform(0.4, 1.6) * columns @ axes
        X += term
        sizes.append(np.sqrt(term.var(axis=0).sum()))
        truth.append(ring(t) if closed else t[:, None])
    member = f"{count} terms{' near a plane' if flat else ''}"
    return Drawn(X, [tuple(truth)], member, True, float(min(sizes)))


def components(source: Source) -> Drawn:
    """Draw independent sources that are no Gaussians, mixed linearly."""
    parts, rng = _sources(source), source.rng
    mixed = rng.normal(size=(len(parts), len(parts) + int(rng.choice([0, 0, 2, 8]))))
    return mapped(parts, lambda X: X @ mixed, rng, is_product=True)


def bent_components(source: Source) -> Drawn:
    """Draw independent sources, mixed linearly and bent by tanh in every column."""
    parts, rng = _sources(source), source.rng
    mixed = rng.normal(size=(len(parts), len(parts) + rng.randint(0, 6)))
    mixed *= source.between(0.2, 1.5) / np.sqrt(len(parts))
    return mapped(parts, lambda X: np.tanh(X @ mixed), rng)


def _sources(source: Source) -> list[Part]:
    rng = source.rng
    laws: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "uniform": lambda u: u,
        "laplace": lambda u: np.sign(u - 0.5) * np.log(1 - 2 * np.abs(u - 0.5) + 1e-9),
        "exponential": lambda u: -np.log(1 - u + 1e-9),
        "two modes": lambda u: np.where(u < 0.5, 2 * u, 2 * u - 1) + 1.5 * (u > 0.5),
        "sawtooth": lambda u: u**2,
        "lognormal": lambda u: np.exp(0.7 * np.log(u / (1 - u + 1e-9) + 1e-9)),
    }
    parts = []
    for u in source.places(int(rng.choice([2, 3, 4, 5, 6], p=(0.4, 0.25, 0.15, 0.1, 0.1)))):
        name = str(rng.choice(list(laws)))
        values = laws[name](np.clip(u, 1e-6, 1 - 1e-6))[:, None]
        parts.append(Part(name, source.between(0.5, 2) * values / values.std(), values))
    return parts


# Classes, levels, and states that were seen several times.


def classes(source: Source) -> Drawn:
    """Draw two to five classes beside curves: near each other, or far apart."""
    rng = source.rng
    parts = _curves(source, int(rng.choice([1, 1, 2])))
    count = int(rng.randint(2, 6))
    label = rng.choice(count, size=source.n, p=rng.dirichlet(np.full(count, 8.0)))
    centres = rng.normal(size=(count, int(rng.randint(1, 4))))
    centres *= source.between(0.3, 6) / np.sqrt(centres.var(axis=0).sum())
    parts.append(Part(f"{count} classes", centres[label], np.eye(count)[label]))
    return product_of(parts)


def levels(source: Source) -> Drawn:
    """Draw curves of which one or all have 6 to 40 levels only, in a full grid or drawn."""
    rng, places = source.rng, source.places(2)
    few = [True, rng.uniform() < 0.5]
    counts = [int(source.between(6, 40)) for _ in places]
    if all(few) and rng.uniform() < 0.5:
        cells = rng.permutation(source.n) % (counts[0] * counts[1])
        places = np.array([cells % counts[0], cells // counts[0]]) / [[counts[0]], [counts[1]]]
    rounded = [
        np.floor(u * count) / count if is_few else u
        for u, count, is_few in zip(places, counts, few, strict=True)
    ]
    return product_of([curve(source, u, kinds=("interval", "circle", "bent")) for u in rounded])


def views(source: Source) -> Drawn:
    """Draw noisy latent columns, as of images, of an interval with an interval or a circle.

    Noise of a column grows with its number, and each state may be seen up to five times.
    """
    rng = source.rng
    times = int(rng.choice([1, 1, 2, 3, 5]))
    first, second = (np.repeat(u, times)[: source.n] for u in source.places(2))
    other = str(rng.choice(["interval", "circle"]))
    parts = [curve(source, first, kinds=("interval",)), curve(source, second, kinds=(other,))]
    Z = np.hstack([part.columns / part.columns.std() for part in parts])
    waves = source.between(0.15, 0.6) * rng.normal(size=(Z.shape[1], 200))
    hidden = np.cos(Z @ waves + rng.uniform(0, 2 * np.pi, size=200))
    left, strength, _ = np.linalg.svd(hidden - hidden.mean(axis=0), full_matrices=False)
    p = int(rng.randint(8, 31))
    X = left[:, :p] * strength[:p]
    low, high = np.sort(rng.uniform(0.1, 0.45, size=2))
    X += np.linspace(low, high, p) * X.std(axis=0) * rng.normal(size=X.shape)
    # Noise of every column as a share of it: columns of small ones count less.
    member = f"{names_of(parts)}, {times} of each"
    return Drawn(X, [tuple(part.truth for part in parts)], member, True, is_noisy=True)


def noisy_curves(source: Source) -> Drawn:
    """Draw one curve, closed or open, with noise in all of up to 30 columns."""
    return _noisy([curve(source, source.places(1)[0])], source)


def noisy_products(source: Source) -> Drawn:
    """Draw two curves, each state up to five times, with noise in all of up to 30 columns."""
    times = int(source.rng.choice([1, 1, 5]))
    places = [np.repeat(u, times)[: source.n] for u in source.places(2)]
    return _noisy([curve(source, u) for u in places], source)


def _noisy(parts: Sequence[Part], source: Source) -> Drawn:
    """Return a product with noise of .03 to .5 of its smallest part in every column."""
    rng, drawn = source.rng, product_of(parts)
    p = max(drawn.X.shape[1], int(rng.randint(2, 31)))
    X = rotated_into(drawn.X, p, rng) if p > drawn.X.shape[1] else drawn.X
    sizes = np.linspace(0.2, 1.8, p) if rng.uniform() < 0.4 else np.ones(p)
    smallest = min(np.sqrt(part.columns.var(axis=0).mean()) for part in parts)
    noise = rng.uniform(0.03, 0.5) * smallest * sizes / np.sqrt((sizes**2).mean())
    X = X + noise * rng.normal(size=X.shape)
    return replace(drawn, X=X, is_noisy=True, is_product=len(parts) > 1)


# Images, signals, counts.


def windows(source: Source) -> Drawn:
    """Draw windows of a photograph, whose places are two intervals."""
    rng = source.rng
    picture = tables.load_sample_image(str(rng.choice(["china.jpg", "flower.jpg"]))).mean(axis=2)
    size, step = int(rng.randint(10, 23)), int(rng.randint(1, 5))
    reach = rng.randint(20, 150, size=2)
    corner = [
        rng.randint(0, side - size * step - r) for side, r in zip(picture.shape, reach, strict=True)
    ]
    u, v = source.places(2)
    rows, columns = (corner[0] + u * reach[0]).astype(int), (corner[1] + v * reach[1]).astype(int)
    across = step * np.arange(size)
    X = picture[rows[:, None, None] + across[:, None], columns[:, None, None] + across]
    return one_factor(X.reshape(source.n, -1) / 64, "photograph", (u[:, None], v[:, None]))


def blobs(source: Source) -> Drawn:
    """Draw small pictures of one or two blobs that move."""
    rng = source.rng
    side = int(rng.randint(10, 23))
    pixels = np.stack(np.meshgrid(*[np.linspace(-1, 1, side)] * 2), axis=-1).reshape(-1, 2)
    width, u = source.between(0.15, 0.4), source.places(2)
    if rng.uniform() < 0.4:
        centres = [rng.uniform(0.4, 0.9) * (2 * u.T - 1)]
        truth: Truth = (u[0][:, None], u[1][:, None])
        name = "one blob on a rectangle"
    else:
        middles = rng.uniform(0.2, 0.6) * np.array([[1, 1], [-1, -1]])
        centres, kinds, found = [], [], []
        for middle, place in zip(middles, u, strict=True):
            closed = rng.uniform() < 0.5
            reach = rng.uniform(0.2, 0.4)
            path = ring(2 * np.pi * place) if closed else np.outer(2 * place - 1, (1, 0))
            centres.append(middle + reach * path)
            found.append(ring(2 * np.pi * place) if closed else place[:, None])
            kinds.append("circle" if closed else "interval")
        truth, name = tuple(found), f"two blobs: {' x '.join(sorted(kinds))}"
    bright = [1.0, source.between(0.3, 1)]
    X = sum(
        weight * np.exp(-((pixels - at[:, None]) ** 2).sum(axis=2) / (2 * width**2))
        for weight, at in zip(bright, centres, strict=False)
    )
    return Drawn(np.asarray(X), [truth], name, True)


def objects(source: Source) -> Drawn:
    """Draw pictures of objects that turn or shift, one of which may cover others."""
    rng, count = source.rng, int(source.rng.choice([2, 2, 3]))
    motions = [turning if rng.uniform() < 0.5 else shifting for _ in range(count)]
    scene = datasets.shapes.scene(
        motions, round(source.between(1, 20), 2), occluding=bool(rng.uniform() < 0.2)
    )
    X, truth = scene(min(source.n, 2500), rng)
    return Drawn(X, [truth], f"{count} objects", True)


def signals(source: Source) -> Drawn:
    """Draw periodic signals with peaks, broad or narrow, each in columns of its own."""
    rng, parts = source.rng, []
    for u in source.places(int(rng.choice([2, 2, 3]))):
        angle = 2 * np.pi * u
        delays = np.linspace(0, 2 * np.pi, rng.randint(3, 12), endpoint=False)
        sharpness = source.between(0.4, 20)
        columns = np.exp(sharpness * (np.cos(angle[:, None] - delays) - 1))
        parts.append(Part("circle", source.between(0.5, 2) * columns, ring(angle)))
    return product_of(parts)


def waves(source: Source) -> Drawn:
    """Draw travelling waves: two that add up, or one whose height or speed varies."""
    rng, (u, v) = source.rng, source.places(2)
    places = np.linspace(0, 2 * np.pi, int(rng.randint(12, 120)), endpoint=False)
    angle, number = 2 * np.pi * u, int(rng.randint(1, 4))
    first = np.cos(number * places - angle[:, None])
    if rng.uniform() < 0.5:
        second = np.cos((number + rng.randint(1, 4)) * places - 2 * np.pi * v[:, None])
        X = first + source.between(0.3, 1) * second
        return Drawn(X, [(ring(angle), ring(2 * np.pi * v))], "two waves", True)
    height = rng.uniform(0.2, 0.7) + v[:, None]
    return Drawn(height * first, [(ring(angle), v[:, None])], "one wave and its height")


def counts(source: Source) -> Drawn:
    """Draw counts in channels, of peaks that move or grow each on its own."""
    n, rng = source.n, source.rng
    channels = np.linspace(0, 1, rng.randint(15, 50))
    rates, truth = np.full((n, len(channels)), 0.5), []
    for number, u in enumerate(source.places(2)):
        t, centre = 2 * u - 1, (number + 0.5) / 2
        width = rng.uniform(0.05, 0.12)
        moves = rng.uniform() < 0.5
        at = centre + 0.12 * t if moves else np.full(n, centre)
        height = np.ones(n) if moves else np.exp(t)
        rates += height[:, None] * np.exp(-0.5 * ((channels - at[:, None]) / width) ** 2)
        truth.append(t[:, None])
    X = rng.poisson(rates * source.between(7, 400)).astype(float)
    return Drawn(X, [tuple(truth)], "two peaks", True, is_noisy=True)


# One factor, and what is no product.


def one_curve(source: Source) -> Drawn:
    """Draw one curve, closed or open, as it is or bent."""
    part = curve(source, source.places(1)[0])
    size = float(np.sqrt(part.columns.var(axis=0).sum()))
    return Drawn(part.columns, [(part.truth,)], part.name, False, size)


def bodies(source: Source) -> Drawn:
    """Draw a sphere, a ball, or a cloud that has no directions of its own, or tails."""
    n, rng = source.n, source.rng
    d = int(rng.randint(2, 6))
    z = rng.normal(size=(n, d))
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    axes = np.geomspace(1, source.between(1, 3), d)
    made = {
        "sphere": lambda: unit,
        "ball": lambda: unit * rng.uniform(size=(n, 1)) ** (1 / d),
        "ellipsoid": lambda: unit * axes,
        "Gaussian": lambda: z,
        "Student": lambda: z / np.sqrt(rng.chisquare(rng.randint(2, 8), size=(n, 1))),
        "lognormal": lambda: np.exp(0.6 * (z + rng.normal(size=(n, 1)))),
    }
    name = str(rng.choice(list(made)))
    X = made[name]()
    # How far from the middle does not depend on the direction.
    round_ones = ("ball", "Gaussian", "Student")
    finer = [(np.linalg.norm(X, axis=1, keepdims=True), unit)] if name in round_ones else []
    return one_factor(X, f"{name} in {d} columns", *finer)


def coupled(source: Source) -> Drawn:
    """Draw a surface of two coordinates and a function of both in one column, such as a shear."""
    rng, (u, v) = source.rng, source.places(2)
    u, v = (source.between(1, 4) * each for each in (u, v))
    strong, often = source.between(0.2, 1.5), source.between(0.7, 3)
    closed = rng.uniform() < 0.4
    v = 2 * np.pi * v / v.max() if closed else v
    made = {
        "sheared": u + strong * v,
        "u and a wave": u + strong * np.cos(2 * v),
        "wave of both": strong * np.cos(often * (u + v)),
        "product": strong * u * np.sin(v),
    }
    name = str(rng.choice(list(made)))
    if closed and name == "sheared":
        made[name] = u + strong * np.sin(v)
    first = [u] if rng.uniform() < 0.7 else [np.sin(u), np.cos(u)]
    X = np.column_stack([*first, *(ring(v).T if closed else [v]), made[name]])
    return one_factor(X, name, (u[:, None], ring(v) if closed else v[:, None]))


def trees(source: Source) -> Drawn:
    """Draw a tree of three to eight branches, straight or bent."""
    n, rng = source.n, source.rng
    p, count = int(rng.randint(2, 9)), int(rng.randint(3, 9))
    starts, ends = [np.zeros(p)], [rng.normal(size=p)]
    for _ in range(count - 1):
        starts.append(ends[rng.randint(len(ends))])
        ends.append(starts[-1] + rng.normal(size=p))
    branch, u = rng.randint(count, size=n), rng.uniform(size=(n, 1))
    starts, ends = np.array(starts)[branch], np.array(ends)[branch]
    bow = rng.normal(size=(count, p))[branch] * rng.choice([0.0, 0.4])
    return one_factor(starts + u * (ends - starts) + u * (1 - u) * bow, f"{count} branches")


def mixtures(source: Source) -> Drawn:
    """Draw a mixture of Gaussians of different shapes, near or apart."""
    n, rng = source.n, source.rng
    p, count = int(rng.randint(2, 21)), int(rng.randint(2, 9))
    centres = source.between(0.5, 5) * rng.normal(size=(count, p))
    shapes = rng.normal(size=(count, p, p)) / np.sqrt(p)
    label = rng.choice(count, size=n, p=rng.dirichlet(np.full(count, 3.0)))
    X = centres[label] + np.einsum("np,npq->nq", rng.normal(size=(n, p)), shapes[label])
    return one_factor(X, f"{count} Gaussians")


def clusters(source: Source) -> Drawn:
    """Draw clusters, each of them a curve or a surface of its own."""
    rng = source.rng
    count = int(rng.randint(2, 6))
    label, pieces = rng.randint(count, size=source.n), []
    for _ in range(count):
        drawn = product_of(_curves(source, int(rng.choice([1, 2])), kinds=("interval", "circle")))
        turn = np.linalg.qr(rng.normal(size=(6, drawn.X.shape[1])))[0].T
        pieces.append(drawn.X @ turn + source.between(0.5, 8) * rng.normal(size=6))
    X = np.array(pieces)[label, np.arange(source.n)]
    return one_factor(X, f"{count} clusters")


def real_tables(source: Source) -> Drawn:
    """Draw rows and columns of a real table, standardised or not: no product."""
    rng = source.rng
    names = ["digits", "iris", "wine", "breast_cancer", "diabetes"]
    name = str(rng.choice(names, p=(0.4, 0.1, 0.15, 0.2, 0.15)))
    X = getattr(tables, f"load_{name}")().data
    if rng.uniform() < 0.5:
        X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    if rng.uniform() < 0.5:
        X = X[:, np.sort(rng.permutation(X.shape[1])[: rng.randint(2, X.shape[1] + 1)])]
    X = X[rng.permutation(len(X))[: source.n]]
    return Drawn(X, [(X,)], name, is_noisy=True)


# Shapes of other studies.


def calibration(source: Source) -> Drawn:
    """Draw a problem of the calibration: products of all kinds, near-products, irreducible ones.

    Half of them have little noise, and that of the conditions is added.
    """
    while True:
        problem = datasets.random_problem(int(source.rng.randint(2**31)))
        if len(problem.X) >= min(source.n, 4000):
            break
    truths = [problem.truth, *problem.coordinates]
    if problem.description.startswith("parallelogram"):
        # A sum along two sides.
        truths.append(_sides(problem.truth[0] @ np.linalg.inv(SIDES_AT_60_DEGREES)))
    return Drawn(problem.X, truths, problem.kind, problem.product)


def of_group(group: str) -> Callable[[Source], Drawn]:
    """Return what draws a shape of a group, even or not."""
    return partial(_of_group, group)


def _of_group(group: str, source: Source) -> Drawn:
    rng = source.rng
    names = families.SYMMETRIC if group == "symmetric" else families.FAMILIES[group]
    # Bodies of revolution are symmetric, too, but have coordinates that separate.
    names = [name for name in names if group != "symmetric" or name not in BODIES]
    density = rng.choice(list(families.DENSITIES), p=(0.6, 0.25, 0.15))
    name = str(rng.choice(names))
    X, truth = families.draw(group, name, source.n, density=density, random_state=rng)
    found = truth.circles if isinstance(truth, families.Symmetry) else truth
    if name in NEARLY:
        found = NEARLY[name](X)
    # None of these is a product.
    return one_factor(X, name, *([found] if len(found) > 1 else []))


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


BODIES = ("vase", "prolate", "torus", "frustum")
# Shapes that are nearly products, and their factors.
NEARLY: dict[str, Callable[[np.ndarray], Truth]] = {
    "stadium": _sides,
    "peanut": _axes,
    "holed_rectangle": _sides,
    "bumpy_sheet": _sides,
    "bumpy_torus": _angles,
}
SHAPES: Sequence[str] = ("separable 2-D", "separable 3-D", "symmetric", "irreducible", "twisted")
