"""Are the shares that loadings give each factor those of the true latents?

    python benchmarks/loadings.py            all problems, 5 seeds each, and the time of wide data
    python benchmarks/loadings.py --seeds 0 1 --only table

The exact shares are those of the functions of true latents that made the columns, in the same
samples; these functions are averages over a dense grid, for the molecule over frames in narrow bins
of the true torsions. Per problem, the worst of all seeds: the largest and the mean difference of
any share of any column from the exact one, how many differ by .03 or less, how much of what is
explained of the columns of one factor is on this one, and R^2 of the coordinates.
"""

import argparse
import itertools
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment

from manifactor import ManifoldFactorizer, datasets
from manifactor.datasets.shapes import APART, OVERLAPPING, shifting, turning
from manifactor.factors.inversion import PlaceSpace
from manifactor.factors.loadings import find_loadings
from manifactor.scores import regression_r2

from record import record

PENTANE = Path(__file__).parents[1] / "examples" / "data" / "pentane.npz"


def table(u, v):
    """Return columns of a table over two places from 0 to 1: sums, products, sharp functions."""
    wave, turn = np.sin(2 * np.pi * u), np.cos(2 * np.pi * v)
    return [
        u,
        u + v,
        3 * u + v,
        wave * turn,
        (1 + u) * (1 + v),
        u**2 - 0.3 * v,
        np.exp(2 * u * v),
        np.exp(-(((u - 0.4) / 0.06) ** 2)),
        np.exp(-((u - 0.5) ** 2 + (v - 0.5) ** 2) / 0.02),
        (u > 0.5) + turn,
    ]


def parts_on_grid(function, places, count=400):
    """Return the parts of functions of two uniform places: of each place, and of both together.

    They are averages over a dense grid, read at the places, (n, 2). Returns (3, n, n_columns).
    """
    line = (np.arange(count) + 0.5) / count
    grid = np.meshgrid(line, line, indexing="ij")
    parts = []
    for dense, values in zip(function(*grid), function(*places.T), strict=True):
        dense, mean = np.broadcast_to(dense, grid[0].shape), np.mean(dense)
        first = np.interp(places[:, 0], line, dense.mean(axis=1) - mean)
        second = np.interp(places[:, 1], line, dense.mean(axis=0) - mean)
        parts.append([first, second, values - mean - first - second])
    return np.array(parts).transpose(1, 2, 0)


def of_parts(parts, columns):
    """Return the share of the variance of columns that each of their parts has, (p, n_parts)."""
    centred = columns - columns.mean(axis=0)
    return np.stack([(part * centred).mean(axis=0) for part in parts], axis=1) / np.var(
        columns, axis=0
    ).reshape(-1, 1)


