"""The verdict on a factorization, derived from its tests, what to do next, and its prose."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from shutil import get_terminal_size
from textwrap import fill

import numpy as np

from manifactor._support.errors import listed
from manifactor.judging.measure import Measure, Test, Tested
from manifactor.judging.table import CRITERIA, SENSES
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
    "partial": "{count} factors were found, {shapes}, but this is not sure: {why}.",
    "one factor": "One factor was found: the data are {curve}, apart from noise.",
    "none": "No independent factors were found: {why}.",
}
# Of factors that were asked for, or chosen.
UNLIKELY = "{count} factors are shown, {shapes}, but they are more likely wrong than right: {why}."
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
# What else is said of results that may be true, but not right: from this share of problems on.
UNFINISHED = ", and true but unfinished, with a factor missing or two in one, in {} more"
SAID_FROM = 0.1
# How often advice helped, which says less than the probability of a result.
RATE_OF_ADVICE = re.compile(r" \([^()]* such cases\)")


# What decides the verdict where the probability is known: it, and what the random problems that it
# was learnt from did not have.
DECIDING = {"certainty", "reliability", "views", "consistency"}


def verdict_of(tests: Iterable[Test], n_factors: int, sense: str, curve: str = "") -> str:
    """Return the verdict that follows from tests of so many factors.

    With a test of the probability, all others explain it, and decide nothing.
    """
    # No test of one surface proves that it does not divide.
    if n_factors < 2:
        return "one factor" if curve else "none"
    tests = [*tests]
    if any(test.name == "certainty" for test in tests):
        tests = [test for test in tests if test.name in DECIDING]
    if not all(test.passed for test in tests):
        return "partial"
    return "separable" if sense == "separable" else "product"


def answer_of(tests: Iterable[Test]) -> str:
    """Return what "none" means: the answer of the first failed test that has one."""
    failed = (test.name for test in tests if not test.passed and test.name in CRITERIA)
    return next(filter(None, (CRITERIA[name].answer for name in failed)), "one factor")


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
class Evidence(Tested):
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
    sense : "geometry", "density", "volume", "sum", "separable" or "ica"
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
        it was learnt from; nan for results of moves and of `method="triplets"`.
    probabilities : tuple of float
        The same for each factor by itself.
    unfinished : float
        How often such results were true, but not finished: a factor missing, or two in one.
    costs : tuple of (str, float)
        The tests that cost the result most, and how probable it would be without each of them.
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
    unfinished: float = NOT_MEASURED
    costs: tuple[tuple[str, float], ...] = ()
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
        "product" if there are several factors, which are right in nine of ten such results, and
        "separable" if they are coordinates in which the Laplacian separates. Where the probability
        is not known, all tests must be passed.
        """
        return verdict_of(self.tests, self.n_factors, self.sense, self.curve)

    @property
    def finding(self) -> str:
        """What was found, in one sentence without numbers of tests."""
        if self.found:
            return self.found
        said = VERDICTS[self.verdict] if self.verdict != "none" else ANSWERS[self.answer]
        if self.verdict == "partial" and self.probability < CRITERIA["probability"].limit:
            said = UNLIKELY
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
        """What is wrong by the two gravest of the failed tests that decide, without numbers.

        Where the probability is known, by the two tests that cost most.
        """
        if self.verdict == "partial" and self.costs:
            problems = {test.kind: test.problem for test in self.failed}
            near = "{} is near its limit"
            plain = [problems.get(name) or near.format(in_quotes(name)) for name, _ in self.costs]
            return "; ".join(problem.partition(": ")[0] for problem in plain[:2])
        failed = [test for test in self.failed if test.kind in CRITERIA] or self.failed
        if self.verdict == "none":
            failed = [test for test in failed if CRITERIA[test.kind].answer]
            failed = [test for test in failed if self._is_why(test)][:1]
        failed = sorted(failed, key=lambda test: [*CRITERIA, test.kind].index(test.kind))
        plain = list(dict.fromkeys(test.problem.partition(": ")[0] for test in failed))
        return "; ".join([*plain[:2], "and more"][: max(len(plain), 1)])

    def _is_why(self, test: Test) -> bool:
        """Whether a test says why nothing can be told, or why there is one factor."""
        if np.isnan(self.probability) or not self.fails("probability"):
            return True
        unlikely = self.probability < CRITERIA["probability"].limit
        return (test.name == "probability") == unlikely

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
        if self.verdict != "none":
            return self.verdict
        alike = self.symmetries is not None and self.symmetries.is_homogeneous
        if self.probability < CRITERIA["probability"].limit and not alike:
            return "cannot tell"
        return answer_of(test for test in self.tests if self._is_why(test))

    @property
    def advice(self) -> str:
        """What to do next, in sentences; "" where nothing is to be done.

        It follows from the tests that failed and from what is known of the data.
        """
        failed, known = [test.kind for test in self.failed], self.known
        if known.clusters:
            return known.clusters
        if self.n_factors < 2:
            known = replace(known, n_samples=None)
        if self.verdict in ("product", "separable"):
            # The factors are right; what else their coordinates are good for is to be said.
            failed = [kind for kind in failed if CRITERIA[kind].coordinates == "right"]
        if self.verdict == "one factor":
            # One curve is an answer, and few samples show it.
            failed = [kind for kind in failed if kind in (*OF_A_CURVE, "samples")]
        elif self.verdict == "none":
            # There are no coordinates on several factors to be used, and twice the samples made
            # such a result better in 1 of 53 cases.
            failed = [kind for kind in failed if kind in CRITERIA and CRITERIA[kind].answer]
        return advise(failed, known)

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
        known = replace(self.known, clusters=clusters)
        more = replace(self, tests=(*self.tests, *tests), known=known)
        if unlike or not all(test.passed for test in tests):
            more = replace(
                more, probability=NOT_MEASURED, probabilities=(), unfinished=NOT_MEASURED
            )
        return replace(more, headline=headline, found=found)

    def __str__(self) -> str:
        return "\n".join(map(wrapped, (*self.sentences, "Details: `evidence_.explanation`.")))

    @property
    def sentences(self) -> tuple[str, ...]:
        """The verdict in up to three sentences: what was found, how sure it is, what to do."""
        what_to_do = self.advice or USE.get(self.verdict, "")
        if self.known.pieces > 1 and not self.advice:
            what_to_do = (
                f"Fit each of the {self.known.pieces} pieces that the samples fall into by itself "
                "(`components_`), and compare."
            )
        if self.symmetries is not None and self.symmetries.angles is not None:
            angles = "Use both angles of the torus: together they describe every sample."
            what_to_do = self.known.columns or angles
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
        if self.found or self.fails("factors asked for", "directions"):
            return ""
        if self.answer == "cannot tell" and np.isfinite(self.probability):
            return f"Data like these were one factor in {percent(self.probability)} of problems."
        if self.answer == "cannot tell":
            return ""
        if self.fails("samples"):
            return "It is not sure: there are too few samples to tell."
        if not (share := percent(self.probability)):
            return "It is not known how often results like this are right."
        each = f" ({each})" if (each := self._each_in_words()) else ""
        true = UNFINISHED.format(percent(self.unfinished)) if self.unfinished >= SAID_FROM else ""
        return f"Results like this were right in {share} of simulated problems{each}{true}."

    @property
    def explanation(self) -> str:
        """What lies behind the three sentences: tests, numbers, and remarks of the method."""
        total, failed = len(self.tests), len(self.failed)
        if not failed:
            sentences = [f"All {total} tests were passed."]
        elif self.verdict == "one factor" and not self.fails(*OF_A_CURVE):
            sentences = [_sentence(self.reason)]
        else:
            sentences = [_sentence(f"{failed} of {total} tests failed: {self.reason}")]
        if self.verdict in ("product", "separable") and not failed:
            sentences.append(SENSES.get(self.sense, ""))
        if self.n_factors > 1 and self.warp is not None:
            sentences.append(str(self.warp))
        sentences += [*self._symmetries_in_words(), *self._terms_in_words()]
        sentences += [*self._costs_in_words(), *self._numbers_in_words(), _sentence(self.details)]
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

    def _costs_in_words(self) -> Iterator[str]:
        """A sentence on the tests that cost the result most."""
        if self.costs:
            without = listed([f"{in_quotes(name)} {percent(p)}" for name, p in self.costs[:3]])
            yield f"It would be more probable without what costs it most: without {without}."

    def _symmetries_in_words(self) -> Iterator[str]:
        """Sentences on symmetries that tell the shape."""
        found = self.symmetries
        if found is None:
            return
        if found.is_homogeneous:
            if not self.fails("unique"):
                yield f"Every sample looks like every other, as on {found}."
            if found.angles is not None:
                yield "Two angles describe every sample."
        elif found.name is not None and self.verdict == "separable":
            yield f"The data look the same after every rotation, as {found} does."

    def _terms_in_words(self) -> Iterator[str]:
        """A sentence on each term of a sum that has several factors."""
        for number, factors in enumerate(self.terms, start=1):
            if len(factors) > 1:
                inside = any(test.is_of_term(number) for test in self.failed)
                how_far = "nearly a product" if inside else "a product"
                yield (
                    f"Factors {listed(map(str, factors))} together are term {number} of the sum, "
                    f"which is {how_far} by itself."
                )

    def _numbers_in_words(self) -> Iterator[str]:
        """Sentences about measured numbers that the reason does not mention."""
        passed = {test.name for test in self.tests if test.passed}
        for name, sentence in SENTENCES.items():
            if name in passed:
                # Over the terms of a sum.
                worst = max if CRITERIA[name].at_most else min
                yield sentence.format(worst(t.value for t in self.tests if t.kind == name))
        p = self.dependence
        if p > CRITERIA["independence"].limit:
            yield (
                f"The coordinates show no clear dependence on each other (permutation p = {p:.3f})."
            )
        # Below this leakage a significant dependence does not matter.
        elif np.isfinite(p) and np.nanmax(self.leakage) < 0.05:
            yield (
                "The coordinates are nearly independent: what one tells of another is "
                f"significant but small (p = {p:.3f})."
            )
        elif np.isfinite(p):
            yield (
                "The samples do not fill the product evenly: a coordinate on one factor tells "
                f"something of another (p = {p:.3f}). A product allows that."
            )
        if "reliability" in passed:
            # An estimated share never reads as 100 %.
            share = min(self.reliability, 0.99)
            yield (
                f"At least {share:.0%} of the variance of the coordinates on every factor "
                "is signal, not noise."
            )


