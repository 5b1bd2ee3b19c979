"""`fit` on files as other programs write them."""

import os
import pickle
import shutil

import mrcfile
import numpy as np
import pytest
import starfile
from PIL import Image

from manifactor.views.pictures import can_write_mp4

from .conftest import N, manifactor, places, record_of, refusal


@pytest.fixture(scope="session")
def few(molecule, tmp_path_factory):
    """The images as a stack, and a STAR file of two classes without optics."""
    folder = tmp_path_factory.mktemp("few")
    with mrcfile.open(molecule / "particles.mrcs") as stack:
        images = np.array(stack.data)
    # Named as a stack of cryoSPARC, and of an odd box.
    with mrcfile.new(folder / "stack.mrc") as file:
        file.set_data(images[:, 1:, 1:])
    names = ["ImageName", "AnglePsi", "ClassNumber", "OpticsGroup"]
    labels = "".join(f"_rln{name} #{k}\n" for k, name in enumerate(names, start=1))
    rows = "".join(
        f"{k + 1}@Extract/job1/stack.mrc 0.0 {1 + (k >= 400)} {1 + k % 2}\n" for k in range(N)
    )
    (folder / "particles.star").write_text(f"data_particles\n\nloop_\n{labels}{rows}")
    np.save(folder / "z.npy", np.random.default_rng(0).normal(size=(60, 2)))
    ctf = np.tile([54, 4.0, 1e4, 1e4, 0, 300, 2.7, 0.1, 0], (60, 1))
    (folder / "ctf.pkl").write_bytes(pickle.dumps(ctf.astype(np.float32)))
    poses = np.zeros((60, 3, 3)), np.zeros((60, 2))
    (folder / "poses.pkl").write_bytes(pickle.dumps(poses))
    (folder / "cut.mrcs").write_bytes((folder / "stack.mrc").read_bytes()[:-9])
    return folder


@pytest.fixture
def here(few, folder):
    shutil.copytree(few, folder, dirs_exist_ok=True)
    return folder


@pytest.mark.slow
def test_a_class_of_an_odd_box_is_fitted_averaged_and_reported(here, capsys):
    line = "fit particles.star --class 1 --datadir . --pixel-size 4 --sense geometry --out run"
    assert manifactor(line) == 0
    record = record_of(here / "run")
    assert record["n_samples"] == 400
    assert "--pixel-size 4 --class 1" in record["reproduce"]
    assert f"--datadir {here}" in record["reproduce"]
    _, number = places(here / "run")["interval"]
    assert manifactor(f"average run --factor {number} --bins 2 --halves") == 0
    out = here / "run" / f"average-factor{number}"
    with mrcfile.open(out / "averages.mrcs") as stack:
        assert stack.data.shape == (2, 53, 53)
        assert stack.voxel_size.x == 4
    assert manifactor("report run --movies") == 0
    with Image.open(here / "run" / f"report-factor{number}.gif") as movie:
        assert movie.n_frames > 10
    assert (here / f"run/report-factor{number}.mp4").exists() == can_write_mp4()
    assert "No averages along" not in (here / "run" / "report.html").read_text()
    assert manifactor("select run --column rlnOpticsGroup 2 2 --out part.star") == 0
    assert len(starfile.read(here / "part.star")) == 200


def test_a_missing_pixel_size_is_said(here, capsys):
    choice = "--class 2 --datadir . --components 3 --dry-run"
    assert manifactor(f"fit particles.star {choice}") == 0
    noted = capsys.readouterr().err
    assert "particles.star states no pixel size (rlnImagePixelSize, or" in noted
    assert "Give it in Angstrom with --pixel-size" in noted
    assert manifactor(f"fit particles.star {choice} --pixel-size 4") == 0
    assert "pixel size" not in capsys.readouterr().err
    assert manifactor("fit stack.mrc --components 3 --dry-run") == 0
    assert "stack.mrc states no pixel size" in capsys.readouterr().err


