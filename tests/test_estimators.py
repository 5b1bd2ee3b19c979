import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import special_ortho_group
from sklearn.base import clone
from sklearn.neighbors import KNeighborsTransformer, kneighbors_graph
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_info

from manifactor import (
    DiffusionMap,
    DisconnectedGraphWarning,
    ManifoldFactorizer,
    NoProductStructureWarning,
    datasets,
    load,
    save,
)
from manifactor.scores import coordinate_correlation, score


@pytest.mark.filterwarnings("ignore::manifactor.NoProductStructureWarning")
@pytest.mark.filterwarnings("ignore::manifactor.SampleWarning")
@parametrize_with_checks(
    [DiffusionMap(random_state=0), ManifoldFactorizer(random_state=0)]
)
def test_scikit_learn_accepts_the_estimators(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def torus_fit():
    X, truth = datasets.sample("torus", 3000, random_state=0)
    return ManifoldFactorizer(2, random_state=0).fit(X), X, truth


def circular(angle, circle):
    return max(
        abs(np.mean(np.exp(sign * angle) * (circle @ [1, 1j]))) for sign in (1j, -1j)
    )


def test_the_two_circles_of_a_torus_are_found(torus_fit):
    fit, _, truth = torus_fit
    assert (fit.verdict_, fit.n_factors_) == ("product", 2)
    assert [f.topology for f in fit.factors_] == ["circle", "circle"]
    for factor, circle in zip(fit.factors_, truth, strict=True):
        assert circular(factor.coordinate, circle) > 0.99
    assert np.nanmax(fit.evidence_.leakage) < 0.1


@pytest.mark.parametrize(
    "settings", [{}, {"method": "triplets", "similarity_threshold": 0.8}]
)
def test_the_two_sides_of_a_rectangle_are_found(settings):
    X, truth = datasets.sample("rectangle", 3000, random_state=1)
    fit = ManifoldFactorizer(2, random_state=0, **settings).fit(X)
    for column, side in zip(fit.coordinates().T, truth, strict=True):
        assert abs(np.corrcoef(column, side[:, 0])[0, 1]) > 0.99


def test_transform_equals_fit(torus_fit):
    fit, X, _ = torus_fit
    np.testing.assert_allclose(
        fit.transform(X), np.hstack([f.embedding for f in fit.factors_]), atol=1e-5
    )
    np.testing.assert_allclose(
        np.cos(fit.coordinates(X)), np.cos(fit.coordinates()), atol=1e-5
    )
    np.testing.assert_allclose(clone(fit).fit_transform(X), fit.transform(X), atol=1e-5)


def test_new_samples_find_their_place(torus_fit):
    fit, _, _ = torus_fit
    X, truth = datasets.sample("torus", 500, random_state=5)
    for column, circle in zip(fit.coordinates(X).T, truth, strict=True):
        assert circular(column, circle) > 0.99


def test_columns_are_named_after_their_factor(torus_fit):
    fit, _, _ = torus_fit
    assert fit.get_feature_names_out().tolist() == [
        "factor1_0",
        "factor1_1",
        "factor2_0",
        "factor2_1",
    ]


def test_every_automatic_choice_is_stored(torus_fit):
    fit, _, _ = torus_fit
    assert (fit.n_neighbors_, fit.n_functions_, fit.neighbors_, fit.solver_) == (
        64,
        100,
        "kd_tree",
        "chebyshev",
    )
    assert fit.dimension_ == 2
    assert fit.bandwidth_ > 0
    assert list(fit.timings_) == [
        "preparation",
        "neighbours",
        "affinity",
        "spectrum",
        "factors",
    ]


def test_the_callback_hears_every_stage_begin_and_end(rectangle):
    heard = []
    DiffusionMap(5, callback=lambda *event: heard.append(event)).fit(rectangle[0])
    stages = ("preparation", "neighbours", "affinity", "spectrum")
    assert heard == [(stage, done) for stage in stages for done in (0.0, 1.0)]


def test_a_fixed_seed_fixes_everything(rectangle):
    X, _ = rectangle
    one, two = (ManifoldFactorizer(2, random_state=3).fit(X) for _ in range(2))
    np.testing.assert_array_equal(one.spectrum_.functions, two.spectrum_.functions)
    np.testing.assert_array_equal(one.coordinates(), two.coordinates())


def test_n_factors_other_than_circles_and_intervals_have_nan_coordinates():
    X, _ = datasets.sample("sphere", 800, random_state=0)
    with pytest.warns(NoProductStructureWarning):
        fit = ManifoldFactorizer(
            2, method="triplets", similarity_threshold=0.99, random_state=0
        ).fit(X)
    assert (fit.verdict_, fit.n_factors_) == ("none", 1)
    assert np.isnan(fit.coordinates()).all()


def lowest(X, **settings):
    return DiffusionMap(12, random_state=0, **settings).fit(X).spectrum_


@given(
    seed=st.integers(0, 1000),
    scale=st.sampled_from([1e-6, 0.3, 1e6]),
    shift=st.floats(-10, 10),
)
@settings(max_examples=6, deadline=None)
def test_rigid_motion_and_scaling_change_nothing_but_the_unit(
    rectangle, seed, scale, shift
):
    X, _ = rectangle
    plain = lowest(X)
    turned = (
        np.c_[X, np.zeros(len(X))] @ special_ortho_group.rvs(3, random_state=seed).T
    )
    moved = lowest(scale * (turned + shift))
    np.testing.assert_allclose(
        moved.eigenvalues * scale**2, plain.eigenvalues, rtol=1e-5, atol=1e-9
    )
    correlation = np.abs(
        np.sum(plain.weights[:, None] * plain.functions * moved.functions, axis=0)
    )
    np.testing.assert_allclose(correlation, 1, atol=1e-6)


@given(seed=st.integers(0, 1000))
@settings(max_examples=4, deadline=None)
def test_the_order_of_the_samples_does_not_matter(rectangle, seed):
    X, _ = rectangle
    order = np.random.default_rng(seed).permutation(len(X))
    plain, shuffled = lowest(X), lowest(X[order])
    np.testing.assert_allclose(
        shuffled.eigenvalues, plain.eigenvalues, rtol=1e-6, atol=1e-9
    )
    correlation = np.abs(
        np.sum(
            plain.weights[order, None] * plain.functions[order] * shuffled.functions,
            axis=0,
        )
    )
    assert correlation[:5].min() > 0.999


def test_copies_of_samples_share_their_place(rectangle):
    X, _ = rectangle
    fit = DiffusionMap(10, random_state=0).fit(np.r_[X, X[:100]])
    np.testing.assert_array_equal(
        fit.spectrum_.functions[:100], fit.spectrum_.functions[-100:]
    )
    assert fit.spectrum_.weights.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    "neighbors", [KNeighborsTransformer(n_neighbors=30), "precomputed"]
)
def test_any_neighbour_search_gives_the_same_spectrum(rectangle, neighbors):
    X, _ = rectangle
    given_ = (
        kneighbors_graph(X, 30, mode="distance") if neighbors == "precomputed" else X
    )
    fit = DiffusionMap(10, neighbors=neighbors, random_state=0).fit(given_)
    plain = lowest(X, n_neighbors=30)
    np.testing.assert_allclose(
        fit.spectrum_.eigenvalues, plain.eigenvalues[:10], rtol=1e-6, atol=1e-9
    )
    again = (
        kneighbors_graph(X, 31, mode="distance", include_self=True)
        if neighbors == "precomputed"
        else X
    )
    np.testing.assert_allclose(
        fit.transform(again), fit.spectrum_.functions[:, 1:], atol=1e-6
    )


