"""The verdict on a factorization, derived from its tests, what to do next, and its prose."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from manifactor.factoring.gradients.symmetry import Symmetries
from manifactor.factoring.judging.criteria import CRITERIA, SENSES, Criterion, Test
from manifactor.factoring.measures import NOT_MEASURED


class NoProductStructureWarning(UserWarning):
    """The data show one factor only."""


class SampleWarning(UserWarning):
    """The samples are too few or too noisy for a verdict."""


VERDICTS = {
    "product": "The data are samples of a product of independent factors.",
    "separable": "The data are not a product, but their Laplacian separates.",
    "partial": "Several factors were found, but not every test of a product was passed.",
    "one factor": "The data are one factor: {curve}.",
    "none": "No product structure was found.",
}
# The same, where coordinates that separate were looked for alone.
VERDICTS_OF_SEPARATION = {
    "partial": "Coordinates were found, but not every test that they separate was passed.",
    "none": "No coordinates that separate were found.",
}
CURVES = {"interval": "an interval", "circle": "a circle"}
# Tests of the coordinate on one curve; all others ask whether the data divide.
OF_A_CURVE = ("reliability", "views", "consistency")
# Of a product in the sense of a sum some of whose terms have several factors.
SUM_OF_TERMS = (
    "They are a sum: each term moves the samples by a function of its own, whatever the others do."
)

# Sentences for tests that were passed; failed tests are described by `reason`.
SENTENCES = {
    "completeness": (
        "Eigenfunctions of single factors and their products make up {:.0%} of the low spectrum."
    ),
    "leakage": "A sample's coordinate on one factor predicts at most {:.0%} of another.",
    "agreement": "The factors found in half of the samples agree to {:.0%}.",
}


# Fewer samples are few: a thousand show most products of two curves.
FEW_SAMPLES = 1000
# Answers of tests that say why there is one factor.
WHY_ONE = ("one factor", "no product")


@dataclass(frozen=True)
class DataKnown:
    """What is known of the data beside the tests, as far as advice depends on it."""

    n_samples: int | None = None  # distinct samples; None where it is not known
    n_columns: int = 0  # columns as given, before any preparation
    # Share of the variance of prepared samples that is noise; nan if not known
    noise: float = NOT_MEASURED
    circles: bool = True  # whether a factor is a circle, which a twisted product needs
    # What to do about columns that are likely not measurements; "" if there are none
    columns: str = ""


@dataclass(frozen=True)
class Warp:
    """How lengths depend on the coordinates in which a Laplacian separates.

    Attributes
    ----------
    factor : int or None
        Number of the factor, from 1, whose coordinate lengths along the other depend on
        (a warped product); None if they depend on both (Staeckel).
    coordinate : ndarray of shape (n_points,)
        Coordinates on this factor; empty where there is none, or it is a surface.
    length : ndarray of shape (n_points,)
        Lengths along the other factor there, relative to their mean.
    """

    factor: int | None
    coordinate: np.ndarray = field(default_factory=lambda: np.empty(0))
    length: np.ndarray = field(default_factory=lambda: np.empty(0))

    def __str__(self) -> str:
        if self.factor is None:
            return "Lengths along each coordinate depend on both, as a sum of a function of each."
        depend = f"Lengths along factor {3 - self.factor} depend on the"
        if not len(self.length):
            return f"{depend} place on factor {self.factor}."
        low, high = self.length.min(), self.length.max()
        return (
            f"{depend} coordinate on factor {self.factor}: they are {low:.2g} to {high:.2g} times "
            "their mean."
        )


@dataclass(frozen=True)
class Evidence:
    """Tests of a factorization and the verdict that follows from them.

    ``str()`` reads as prose.

    Attributes
    ----------
    tests : tuple of Test
        Everything that was measured and judged. `verdict` and `reason` follow from it.
    leakage : ndarray of shape (n_factors, n_factors)
        [i, j] is the R^2 with which coordinates on factor i predict factor j; the
        diagonal is nan.
    null : float
        Largest noise of `q`, estimated from half samples. `q` decides the number of
        blocks: it is near 0 where functions divide and near 1 where they do not.
    dependence : float
        Permutation p-value of the hypothesis that the factors' coordinates are
        statistically independent.
    details : str
        Remarks of the method.
    sense : "geometry", "density", "volume", "sum" or "separable"
        In which sense the data are a product, or separate, or were looked at last.
    known : DataKnown
        What is known of the data beside the tests; `advice` depends on it.
    terms : tuple of tuple of int
        Numbers of the factors of each term of a sum, from 1, where a term has several;
        else ().
    warp : Warp or None
        How lengths depend on coordinates that separate; None in all other senses.
    symmetries : Symmetries or None
        Continuous symmetries, such as those of a sphere; None where they were not looked
        for, as on a product.
    curve : "interval", "circle" or ""
        What the data are where they are one curve, beside noise.
    probability : float
        How often results with such tests had all factors right, on the random problems that
        it was learnt from; nan outside of their range.
    probabilities : tuple of float
        The same for each factor by itself.

    Examples
    --------
    >>> from manifactor.factoring.judging.criteria import Criterion
    >>> size = Criterion("size", 10, meaning="samples", problem="{value:.0f} are too few")
    >>> Evidence((size.judge(3),)).verdict, Evidence((size.judge(3),)).reason
    ('none', '3 are too few')
    """

    tests: tuple[Test, ...]
    leakage: np.ndarray = field(default_factory=lambda: np.full((1, 1), np.nan))
    null: float = NOT_MEASURED
    dependence: float = NOT_MEASURED
    details: str = ""
    sense: str = "geometry"
    known: DataKnown = field(default_factory=DataKnown, repr=False)
    terms: tuple[tuple[int, ...], ...] = ()
    warp: Warp | None = None
    symmetries: Symmetries | None = None
    curve: str = ""
    probability: float = NOT_MEASURED
    probabilities: tuple[float, ...] = ()

    @property
    def n_factors(self) -> int:
        """Number of factors."""
        return len(self.leakage)

    @property
    def verdict(self) -> str:
        """Either "product", "separable", "partial", "one factor" or "none".

        "one factor" if the data are one curve, "none" if they are one factor of several directions;
        "product" if there are several factors and all tests were passed, "separable" if these were
        tests of coordinates in which the Laplacian separates.
        """
        # No test of one surface proves that it does not divide.
        if self.n_factors == 1:
            return "one factor" if self.curve else "none"
        if self.failed:
            return "partial"
        return "separable" if self.sense == "separable" else "product"

    @property
    def finding(self) -> str:
        """The verdict as a sentence."""
        own = VERDICTS_OF_SEPARATION if self.sense == "separable" else {}
        return own.get(self.verdict, VERDICTS[self.verdict]).format(curve=CURVES.get(self.curve))

    @property
    def failed(self) -> tuple[Test, ...]:
        """Tests that were not passed."""
        return tuple(test for test in self.tests if not test.passed)

    def fails(self, *names: str) -> bool:
        """Return whether one of some tests was not passed."""
        return any(test.name in names for test in self.failed)

    @property
    def reason(self) -> str:
        """Problems of the failed tests, joined by semicolons.

        Of one curve, only those that matter to its coordinate.
        """
        curve = self.verdict == "one factor"
        told = ("directions", *OF_A_CURVE)
        problems = [test.problem for test in self.failed if not curve or test.name in told]
        if curve and not problems:
            return "beside noise, one coordinate tells the place of every sample"
        return "; ".join(problems) or "all tests were passed"

    @property
    def answer(self) -> str:
        """The verdict, with three answers in place of "none".

        "one factor"; "no product" if there are several directions, but no product of them; "cannot
        tell" if samples are too few, too noisy or too uneven.
        """
        if self.verdict != "none":
            return self.verdict
        answers = (CRITERIA[test.name].answer for test in self.failed if test.name in CRITERIA)
        return next(filter(None, answers), "one factor")

    @property
    def advice(self) -> str:
        """What to do next, in sentences; "" where nothing is to be done.

        It follows from the tests that failed and from what is known of the data.
        """
        failed = [test.kind for test in self.failed]
        if self.verdict == "one factor":
            # One curve is an answer, and few samples show it.
            own = [name for name in failed if name in OF_A_CURVE]
            return advise(own, replace(self.known, n_samples=None))
        if self.verdict == "none":
            # There are no coordinates on several factors to be used, and twice the samples made
            # such a result better in 1 of 53 cases.
            failed = [kind for kind in failed if kind in CRITERIA and CRITERIA[kind].answer]
            return advise(failed, replace(self.known, n_samples=None))
        return advise(failed, self.known)

    def value(self, name: str) -> float:
        """Return the measured value of a test; nan where there is no such test."""
        values = [test.value for test in self.tests if test.name == name]
        return values[0] if values else NOT_MEASURED

    @property
    def completeness(self) -> float:
        """How far pure functions and their products are the low eigenfunctions.

        1 for a product; less where there are too few or too many of them.
        """
        return self.value("completeness")

    @property
    def product(self) -> float:
        """Smallest share of a product of two factors' lowest functions that fits.

        It fits if it lies near the sum of their eigenvalues.
        """
        return self.value("product")

    @property
    def agreement(self) -> float:
        """Smallest share of a factor's lowest functions found in half of the samples.

        In the half that shows more of them.
        """
        return self.value("agreement")

    @property
    def reliability(self) -> float:
        """Smallest share of a factor's variance that is not noise of known size."""
        return self.value("reliability")

    def __repr__(self) -> str:
        n_passed = sum(test.passed for test in self.tests)
        return f"Evidence({self.verdict}, {n_passed} of {len(self.tests)} tests passed)"

    def with_test(self, test: Test) -> "Evidence":
        """Return the evidence with one more test.

        If it failed, the result is not among those that the probability was learnt from.
        """
        known = self if test.passed else self.without_probability()
        return replace(known, tests=(*self.tests, test))

    def without_probability(self) -> "Evidence":
        """Return the evidence of a result unlike those that the probability was learnt from."""
        return replace(self, probability=NOT_MEASURED, probabilities=())

    def __str__(self) -> str:
        sentences = [self.finding, _sentence(self.reason)]
        if self.verdict in ("product", "separable"):
            sentences.append(SUM_OF_TERMS if self.terms else SENSES[self.sense])
        if self.verdict == "separable" and self.warp is not None:
            sentences.append(str(self.warp))
        if self.symmetries is not None:
            sentences.append(self._symmetries_in_words(self.symmetries))
        sentences.append(self._probability_in_words())
        sentences += self._terms_in_words()
        sentences += self._numbers_in_words()
        if self.details:
            sentences.append(_sentence(self.details))
        if self.advice:
            sentences.append(f"What to do: {self.advice}")
        return " ".join(filter(None, sentences))

    @property
    def summary(self) -> str:
        """The verdict and how probable it is: "partial, 71 %: factor 1 97 %, factor 2 74 %".

        Without numbers where these are not known.
        """
        known = ", ".join(filter(None, [self.verdict, percent(self.probability)]))
        return ": ".join(filter(None, [known, self._each_in_words()]))

    def _each_in_words(self) -> str:
        """How probable each factor is, where not all may be right; "" where it is not known."""
        shares = enumerate(map(percent, self.probabilities), start=1)
        known = [f"factor {number} {share}" for number, share in shares if share]
        return ", ".join(known) if self.verdict == "partial" else ""

    def _probability_in_words(self) -> str:
        """A sentence on how often such results are right; "" where that is not known."""
        if not (share := percent(self.probability)):
            return ""
        each = self._each_in_words()
        said = f"Of random problems with such tests, {share} had all factors right"
        return f"{said} ({each})." if each else f"{said}."

    def _symmetries_in_words(self, found: Symmetries) -> str:
        """A sentence on symmetries that tell the shape; "" for others."""
        angles = "" if found.angles is None else " Two angles tell the place of every sample."
        if found.is_homogeneous:
            known = "" if self.fails("unique") else f"Every place looks the same, as on {found}."
            return f"{known}{angles}".strip()
        if found.name is None or self.verdict != "separable":
            return ""
        return f"The data look the same after every rotation, as {found} does."

    def _terms_in_words(self) -> list[str]:
        """A sentence on each term of a sum that has several factors."""
        sentences = []
        for number, factors in enumerate(self.terms, start=1):
            if len(factors) == 1:
                continue
            *first, last = map(str, factors)
            which = f"Factors {', '.join(first)} and {last}"
            inside = [test for test in self.failed if test.is_of_term(number)]
            how_far = "nearly a product" if inside else "a product"
            sentences.append(
                f"{which} together are term {number} of the sum, which is {how_far} of "
                "lengths by itself."
            )
        return sentences

    def _worst(self, kind: str) -> float:
        """The worst value of the tests of one kind, over the terms of a sum."""
        tests = [test for test in self.tests if test.kind == kind]
        worst = min if tests[0].at_least else max
        return worst(test.value for test in tests)

    def _numbers_in_words(self) -> list[str]:
        """Sentences about measured numbers that the reason does not mention."""
        passed = {test.name for test in self.tests if test.passed}
        sentences = [
            sentence.format(self._worst(name))
            for name, sentence in SENTENCES.items()
            if name in passed
        ]
        if np.isfinite(self.dependence):
            sentences.append(self._dependence_in_words())
        if "reliability" in passed:
            # An estimated share never reads as 100 %.
            share = min(self.reliability, 0.99)
            sentences.append(
                f"At least {share:.0%} of the variance of the coordinates on every factor "
                "is signal, not noise."
            )
        return sentences

    def _dependence_in_words(self) -> str:
        """Whether coordinates are statistically dependent, which a product allows."""
        p = self.dependence
        if p > CRITERIA["independence"].limit:
            return (
                f"The coordinates show no clear dependence on each other (permutation p = {p:.3f})."
            )
        # Below this leakage a significant dependence does not matter.
        if np.nanmax(self.leakage) < 0.05:
            return (
                "The coordinates are nearly independent: what one tells of another is "
                f"significant but small (p = {p:.3f})."
            )
        return (
            "The samples do not fill the product evenly: a coordinate on one factor tells "
            f"something of another (p = {p:.3f}). A product of lengths allows that."
        )


