import warnings

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from manifactor import DiffusionMap, ManifoldFactorizer, datasets
from manifactor.scores import score


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::manifactor.NoProductStructureWarning")
@pytest.mark.filterwarnings("ignore::manifactor.SampleWarning")
@parametrize_with_checks([DiffusionMap(random_state=0), ManifoldFactorizer(random_state=0)])
def test_scikit_learn_accepts_the_estimators(estimator, check):
    check(estimator)


# Numbers of samples, for one solver and for another.
N_SAMPLES = {"torus": 2200, "sphere_interval": 1500}
FACTORS = {
    "torus": [("circle", 1), ("circle", 1)],
    "sphere_interval": [("interval", 1), ("other", 2)],
}


@pytest.fixture(scope="module", params=FACTORS)
def shape(request):
    return request.param


@pytest.fixture(scope="module")
def found(shape):
    """A fit of a shape, the samples and the truth."""
    X, truth = datasets.sample(shape, N_SAMPLES[shape], random_state=0)
    return ManifoldFactorizer(random_state=0).fit(X), X, truth


@pytest.mark.medium
def test_the_factors_of_a_shape_are_found_without_being_told(shape, found):
    fit, _, truth = found
    assert fit.verdict_ == "product"
    assert sorted((f.topology, f.dimension) for f in fit.factors_) == FACTORS[shape]
    assert score([f.embedding for f in fit.factors_], truth).solved
    assert np.nanmax(fit.evidence_.leakage) < 0.1


@pytest.mark.medium
def test_new_samples_find_their_place(shape, found):
    fit, _, _ = found
    X, truth = datasets.sample(shape, 500, random_state=5)
    new = score([placed.embedding for placed in fit.locate(X)], truth)
    assert new.number_right
    assert new.worst > 0.9
    assert new.leak < 0.1


@pytest.mark.medium
def test_columns_are_named_after_their_factor_and_every_choice_is_stored(torus):
    fit = ManifoldFactorizer(2, solver="chebyshev", random_state=0).fit(torus[0][:500])
    assert " ".join(fit.get_feature_names_out()) == "factor1_0 factor1_1 factor2_0 factor2_1"
    assert (fit.n_neighbors_, fit.n_functions_, fit.dimension_) == (64, 62, 2)
    assert (fit.neighbors_, fit.solver_) == ("kd_tree", "chebyshev")
    assert fit.bandwidth_ > 0
    assert list(fit.timings_) == ["preparation", "neighbours", "affinity", "spectrum", "factors"]


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_sides_of_a_rectangle_are_found_whatever_its_unit(rectangle, scale):
    fit = ManifoldFactorizer(random_state=0).fit(scale * rectangle[0][:800])
    assert fit.verdict_ == "product"
    for column, side in zip(fit.coordinates().T, rectangle[1], strict=True):
        assert abs(np.corrcoef(column, side[:800, 0])[0, 1]) > 0.99


@pytest.mark.slow
def test_fewer_factors_than_there_are_count_the_smallest_as_one():
    X, _ = datasets.sample("equal_cube", 700, random_state=0)
    fit = ManifoldFactorizer(sense="geometry", random_state=0).fit(X)
    assert fit.n_factors_ == 3
    fit.set_params(n_factors=2).fit(X)
    assert sorted(f.dimension for f in fit.factors_) == [1, 2]
    fit.set_params(n_factors=1).fit(X)
    assert fit.evidence_.reason == "one factor was asked for"


@pytest.mark.slow
def test_more_factors_than_there_are_are_refused_with_the_reason(rectangle):
    with pytest.raises(ValueError, match="only 2 of the 3 factors"):
        ManifoldFactorizer(3, sense="geometry", random_state=0).fit(rectangle[0][:500])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::manifactor.SampleWarning")
