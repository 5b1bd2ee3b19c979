"""A function of every column before the fit: square root, logarithm, ranks."""

import numpy as np
import pytest

from manifactor import DiffusionMap, ManifoldFactorizer, datasets
from manifactor.judging.evidence import NoProductStructureWarning
from manifactor.samples.preparation import make_transformation
from studies.mixture import draw


@pytest.fixture(scope="module")
def torus():
    return datasets.sample("torus", 600, random_state=0)[0]


FUNCTIONS = {"sqrt": np.square, "log": np.exp}


@pytest.mark.medium
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_transformation_comes_before_everything_else_and_is_undone(torus, name):
    plain = torus - torus.min() + 0.1
    X = FUNCTIONS[name](plain)
    fit = ManifoldFactorizer(transformation=name, sense="geometry", random_state=0).fit(X)
    same = ManifoldFactorizer(transformation="none", sense="geometry", random_state=0).fit(plain)
    np.testing.assert_allclose(fit.coordinates(), same.coordinates(), atol=1e-6)
    np.testing.assert_allclose(fit.transform(X[:9]), same.transform(plain[:9]), atol=1e-6)
    places = same.transform(plain)
    back = FUNCTIONS[name](same.inverse_transform(places))
    np.testing.assert_allclose(fit.inverse_transform(places), back, rtol=1e-4)
    assert fit.choices_["transformation"].value.name == name
    assert "transformation" not in same.choices_


def test_ranks_are_even_between_0_and_1_whatever_the_units(rng):
    X = np.exp(2 * rng.normal(size=(500, 2)))
    ranks = make_transformation("ranks", X)
    np.testing.assert_allclose(np.sort(ranks(X)[:, 0]), np.linspace(0, 1, 500), atol=1e-9)
    np.testing.assert_allclose(ranks.inverse(ranks(X)), X)
    # Beyond the samples of the fit, the ends count; ties have their mean.
    np.testing.assert_array_equal(ranks(np.array([[-1.0, 1e9]])), [[0, 1]])
    tied = np.array([[0.0], [1.0], [1.0], [1.0], [2.0]])
    np.testing.assert_allclose(make_transformation("ranks", tied)(tied)[1], 0.5)


@pytest.mark.parametrize(("name", "low"), [("sqrt", -0.1), ("log", 0.0)])
def test_values_that_have_no_such_function_are_refused(torus, name, low):
    X = np.abs(torus) + 0.1
    X[3, 2] = low
    with pytest.raises(ValueError, match="column 2"):
        DiffusionMap(transformation=name).fit(X)


def test_distances_have_no_columns_to_transform(torus):
    X = DiffusionMap(n_functions=5).fit(torus).diffusion_.affinity.kernel
    fit = DiffusionMap(neighbors="precomputed", transformation="sqrt")
    with pytest.raises(ValueError, match="no columns to transform"):
        fit.fit(X)


@pytest.mark.slow
def test_the_square_root_of_counts_is_taken_by_itself_if_it_makes_them_a_product():
    X = draw(12, family="counts", n_samples=700).X
    fit = ManifoldFactorizer(sense="geometry", random_state=7).fit(X)
    assert fit.n_factors_ == 2
    chosen = fit.choices_["transformation"]
    assert chosen.value.name == "sqrt"
    assert 'the columns themselves are "partial"' in chosen.why
    asked = ManifoldFactorizer(transformation="sqrt", sense="geometry", random_state=7).fit(X)
    np.testing.assert_array_equal(asked.transform(X[:5]), fit.transform(X[:5]))
    # What is not a product either way stays as it is.
    shuffled = np.random.default_rng(0).permuted(X, axis=0)
    fit = ManifoldFactorizer(sense="geometry", random_state=7)
    with pytest.warns(NoProductStructureWarning):
        assert "transformation" not in fit.fit(shuffled).choices_
