import numpy as np
import pytest

from manifactor import datasets


@pytest.mark.parametrize("name", sorted(datasets.SHAPES))
def test_every_shape_has_finite_samples_with_a_truth_for_each(name):
    X, truth = datasets.sample(name, 50, random_state=0)
    assert X.shape[0] == 50
    assert np.isfinite(X).all()
    assert all(t.shape[0] == 50 and t.ndim == 2 for t in truth)


def test_samples_of_the_torus_lie_on_two_circles_with_the_paper_s_radii():
    X, (first, second) = datasets.sample("torus", 100, random_state=0)
    np.testing.assert_allclose(X[:, :2], (1 + np.sqrt(np.pi)) * first)
    np.testing.assert_allclose(X[:, 2:], 2 * second)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("square", np.pi**2 * np.array([0, 1, 1, 2, 4, 4, 5, 5])),
        ("equal_torus", [0, 1, 1, 1, 1, 2, 2, 2]),
        ("sphere", [0, 2, 2, 2, 6, 6, 6, 6]),
        ("sphere3", [0, 3, 3, 3, 3, 8, 8, 8]),
        ("sphere_sphere", [0, 2, 2, 2, 2, 2, 2, 4]),
    ],
)
def test_exact_eigenvalues(name, expected):
    np.testing.assert_allclose(datasets.exact_eigenvalues(name, 8), expected)


def test_the_swiss_roll_is_isometric_to_its_rectangle():
    X, (arc, _) = datasets.sample("swiss_roll", 4000, random_state=0)
    order = np.argsort(arc[:, 0])
    curve = X[order][:, [0, 2]]
    steps = np.linalg.norm(np.diff(curve, axis=0), axis=1)
    length = steps.sum() / np.ptp(arc)
    np.testing.assert_allclose(
        np.cumsum(steps),
        (arc[order[1:], 0] - arc[order[0], 0]) * length,
        rtol=0,
        atol=0.01 * length,
    )


def test_shapes_without_an_exact_spectrum_say_which_have_one():
    with pytest.raises(ValueError, match=r"exact eigenvalues are known for .*torus.*; got 'disk'"):
        datasets.exact_eigenvalues("disk", 3)
