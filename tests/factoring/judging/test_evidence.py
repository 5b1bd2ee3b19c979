from dataclasses import replace

import numpy as np
import pytest

from manifactor import (
    Evidence,
    ManifoldFactorizer,
    NoProductStructureWarning,
    SampleWarning,
    datasets,
)
from manifactor.judging.evidence import DataKnown, advise
from manifactor.judging.table import CRITERIA, SENSES
from manifactor.models.separable.symmetry import Symmetries

from ..places import JUDGE

ADVICE = {name: criterion.advice for name, criterion in CRITERIA.items()}
TWO_FACTORS = np.array([[np.nan, 0.15], [0.1, np.nan]])
PRODUCT = [
    *("product", "completeness", "twist", "modulation", "undivided"),
    *(
        "explained",
        "hidden direction",
        "above noise",
        "lowest functions",
        "parts",
        "leakage",
        "agreement",
        "dimensions",
    ),
    *("folds", "filling", "skew", "crossing", "modulation in data", "identified"),
]


def test_the_verdict_follows_from_the_tests():
    passed = (JUDGE["product"](0.9), JUDGE["leakage"](0.15))
    product = Evidence(passed, TWO_FACTORS)
    assert (product.verdict, product.reason) == ("product", "all tests were passed")
    # One factor is not a product, whatever the tests say.
    assert Evidence((JUDGE["samples"](1000),)).verdict == "none"
    failed = (JUDGE["completeness"](0.5), JUDGE["explained"](0.2))
    partial = Evidence((*passed, *failed), TWO_FACTORS)
    assert (partial.verdict, partial.failed) == ("partial", failed)
    assert partial.reason == "; ".join(test.problem for test in failed)
    assert (partial.product, partial.completeness) == (0.9, 0.5)
    assert np.isnan(partial.agreement)


def test_the_verdict_is_three_sentences_with_the_statistics_behind_them():
    tests = (JUDGE["completeness"](0.5), JUDGE["leakage"](0.15))
    known = {"dependence": 0.5, "details": "no more to say", "probability": 0.7}
    found = Evidence(tests, TWO_FACTORS, shapes=("a circle", "an interval"), **known)
    what, sure, to_do = found.sentences
    assert what.startswith("Two factors were found, a circle and an interval, but ")
    assert what.endswith("the data vary in ways that the factors do not have.")
    assert " right in 70 % of " in sure
    assert "unfinished" not in sure
    coarse = replace(found, unfinished=0.25).sentences[1]
    assert coarse.endswith("a factor missing or two in one, in 25 % more.")
    assert to_do == f"What to do: {ADVICE['completeness']}"
    text = found.explanation
    pieces = ["1 of 2 tests failed", "make up 50%", "predicts at most 15%", "no clear dependence"]
    places = [text.index(piece) for piece in [*pieces, "No more to say."]]
    assert places == sorted(places)
    for sense, sentence in SENSES.items():
        product = Evidence((JUDGE["leakage"](0.15),), TWO_FACTORS, sense=sense)
        assert sentence in product.explanation


def test_printed_evidence_is_as_wide_as_the_terminal(monkeypatch):
    found = Evidence((JUDGE["completeness"](0.5),), TWO_FACTORS, probability=0.7)
    for columns, width in [("40", 40), ("400", 100)]:
        monkeypatch.setenv("COLUMNS", columns)
        lines = str(found).splitlines()
        assert width - 12 < max(map(len, lines)) <= width
        assert not any(line.startswith("%") for line in lines)
        assert " ".join(lines).startswith(" ".join(found.sentences))


