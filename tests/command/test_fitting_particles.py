"""`fit` on particles, volumes and pictures: files in, coordinates of factors out and back."""

import csv
import shutil

import mrcfile
import numpy as np
import pytest
import starfile
from PIL import Image

from manifactor import datasets
from manifactor.cryoem.files.cryosparc import npy_bytes, read_cs
from manifactor.cryoem.files.stacks import write_stack, write_volume
from manifactor.runs.run import open_run
from manifactor.scores import coordinate_correlation

from ..cryoem.star_files import loop, row
from .conftest import N, manifactor, places, record_of, refusal, truth_of


@pytest.mark.medium
def test_both_motions_are_found_and_nothing_else_explains_them(molecule, run):
    record = record_of(run)
    assert record["verdict"] == "product"
    assert record["components"]["signal_to_noise"][0] > 100
    assert {each["name"] for each in record["confounders"]} == {"half set"}
    assert 0 < record["agreement"] <= 1
    assert 0.98 < record["reliability"] <= 1
    for topology, (coordinate, _) in places(run).items():
        found = np.radians(coordinate) if topology == "circle" else coordinate
        assert coordinate_correlation(found, truth_of(molecule)[topology]) > 0.98


@pytest.mark.medium
def test_the_places_are_appended_to_the_particles(molecule, run):
    before, after = (starfile.read(f / "particles.star") for f in (molecule, run))
    columns = list(before["particles"])
    assert after["particles"][columns].equals(before["particles"])
    table = np.genfromtxt(run / "coordinates.csv", delimiter=",", names=True)
    for ours, theirs in (("mfFactor1", "factor1"), ("mfFactor2Confidence", "factor2_confidence")):
        np.testing.assert_allclose(after["particles"][ours], table[theirs], atol=1e-6)


@pytest.mark.slow
def test_a_subset_of_one_view_can_be_fitted_again(molecule, run, numbers, folder, capsys):
    text = (molecule / "particles.star").read_text().splitlines(keepends=True)
    seen = [
        line.replace("180.000000 120.000000", "0.000000 20.000000") if "0@" in line else line
        for line in text
    ]
    (folder / "two.star").write_text("".join(seen))
    shutil.copytree(molecule, folder / "data")
    assert "must show one view" in refusal("fit two.star", folder, capsys)
    assert manifactor("fit two.star --view -180,120 --sense geometry --out one") == 0
    names = starfile.read(folder / "one" / "particles.star")["particles"]["rlnImageName"]
    assert len(names) == N - N // 10
    assert not names.str.contains("0@").any()
    assert manifactor("select one --factor 1 --range 0 .8 --out subset.star") == 0
    assert manifactor("fit subset.star --sense geometry --n-factors 2 --out again") == 0
    before, after = (
        starfile.read(path)["particles"] for path in ("subset.star", "again/particles.star")
    )
    # The places are new, and stand there once.
    assert sorted(after.columns) == sorted(before.columns)
    assert len(after) == len(before)


def spots(n, size, rng):
    """Images of a spot that moves on a square, (n, size, size)."""
    x, y = rng.uniform(-0.4, 0.4, (2, n, 1, 1))
    row, column = np.mgrid[-1 : 1 : size * 1j, -1 : 1 : size * 1j]
    noise = 0.01 * rng.standard_normal((n, size, size))
    return (np.exp(-((column - x) ** 2 + (row - y) ** 2) / 0.1) + noise).astype(np.float32)


@pytest.mark.slow
def test_a_class_is_fitted_and_a_missing_pixel_size_is_said(folder, rng, capsys):
    # Named as a stack of cryoSPARC, of an odd box, without optics.
    write_stack(folder / "stack.mrc", spots(150, 17, rng), pixel_size=0)
    rows = [row(f"{k}@job/stack.mrc", str(1 + (k > 100)), str(1 + k % 2)) for k in range(1, 151)]
    labels = "rlnImageName rlnClassNumber rlnOpticsGroup"
    (folder / "particles.star").write_text(loop("particles", labels, rows))
    line = "fit particles.star --class 1 --datadir . --components 3 --n-factors 2"
    assert manifactor(f"{line} --dry-run") == 0
    noted = capsys.readouterr().err
    assert "particles.star states no pixel size (rlnImagePixelSize, or" in noted
    assert "Give it in Angstrom with --pixel-size" in noted
    assert manifactor(f"{line} --pixel-size 4 --sense geometry --out run") == 0
    assert "states no pixel size" not in capsys.readouterr().err
    record = record_of(folder / "run")
    assert record["n_samples"] == 100
    assert "--pixel-size 4 --class 1" in record["reproduce"]
    assert f"--datadir {folder}" in record["reproduce"]
    assert manifactor("average run --factor 1 --bins 2 --halves --out means") == 0
    with mrcfile.open(folder / "means" / "averages.mrcs") as stack:
        assert stack.data.shape == (2, 17, 17)
        assert stack.voxel_size.x == 4
    assert manifactor("select run --column rlnOpticsGroup 2 2 --out part.star") == 0
    assert len(starfile.read(folder / "part.star")) == 50


