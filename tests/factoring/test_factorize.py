from dataclasses import replace

import numpy as np
import pytest

from manifactor import NoProductStructureWarning, datasets
from manifactor._support.parameters import given
from manifactor.operators import pipeline
from manifactor.operators.kernel import affinity
from manifactor.operators.laplacian import laplacian_spectrum
from manifactor.operators.neighbors import NeighborGraph, neighbor_graph
from manifactor.operators.operator import Operator
from manifactor.settings import FactoringSettings

from ..conftest import box_spectrum
from .candidates import factored
from .places import pure

PAPER = FactoringSettings(method="triplets", eigenvalue_tolerance=1e-6, similarity_threshold=0.9)
GEOMETRY = FactoringSettings(sense="geometry")


def factor(spectrum, n_factors, **changes):
    # A graph of distinct samples without outliers; it has no distances.
    rows = np.arange(len(spectrum.weights))
    links, none = np.empty((0, 2), dtype=int), np.zeros(len(rows), dtype=bool)
    known = links, rows, rows, 0 * rows, None, given("exact"), None, 1.0, none, none
    graph = NeighborGraph(None, *known)
    diffusion = Operator(None, graph, None, spectrum)
    settings = replace(PAPER, n_factors=n_factors, **changes)
    return factored(diffusion, settings)


def diffuse(X, n_functions, **more):
    graph = neighbor_graph(X, 64)
    walk = affinity(graph)
    rng = np.random.default_rng(0)
    spectrum = laplacian_spectrum(walk, n_functions, rng=rng)
    return Operator(X, graph, walk, spectrum, **more)


def used(factorization):
    """The spectrum's functions in each factor."""
    return [set(np.flatnonzero(own.any(axis=1))) for own in factorization.coefficients]


@pytest.mark.medium
@pytest.mark.parametrize(
    ("sides", "n_factors"), [([1.3, 1.0], 2), ([1.3, 1.0], "auto"), ([1.7, 1.3, 1.0], "auto")]
)
def test_exact_functions_of_a_box_fall_into_its_sides(sides, n_factors):
    spectrum, waves = box_spectrum(sides, 40, n_samples=1000)
    found = factor(spectrum, n_factors)
    assert found.evidence.verdict == "product"
    assert found.evidence.completeness > 0.99
    assert np.nanmax(found.evidence.leakage) < 0.05
    assert [f.topology for f in found.factors] == ["interval"] * len(sides)
    for side, functions in enumerate(used(found)):
        assert functions <= pure(waves, side)
        assert len(functions) >= 2


@pytest.mark.parametrize(
    ("sides", "changes", "reason"),
    [
        ([1.3, 1.0], {"exclude": "first side"}, "triplets have excluded functions"),
        ([1.0], {"eigenvalue_tolerance": 50.0}, "is the product of lower ones"),
        ([1.0], {}, "`eigenvalue_tolerance`"),
    ],
)
def test_no_triplet_is_said_in_words_and_gives_one_factor(sides, changes, reason):
    spectrum, waves = box_spectrum(sides, 30 if len(sides) > 1 else 4, n_samples=1000)
    if "exclude" in changes:
        changes = {"exclude": sorted(pure(waves, 0))}
    found = factor(spectrum, 2, **changes)
    (warned,) = found.warned
    assert warned.category is NoProductStructureWarning
    assert reason in warned.message
    assert found.evidence.verdict == "none"
    assert [test.name for test in found.evidence.tests] == ["triplets"]
    assert len(found.factors) == 1


def test_triplets_in_unconnected_pieces_make_the_verdict_partial():
    spectrum, waves = box_spectrum([1.3, 1.0], 60, n_samples=1000)
    waves = waves.tolist()
    keep = [waves.index(w) for w in ([0, 0], [1, 0], [0, 1], [1, 1], [2, 0], [0, 2], [2, 2])]
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


def test_what_the_caller_decided_is_no_choice_of_the_program():
    spectrum, _ = box_spectrum([1.3, 1.0], 40, n_samples=1000)
    found = factor(spectrum, 2)
    assert found.choices == {"method": given("triplets"), "factors": given(2)}
    assert factor(spectrum, "auto").choices["factors"].automatic
    one = factor(spectrum, 1)
    assert (len(one.factors), one.evidence.reason) == (1, "one factor was asked for")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::manifactor.judging.evidence.SampleWarning")
def test_more_functions_are_a_choice_where_a_dimension_was_missing():
    X, _ = datasets.sample("strip10", 1000, random_state=0)
    start = diffuse(X, 8)
    # In the sense of a sum eight functions are enough.
    found = factored(start, GEOMETRY)
    count = len(found.diffusion.distinct.eigenvalues)
    assert count > 8
    assert found.choices["functions"].value == count
    assert "fewer dimensions than the data" in found.choices["functions"].why


@pytest.mark.slow
def test_choices_say_why_and_known_noise_adds_a_test_and_changes_nothing_else(torus):
    start = diffuse(torus[0][:600], 60)
    plain, loud = (factored(start, noise=noise, is_free=True) for noise in (None, np.full(4, 1.0)))
    chosen = {name: choice.value for name, choice in plain.choices.items()}
    assert chosen == {"method": "gradients", "factors": 2}
    assert "orthogonal gradients" in plain.choices["factors"].why
    assert repr(plain).startswith("Factorization(product, [Factor(circle, dimension=1")
    assert np.isnan(plain.evidence.reliability)
    *before, added = loud.evidence.tests
    assert [(t.name, t.value) for t in before] == [(t.name, t.value) for t in plain.evidence.tests]
    assert (added.name, loud.evidence.verdict) == ("reliability", "partial")
    assert loud.evidence.reliability < 0.9
    for one, two in zip(plain.factors, loud.factors, strict=True):
        np.testing.assert_array_equal(one.embedding, two.embedding)


@pytest.fixture
def small_parts(monkeypatch):
    """Few samples treated as many: two parts stand for two halves."""
    monkeypatch.setattr("manifactor.operators.laplacian.PARTED_ABOVE", 1500)
    monkeypatch.setattr("manifactor.operators.laplacian.SMALLEST_PART", 800)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::manifactor.NoProductStructureWarning")
@pytest.mark.parametrize(("shape", "verdict"), [("torus", "product"), ("sphere", "none")])
@pytest.mark.usefixtures("small_parts")
def test_many_samples_are_factored_with_the_help_of_parts(shape, verdict):
    X, _ = datasets.sample(shape, 2000, random_state=0)
    diffusion = pipeline.diffuse(X, rng=np.random.default_rng(0))
    found = factored(diffusion, GEOMETRY)
    assert len(diffusion.parts) == 2
    assert found.evidence.verdict == verdict


# What may be set.
