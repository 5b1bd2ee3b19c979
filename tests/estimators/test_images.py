"""Fits of images, (n, height, width) or with three channels."""

import dask.array
import numpy as np
import pytest
from sklearn.base import clone

from manifactor import DiffusionMap, ManifoldFactorizer


@pytest.fixture(scope="module")
def images():
    """A spot that moves on a square, red and blue, (160, 6, 5, 3)."""
    rng = np.random.default_rng(0)
    row, column = rng.uniform(0, 4, (2, 160, 1, 1))
    y, x = np.mgrid[:6, :5]
    spot = np.exp(-((x - column) ** 2 + (y - row) ** 2) / 4)
    return np.stack([spot, 0 * spot, spot**2], axis=-1)


@pytest.fixture(scope="module")
def rows(images):
    return images.reshape(160, -1)


def fitted(X, **how):
    return ManifoldFactorizer(2, sense="geometry", random_state=0).fit(X, **how)


@pytest.fixture(scope="module")
def fit(images):
    return fitted(images)


@pytest.fixture(scope="module")
def same(rows):
    return fitted(rows)


@pytest.mark.medium
def test_images_are_fitted_and_placed_as_rows_of_pixels(fit, same, images, rows):
    assert fit.image_shape_ == (6, 5, 3)
    assert same.image_shape_ is None
    assert np.array_equal(fit.transform(images[:9]), same.transform(rows[:9]))
    assert np.array_equal(fit.transform(rows[:9]), same.transform(rows[:9]))
    assert np.array_equal(fit.coordinates(images[:9]), same.coordinates(rows[:9]))
    lazy = dask.array.from_array(images, chunks=(100, 6, 5, 3))
    for here, there, blocks in zip(
        fit.locate(images), same.locate(rows), fit.locate(lazy), strict=True
    ):
        assert np.array_equal(here.embedding, there.embedding)
        assert np.array_equal(here.embedding, blocks.embedding.compute())


@pytest.mark.medium
def test_the_preparation_says_that_columns_are_pixels(fit, images):
    assert fit.choices_["preparation"].why.startswith("images of 6 x 5 pixels in colour: ")
    grey = DiffusionMap(9, random_state=0).fit(images[..., 0])
    assert grey.choices_["preparation"].why.startswith("images of 6 x 5 pixels: ")
    assert grey.transform(images[:4, ..., 0]).shape == (4, 8)


@pytest.mark.medium
@pytest.mark.parametrize("wrong", [np.s_[0], np.s_[:, :5], np.s_[..., 0], np.s_[..., :2]])
def test_images_of_another_shape_are_refused(fit, images, wrong):
    with pytest.raises(ValueError, match=r"shape \(n, 6, 5, 3\), as those of the fit; got shape"):
        fit.transform(images[wrong])


@pytest.mark.parametrize("shape", [(50, 4, 3), (50, 3, 4), (50, 6, 6, 4), (50, 6, 6, 6)])
def test_arrays_that_may_be_something_else_are_refused(shape, rng):
    with pytest.raises(ValueError, match=r"Flatten other samples: X.reshape"):
        ManifoldFactorizer().fit(rng.normal(size=shape))


@pytest.mark.medium
def test_films_are_trajectories_of_images(rng):
    path = np.cumsum(rng.normal(size=(2, 40, 16)), axis=1)
    one = ManifoldFactorizer(1, random_state=0)
    flat = clone(one).fit(list(path), trajectories=True)
    for films in (path.reshape(2, 40, 4, 4), list(path.reshape(2, 40, 4, 4))):
        found = clone(one).fit(films, trajectories=True)
        assert found.image_shape_ == (4, 4)
        assert np.array_equal(found.factors_[0].embedding, flat.factors_[0].embedding)
