"""A measure: what is measured of a result, and the test that compares it with a limit."""

from collections.abc import Callable, Mapping, Set
from dataclasses import KW_ONLY, dataclass, field, replace
from math import inf, isnan
from typing import Any, ClassVar

from manifactor.statistics import NOT_MEASURED, Measurement

# Between the term of a sum and the criterion, in the name of a test.
TERM_END = ": "


@dataclass(frozen=True)
class Test:
    """One measured number, judged.

    Attributes
    ----------
    name : str
        Of the criterion; "term 1: folds" for a test of one term of a sum.
    value : float
        The number as measured.
    noise : float
        Part of the value that is noise. It is taken off before the comparison with
        the limit; nan where none is measured.
    limit : float
    passed : bool
    meaning : str
        What the number measures, as one phrase.
    at_least : bool
        Whether the value, less its noise, must be at least the limit, or at most.
    problem : str
        What is wrong, as one phrase; "" if the test was passed.
    """

    # pytest collects imported classes whose names begin with Test.
    __test__: ClassVar[bool] = False

    name: str
    value: float
    noise: float
    limit: float
    passed: bool
    meaning: str
    at_least: bool = True
    problem: str = ""

    @property
    def kind(self) -> str:
        """Name of the criterion, without the term of a sum that was tested."""
        return self.name.rpartition(TERM_END)[2]

    @property
    def net(self) -> float:
        """Value less its noise, as compared with the limit."""
        return Measurement(self.value, self.noise).net

    @property
    def rule(self) -> str:
        """When the test is passed, in words."""
        return f"{'at least' if self.at_least else 'at most'} {self.limit:.3g}"

    @property
    def interval(self) -> str:
        """Value with its noise, as "0.12 +- 0.03"."""
        return str(Measurement(self.value, self.noise))

    def is_of_term(self, number: int) -> bool:
        """Return whether this is a test of one term of a sum, numbered from 1."""
        return self.name.startswith(f"term {number}{TERM_END}")

    def of_term(self, number: int) -> "Test":
        """Return the same as a test of one term of a sum, numbered from 1."""
        term = f"term {number}"
        return replace(
            self,
            name=f"{term}{TERM_END}{self.name}",
            problem=f"in {term}, {self.problem}" if self.problem else "",
        )


class Tested:
    """What has tests."""

    tests: tuple[Test, ...]

    @property
    def failed(self) -> tuple[Test, ...]:
        """Tests that were not passed."""
        return tuple(test for test in self.tests if not test.passed)

    def fails(self, *names: str) -> bool:
        """Return whether one of some tests was not passed."""
        return any(test.name in names for test in self.failed)


def _nothing(candidate: Any, facts: Any) -> None:
    """Measure nothing: the number is known elsewhere."""


@dataclass(frozen=True)
class Measure:
    """One row of the table: what is measured, of which results, its limit, and what is said.

    >>> shared = Measure("overlap", 0.2, "share", "{value:.0%}", at_most=True)
    >>> shared.judge(0.1).passed, shared.judge(0.5).problem
    (True, '50%')
    """

    name: str
    limit: float  # nan if there is none
    meaning: str
    # Template of what to say if the test fails, for `str.format` with `value`, `noise`, `net`,
    # `limit`, `interval`, and any words given to `judge`: plain words before the first colon, which
    # stand alone in the verdict, and numbers after it
    problem: str
    advice: str = ""  # what to do if it fails, in sentences
    _: KW_ONLY
    at_most: bool = False  # whether a value must be at most the limit, or at least
    # What a failure says of the coordinates: they are "wrong", "incomplete" as they leave something
    # of the data unexplained, "unclear", or "right"
    coordinates: str = "unclear"
    about: str = ""  # "lengths", where that matters
    # Whether neither noise nor a small number of samples makes it fail on a product
    robust: bool = False
    answer: str = ""  # what "none" means if it fails
    # What is allowed beyond the limit, times the square root of the number of samples: errors of
    # the coordinates of n samples fall as 1/sqrt(n)
    slack: float = 0.0
    slack_power: float = 0.5  # or times another power of the number of samples
    strict: float | None = None  # the limit for a further chance to find a product
    in_sense: Mapping[str, float] = field(default_factory=dict)  # limits of some senses
    wrong_beyond: float = inf  # beyond this, less its noise, coordinates are wrong in any case
    # From a candidate and the facts to a number, to a `Measurement`, or to None
    of: Callable[[Any, Any], float | Measurement | None] = _nothing
    models: Set[str] = frozenset()  # kinds of results that it is measured of
    # Whether a test that is passed is left out: most data have nothing that it could find
    only_failed: bool = False

    @property
    def is_test(self) -> bool:
        """Whether it has a limit: else its number is only told."""
        return not isnan(self.limit)

    def judge(
        self,
        measured: float | Measurement,
        noise: float = NOT_MEASURED,
        *,
        n_samples: int | None = None,
        **how: Any,
    ) -> Test:
        """Return the test of a measured value; a value that is nan fails.

        `strict` asks for the limit of a further chance, `sense` for that of a sense; all else are
        words of the problem.
        """
        if not isinstance(measured, Measurement):
            measured = Measurement(measured, noise)
        limit = (how.pop("strict", False) and self.strict) or self.limit
        if count := measured.n_samples or n_samples:
            limit += self.slack / count**self.slack_power
        limit = self.in_sense.get(how.pop("sense", ""), limit)
        # Plain numbers, which every file format takes.
        numbers = self.name, float(measured.value), float(measured.noise), limit
        test = Test(*numbers, False, self.meaning, not self.at_most)
        if (test.net <= limit) if self.at_most else (test.net >= limit):
            return replace(test, passed=True)
        words = {**vars(test), "net": test.net, "interval": test.interval}
        problem = self.problem.format(**words, **(measured.words or {}), **how)
        return replace(test, problem=problem)
