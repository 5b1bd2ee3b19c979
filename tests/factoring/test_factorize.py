from dataclasses import replace

import numpy as np
import pytest

from manifactor import DiffusionMap, NoProductStructureWarning, datasets
from manifactor.factoring.evidence import Evidence
from manifactor.factoring.factor import make_factors, selection
from manifactor.factoring.factorize import by_triplets
from manifactor.spectral.diffusion import Diffusion
from manifactor.factoring.measures import completeness, leakage

from ..conftest import box_spectrum

PAPER = {"eigenvalue_tolerance": 1e-6, "similarity_threshold": 0.9, "exclude": ()}


def factor(spectrum, n_factors, **changes):
    diffusion = Diffusion(None, None, None, spectrum, spectrum)
    return by_triplets(
        diffusion, n_factors, **{**PAPER, **changes}, rng=np.random.default_rng(0)
    )


def used(factorization):
    """The spectrum's functions in each factor."""
    return [
        set(np.flatnonzero(f.coefficients.any(axis=1))) for f in factorization.factors
    ]


def pure(waves, side):
    return set(np.flatnonzero((np.delete(waves, side, axis=1) == 0).all(axis=1))) - {0}


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
    assert all(
        functions <= pure(waves, s) for functions, s in zip(rest, others, strict=True)
    )


def test_no_triplet_is_said_in_words_and_gives_one_factor(rng):
    X, _ = datasets.sample("disk", 1000, random_state=0)
    spectrum = DiffusionMap(30, random_state=0).fit(X).spectrum_
    with pytest.warns(
        NoProductStructureWarning,
        match=r"the most similar reaches 0\.\d\d .* asks for 0.95",
    ):
        found = factor(spectrum, 2, eigenvalue_tolerance=2.0, similarity_threshold=0.95)
    assert found.evidence.verdict == "none"
    assert len(found.factors) == 1


def test_excluding_all_that_can_be_separated_is_said_in_words():
    spectrum, waves = box_spectrum([1.3, 1.0], 30, n_samples=2000)
    with pytest.warns(
        NoProductStructureWarning, match=r"all \d+ triplets have excluded functions"
    ):
        assert (
            factor(spectrum, 2, exclude=sorted(pure(waves, 0))).evidence.verdict
            == "none"
        )


def test_no_sum_of_eigenvalues_within_the_tolerance_is_said_in_words():
    spectrum, _ = box_spectrum([1.0], 4)
    with pytest.warns(
        NoProductStructureWarning,
        match="add up to a third's within `eigenvalue_tolerance`; raise it",
    ):
        assert factor(spectrum, 2).evidence.verdict == "none"


def test_triplets_in_unconnected_pieces_are_said_in_words():
    spectrum, waves = box_spectrum([1.3, 1.0], 60, n_samples=2000)
    keep = [
        waves.tolist().index(w)
        for w in ([0, 0], [1, 0], [0, 1], [1, 1], [2, 0], [0, 2], [2, 2])
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


def test_missing_functions_lower_the_completeness():
    spectrum, waves = box_spectrum([1.3, 1.0], 30, n_samples=2000)
    x, y = (sorted(pure(waves, side)) for side in (0, 1))
    whole = make_factors(spectrum, [selection(spectrum, g) for g in (x, y)])
    holes = make_factors(spectrum, [selection(spectrum, g) for g in (x[1:], y)])
    assert completeness(spectrum, whole) > 0.99
    assert completeness(spectrum, holes) < 0.9


def test_products_that_are_no_functions_make_the_verdict_partial(rng):
    spectrum, waves = box_spectrum([1.3, 1.0], 30, n_samples=2000)
    odd = np.flatnonzero((waves > 0).all(axis=1))[2::2]
    functions = spectrum.functions.copy()
    functions[:, odd] = rng.permutation(functions[:, odd])
    found = factor(replace(spectrum, functions=functions), 2)
    assert found.evidence.verdict == "partial"
    assert "of the low spectrum, not 75%" in found.evidence.reason


def test_leakage_says_which_factor_predicts_which():
    spectrum, _ = box_spectrum([1.0], 5, n_samples=800)
    (whole,) = make_factors(spectrum, [selection(spectrum, [1])])
    (folded,) = make_factors(
        spectrum, [selection(spectrum, [2])]
    )  # the same at t and 1 - t
    found = leakage([whole, folded])
    assert found[0, 1] > 0.99
    assert found[1, 0] < 0.1


def test_evidence_reads_as_prose():
    text = str(
        Evidence(
            "partial",
            "something is missing",
            0.5,
            np.array([[np.nan, 0.25], [0.1, np.nan]]),
        )
    )
    assert text == (
        "Several factors were found, but not every test of a product was passed. Something is missing. Functions of "
        "single factors and their products make up 50% of the low spectrum. A sample's place on one factor predicts at "
        "most 25% of another."
    )
