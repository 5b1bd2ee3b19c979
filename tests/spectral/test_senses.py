"""Diffusion in other senses of a product."""

import numpy as np
import pytest

from manifactor.spectral.pipeline import diffuse, kept_stages
from manifactor.spectral.senses import SenseSettings, in_density, in_volume
from manifactor.spectral.settings import DiffusionSettings

FEW = DiffusionSettings(n_functions=12)


def diffusion_of(X):
    return diffuse(X, FEW, rng=np.random.default_rng(0))


def correlation(a, b):
    return abs(np.corrcoef(a, b)[0, 1])


@pytest.fixture(scope="module")
def sector():
    """A rectangle of 1 x 1.6 bent into a sector of an annulus by exp."""
    u, v = np.random.default_rng(0).uniform(size=(2, 1200))
    z = np.exp(u + 1.6j * v)
    return diffusion_of(np.column_stack([z.real, z.imag])), u, v


@pytest.fixture(scope="module")
def cloud():
    X = np.random.default_rng(1).normal(size=(1200, 2)) * [2.0, 1.0]
    return diffusion_of(X), X


def test_lengths_in_samples_undo_a_conformal_map(sector):
    diffusion, u, v = sector
    volume = in_volume(diffusion, rng=np.random.default_rng(0))
    longer = volume.spectrum.functions[:, 1]
    assert correlation(longer, np.cos(np.pi * v)) > 0.995
    assert inner_over_outer(longer, u) > 0.85
    # On the sector itself the function along the arc grows with the radius.
    assert inner_over_outer(diffusion.spectrum.functions[:, 1], u) < 0.75


def inner_over_outer(function, u):
    """Spread of a function at small radii over that at large ones."""
    return function[u < 0.2].std() / function[u > 0.8].std()


def test_lowest_functions_of_a_gaussian_are_hermite_polynomials(cloud):
    diffusion, X = cloud
    density = in_density(diffusion, rng=np.random.default_rng(0)).spectrum
    weights, (x, y) = density.weights > 0, X.T
    first = density.functions[weights, 1]
    assert correlation(first, x[weights]) > 0.97
    second = density.functions[:, 2:6][weights]
    beside = [correlation(f, y[weights]) for f in second.T]
    assert max(beside) > 0.9


def test_few_samples_are_drawn_and_functions_reach_all(cloud):
    diffusion, X = cloud
    settings = SenseSettings(drawn_in_volume=500)
    part = in_volume(diffusion, settings=settings, rng=np.random.default_rng(0))
    undrawn = part.graph.undrawn
    assert len(part.graph.distinct) <= 500
    assert undrawn.sum() >= len(X) - 500
    assert np.isclose(part.spectrum.weights.sum(), 1)
    assert not part.spectrum.weights[undrawn].any()
    # Extended values are no copies of the nearest drawn sample's.
    nearest = part.distinct.functions[part.graph.inverse]
    values = part.spectrum.functions
    assert not np.allclose(values[undrawn, 1], nearest[undrawn, 1])
    assert correlation(values[undrawn, 1], nearest[undrawn, 1]) > 0.98


def test_drawn_samples_of_the_whole_keep_their_neighbours(cloud):
    diffusion, X = cloud
    settings = SenseSettings(drawn_in_volume=400)
    graph = in_volume(diffusion, settings=settings, rng=np.random.default_rng(2)).graph
    node = 7
    (row,) = graph.distances[[node]].toarray()
    other = int(np.flatnonzero(row)[0])
    ends = X[graph.distinct[[node, other]]]
    assert np.isclose(np.linalg.norm(ends[0] - ends[1]), row[other])
    assert (graph.inverse[graph.distinct] == np.arange(len(graph.distinct))).all()


def test_no_stage_starts_from_a_part_of_the_samples(cloud):
    diffusion, _ = cloud
    part = in_volume(diffusion, rng=np.random.default_rng(0))
    assert not kept_stages(part).kept
    assert kept_stages(diffusion).kept
