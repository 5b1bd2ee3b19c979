"""Principal components that are noise, or that distances do not depend on, are dropped."""

from functools import partial

import numpy as np
import pytest
from sklearn.metrics import pairwise_distances

from manifactor import ManifoldFactorizer, datasets, load, save
from manifactor.samples import preparation
from manifactor.samples.preparation import (
    all_axes,
    choose_preparation,
    components_beside_noise,
    even_edge,
    left_in_columns,
    uneven_edge,
)

SIDE = 36  # pixels, so that an image has 1296


def beside_noise(X):
    return components_beside_noise(X - X.mean(axis=0), all_axes(X).axes)


@pytest.fixture(scope="module")
def noisy():
    return datasets.sample("square", 1000, noise=0.05, ambient_dimension=20, random_state=0)[0]


def test_isotropic_noise_is_dropped_and_nothing_else(noisy):
    choice = choose_preparation(noisy)
    assert choice.value.components.shape == (20, 2)
    assert choice.why == choice.value.reason
    assert "18 of 20 principal components are isotropic" in choice.why
    assert choice.value.noise == pytest.approx(0.05**2, rel=0.05)


@pytest.mark.parametrize("shape", ["square", "equal_torus3", "swiss_roll", "strip10"])
def test_clean_samples_are_left_alone(shape):
    choice = choose_preparation(datasets.sample(shape, 1000, random_state=0)[0])
    assert choice.value is None


def test_equal_variances_that_are_no_gaussian_are_structure(rng):
    X = np.c_[10 * rng.uniform(size=(2000, 1)), rng.uniform(size=(2000, 6))]
    choice = choose_preparation(X)
    assert choice.value is None
    assert choice.why == "no principal components are isotropic Gaussian noise"
    gaussian = np.c_[X[:, :1], rng.normal(size=(2000, 6))]
    assert choose_preparation(gaussian).value.components.shape == (7, 1)


@pytest.fixture(scope="module")
def torus():
    return datasets.sample("torus", 1000, ambient_dimension=40, random_state=0)[0]


def uneven_noise(X, kind, rng):
    noise = rng.normal(size=X.shape)
    if kind == "columns":
        return X + np.geomspace(0.01, 0.15, X.shape[1]) * noise
    return X + 0.05 * np.exp(0.5 * rng.normal(size=(len(X), 1))) * noise


@pytest.mark.parametrize("kind", ["columns", "samples"])
def test_noise_that_is_uneven_is_dropped(torus, rng, kind):
    choice = choose_preparation(uneven_noise(torus, kind, rng))
    kept = choice.value.components.shape[1]
    # Noise in a few samples alone may look like a factor.
    assert 4 <= kept <= 6
    assert f"{40 - kept} of 40 principal components are noise" in choice.why


@pytest.mark.parametrize("weak", ["uniform", "exponential"])
def test_a_factor_in_one_column_is_no_noise_of_that_column(torus, rng, weak):
    X = uneven_noise(torus, "columns", rng)
    factor = getattr(rng, weak)(size=1000)
    column = 0.3 * factor / factor.std()
    kept = choose_preparation(np.column_stack([X, column])).value
    assert kept.components.shape == (41, 5)
    assert np.linalg.norm(kept.components[-1]) > 0.99


def test_coordinates_of_a_sphere_are_no_noise(rng):
    noise = rng.normal(size=(2000, 30))
    sphere = noise / np.linalg.norm(noise, axis=1, keepdims=True)
    line = 5 * rng.uniform(-1, 1, size=(2000, 1)) * np.ones(3)
    for beside, kept in [(noise, 1), (sphere, 31)]:
        X = np.hstack([line, beside])
        assert len(beside_noise(X)) == kept


@pytest.mark.parametrize("columns", [4, 20])
def test_a_gaussian_blob_is_not_flattened(rng, columns):
    choice = choose_preparation(rng.normal(size=(1000, columns)))
    assert choice.value is None
    assert choice.why == "all principal components look like one Gaussian"


def test_what_cannot_be_tested_is_left_alone(noisy):
    few = choose_preparation(noisy[:100])
    narrow = choose_preparation(noisy[:, :3])
    equal = choose_preparation(np.zeros((200, 1001)))
    assert few.value is narrow.value is equal.value is None
    assert "fewer than 150" in few.why
    assert "3 columns" in narrow.why
    assert "equal" in equal.why


@pytest.fixture(scope="module")
def images():
    """600 images of two blobs that move independently, without noise."""
    rng = np.random.default_rng(0)
    row, column = np.mgrid[:SIDE, :SIDE]

    def blob(x, y):
        square = (column - x[:, None, None]) ** 2 + (row - y[:, None, None]) ** 2
        return np.exp(-square / 18).reshape(len(x), -1)

    place, angle = rng.uniform(5, 31, 600), rng.uniform(0, 2 * np.pi, 600)
    circle = blob(24 + 5 * np.cos(angle), 18 + 5 * np.sin(angle))
    return blob(np.full(600, 6.0), place) + circle


def squared_distances(X):
    return pairwise_distances(X, metric="sqeuclidean")


@pytest.mark.medium
def test_components_that_distances_do_not_need_are_dropped_from_wide_samples(images):
    choice = choose_preparation(images)
    kept = choice.value.components.shape[1]
    assert kept < 30
    assert f"neighbours depend on {kept} of 1,296 principal components; " in choice.why
    before = squared_distances(images)
    near = np.argsort(before, axis=1)[:, 8:9]
    after = squared_distances(choice.value(images))
    change = 1 - np.take_along_axis(after / np.fmax(before, 1e-300), near, axis=1)
    assert np.median(change) < 2e-3


