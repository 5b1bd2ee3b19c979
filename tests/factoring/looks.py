"""Looks at samples of known shapes, for tests of peeling and of what it is made of."""

from functools import lru_cache

import numpy as np

from manifactor import datasets
from manifactor.models.peeling.peeling import Look
from manifactor.operators.geometry import measure_geometry
from manifactor.operators.kernel import affinity
from manifactor.operators.laplacian import laplacian_spectrum
from manifactor.operators.neighbors import neighbor_graph


def geometry_of(X, n_functions, *, distances_only=False):
    walk = affinity(neighbor_graph(X, 64))
    spectrum = laplacian_spectrum(walk, n_functions, rng=np.random.default_rng(0))
    samples = None if distances_only else X
    return measure_geometry(spectrum, walk, samples, rng=np.random.default_rng(0))


@lru_cache
def look_at(name, n_samples=1500, n_functions=60, seed=0):
    """A look at all samples of a shape, and the truth."""
    X, truth = datasets.sample(name, n_samples, random_state=seed)
    return look_of(X, n_functions), truth


def look_of(X, n_functions):
    return Look(np.arange(len(X)), geometry_of(X, n_functions))


def looks_at_halves(name, n_samples=1500, n_functions=60, seed=0):
    """Looks at two random halves of the samples, under the kernel of all."""
    X, _ = datasets.sample(name, n_samples, random_state=seed)
    whole = affinity(neighbor_graph(X, 64))
    rng = np.random.default_rng(0)
    looks = []
    for rows in np.array_split(rng.permutation(n_samples), 2):
        rows.sort()
        walk = whole.restricted(rows)
        spectrum = laplacian_spectrum(walk, n_functions, rng=rng)
        looks.append(Look(rows, measure_geometry(spectrum, walk, X[rows], rng=rng)))
    return looks
