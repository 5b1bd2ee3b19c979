import pickle

import numpy as np
import pytest

from manifactor.tables import reading
from manifactor.tables.reading import Given
from tests.cryoem.star_files import RELION_30


def paired_particles(path, n_samples, **given):
    return reading.paired_particles(path, n_samples, Given(**given))


@pytest.fixture
def star(tmp_path):
    path = tmp_path / "particles.star"
    path.write_text(RELION_30)
    return path


@pytest.fixture
def indices(tmp_path):
    def path_of(values, name="ind.pkl"):
        path = tmp_path / name
        if name.endswith(".npy"):
            np.save(path, values)
        else:
            path.write_bytes(pickle.dumps(np.asarray(values)))
        return path

    return path_of


def test_coordinates_alone_have_no_particles(tmp_path):
    assert paired_particles(tmp_path / "z.pkl", 3) is None


@pytest.mark.parametrize("name", ["ind.pkl", "ind.npy"])
def test_indices_choose_the_particles(tmp_path, star, indices, name):
    found = paired_particles(tmp_path / "z.pkl", 2, particles=star, indices=indices([0, 2], name))
    assert found.rows.tolist() == [0, 2]


@pytest.mark.parametrize(("values", "rows"), [([4, 0, 2], [4, 0, 2]), ({5, 1, 3}, [1, 3, 5])])
@pytest.mark.parametrize("protocol", [2, 5])
def test_indices_may_be_a_list_or_a_set_in_any_order(tmp_path, star, values, rows, protocol):
    (tmp_path / "ind.pkl").write_bytes(pickle.dumps(values, protocol=protocol))
    found = paired_particles(tmp_path / "z.pkl", 3, particles=star, indices=tmp_path / "ind.pkl")
    assert found.rows.tolist() == rows
    assert found.slice.tolist() == [[0, 1, 2, 11, 0, 1][row] for row in rows]


def test_indices_need_particles(tmp_path, indices):
    with pytest.raises(ValueError, match=r"--ind says which .* give them with --part"):
        paired_particles(tmp_path / "z.pkl", 2, indices=indices([0, 1]))


def test_there_must_be_a_particle_for_each_row(tmp_path, star, indices):
    match = r"one particle for each row of coordinates; .*star has \d+ and .*z.pkl has 99"
    with pytest.raises(ValueError, match=match):
        paired_particles(tmp_path / "z.pkl", 99, particles=star)
    with pytest.raises(ValueError, match=r"has 2 named by .*ind.pkl and .* has 3"):
        paired_particles(tmp_path / "z.pkl", 3, particles=star, indices=indices([0, 1]))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.0, 1.0], "must hold row numbers from 0; got an array of float64"),
        ([[0, 1]], r"must hold row numbers from 0; .* shape \(1, 2\)"),
        ([-1, 1], "must hold row numbers from 0"),
        ([0, 1000], "names particle 1000, but there are .*, counted from 0"),
        ([1, 1], "must name each particle once; it names particle 1 2 times"),
    ],
)
def test_indices_that_cannot_be_are_refused(tmp_path, star, indices, values, message):
    with pytest.raises(ValueError, match=message):
        paired_particles(tmp_path / "z.pkl", 2, particles=star, indices=indices(values))


@pytest.fixture
def save_cs(tmp_path):
    def path_of(name, uids):
        kinds = [("uid", "<u8"), ("blob/path", "S8"), ("blob/idx", "<u4")]
        table = np.zeros(len(uids), dtype=[*kinds, ("components_mode_0/value", "<f4")])
        table["uid"] = uids
        with (tmp_path / name).open("wb") as file:
            np.save(file, table)
        return tmp_path / name

    return path_of


def test_a_table_of_cryosparc_has_its_own_particles(save_cs):
    found = paired_particles(save_cs("z.cs", [7, 5]), 2)
    assert found.uid.tolist() == [7, 5]


@pytest.mark.parametrize(("uids", "rows"), [([7, 9, 5], [0, 2, 1]), ([4, 9, 8, 5, 7], [4, 3, 1])])
def test_tables_of_cryosparc_are_joined_by_uid(save_cs, uids, rows):
    coordinates = save_cs("z.cs", [7, 5, 9])
    assert len(paired_particles(coordinates, 3, particles=coordinates)) == 3
    found = paired_particles(coordinates, 3, particles=save_cs("p.cs", uids))
    assert found.path.name == "p.cs"
    assert found.rows.tolist() == rows
    assert found.uid.tolist() == [7, 5, 9]


def test_every_particle_of_the_coordinates_must_be_in_the_other_table(save_cs, indices):
    coordinates, others = save_cs("z.cs", [7, 5, 9]), save_cs("p.cs", [7, 5, 8, 6])
    match = (
        r"p.cs must hold all particles of .*z.cs; 1 of 3 are missing, the first with uid 9. Export"
    )
    with pytest.raises(ValueError, match=match):
        paired_particles(coordinates, 3, particles=others)
    with pytest.raises(ValueError, match="must hold each uid once"):
        paired_particles(save_cs("t.cs", [7, 7]), 2, particles=others)
    with pytest.raises(ValueError, match="--ind is not needed"):
        paired_particles(coordinates, 3, particles=coordinates, indices=indices([0, 1, 2]))
