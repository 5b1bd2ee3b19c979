"""Are the factors that two fits share found, and no others?

Each row of the table is a pair of fits, over seeds: half sets, two cameras that both see one of
three turning objects, latents of two programs with one factor in common, and pairs with nothing in
common, also halves of pure noise. A seed is right if the shared factors, and no others, are paired.
"""

import argparse
import os
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.stats import ortho_group

from manifactor import ManifoldFactorizer, align, datasets
from manifactor.datasets.products import ring
from manifactor.scores import regression_r2

N = 1000
# Radius, angle and weight of the spots of an object.
SPOTS = [(0.55, 0.0, 1.0), (0.4, 2.0, 0.7), (0.3, 4.0, 0.5)]


def turning_object(angle, size, centre):
    """Images, (n, 16 * 24), of an object at these angles."""
    grid = np.stack(np.meshgrid(np.linspace(-1.5, 1.5, 24), np.linspace(-1, 1, 16)), axis=-1)
    pixels = (grid.reshape(-1, 2) - centre) / size
    images = 0
    for radius, start, weight in SPOTS:
        spots = radius * ring(angle + start)
        squared = ((pixels - spots[:, None]) ** 2).sum(axis=2)
        images = images + weight * np.exp(-squared / 0.08)
    return images


# Each kind of pair: samples of both fits, and the true factors of each by name.


def half_sets(rng):
    shape = rng.choice(["rectangle", "torus", "sphere_interval", "cube"])
    X, truth = datasets.sample(shape, 3 * N, random_state=int(rng.integers(2**31)))
    names = range(len(truth))
    first, second = (dict(zip(names, (t[k::2] for t in truth), strict=True)) for k in (0, 1))
    return X[::2], X[1::2], first, second


def two_cameras(rng):
    """The second object is seen by both, from other sides, mirrored by the second camera."""
    one, both, three = rng.uniform(0, 2 * np.pi, size=(3, N))
    first = turning_object(one, 1.0, (-0.7, 0)) + 0.8 * turning_object(both, 0.9, (0.7, 0))
    turned = rng.uniform(0, 2 * np.pi) - both
    second = turning_object(turned, 1.0, (-0.6, 0)) + 0.8 * turning_object(three, 0.9, (0.7, 0))
    first, second = (X + rng.normal(scale=0.02, size=X.shape) for X in (first, second))
    return first, second, {"a": ring(one), "b": ring(both)}, {"b": ring(both), "c": ring(three)}


def two_programs(rng):
    """A circle in both, and an interval of each; axes of their own, and a stretch of the second."""
    angle, (a, b) = rng.uniform(0, 2 * np.pi, size=N), rng.uniform(size=(2, N, 1))
    stretched = ring(angle + 0.4 * np.sin(angle + rng.uniform(0, 6)))
    columns = [np.c_[ring(angle), 3 * a], np.c_[4 * b, 1.5 * stretched]]
    first, second = (
        np.c_[X, np.zeros((N, 5))] @ ortho_group.rvs(8, random_state=rng)
        + rng.normal(scale=0.02, size=(N, 8))
        for X in columns
    )
    return first, second, {"angle": ring(angle), "a": a}, {"b": b, "angle": ring(angle)}


def unrelated(rng):
    shapes = rng.choice(["rectangle", "torus", "cylinder"], size=2, replace=False)
    seeds = rng.integers(2**31, size=2)
    found = [datasets.sample(s, N, random_state=int(k)) for s, k in zip(shapes, seeds, strict=True)]
    names = [{(side, i): t for i, t in enumerate(found[side][1])} for side in (0, 1)]
    return found[0][0], found[1][0], *names


def unlike_cameras(rng):
    """Two cameras of as many pixels, each with objects of its own."""
    angles = rng.uniform(0, 2 * np.pi, size=(4, N))
    first = turning_object(angles[0], 1, (-0.7, 0)) + 0.8 * turning_object(angles[1], 0.9, (0.7, 0))
    second = turning_object(angles[2], 0.9, (-0.6, 0)) + turning_object(angles[3], 1, (0.6, 0))
    names = [{k: ring(angles[k]) for k in pair} for pair in ((0, 1), (2, 3))]
    return first, second, *names


def noise(rng):
    """Halves of Gaussian noise in five columns; no factor is true."""
    return rng.normal(size=(N, 5)), rng.normal(size=(N, 5)), {}, {}


PAIRS = {
    "half sets": half_sets,
    "two cameras": two_cameras,
    "two programs": two_programs,
    "unrelated": unrelated,
    "unlike cameras": unlike_cameras,
    "noise": noise,
}


def names_of(fit, truth):
    """The true factor that each factor found goes with most, None below an R^2 of .9."""
    names = []
    for factor in fit.factors_:
        r2 = {name: regression_r2(factor.embedding, each) for name, each in truth.items()}
        best = max(r2, key=r2.get, default=None)
        names.append(best if best is not None and r2[best] > 0.9 else None)
    return names


def measured(kind, seed):
    """Whether both fits and the pairs are right, and R^2 of shared and of other pairs."""
    first, second, *truths = PAIRS[kind](np.random.default_rng(seed))
    asked = 2 if kind == "noise" else "auto"
    with warnings.catch_warnings(action="ignore"):
        fits = [ManifoldFactorizer(asked, random_state=0).fit(X) for X in (first, second)]
        found = align(*fits)
    own = [names_of(fit, truth) for fit, truth in zip(fits, truths, strict=True)]
    fitted = all(set(names) == set(truth) for names, truth in zip(own, truths, strict=True))
    true = {
        (i, j)
        for i, a in enumerate(own[0])
        for j, b in enumerate(own[1])
        if a == b and a is not None
    }
    paired = {(i, j) for i, j, _ in found.pairs}
    shared = [float(found.r2[pair]) for pair in true]
    rest = [float(r2) for pair, r2 in np.ndenumerate(found.r2) if pair not in true]
    return fitted, paired == true, shared, rest, found.samples.value


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--kinds", nargs="+", default=list(PAIRS), choices=PAIRS)
    options = parser.parse_args()
    print("kind            fits right  pairs right  least R^2 shared  largest R^2 of others  by")
    for kind in options.kinds:
        rows = [
            measured(kind, seed) for seed in range(options.first, options.first + options.seeds)
        ]
        fitted, right = (sum(row[k] for row in rows) for k in (0, 1))
        shared, rest = ([value for row in rows for value in row[k]] for k in (2, 3))
        least = f"{min(shared):.3f}" if shared else "-"
        most = f"{max(rest):.3f}" if rest else "-"
        how = ", ".join(sorted({row[4] for row in rows}))
        counts = [f"{count} of {len(rows)}" for count in (fitted, right)]
        print(f"{kind:16}{counts[0]:12}{counts[1]:13}{least:18}{most:23}{how}", flush=True)


if __name__ == "__main__":
    main()
