import numpy as np
import pytest
from sklearn.neighbors import KNeighborsTransformer, kneighbors_graph
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import has_fit_parameter

from manifactor import DiffusionMap, ManifoldFactorizer

X20 = np.random.default_rng(0).normal(size=(20, 3))


BAD = [
    (
        {},
        np.where(X20[3, 1] == X20, np.nan, X20),
        r"`X` must be finite; got 1 NaN or inf values, the first in row 3, column 1",
    ),
    (
        {},
        np.ones((20, 2)),
        "at least 3 samples must differ; got 20 samples of which 1 are distinct",
    ),
    ({}, X20[:3], "at least 4 samples, one a row, .*; got 3 samples. Add samples"),
    ({}, X20[0], "Expected 2D array, got 1D array"),
    ({}, np.array([["a", "b"]] * 20), "could not convert string to float"),
    ({}, np.empty((0, 3)), "a fit needs at least 4 samples, .*; got 0 samples"),
    (
        {"n_functions": 20},
        X20,
        r"`n_functions` must be a whole number in \[2, 19\]; got 20 with 20 samples",
    ),
    ({"n_functions": 2.5}, X20, "`n_functions` must be a whole number"),
    (
        {"n_neighbors": 20},
        X20,
        r"`n_neighbors` must be a whole number in \[1, 19\]; got 20 with 20 samples",
    ),
    (
        {"n_neighbors": "many"},
        X20,
        "`n_neighbors` must be one of 'auto', 'all' or a number; got 'many'",
    ),
    ({"bandwidth": -1.0}, X20, "`bandwidth` must be a number above 0; got -1.0"),
    (
        {"bandwidth": "wide"},
        X20,
        "`bandwidth` must be one of 'auto', 'local' or a positive number; got 'wide'",
    ),
    ({"bandwidth": "local", "n_neighbors": "all"}, X20, "needs a neighbour graph"),
    (
        {"neighbors": KNeighborsTransformer(), "n_neighbors": "all"},
        X20,
        "measures Euclidean distances",
    ),
    ({"density_correction": 2}, X20, r"`density_correction` must be a number in \[0, 1\]; got 2"),
    (
        {"solver": "magic"},
        X20,
        "`solver` must be one of 'auto', 'dense', 'arpack', 'chebyshev'; got 'magic'",
    ),
    ({"neighbors": "ball"}, X20, "`neighbors` must be one of"),
    ({"neighbors": 3}, X20, "an object with fit and transform"),
    ({"neighbors": "precomputed"}, X20, "`X` must be a sparse matrix of distances; got ndarray"),
    (
        {"neighbors": "precomputed", "n_neighbors": 5},
        kneighbors_graph(X20, 6, mode="distance"),
        "precomputed distances decide the number of neighbours; got `n_neighbors`=5",
    ),
    (
        {"neighbors": KNeighborsTransformer(), "n_neighbors": 5},
        X20,
        "the search given as `neighbors` decides the number of neighbours; got `n_neighbors`=5",
    ),
    ({"n_jobs": "a"}, X20, "`n_jobs` must be None or a whole number other than 0"),
    ({"n_jobs": 0}, X20, "`n_jobs` must be None or a whole number other than 0"),
    ({"n_jobs": 2**70}, X20, "`n_jobs` must be None or a whole number other than 0"),
    (
        {"n_neighbors": "all", "bandwidth": 1e-9},
        X20,
        "the kernel must connect samples; got `bandwidth` 1e-09",
    ),
    ({}, X20 * 1e160, r"`X` must be smaller than 1e\+150, so that their squares are finite"),
    ({}, X20 * 1e-200, "`X` must differ by more than 1e-150, so that the squares of distances"),
    (
        {},
        np.where(np.equal(X20, X20[7, 1]), np.finfo(float).max, X20),
        r"got 1 that are not, the first, 1.8e\+308, in row 7, column 1. Such a number is",
    ),
    (
        {"neighbors": "precomputed"},
        kneighbors_graph(X20 * 1e-160, 6, mode="distance"),
        "`X` must differ by more than 1e-150, so that the squares of distances",
    ),
    ({}, np.ma.masked_greater(X20, 1), "`X` must not have masked values; got"),
    ({"n_factors": 0}, X20, r"`n_factors` must be a whole number in \[1, 6\]; got 0"),
    (
        {"method": "magic"},
        X20,
        "`method` must be one of 'deflation', 'gradients', 'sum', 'triplets'; got 'magic'",
    ),
    pytest.param(
        {"device": "warp"},
        X20,
        "`device` must be 'cpu' or a device that torch can use; got 'warp': "
        ".* device string: warp. On this machine torch finds 'cpu'",
        marks=pytest.mark.torch,
    ),
    (
        {"similarity_threshold": 1.5},
        X20,
        r"`similarity_threshold` must be a number in \[0, 1\]; got 1.5",
    ),
    ({"eigenvalue_tolerance": 0}, X20, "`eigenvalue_tolerance` must be a number above 0; got 0"),
    ({"exclude": 3}, X20, "`exclude` must be a sequence of indices of functions; got 3"),
    (
        {"neighbors": KNeighborsTransformer(mode="connectivity")},
        X20,
        "must hold distances; got ones only",
    ),
    (
        {"method": "triplets", "exclude": [99]},
        X20,
        r"`exclude` must be a whole number in \[1, 2\]; got 99",
    ),
]


@pytest.mark.parametrize(("parameters", "X", "message"), BAD)
def test_bad_input_says_what_must_hold(parameters, X, message):
    with pytest.raises(ValueError, match=message):
        ManifoldFactorizer(**parameters).fit(X)


