import numpy as np
import pytest

from manifactor.cryoem.files.formats import read_particles
from manifactor.cryoem.simulate.writing import write_dataset
from manifactor.datasets import simulate_particles
from manifactor.tables.reading import (
    Given,
    ImageSettings,
    open_input,
    picked,
    read_opened,
    require_one_view,
    run_images,
)


def read_input(path, given, rng):
    return read_opened(open_input(path, given), rng)


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
    given = read_input(table, Given(data / "particles.star"), rng=rng)
    assert given.samples.shape == (20, 3)
    assert given.rows.tolist() == list(range(20))
    assert given.record.keys() == {"particles", "fingerprint", "columns"}


def test_images_become_components_that_the_record_describes(data, rng):
    given = read_input(
        data / "particles.star", Given(settings=ImageSettings(components=4)), rng=rng
    )
    assert given.samples.shape == (20, 4)
    assert given.record["components"]["text"] == str(given.components)
    assert "samples" not in given.record["components"]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("data", {"particles": "a.star"}, "--particles cannot be given for a folder"),
        ("data", {"indices": "i.pkl"}, "--ind cannot be given for a folder"),
        ("data", {"view": (0, 0)}, "--view cannot be given for a folder"),
        ("data", {"settings": ImageSettings(True)}, "settings of images cannot be"),
        ("star", {"particles": "a.star"}, "already is a file of particles. Leave them"),
        ("star", {"width": 200}, r"`width` must be a number in \[0, 180\]; got 200"),
        ("stack", {"view": (0, 0)}, "is a stack without any. Give its STAR or .cs"),
        ("table", {"view": (0, 0)}, "holds coordinates. Leave them out"),
        ("table", {"settings": ImageSettings(True)}, "go with particle images"),
    ],
)
def test_arguments_that_do_not_go_with_the_input_are_refused(
    data, table, rng, name, arguments, message
):
    paths = {
        "data": data,
        "star": data / "particles.star",
        "stack": data / "particles.mrcs",
        "table": table,
    }
    with pytest.raises(ValueError, match=message):
        read_input(paths[name], Given(**arguments), rng=rng)


def test_a_stack_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must be a file; .*gone.mrcs does not exist"):
        run_images(tmp_path / "gone.mrcs", None)


def test_a_view_must_show_particles(data):
    particles = read_particles(data / "particles.star")
    rot, tilt = particles.angles[0, :2]
    assert len(picked(particles, (rot, tilt), 1.0)) == 20
    match = r"must show some particles; within 5 degrees of rot .* are 0 of 20. Choose"
    with pytest.raises(ValueError, match=match):
        picked(particles, (rot, tilt - 90), 5.0)


def test_images_must_show_one_view(data):
    star = (data / "particles.star").read_text()
    angles = read_particles(data / "particles.star").angles
    tilt = f"{angles[0, 1]:.6f}"
    spread = star.replace(tilt, f"{angles[0, 1] - 40:.6f}", 10)
    path = data / "spread.star"
    path.write_text(spread)
    particles = read_particles(path)
    require_one_view(particles)  # 20 degrees off the mean of both
    match = "must show one view; .*spread.star are up to 20 degrees apart"
    with pytest.raises(ValueError, match=match):
        require_one_view(particles, max_angle=15.0)
