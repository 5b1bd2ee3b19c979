"""The verdict on a run: that on its fit, and on the coordinates of all its particles."""

from collections.abc import Mapping

from manifactor.estimators import ManifoldFactorizer
from manifactor.factoring.judging.criteria import CRITERIA, Test
from manifactor.factoring.judging.evidence import Evidence
from manifactor.runs.confounders import SIGNIFICANCE


def run_evidence(fit: ManifoldFactorizer, record: Mapping) -> Evidence:
    """Return the evidence of a fit, with more tests for particles of all views.

    One is failed where coordinates depend on the viewing direction: then factors are not
    independent of it. Another is failed where volumes of some views are not those of views far from
    them: then a coordinate does not mean the same in all views.
    """
    evidence = fit.evidence_
    for test in (_of_views(record), _of_consistency(record)):
        evidence = evidence if test is None else evidence.with_test(test)
    return evidence


def _of_views(record: Mapping) -> Test | None:
    explained = {
        found["factor"]: found["r2"] if found["p"] <= SIGNIFICANCE else 0.0
        for found in record.get("confounders", [])
        if found["name"] == "view" and found["factor"] > 0
    }
    if "all_views" not in record or not explained:
        return None
    limit = CRITERIA["views"].limit
    failed = [f"factor {k} (R^2 {r2:.2f})" for k, r2 in explained.items() if r2 > limit]
    return CRITERIA["views"].judge(max(explained.values()), dependent=", ".join(failed))


def _of_consistency(record: Mapping) -> Test | None:
    shares = record.get("all_views", {}).get("consistency", [])
    found = {number: share for number, share in enumerate(shares, start=1) if share is not None}
    if not found:
        return None
    limit = CRITERIA["consistency"].limit
    failed = [f"factor {k} ({share:.2f})" for k, share in found.items() if share < limit]
    return CRITERIA["consistency"].judge(min(found.values()), drifting=", ".join(failed))
