from dataclasses import replace

import numpy as np
import pytest

from manifactor import ManifoldFactorizer, datasets
from manifactor.datasets.products import ring
from manifactor.factorization import Factorization
from manifactor.factors import placing
from manifactor.factors.factor import make_factors, selection
from manifactor.factors.placing import ByFunctions, place_blocks
from manifactor.judging.candidate import Candidate
from manifactor.judging.measures.places import prepared_noise
from manifactor.operators.kernel import affinity
from manifactor.operators.laplacian import laplacian_spectrum
from manifactor.operators.neighbors import neighbor_graph
from manifactor.operators.operator import Operator
from manifactor.samples.preparation import Preparation

from ..candidates import facts_on


@pytest.fixture(scope="module")
def circle():
    """Samples of a circle, and its factorization."""
    angle = 2 * np.pi * np.random.default_rng(0).uniform(size=1000)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    graph = neighbor_graph(X, 32)
    walk = affinity(graph)
    distinct = laplacian_spectrum(walk, 5, rng=np.random.default_rng(0))
    spectrum = distinct.with_copies(graph)
    factors, readings = make_factors(spectrum, [selection(spectrum, [1, 2])])
    diffusion = Operator(X, graph, walk, distinct)
    return X, Factorization(factors, None, diffusion, placer=ByFunctions(readings))


def place(X, found, **more):
    (placed,) = place_blocks(X, found.locator(len(X)), **more)
    return placed


def test_samples_are_placed_and_prepared_block_by_block(circle):
    X, found = circle
    sizes = []

    def prepare(block, start):
        assert start == sum(sizes)
        sizes.append(len(block))
        return block / 2

    placed = place(2 * X, found, prepare=prepare, block=70)
    assert max(sizes) == 70
    assert sum(sizes) == 1000
    np.testing.assert_allclose(placed.embedding, found.factors[0].embedding, atol=1e-6)


def test_noise_leaves_all_of_a_circle_or_little_of_it(circle, rng):
    _, found = circle
    facts = facts_on(found.diffusion, rng=rng)
    made = Candidate("", "", found.diffusion, facts, factors=found.factors, placer=found.placer)

    def shares(noise):
        drawn = replace(facts.drawn, noise=noise)
        return replace(made, facts=replace(facts, drawn=drawn)).signal_shares()

    (little,) = shares(np.full(2, 1e-4))
    (much,) = shares(np.full(2, 1.0))
    (none,) = shares(np.zeros(2))
    assert little > 0.999
    assert much < 0.6
    assert none == pytest.approx(1, abs=1e-6)


def test_noise_of_many_columns_is_drawn_in_their_principal_components(rng):
    axes, _ = np.linalg.qr(rng.normal(size=(500, 3)))
    kept = Preparation(np.zeros(500), axes, "")
    noise = rng.uniform(size=500)
    drawn = prepared_noise(noise, 20_000, preparation=kept, rng=rng)
    assert drawn.shape == (20_000, 3)
    expected = axes.T @ (noise[:, None] ** 2 * axes)
    np.testing.assert_allclose(np.cov(drawn.T), expected, atol=0.02)


@pytest.mark.medium
def test_a_sample_behind_an_outlier_lies_where_the_outlier_lies():
    X = ring(np.linspace(0, 2 * np.pi, 400, endpoint=False))
    fit = ManifoldFactorizer(random_state=0).fit(np.vstack([X, [[30.0, 0.0]]]))
    assert fit.outliers_[-1]
    (at,) = fit.locate(np.array([[30.0, 0.0], [30.01, 0.0]]))
    assert at.embedding[0] == pytest.approx(at.embedding[1])


@pytest.mark.slow
def test_samples_near_outliers_are_placed_as_the_extension_places_them(rng, monkeypatch):
    X, _ = datasets.sample("torus", 800, random_state=0)
    stray = np.vstack([X, 3 * rng.normal(size=(6, 4))])
    fit = ManifoldFactorizer(sense="geometry", random_state=0).fit(stray)
    assert fit.outliers_.sum() >= 4
    new = np.vstack([X + 0.1, stray[-6:] + 0.01, 3 * rng.normal(size=(100, 4))])
    quick = fit.locate(new)
    monkeypatch.setattr(placing, "is_combinable", lambda diffusion: False)
    for one, other in zip(quick, fit.locate(new), strict=True):
        np.testing.assert_allclose(one.embedding, other.embedding, atol=1e-9)
        np.testing.assert_array_equal(one.confidence, other.confidence)
