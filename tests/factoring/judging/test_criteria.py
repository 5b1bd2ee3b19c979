from dataclasses import fields, replace
from pathlib import Path

from manifactor.factoring.judging.criteria import criteria, criteria_table
from manifactor.factoring.judging.limits import EvidenceSettings

METHOD_PAGE = Path(__file__).parents[3] / "docs" / "method.md"


def test_the_page_on_the_method_has_the_table_of_all_tests():
    page = METHOD_PAGE.read_text(encoding="utf-8")
    between = page.partition("<!-- tests -->\n")[2].partition("<!-- /tests -->")[0]
    assert between == criteria_table()


def test_every_criterion_has_a_row_of_its_own():
    names = [criterion.name for criterion in criteria()]
    assert len(set(names)) == len(names)
    rows = criteria_table().splitlines()[2:]
    assert [row.split(" | ")[0] for row in rows] == [f"| {name}" for name in names]


def test_the_sixteen_tests_of_a_product_come_first():
    names = [criterion.name for criterion in criteria()]
    assert names[:16] == [
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
    ]


def test_limits_come_from_the_settings():
    changed = replace(EvidenceSettings(), leakage=0.05, samples=7)
    limits = {criterion.name: criterion.limit for criterion in criteria(changed)}
    assert (limits["leakage"], limits["samples"]) == (0.05, 7)


def test_no_limit_is_left_over():
    usual = EvidenceSettings()
    doubled = EvidenceSettings(
        **{f.name: 2 * getattr(usual, f.name) for f in fields(usual)}
    )
    for before, after in zip(criteria(usual), criteria(doubled), strict=True):
        fixed = before.limit in (1, 2)  # a number of factors, pieces or products
        assert fixed or after.limit == 2 * before.limit
