"""The verdict on a factorization, derived from its tests, what to do next, and its prose."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from shutil import get_terminal_size
from textwrap import fill
from typing import Any

import numpy as np

from manifactor._support.errors import listed
from manifactor.judging.measure import Measure, Test
from manifactor.judging.table import CRITERIA, MOVES, SENSES
from manifactor.models.separable.separation import Warp
from manifactor.models.separable.symmetry import Symmetries
from manifactor.statistics import NOT_MEASURED


class NoProductStructureWarning(UserWarning):
    """The data show one factor only."""


class SampleWarning(UserWarning):
    """The samples are too few or too noisy for a verdict."""


# What was found, by verdict; for "none", by its answer.
VERDICTS = {
    "product": "{count} independent factors were found: {shapes}.",
    "separable": (
        "{count} factors were found, {shapes}; they are not quite independent: distances along "
        "one depend on another, as with radius and angle of a disc."
    ),
    "partial": "{count} factors were found, {shapes}, but not every test was passed: {why}.",
    "one factor": "One factor was found: the data are {curve}, apart from noise.",
    "none": "No independent factors were found: {why}.",
}
ANSWERS = {
    "one factor": "No independent factors were found: the data are one factor, {shapes}.",
    "no product": (
        "No independent factors were found, as {why}; the data are taken as one factor, {shapes}."
    ),
    "cannot tell": "It cannot be told whether the data have several independent factors: {why}.",
}
CURVES = {"interval": "an interval", "circle": "a circle"}
NUMERALS = ("no", "one", "two", "three", "four", "five", "six")
WHAT_TO_DO = "What to do: "
# The same where no test asks for anything.
USE = {
    "product": "Use the coordinates: each of them changes independently of the others.",
    "separable": (
        "Use the coordinates; compare distances along one only where the others are the same."
    ),
    "partial": "Compare the coordinates with something else that is known before you use them.",
    "one factor": "Use its coordinate: it orders the samples.",
}
FIT_PIECES = (
    "Fit each of the {} pieces that the samples fall into by itself (`components_`), and compare."
)
USE_ANGLES = "Use both angles of the torus: together they describe every sample."
# Tests of the coordinate on one curve; all others ask whether the data divide.
OF_A_CURVE = ("reliability", "views", "consistency")

# Sentences for tests that were passed; failed tests are described by `reason`.
SENTENCES = {
    "completeness": (
        "Eigenfunctions of single factors and their products make up {:.0%} of the lowest ones."
    ),
    "leakage": "A sample's coordinate on one factor predicts at most {:.0%} of another.",
    "agreement": "The factors found in half of the samples agree to {:.0%}.",
}
# Characters of a line of plain text, at most.
TEXT_WIDTH = 100
# Two pieces of advice that begin alike: "Use the coordinates, they are right; but ..."
SAME_START = re.compile(r"^(.*?; but )(.*)\. \1")
# What is said instead of ", they are right; but" where results like this are wrong too often.
UNSURE = " only after comparing them with something else that is known; also,"
# How often advice helped, which says less than the probability of a result.
RATE_OF_ADVICE = re.compile(r" \([^()]* such cases\)")


def verdict_of(tests: Iterable[Test], n_factors: int, sense: str, curve: str = "") -> str:
    """Return the verdict that follows from tests of so many factors."""
    # No test of one surface proves that it does not divide.
    if n_factors < 2:
        return "one factor" if curve else "none"
    if not all(test.passed for test in tests):
        return "partial"
    return "separable" if sense == "separable" else "product"


def answer_of(tests: Iterable[Test]) -> str:
    """Return what "none" means: the answer of the first failed test that has one."""
    failed = (test.name for test in tests if not test.passed and test.name in CRITERIA)
    return next(filter(None, (CRITERIA[name].answer for name in failed)), "one factor")


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
    pieces: int = 1  # of the neighbour graph, joined by its longest edges
    # What to do about columns that are likely not measurements; "" if there are none
    columns: str = ""
    clusters: str = ""  # what to do about clusters of particles; "" if there are none


@dataclass(frozen=True)
class Evidence:
    """Tests of a factorization and the verdict that follows from them.

    ``str()`` is the verdict in three sentences: what was found, how sure it is, what to do.

    Attributes
    ----------
    tests : tuple of Test
        Everything that was measured and judged. `verdict` and `reason` follow from it.
    leakage : ndarray of shape (n_factors, n_factors)
        [i, j] is the R^2 with which coordinates on factor i predict factor j; the diagonal is nan.
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
        Numbers of the factors of each term of a sum, from 1, where a term has several; else ().
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
    shapes : tuple of str
        Shape of each factor in words, such as "a circle".
    headline, found : str
        Of particles of all views, the verdict in words, such as "two states", and what was
        found in a sentence, where it is clusters; "" else.

    Examples
    --------
    >>> from manifactor.judging.measure import Measure
    >>> size = Measure("size", 10, meaning="samples", problem="{value:.0f} are too few")
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
    shapes: tuple[str, ...] = ()
    headline: str = ""
    found: str = ""

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
        return verdict_of(self.tests, self.n_factors, self.sense, self.curve)

    @property
    def finding(self) -> str:
        """What was found, in one sentence without numbers of tests."""
        if self.found:
            return self.found
        said = VERDICTS[self.verdict] if self.verdict != "none" else ANSWERS[self.answer]
        if self.fails("factors asked for"):
            said = "The data are taken as one factor, as was asked for: {shapes}."
        elif self.fails("directions"):
            said = "One factor was found: {why}."
        count, found = numeral(self.n_factors), self.symmetries
        shapes = shapes_in_words(self.shapes or ["a factor"] * self.n_factors)
        if self.n_factors == 1 and found is not None and found.is_homogeneous:
            shapes = str(found)
        words = {"count": count.capitalize(), "shapes": shapes, "curve": CURVES.get(self.curve)}
        return said.format(why=self._why(), **words)

    def _why(self) -> str:
        """What is wrong by the two gravest of the failed tests that decide, without numbers."""
        failed = [test for test in self.failed if test.kind in CRITERIA] or self.failed
        if self.verdict == "none":
            failed = [test for test in failed if CRITERIA[test.kind].answer][:1]
        failed = sorted(failed, key=lambda test: [*CRITERIA, test.kind].index(test.kind))
        plain = list(dict.fromkeys(test.problem.partition(": ")[0] for test in failed))
        return "; ".join([*plain[:2], "and more"][: max(len(plain), 1)])

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
            return "beside noise, one coordinate describes every sample"
        return "; ".join(problems) or "all tests were passed"

    @property
    def answer(self) -> str:
        """The verdict, with three answers in place of "none".

        "one factor"; "no product" if there are several directions, but no product of them; "cannot
        tell" if samples are too few, too noisy or too uneven.
        """
        return answer_of(self.tests) if self.verdict == "none" else self.verdict

    @property
    def advice(self) -> str:
        """What to do next, in sentences; "" where nothing is to be done.

        It follows from the tests that failed and from what is known of the data.
        """
        failed = [test.kind for test in self.failed]
        if self.known.clusters:
            return self.known.clusters
        if self.verdict == "one factor":
            # One curve is an answer, and few samples show it.
            own = [name for name in failed if name in (*OF_A_CURVE, "samples")]
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
        """Smallest share of a product of lowest functions near the sum of their eigenvalues."""
        return self.value("product")

    @property
    def agreement(self) -> float:
        """Smallest share of a factor's lowest functions that the better half of samples shows."""
        return self.value("agreement")

    @property
    def reliability(self) -> float:
        """Smallest share of a factor's variance that is not noise of known size."""
        return self.value("reliability")

    def __repr__(self) -> str:
        n_passed = sum(test.passed for test in self.tests)
        return f"Evidence({self.verdict}, {n_passed} of {len(self.tests)} tests passed)"

    def beside(
        self, tests: Sequence[Test], *, headline: str, found: str, clusters: str, unlike: bool
    ) -> "Evidence":
        """Return the evidence of a run, which knows more than its samples.

        If a test failed, or if it is `unlike` them, the result is not among those that the
        probability was learnt from.
        """
        more: dict[str, Any] = {"headline": headline, "found": found}
        more["tests"] = (*self.tests, *tests)
        if unlike or not all(test.passed for test in tests):
            more |= {"probability": NOT_MEASURED, "probabilities": ()}
        return replace(self, known=replace(self.known, clusters=clusters), **more)

    def __str__(self) -> str:
        return "\n".join(map(wrapped, (*self.sentences, "Details: `evidence_.explanation`.")))

    @property
    def sentences(self) -> tuple[str, ...]:
        """The verdict in up to three sentences: what was found, how sure it is, what to do."""
        what_to_do = self.advice or USE.get(self.verdict, "")
        if self.known.pieces > 1 and not self.advice:
            what_to_do = FIT_PIECES.format(self.known.pieces)
        if self.symmetries is not None and self.symmetries.angles is not None:
            what_to_do = self.known.columns or USE_ANGLES
        if np.isfinite(self.probability):
            what_to_do = RATE_OF_ADVICE.sub("", what_to_do)
        if self.probability < CRITERIA["certainty"].limit:
            what_to_do = what_to_do.replace(", they are right; but", UNSURE)
        said = f"{WHAT_TO_DO}{what_to_do}" if what_to_do else ""
        return tuple(filter(None, (self.finding, self._how_sure(), said)))

    def _how_sure(self) -> str:
        """A sentence on how often such results are right; "" where that is no question."""
        if self.known.columns:
            return f"Do not rely on it yet. {_sentence(self.details)}"
        unknown = self.answer == "cannot tell" or self.fails("factors asked for", "directions")
        if self.found or unknown:
            return ""
        if self.fails("samples"):
            return "It is not sure: there are too few samples to tell."
        if not (share := percent(self.probability)):
            return "It is not known how often results like this are right."
        each = f" ({each})" if (each := self._each_in_words()) else ""
        return f"Results like this were right in {share} of simulated problems{each}."

    @property
    def tests_sentence(self) -> str:
        """How many tests failed, and what is wrong, with numbers."""
        total, failed = len(self.tests), len(self.failed)
        if not failed:
            return f"All {total} tests were passed."
        if self.verdict == "one factor" and not self.fails(*OF_A_CURVE):
            return _sentence(self.reason)
        return _sentence(f"{failed} of {total} tests failed: {self.reason}")

    @property
    def explanation(self) -> str:
        """What lies behind the three sentences: tests, numbers, and remarks of the method."""
        sentences = [self.tests_sentence]
        if self.verdict in ("product", "separable"):
            sentences.append(SENSES.get(self.sense, ""))
        if self.verdict == "separable" and self.warp is not None:
            sentences.append(str(self.warp))
        if self.symmetries is not None:
            sentences.append(self._symmetries_in_words(self.symmetries))
        sentences += self._terms_in_words()
        sentences += self._numbers_in_words()
        if self.details:
            sentences.append(_sentence(self.details))
        return " ".join(filter(None, sentences))

    @property
    def summary(self) -> str:
        """The verdict and how probable it is: "partial, 71 %: factor 1 97 %, factor 2 74 %".

        Without numbers where these are not known; of particles of all views, after `headline`.
        """
        known = ", ".join(filter(None, [self.verdict, percent(self.probability)]))
        known = ": ".join(filter(None, [known, self._each_in_words()]))
        several = f" ({known})" if self.n_factors > 1 else ""
        return f"{self.headline}{several}" if self.headline else known

    def _each_in_words(self) -> str:
        """How probable each factor is, where not all may be right; "" where it is not known."""
        shares = enumerate(map(percent, self.probabilities), start=1)
        known = [f"factor {number} {share}" for number, share in shares if share]
        return ", ".join(known) if self.verdict == "partial" else ""

    def _symmetries_in_words(self, found: Symmetries) -> str:
        """A sentence on symmetries that tell the shape; "" for others."""
        angles = "" if found.angles is None else " Two angles describe every sample."
        if found.is_homogeneous:
            alike = f"Every sample looks like every other, as on {found}."
            return f"{'' if self.fails('unique') else alike}{angles}".strip()
        if found.name is None or self.verdict != "separable":
            return ""
        return f"The data look the same after every rotation, as {found} does."

    def _terms_in_words(self) -> list[str]:
        """A sentence on each term of a sum that has several factors."""
        sentences = []
        for number, factors in enumerate(self.terms, start=1):
            if len(factors) == 1:
                continue
            inside = [test for test in self.failed if test.is_of_term(number)]
            how_far = "nearly a product" if inside else "a product"
            sentences.append(
                f"Factors {listed(map(str, factors))} together are term {number} of the sum, which "
                f"is {how_far} by itself."
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
            f"something of another (p = {p:.3f}). A product allows that."
        )


