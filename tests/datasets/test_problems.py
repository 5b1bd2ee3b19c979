import numpy as np

from manifactor import datasets
from manifactor.datasets.problems import ProblemSettings


def test_random_problems_are_reproducible_and_of_every_kind():
    problems = [datasets.random_problem(seed) for seed in range(40)]
    again = datasets.random_problem(7)
    np.testing.assert_array_equal(again.X, problems[7].X)
    assert {len(problem.truth) for problem in problems} == {1, 2, 3}
    assert all(800 <= len(problem.X) <= 6000 for problem in problems)
    scales = [np.abs(problem.X).max() for problem in problems]
    assert max(scales) > 1e9 * min(scales)


def test_settings_change_the_distribution_of_problems():
    settings = ProblemSettings(
        n_samples=(50, 60), irreducible_share=0, factor_counts=(0.0, 1.0, 0.0)
    )
    problems = [datasets.random_problem(seed, settings=settings) for seed in range(5)]
    assert all(50 <= len(problem.X) <= 60 for problem in problems)
    assert all(len(problem.truth) == 2 for problem in problems)
    assert all(" x " in problem.description for problem in problems)
