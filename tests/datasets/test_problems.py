from itertools import pairwise

import numpy as np
import pytest

from manifactor import datasets
from manifactor.datasets.problems import KINDS
from manifactor.datasets.products import Normal


@pytest.fixture
def small(monkeypatch):
    """Let problems have 40 to 60 samples."""
    monkeypatch.setattr("manifactor.datasets.problems.N_SAMPLES", (40, 60))


@pytest.mark.usefixtures("small")
def test_random_problems_are_of_every_kind_and_say_whether_product_is_right():
    problems = [datasets.random_problem(seed) for seed in range(100)]
    np.testing.assert_array_equal(datasets.random_problem(7).X, problems[7].X)
    assert {len(problem.truth) for problem in problems} == {1, 2, 3}
    assert {problem.kind for problem in problems} == {*KINDS, "irreducible"}
    scales = [np.abs(problem.X).max() for problem in problems]
    assert max(scales) > 1e9 * min(scales)
    for problem in problems:
        several = len(problem.truth) > 1
        assert problem.product == (several and problem.kind != "near")
        assert np.isfinite(problem.X).all()
        assert all(len(latents) == len(problem.X) for latents in problem.truth)


def test_random_problems_have_800_to_6000_samples():
    assert all(800 <= len(datasets.random_problem(seed).X) <= 6000 for seed in range(3))


@pytest.mark.parametrize("kind", ["gaussian", "soft"])
def test_no_two_gaussians_of_one_problem_have_similar_deviations(kind):
    ratios = []
    for seed in range(100):
        parts = KINDS[kind](np.random.RandomState(seed)).shape.parts
        deviations = sorted(p.deviation for p in parts if isinstance(p, Normal))
        ratios += [large / small for small, large in pairwise(deviations)]
    assert ratios
    assert min(ratios) > 1.499  # as exact as the description


@pytest.mark.usefixtures("small")
def test_even_problems_are_products_or_simple_irreducible_shapes():
    problems = [datasets.random_problem(seed, kinds="even") for seed in range(40)]
    assert {problem.kind for problem in problems} == {"even", "irreducible"}
    # The same problems as before there were other kinds.
    circles = "Sphere(radius=0.868, ambient=2) x Sphere(radius=1.235, ambient=2)"
    assert problems[7].description.startswith(circles)
    assert problems[7].X.shape == (41, 7)
    with pytest.raises(ValueError, match="`kinds` must be one of"):
        datasets.random_problem(0, kinds="odd")
