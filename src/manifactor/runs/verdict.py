"""The verdict on a run: that on its fit, and on the places of all its particles."""

from collections.abc import Mapping

from manifactor.estimators import ManifoldFactorizer
from manifactor.factoring.judging.criteria import CRITERIA, Test
from manifactor.factoring.judging.evidence import Evidence
from manifactor.runs.confounders import ConfounderSettings


def run_evidence(
    fit: ManifoldFactorizer, record: Mapping, *, settings: ConfounderSettings = ConfounderSettings()
) -> Evidence:
    """Return the evidence of a fit, with more tests for particles of all views.

    One is failed where places depend on the viewing direction: then factors are not independent of
    it. Another is failed where volumes of some views are not those of views far from them: then a
    place does not mean the same in all views.
    """
    evidence = fit.evidence_
    for test in (_of_views(record, settings), _of_consistency(record)):
        evidence = evidence if test is None else evidence.with_test(test)
    return evidence


def _of_views(record: Mapping, settings: ConfounderSettings) -> Test | None:
    explained = {
        found["factor"]: found["r2"] if found["p"] <= settings.significance else 0.0
        for found in record.get("confounders", [])
        if found["name"] == "view" and found["factor"] > 0
    }
    if "all_views" not in record or not explained:
        return None
    dependent = ", ".join(
        f"factor {number} (R^2 {r2:.2f})"
        for number, r2 in explained.items()
        if r2 > CRITERIA["views"].limit
    )
    return CRITERIA["views"].judge(max(explained.values()), dependent=dependent)


def _of_consistency(record: Mapping) -> Test | None:
    shares = record.get("all_views", {}).get("consistency", [])
    found = {number: share for number, share in enumerate(shares, start=1) if share is not None}
    if not found:
        return None
    drifting = ", ".join(
        f"factor {number} ({share:.2f})"
        for number, share in found.items()
        if share < CRITERIA["consistency"].limit
    )
    return CRITERIA["consistency"].judge(min(found.values()), drifting=drifting)
