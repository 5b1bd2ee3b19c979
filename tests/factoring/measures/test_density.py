import numpy as np
import pytest

from manifactor.judging.measures.density import (
    along_line,
    cluster_labels,
    clusters,
    clusters_in_words,
    clusters_of_function,
    evenness,
)
from manifactor.judging.table import CRITERIA

LIMIT = CRITERIA["evenness"].limit


def test_even_samples_are_even_whether_or_not_they_have_edges(rng):
    square = rng.uniform(size=(2000, 2))
    turn = 2 * np.pi * rng.uniform(size=(2000, 2))
    torus = np.hstack([np.cos(turn), np.sin(turn)])
    assert evenness(square, 2).spread < LIMIT
    assert evenness(torus, 2).spread < LIMIT / 2


def test_gaussians_are_uneven_and_the_ratio_of_densities_is_told(rng):
    found = evenness(rng.normal(size=(2000, 2)), 2)
    assert found.spread > LIMIT
    # The density at 5 % and 95 % of the samples: exp(-r^2 / 2) is .05 and .95 there.
    assert found.ratio == pytest.approx(0.95 / 0.05, rel=0.5)
    # That of copies overflows, and is finite.
    assert np.isfinite(evenness(np.repeat(np.eye(2), 200, axis=0), 2).ratio)


def test_clusters_are_counted_along_intervals_and_circles(rng):
    wells = np.concatenate([rng.normal(c, 0.2, size=500) for c in (1, 3, 5)])
    assert len(clusters(wells % (2 * np.pi), closed=True)) == 3
    assert len(clusters(wells)) == 3
    assert clusters(rng.uniform(size=1500)) == (1.0,)
    # A circle with one gap is in one piece.
    assert clusters(rng.uniform(2, 6, size=1500), closed=True) == (1.0,)
    # Few samples show none.
    assert clusters(np.array([0.0, 1.0] * 30)) == (1.0,)


def test_a_step_shows_clusters_and_a_cosine_does_not(rng):
    t = rng.uniform(size=1500)
    assert clusters_of_function(np.cos(np.pi * t)) == (1.0,)
    assert clusters_of_function(np.zeros(1500)) == (1.0,)
    shares = clusters_of_function(np.tanh(20 * (t - 0.3)) + 0.02 * rng.normal(size=1500))
    assert shares == pytest.approx((0.7, 0.3), abs=0.08)


@pytest.mark.parametrize("direction", [[1], [1, 2, 3], [0, 1], [-2, 1e-9]])
@pytest.mark.parametrize("dtype", [float, np.float32])
def test_multiples_of_one_column_lie_on_a_line(rng, direction, dtype):
    t = rng.normal(size=1000)
    X = (t[:, None] * direction + np.arange(len(direction))).astype(dtype)
    along = along_line(X.astype(float), np.arange(1000))
    assert abs(np.corrcoef(along, t)[0, 1]) > 1 - 1e-9


@pytest.mark.parametrize("row", [0, 1, 500, 999])
def test_one_sample_beside_a_line_is_seen(rng, row):
    X = rng.uniform(size=(1000, 1)) * [1.0, 2.0, 3.0]
    X[row, 0] += 1e-3
    assert along_line(X, np.arange(1000)) is None


def test_samples_that_do_not_count_may_lie_anywhere(rng):
    X = rng.uniform(size=(300, 1)) * [1.0, 2.0]
    X[7] = 5.0
    rows = np.delete(np.arange(300), 7)
    np.testing.assert_allclose(np.abs(along_line(X, rows)), np.linalg.norm(X[rows] - X[0], axis=1))


def test_every_sample_between_gaps_has_the_label_of_its_cluster():
    low, high, stray = np.linspace(0, 0.3, 300), np.linspace(0.6, 1, 600), np.full(2, 0.45)
    labels = cluster_labels(np.concatenate([high, stray, low]))
    assert labels.tolist() == [1] * 600 + [-1] * 2 + [0] * 300
    # Around a circle, what begins beyond 0 goes on before it.
    assert len(set(cluster_labels((np.linspace(5, 7, 600)) % (2 * np.pi), closed=True))) == 1


def test_clusters_are_told_with_their_shares():
    assert clusters_in_words((0.6, 0.4)) == "2 clusters, of 60 % and 40 % of the samples"