def test_the_largest_component_can_be_worked_on_alone(rng):
    X = np.r_[rng.uniform(size=(100, 2)) + 9, rng.uniform(size=(300, 2))]
    with pytest.warns(
        DisconnectedGraphWarning, match="2 components of 300, 100 samples"
    ):
        fit = DiffusionMap(5, n_neighbors=20).fit(X)
    assert (
        20 * fit.spectrum_.eigenvalues[1] < fit.spectrum_.eigenvalues[2]
    )  # it tells the components apart
    largest = X[fit.components_ == 0]
    assert len(largest) == 300
    assert DiffusionMap(5, n_neighbors=20).fit(largest).spectrum_.eigenvalues[1] > 5


def test_density_correction_and_exclude_reach_the_core(rng):
    X = rng.uniform(size=(800, 2)) ** 1.5
    driven, corrected = (
        lowest(X, density_correction=alpha).eigenvalues[1] for alpha in (0.0, 1.0)
    )
    assert abs(driven / corrected - 1) > 0.05
    X, _ = datasets.sample("torus", 3000, random_state=0)
    settings = {"exclude": [1, 2], "similarity_threshold": 0.6}
    fit = ManifoldFactorizer(2, method="triplets", random_state=0, **settings).fit(X)
    assert fit.verdict_ != "none"
    assert not any(factor.coefficients[[1, 2]].any() for factor in fit.factors_)


