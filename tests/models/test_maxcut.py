from itertools import product

import clarabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from manifactor.models.triplets import Cut, cut_weight, max_cut


def random_graph(n, seed, density=0.6):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < density), 1)
    return upper + upper.T


@pytest.mark.slow
@pytest.mark.parametrize(("n", "groups"), [(2, 2), (10, 2), (7, 3), (6, 4)])
@pytest.mark.parametrize("seed", range(2))
def test_the_cut_equals_brute_force(n, groups, seed):
    weights = random_graph(n, seed)
    everything = (np.array([0, *rest]) for rest in product(range(groups), repeat=n - 1))
    best = max(cut_weight(weights, labels) for labels in everything)
    cut = max_cut(weights, groups, rng=np.random.default_rng(0))
    assert cut.objective == pytest.approx(best)
    assert cut.objective == pytest.approx(cut_weight(weights, cut.labels))
    assert cut.bound >= best - 1e-9


def relaxed_cut(weights, least):
    """The largest sum over pairs of weights times 1 - X, where X is positive
    semidefinite, has a unit diagonal and no entry below `least`."""
    # The solver's variables are the upper triangle of X, column by column, with a root
    # of 2 off the diagonal: their squares add up to those of all entries.
    rows, columns = np.tril_indices(len(weights))[::-1]
    scale = np.where(rows == columns, 1.0, np.sqrt(2))
    unit = sparse.eye_array(len(rows), format="csc")
    entries = sparse.diags_array(1 / scale, format="csc")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    found = clarabel.DefaultSolver(
        0 * unit,
        weights[rows, columns] / scale,
        sparse.vstack([unit[rows == columns], -entries, -unit], format="csc"),
        np.repeat([1.0, -least, 0.0], [len(weights), len(rows), len(rows)]),
        [
            clarabel.ZeroConeT(len(weights)),
            clarabel.NonnegativeConeT(len(rows)),
            clarabel.PSDTriangleConeT(len(weights)),
        ],
        settings,
    ).solve()
    return weights.sum() / 2 - found.obj_val


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("n", "groups", "near"), [(20, 2, 1e-4), (12, 3, 0.02)])
def test_the_bound_is_near_the_value_of_the_semidefinite_program(n, groups, near, seed):
    weights, share = random_graph(n, seed), (groups - 1) / groups
    program = relaxed_cut(weights, -1 / (groups - 1)) * share
    bound = max_cut(weights, groups, rng=np.random.default_rng(0)).bound
    assert program * (1 - 1e-4) <= bound <= (1 + near) * program


@pytest.mark.slow
@given(sizes=st.lists(st.integers(1, 5), min_size=2, max_size=3), seed=st.integers(0, 99))
@settings(max_examples=6)
def test_a_graph_with_edges_between_groups_only_is_cut_completely(sizes, seed):
    label = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    weights = (label[:, None] != label).astype(float)
    cut = max_cut(weights, len(sizes), rng=np.random.default_rng(seed))
    assert cut.objective == weights.sum() / 2
    assert ((cut.labels[:, None] == cut.labels) == (label[:, None] == label)).all()


def test_no_edges_is_one_group():
    cut = max_cut(np.zeros((4, 4)), rng=np.random.default_rng(0))
    assert cut.labels.tolist() == [0, 0, 0, 0]
    assert cut.gap == 0
    # The gap is the share of the bound that is missed.
    assert Cut(np.zeros(2, dtype=int), 3.0, 4.0).gap == pytest.approx(0.25)