@pytest.mark.slow
def test_noise_of_every_kind_is_dropped_from_wide_samples(images, rng):
    shape = images.shape
    kinds = [
        images + 0.1 * rng.normal(size=shape),
        images + rng.uniform(-0.2, 0.2, size=shape),
        images + 0.1 * rng.uniform(0.3, 1.7, SIDE**2) * rng.normal(size=shape),
        rng.poisson(20 * images + 4) / 20,
    ]
    # Many pictures are black beyond a circle.
    row, column = np.mgrid[:SIDE, :SIDE] - SIDE / 2
    kinds.append(kinds[0] * (np.hypot(row, column) < SIDE / 2).ravel())
    for X in kinds:
        choice = choose_preparation(X)
        kept = choice.value.components.shape[1]
        assert 6 <= kept <= 20
        assert "uncorrelated" in choice.why


def test_noise_of_counts_is_dropped_where_images_have_few_pixels(images, rng):
    few = images[:, ::4]
    X = rng.poisson(20 * few + rng.uniform(0.5, 2.5, few.shape[1])).astype(float)
    kept = choose_preparation(X).value.components
    assert kept.shape[1] <= 20
    # The images without noise lie in what is kept.
    signal = few - few.mean(axis=0)
    lost = signal - signal @ kept @ kept.T
    assert (lost**2).sum() < 0.02 * (signal**2).sum()


def test_the_edge_of_uneven_noise_is_its_largest_variance(rng, monkeypatch):
    sizes = np.geomspace(1, 10, 400)
    noise = sizes**0.5 * rng.normal(size=(1000, 400))
    largest = all_axes(noise).variance[0]
    monkeypatch.setattr(preparation, "SPARED_COLUMNS", 0)
    edge = uneven_edge(noise.var(axis=0), np.ones(400), n_samples=1000, n_measured=1000)
    # The edge is reached from below, by 3 % on average with so many samples.
    assert 0.94 * edge < largest < edge
    # As many dimensions as noise of equal sizes with the same cosines would have.
    n_dimensions = sizes.sum() ** 2 / (sizes**2).sum()
    assert even_edge(sizes.sum(), n_dimensions, 1000) < 0.9 * largest


def test_the_edge_does_not_fall_where_components_hold_the_noise_of_columns(rng):
    noise = np.repeat([3.0, 1.0], [60, 240]) * rng.normal(size=(1000, 300))
    basis = np.zeros((300, 15))
    basis[:60] = np.linalg.qr(rng.normal(size=(60, 15)))[0]
    *_, left = left_in_columns(noise, noise @ basis, basis)
    share = 1 - (basis[:, :-1] ** 2).sum(axis=1)
    beyond = noise - noise @ basis[:, :-1] @ basis[:, :-1].T
    np.testing.assert_allclose(left, (beyond**2).mean(axis=0))
    np.testing.assert_allclose(left / share, noise.var(axis=0), rtol=0.2)
    edge = partial(uneven_edge, n_samples=1000, n_measured=1000)
    assert edge(left, share) > 0.9 * edge(noise.var(axis=0), np.ones(300))


def test_factors_in_few_columns_do_not_raise_the_edge(rng):
    noise = 0.1 * rng.normal(size=(1000, 300))
    X = np.column_stack([rng.normal(size=(1000, 2)) * [1, 0.5], noise])
    assert choose_preparation(X).value.components.shape == (302, 2)


@pytest.mark.slow
def test_wide_samples_that_are_all_structure_or_all_noise_are_left_alone(rng):
    place = 30 * rng.uniform(size=(600, 2))
    waves = np.cos(place @ rng.normal(size=(2, 1296)) + rng.uniform(0, 7, 1296))
    structure = choose_preparation(waves)
    noise = choose_preparation(rng.normal(size=(300, 1296)))
    assert structure.value is noise.value is None
    assert "not only noise" in structure.why
    assert "look like noise" in noise.why


def test_noise_of_few_columns_is_found_when_they_are_rotated_into_many(noisy, rng):
    basis = np.linalg.qr(rng.normal(size=(1296, 20)))[0]
    choice = choose_preparation(noisy @ basis.T)
    assert choice.value.components.shape == (1296, 2)
    assert "18 of 20 relevant" in choice.why


def test_samples_on_disk_in_single_precision_are_prepared_alike(images, tmp_path):
    np.save(tmp_path / "images.npy", images.astype(np.float32))
    mapped = np.load(tmp_path / "images.npy", mmap_mode="r")
    whole, again = choose_preparation(images).value, choose_preparation(mapped).value
    assert again.components.shape == whole.components.shape
    found, expected = squared_distances(again(mapped)), squared_distances(whole(images))
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.slow
def test_a_fit_of_noisy_images_finds_and_places_both_motions(images, rng, tmp_path):
    X = images + 0.02 * rng.normal(size=images.shape)
    fit = ManifoldFactorizer(random_state=0).fit(X[:550])
    assert {factor.topology for factor in fit.factors_} == {"interval", "circle"}
    save(fit, tmp_path / "fit.npz")
    again = load(tmp_path / "fit.npz")
    assert str(again.preparation_) == str(fit.preparation_)
    new = images[550:]
    np.testing.assert_allclose(again.transform(new), fit.transform(new), atol=1e-9)
    assert len(again.locate(new)[0].confidence) == 50