def test_a_line_is_no_product():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoProductStructureWarning)
        assert (
            ManifoldFactorizer(random_state=0)
            .fit(np.linspace(0, 1, 1000)[:, None])
            .verdict_
            != "product"
        )


def test_automatic_numbers_count_distinct_samples(rng):
    X = np.repeat(rng.uniform(size=(40, 2)), 20, axis=0)
    fit = DiffusionMap(random_state=0).fit(X)
    assert (fit.n_functions_, fit.n_neighbors_) == (5, 39)


def test_changing_the_samples_after_the_fit_changes_nothing(rng):
    X = rng.uniform(size=(100, 2))
    fit = DiffusionMap(4, n_neighbors="all", bandwidth=0.1, random_state=0).fit(X)
    before = fit.transform(X[:5])
    points = X[:5].copy()
    X[:] = 0
    np.testing.assert_array_equal(fit.transform(points), before)


def test_fits_in_parallel_threads_leave_the_blas_threads_alone(rectangle):
    threads = [library["num_threads"] for library in threadpool_info()]
    with ThreadPoolExecutor(4) as pool:
        list(
            pool.map(
                lambda seed: ManifoldFactorizer(
                    2, n_functions=20, random_state=seed
                ).fit(rectangle[0]),
                range(4),
            )
        )
    assert [library["num_threads"] for library in threadpool_info()] == threads


def test_a_constant_column_changes_nothing(rectangle):
    X, _ = rectangle
    np.testing.assert_allclose(
        lowest(np.c_[X, np.full(len(X), 7.0)]).eigenvalues,
        lowest(X).eigenvalues,
        atol=1e-6,
    )


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
    ({}, X20[:3], "minimum of 4 is required"),
    ({}, X20[0], "Expected 2D array, got 1D array"),
    ({}, np.array([["a", "b"]] * 20), "could not convert string to float"),
    ({}, np.empty((0, 3)), "minimum of 4 is required"),
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
    (
        {"density_correction": 2},
        X20,
        r"`density_correction` must be a number in \[0, 1\]; got 2",
    ),
    (
        {"solver": "magic"},
        X20,
        "`solver` must be one of 'auto', 'dense', 'arpack', 'chebyshev'; got 'magic'",
    ),
    ({"neighbors": "ball"}, X20, "`neighbors` must be one of"),
    ({"neighbors": 3}, X20, "an object with fit and transform"),
    (
        {"neighbors": "precomputed"},
        X20,
        "`X` must be a sparse matrix of distances; got ndarray",
    ),
    ({"n_factors": 0}, X20, r"`n_factors` must be a whole number in \[1, 6\]; got 0"),
    (
        {"method": "magic"},
        X20,
        "`method` must be one of 'deflation', 'gradients', 'triplets'; got 'magic'",
    ),
    (
        {"device": "warp"},
        X20,
        "`device` must be 'cpu' or a device that torch can use; got 'warp'",
    ),
    (
        {"similarity_threshold": 1.5},
        X20,
        r"`similarity_threshold` must be a number in \[0, 1\]; got 1.5",
    ),
    (
        {"eigenvalue_tolerance": 0},
        X20,
        "`eigenvalue_tolerance` must be a number above 0; got 0",
    ),
    (
        {"exclude": 3},
        X20,
        "`exclude` must be a sequence of indices of functions; got 3",
    ),
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


