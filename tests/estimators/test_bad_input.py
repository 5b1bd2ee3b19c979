import numpy as np
import pytest
from sklearn.neighbors import KNeighborsTransformer, kneighbors_graph

from manifactor import DiffusionMap, ManifoldFactorizer

X20 = np.random.default_rng(0).normal(size=(20, 3))
MARKED = np.where(X20[7, 1] == X20, np.finfo(float).max, X20)
OWN = KNeighborsTransformer()
BINARY = KNeighborsTransformer(mode="connectivity")
GRAPH = kneighbors_graph(X20, 6, mode="distance")

SAMPLES = [
    (np.where(X20[3, 1] == X20, np.nan, X20), r"`X` must be finite; .* in row 3, column 1"),
    (np.ones((20, 2)), "at least 3 samples must differ; got 20 samples of which 1 are"),
    (X20[:3], "at least 4 samples, one a row, .*; got 3 samples. Add samples"),
    (X20[0], "Expected 2D array, got 1D array"),
    (np.array([["a", "b"]] * 20), "could not convert string to float"),
    (X20 * 1e160, r"`X` must be smaller than 1e\+150, so that their squares are finite"),
    (X20 * 1e-200, "`X` must differ by more than 1e-150"),
    (MARKED, r"the first, 1.8e\+308, in row 7, column 1. Such a number is"),
    (np.ma.masked_greater(X20, 1), "`X` must not have masked values; got"),
]


@pytest.mark.parametrize(("X", "message"), SAMPLES)
def test_samples_that_cannot_be_fitted_say_what_must_hold(X, message):
    with pytest.raises(ValueError, match=message):
        ManifoldFactorizer().fit(X)


PARAMETERS = [
    ({"n_functions": 20}, r"`n_functions` .* \[2, 19\]; got 20 with 20 samples"),
    ({"n_functions": 2.5}, "`n_functions` must be 'auto' or a whole number"),
    ({"n_neighbors": 20}, r"`n_neighbors` .* \[1, 19\]; got 20 with 20 samples"),
    ({"n_neighbors": "many"}, "`n_neighbors` must be one of 'auto', 'all' or a number"),
    ({"bandwidth": -1.0}, "`bandwidth` must be 'auto' or a number above 0; got -1.0"),
    ({"bandwidth": "wide"}, "`bandwidth` must be one of 'auto', 'local' or a positive"),
    ({"bandwidth": "local", "n_neighbors": "all"}, "needs a neighbour graph"),
    ({"bandwidth": 1e-9, "n_neighbors": "all"}, "must connect samples; got `bandwidth` 1e-09"),
    ({"neighbors": OWN, "n_neighbors": "all"}, "measures Euclidean distances"),
    ({"neighbors": OWN, "n_neighbors": 5}, "the search given as `neighbors` decides the number"),
    ({"neighbors": BINARY}, "must hold distances; got ones only"),
    ({"neighbors": "ball"}, "`neighbors` must be one of"),
    ({"neighbors": 3}, "an object with fit and transform"),
    ({"neighbors": "precomputed"}, "`X` must be a sparse matrix of distances; got ndarray"),
    ({"density_correction": 2}, r"`density_correction` must be a number in \[0, 1\]; got 2"),
    ({"solver": "magic"}, "`solver` must be one of 'auto', 'dense', 'arpack', 'chebyshev'"),
    ({"n_jobs": "a"}, "`n_jobs` must be None or a whole number other than 0"),
    ({"n_jobs": 0}, "`n_jobs` must be None or a whole number other than 0"),
    ({"n_factors": 0}, r"`n_factors` must be 'auto' or a whole number in \[1, 6\]; got 0"),
    ({"method": "magic"}, "`method` must be one of 'deflation', 'gradients', 'sum', 'triplets'"),
    pytest.param(
        {"device": "warp"},
        "`device` must be 'cpu' or a device that torch can use; got 'warp': .* torch finds 'cpu'",
        marks=pytest.mark.torch,
    ),
    (
        {"similarity_threshold": 1.5},
        r"`similarity_threshold` must be 'auto' or a number in \[0, 1\]",
    ),
    (
        {"eigenvalue_tolerance": 0},
        "`eigenvalue_tolerance` must be 'auto' or a number above 0; got 0",
    ),
    ({"exclude": 3}, "`exclude` must be a sequence of indices of functions; got 3"),
    ({"n_factors": "many"}, "`n_factors` .* got 'many'"),
    ({"sense": "touch"}, "`sense` must be one of"),
    ({"method": "triplets", "exclude": [99]}, r"`exclude` .* in \[1, 2\]; got 99"),
]