@pytest.mark.slow
def test_images_of_cryosparc_are_found_and_come_back_with_their_uids(folder, rng, capsys):
    write_stack(folder / "stack.mrc", spots(150, 16, rng), pixel_size=4)
    blob = np.zeros(150, [("uid", "u8"), ("blob/path", "S9"), ("blob/idx", "u4")])
    blob["uid"], blob["blob/path"] = 10**12 + np.arange(150), b"stack.mrc"
    blob["blob/idx"] = np.arange(150)
    results = np.zeros(120, [("uid", "<u8"), ("alignments2D/pose", "<f4")])
    results["uid"] = 10**12 + rng.permutation(150)[:120]
    (folder / "passthrough.cs").write_bytes(npy_bytes(blob))
    (folder / "results.cs").write_bytes(npy_bytes(results))
    assert "results.cs names no images" in refusal("fit results.cs", folder, capsys)
    line = "fit results.cs --particles passthrough.cs --components 3 --n-factors 2 --out run"
    assert manifactor(line) == 0
    written = read_cs(folder / "run" / "particles.cs")
    assert sorted(written["uid"]) == sorted(results["uid"])
    assert manifactor("select run --factor 1 --range 0 .5 --out low.cs") == 0
    low = read_cs(folder / "low.cs")
    assert len(low) < len(written)
    assert set(low["uid"]) < set(written["uid"])


@pytest.mark.slow
def test_a_series_of_volumes_is_factored_and_averaged(folder, capsys):
    volumes, angle, _ = datasets.simulate_volumes(
        150, size=24, pixel_size=9.5, blur=9.0, random_state=0
    )
    (folder / "series").mkdir()
    for i, volume in enumerate(volumes):
        write_volume(folder / "series" / f"vol_{i}.mrc", volume, pixel_size=9.5)
    assert manifactor("fit series --out run") == 0
    turn, number = places(folder / "run")["circle"]
    ring = np.column_stack([np.cos(4 * angle), np.sin(4 * angle)])
    assert coordinate_correlation(np.radians(turn), ring) > 0.97
    assert manifactor(f"average run --factor {number} --bins 4") == 0
    out = folder / "run" / f"average-factor{number}"
    with mrcfile.open(out / "average_001.mrc") as volume:
        assert volume.data.shape == (24, 24, 24)
        assert volume.voxel_size.x == pytest.approx(9.5)
    assert "vseries" in (out / "averages.cxc").read_text()


# Pictures.


@pytest.mark.slow
def test_pictures_are_fitted_named_and_averaged_in_colour(folder, rng):
    r, c = rng.uniform(0, 5, (2, 240, 1, 1))
    y, x = np.mgrid[:6, :8]
    spot = np.exp(-((x - c - 1) ** 2 + (y - r) ** 2) / 5)
    images = (250 * np.stack([spot, 0 * spot, spot**2], axis=-1)).astype(np.uint8)
    (folder / "pictures").mkdir()
    names = [f'a,"b" #{k:03d}.png' if k < 30 else f"img{k:03d}.png" for k in range(240)]
    for name, image in zip(names, images, strict=True):
        Image.fromarray(image).save(folder / "pictures" / name)
    assert manifactor("fit pictures --sense geometry --n-factors 2 --out run") == 0
    with (folder / "run" / "coordinates.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["file"] for line in lines] == names == open_run("run").names
    record = record_of(folder / "run")
    assert record["columns"]["image"] == [6, 8, 3]
    assert record["choices"]["preparation"]["why"].startswith("images of 6 x 8 pixels in colour")
    assert manifactor("select run --factor 1 --range .2 .4 --out some.csv") == 0
    with open("some.csv", newline="") as file:
        assert all(lines[int(line["sample"])] == line for line in csv.DictReader(file))
    assert manifactor("average run --factor 1 --factor 2 --bins 2 --out means") == 0
    assert np.load("means/averages.npy").shape == (4, 6, 8, 3)
    with Image.open("means/averages.png") as picture:
        assert picture.mode == "RGB"
    np.save("new.npy", images[:3, 1:])
    with pytest.raises(ValueError, match="must hold images of 6 x 8 pixels in colour"):
        open_run("run").read("new.npy")
