"""The block that a filtered subspace iteration begins with."""

from dataclasses import replace

import numpy as np
import pytest

from manifactor import datasets
from manifactor.spectral.chebyshev import first_block
from manifactor.spectral.eigenpairs import Start
from manifactor.spectral.filter_plan import FilterPlan, FilterSettings
from manifactor.spectral.kernel import affinity
from manifactor.spectral.neighbors import neighbor_graph
from manifactor.spectral.operators import HostOperator
from manifactor.spectral.solvers import chebyshev


@pytest.fixture(scope="module")
def walk():
    X, _ = datasets.sample("torus", 4000, random_state=0)
    return affinity(neighbor_graph(X, 64))


def error_of(operator, start, exact):
    """Largest part of an exact vector that the first block does not hold."""
    rng = np.random.default_rng(0)
    plan = FilterPlan(-0.05, 0.95, 0.97, FilterSettings())
    block = first_block(operator, 28, plan, start=start, rng=rng)
    basis, _ = np.linalg.qr(operator.vectors(block, np.arange(28)))
    return np.linalg.norm(exact - basis @ (basis.T @ exact), axis=0).max()


@pytest.mark.slow
def test_dividing_by_the_known_first_vector_removes_most_of_a_start_s_error(walk):
    matrix = walk.normalized()
    rng = np.random.default_rng(0)
    exact = chebyshev(matrix, 20, tolerance=1e-7, spare=True, rng=rng)
    rows = np.sort(rng.choice(4000, 800, replace=False))
    first = np.sqrt(walk.degree / walk.degree.sum())
    start = Start(rows, exact.vectors[rows], exact.values, first)
    lowest = exact.vectors[:, 1:5]
    with HostOperator(matrix) as operator:
        divided = error_of(operator, start, lowest)
        plain = error_of(operator, replace(start, first=None), lowest)
    assert divided < plain / 2


def test_what_is_rough_is_damped_in_steps_where_the_cut_is_near_1():
    near = FilterPlan(-0.05, 0.999, 0.9995, FilterSettings())
    assert [round(1 - rough.cut, 6) for rough in near.rough()] == [0.1, 0.01]
    assert replace(near, cut=0.5).rough() == []
