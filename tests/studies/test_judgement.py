from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from manifactor.judging.probability import Trees
from studies.judgement import (
    Example,
    calibration_error,
    judge_of,
    learn,
    packed,
    part_of,
    predicted,
)
from studies.proposals import record

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def examples():
    """Results whose log odds fall by 4 with a shortcoming; another means nothing."""
    rng = np.random.default_rng(0)
    found = []
    for number in range(3000):
        far, idle = rng.uniform(0, 2), rng.uniform(0, 2)
        right = rng.uniform() < expit(2 - 4 * min(far, 1))
        inputs = {"leakage": far, "samples": idle}
        found.append(Example(number, f"family {number % 20}", inputs, bool(right)))
    return found


def test_trees_have_the_log_odds_of_the_results(examples):
    trees = learn(examples)
    good, bad = (replace(examples[0], inputs={"leakage": far, "samples": 1.0}) for far in (0, 1.5))
    np.testing.assert_allclose(predicted(trees, [good, bad]), [2, -2], atol=0.7)


def test_probabilities_of_families_that_were_left_out_are_their_rates(examples):
    right = np.array([each.right for each in examples], float)
    said = part_of(examples).probabilities
    assert calibration_error(said, right) < 0.04
    assert calibration_error(np.full(len(right), 0.9), right) > 0.3
    assert np.mean((said - right) ** 2) < np.mean((right.mean() - right) ** 2)


def test_a_judge_is_learnt_from_records_and_read_from_a_file(tmp_path):
    families = ("curves", "sums", "one curve", "bodies")
    records = [record(seed, family=families[seed % 4]) for seed in range(8)]
    judge = judge_of(records)
    assert len(judge.results) == len(records)
    path = tmp_path / "judge.npz"
    path.write_bytes(packed(judge.parts))
    with np.load(path) as stored:
        known = {name.partition(" ")[0] for name in stored}
    assert known == {"right", "true", "one", "factor"} == set(judge.parts)
    assert all(isinstance(trees, Trees) for trees in judge.parts.values())
