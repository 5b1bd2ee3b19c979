import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.neighbors import kneighbors_graph
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manifactor import ManifoldFactorizer, datasets, load, save
from manifactor._support.parameters import Choice


@pytest.fixture(scope="module")
def fit(torus):
    return ManifoldFactorizer(random_state=0).fit(torus[0])


@pytest.fixture(scope="module")
def plane():
    """A fit of 300 samples of a rectangle, and the samples."""
    X, _ = datasets.sample("rectangle", 300, random_state=0)
    return ManifoldFactorizer(2, random_state=0).fit(X), X


def off(found, true):
    """Root mean square error, as a share of the spread."""
    spread = np.sqrt(((true - true.mean(axis=0)) ** 2).mean())
    return np.sqrt(((found - true) ** 2).mean()) / spread


def test_samples_come_back_from_their_places(fit, torus):
    X, _ = torus
    assert off(fit.inverse_transform(fit.transform(X)), X) < 0.02


def test_new_samples_come_back_from_their_places(fit):
    new, _ = datasets.sample("torus", 300, random_state=1)
    assert off(fit.inverse_transform(fit.transform(new)), new) < 0.03


@pytest.mark.slow
def test_noise_across_the_manifold_is_averaged(torus, rng):
    X, _ = torus
    noisy = X + 0.1 * rng.normal(size=X.shape)
    fit = ManifoldFactorizer(random_state=0).fit(noisy)
    back = fit.inverse_transform(fit.transform(noisy))
    # Noise along the torus, half of it, moves the places and stays.
    assert off(back, X) < 0.85 * off(noisy, X)


def test_the_number_of_neighbours_is_a_choice_of_the_fit(fit, torus):
    places = fit.transform(torus[0][:3])
    choice = fit.inverse_neighbors()
    assert isinstance(choice, Choice)
    assert choice.value in (12, 24)
    assert "left out" in choice.why
    same = fit.inverse_transform(places, n_neighbors=choice.value)
    assert np.array_equal(fit.inverse_transform(places), same)


def test_the_caller_may_set_the_number_of_neighbours(fit, torus):
    places = fit.transform(torus[0][:3])
    few, many = (fit.inverse_transform(places, n_neighbors=n) for n in (1, 700))
    # A single neighbour is returned as it is; half of all samples flatten the torus.
    assert np.abs(torus[0] - few[0]).max(axis=1).min() < 1e-12
    assert off(many, torus[0][:3]) > 10 * off(fit.inverse_transform(places), torus[0][:3])
    assert np.array_equal(
        fit.along(0, 4, n_neighbors=1), fit.inverse_transform(fit.places_along(0, 4), n_neighbors=1)
    )


@pytest.mark.parametrize("count", [0, 1501, 2.5, "all", None, True])
def test_a_number_of_neighbours_that_there_is_not_is_refused(fit, count):
    with pytest.raises(ValueError, match="`n_neighbors` must be"):
        fit.inverse_transform(np.ones((1, 4)), n_neighbors=count)


def test_values_have_a_number_of_neighbours_of_their_own(fit, torus, rng):
    X, _ = torus
    noise = rng.normal(size=len(X))
    places, choice = fit.transform(X[:3]), fit.inverse_neighbors(noise)
    assert choice.value > fit.inverse_neighbors(X).value
    found = fit.inverse_transform(places, values=noise, n_neighbors=choice.value)
    assert np.array_equal(fit.inverse_transform(places, values=noise), found)


def test_the_way_back_changes_nothing_of_the_fit(torus, tmp_path):
    X = torus[0][:300]
    fit = ManifoldFactorizer(2, random_state=0).fit(X)
    fit.transform(X[:3])

    def state():
        save(fit, tmp_path / "fit.npz")
        public = {k: v for k, v in vars(fit).items() if not k.startswith("_")}
        return public, fit.choices_, (tmp_path / "fit.npz").read_bytes()

    pickled = pickle.dumps(fit)
    attributes, choices, archive = state()
    fit.along(0, 5)
    fit.inverse_transform(fit.transform(X[:3]), values=X)
    fit.inverse_neighbors()
    after = state()
    assert attributes.keys() == after[0].keys()
    assert all(attributes[name] is after[0][name] for name in attributes)
    assert (choices, archive) == after[1:]
    assert len(pickle.dumps(fit)) == len(pickled)


def test_a_fit_that_was_loaded_returns_the_same_samples(plane, tmp_path):
    fit, X = plane
    save(fit, tmp_path / "fit.npz")
    loaded = load(tmp_path / "fit.npz")
    places = fit.transform(X[:20])
    expected = fit.inverse_transform(places)
    assert np.array_equal(loaded.inverse_transform(places), expected)
    assert loaded.inverse_neighbors() == fit.inverse_neighbors()


def test_components_that_were_dropped_are_filled_with_their_mean(rng):
    clean, _ = datasets.sample("torus", 700, random_state=0)
    axes = np.linalg.qr(rng.normal(size=(30, clean.shape[1])))[0]
    X = 5 + clean @ axes.T + 0.05 * rng.normal(size=(700, 30))
    fit = ManifoldFactorizer(random_state=0).fit(X)
    assert fit.preparation_ is not None
    back = fit.inverse_transform(fit.transform(X))
    assert back.shape == X.shape
    assert off(back, 5 + clean @ axes.T) < 0.06


def test_samples_have_the_precision_of_the_places(fit, torus):
    places = fit.transform(torus[0][:5]).astype(np.float32)
    assert fit.inverse_transform(places).dtype == np.float32


