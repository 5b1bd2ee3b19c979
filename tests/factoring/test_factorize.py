from dataclasses import replace

import numpy as np
import pytest

from manifactor import DiffusionMap, NoProductStructureWarning, datasets
from manifactor._support.parameters import given
from manifactor.factoring.factorize import factorize
from manifactor.factoring.settings import FactoringSettings
from manifactor.spectral import pipeline
from manifactor.spectral.diffusion import Diffusion
from manifactor.spectral.kernel import affinity
from manifactor.spectral.laplacian import laplacian_spectrum
from manifactor.spectral.neighbors import NeighborGraph, neighbor_graph
from manifactor.spectral.parts import PartSettings
from manifactor.spectral.settings import DiffusionSettings

from ..conftest import box_spectrum
from .places import pure

PAPER = FactoringSettings(method="triplets", eigenvalue_tolerance=1e-6, similarity_threshold=0.9)


def one_to_one(n_samples):
    """A graph of distinct samples without outliers; it has no distances."""
    rows = np.arange(n_samples)
    return NeighborGraph(
        distances=None,
        bridges=np.empty((0, 2), dtype=int),
        distinct=rows,
        inverse=rows,
        components=np.zeros(n_samples, dtype=int),
        search=None,
        method=given("exact"),
        n_neighbors=None,
        recall=1.0,
        outliers=np.zeros(n_samples, dtype=bool),
        undrawn=np.zeros(n_samples, dtype=bool),
    )


def factor(spectrum, n_factors, **changes):
    diffusion = Diffusion(None, one_to_one(len(spectrum.weights)), None, spectrum)
    settings = replace(PAPER, n_factors=n_factors, **changes)
    return factorize(diffusion, settings, rng=np.random.default_rng(0))


def diffuse(X, n_functions, **more):
    graph = neighbor_graph(X, 64)
    walk = affinity(graph)
    rng = np.random.default_rng(0)
    spectrum = laplacian_spectrum(walk, n_functions, rng=rng)
    return Diffusion(X, graph, walk, spectrum, **more)


def used(factorization):
    """The spectrum's functions in each factor."""
    return [set(np.flatnonzero(f.coefficients.any(axis=1))) for f in factorization.factors]


@pytest.mark.parametrize("n_factors", [2, "auto"])
def test_exact_functions_of_a_rectangle_fall_into_its_sides(n_factors):
    spectrum, waves = box_spectrum([1.3, 1.0], 40, n_samples=2000)
    found = factor(spectrum, n_factors)
    assert found.evidence.verdict == "product"
    assert found.evidence.completeness > 0.99
    assert np.nanmax(found.evidence.leakage) < 0.05
    assert [f.topology for f in found.factors] == ["interval", "interval"]
    for functions, side in zip(used(found), (0, 1), strict=True):
        assert functions <= pure(waves, side)
        assert len(functions) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("n_factors", [3, "auto"])
def test_exact_functions_of_a_box_fall_into_its_three_sides_at_once(n_factors):
    spectrum, waves = box_spectrum([1.7, 1.3, 1.0], 40, n_samples=2000)
    found = factor(spectrum, n_factors)
    assert len(found.factors) == 3
    assert all(
        functions <= pure(waves, side)
        for functions, side in zip(used(found), range(3), strict=True)
    )


@pytest.mark.parametrize("side", range(3))
def test_when_one_side_of_a_box_is_peeled_off_the_rest_is_divided(side):
    spectrum, waves = box_spectrum([1.7, 1.3, 1.0], 40, n_samples=2000)
    rest = used(factor(spectrum, 2, exclude=sorted(pure(waves, side))))
    others = [s for s in range(3) if s != side]
    assert all(functions <= pure(waves, s) for functions, s in zip(rest, others, strict=True))


def test_no_triplet_is_said_in_words_and_gives_one_factor(rng):
    X, _ = datasets.sample("disk", 1000, random_state=0)
    spectrum = DiffusionMap(30, random_state=0).fit(X).spectrum_
    with pytest.warns(NoProductStructureWarning, match="the most similar reaches"):
        found = factor(spectrum, 2, eigenvalue_tolerance=2.0, similarity_threshold=0.95)
    assert found.evidence.verdict == "none"
    assert len(found.factors) == 1


def test_excluding_all_that_can_be_separated_is_said_in_words():
    spectrum, waves = box_spectrum([1.3, 1.0], 30, n_samples=2000)
    with pytest.warns(NoProductStructureWarning, match=r"all \d+ triplets have excluded functions"):
        assert factor(spectrum, 2, exclude=sorted(pure(waves, 0))).evidence.verdict == "none"


def test_no_sum_of_eigenvalues_within_the_tolerance_is_said_in_words():
    spectrum, _ = box_spectrum([1.0], 4)
    with pytest.warns(NoProductStructureWarning, match="`eigenvalue_tolerance`"):
        assert factor(spectrum, 2).evidence.verdict == "none"


