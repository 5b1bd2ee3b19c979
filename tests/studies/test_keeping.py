import pytest

from manifactor.studies.keeping import keep, kept_records, unfinished

JOBS = [{"seed": seed} for seed in range(3)]
RECORDS = [{"seed": seed, "solved": True} for seed in range(3)]


@pytest.fixture
def out(tmp_path):
    return tmp_path / "study.jsonl"


def interrupted(records):
    yield from records
    raise KeyboardInterrupt


def test_records_are_on_disk_before_they_are_handed_on(out):
    for number, _ in enumerate(keep(out, [], RECORDS), start=1):
        assert kept_records(out, JOBS) == RECORDS[:number]
    assert len(out.read_text().splitlines()) == 3
    assert not unfinished(out).exists()


def test_a_study_continues_after_the_records_that_were_kept(out):
    with pytest.raises(KeyboardInterrupt):
        list(keep(out, [], interrupted(RECORDS[:2])))
    assert not out.exists()
    kept = kept_records(out, JOBS)
    assert list(keep(out, kept, RECORDS[2:])) == RECORDS
    assert len(out.read_text().splitlines()) == 3


def test_a_line_that_was_not_finished_is_left_out(out):
    unfinished(out).write_text('{"seed": 0}\n{"seed": 1, "sol')
    assert kept_records(out, JOBS) == [{"seed": 0}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"seed": 7}\n', "it holds others"),
        ('{"seed": 0}\n' * 4, "it holds others"),
        ("no JSON\n", "one line of JSON for each fit"),
    ],
)
def test_records_of_another_study_are_refused(out, text, message):
    unfinished(out).write_text(text)
    with pytest.raises(ValueError, match=message):
        kept_records(out, JOBS)