SPHERE = Symmetries(3, "sphere")
LATTICE = Symmetries(2, "flat torus", 60.0, 1.0, 1.0, np.zeros((3, 2)))
FEW_OF_A_CURVE = (JUDGE["samples"](30), JUDGE["blocks"](1))


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Evidence((JUDGE["blocks"](1),), symmetries=SPHERE), "the data are one factor, a sphere."),
        (Evidence((JUDGE["factors asked for"](1),)), "as was asked for"),
        (Evidence((JUDGE["directions"](1, gaps=""),), curve="interval"), "a straight line"),
        (Evidence((JUDGE["further product"](0.1),)), "as every direction depends on the others"),
        (Evidence((JUDGE["samples"](100),)), "It cannot be told"),
        # What is advised fits what is found, and what was warned of.
        (Evidence((JUDGE["blocks"](1),), symmetries=LATTICE), "Use both angles"),
        (Evidence(FEW_OF_A_CURVE, curve="circle"), "What to do: Add samples"),
        (Evidence((), TWO_FACTORS, known=DataKnown(pieces=2)), "Fit each of the 2 pieces"),
        (Evidence((), TWO_FACTORS), "What to do: Use the coordinates"),
        (
            Evidence(
                (), TWO_FACTORS, known=DataKnown(columns="Leave it out."), details="one is odd"
            ),
            "Do not rely on it yet. One is odd. What to do: Leave it out.",
        ),
    ],
)
def test_the_three_sentences_fit_each_kind_of_data(found, words):
    assert words in " ".join(found.sentences)


def test_advice_on_moves_comes_before_that_on_lengths_in_units_of_them():
    assert advise(["undivided", "transitions"]).startswith("Give more pairs")


def test_coordinates_that_are_often_wrong_are_not_called_right():
    hole = (JUDGE["filling"](0.01),)
    assert "they are right; but" in Evidence(hole, TWO_FACTORS, probability=0.93).sentences[-1]
    unsure = Evidence(hole, TWO_FACTORS, probability=0.42).sentences[-1]
    assert "right" not in unsure
    assert "only after comparing them" in unsure


@pytest.mark.parametrize(
    ("name", "value", "words", "answer"),
    [
        ("blocks", 1, {}, "one factor"),
        ("further product", 0.1, {}, "no product"),
        ("evenness", 0.4, {"ratio": 30.0}, "cannot tell"),
    ],
)
def test_one_factor_is_found_for_one_of_three_reasons(name, value, words, answer):
    evidence = Evidence((JUDGE[name](value, **words),))
    assert (evidence.verdict, evidence.answer) == ("none", answer)
    # Nothing is known that helps uneven samples.
    assert bool(evidence.advice) == (name != "evenness")


def test_more_samples_are_advised_where_several_factors_were_found():
    tests, few = (JUDGE["completeness"](0.4),), DataKnown(n_samples=400)
    several = Evidence(tests, TWO_FACTORS, known=few)
    assert several.advice.startswith("Add samples: 400 are few")
    one = Evidence((*tests, JUDGE["blocks"](1)), known=few)
    assert one.advice == ADVICE["blocks"]


def test_one_curve_is_an_answer_and_only_its_own_faults_are_told():
    curve = Evidence((JUDGE["blocks"](1),), curve="circle", known=DataKnown(n_samples=300))
    assert curve.verdict == curve.answer == "one factor"
    assert curve.finding == "One factor was found: the data are a circle, apart from noise."
    assert curve.explanation == "Beside noise, one coordinate describes every sample."
    assert curve.advice == ""
    test = JUDGE["reliability"](0.7, noise_share=0.3, factor=1)
    noisy = curve.beside([test], headline="", found="", clusters="", unlike=False)
    assert "on factor 1 are uncertain: noise makes up 30%" in noisy.reason
    assert noisy.advice == ADVICE["reliability"]


@pytest.mark.parametrize(
    ("value", "probability", "each", "summary", "sentence"),
    [
        (0.9, 0.997, (1.0, 0.99), "product, 99 %", " in 99 % of simulated problems."),
        (
            *(0.5, 0.71, (0.97, 0.74)),
            "partial, 71 %: factor 1 97 %, factor 2 74 %",
            " in 71 % of simulated problems (factor 1 97 %, factor 2 74 %).",
        ),
        (0.5, 0.001, (), "partial, 1 %", " in 1 % of simulated problems."),
        (0.9, np.nan, (np.nan, np.nan), "product", "It is not known how often"),
    ],
)
def test_a_probability_stands_beside_the_verdict_and_is_never_sure(
    value, probability, each, summary, sentence
):
    tests = (JUDGE["product"](value),)
    found = Evidence(tests, TWO_FACTORS, probability=probability, probabilities=each)
    assert found.summary == summary
    assert sentence in found.sentences[1]


