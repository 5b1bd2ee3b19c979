"""The confidence of a verdict, as one number from 0 to 1."""

from collections.abc import Sequence
from math import isnan

from manifactor.factoring.judging.criteria import Test


def verdict_confidence(verdict: str, tests: Sequence[Test]) -> float:
    """Return the confidence of a verdict, from the margins of its tests.

    "product" requires all tests: its confidence is their smallest margin. That of "none" is the
    largest margin of a failed test. "partial" reports several factors although a test failed: its
    confidence is 1 less the largest margin of a failed test.
    """
    passed = [margin(test) for test in tests if test.passed]
    failed = [margin(test) for test in tests if not test.passed]
    if verdict == "product":
        return min(passed, default=0.0)
    clearest = max(failed, default=0.0)
    return 1 - clearest if verdict == "partial" else clearest


def margin(test: Test) -> float:
    """Return the distance of a test's value from its limit, from 0 to 1.

    The value is taken less its noise. The margin is 0 at the limit and 1 at the end of the range on
    that side of it; shares range from 0 to 1. Where the limit is 1 or more, as for a number of
    samples, the range has no upper end: k times the limit has a margin of 1 - 1 / k.

    >>> from manifactor.factoring.judging.criteria import Criterion
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