def percent(share: float) -> str:
    """Return a probability in words, which is never sure; "" where it is not known.

    >>> percent(0.997), percent(0.714), percent(0.0), percent(NOT_MEASURED)
    ('99 %', '71 %', '1 %', '')
    """
    return "" if np.isnan(share) else f"{np.clip(round(100 * share), 1, 99)} %"


def _sentence(phrase: str) -> str:
    return phrase[0].upper() + phrase[1:].rstrip(".") + "."


# What to do next, from the tests that failed and from what is known of the data.


def advise(failed: Iterable[str], known: DataKnown = DataKnown()) -> str:
    """Return what to do next, in sentences; "" where nothing follows.

    Columns that are not measurements come before all else, since every test rests on them. Noise
    and too few samples come next, then what the failed tests mean.

    >>> advise(["filling"])
    'Use the coordinates, they are right; but not every combination of them occurs.'
    """
    if known.columns:
        return known.columns
    tests = [CRITERIA[name] for name in set(failed) & set(CRITERIA)]
    cause = _of_data(tests, known)
    if cause:
        # What noise or few samples may cause is not a sign of anything else, and more samples are
        # advised once. Why there is one factor says what to do in any case.
        tests = [each for each in tests if each.robust or each.answer in WHY_ONE]
    # Tests that fail for the same reason have the same advice.
    pieces = dict.fromkeys([*cause, *_of_tests(tests, known, bool(cause))])
    # The first pieces of advice matter most, and more are not read.
    return " ".join([piece for piece in pieces if piece][:2])