@pytest.mark.slow
def test_results_of_cryosparc_find_their_images_in_the_passthrough_file(here, capsys):
    blob = np.zeros(
        N, [("uid", "u8"), ("blob/path", "S9"), ("blob/idx", "u4"), ("ctf/df1_A", "f4")]
    )
    blob["uid"], blob["blob/path"] = 100 + np.arange(N), b"stack.mrc"
    blob["blob/idx"] = np.arange(N)
    results = np.zeros(600, [("uid", "u8"), ("alignments2D/pose", "f4")])
    results["uid"] = 100 + np.random.default_rng(0).permutation(N)[:600]
    for name, table in (("passthrough.cs", blob), ("results.cs", results)):
        with (here / name).open("wb") as file:
            np.save(file, table)
    assert "results.cs names no images" in refusal("fit results.cs", here, capsys)
    line = "fit results.cs --particles passthrough.cs --pixel-size 4 --out run"
    assert manifactor(line) == 0
    assert manifactor("select run --column ctf/df1_A 0 0 --out all.cs") == 0
    written = np.load(here / "all.cs")
    assert written["uid"].tolist() == np.sort(results["uid"]).tolist()
    _, number = places(here / "run")["interval"]
    assert manifactor(f"average run --factor {number} --bins 2") == 0


@pytest.mark.slow
def test_coordinates_of_shuffled_particles_are_paired(latent, folder, capsys):
    order = np.random.default_rng(0).permutation(N)
    with (folder / "z.pkl").open("wb") as file:
        pickle.dump(latent[order], file)
    with (folder / "ind.pkl").open("wb") as file:
        pickle.dump(order.tolist(), file)
    line = "fit z.pkl --particles original.star --ind ind.pkl --sense geometry --out r"
    assert manifactor(line) == 0
    _, number = places(folder / "r")["interval"]
    written = starfile.read(folder / "r" / "particles.star")["particles"]
    original = starfile.read(folder / "original.star")["particles"]
    assert written["rlnImageName"].tolist() == original["rlnImageName"].tolist()
    # Every particle has its own place, not that of the row it was shuffled to.
    found = np.corrcoef(written[f"mfFactor{number}"], latent[:, 2])[0, 1]
    assert abs(found) > 0.99


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("particles.star", "are of 2 classes of a 2-D classification: 1 (400 particles)"),
        ("particles.star --class 1", "or give the folder that holds it with --datadir"),
        ("particles.star --class 7", "--class must be one of 1 (400 particles), 2 (300)"),
        ("particles.star --optics-group 3", "--optics-group must be one of 1 (350 part"),
        ("particles.star --class 1 --datadir gone", "--datadir must be the folder"),
        ("particles.star --pixel-size 0", "--pixel-size must be a number above 0"),
        (
            "particles.star --particles particles.star",
            "--particles does not go with a file of particles",
        ),
        ("stack.mrc --class 1", "--class does not go with a stack of images; got stack.mrc"),
        ("stack.mrc --view 0,0", "stack.mrc. Give its STAR or .cs file"),
        ("cut.mrcs", "cut.mrcs is not a whole MRC file"),
        ("gone.mrc", "gone.mrc does not exist"),
        ("ctf.pkl", "holds the CTF of every image, as cryoDRGN's ctf.pkl does"),
        ("poses.pkl", "cryoDRGN's poses.pkl is a tuple; its coordinates are in"),
        ("z.npy --class 1", "manifactor select --column rlnClassNumber"),
        ("z.npy --datadir .", "z.npy. Name their particles with --particles"),
        (". --pixel-size 2", "--pixel-size does not go with a folder of volumes"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(here, capsys, arguments, message):
    assert message in refusal(f"fit {arguments}", here, capsys)


def test_too_few_images_are_said_with_their_number(here, capsys):
    text = (here / "particles.star").read_text().splitlines()
    (here / "two.star").write_text("\n".join(text[:9]) + "\n")
    message = refusal("fit two.star --datadir .", here, capsys)
    assert "needs at least 4 images" in message
    assert "two.star gives 2. Widen the choice" in message


# Pipes and links to themselves.

STAR = "data_\nloop_\n_rlnImageName #1\n" + "".join(f"{k}@a.mrcs\n" for k in range(1, 51))


@pytest.mark.parametrize(
    "line",
    [
        *("fit {}.star", "fit {}.cs", "views {}.star"),
        *("fit z.pkl --particles {}.star", "fit z.pkl --particles p.star --ind {}.pkl"),
    ],
)
def test_pipes_and_links_to_themselves_are_refused_and_not_waited_for(folder, capsys, line):
    (folder / "z.pkl").write_bytes(pickle.dumps(np.eye(50)))
    (folder / "p.star").write_text(STAR)
    for suffix in (".star", ".cs", ".pkl"):
        os.mkfifo(folder / f"pipe{suffix}")
        (folder / f"loop{suffix}").symlink_to(f"loop{suffix}")
    assert "is a named pipe" in refusal(line.format("pipe"), folder, capsys)
    assert "is a link that leads back to itself" in refusal(line.format("loop"), folder, capsys)
