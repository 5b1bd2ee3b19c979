import numpy as np
import pytest

from manifactor.cryoem.formats import read_particles
from manifactor.datasets.particles import simulate_particles
from manifactor.datasets.writing import CTF_COLUMNS, star_text, write_dataset


def simulated(**settings):
    return simulate_particles(
        4, size=64, pixel_size=4.0, signal_to_noise=None, random_state=0, **settings
    )


def test_what_is_written_reads_back(tmp_path):
    simulation = simulated(in_plane=True, defocus=(1e4, 2e4), motions="xy")
    folder = tmp_path / "data"
    folder.mkdir()
    write_dataset(folder, simulation, name="data")
    particles = read_particles(folder / "particles.star")
    rot, tilt, psi = simulation.view
    np.testing.assert_allclose(particles.angles[:, :2], [[rot, tilt]] * 4)
    np.testing.assert_allclose(particles.angles[:, 2], psi + simulation.psi, atol=1e-5)
    table = np.genfromtxt(folder / "truth.csv", delimiter=",", names=True)
    assert table.dtype.names == ("angle", "stretch_x", "stretch_y")
    np.testing.assert_allclose(table["angle"], np.degrees(simulation.angle), rtol=1e-6)
    np.testing.assert_allclose(table["stretch_y"], simulation.stretch[:, 1], rtol=1e-6)


@pytest.mark.parametrize("defocus", [None, (1e4, 2e4)])
def test_particles_have_ctf_columns_only_with_a_ctf(defocus):
    star = star_text(simulated(defocus=defocus), "data/particles.mrcs")
    assert "000004@data/particles.mrcs" in star
    for name in CTF_COLUMNS:
        assert (f"_{name} " in star) == (defocus is not None)