def _of_data(failed: Sequence[Criterion], known: DataKnown) -> list[str]:
    """What to do about noise and few samples, where tests show them."""
    advice = []
    unsure = {each.name for each in failed if not each.robust}
    # A twentieth of the variance moves coordinates by a fifth of their standard deviation.
    if unsure - {"samples"} and known.noise > 0.05:
        how = "average repeated measurements, or leave out noisy columns"
        # More columns are likely pixels or other neighbours of each other.
        if known.n_columns > 64:
            how = "average neighbouring columns, as binning and smoothing do with pixels"
        advice.append(
            f"Reduce the noise, which makes up {known.noise:.0%} of the variance that the fit "
            f"sees: {how}. More samples help, too."
        )
    if unsure and known.n_samples is not None and known.n_samples < FEW_SAMPLES:
        advice.append(
            f"Add samples: {known.n_samples} are few, and {FEW_SAMPLES} show most products of two "
            "curves (twice as many gave a surer verdict in 10 of 12 such cases)."
        )
    return advice


def _of_tests(tests: Sequence[Criterion], known: DataKnown, unsure: bool) -> list[str]:
    """What failed tests mean, the gravest first."""
    failed = {each.name for each in tests}
    twists = failed & {"twist", "twist in data"}
    if twists or {"completeness", "modulation"} <= failed:
        if known.circles:
            # A twist reverses samples, but all lengths stay as they are.
            lengths = "modulation in data" in failed
            return [CRITERIA["modulation" if lengths else "twist"].advice]
        # Without a circle to follow, a twist only means that the whole of the samples is not a
        # product.
        failed = failed - twists or {"product"}
    grave = {name for name in failed if CRITERIA[name].coordinates != "right"}
    # Coordinates that may be wrong are not to be used.
    shown = grave if grave or unsure else failed
    return [criterion.advice for name, criterion in CRITERIA.items() if name in shown]
