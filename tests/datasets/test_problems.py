from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from manifactor import datasets
from manifactor.datasets.densities import Normal
from manifactor.datasets.problems import EVEN_PROBLEMS, KINDS, ProblemSettings, draw_shape

SMALL = ProblemSettings(n_samples=(40, 60))


def small_problems(kind, count=12):
    settings = replace(SMALL, irreducible_share=0, kinds={kind: 1.0})
    return [datasets.random_problem(seed, settings=settings) for seed in range(count)]


def test_random_problems_are_reproducible_and_of_every_kind():
    problems = [datasets.random_problem(seed, settings=SMALL) for seed in range(80)]
    again = datasets.random_problem(7, settings=SMALL)
    np.testing.assert_array_equal(again.X, problems[7].X)
    assert {len(problem.truth) for problem in problems} == {1, 2, 3}
    assert {problem.kind for problem in problems} == {*KINDS, "irreducible"}
    scales = [np.abs(problem.X).max() for problem in problems]
    assert max(scales) > 1e9 * min(scales)


def test_random_problems_have_800_to_6000_samples():
    problems = [datasets.random_problem(seed) for seed in range(5)]
    assert all(800 <= len(problem.X) <= 6000 for problem in problems)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_problems_say_whether_product_is_right(kind):
    for problem in small_problems(kind):
        assert problem.kind == kind
        several = len(problem.truth) > 1
        assert problem.product == (several and kind != "near")
        assert np.isfinite(problem.X).all()
        assert all(len(latents) == len(problem.X) for latents in problem.truth)


@pytest.mark.parametrize("kind", ["gaussian", "soft"])
def test_no_two_gaussians_of_one_problem_have_similar_deviations(kind):
    settings = replace(SMALL, irreducible_share=0, kinds={kind: 1.0}, factor_kinds=(1, 0, 0))
    ratios = []
    for seed in range(300):
        parts = draw_shape(np.random.RandomState(seed), settings).shape.parts
        deviations = sorted(p.deviation for p in parts if isinstance(p, Normal))
        ratios += [large / small for small, large in pairwise(deviations)]
    assert ratios
    assert min(ratios) > 1.499  # as exact as the description


def test_settings_change_the_distribution_of_problems():
    settings = ProblemSettings(
        n_samples=(50, 60), irreducible_share=0, factor_counts=(0.0, 1.0, 0.0)
    )
    problems = [datasets.random_problem(seed, settings=settings) for seed in range(5)]
    assert all(50 <= len(problem.X) <= 60 for problem in problems)
    assert all(len(problem.truth) == 2 for problem in problems)
    assert all(" x " in problem.description for problem in problems)


def test_even_problems_are_products_or_simple_irreducible_shapes():
    settings = replace(EVEN_PROBLEMS, n_samples=(40, 60))
    problems = [datasets.random_problem(seed, settings=settings) for seed in range(40)]
    assert {problem.kind for problem in problems} == {"even", "irreducible"}
    # The same problems as before there were other kinds.
    circles = "Sphere(radius=0.868, ambient=2) x Sphere(radius=1.235, ambient=2)"
    assert problems[7].description.startswith(circles)
    assert problems[7].X.shape == (41, 7)
