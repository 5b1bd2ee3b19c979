"""Each kind of result, and what each of them can do: one matrix."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.neighbors import kneighbors_graph

from manifactor import ManifoldFactorizer, datasets, load, save

from ..factoring.places import ring, sphere
from ..moving import jacobian, latents, seen


def shape(name, n_samples, **how):
    return datasets.sample(name, n_samples, random_state=0, **how)[0]


def factored(X, *, known=None, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ManifoldFactorizer(random_state=0, **how).fit(X, **(known or {})), X


def frames():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(shape("cylinder", 300), columns=list("xyz")).add_prefix("column ")
    return factored(X, n_factors=2, sense="geometry")


def divided():
    """A bent square, which is a product of lengths itself, plus a circle."""
    rng = np.random.default_rng(2)
    x, y = rng.uniform(-1, 1, size=(2, 400))
    square = np.column_stack([1.4 * x, y, 0.5 * x * y, 0.3 * x**2 * y])
    X = np.hstack([square, 0.8 * ring(rng.uniform(0, 2 * np.pi, size=400))])
    return factored(X + 0.03 * rng.normal(size=X.shape), sense="sum")


def precomputed():
    graph = kneighbors_graph(shape("torus", 300), 40, mode="distance")
    return factored(graph, n_factors=2, neighbors="precomputed", n_functions=40)


def outliers():
    X = shape("torus", 400)
    X[:4] = 3 * np.random.default_rng(0).normal(size=(4, 4))
    X[0] = 40
    X[50:60] = X[60:70]  # and copies
    return factored(X, n_factors=2, sense="geometry")


def by_metric():
    u = np.random.default_rng(0).random((400, 2))
    return factored(seen(u), known={"metric": jacobian(u) * (0.04, 0.06)})


def by_pairs():
    X = seen(latents(4000, np.random.default_rng(1), steps=(0.15, 0.2)))
    known = {"pairs": X[1:], "lag": 0.5, "fit_samples": 400}
    fit, X = factored(X[:-1], known=known)
    return fit, X[fit.rows_]


def unfolded():
    """Places in flat coordinates, in which a strong map is undone."""
    rng = np.random.default_rng(0)
    u = rng.random((400, 2))
    return factored(np.exp(2 * u), known={"metric": 0.05 * np.exp(2 * u)[:, :, None] * np.eye(2)})


def images():
    row, column = np.random.default_rng(0).uniform(0, 4, (2, 160, 1, 1))
    y, x = np.mgrid[:6, :5]
    spot = np.exp(-((x - column) ** 2 + (y - row) ** 2) / 4)
    X = np.stack([spot, 0 * spot, spot**2], axis=-1)
    return factored(X, n_factors=2, sense="geometry")


KINDS = {
    "torus": lambda: factored(shape("torus", 400), n_factors=2),
    "sphere and interval": lambda: factored(shape("sphere_interval", 600), sense="geometry"),
    "sum": lambda: factored(shape("torus", 400), sense="sum"),
    "divided sum": divided,
    "separable": lambda: factored(shape("annulus", 600), sense="separable"),
    "triplets": lambda: factored(shape("torus", 600), n_factors=2, method="triplets"),
    "metric": by_metric,
    "pairs": by_pairs,
    "unfolded": unfolded,
    "one factor": lambda: factored(shape("torus", 300), n_factors=1),
    "none": lambda: factored(sphere(np.random.default_rng(0), 300), sense="geometry"),
    "images": images,
    "precomputed": precomputed,
    "single precision": lambda: factored(shape("torus", 300).astype(np.float32), n_factors=2),
    "data frame": frames,
    "ranks": lambda: factored(np.exp(shape("torus", 300)), n_factors=1, transformation="ranks"),
    "wide": lambda: factored(shape("rectangle", 400, noise=0.02, ambient_dimension=20)),
    "outliers": outliers,
    "local": lambda: factored(shape("torus", 400), n_factors=2, bandwidth="local"),
}

SLOW = ("divided sum", "pairs", "unfolded")
FAST = (
    "torus",
    "precomputed",
    "one factor",
    "none",
    "ranks",
)  # the others are left out by `make quick`


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(
            k, marks=[pytest.mark.slow] * (k in SLOW) + [pytest.mark.medium] * (k not in FAST)
        )
        for k in KINDS
    ],
)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def found(kind):
    """A fit, and the samples that it knows."""
    return KINDS[kind]()


def placed(fit, some):
    """All that a fit says of samples."""
    parts = [fit.transform(some), fit.coordinates(some)]
    if fit.diffusion_.points is not None:
        parts += [column for at in fit.locate(some) for column in at if column is not None]
    return [np.asarray(part) for part in parts]


def equal(parts, others):
    return all(np.array_equal(*pair, equal_nan=True) for pair in zip(parts, others, strict=True))


def test_samples_of_the_fit_are_placed_where_the_fit_has_them(kind, found):
    fit, X = found
    embeddings = np.hstack([factor.embedding for factor in fit.factors_])
    off = np.abs(fit.transform(X) - embeddings)
    # Distances of a sample to itself are not among those that were computed.
    assert off.mean() < (0.01 if kind == "precomputed" else 1e-3)
    assert embeddings.shape[1] == len(fit.get_feature_names_out())
    # Surfaces have no coordinate.
    surfaces = [factor.topology == "other" for factor in fit.factors_]
    assert np.isnan(fit.coordinates(X[:5])).all(axis=0).tolist() == surfaces
    dtype = np.float32 if kind == "single precision" else np.float64
    assert {fit.transform(X).dtype, fit.coordinates().dtype} == {np.dtype(dtype)}


def test_places_have_a_confidence_and_do_not_depend_on_other_samples(kind, found):
    fit, X = found
    if kind == "precomputed":
        with pytest.raises(ValueError, match="a precomputed graph does not have"):
            fit.locate(X)
        return
    for at, half, factor in zip(
        fit.locate(X[:40]), fit.locate(X[20:40]), fit.factors_, strict=True
    ):
        np.testing.assert_allclose(at.confidence, factor.confidence[:40], atol=1e-6)
        np.testing.assert_array_equal(at.embedding[20:], half.embedding)
        assert (at.coordinate is None) == (factor.coordinate is None)
    if kind not in ("images", "ranks"):
        far = fit.locate(X[:1] + 1000)
        assert max(at.confidence[0] for at in far) < 1e-3
        assert all(np.isfinite(at.embedding).all() for at in far)


def test_samples_come_back_from_their_places(kind, found):
    fit, X = found
    places, given = fit.transform(X[:20]), {}
    if kind == "precomputed":
        with pytest.raises(ValueError, match=r"distances only.*values=samples"):
            fit.inverse_transform(places)
        X = shape("torus", 300)
        given = {"values": X}
    back = fit.inverse_transform(places, **given)
    X = np.asarray(X)
    assert (back.shape, back.dtype) == (X[:20].shape, places.dtype)
    inside = ~fit.outliers_[:20]
    if kind != "none":
        off = np.sqrt(((back - X[:20])[inside] ** 2).mean())
        assert off < 0.35 * X[~fit.outliers_].std(axis=0).mean()


def test_frames_go_along_factors_that_have_an_order(kind, found):
    fit, X = found
    given = {"values": np.arange(X.shape[0])} if kind == "precomputed" else {}
    for number, factor in enumerate(fit.factors_):
        if factor.topology == "other":
            with pytest.raises(ValueError, match=r"surface\. Pass places along a path"):
                fit.along(number)
            continue
        assert len(fit.along(number, 3, **given)) == 3
        places = fit.places_along(number, 5)
        assert len(np.unique(places.round(9), axis=0)) == 5


def test_a_table_has_columns_for_each_factor(found):
    pytest.importorskip("pandas")
    fit, _ = found
    table = fit.frame()
    assert len(table) == len(fit.outliers_)
    for number, factor in enumerate(fit.factors_, start=1):
        own = [name for name in table.columns if name.startswith(f"factor{number}")]
        count = {"interval": 1, "circle": 3}.get(factor.topology, factor.embedding.shape[1])
        assert len(own) == count + 1
        np.testing.assert_array_equal(table[f"factor{number}_confidence"], factor.confidence)


def test_shares_of_columns_add_up_to_one(kind, found):
    fit, _ = found
    given = []
    if kind == "precomputed":
        given = [shape("torus", 300)]
        with pytest.raises(ValueError, match="knows distances only"):
            fit.loadings()
    loadings = fit.loadings(*given)
    total = np.column_stack([loadings.shares, loadings.interactions, loadings.noise]).sum(axis=1)
    np.testing.assert_allclose(total, 1)


@pytest.mark.medium
def test_a_fit_is_the_same_after_it_was_saved_or_pickled(found, tmp_path):
    fit, X = found
    save(fit, tmp_path / "fit.npz")
    loaded, some = load(tmp_path / "fit.npz"), X[:30]
    for again in (loaded, pickle.loads(pickle.dumps(fit))):
        assert equal(placed(again, some), placed(fit, some))
        assert (again.verdict_, str(again.evidence_)) == (fit.verdict_, str(fit.evidence_))
        assert again.get_params() == fit.get_params()
        assert (again.image_shape_, str(again.choices_)) == (fit.image_shape_, str(fit.choices_))
    if fit.diffusion_.points is not None:
        places = fit.transform(some)
        np.testing.assert_array_equal(
            loaded.inverse_transform(places), fit.inverse_transform(places)
        )
    # What was loaded is written as it was.
    save(loaded, tmp_path / "again.npz")
    with np.load(tmp_path / "fit.npz") as one, np.load(tmp_path / "again.npz") as other:
        assert one.files == other.files
        for name in one.files[:-1]:  # the last is the manifest
            np.testing.assert_array_equal(one[name], other[name])
