from dataclasses import fields, replace
from pathlib import Path

from manifactor.factoring.judging.criteria import EvidenceSettings, criteria, judges

METHOD_PAGE = Path(__file__).parents[3] / "docs" / "method.md"


def table_of_the_page():
    page = METHOD_PAGE.read_text(encoding="utf-8")
    return page.partition("<!-- tests -->\n")[2].partition("<!-- /tests -->")[0]


def test_the_page_on_the_method_has_the_table_of_all_tests():
    rows = [
        f"| {criterion.name} | {criterion.meaning} | {criterion.rule} |" for criterion in criteria()
    ]
    header = ["| test | what it measures | passed if |", "|---|---|---|"]
    assert table_of_the_page() == "\n".join([*header, *rows]) + "\n"


def test_every_criterion_has_a_row_of_its_own():
    names = [criterion.name for criterion in criteria()]
    assert len(set(names)) == len(names)
    rows = table_of_the_page().splitlines()[2:]
    assert [row.split(" | ")[0] for row in rows] == [f"| {name}" for name in names]


def test_the_tests_of_a_product_come_first():
    names = [criterion.name for criterion in criteria()]
    assert names[:18] == [
        "product",
        "completeness",
        "twist",
        "modulation",
        "undivided",
        "explained",
        "lowest functions",
        "parts",
        "leakage",
        "agreement",
        "dimensions",
        "folds",
        "filling",
        "skew",
        "crossing",
        "modulation in data",
        "poles",
        "identified",
    ]


def test_limits_come_from_the_settings():
    changed = replace(EvidenceSettings(), leakage=0.05, samples=7)
    limits = {criterion.name: criterion.limit for criterion in criteria(changed)}
    assert (limits["leakage"], limits["samples"]) == (0.05, 7)


def test_a_score_is_told_with_what_is_allowed():
    unsure = judges()["uncertainty"](0.41, samples=300).problem
    assert "is measured with an error of 0.41; at most 0.30 is allowed" in unsure
    divisible = judges()["undivided"](0.7, 0.2).problem
    assert "their score is 0.50; at least 0.65 is needed" in divisible


# Limits that are no choice: a number of factors, pieces or products.
FIXED = {"triplets", "connected", "groups", "terms", "factors asked for", "directions", "blocks"}
# Settings that are compared with numbers elsewhere than in a criterion.
ELSEWHERE = {"strict_leakage", "oblique", "voids", "weak_leakage"}


def doubled(*names):
    usual = EvidenceSettings()
    return replace(usual, **{name: 2 * getattr(usual, name) for name in names})


def test_every_limit_that_is_a_choice_is_a_setting():
    names = [field.name for field in fields(EvidenceSettings)]
    for before, after in zip(criteria(), criteria(doubled(*names)), strict=True):
        factor = 1 if before.name in FIXED else 2
        assert after.limit == factor * before.limit
        assert after.slack == 2 * before.slack


def test_every_setting_is_used_by_a_criterion():
    idle = {
        field.name
        for field in fields(EvidenceSettings)
        if criteria(doubled(field.name)) == criteria()
    }
    assert idle == ELSEWHERE