IMAGES = DataKnown(n_samples=1500, n_columns=576, noise=0.17)
FEW = DataKnown(n_samples=150, noise=0.01)
NO_CIRCLES = DataKnown(circles=False)
COLUMNS = DataKnown(n_samples=50, noise=0.5, columns="Leave out column 0.")
CAUSED = ["completeness", "modulation", "explained", "filling"]


@pytest.mark.parametrize(
    ("failed", "known", "advice"),
    [
        ([], DataKnown(), []),
        # The first two matter most.
        (["filling", "explained", "undivided", "leakage"], DataKnown(), ["undivided", "explained"]),
        # A twist explains the other failures, but only if there is a circle to follow.
        (["twist", "modulation", "leakage"], DataKnown(), ["twist"]),
        (["twist in data"], DataKnown(), ["twist"]),
        (["completeness", "modulation"], DataKnown(), ["twist"]),
        (["completeness", "modulation"], NO_CIRCLES, ["completeness", "modulation"]),
        (["twist"], NO_CIRCLES, ["product"]),
        (["twist", "filling"], NO_CIRCLES, ["filling"]),
        # A twist reverses samples, but all lengths stay as they are.
        (["twist", "modulation in data"], DataKnown(), ["modulation"]),
        (["completeness", "modulation", "modulation in data"], DataKnown(), ["modulation"]),
        # A surface with a corner cut off is that, with any noise.
        (["filling"], IMAGES, ["filling"]),
        (["agreement"], DataKnown(), ["agreement"]),
    ],
)
def test_advice_is_short_and_that_of_the_gravest_tests(failed, known, advice):
    assert advise(failed, known) == " ".join(ADVICE[name] for name in advice)


@pytest.mark.parametrize(
    ("failed", "known", "words"),
    [
        (CAUSED, IMAGES, "Reduce the noise, which makes up 17%"),
        (CAUSED, FEW, "Add samples: 150 are few"),
        (["samples"], FEW, "Add samples: 150 are few"),
        (["samples", "agreement"], FEW, "Add samples: 150 are few"),
        # Columns that are no measurement are the only advice.
        (["samples", "twist"], COLUMNS, "Leave out column 0."),
    ],
)
def test_advice_names_what_is_wrong_with_the_data_before_what_it_may_cause(failed, known, words):
    advice = advise(failed, known)
    assert advice.startswith(words)
    assert advice.count("Add samples") <= 1
    assert "circle" not in advice


@pytest.mark.parametrize(
    ("p", "leakage", "words"),
    [
        (0.02, 0.15, "The coordinates show no clear dependence"),
        (0.005, 0.01, "The coordinates are nearly independent"),
        (0.005, 0.15, "The samples do not fill the product evenly"),
    ],
)
def test_dependence_that_is_significant_may_yet_be_small(p, leakage, words):
    matrix = np.array([[np.nan, leakage], [0.0, np.nan]])
    found = Evidence((), matrix, dependence=p)
    assert words in found.explanation
    # It changes nothing, so that it is not what a reader meets first.
    assert "p = " not in str(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "reason", "last"),
    [
        ("sphere", "do not divide into blocks", "blocks"),
        ("parallelogram", "irreducible", "further product"),
    ],
)
def test_irreducible_data_are_called_so(shape, reason, last):
    X, _ = datasets.sample(shape, 800, random_state=0)
    with pytest.warns(NoProductStructureWarning, match="No independent factors"):
        fit = ManifoldFactorizer(sense="geometry", random_state=0).fit(X)
    assert reason in fit.evidence_.reason
    assert (fit.verdict_, fit.n_factors_) == ("none", 1)
    assert "What to do: " in str(fit.evidence_)
    *before, failed = fit.evidence_.tests
    assert (failed.name, failed.passed) == (last, False)
    assert [test.name for test in before][:2] == ["samples", "uncertainty"]
    assert all(test.passed for test in before)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::manifactor.judging.evidence.SampleWarning")
