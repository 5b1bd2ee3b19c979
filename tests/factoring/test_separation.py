"""Coordinates in which the Laplacian separates: annulus, disc, ellipse, solids; and others."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import jnp_zeros, jv, mathieu_cem
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import kneighbors_graph

from manifactor import ManifoldFactorizer, datasets
from manifactor._support.errors import NothingFoundError
from manifactor.runs.folder import read_record, write_run
from manifactor.scores import score

pytestmark = [
    pytest.mark.medium,
    pytest.mark.filterwarnings("ignore::manifactor.NoProductStructureWarning"),
    pytest.mark.filterwarnings("ignore:The samples are too few"),
]

# The model says how sure it is by itself; what is tested here are its coordinates.
SEPARABLE = ("separable", "partial")


def separated(X):
    return ManifoldFactorizer(sense="separable", random_state=0).fit(X)


@pytest.fixture(scope="module")
def annulus():
    X, truth = datasets.sample("annulus", 1200, random_state=1)
    return X, truth, separated(X)


@pytest.fixture(scope="module")
def ellipse():
    X, truth = datasets.sample("ellipse", 1200, random_state=0)
    return X, truth, separated(X)


def r2(features, target):
    return LinearRegression().fit(features, target).score(features, target)


def test_radius_and_angle_of_an_annulus_separate_and_circles_are_as_long_as_their_radius(annulus):
    X, (radius, angle), fit = annulus
    assert fit.verdict_ in SEPARABLE
    assert score([f.embedding for f in fit.factors_], (radius, angle)).solved
    circle, interval = fit.factors_
    assert (circle.topology, interval.topology) == ("circle", "interval")
    # Lengths along the angle are the radius.
    warp = fit.evidence_.warp
    assert warp.factor == 2
    order = np.argsort(interval.coordinate)
    length = np.linalg.norm(X, axis=1)
    expected = np.array([length[some].mean() for some in np.array_split(order, 32)])
    assert warp.length == pytest.approx(expected / expected.mean(), rel=0.1)
    assert "Lengths along factor 1 depend on the coordinate" in fit.evidence_.explanation


def test_eigenfunctions_of_a_disc_are_bessel_functions_of_the_coordinates_found(rng):
    turn = 2 * np.pi * rng.random(1200)
    X = np.sqrt(rng.random(1200))[:, None] * np.column_stack([np.cos(turn), np.sin(turn)])
    fit = separated(X)
    assert fit.verdict_ in SEPARABLE
    circle, interval = fit.factors_
    # The radius, from its rank: samples are even by area. The interval may run either way.
    rank = np.argsort(np.argsort(interval.coordinate)) / len(X)
    inward = np.corrcoef(rank, np.linalg.norm(X, axis=1))[0, 1] < 0
    radius = np.sqrt(1 - rank if inward else rank)
    waves = jv(1, jnp_zeros(1, 1)[0] * radius)[:, None] * circle.embedding
    lowest = fit.spectrum_.functions[:, 1:3]
    assert r2(waves, lowest) > 0.95


def test_eigenfunctions_of_an_ellipse_are_mathieu_functions_of_the_angle_found(ellipse):
    X, (u, angle), fit = ellipse
    assert fit.verdict_ in SEPARABLE
    assert score([f.embedding for f in fit.factors_], (u, angle)).solved
    # Lengths along each coordinate depend on both.
    assert fit.evidence_.warp.factor is None
    circle = fit.factors_[0]
    found = np.arctan2(*circle.embedding.T[::-1])
    # The lowest function is U(u) ce_1(v, q): its part along v, near one ellipse.
    half_axes = X.max(axis=0)
    focus = half_axes[0] ** 2 - half_axes[1] ** 2
    q = focus * fit.spectrum_.eigenvalues[1] / 4
    near = (u[:, 0] > np.quantile(u, 0.6)) & (u[:, 0] < np.quantile(u, 0.8))
    # The angle found may begin anywhere; its cosine is the one that the function varies with.
    wave = np.column_stack(
        [mathieu_cem(1, q, np.rad2deg(found - start))[0] for start in (0, np.pi / 2)]
    )
    assert r2(wave[near], fit.spectrum_.functions[near, 1]) > 0.98


def test_the_record_of_a_run_holds_the_warp_and_the_symmetries_as_numbers(annulus, tmp_path):
    _, _, fit = annulus
    write_run(fit, tmp_path / "run", record={})
    record = read_record(tmp_path / "run")
    lattice = dict.fromkeys(["lattice_angle", "lattice_error", "ratio"])
    assert record["symmetries"] == {"count": 1, "name": "body of revolution", **lattice}
    assert record["warp"]["length"] == pytest.approx(fit.evidence_.warp.length)


def test_radius_and_angle_of_a_disc_separate_where_its_density_falls_outwards(rng):
    turn, radius = 2 * np.pi * rng.random(5000), np.sqrt(rng.random(5000))
    kept = np.flatnonzero(rng.random(5000) < 8 ** -(radius**4))[:1200]
    ring = np.column_stack([np.cos(turn), np.sin(turn)])[kept]
    fit = separated(radius[kept, None] * ring)
    assert (fit.verdict_ in SEPARABLE, fit.evidence_.symmetries.name) == (True, "disc")
    assert score([f.embedding for f in fit.factors_], (radius[kept, None], ring)).solved


def test_a_gaussian_cloud_separates_in_many_ways_and_so_in_none(rng):
    fit = separated(rng.normal(size=(600, 2)) * [1, 0.6])
    assert fit.verdict_ == "none"
    assert fit.evidence_.fails("identified")


def test_the_circles_of_a_cone_over_a_flat_torus_separate(rng):
    distance = np.cbrt(rng.uniform(0.05, 1, 2000))[:, None]
    turns = [np.column_stack([np.cos(t), np.sin(t)]) for t in 2 * np.pi * rng.random((2, 2000))]
    X = distance * np.hstack(turns)
    fit = ManifoldFactorizer(3, sense="separable", random_state=0).fit(X)
    assert fit.verdict_ in SEPARABLE
    assert score([f.embedding for f in fit.factors_], (distance, *turns)).worst > 0.9
    assert [f.topology for f in fit.factors_] == ["circle", "circle", "interval"]


def test_noise_in_many_columns_adds_no_dimension(rng):
    X = np.hstack([rng.random((800, 2)), 0.012 * rng.normal(size=(800, 6))])
    fit = ManifoldFactorizer(sense="separable", preparation="none", random_state=0).fit(X)
    assert fit.diffusion_.dimension > 2.5
    # A square is a product: no length changes.
    assert fit.evidence_.fails("warp")


@pytest.mark.parametrize("shape", ["triangle", "moebius", "klein_bottle"])
def test_triangles_and_twisted_shapes_do_not_separate(shape):
    X, _ = datasets.sample(shape, 600, random_state=0)
    fit = separated(X)
    assert fit.verdict_ not in {"product", "separable"}


def test_the_default_finds_what_separates_after_all_senses_of_a_product():
    X, truth = datasets.sample("vase", 2000, random_state=0)
    fit = ManifoldFactorizer(random_state=0).fit(X)
    assert fit.verdict_ in SEPARABLE
    assert fit.evidence_.sense == "separable"
    assert "separable" in fit.choices_["sense"].why
    assert score([f.embedding for f in fit.factors_], truth).solved


@pytest.mark.parametrize(
    ("X", "parameters", "error", "said"),
    [
        (np.random.default_rng(0).random((90, 2)), {}, NothingFoundError, "20 eigenfunctions"),
        # Of few samples, the dimension is not known either.
        (np.random.default_rng(0).random((15, 2)), {}, NothingFoundError, "20 eigenfunctions"),
        (
            np.random.default_rng(0).random((300, 1)) ** [1, 2],
            {},
            NothingFoundError,
            "samples of a surface",
        ),
        (np.random.default_rng(0).random((400, 2)), {"n_factors": 3}, NothingFoundError, "3 were"),
        (
            csr_array(
                kneighbors_graph(np.random.default_rng(0).random((400, 2)), 40, mode="distance")
            ),
            {"neighbors": "precomputed"},
            ValueError,
            "precomputed graph",
        ),
    ],
)
def test_what_cannot_separate_is_refused_in_a_sentence(X, parameters, error, said):
    fit = ManifoldFactorizer(sense="separable", random_state=0, **parameters)
    with pytest.raises(error, match=said):
        fit.fit(X)


def test_radius_latitude_and_longitude_of_a_part_of_a_shell_separate(rng):
    radius, height = np.cbrt(rng.uniform(0.125, 1, 1500)), rng.uniform(-0.5, 0.8, 1500)
    angle = 2 * np.pi * rng.random(1500)
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    flat = np.sqrt(1 - height**2)[:, None] * ring
    fit = separated(radius[:, None] * np.column_stack([flat, height]))
    assert fit.verdict_ in SEPARABLE
    assert sorted(f.topology for f in fit.factors_) == ["circle", "interval", "interval"]
    truth = radius[:, None], np.arcsin(height)[:, None], ring
    assert score([f.embedding for f in fit.factors_], truth).solved
