"""`views`."""

import shutil

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from manifactor.cryoem.files.particles import euler_matrices

from .conftest import N, manifactor, record_of, refusal


@pytest.fixture
def particles(molecule, folder):
    """Particles of one view in a folder with a space in its name."""
    shutil.copytree(molecule, folder / "my data" / "data")
    return folder / "my data" / "data" / "particles.star"


@pytest.mark.slow
def test_the_printed_command_fits_the_best_view(particles, folder, capsys):
    assert manifactor("views 'my data/data/particles.star'") == 0
    out = capsys.readouterr().out
    assert f"{N} particles; those within 10 degrees of a direction:" in out
    (row,) = [line for line in out.splitlines() if line.startswith("1 ")]
    assert row.split()[2:5] == ["120", str(N), "100.0%"]
    (line,) = [line for line in out.splitlines() if line.startswith("Best view")]
    _, command = line.split(": manifactor ")
    assert manifactor(command) == 0
    assert record_of(folder / "particles-run")["n_samples"] == N


def test_images_are_not_needed_and_cs_files_are_read(folder, capsys, rng):
    angles = np.c_[rng.normal(40, 3, 400), rng.normal(60, 3, 400), np.zeros(400)]
    # cryoSPARC's vectors turn the image to the molecule, hence the sign.
    poses = -Rotation.from_matrix(euler_matrices(angles)).as_rotvec()
    table = np.zeros(400, dtype=[("uid", "u8"), ("alignments3D/pose", "f4", 3)])
    table["uid"] = np.arange(400)
    table["alignments3D/pose"] = poses
    with (folder / "a.cs").open("wb") as file:
        np.save(file, table)
    assert manifactor("views a.cs --rows 1 --width 15") == 0
    out = capsys.readouterr().out
    (row,) = [line.split() for line in out.splitlines() if line.startswith("1 ")]
    assert abs(float(row[1]) - 40) < 2
    assert abs(float(row[2]) - 60) < 2
    assert "manifactor fit a.cs --view" in out
    assert (folder / "a-views.png").is_file()


def test_the_ctf_is_corrected_and_few_particles_are_noted(folder, capsys):
    columns = "\n".join(
        f"_rln{name} #{i}"
        for i, name in enumerate(
            ("ImageName", "AngleRot", "AngleTilt", "AnglePsi", "DefocusU"), start=1
        )
    )
    rows = "".join(f"{i + 1}@a.mrcs -170 30 0 15000\n" for i in range(20))
    (folder / "a.star").write_text(f"data_\n\nloop_\n{columns}\n{rows}")
    assert manifactor("views a.star") == 0
    captured = capsys.readouterr()
    assert "fit a.star --view -170,30 --width 10 --phase-flip" in captured.out
    assert "needs some hundreds of particles; the fullest has 20" in captured.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("views no.star", "no.star does not exist"),
        ("views bare.star", "viewing directions need poses; bare.star has none"),
        ("views bare.star --out map.jpg", "must end in .png, .svg, .pdf; got map.jpg"),
        ("views bare.npy", "particles must come as one of .star, .cs"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(folder, capsys, arguments, message):
    (folder / "bare.npy").touch()
    (folder / "bare.star").write_text("data_\n\nloop_\n_rlnImageName #1\n1@a.mrcs\n")
    assert message in refusal(arguments, folder, capsys)


def test_a_picture_is_replaced_only_if_asked(particles, folder, capsys):
    line = "views 'my data/data/particles.star' --out map.png"
    assert manifactor(line) == 0
    assert "must not exist yet; map.png does" in refusal(line, folder, capsys)
    assert manifactor(f"{line} --overwrite") == 0
    message = refusal(f"{line} --overwrite --width 0", folder, capsys)
    assert "--width must be a number in [0.01, 90]; got 0.0" in message
