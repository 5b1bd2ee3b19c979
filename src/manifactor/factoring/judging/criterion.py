"""A criterion: what a test measures, and when a measured value passes it."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from manifactor.factoring.measures.measurement import NOT_MEASURED, Measurement

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
        return _rule(self.limit, self.at_least)

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


def _rule(limit: float, at_least: bool) -> str:
    return f"{'at least' if at_least else 'at most'} {limit:.3g}"


@dataclass(frozen=True)
class Criterion:
    """What a test measures and when it is passed.

    >>> shared = Criterion("overlap", 0.2, False, "share", "{value:.0%} shared")
    >>> shared.judge(0.1).passed, shared.judge(0.5).problem
    (True, '50% shared')
    """

    name: str
    limit: float
    at_least: bool  # whether a value must be at least the limit, or at most
    meaning: str
    # Template of what to say if the test fails, for `str.format` with `value`, `noise`, `net`,
    # `limit`, `interval`, and any words given to `judge`
    problem: str
    # What is allowed beyond the limit, times the square root of the number of samples: errors of
    # the places of n samples fall as 1/sqrt(n)
    slack: float = 0.0

    @property
    def rule(self) -> str:
        """When the test is passed, in words."""
        rule = _rule(self.limit, self.at_least)
        if not self.slack:
            return rule
        return f"{rule} {'-' if self.at_least else '+'} {self.slack:g} / sqrt(n)"

    def limit_for(self, n_samples: int | None) -> float:
        """Return the limit for a number of samples, the last one where it is None."""
        if n_samples is None:
            return self.limit
        slack = self.slack / np.sqrt(n_samples)
        return float(self.limit - slack if self.at_least else self.limit + slack)

    def judge(
        self,
        value: float,
        noise: float = NOT_MEASURED,
        *,
        n_samples: int | None = None,
        **words: Any,
    ) -> Test:
        """Return the test of a measured value; a value that is nan fails."""
        # Plain numbers, which every file format takes.
        measured = Measurement(float(value), float(noise))
        limit = self.limit_for(n_samples)
        net = measured.net
        passed = net >= limit if self.at_least else net <= limit
        problem = ""
        if not passed:
            problem = self.problem.format(
                value=measured.value,
                noise=measured.noise,
                net=net,
                limit=limit,
                interval=measured,
                **words,
            )
        return Test(
            name=self.name,
            value=measured.value,
            noise=measured.noise,
            limit=limit,
            passed=bool(passed),
            meaning=self.meaning,
            at_least=self.at_least,
            problem=problem,
        )


def at_least(name: str, limit: float, meaning: str, problem: str) -> Criterion:
    """Return the criterion that a value is at least a limit."""
    return Criterion(name, limit, True, meaning, problem)


def at_most(
    name: str, limit: float, meaning: str, problem: str, *, slack: float = 0.0
) -> Criterion:
    """Return the criterion that a value is at most a limit."""
    return Criterion(name, limit, False, meaning, problem, slack)
