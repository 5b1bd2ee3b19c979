"""Records of fits, one dict each, and counts of them."""

from collections.abc import Iterable, Sequence

# The order of columns in tables.
VERDICTS = ("product", "separable", "partial", "one factor", "none")


def count(records: Iterable[dict], key: str) -> int:
    """Return in how many records an entry is true."""
    return sum(bool(record[key]) for record in records)


def with_verdict(records: Iterable[dict], verdict: str) -> list[dict]:
    """Return the records of one verdict."""
    return [record for record in records if record["verdict"] == verdict]


def verdict_counts(records: Sequence[dict]) -> str:
    """Return how often each verdict was given, in the order of `VERDICTS`.

    >>> verdict_counts([{"verdict": "none"}, {"verdict": "product"}])
    '1 / 0 / 0 / 0 / 1'
    """
    given = [record["verdict"] for record in records]
    return " / ".join(str(given.count(verdict)) for verdict in VERDICTS)
