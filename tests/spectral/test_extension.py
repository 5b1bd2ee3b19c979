import numpy as np
import pytest

from manifactor import DiffusionMap, datasets


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings", [{}, {"bandwidth": "local"}, {"n_neighbors": "all"}, {"density_correction": 0.0}]
)
@pytest.mark.parametrize("shape", ["rectangle", "torus"])
def test_extension_reproduces_the_training_functions(shape, settings):
    X, _ = datasets.sample(shape, 1200, random_state=0)
    fit = DiffusionMap(30, random_state=0, **settings).fit(X)
    again, exact = fit.transform(X), fit.spectrum_.functions[:, 1:]
    error = np.linalg.norm(again - exact, axis=0) / np.linalg.norm(exact, axis=0)
    assert error.max() < 1e-6


def test_extension_reproduces_training_functions_with_copies_and_bridges(rng):
    X = np.r_[rng.uniform(size=(200, 2)), rng.uniform(size=(150, 2)) + 5]
    X = np.r_[X, X[:30]]
    with pytest.warns(UserWarning, match="2 components"):
        fit = DiffusionMap(10, n_neighbors=10, random_state=0).fit(X)
    np.testing.assert_allclose(fit.transform(X), fit.spectrum_.functions[:, 1:], atol=1e-6)


def test_extension_is_close_to_the_truth_at_new_samples():
    X, (angle, _) = datasets.sample("torus", 4000, random_state=0)
    fit = DiffusionMap(3, random_state=0).fit(X[:3000])
    new = fit.transform(X[3000:])
    scale = np.hypot(*new.T)
    np.testing.assert_allclose(scale, np.sqrt(2), rtol=0.15)
    turn = (new / scale[:, None]) @ [1, 1j] * (angle[3000:] @ [1, -1j])
    other = (new / scale[:, None]) @ [1, 1j] * (angle[3000:] @ [1, 1j])
    assert max(abs(turn.mean()), abs(other.mean())) > 0.995


@pytest.mark.slow
def test_a_nudge_to_a_sample_nudges_its_functions(rectangle):
    X, _ = rectangle
    fit = DiffusionMap(10, random_state=0).fit(X)
    nudged = fit.transform(X + 1e-4)
    assert np.abs(nudged - fit.spectrum_.functions[:, 1:]).max() < 0.1


@pytest.mark.slow
def test_samples_out_of_reach_are_refused(rectangle):
    X, _ = rectangle
    with pytest.raises(ValueError, match="1 of 3 have none within reach of the bandwidth"):
        DiffusionMap(5).fit(X).transform([[0, 0], [1, 1], [1e4, 0]])


def test_new_samples_like_the_outliers_lie_where_their_nearest_neighbour_lies():
    X, _ = datasets.sample("torus", 800, random_state=0)
    far = np.array([[40.0, 0, 0, 0]])
    fit = DiffusionMap(10, random_state=0).fit(np.vstack([X, far]))
    assert np.flatnonzero(fit.outliers_).tolist() == [800]
    nearest = np.linalg.norm(X - (far - 1), axis=1).argmin()
    np.testing.assert_array_equal(fit.transform(far - 1)[0], fit.spectrum_.functions[nearest, 1:])
    with pytest.raises(ValueError, match="1 of 1 have none within reach"):
        fit.transform(far + 1)