def test_triplets_in_unconnected_pieces_are_said_in_words():
    spectrum, waves = box_spectrum([1.3, 1.0], 60, n_samples=2000)
    keep = [
        waves.tolist().index(w) for w in ([0, 0], [1, 0], [0, 1], [1, 1], [2, 0], [0, 2], [2, 2])
    ]
    keep.sort()
    few = replace(
        spectrum,
        eigenvalues=spectrum.eigenvalues[keep],
        functions=spectrum.functions[:, keep],
        residuals=np.zeros(len(keep)),
    )
    found = factor(few, 2)
    assert found.evidence.verdict == "partial"
    assert "2 unconnected pieces" in found.evidence.reason


def test_one_factor_asked_for_is_one_factor_given():
    spectrum, _ = box_spectrum([1.3, 1.0], 20)
    assert factor(spectrum, 1).evidence.reason == "one factor was asked for"


def test_products_that_are_no_functions_make_the_verdict_partial(rng):
    spectrum, waves = box_spectrum([1.3, 1.0], 30, n_samples=2000)
    odd = np.flatnonzero((waves > 0).all(axis=1))[2::2]
    functions = spectrum.functions.copy()
    functions[:, odd] = rng.permutation(functions[:, odd])
    found = factor(replace(spectrum, functions=functions), 2)
    assert found.evidence.verdict == "partial"
    assert "of the low spectrum, not 75%" in found.evidence.reason


@pytest.fixture(scope="module")
def found(torus):
    """The factors of a torus."""
    return factorize(diffuse(torus[0], 60), rng=np.random.default_rng(0))


@pytest.mark.slow
def test_choices_say_what_was_decided_and_why(found):
    assert found.evidence.verdict == "product"
    assert found.choices["method"].value == "gradients"
    assert found.choices["factors"].value == 2
    assert "orthogonal gradients" in found.choices["factors"].why
    assert set(found.choices) == {"method", "factors"}


def test_what_the_caller_decided_is_no_choice_of_the_program():
    spectrum, _ = box_spectrum([1.3, 1.0], 40, n_samples=2000)
    found = factor(spectrum, 2)
    assert found.choices == {"method": given("triplets"), "factors": given(2)}
    assert factor(spectrum, "auto").choices["factors"].automatic


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::manifactor.factoring.judging.evidence.SampleWarning")
def test_more_functions_are_a_choice_where_a_dimension_was_missing():
    X, _ = datasets.sample("strip10", 1500, random_state=0)
    start = diffuse(X, 8, max_functions=len(X) // 8)
    # In the sense of a sum eight functions are enough.
    settings = FactoringSettings(sense="geometry")
    found = factorize(start, settings, rng=np.random.default_rng(0))
    count = len(found.diffusion.distinct.eigenvalues)
    assert count > 8
    assert found.choices["functions"].value == count
    assert "fewer dimensions than the data" in found.choices["functions"].why


@pytest.mark.slow
def test_known_noise_adds_a_test_of_reliability_and_changes_nothing_else(torus):
    X = torus[0][:600]
    start = diffuse(X, 60)
    columns = X.shape[1]
    plain = factorize(start, rng=np.random.default_rng(0))
    quiet, loud = (
        factorize(start, noise=np.full(columns, sd), rng=np.random.default_rng(0))
        for sd in (1e-3, 1.0)
    )
    assert np.isnan(plain.evidence.reliability)
    *before, added = quiet.evidence.tests
    assert [(t.name, t.value) for t in before] == [(t.name, t.value) for t in plain.evidence.tests]
    assert added.name == "reliability"
    assert quiet.evidence.reliability > 0.99
    assert quiet.evidence.verdict == "product"
    assert loud.evidence.reliability < 0.9
    assert loud.evidence.verdict == "partial"
    assert "noise makes up" in loud.evidence.reason
    for one, two in zip(plain.factors, loud.factors, strict=True):
        np.testing.assert_array_equal(one.embedding, two.embedding)


@pytest.mark.slow
def test_a_factorization_is_shown_in_one_line(found):
    assert repr(found).startswith("Factorization(product, [Factor(circle, dimension=1")
    assert "\n" not in repr(found)
    assert "array" not in repr(found)


# Few samples treated as many: two parts stand for two halves.
SMALL_PARTS = DiffusionSettings(parts=PartSettings(parted_above=2000, smallest=1000))


@pytest.mark.slow
def test_many_samples_are_factored_with_the_help_of_parts():
    X, _ = datasets.sample("torus", 3000, random_state=0)
    diffusion = pipeline.diffuse(X, SMALL_PARTS, rng=np.random.default_rng(0))
    found = factorize(diffusion, rng=np.random.default_rng(0))
    assert len(diffusion.parts) == 2
    assert found.evidence.verdict == "product"
    assert [factor.topology for factor in found.factors] == ["circle", "circle"]


@pytest.mark.slow
def test_a_sphere_of_many_samples_is_no_product():
    X, _ = datasets.sample("sphere", 3000, random_state=0)
    diffusion = pipeline.diffuse(X, SMALL_PARTS, rng=np.random.default_rng(0))
    with pytest.warns(NoProductStructureWarning, match="No product structure"):
        found = factorize(diffusion, rng=np.random.default_rng(0))
    assert found.evidence.verdict == "none"
