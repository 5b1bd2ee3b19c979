"""A measured number, and the criterion that judges it."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

NOT_MEASURED = float("nan")


@dataclass(frozen=True)
class Measurement:
    """A number, and the part of it that is noise; nan where none is measured."""

    value: float
    noise: float = NOT_MEASURED


@dataclass(frozen=True)
class Test:
    """One measured number, judged.

    Attributes
    ----------
    name : str
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
    def net(self) -> float:
        """Value less its noise, as compared with the limit."""
        return net_of(self.value, self.noise)

    @property
    def rule(self) -> str:
        """When the test is passed, in words."""
        return _rule(self.limit, self.at_least)


def _rule(limit: float, at_least: bool) -> str:
    return f"{'at least' if at_least else 'at most'} {limit:.3g}"


def net_of(value: float, noise: float) -> float:
    """Return the value less its noise, or the value itself where none is measured.

    Examples
    --------
    >>> net_of(0.5, 0.2), net_of(0.5, float("nan"))
    (0.3, 0.5)
    """
    return value if np.isnan(noise) else value - noise


@dataclass(frozen=True)
class Criterion:
    """What a test measures and when it is passed.

    Attributes
    ----------
    name : str
    limit : float
    at_least : bool
        Whether a value must be at least the limit, or at most.
    meaning : str
    problem : str
        Template of what to say if the test fails, for `str.format` with `value`,
        `noise`, `net`, `limit`, and any words given to `judge`.

    Examples
    --------
    >>> shared = Criterion("overlap", 0.2, False, "share", "{value:.0%} shared")
    >>> shared.judge(0.1).passed, shared.judge(0.5).problem
    (True, '50% shared')
    """

    name: str
    limit: float
    at_least: bool
    meaning: str
    problem: str

    @property
    def rule(self) -> str:
        """When the test is passed, in words."""
        return _rule(self.limit, self.at_least)

    def judge(self, value: float, noise: float = NOT_MEASURED, **words: Any) -> Test:
        """Return the test of a measured value; a value that is nan fails."""
        # Plain numbers, which every file format takes.
        value, noise = float(value), float(noise)
        net = net_of(value, noise)
        passed = net >= self.limit if self.at_least else net <= self.limit
        problem = ""
        if not passed:
            numbers = {"value": value, "noise": noise, "net": net, "limit": self.limit}
            problem = self.problem.format(**numbers, **words)
        return Test(
            name=self.name,
            value=value,
            noise=noise,
            limit=self.limit,
            passed=bool(passed),
            meaning=self.meaning,
            at_least=self.at_least,
            problem=problem,
        )
