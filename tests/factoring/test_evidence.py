import numpy as np
import pytest

from manifactor import (
    ManifoldFactorizer,
    NoProductStructureWarning,
    SampleWarning,
    datasets,
)
from manifactor.factoring.evidence import Evidence, weigh_noise
from manifactor.factoring.factor import make_factors, placed_factor, selection
from manifactor.factoring.measures import dependence, explained, leaves_noise

from ..conftest import box_spectrum


def interval(t):
    return placed_factor(
        np.sqrt(2) * np.cos(np.pi * t)[:, None], np.array([1.0]), "interval"
    )


def test_independent_places_are_found_independent_and_dependent_ones_dependent(rng):
    t, u = rng.uniform(size=(2, 1000))
    assert dependence([interval(t), interval(u)], rng=rng) > 0.01
    assert (
        dependence([interval(t), interval(np.clip(t + 0.3 * u, 0, 1.3) / 1.3)], rng=rng)
        < 0.01
    )
    # no linear correlation, yet dependent
    assert dependence([interval(t), interval(np.abs(2 * t - 1))], rng=rng) < 0.01


def test_a_direction_of_the_data_that_no_factor_explains_is_noticed(rng):
    spectrum, waves = box_spectrum([1.3, 1.0], 20, n_samples=1000)
    x, y = (waves.tolist().index(w) for w in ([1, 0], [0, 1]))
    factors = make_factors(
        spectrum, [selection(spectrum, [x]), selection(spectrum, [y])]
    )
    places = np.hstack([factor.embedding for factor in factors])
    all_of_them = np.ones(len(places), dtype=bool)
    assert explained(factors, places, all_of_them) > 0.9
    assert (
        explained(
            factors, np.c_[places, 2 * rng.uniform(size=len(places))], all_of_them
        )
        < 0.2
    )
    assert explained(factors, None, all_of_them) == 1


def test_a_product_is_called_one_and_the_reason_reads_as_prose():
    X, _ = datasets.sample("square", 1500, random_state=0)
    fit = ManifoldFactorizer(random_state=0).fit(X)
    assert fit.verdict_ == "product"
    text = str(fit.evidence_)
    assert text.startswith(
        "The data are samples of a product of independent factors. All tests were passed."
    )
    assert "Half of the samples alone shows the same factors" in text
    assert "The places show no clear dependence" in text
    assert fit.evidence_.product > 0.9
    assert 0 <= fit.evidence_.null < 1


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        ("sphere", "vary in all directions of the data and do not fall apart"),
        ("parallelogram", "look irreducible"),
    ],
)
def test_irreducible_data_are_called_so(shape, reason):
    X, _ = datasets.sample(shape, 1200, random_state=0)
    with pytest.warns(NoProductStructureWarning, match=reason):
        fit = ManifoldFactorizer(random_state=0).fit(X)
    assert (fit.verdict_, fit.n_factors_) == ("none", 1)
    assert "method='deflation'" in str(fit.evidence_)


@pytest.mark.filterwarnings("ignore::manifactor.SampleWarning")
@pytest.mark.parametrize("shape", ["moebius", "klein_bottle"])
def test_twisted_products_are_never_called_products(shape):
    X, _ = datasets.sample(shape, 1500, random_state=0)
    fit = ManifoldFactorizer(random_state=0).fit(X)
    assert fit.verdict_ == "partial"


def test_a_dimension_that_is_noise_is_no_missing_factor():
    X, _ = datasets.sample("rectangle_z", 5000, noise=0.08, random_state=0)
    fit = ManifoldFactorizer(random_state=0).fit(X)
    assert fit.bandwidth_curve_.dimension > 2.75
    assert (fit.verdict_, fit.n_factors_, fit.n_functions_) == ("product", 2, 100)


@pytest.mark.parametrize("radius", [0.05, 0.1])
def test_a_small_circle_beside_the_factors_is_not_taken_for_noise(rng, radius):
    sheet = rng.uniform(size=(3000, 2))
    angle = rng.uniform(0, 2 * np.pi, size=3000)
    ring = radius * np.c_[np.cos(angle), np.sin(angle)]
    assert not leaves_noise(sheet, np.c_[sheet, ring])
    assert leaves_noise(sheet, np.c_[sheet, radius * rng.normal(size=(3000, 2))])


def test_a_small_factor_is_seen_beside_larger_noise_in_another_direction(rng):
    line, noise = rng.uniform(size=(4000, 1)), rng.normal(size=(4000, 1))
    angle = rng.uniform(0, 2 * np.pi, size=4000)
    ring, strip = np.c_[np.cos(angle), np.sin(angle)], rng.uniform(size=(4000, 1))
    assert not leaves_noise(line, np.c_[line, 0.05 * ring, 0.12 * noise])
    assert not leaves_noise(line, np.c_[line, 0.3 * strip, 0.3 * noise])
    assert not leaves_noise(line, np.c_[line, 0.3 * strip + 0.05 * noise])
    assert leaves_noise(line, np.c_[line, 0.3 * noise])


def test_nothing_left_is_nothing_missing(rng):
    line = rng.uniform(size=(500, 1))
    assert leaves_noise(line, np.ones((500, 2)))


def test_a_short_spectrum_is_given_as_the_reason():
    X, _ = datasets.sample("strip10", 1500, random_state=0)
    with pytest.warns(
        NoProductStructureWarning,
        match="the spectrum is too short.* raise `n_functions`",
    ):
        ManifoldFactorizer(n_functions=8, random_state=0).fit(X)


def test_too_few_samples_are_said_with_the_number_that_would_help():
    X, _ = datasets.sample("strip10", 600, random_state=0)
    with pytest.warns(
        SampleWarning,
        match="neither half shows the same factors. About 1200 samples would help",
    ):
        ManifoldFactorizer(2, random_state=0).fit(X)


def test_a_product_needs_places_that_are_little_noise():
    product = Evidence("product", "all tests were passed")
    assert weigh_noise(product, [0.99, 0.95]).verdict == "product"
    doubtful = weigh_noise(product, [0.99, 0.8])
    assert (doubtful.verdict, doubtful.reliability) == ("partial", 0.8)
    assert doubtful.reason == "noise makes up 20% of the variance of places on factor 2"
    assert "At least 80% of the variance" in str(doubtful)
    assert weigh_noise(Evidence("none", "irreducible"), [0.5]).reason == "irreducible"
