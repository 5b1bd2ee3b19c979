"""The verdict on a run: that on its fit, and on the places of all its particles."""

from collections.abc import Mapping

from manifactor.estimators import ManifoldFactorizer
from manifactor.factoring.judging.criterion import Criterion, at_most
from manifactor.factoring.judging.evidence import Evidence
from manifactor.runs.confounders import ConfounderSettings


def run_evidence(
    fit: ManifoldFactorizer,
    record: Mapping,
    *,
    settings: ConfounderSettings = ConfounderSettings(),
) -> Evidence:
    """Return the evidence of a fit, with one more test for particles of all views.

    The test is failed where places depend on the viewing direction: then factors are
    not independent of it.

    Parameters
    ----------
    fit : ManifoldFactorizer
    record : mapping
        What run.json says.
    settings : ConfounderSettings
    """
    evidence = fit.evidence_
    if "all_views" not in record:
        return evidence
    explained = {
        found["factor"]: found["r2"] if found["p"] <= settings.significance else 0.0
        for found in record.get("confounders", [])
        if found["name"] == "view" and found["factor"] > 0
    }
    if not explained:
        return evidence
    dependent = ", ".join(
        f"factor {number} (R^2 {r2:.2f})"
        for number, r2 in explained.items()
        if r2 > settings.view_r2
    )
    test = _views(settings).judge(max(explained.values()), dependent=dependent)
    return evidence.with_test(test)


def _views(settings: ConfounderSettings) -> Criterion:
    return at_most(
        "views",
        settings.view_r2,
        "all views: largest R^2 with which the viewing direction predicts places on a "
        "factor",
        "places depend on the viewing direction: {dependent}",
    )