def tables(seed, *, noise=0.3, n=3000):
    """Return a fit of a rectangle, columns over its sides, its latents, and exact shares."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(size=(n, 2))
    fit = ManifoldFactorizer(random_state=seed).fit(places * [3.0, 2.0])
    clean = np.column_stack(table(*places.T))
    sd = clean.std(axis=0) * np.sqrt(noise / (1 - noise))
    columns = clean + sd * rng.normal(size=clean.shape)
    return fit, columns, places.T[:, :, None], of_parts(parts_on_grid(table, places), columns)


def mixtures(seed, n=3000):
    """Return the same for a table whose columns mix three factors with noise."""
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(3, 12))
    places = rng.uniform(size=(n, 3))
    parts = [np.outer(x, own) for x, own in zip((places * [3.0, 2.0, 1.3]).T, mix, strict=True)]
    columns = sum(parts) + 0.05 * rng.normal(size=(n, 12))
    fit = ManifoldFactorizer(random_state=seed).fit(columns)
    parts += 3 * [np.zeros((n, 12))]
    return fit, columns, places.T[:, :, None], of_parts(parts, columns)


def arm(seed, n=3000):
    """Return the same for two markers on an arm."""
    columns, truth = datasets.sample("robot_arm", n, random_state=seed)
    fit = ManifoldFactorizer(random_state=seed).fit(columns)
    first = np.tile(truth[0], 2)
    parts = [first, columns - first, np.zeros(columns.shape)]
    return fit, columns, truth, of_parts(parts, columns)


def images(seed, movers, ratio, *, overlap=False, noise=0.0, n=2000):
    """Return the same for images of two objects, of a ratio of variances."""
    rng = np.random.default_rng(seed)
    line = np.linspace(-1, 1, 24)
    pixels = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    centres = OVERLAPPING if overlap else APART
    drawn = [
        move(n, (pixels - centre) / 0.7, rng) for move, centre in zip(movers, centres, strict=True)
    ]
    (first, left), (second, right) = drawn
    parts = [first, second / np.sqrt(ratio), np.zeros(first.shape)]
    columns = sum(parts)
    columns = columns + noise * np.sqrt(columns.var(axis=0).mean()) * rng.normal(size=columns.shape)
    fit = ManifoldFactorizer(random_state=seed).fit(columns)
    return fit, columns, (left, right), of_parts(parts, columns)


def pentane(seed, name="free_positions"):
    """Return a fit of both ends of a molecule, all atoms, and shares from the true torsions."""
    with np.load(PENTANE) as archive:
        positions = archive[name].astype(float)
        torsions = archive[name.replace("positions", "torsions")].astype(float)
    some = np.random.default_rng(seed).permutation(len(positions))[:2700]
    positions, torsions = positions[some], torsions[some]
    with warnings.catch_warnings(action="ignore"):
        ends = positions[:, [0, 4]].reshape(len(some), 6)
        fit = ManifoldFactorizer(2, random_state=seed).fit(ends)
    columns = positions[:, [0, 4]].reshape(len(some), -1)
    cells = np.floor((torsions + np.pi) / (2 * np.pi) * 90).astype(int).clip(0, 89)
    shares = np.column_stack([binned(columns, cell) for cell in cells.T])
    truth = [np.c_[np.cos(t), np.sin(t)] for t in torsions.T]
    return fit, columns, truth, np.c_[shares, np.zeros(len(shares))]


def binned(columns, cells):
    """Return the share of the variance of columns that the mean in each cell explains."""
    centred = columns - columns.mean(axis=0)
    counts = np.bincount(cells)
    sums = np.array([np.bincount(cells, column) for column in centred.T])
    squares = np.array([np.bincount(cells, column**2) for column in centred.T])
    # Pairs of different samples: their mean product is the squared mean, without noise.
    some = counts > 1
    products = (sums**2 - squares)[:, some] / (counts[some] - 1)
    return products.sum(axis=1) / squares.sum(axis=1)


PROBLEMS = {
    "table": tables,
    "table without noise": partial(tables, noise=0.0),
    "table of 10,000": partial(tables, n=10_000),
    "mixtures of three": mixtures,
    "arm": arm,
    "two turning, 1": partial(images, movers=(turning, turning), ratio=1),
    "two turning, 10": partial(images, movers=(turning, turning), ratio=10),
    "turning and shifting": partial(images, movers=(turning, shifting), ratio=5),
    "overlapping": partial(images, movers=(turning, turning), ratio=5, overlap=True),
    "noise": partial(images, movers=(turning, turning), ratio=5, noise=0.5),
    "pentane": pentane,
    "pentane, dependent": partial(pentane, name="positions"),
}


def compare(name, seed):
    """Return how far loadings are from the exact shares; None if the factors were not found."""
    fit, columns, truth, shares = PROBLEMS[name](seed)
    if len(fit.factors_) != len(truth):
        return None
    r2 = np.array([[regression_r2(f.embedding, t) for t in truth] for f in fit.factors_])
    order = linear_sum_assignment(-r2)[1].argsort()  # our factor of each true one
    found = fit.loadings(columns)
    number = {frozenset(pair): k for k, pair in enumerate(found.pairs)}
    true = itertools.combinations(range(len(truth)), 2)
    which = [number[frozenset((order[f], order[g]))] for f, g in true]
    ours = np.hstack([found.shares[:, order], found.interactions[:, which]])
    # Pixels that are nearly the same in all images say nothing.
    variance = columns.var(axis=0)
    seen = variance > 1e-3 * variance.max()
    errors = np.abs(ours - shares)[seen]
    # Columns that one factor alone moves, weighed by what is explained of them.
    alone = (shares > 0.99 * shares.sum(axis=1, keepdims=True)) & seen[:, None]
    explained = ours * variance[:, None]
    own = [
        explained[some, f].sum() / explained[some].sum()
        for f, some in enumerate(alone[:, : len(truth)].T)
        if some.any()
    ]
    return {
        "largest": float(errors.max()),
        "mean": float(errors.mean()),
        "within": float((errors <= 0.03).mean()),
        "own": float(min(own, default=1.0)),
        "r2": float(r2[order, range(len(truth))].min()),
    }


def seconds(n_samples, n_columns):
    """Return the seconds for wide data with two factors."""
    rng = np.random.default_rng(0)
    places = rng.uniform(size=(n_samples, 2))
    values = rng.normal(size=(n_samples, n_columns)).astype(np.float32)
    space = PlaceSpace(("interval", "interval"), (1, 1), places)
    start = time.perf_counter()
    find_loadings(space, values, columns=range(n_columns), shape=(n_columns,))
    return time.perf_counter() - start


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(100, 105)))
    parser.add_argument("--only", nargs="+", default=list(PROBLEMS), choices=PROBLEMS)
    options = parser.parse_args()
    for name in options.only:
        found = [compare(name, seed) for seed in options.seeds]
        known = [each for each in found if each is not None]
        worst = {"largest": max, "mean": max, "within": min, "own": min, "r2": min}
        numbers = {
            key: round(pick(each[key] for each in known), 4) for key, pick in worst.items() if known
        }
        record("loadings", problem=name, found=f"{len(known)} of {len(found)}", **numbers)
    record("loadings", samples=10_000, columns=4096, seconds=round(seconds(10_000, 4096), 2))


if __name__ == "__main__":
    main()