def test_values_of_any_shape_are_returned_at_places(fit, torus):
    X, _ = torus
    values = X.reshape(-1, 2, 2)[:, :, :1]
    places = fit.transform(X[:10])
    found = fit.inverse_transform(places, values=values)
    assert found.shape == (10, 2, 1)
    assert found.reshape(10, 2) == pytest.approx(X[:10, [0, 2]], abs=0.1)


def test_frames_along_a_circle_go_round_while_the_other_stands_still(fit, torus):
    frames = fit.along(0, 12)
    angles = fit.coordinates(frames)
    assert frames.shape == (12, torus[0].shape[1])
    steps = np.diff(angles[:, 0], append=angles[0, 0] + 2 * np.pi) % (2 * np.pi)
    assert steps == pytest.approx(np.full(12, 2 * np.pi / 12), abs=0.1)
    assert np.ptp(np.unwrap(angles[:, 1])) < 0.15


def test_frames_along_an_interval_go_from_end_to_end(plane):
    fit, _ = plane
    frames = fit.along(1, 5)
    assert fit.coordinates(frames)[:, 1] == pytest.approx(np.linspace(0, 1, 5), abs=0.1)
    middle = np.median(fit.coordinates()[:, 0])
    assert fit.places_along(1, 5)[:, 0] == pytest.approx(np.full(5, middle))


def test_the_other_factors_are_held_at_a_place_of_the_caller(plane):
    fit, X = plane
    held = fit.transform(X[7:8])[0]
    places = fit.places_along(1, 4, others=held)
    assert (places[:, 0] == held[0]).all()
    assert np.array_equal(fit.places_along(1, 4, others=held[None]), places)


def test_a_pipeline_goes_back_to_the_columns_that_it_was_given():
    X, _ = datasets.sample("rectangle", 300, random_state=0)
    X = X * [1.0, 1e-3]
    pipeline = make_pipeline(StandardScaler(), ManifoldFactorizer(1, random_state=0))
    back = pipeline.fit(X).inverse_transform(pipeline.transform(X))
    assert all(off(back[:, [column]], X[:, [column]]) < 0.1 for column in range(2))


@pytest.mark.parametrize("shape", [(), (4,), (0, 4), (3, 2), (3, 5), (2, 4, 1)])
def test_places_of_another_shape_are_refused_with_the_columns(fit, shape):
    with pytest.raises(ValueError, match=r"\(n_places, 4\).*factor1_0, factor1_1"):
        fit.inverse_transform(np.zeros(shape))


def test_places_that_are_not_finite_are_refused(fit):
    with pytest.raises(ValueError, match="NaN"):
        fit.inverse_transform(np.full((1, 4), np.nan))


NOT_NUMBERS = [
    np.array([["a"] * 4]),
    [["a", "1", "2", "3"]],
    np.ones((1, 4)) * 1j,
    csr_array(np.ones((1, 4))),
    [[1, 2], [1]],
]


@pytest.mark.parametrize("given", NOT_NUMBERS, ids=range(len(NOT_NUMBERS)))
def test_what_is_no_array_of_numbers_is_refused_with_the_argument(fit, given):
    with pytest.raises(
        ValueError, match=r"`X` must be a dense array of real numbers; got .*Convert"
    ):
        fit.inverse_transform(given)
    with pytest.raises(ValueError, match="`values` must be a dense array of real numbers"):
        fit.inverse_transform(np.ones((1, 4)), values=given)
    with pytest.raises(ValueError, match="`values` must be a dense array of real numbers"):
        fit.inverse_neighbors(given)


def test_masked_places_and_values_are_refused(fit, torus):
    places = fit.transform(torus[0][:3])
    masked = np.ma.masked_greater(places, 0)
    with pytest.raises(ValueError, match="`X` must not have masked values; got"):
        fit.inverse_transform(masked)
    with pytest.raises(ValueError, match="`others` must not have masked values; got"):
        fit.along(0, others=masked[0])
    values = np.ma.masked_greater(torus[0], 2)
    with pytest.raises(ValueError, match="`values` must not have masked values; got"):
        fit.inverse_transform(places, values=values)


def test_values_that_are_not_finite_are_refused(fit, torus):
    values = torus[0].copy()
    values[5, 1] = np.inf
    with pytest.raises(ValueError, match=r"`values` must be finite.*row 5, column 1"):
        fit.inverse_transform(np.ones((1, 4)), values=values)


def test_values_of_another_number_of_samples_are_refused(fit):
    with pytest.raises(ValueError, match=r"each of the 1500 samples.*rows_"):
        fit.inverse_transform(np.ones((1, 4)), values=np.zeros((7, 2)))


@pytest.mark.parametrize("factor", [-1, 2, 0.5, "first"])
def test_a_factor_that_there_is_not_is_refused(fit, factor):
    with pytest.raises(ValueError, match="`factor` must be"):
        fit.along(factor)


def test_two_places_of_the_others_are_refused(fit):
    with pytest.raises(ValueError, match="`others` must be one place; got 2"):
        fit.along(0, others=np.zeros((2, 4)))


def test_distances_have_no_samples_but_values(torus):
    X = torus[0][:300]
    graph = kneighbors_graph(X, 40, mode="distance")
    fit = ManifoldFactorizer(1, neighbors="precomputed", n_functions=20).fit(graph)
    places = fit.fit_transform(graph)[:5]
    with pytest.raises(ValueError, match=r"distances only.*values=samples"):
        fit.inverse_transform(places)
    with pytest.raises(ValueError, match="distances only"):
        fit.inverse_neighbors()
    assert fit.inverse_transform(places, values=X).shape == (5, 4)


def test_a_surface_has_no_order_to_go_along(torus):
    fit = ManifoldFactorizer(1, n_functions=20, random_state=0).fit(torus[0][:300])
    with pytest.raises(ValueError, match=r"surface\. Pass places along a path"):
        fit.along(0)
