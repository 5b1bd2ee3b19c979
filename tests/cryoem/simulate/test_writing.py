import numpy as np

from manifactor.cryoem.files.formats import read_particles
from manifactor.cryoem.simulate.one_view import simulate_particles
from manifactor.cryoem.simulate.writing import star_text, write_dataset


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
    # Columns of the CTF only with a CTF.
    texts = (folder / "particles.star").read_text(), star_text(simulated(), "data/particles.mrcs")
    assert all("000004@data/particles.mrcs" in text for text in texts)
    for name in ("DefocusU", "DefocusV", "DefocusAngle", "PhaseShift", "CtfBfactor"):
        assert [f"_rln{name} " in text for text in texts] == [True, False]
