import numpy as np
import pytest

from manifactor.cryoem.files.formats import read_particles
from manifactor.cryoem.files.particles import euler_matrices
from manifactor.cryoem.files.stacks import particle_images
from manifactor.cryoem.simulate.all_views import simulate_views
from manifactor.cryoem.simulate.one_view import simulate_particles
from manifactor.cryoem.simulate.writing import star_text, write_dataset, write_views


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
    for name in ("DefocusU", "DefocusV", "DefocusAngle", "PhaseShift", "CtfBfactor"):
        assert (f"_rln{name} " in star) == (defocus is not None)


def test_poses_of_all_views_read_back_as_the_same_rotations(tmp_path, monkeypatch):
    monkeypatch.setattr("manifactor.cryoem.simulate.all_views.BATCH_SIZE", 3)
    simulation = simulate_views(8, defocus=(1e4, 2e4), signal_to_noise=None, random_state=0)
    folder = tmp_path / "data"
    folder.mkdir()
    fractions = []
    write_views(folder, simulation, name="data", callback=lambda _, done: fractions.append(done))
    assert fractions == [3 / 8, 6 / 8, 1]
    particles = read_particles(folder / "particles.star")
    read = euler_matrices(particles.angles)
    np.testing.assert_allclose(read, simulation.rotations, atol=1e-7)
    np.testing.assert_allclose(particles.shift, simulation.shift, atol=1e-6)
    defocus = particles.microscope["defocus_u"]
    np.testing.assert_allclose(defocus, simulation.defocus, rtol=1e-6)
    source = particle_images(particles)
    assert source.pixel_size == 5.5
    images = np.concatenate([images for _, images in source.blocks(None)])
    np.testing.assert_allclose(images, simulation.images, atol=1e-5)


def test_the_true_poses_are_kept_beside_those_with_errors(tmp_path):
    simulation = simulate_views(5, pose_error=5.0, signal_to_noise=None, random_state=0)
    write_views(tmp_path, simulation, name="data")
    read = read_particles(tmp_path / "particles.star").angles
    table = np.genfromtxt(tmp_path / "truth.csv", delimiter=",", names=True)
    states = ("angle", "stretch_x", "stretch_y")
    assert table.dtype.names == (*states, "rot", "tilt", "psi")
    true = np.column_stack([table[name] for name in ("rot", "tilt", "psi")])
    np.testing.assert_allclose(euler_matrices(true), simulation.rotations, atol=1e-6)
    np.testing.assert_allclose(read, simulation.angles, atol=1e-5)
    assert np.abs(euler_matrices(read) - euler_matrices(true)).max() > 0.01