def percent(share: float) -> str:
    """Return a probability in words, which is never sure; "" where it is not known.

    >>> percent(0.997), percent(0.714), percent(0.0), percent(NOT_MEASURED)
    ('99 %', '71 %', '1 %', '')
    """
    return "" if np.isnan(share) else f"{np.clip(int(100 * share + 1e-9), 1, 99)} %"


def in_quotes(name: str) -> str:
    """Return the name of a test as it stands in a sentence."""
    return f'"{name}"'


def _sentence(phrase: str) -> str:
    return phrase and phrase[0].upper() + phrase[1:].rstrip(".") + "."


def shapes_in_words(shapes: Iterable[str]) -> str:
    """Return shapes as a list, equal ones counted.

    >>> shapes_in_words(["a circle", "an interval", "an interval"])
    'a circle and two intervals'
    >>> shapes_in_words(["6 levels on a circle", "6 levels on a circle"])
    'two times 6 levels on a circle'
    """

    def said(shape: str, count: int) -> str:
        article, _, noun = shape.partition(" ")
        if count == 1:
            return shape
        with_article = article in ("a", "an")
        return f"{numeral(count)} {noun}s" if with_article else f"{numeral(count)} times {shape}"

    return listed(said(shape, count) for shape, count in Counter(shapes).items())


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
        why_one = ("one factor", "no product")
        tests = [each for each in tests if each.robust or each.answer in why_one]
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
    if unsure and known.n_samples is not None and known.n_samples < 1000:
        advice.append(
            f"Add samples: {known.n_samples} are few, and 1000 show most products of two "
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
    ordered = sorted(criteria, key=lambda criterion: criterion.models != {"moves"})
    return [criterion.advice for criterion in ordered]