def test_more_functions_than_distinct_samples_are_refused(rng):
    X = np.repeat(rng.normal(size=(10, 2)), 5, axis=0)
    with pytest.raises(ValueError, match="got 20 with 10 distinct samples"):
        DiffusionMap(20).fit(X)


def test_precomputed_distances_must_be_square_and_not_negative(rectangle):
    graph = kneighbors_graph(rectangle[0], 10, mode="distance")
    with pytest.raises(ValueError, match="must be square"):
        DiffusionMap(5, neighbors="precomputed").fit(graph[:100])
    with pytest.raises(ValueError, match="must not be negative"):
        DiffusionMap(5, neighbors="precomputed").fit(-graph)
    fit = DiffusionMap(5, neighbors="precomputed", random_state=0).fit(graph)
    with pytest.raises(ValueError, match="features"):
        fit.transform(graph[:, :7])


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
    np.testing.assert_allclose(
        fit.transform(X), np.hstack([f.embedding for f in fit.factors_]), atol=1e-4
    )
    (column,) = (j for j, f in enumerate(fit.factors_) if f.topology == "interval")
    np.testing.assert_allclose(
        fit.coordinates(X)[:, column], fit.coordinates()[:, column], atol=1e-4
    )


def test_new_samples_of_a_surface_find_their_place(sphere_interval):
    fit, _, _ = sphere_interval
    X, truth = datasets.sample("sphere_interval", 500, random_state=1)
    widths = np.cumsum([f.embedding.shape[1] for f in fit.factors_])[:-1]
    found = score(np.split(fit.transform(X), widths, axis=1), truth)
    assert found.number_right
    assert found.worst > 0.9
    assert found.leak < 0.1


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_unit_of_the_data_does_not_matter(rectangle, scale):
    X, _ = rectangle
    plain, scaled = (
        ManifoldFactorizer(random_state=0).fit(s * X) for s in (1.0, scale)
    )
    assert plain.verdict_ == scaled.verdict_ == "product"
    for one, two in zip(plain.factors_, scaled.factors_, strict=True):
        assert coordinate_correlation(one.coordinate, two.coordinate[:, None]) > 0.999


def test_fewer_factors_than_there_are_count_the_smallest_as_one():
    X, _ = datasets.sample("equal_cube", 1500, random_state=0)
    assert ManifoldFactorizer(random_state=0).fit(X).n_factors_ == 3
    fit = ManifoldFactorizer(2, random_state=0).fit(X)
    assert sorted(f.dimension for f in fit.factors_) == [1, 2]
    assert (
        ManifoldFactorizer(1, random_state=0).fit(X).evidence_.reason
        == "one factor was asked for"
    )


def test_more_factors_than_there_are_are_refused_with_the_reason(rectangle):
    with pytest.raises(
        ValueError,
        match="3 were asked for and 2 found: no function was left that does not vary",
    ):
        ManifoldFactorizer(3, random_state=0).fit(rectangle[0])


