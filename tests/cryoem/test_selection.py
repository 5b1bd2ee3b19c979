import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from manifactor.cryoem.files.formats import read_particles
from manifactor.cryoem.runs import ParticleRun
from manifactor.runs.places import Place
from manifactor.runs.run import Run, known_column, selected, selection
from tests.cryoem.star_files import RELION_31

# The run has five of the six particles, in another order than their file.
ROWS = np.array([4, 0, 2, 1, 5])
PLACES = np.array([0.0, 0.2, 0.4, 0.6, 0.8])


def run_of(folder, path):
    particles = read_particles(path)[ROWS]
    record = {"input": str(folder / "z.npy"), "particles": str(path), "n_samples": 5}
    record["fingerprint"] = particles.fingerprint
    sheet = np.column_stack([PLACES, -PLACES])
    places = Place(PLACES, "interval", np.ones(5)), Place(sheet, "other", np.ones(5))
    return ParticleRun(Path(folder), json.loads(json.dumps(record)), ROWS, places)


@pytest.fixture
def run(tmp_path):
    path = tmp_path / "particles.star"
    path.write_text(RELION_31)
    return run_of(tmp_path, path)


@pytest.mark.parametrize("name", ["rlnDefocusU", "_rlnDefocusU"])
def test_columns_of_the_particles_come_in_the_order_of_the_samples(run, name):
    assert known_column(run, name).tolist() == [8000, 9873.2, 9873.2, 9873.2, 8000]


def test_columns_of_cryosparc_with_several_numbers_have_a_position(tmp_path):
    table = np.zeros(6, dtype=[("uid", "<u8"), ("alignments3D/shift", "<f4", (2,))])
    table["uid"] = 10 + np.arange(6)
    table["alignments3D/shift"][:, 1] = np.arange(6)
    with (tmp_path / "p.cs").open("wb") as file:
        np.save(file, table)
    run = run_of(tmp_path, tmp_path / "p.cs")
    assert known_column(run, "alignments3D/shift.1").tolist() == ROWS.tolist()
    assert known_column(run, "uid").tolist() == (10 + ROWS).tolist()


def test_columns_of_the_fitted_table_count_too(tmp_path):
    table = tmp_path / "z.csv"
    table.write_text("x,hot\n" + "".join(f"{k},{k * k}\n" for k in range(5)))
    record = {"input": str(table), "columns": {}}
    run = Run(tmp_path, record, np.arange(5), (Place(PLACES, "interval"),))
    assert known_column(run, "hot").tolist() == [0, 1, 4, 9, 16]
    assert selected(run, [], columns=[("hot", 1, 9)]).tolist() == [1, 2, 3]
    table.write_text("x,hot\n1,2\n")
    with pytest.raises(ValueError, match="has 1 rows now and had 5 when fitted"):
        known_column(run, "hot")


def test_a_range_of_a_column_selects_with_the_others(run):
    columns = [("rlnDefocusU", 9000, 10_000), ("factor2_1", -0.5, 0)]
    assert selected(run, [], columns=columns).tolist() == [1, 2]
    assert selected(run, [(1, 0.3, 1)], columns=columns).tolist() == [2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": [("rlnDefocus", 0, 1)]}, "no column 'rlnDefocus' of numbers; the"),
        ({"columns": [("rlnImageName", 0, 1)]}, "no column 'rlnImageName' of numbers"),
        ({"columns": [("rlnDefocusU", 3, 1)]}, "must be two ascending numbers; got 3"),
        ({"columns": [("rlnDefocusU", 1, 3)]}, "some samples; got none. Widen"),
        ({"inverted": True}, "some samples; got none. Narrow"),
    ],
)
def test_columns_and_ranges_that_cannot_be_are_refused(run, arguments, message):
    with pytest.raises(ValueError, match=message):
        selected(run, [], **arguments)


def test_samples_in_any_order_are_written_in_that_of_their_particles(run):
    chosen = np.array([0, 1, 4])
    assert pickle.loads(selection(run, chosen, ".pkl")).tolist() == [0, 4, 5]
    rows = [row for row in selection(run, chosen, ".star").splitlines() if b"@" in row]
    original = [row for row in RELION_31.encode().splitlines() if b"@" in row]
    for row, number, place in zip(rows, [0, 4, 5], [0.2, 0.0, 0.8], strict=True):
        assert row.startswith(original[number].rstrip())
        assert f" {place:.6f}".encode() in row