def never(stage, fraction):
    pytest.fail(f"the stage {stage} was begun")


REFUSED = [
    ({"exclude": [1]}, "`exclude` is for `method='triplets'`"),
    ({"eigenvalue_tolerance": 0.5}, "`eigenvalue_tolerance` is for"),
    ({"similarity_threshold": 0.7}, "`similarity_threshold` is for"),
    ({"method": "triplets", "exclude": [0]}, "`exclude` must be a whole number"),
    (
        {"method": "triplets", "exclude": [12], "n_functions": 10},
        r"`exclude` must be a whole number in \[1, 9\]; got 12",
    ),
    ({"method": "triplets", "exclude": ["a"]}, "`exclude` must be a whole number"),
    (
        {"method": "sum", "n_functions": 50},
        "`n_functions` must be 'auto' with `method='sum'`, which",
    ),
    ({"method": "deflation", "exclude": [1]}, "`exclude` is for"),
    (
        {"method": "deflation", "n_functions": 50},
        "which does not use functions; got 50. Leave it out.",
    ),
    ({"method": "deflation", "similarity_threshold": 0.7}, "is for"),
]


@pytest.mark.parametrize(("parameters", "message"), REFUSED)
def test_what_cannot_be_used_is_refused_before_anything_is_computed(torus, parameters, message):
    with pytest.raises(ValueError, match=message):
        ManifoldFactorizer(callback=never, **parameters).fit(torus[0])


@pytest.mark.parametrize("verbose", [-1, "loud", None, 0.5])
def test_what_verbose_cannot_mean_is_refused(torus, verbose):
    with pytest.raises(ValueError, match="`verbose` must be True, False or a whole"):
        ManifoldFactorizer(callback=never, verbose=verbose).fit(torus[0])


def test_weights_are_refused_with_what_to_do_instead(torus):
    weight = np.ones(len(torus[0]))
    steps = make_pipeline(StandardScaler(), ManifoldFactorizer(callback=never))
    passed = [
        lambda: ManifoldFactorizer(callback=never).fit(torus[0], sample_weight=weight),
        lambda: DiffusionMap(callback=never).fit_transform(torus[0], sample_weight=weight),
        lambda: steps.fit(torus[0], manifoldfactorizer__sample_weight=weight),
    ]
    for fit in passed:
        with pytest.raises(TypeError, match="draw samples by their weights and fit"):
            fit()
    assert not has_fit_parameter(ManifoldFactorizer(), "sample_weight")
    with pytest.raises(TypeError, match="unexpected keyword argument 'weights'"):
        ManifoldFactorizer().fit(torus[0], weights=weight)


def test_columns_are_called_by_their_names(torus):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(torus[0][:300], columns=["x", "y", "z", "w"])
    missing = table.copy()
    missing.loc[7, "z"] = np.nan
    with pytest.raises(ValueError, match="the first in row 7, column 'z'"):
        ManifoldFactorizer().fit(missing)
    with pytest.raises(ValueError, match="those of column 'mark' are"):
        ManifoldFactorizer().fit(table.assign(mark=1e30))
    fit = DiffusionMap(5, random_state=0).fit(table)
    with pytest.raises(ValueError, match="the first in row 7, column 'z'"):
        fit.transform(missing)
    with pytest.raises(ValueError, match="the first in row 7, column 'c'"):
        ManifoldFactorizer().fit(missing.to_numpy(), column_names=list("abcd"))


@pytest.mark.parametrize(
    ("names", "got"),
    [
        (["x", "y"], "got 2 names"),
        (list("abcde"), "got 5 names"),
        ([], "got 0 names"),
        ("abcd", "got 'abcd'"),
        (4, "got 4"),
    ],
)
def test_columns_need_one_name_each(torus, names, got):
    message = f"one name for each of the 4 columns of `X`; {got}. Leave it out"
    with pytest.raises(ValueError, match=message):
        ManifoldFactorizer(callback=never).fit(torus[0], column_names=names)


@pytest.mark.parametrize(
    ("parameters", "noise", "message"),
    [
        ({}, [0.1], "for each of the 4 columns; got array"),
        ({}, [0.1, 0.1, -1, 0.1], "a standard deviation of 0 or more"),
        ({}, [0.1, 0.1, np.nan, 0.1], "a standard deviation of 0 or more"),
        ({}, "some", "a standard deviation of 0 or more, .* got 'some'"),
        ({}, [[0.1], [0.1, 0.2]], "a standard deviation of 0 or more"),
        ({}, [0.1, 0.1, 1e200, 0.1], "a standard deviation of 0 or more, below 1e"),
    ],
)
def test_noise_that_cannot_be_used_is_refused_before_anything_is_computed(
    torus, parameters, noise, message
):
    with pytest.raises(ValueError, match=message):
        ManifoldFactorizer(callback=never, **parameters).fit(torus[0], noise=noise)


@pytest.mark.parametrize("mark", [1e20, -1e38, 1e149])
def test_a_column_beside_which_samples_do_not_differ_is_refused(torus, mark):
    # 1e20 is the mark for missing values in files of climate models.
    X = np.c_[torus[0][:300], np.full(300, mark)]
    said = rf"column 4 are 1e\+{np.log10(abs(mark)):.0f} or more, and samples differ by"
    with pytest.raises(ValueError, match=said):
        ManifoldFactorizer(random_state=0).fit(X)


def test_tiny_samples_beside_a_far_one_are_refused(torus):
    X = torus[0][:300] * 1e-156
    X[4, 0] = 1
    with pytest.raises(ValueError, match="neighbours must lie more than 1e-152 apart"):
        ManifoldFactorizer(random_state=0).fit(X)
