import numpy as np
import pytest
from scipy.special import expit

from studies.judgement import Example, calibration_error, fit, left_out, predicted, record

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def examples():
    """Results of two kinds, whose log odds fall by 4 with a shortcoming; another means nothing."""
    rng = np.random.default_rng(0)
    found = []
    for number in range(4000):
        kind, far, idle = rng.choice(["a", "b"]), rng.uniform(0, 2), rng.uniform(0, 2)
        right = rng.uniform() < expit((3 if kind == "a" else 1) - 4 * min(far, 1))
        member = f"family: {number % 20}"
        faults = {"far": far, "idle": idle}
        found.append(Example(number, member, "product", str(kind), faults, bool(right)))
    return found


def test_the_table_has_the_log_odds_of_the_results(examples):
    table = fit(examples)
    assert table["kinds"]["a"] - table["kinds"]["b"] == pytest.approx(2, abs=0.3)
    assert table["log odds"]["far"][4] == pytest.approx(-4, abs=0.6)
    assert table["log odds"].get("idle", [0.0])[-1] > -0.4


def test_probabilities_of_members_that_were_left_out_are_their_rates(examples):
    right = np.array([each.right for each in examples], float)
    assert calibration_error(left_out(examples), right) < 0.03
    assert calibration_error(np.full(len(right), 0.9), right) > 0.3
    known = predicted(fit(examples), examples)
    assert np.mean((known - right) ** 2) < np.mean((right.mean() - right) ** 2)


def test_a_record_has_the_proposals_and_whether_they_are_right():
    found = record(2, family="sums")
    first = found["proposals"][0]
    assert first["sense"] == "geometry"
    assert len(first["right"]) == len(first["topologies"])
    assert {"leakage", "folds"} <= {test[0] for test in first["tests"]}