@pytest.mark.parametrize(
    ("shape", "verdict"),
    [("square", "product"), ("moebius", "partial"), ("klein_bottle", "partial")],
)
def test_a_product_is_called_one_and_a_twisted_product_never(shape, verdict):
    X, _ = datasets.sample(shape, 700, random_state=0)
    evidence = ManifoldFactorizer(sense="geometry", random_state=0).fit(X).evidence_
    assert [test.name for test in evidence.tests] == [*PRODUCT, "certainty"]
    twisted = evidence.fails("completeness", "twist", "modulation")
    assert twisted == (verdict == "partial")
    # One model alone says less than several that agree.
    assert (evidence.probability > 0.7) == (verdict == "product")
    assert 0 <= evidence.null < 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::manifactor.judging.evidence.SampleWarning")
@pytest.mark.filterwarnings("ignore::manifactor.judging.evidence.NoProductStructureWarning")
@pytest.mark.parametrize("quarters", [0, 1, 2])
def test_a_square_that_comes_back_turned_makes_no_product(quarters):
    """The mapping torus of a square: it turns by quarters as it goes around a circle."""
    rng, n = np.random.default_rng(0), 800
    angle = rng.uniform(0, 2 * np.pi, size=n)
    x, y = rng.uniform(-1, 1, size=(2, n))
    square = (x + 1j * y) * np.exp(1j * quarters * angle / 4)
    X = np.column_stack([2 * np.cos(angle), 2 * np.sin(angle), square.real, square.imag])
    evidence = ManifoldFactorizer(random_state=0).fit(X).evidence_
    assert (evidence.verdict == "product") == (quarters == 0)
    told = "twist in data" in [test.name for test in evidence.tests]
    assert told == evidence.fails("twist in data") == (quarters > 0)
    if quarters:
        assert "once around a circle" in evidence.advice


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::manifactor.judging.evidence.SampleWarning")
def test_wrong_coordinates_on_several_factors_are_returned_only_if_asked_for():
    X, _ = datasets.sample("moebius", 700, random_state=0)
    with pytest.warns(NoProductStructureWarning, match="turns along another"):
        fit = ManifoldFactorizer(random_state=0).fit(X)
    evidence = fit.evidence_
    assert (fit.verdict_, fit.n_factors_, evidence.answer) == ("none", 1, "no product")
    # Why, and nothing about the use of coordinates that are not there.
    assert evidence.fails("twist")
    assert evidence.fails("leakage")
    assert "a twisted product is one on each half" in evidence.advice
    assert "Use the coordinates" not in evidence.advice
    asked = ManifoldFactorizer(2, random_state=0).fit(X)
    assert (asked.verdict_, asked.n_factors_) == ("partial", 2)


@pytest.mark.slow
def test_a_dimension_that_is_noise_is_no_missing_factor():
    X, _ = datasets.sample("rectangle_z", 5000, noise=0.08, random_state=0)
    fit = ManifoldFactorizer(random_state=0).fit(X)
    assert fit.bandwidth_curve_.dimension > 2.75
    assert (fit.n_factors_, fit.n_functions_) == (2, 100)
    assert {test.name for test in fit.evidence_.failed} <= {"certainty"}


@pytest.mark.slow
def test_a_short_spectrum_is_given_as_the_reason():
    X, _ = datasets.sample("strip10", 1000, random_state=0)
    with pytest.warns(NoProductStructureWarning, match="smaller factor may be hidden"):
        fit = ManifoldFactorizer(n_functions=8, sense="geometry", random_state=0).fit(X)
    assert "Raise `n_functions`" in fit.evidence_.advice
    lacking = fit.evidence_.tests[-1]
    assert lacking.name == "missing dimensions"
    assert lacking.value > lacking.limit


@pytest.mark.medium
def test_too_few_samples_are_said_with_the_number_that_would_help():
    X, _ = datasets.sample("strip10", 600, random_state=0)
    with pytest.warns(SampleWarning, match="neither half .* About 1200 samples"):
        ManifoldFactorizer(2, sense="geometry", random_state=0).fit(X)


def test_a_hundred_samples_are_too_few_to_tell():
    X, _ = datasets.sample("torus", 150, random_state=1)
    with (
        pytest.warns(SampleWarning, match="About 1000 samples would help"),
        pytest.warns(NoProductStructureWarning, match="150 samples are too few"),
    ):
        fit = ManifoldFactorizer(random_state=0).fit(X)
    (test,) = fit.evidence_.tests
    assert (test.name, test.value, test.limit) == ("samples", 150, 200)