@pytest.mark.parametrize(("parameters", "message"), PARAMETERS)
def test_parameters_that_no_fit_can_have_say_what_must_hold(parameters, message):
    with pytest.raises(ValueError, match=message):
        ManifoldFactorizer(**parameters).fit(X20)


def never(stage, fraction):
    pytest.fail(f"the stage {stage} was begun")


REFUSED = [
    ({"exclude": [1]}, "`exclude` is for `method='triplets'`"),
    ({"similarity_threshold": 0.7}, "`similarity_threshold` is for"),
    ({"method": "triplets", "exclude": [0]}, "`exclude` must be a whole number"),
    ({"method": "triplets", "exclude": [12], "n_functions": 10}, r"`exclude` .* \[1, 9\]; got 12"),
    ({"method": "sum", "n_functions": 50}, "`n_functions` must be 'auto' with `method='sum'`"),
    ({"method": "deflation", "exclude": [1]}, "`exclude` is for"),
    ({"method": "triplets", "sense": "sum"}, "`sense` is for `method='gradients'`"),
    ({"verbose": -1}, "`verbose` must be True, False or a whole"),
    ({"verbose": "loud"}, "`verbose` must be True, False or a whole"),
]


@pytest.mark.parametrize(("parameters", "message"), REFUSED)
def test_what_cannot_be_used_is_refused_before_anything_is_computed(torus, parameters, message):
    with pytest.raises(ValueError, match=message):
        ManifoldFactorizer(callback=never, **parameters).fit(torus[0])


OPTIONS = [
    ({"noise": [0.1]}, "for each of the 4 columns"),
    ({"noise": [0.1, 0.1, -1, 0.1]}, "a standard deviation of 0 or more"),
    ({"noise": [0.1, 0.1, np.nan, 0.1]}, "a standard deviation of 0 or more"),
    ({"noise": "some"}, "a standard deviation of 0 or more, .* got 'some'"),
    ({"noise": [[0.1], [0.1, 0.2]]}, "a standard deviation of 0 or more"),
    ({"noise": [0.1, 0.1, 1e200, 0.1]}, "a standard deviation of 0 or more, below 1e"),
    ({"column_names": ["x", "y"]}, "one name for each of the 4 columns of `X`; got 2 names"),
    ({"column_names": "abcd"}, "one name for each of the 4 columns of `X`; got 'abcd'"),
    ({"column_names": 4}, "one name for each of the 4 columns of `X`; got 4"),
]


@pytest.mark.parametrize(("options", "message"), OPTIONS)
def test_options_of_a_fit_are_refused_before_anything_is_computed(torus, options, message):
    with pytest.raises(ValueError, match=message):
        ManifoldFactorizer(callback=never).fit(torus[0], **options)


@pytest.mark.parametrize("mark", [1e20, 1e149])
def test_a_column_beside_which_samples_do_not_differ_is_refused(torus, mark):
    # 1e20 is the mark for missing values in files of climate models.
    X = np.c_[torus[0][:100], np.full(100, mark)]
    said = rf"column 4 are 1e\+{np.log10(mark):.0f} or more, and samples differ by"
    with pytest.raises(ValueError, match=said):
        ManifoldFactorizer(random_state=0).fit(X)


def test_tiny_samples_beside_a_far_one_are_refused(torus):
    X = torus[0][:100] * 1e-156
    X[4, 0] = 1
    with pytest.raises(ValueError, match="neighbours must lie more than 1e-152 apart"):
        ManifoldFactorizer(random_state=0).fit(X)


def test_distances_must_be_square_and_not_negative_and_decide_their_own_number():
    precomputed = {"neighbors": "precomputed"}
    for parameters, graph, message in [
        (precomputed, GRAPH[:10], "must be square"),
        (precomputed, -GRAPH, "must not be negative"),
        (precomputed, GRAPH > 0, "must hold distances; got ones only"),
        (precomputed, GRAPH * 1e-160, "`X` must differ by more than 1e-150"),
        ({**precomputed, "n_neighbors": 5}, GRAPH, "distances decide the number of neighbours"),
    ]:
        with pytest.raises(ValueError, match=message):
            DiffusionMap(5, **parameters).fit(graph)
    with pytest.raises(ValueError, match="a sparse matrix of distances"):
        ManifoldFactorizer(**precomputed).fit(GRAPH, fit_samples=10)
    fit = DiffusionMap(5, random_state=0, **precomputed).fit(GRAPH)
    with pytest.raises(ValueError, match="features"):
        fit.transform(GRAPH[:, :7])
