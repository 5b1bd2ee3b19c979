import numpy as np
import pytest
from scipy.spatial.distance import pdist

from manifactor.statistics import distinct_rows
from studies import conditioned, moving


def test_a_conformal_map_is_undone_by_the_inversion_that_it_is():
    X, (truth,) = conditioned.conformal(3, 3)
    back = X[:60] / (X[:60] ** 2).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(pdist(back), pdist(np.hstack(truth)[:60]))


@pytest.mark.parametrize(("seed", "states"), [(1, 400), (2, 2000)])
def test_noise_is_of_the_size_asked_for_and_differs_between_samples_of_a_state(seed, states):
    X, (truth,) = conditioned.noisy(seed, 25)
    assert len(distinct_rows(np.hstack(truth))[0]) == states
    assert len(distinct_rows(X)[0]) == 2000
    lowest = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)[-1] / np.sqrt(2000)
    assert lowest < 0.26 / np.sqrt(12)


def test_copies_are_of_rows_and_levels_and_classes_are_as_many_as_asked_for():
    X, more = conditioned.copied(0)
    assert len(distinct_rows(more)[0]) == len(X) < len(more)
    _, ((first, _),) = conditioned.levelled(0, 8)
    assert len(np.unique(first, axis=0)) == 8
    _, ((label, *curves),) = conditioned.classified(5)
    assert label.sum() == len(label)
    assert len(curves) == 2


@pytest.mark.parametrize("seed", range(12))
def test_moving_problems_stay_in_their_range_and_have_as_many_moves_as_samples(seed):
    problem = moving.draw(seed)
    (moves,) = problem.known.values()
    assert len(moves) == len(problem.X)
    assert np.isfinite(problem.X).all()
    assert all(len(t) == len(problem.X) for t in problem.truth)
    assert np.abs(np.hstack(problem.truth)).max() < 1.3
