import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manifactor import ManifoldFactorizer, datasets, save

pytestmark = pytest.mark.medium


@pytest.fixture(scope="module")
def fit(torus):
    return ManifoldFactorizer(2, sense="geometry", random_state=0).fit(torus[0])


@pytest.fixture(scope="module")
def plane():
    """A fit of 300 samples of a rectangle, and the samples."""
    X, _ = datasets.sample("rectangle", 300, random_state=0)
    return ManifoldFactorizer(2, sense="geometry", random_state=0).fit(X), X


def off(found, true):
    """Root mean square error, as a share of the spread."""
    spread = np.sqrt(((true - true.mean(axis=0)) ** 2).mean())
    return np.sqrt(((found - true) ** 2).mean()) / spread


def test_samples_of_the_fit_and_new_ones_come_back_from_their_places(fit, torus):
    X, new = torus[0], datasets.sample("torus", 300, random_state=1)[0]
    assert off(fit.inverse_transform(fit.transform(X)), X) < 0.02
    assert off(fit.inverse_transform(fit.transform(new)), new) < 0.03


def test_the_way_back_changes_nothing_of_the_fit(plane, tmp_path):
    fit, X = plane

    def state():
        save(fit, tmp_path / "fit.npz")
        public = {k: v for k, v in vars(fit).items() if not k.startswith("_")}
        return public, fit.choices_, (tmp_path / "fit.npz").read_bytes()

    pickled = pickle.dumps(fit)
    attributes, choices, archive = state()
    places = fit.transform(X[:3])
    fit.along(0, 5)
    fit.inverse_transform(places, values=X)
    fit.inverse_neighbors()
    after = state()
    assert attributes.keys() == after[0].keys()
    assert all(attributes[name] is after[0][name] for name in attributes)
    assert (choices, archive) == after[1:]
    assert len(pickle.dumps(fit)) == len(pickled)


def test_components_that_were_dropped_are_filled_with_their_mean(rng):
    clean, _ = datasets.sample("torus", 700, random_state=0)
    axes = np.linalg.qr(rng.normal(size=(30, clean.shape[1])))[0]
    X = 5 + clean @ axes.T + 0.05 * rng.normal(size=(700, 30))
    fit = ManifoldFactorizer(2, sense="geometry", random_state=0).fit(X)
    assert fit.preparation_ is not None
    back = fit.inverse_transform(fit.transform(X))
    assert back.shape == X.shape
    assert off(back, 5 + clean @ axes.T) < 0.06


def test_values_of_any_shape_are_returned_at_places_in_their_precision(fit, torus):
    X, _ = torus
    values = X.reshape(-1, 2, 2)[:, :, :1]
    places = fit.transform(X[:10]).astype(np.float32)
    found = fit.inverse_transform(places, values=values)
    assert (found.shape, found.dtype) == ((10, 2, 1), np.float32)
    assert found.reshape(10, 2) == pytest.approx(X[:10, [0, 2]], abs=0.1)


def test_frames_along_a_circle_go_round_while_the_other_stands_still(fit, torus):
    frames = fit.along(0, 12)
    angles = fit.coordinates(frames)
    assert frames.shape == (12, torus[0].shape[1])
    steps = np.diff(angles[:, 0], append=angles[0, 0] + 2 * np.pi) % (2 * np.pi)
    assert steps == pytest.approx(np.full(12, 2 * np.pi / 12), abs=0.1)
    assert np.ptp(np.unwrap(angles[:, 1])) < 0.15


def test_frames_along_an_interval_go_from_end_to_end_while_the_other_is_held(plane):
    fit, X = plane
    frames = fit.along(1, 5)
    assert fit.coordinates(frames)[:, 1] == pytest.approx(np.linspace(0, 1, 5), abs=0.1)
    middle = np.median(fit.coordinates()[:, 0])
    assert fit.places_along(1, 5)[:, 0] == pytest.approx(np.full(5, middle))
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


PLACE = np.ones((1, 4))
MASKED = np.ma.masked_greater(PLACE, 0)
ENDLESS = np.zeros((1500, 2))
ENDLESS[5, 1] = np.inf
NO_ARRAYS = ([["a", "1", "2", "3"]], PLACE * 1j, csr_array(PLACE), [[1, 2], [1]])
REFUSED = [
    *(("X", np.zeros(s), r"\(n_places, 4\).*factor1_0, factor1_1") for s in [(), (0, 4), (3, 5)]),
    ("X", np.full((1, 4), np.nan), "NaN"),
    ("X", MASKED, "`X` must not have masked values; got"),
    *(
        ("X", given, "`X` must be a dense array of real numbers; got .*Convert")
        for given in NO_ARRAYS
    ),
    *(("values", given, "`values` must be a dense array of real numbers") for given in NO_ARRAYS),
    ("values", np.ma.masked_less(ENDLESS, 1), "`values` must not have masked values; got"),
    ("values", ENDLESS, r"`values` must be finite.*row 5, column 1"),
    ("values", np.zeros((7, 2)), r"each of the 1500 samples.*rows_"),
    *(("n_neighbors", n, "`n_neighbors` must be") for n in (0, 1501, 2.5, "all", None, True)),
]


@pytest.mark.parametrize(("argument", "given", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_the_way_back_cannot_use_is_refused(fit, argument, given, message):
    with pytest.raises(ValueError, match=message):
        fit.inverse_transform(**{"X": PLACE, argument: given})
    if argument == "values":
        with pytest.raises(ValueError, match=message):
            fit.inverse_neighbors(given)
