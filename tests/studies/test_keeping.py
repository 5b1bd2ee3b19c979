import json

import pytest

from manifactor._support import __version__
from studies.keeping import finish, in_order, keep, kept_records, positions, unfinished

JOBS = [{"seed": seed} for seed in range(3)]
RECORDS = [{"seed": seed, "solved": True} for seed in range(3)]
VERSIONED = [{**record, "version": __version__} for record in RECORDS]


@pytest.fixture
def out(tmp_path):
    return tmp_path / "study.jsonl"


def interrupted(records):
    yield from records
    raise KeyboardInterrupt


def test_records_are_on_disk_before_they_are_handed_on(out):
    for number, _ in enumerate(keep(out, [], RECORDS), start=1):
        assert kept_records(out, JOBS) == VERSIONED[:number]
    assert not out.exists()
    finish(out, VERSIONED)
    assert len(out.read_text().splitlines()) == 3
    assert not unfinished(out).exists()


def test_a_study_continues_after_the_records_that_were_kept(out):
    with pytest.raises(KeyboardInterrupt):
        list(keep(out, [], interrupted(RECORDS[:2])))
    assert not out.exists()
    kept = kept_records(out, JOBS)
    assert kept == VERSIONED[:2]
    assert list(keep(out, kept, RECORDS[2:])) == VERSIONED[2:]
    finish(out, kept_records(out, JOBS))
    assert len(out.read_text().splitlines()) == 3


def test_records_that_were_done_in_another_order_are_put_in_order(out):
    list(keep(out, [], [RECORDS[2], RECORDS[0]]))
    kept = kept_records(out, JOBS)
    assert positions(kept, JOBS) == [2, 0]
    assert in_order([*kept, VERSIONED[1]], JOBS) == VERSIONED


def test_a_line_that_was_not_finished_is_left_out(out):
    first = json.dumps(VERSIONED[0])
    unfinished(out).write_text(f'{first}\n{{"seed": 1, "sol')
    assert kept_records(out, JOBS) == VERSIONED[:1]


def lines(*records):
    return "".join(f"{json.dumps(record)}\n" for record in records)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (lines({"seed": 7, "version": __version__}), "it holds others"),
        (lines(*[VERSIONED[0]] * 4), "it holds others"),
        (lines({"seed": 0, "version": "0.0.1"}), "it holds fits of 0.0.1"),
        (lines({"seed": 0}), "it holds fits of an unknown version"),
        ("no JSON\n", "one line of JSON for each fit"),
    ],
)
def test_records_of_another_study_or_version_are_refused(out, text, message):
    unfinished(out).write_text(text)
    with pytest.raises(ValueError, match=message):
        kept_records(out, JOBS)
