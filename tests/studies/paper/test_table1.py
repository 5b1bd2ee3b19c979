import numpy as np

from studies.paper.table1 import PAPER_SECONDS, Table1Settings, table1


def test_seconds_and_triplets_are_counted_for_each_number_of_functions(small, lab):
    section = table1(small, lab, recipe=Table1Settings(quick_n_functions=(12, 20)))
    counts = section.numbers["triplets"]
    assert list(counts["ours"]) == list(counts["textbook"]) == [12, 20]
    assert 0 < counts["textbook"][20] < 18
    assert section.seconds["paper"] == PAPER_SECONDS
    for n_functions in (12, 20):
        assert (section.seconds["textbook"][n_functions] > 0).all()
    (table,) = section.tables
    assert [row[0] for row in table.rows] == ["12", "20"]
    assert all(len(row) == len(table.header) for row in table.rows)


def test_ratios_are_those_of_the_seconds_in_the_same_row(small, lab):
    section = table1(small, lab)
    row = dict(zip(section.tables[0].header, section.tables[0].rows[0], strict=True))
    theirs, ours = section.seconds["textbook"][20], section.seconds["ours"][20]
    assert row["textbook / ours"] == f"{np.sum(theirs) / np.sum(ours):.0f}"
    assert row["diffusion map, paper"] == "-"
    assert f"delta = {Table1Settings.delta}" in section.text[0]
