import numpy as np

from studies.paper.cases import CASES
from studies.paper.finding import WAYS
from studies.paper.rates import by_label, in_words, measured, table_of
from studies.paper.trials import trials

SOLVED = {
    "solved": True,
    "own": 1.0,
    "leak": 0.0,
    "completeness": 1.0,
    "functions": [2, 4],
    "pure_functions": 0.5,
    "verdict": "product",
}
FAILED = {
    **SOLVED,
    "solved": False,
    "own": 0.5,
    "leak": 0.3,
    "completeness": np.nan,
    "verdict": "none",
}


def test_rates_count_what_was_solved_by_case_and_method():
    records = {("torus", "published"): [SOLVED, FAILED], ("torus", "default"): [SOLVED, SOLVED]}
    words = "Published: solved in 1 of 2 runs; not always: torus (1 of 2)."
    assert in_words("published", CASES, records) == words
    assert in_words("default", CASES, records) == "Default: solved in 2 of 2 runs."
    mixed, right = table_of(CASES, records, "").rows
    assert mixed[:5] == ["torus", "published", "1 of 2", "0.750", "0.150"]
    assert mixed[5:] == ["1.00", "3.0", "50%", "1 / 0 / 1"]
    assert right[:5] == ["torus", "default", "2 of 2", "1.000", "0.000"]
    assert right[5:] == ["1.00", "3.0", "50%", "2 / 0 / 0"]


def test_every_data_set_method_and_seed_is_measured_once(small, lab):
    records = measured(["torus", "cube"], ["default"], 250, settings=small, lab=lab)
    assert list(records) == [("torus", "default"), ("cube", "default")]
    assert [run["seed"] for run in records["cube", "default"]] == list(small.seeds)
    assert list(by_label(records)) == ["torus, default", "cube, default"]


def test_the_trials_have_a_row_for_each_data_set_and_method(small, lab):
    section = trials(small, lab)
    (table,) = section.tables
    assert len(table.rows) == len(section.numbers) == len(CASES) * len(WAYS)
    assert all(len(row) == len(table.header) for row in table.rows)
    assert "seeds 0 to 0" in section.text[0]
