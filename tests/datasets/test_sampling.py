import numpy as np
import pytest

from manifactor import datasets


@pytest.mark.parametrize("name", sorted(datasets.SHAPES))
def test_every_shape_has_finite_samples_with_a_truth_for_each_and_a_seed_repeats_them(name):
    X, truth = datasets.sample(name, 20, noise=0.1, random_state=7)
    assert X.shape[0] == 20
    assert np.isfinite(X).all()
    assert all(t.shape[0] == 20 and t.ndim == 2 for t in truth)
    np.testing.assert_array_equal(datasets.sample(name, 20, noise=0.1, random_state=7)[0], X)


def test_shapes_are_those_that_rates_were_measured_on():
    drawn = [datasets.sample(name, 20, random_state=7) for name in sorted(datasets.SHAPES)]
    sums = [np.abs(X).sum() + sum(np.abs(t).sum() for t in truth) for X, truth in drawn]
    assert np.log(sums).sum() == pytest.approx(589.2786299606468, rel=1e-9)


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


def test_noise_fills_the_ambient_space():
    clean, _ = datasets.sample("square", 4000, ambient_dimension=10, random_state=0)
    noisy, _ = datasets.sample("square", 4000, ambient_dimension=10, noise=0.3, random_state=0)
    np.testing.assert_allclose((noisy - clean).std(axis=0), 0.3, rtol=0.05)


@pytest.mark.parametrize("sampling", ["weighted", "dependent", "duplicates", "outliers"])
def test_samplings_do_what_they_say(sampling):
    X, (first, second) = datasets.sample("square", 4000, sampling=sampling, random_state=0)
    assert len(X) == len(first) == len(second) == 4000
    middle, ends = ((np.abs(first - 0.5) < 0.1).mean(), (np.abs(first - 0.5) > 0.4).mean())
    correlation = np.corrcoef(first[:, 0], second[:, 0])[0, 1]
    seen = {
        "weighted": middle > 3 * ends,
        "dependent": 0.1 < correlation < 0.3,
        "duplicates": len(np.unique(X, axis=0)) == 4000 - len(X[3600:]),
        "outliers": 10 < (np.abs(X - 0.5).max(axis=1) > 0.5).sum() <= 40,
    }
    assert seen[sampling]


@pytest.mark.parametrize(
    ("name", "n", "options", "message"),
    [
        ("tours", 10, {}, "one of `datasets.SHAPES`, like torus[a-z0-9_, ]*; got 'tours'"),
        ("torus", 0, {}, "`n_samples` must be a whole number in .* got 0"),
        ("torus", 10, {"noise": -1}, "`noise` must be a number in .* got -1"),
        ("torus", 10, {"ambient_dimension": 3}, "`ambient_dimension` must be at least 4"),
        ("square", 10, {"sampling": "odd"}, "`sampling` must be one of"),
        ("gaussian_1_2", 10, {"sampling": "weighted"}, "need latents between 0 and 1"),
    ],
)
def test_bad_requests_say_what_must_hold(name, n, options, message):
    with pytest.raises(ValueError, match=message):
        datasets.sample(name, n, **options)


def test_shapes_without_an_exact_spectrum_say_which_have_one():
    with pytest.raises(ValueError, match=r"exact eigenvalues are known for .*torus.*; got 'disk'"):
        datasets.exact_eigenvalues("disk", 3)
