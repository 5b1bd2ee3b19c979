import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_info, threadpool_limits

from manifactor import (
    DiffusionMap,
    DisconnectedGraphWarning,
    ManifoldFactorizer,
    NoProductStructureWarning,
    datasets,
    load,
    save,
)
from manifactor._support import threads
from manifactor.scores import coordinate_correlation, score


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::manifactor.NoProductStructureWarning")
@pytest.mark.filterwarnings("ignore::manifactor.SampleWarning")
@parametrize_with_checks([DiffusionMap(random_state=0), ManifoldFactorizer(random_state=0)])
def test_scikit_learn_accepts_the_estimators(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def torus_fit():
    X, truth = datasets.sample("torus", 2200, random_state=0)
    return ManifoldFactorizer(2, random_state=0).fit(X), X, truth


def circular(angle, circle):
    return max(abs(np.mean(np.exp(sign * angle) * (circle @ [1, 1j]))) for sign in (1j, -1j))


def test_the_two_circles_of_a_torus_are_found(torus_fit):
    fit, _, truth = torus_fit
    assert (fit.verdict_, fit.n_factors_) == ("product", 2)
    assert [f.topology for f in fit.factors_] == ["circle", "circle"]
    for factor, circle in zip(fit.factors_, truth, strict=True):
        assert circular(factor.coordinate, circle) > 0.99
    assert np.nanmax(fit.evidence_.leakage) < 0.1


@pytest.fixture(scope="module")
def rectangle_fit(rectangle):
    return ManifoldFactorizer(random_state=0).fit(rectangle[0][:800])


@pytest.mark.slow
def test_the_two_sides_of_a_rectangle_are_found(rectangle, rectangle_fit):
    sides = rectangle_fit.coordinates().T
    for column, side in zip(sides, rectangle[1], strict=True):
        assert abs(np.corrcoef(column, side[:800, 0])[0, 1]) > 0.99


@pytest.mark.slow
def test_transform_equals_fit(torus_fit):
    fit, X, _ = torus_fit
    np.testing.assert_allclose(
        fit.transform(X), np.hstack([f.embedding for f in fit.factors_]), atol=1e-5
    )
    np.testing.assert_allclose(np.cos(fit.coordinates(X)), np.cos(fit.coordinates()), atol=1e-5)
    few, again = X[:500], clone(fit)
    np.testing.assert_allclose(again.fit_transform(few), again.transform(few), atol=1e-5)


def test_new_samples_find_their_place(torus_fit):
    fit, _, _ = torus_fit
    X, truth = datasets.sample("torus", 500, random_state=5)
    for column, circle in zip(fit.coordinates(X).T, truth, strict=True):
        assert circular(column, circle) > 0.99


def test_columns_are_named_after_their_factor_and_every_choice_is_stored(torus_fit):
    fit, _, _ = torus_fit
    assert " ".join(fit.get_feature_names_out()) == "factor1_0 factor1_1 factor2_0 factor2_1"
    assert (fit.n_neighbors_, fit.n_functions_, fit.dimension_) == (64, 100, 2)
    assert (fit.neighbors_, fit.solver_) == ("kd_tree", "chebyshev")
    assert fit.bandwidth_ > 0
    assert list(fit.timings_) == ["preparation", "neighbours", "affinity", "spectrum", "factors"]


def test_n_factors_other_than_circles_and_intervals_have_nan_coordinates():
    X, _ = datasets.sample("sphere", 800, random_state=0)
    with pytest.warns(NoProductStructureWarning):
        fit = ManifoldFactorizer(
            2, method="triplets", similarity_threshold=0.99, random_state=0
        ).fit(X)
    assert (fit.verdict_, fit.n_factors_) == ("none", 1)
    assert np.isnan(fit.coordinates()).all()


@pytest.mark.slow
def test_excluded_functions_are_in_no_factor(torus):
    fit = ManifoldFactorizer(
        2, method="triplets", exclude=[1, 2], similarity_threshold=0.6, random_state=0
    ).fit(torus[0][:800])
    # Without factors nothing would be shown.
    assert fit.n_factors_ == 2
    for factor in fit.factors_:
        assert factor.coefficients.any()
        assert not factor.coefficients[[1, 2]].any()


@pytest.mark.slow
def test_fits_in_parallel_threads_leave_the_blas_threads_alone(rectangle):
    before = [library["num_threads"] for library in threadpool_info()]
    fits = [ManifoldFactorizer(2, n_functions=20, random_state=seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda fit: fit.fit(rectangle[0][:200]), fits))
    assert [library["num_threads"] for library in threadpool_info()] == before


@pytest.fixture
def on_cores(monkeypatch):
    """Set how many cores, and threads of BLAS, this process may use."""
    with ExitStack() as limits:

        def limit(count):
            monkeypatch.setattr(threads, "cpu_count", lambda: count)
            threads.cores.cache_clear()
            limits.enter_context(threadpool_limits(count))

        yield limit
    monkeypatch.undo()
    threads.cores.cache_clear()


@pytest.mark.slow
def test_a_fit_is_the_same_to_the_last_bit_on_any_number_of_cores(on_cores):
    X, _ = datasets.sample("torus", 2200, random_state=0)
    fits = []
    for count in (1, 3):
        on_cores(count)
        fits.append(ManifoldFactorizer(random_state=0).fit(X))
    first, other = fits
    np.testing.assert_array_equal(other.spectrum_.functions, first.spectrum_.functions)
    for one, same in zip(first.factors_, other.factors_, strict=True):
        np.testing.assert_array_equal(one.embedding, same.embedding)
    assert other.evidence_.tests == first.evidence_.tests


@pytest.fixture(scope="module")
def sphere_interval():
    X, truth = datasets.sample("sphere_interval", 1500, random_state=0)
    return ManifoldFactorizer(random_state=0).fit(X), X, truth


def test_a_sphere_times_an_interval_is_found_without_being_told(sphere_interval):
    fit, _, truth = sphere_interval
    assert sorted((f.topology, f.dimension) for f in fit.factors_) == [
        ("interval", 1),
        ("other", 2),
    ]
    assert score([f.embedding for f in fit.factors_], truth).solved


def test_surfaces_are_placed_by_transform_as_by_fit(sphere_interval):
    fit, X, _ = sphere_interval
    embeddings = np.hstack([f.embedding for f in fit.factors_])
    np.testing.assert_allclose(fit.transform(X), embeddings, atol=1e-4)
    # Surfaces have no coordinate.
    np.testing.assert_allclose(fit.coordinates(X), fit.coordinates(), atol=1e-4)


def test_new_samples_of_a_surface_find_their_place(sphere_interval):
    fit, _, _ = sphere_interval
    X, truth = datasets.sample("sphere_interval", 500, random_state=1)
    widths = np.cumsum([f.embedding.shape[1] for f in fit.factors_])[:-1]
    found = score(np.split(fit.transform(X), widths, axis=1), truth)
    assert found.number_right
    assert found.worst > 0.9
    assert found.leak < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_unit_of_the_data_does_not_matter(rectangle, rectangle_fit, scale):
    scaled = ManifoldFactorizer(random_state=0).fit(scale * rectangle[0][:800])
    assert rectangle_fit.verdict_ == scaled.verdict_ == "product"
    for one, two in zip(rectangle_fit.factors_, scaled.factors_, strict=True):
        assert coordinate_correlation(one.coordinate, two.coordinate[:, None]) > 0.999


@pytest.mark.slow
def test_fewer_factors_than_there_are_count_the_smallest_as_one():
    X, _ = datasets.sample("equal_cube", 700, random_state=0)
    fit = ManifoldFactorizer(random_state=0).fit(X)
    assert fit.n_factors_ == 3
    fit.set_params(n_factors=2).fit(X)
    assert sorted(f.dimension for f in fit.factors_) == [1, 2]
    fit.set_params(n_factors=1).fit(X)
    assert fit.evidence_.reason == "one factor was asked for"


@pytest.mark.slow
def test_more_factors_than_there_are_are_refused_with_the_reason(rectangle):
    with pytest.raises(ValueError, match="only 2 of the 3 factors"):
        ManifoldFactorizer(3, random_state=0).fit(rectangle[0][:500])


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


@pytest.mark.slow
def test_more_functions_are_computed_where_a_direction_of_the_data_is_missing():
    strip = np.random.default_rng(0).uniform(size=(2500, 2)) * [60, 1]
    geometry = ManifoldFactorizer(sense="geometry", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert geometry.fit(strip).n_functions_ > 100
        # Asked for, kept.
        assert geometry.set_params(n_functions=50).fit(strip[:500]).n_functions_ == 50


def test_an_archive_keeps_preparation_outliers_and_charts(tmp_path, sphere_interval):
    fit, X, _ = sphere_interval
    save(fit, tmp_path / "fit.npz")
    again = load(tmp_path / "fit.npz")
    np.testing.assert_allclose(again.transform(X[:50]), fit.transform(X[:50]))
    np.testing.assert_array_equal(again.outliers_, fit.outliers_)
    assert str(again.evidence_) == str(fit.evidence_)
    assert again.splits_[0].n_blocks == fit.splits_[0].n_blocks


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


@pytest.mark.filterwarnings("ignore")
def test_an_outlier_of_a_small_sample_is_placed_as_in_the_fit(rng):
    X = np.r_[rng.uniform(size=(59, 2)), [[8.0, 8.0]]]
    fit = ManifoldFactorizer(random_state=0).fit(X)
    assert fit.outliers_.tolist() == [False] * 59 + [True]
    assert fit.spectrum_.weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(fit.transform(X)[-1], fit.transform(X[-1:])[0])
    with pytest.raises(ValueError, match="must lie near the training samples; 1 of 1"):
        fit.transform(100 * X[-1:])


@pytest.mark.slow
def test_known_noise_adds_a_test_that_large_noise_fails(torus):
    X = torus[0][:600]
    quiet, loud = (
        ManifoldFactorizer(random_state=0).fit(X, noise=np.full(4, size)) for size in (1e-3, 2.0)
    )
    assert quiet.verdict_ == "product"
    assert quiet.evidence_.reliability > 0.99
    assert loud.verdict_ == "partial"
    (test,) = (test for test in loud.evidence_.tests if not test.passed)
    assert (test.name, test.limit) == ("reliability", 0.9)
    np.testing.assert_array_equal(quiet.coordinates(), loud.coordinates())


@pytest.mark.slow
def test_noise_is_that_of_the_columns_before_preparation(rng):
    X, _ = datasets.sample("rectangle", 800, ambient_dimension=20, random_state=0)
    X = X + 0.02 * rng.normal(size=X.shape)
    fit = ManifoldFactorizer(random_state=0).fit(X, noise=np.full(20, 0.02))
    assert fit.preparation_ is not None
    assert 0.9 < fit.evidence_.reliability < 1


@pytest.mark.slow
def test_a_sum_does_not_warn_of_a_graph_that_it_does_not_need(rng):
    halves = rng.uniform(size=600) + np.repeat([0, 3], 300)
    X = np.c_[halves, 1.5 * rng.uniform(size=600)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = ManifoldFactorizer(random_state=0).fit(X)
    assert (fit.verdict_, fit.evidence_.sense) == ("product", "sum")
    assert len(np.unique(fit.components_)) == 2
    with (
        pytest.warns(DisconnectedGraphWarning, match="2 components"),
        pytest.warns(NoProductStructureWarning, match="2 clusters"),
    ):
        ManifoldFactorizer(sense="geometry", random_state=0).fit(X)
