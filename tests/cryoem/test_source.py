import pickle
from dataclasses import replace

import numpy as np
import pytest

from manifactor.cryoem.directions import require_one_view
from manifactor.cryoem.files.formats import read_particles
from manifactor.cryoem.pages import _findings
from manifactor.cryoem.simulate.writing import write_dataset
from manifactor.cryoem.source import paired_particles
from manifactor.datasets import simulate_particles
from manifactor.runs.options import FitOptions
from manifactor.runs.sources import open_input
from tests.cryoem.star_files import RELION_30


def read_input(path, rng, **options):
    return open_input(path, FitOptions(**options)).read(rng)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Twenty images of one view."""
    folder = tmp_path_factory.mktemp("project") / "data"
    folder.mkdir()
    simulation = simulate_particles(20, size=54, pixel_size=4.0, defocus=(1e4, 2e4), random_state=0)
    write_dataset(folder, simulation, name="data")
    return folder


@pytest.fixture
def table(tmp_path, rng):
    np.save(tmp_path / "z.npy", rng.normal(size=(20, 3)))
    return tmp_path / "z.npy"


def test_coordinates_with_particles_keep_both(table, data, rng):
    given = read_input(table, rng, particles=data / "particles.star")
    assert given.samples.shape == (20, 3)
    assert given.rows.tolist() == list(range(20))
    assert given.record.keys() == {"particles", "fingerprint", "columns"}


def test_images_become_components_that_the_record_describes(data, rng):
    given = read_input(data / "particles.star", rng, components=4)
    assert given.samples.shape == (20, 4)
    assert given.record["components"]["text"] == given.components.text
    assert "samples" not in given.record["components"]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("", {"particles": "a.star"}, "--particles does not go with a folder"),
        ("", {"ind": "i.pkl"}, "--ind does not go with a folder"),
        ("", {"view": ((0, 0),)}, "--view does not go with a folder"),
        ("", {"phase_flip": True}, "--phase-flip does not go with"),
        ("particles.star", {"width": 200}, r"`width` must be a number in \[0, 180\]; got 200"),
        ("gone.mrcs", {}, r"must be a file; .*gone.mrcs does not exist"),
    ],
)
def test_arguments_that_do_not_go_with_the_input_are_refused(data, name, arguments, message):
    with pytest.raises(ValueError, match=message):
        open_input(data / name, FitOptions(**arguments))


def test_images_must_show_one_view(data):
    particles = read_particles(data / "particles.star")
    angles = particles.angles - np.outer(np.arange(20) < 10, [0, 40, 0])
    particles = replace(particles, angles=angles)
    require_one_view(particles)  # 20 degrees off the mean of both
    match = "must show one view; .*particles.star are up to 20 degrees apart"
    with pytest.raises(ValueError, match=match):
        require_one_view(particles, max_angle=15.0)


@pytest.mark.parametrize(("shares", "said"), [([None], False), ([None, 0.91], True)])
def test_consistency_of_views_is_said_where_it_is_known(shares, said):
    text = " ".join(_findings({"information": [1.0], "agreement": [0.5], "consistency": shares}))
    assert ("0.91 on factor 2; 1 if" in text) == said
    assert ("Consistency" in text) == said


# The particles that rows of coordinates belong to.


def paired(path, n_samples, **given):
    return paired_particles(path, n_samples, FitOptions(**given))


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
            np.save(path, sorted(values) if isinstance(values, set) else values)
        else:
            path.write_bytes(pickle.dumps(values))
        return path

    return path_of


@pytest.mark.parametrize(
    ("n_samples", "values", "message"),
    [
        (99, None, r"one particle for each row of coordinates; .*star has \d+ and .* has 99"),
        (3, [0, 1], r"has 2 named by .*ind.pkl and .* has 3"),
        (2, [0.0, 1.0], "must hold row numbers from 0; got an array of float64"),
        (2, [[0, 1]], r"must hold row numbers from 0; .* shape \(1, 2\)"),
        (2, [-1, 1], "must hold row numbers from 0"),
        (2, [0, 1000], "names particle 1000, but there are .*, counted from 0"),
        (2, [1, 1], "must name each particle once; it names particle 1 2 times"),
    ],
)
def test_there_must_be_a_particle_for_each_row(tmp_path, star, indices, n_samples, values, message):
    given = {"particles": star, "ind": None if values is None else indices(np.array(values))}
    with pytest.raises(ValueError, match=message):
        paired(tmp_path / "z.pkl", n_samples, **given)


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
    found = paired(save_cs("z.cs", [7, 5]), 2)
    assert found.uid.tolist() == [7, 5]


@pytest.mark.parametrize(("uids", "rows"), [([7, 9, 5], [0, 2, 1]), ([4, 9, 8, 5, 7], [4, 3, 1])])
def test_tables_of_cryosparc_are_joined_by_uid(save_cs, uids, rows):
    coordinates = save_cs("z.cs", [7, 5, 9])
    assert len(paired(coordinates, 3, particles=coordinates)) == 3
    found = paired(coordinates, 3, particles=save_cs("p.cs", uids))
    assert found.path.name == "p.cs"
    assert found.rows.tolist() == rows
    assert found.uid.tolist() == [7, 5, 9]