def test_outliers_are_left_out_and_lie_where_their_nearest_neighbour_lies():
    X, truth = datasets.sample("square", 1000, random_state=0)
    X[:5] = [[3, 3], [-2, 0.5], [0.5, 9], [4, -4], [40, 40]]
    fit = ManifoldFactorizer(random_state=0).fit(X)
    assert fit.outliers_[:5].all()
    assert fit.outliers_.sum() < 10
    assert score([f.embedding[5:] for f in fit.factors_], [t[5:] for t in truth]).solved
    assert all((f.confidence[:5] == 0).all() for f in fit.factors_)
    np.testing.assert_allclose(
        fit.transform(X), np.hstack([f.embedding for f in fit.factors_]), atol=1e-4
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_samples", [4, 7, 40])
@pytest.mark.parametrize("method", ["gradients", "sum"])
def test_a_handful_of_samples_is_fitted_without_a_claim(rng, n_samples, method):
    fit = ManifoldFactorizer(method=method, random_state=0).fit(rng.uniform(size=(n_samples, 2)))
    assert fit.verdict_ != "product"
    assert np.isfinite(fit.factors_[0].embedding).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_neighbors", [1, 3])
def test_sparse_graphs_whose_halves_fall_apart_are_fitted(rng, n_neighbors):
    X = rng.uniform(size=(100, 2))
    fit = ManifoldFactorizer(n_neighbors=n_neighbors, random_state=0).fit(X)
    assert np.isfinite(fit.spectrum_.eigenvalues).all()
    assert fit.transform(X[:5]).shape[0] == 5


@pytest.mark.medium
def test_the_search_for_factors_tells_which_part_is_done(rng):
    told = []
    X = rng.normal(size=(200, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    fit = ManifoldFactorizer(random_state=0, callback=lambda *now: told.append(now))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit.fit(X)
    fractions = [fraction for stage, fraction in told if stage == "factors"]
    assert fractions == sorted(fractions)
    assert (fractions[0], fractions[-1]) == (0, 1)
    assert len(set(fractions)) > 4


# Tables of coordinates.


@pytest.fixture(scope="module")
def cylinder():
    return datasets.sample("cylinder", 500, random_state=0)[0]


@pytest.mark.medium
def test_a_frame_has_degrees_cosines_and_the_index_of_the_input(cylinder):
    pandas = pytest.importorskip("pandas")
    index = [f"cell {number}" for number in range(500)]
    X = pandas.DataFrame(cylinder, columns=list("xyz"), index=index)
    fit = ManifoldFactorizer(sense="geometry", random_state=0).fit(X)
    frame, number = fit.frame(), 1 + [one.topology for one in fit.factors_].index("circle")
    around, along = f"factor{number}", f"factor{3 - number}"
    angle = ["degrees", "cos", "sin", "confidence"]
    names = [*(f"{around}_{name}" for name in angle), along, f"{along}_confidence"]
    assert set(frame.columns) == set(names)
    assert list(frame.index) == index
    turn = fit.coordinates()[:, number - 1]
    np.testing.assert_allclose(frame[f"{around}_degrees"], np.degrees(turn))
    np.testing.assert_allclose(frame[f"{around}_cos"], np.cos(turn))
    np.testing.assert_allclose(frame[f"{around}_sin"], np.sin(turn))
    np.testing.assert_array_equal(frame[along], fit.coordinates()[:, 2 - number])
    # New samples keep their own index.
    pandas.testing.assert_frame_equal(fit.frame(X[7:9]), frame[7:9])
    drawn = fit.fit(X, fit_samples=300)
    assert list(drawn.frame().index) == [index[row] for row in drawn.rows_]


@pytest.mark.filterwarnings("error::UserWarning")
def test_the_frame_of_a_frame_of_polars_is_one_of_polars(cylinder):
    polars = pytest.importorskip("polars")
    X = polars.DataFrame(cylinder, schema=list("xyz"))
    fit = ManifoldFactorizer(sense="geometry", random_state=0).fit(X, fit_samples=300)
    assert isinstance(fit.frame(), polars.DataFrame)
    assert fit.frame(X[:3]).shape == (3, len(fit.frame().columns))
