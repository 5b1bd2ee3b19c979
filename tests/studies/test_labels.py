import numpy as np
import pytest

from studies.labels import Truths, told

N = 900
rng = np.random.default_rng(0)
A, B, C = rng.uniform(size=(3, N, 1))
TURN = 2 * np.pi * rng.uniform(size=N)
RING = np.column_stack([np.cos(TURN), np.sin(TURN)])
THREE = (A, RING, C)
X = np.hstack([3 * A, RING, 2 * C])

CASES = {
    "the truth": (THREE, "right", (True, True, True)),
    "bent": ([A**2, RING @ [[0, 1], [-1, 0]], np.exp(C)], "right", (True, True, True)),
    "swapped": ([C, A, RING], "right", (True, True, True)),
    "two in one": ([np.hstack([A, C]), RING], "coarse", (False, True)),
    "missing": ([A, RING], "coarse", (True, True)),
    "mixed": ([A + C, A - C, RING], "wrong", (False, False, True)),
    "slightly mixed": ([A + 0.5 * C, C, RING], "wrong", (False, True, True)),
    "extra": ([*THREE, rng.normal(size=(N, 1))], "wrong", (True, True, True, False)),
    "found twice": ([A, A**3, RING, C], "wrong", (True, True, True, True)),
    "cut in two": ([A, RING[:, [0]], RING[:, [1]], C], "wrong", (True, False, False, True)),
    "noise": (list(rng.normal(size=(2, N, 1))), "wrong", (False, False)),
    "all in one": ([X], "wrong", (False,)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_division_has_the_label_that_the_eye_gives_it(name):
    places, expected, right = CASES[name]
    label = Truths(X, [THREE]).label(places)
    assert label.name == expected
    assert label.right == right


def test_any_of_several_truths_is_right():
    case = Truths(X, [(X,), THREE, (np.hstack([A, RING]), C)])
    assert case.label(THREE).name == "right"
    assert case.label([X]).name == "right"
    assert case.label([np.hstack([A, RING]), C]).name == "right"
    assert case.label([A, np.hstack([RING, C])]).name == "coarse"


def test_no_more_is_asked_than_neighbours_in_noisy_samples_tell():
    noisy = X + 0.1 * rng.normal(size=X.shape)
    case = Truths(noisy, [THREE])
    assert told(noisy[:, 1:3], [RING]) < 0.995
    assert case.ceilings[0][0] == pytest.approx(0.95, abs=0.04)
    assert case.label([noisy[:, [0]], noisy[:, 1:3], noisy[:, [3]]]).name == "right"


def test_a_truth_that_noise_hides_need_not_be_found():
    hidden = np.hstack([3 * A, RING, 2 * C + 5 * rng.normal(size=C.shape)])
    case = Truths(hidden, [THREE])
    assert case.ceilings[0][2] < 0.5
    assert case.label([A, RING]).name == "coarse"
    assert case.label([A, RING], only_told=True).name == "right"
    assert case.label([A, RING, C], only_told=True).name == "right"


def test_a_factor_may_tell_what_the_truths_share():
    dependent = A + 0.5 * C
    case = Truths(np.hstack([A, dependent]), [(A, dependent)])
    assert told(A, [dependent]) > 0.5
    assert case.label([A, dependent]).name == "right"
    assert case.label([A, C]).name == "wrong"


def test_copies_of_samples_tell_nothing():
    few = Truths(
        np.repeat(X[:150], 6, axis=0), [tuple(np.repeat(t[:150], 6, axis=0) for t in THREE)]
    )
    noise = np.repeat(rng.normal(size=(150, 1)), 6, axis=0)
    assert few.label([noise, noise]).r2.max() < 0.2
