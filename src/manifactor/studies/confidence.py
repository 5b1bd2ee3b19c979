"""How sure a verdict is, as one number from 0 to 1."""

from collections.abc import Sequence
from math import isnan

from manifactor.factoring.judging.criterion import Test


def verdict_confidence(verdict: str, tests: Sequence[Test]) -> float:
    """Return how sure the answer is that comes with a verdict.

    It is read from the `margin` of the tests, their distance from changing sides.
    "product" needs every test: it is as sure as the test that was passed most narrowly.
    "none" is as sure as the test that failed most clearly. "partial" says that there
    are several factors, but not all tests were passed: the less clearly they failed,
    the surer are the factors.

    Parameters
    ----------
    verdict : "product", "partial" or "none"
    tests : sequence of Test

    Returns
    -------
    float
        0 if there is no test to read it from.
    """
    passed = [margin(test) for test in tests if test.passed]
    failed = [margin(test) for test in tests if not test.passed]
    if verdict == "product":
        return min(passed, default=0.0)
    clearest = max(failed, default=0.0)
    return 1 - clearest if verdict == "partial" else clearest


def margin(test: Test) -> float:
    """Return the distance of a test's value from its limit, from 0 to 1.

    1 is the end of the range that the value can have on its side of the limit. Shares
    end at 0 and 1. For a limit of 1 or more, such as a number of samples, only the
    ratio of value and limit is known: a value k times the limit has 1 - 1 / k.

    Examples
    --------
    >>> from manifactor.factoring.judging.criterion import Criterion
    >>> share = Criterion("share", 0.8, True, "", "")
    >>> f"{margin(share.judge(0.9)):.2f}, {margin(share.judge(0.2)):.2f}"
    '0.50, 0.75'
    """
    value, limit = max(test.net, 0.0), test.limit
    # A value that was not measured fails the test and tells no distance.
    if isnan(test.net):
        return 0.0
    if value < limit:
        return 1 - value / limit
    if limit < 1:
        return (min(value, 1.0) - limit) / (1 - limit)
    return 1 - limit / value