def percent(share: float) -> str:
    """Return a probability in words, which is never sure; "" where it is not known.

    >>> percent(0.997), percent(0.714), percent(0.0), percent(NOT_MEASURED)
    ('99 %', '71 %', '1 %', '')
    """
    return "" if np.isnan(share) else f"{np.clip(round(100 * share), 1, 99)} %"


def _sentence(phrase: str) -> str:
    return phrase[0].upper() + phrase[1:].rstrip(".") + "."


def shapes_in_words(shapes: Iterable[str]) -> str:
    """Return shapes as a list, equal ones counted.

    >>> shapes_in_words(["a circle", "an interval", "an interval"])
    'a circle and two intervals'
    """
    # Shapes come with their article: "a circle", "an interval".
    return listed(
        shape if count == 1 else f"{numeral(count)} {shape.partition(' ')[2]}s"
        for shape, count in Counter(shapes).items()
    )


def wrapped(text: str) -> str:
    """Return a sentence in lines as wide as the terminal, none of which begins with "%"."""
    width = min(TEXT_WIDTH, get_terminal_size((TEXT_WIDTH, 24)).columns)
    return fill(text.replace(" %", "\xa0%"), width).replace("\xa0", " ")


def numeral(count: int) -> str:
    """Return a number as a word, if it is small."""
    return NUMERALS[count] if count < len(NUMERALS) else str(count)


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
    pieces = [*cause, *_of_tests(tests, known, bool(cause))]
    different = {RATE_OF_ADVICE.sub("", piece): piece for piece in pieces if piece}
    # The first pieces of advice matter most, and more are not read.
    return SAME_START.sub(r"\1\2, and ", " ".join([*different.values()][:2]))


def _of_data(failed: Sequence[Measure], known: DataKnown) -> list[str]:
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


def _of_tests(tests: Sequence[Measure], known: DataKnown, unsure: bool) -> list[str]:
    """What failed tests mean, those of moves first, then the gravest."""
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
    criteria = (criterion for name, criterion in CRITERIA.items() if name in shown)
    # What moves show comes before what lengths in units of them show.
    ordered = sorted(criteria, key=lambda criterion: criterion.models != MOVES)
    return [criterion.advice for criterion in ordered]