@pytest.mark.filterwarnings("ignore::manifactor.SampleWarning")
def test_outliers_are_left_out_and_lie_where_their_nearest_neighbour_lies():
    X, truth = datasets.sample("square", 1500, random_state=0)
    X[:5] = [[3, 3], [-2, 0.5], [0.5, 9], [4, -4], [40, 40]]
    fit = ManifoldFactorizer(random_state=0).fit(X)
    assert fit.outliers_[:5].all()
    assert fit.outliers_.sum() < 10
    assert score([f.embedding[5:] for f in fit.factors_], [t[5:] for t in truth]).solved
    assert all((f.confidence[:5] == 0).all() for f in fit.factors_)
    np.testing.assert_allclose(
        fit.transform(X), np.hstack([f.embedding for f in fit.factors_]), atol=1e-4
    )


def test_more_functions_are_computed_where_a_direction_of_the_data_is_missing():
    strip = np.random.default_rng(0).uniform(size=(4000, 2)) * [60, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert ManifoldFactorizer(random_state=0).fit(strip).n_functions_ > 100
        assert (
            ManifoldFactorizer(n_functions=50, random_state=0).fit(strip).n_functions_
            == 50
        )  # asked for, kept


def test_an_archive_keeps_preparation_outliers_and_charts(tmp_path, sphere_interval):
    fit, X, _ = sphere_interval
    save(fit, tmp_path / "fit.npz")
    again = load(tmp_path / "fit.npz")
    np.testing.assert_allclose(again.transform(X[:50]), fit.transform(X[:50]))
    np.testing.assert_array_equal(again.outliers_, fit.outliers_)
    assert str(again.evidence_) == str(fit.evidence_)
    assert again.splits_[0].n_blocks == fit.splits_[0].n_blocks


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_samples", [4, 5, 7, 12, 40])
@pytest.mark.parametrize("method", ["gradients", "deflation"])
def test_a_handful_of_samples_is_fitted_without_a_claim(rng, n_samples, method):
    fit = ManifoldFactorizer(method=method, random_state=0).fit(
        rng.uniform(size=(n_samples, 2))
    )
    assert fit.verdict_ != "product"
    assert np.isfinite(fit.factors_[0].embedding).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_neighbors", [1, 2, 3, 5])
def test_sparse_graphs_whose_halves_fall_apart_are_fitted(rng, n_neighbors):
    X = rng.uniform(size=(400, 2))
    fit = ManifoldFactorizer(n_neighbors=n_neighbors, random_state=0).fit(X)
    assert np.isfinite(fit.spectrum_.eigenvalues).all()
    assert fit.transform(X[:5]).shape[0] == 5


@pytest.mark.filterwarnings("ignore")
def test_two_separate_blobs_are_fitted(rng):
    X = np.r_[rng.uniform(size=(200, 2)), rng.uniform(size=(200, 2)) + 10]
    assert ManifoldFactorizer(random_state=0).fit(X).verdict_ != "product"


@pytest.mark.filterwarnings("ignore")
def test_an_outlier_of_a_small_sample_is_placed_as_in_the_fit(rng):
    X = np.r_[rng.uniform(size=(59, 2)), [[8.0, 8.0]]]
    fit = ManifoldFactorizer(random_state=0).fit(X)
    assert fit.outliers_.tolist() == [False] * 59 + [True]
    assert fit.spectrum_.weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(fit.transform(X)[-1], fit.transform(X[-1:])[0])
    with pytest.raises(ValueError, match="must lie near the training samples; 1 of 1"):
        fit.transform(100 * X[-1:])


def test_exclude_without_triplets_is_refused(torus):
    with pytest.raises(ValueError, match="`exclude` is for `method='triplets'`"):
        ManifoldFactorizer(exclude=[1], random_state=0).fit(torus[0][:200])


def test_directions_that_are_coupled_are_one_factor_beside_a_third():
    sheet, _ = datasets.sample("parallelogram", 2000, random_state=0)
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, size=2000)
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    fit = ManifoldFactorizer(random_state=0).fit(np.hstack([sheet, ring]))
    assert sorted((f.topology, f.dimension) for f in fit.factors_) == [
        ("circle", 1),
        ("other", 2),
    ]
    assert score([f.embedding for f in fit.factors_], (sheet, ring)).solved
