"""`fit` on particles and volumes: files in, coordinates of factors out and back."""

import shutil

import mrcfile
import numpy as np
import pytest
import starfile

from manifactor import datasets
from manifactor.cryoem.files.cryosparc import npy_bytes, read_cs
from manifactor.cryoem.files.mrc import write_volume
from manifactor.scores import coordinate_correlation

from .conftest import N, manifactor, places, record_of, refusal, truth_of


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


@pytest.mark.slow
def test_places_that_noise_moves_far_are_no_product(folder, capsys):
    size = "--size 54 --pixel-size 4 --snr 1"
    assert manifactor(f"simulate molecule --n 250 {size} --out noisy") == 0
    assert manifactor("fit noisy/particles.star --n-factors 2 --sense geometry --out run") == 0
    record = record_of(folder / "run")
    assert record["verdict"] != "product"
    assert record["reliability"] < 0.9
    assert "noise makes up" in record["reason"]


def test_the_places_are_appended_to_the_particles(molecule, run):
    before, after = (starfile.read(f / "particles.star") for f in (molecule, run))
    columns = list(before["particles"])
    assert after["particles"][columns].equals(before["particles"])
    table = np.genfromtxt(run / "coordinates.csv", delimiter=",", names=True)
    for ours, theirs in (("mfFactor1", "factor1"), ("mfFactor2Confidence", "factor2_confidence")):
        np.testing.assert_allclose(after["particles"][ours], table[theirs], atol=1e-6)


@pytest.mark.slow
def test_a_subset_can_be_fitted_again(molecule, run, folder):
    _, number = places(run)["interval"]
    shutil.copytree(molecule, folder / "data")
    assert manifactor(f"select {run} --factor {number} --range 0 .6 --out subset.star") == 0
    assert manifactor("fit subset.star --sense geometry --out again") == 0
    before, after = (
        starfile.read(path)["particles"] for path in ("subset.star", "again/particles.star")
    )
    # The places are new, and stand there once.
    assert sorted(after.columns) == sorted(before.columns)
    assert len(after) == len(before)


@pytest.mark.slow
def test_a_view_is_picked_by_its_direction(molecule, folder, capsys):
    text = (molecule / "particles.star").read_text().splitlines(keepends=True)
    seen = [
        line.replace("180.000000 120.000000", "0.000000 20.000000") if "0@" in line else line
        for line in text
    ]
    (folder / "two.star").write_text("".join(seen))
    shutil.copytree(molecule, folder / "data")
    assert "must show one view" in refusal("fit two.star", folder, capsys)
    assert manifactor("fit two.star --view -180,120 --out one") == 0
    names = starfile.read(folder / "one" / "particles.star")["particles"]["rlnImageName"]
    assert len(names) == N - N // 10
    assert not names.str.contains("0@").any()


@pytest.mark.slow
def test_cryosparc_particles_come_back_with_their_uids(latent, folder):
    table = np.zeros(
        N, dtype=[("uid", "<u8"), *((f"components_mode_{k}/value", "<f4") for k in range(3))]
    )
    table["uid"] = np.random.default_rng(0).permutation(N) + 10**12
    for k in range(3):
        table[f"components_mode_{k}/value"] = latent[:, k]
    (folder / "particles.cs").write_bytes(npy_bytes(table))
    assert manifactor("fit particles.cs --sense geometry --out run") == 0
    written = read_cs(folder / "run" / "particles.cs")
    np.testing.assert_array_equal(written["uid"], table["uid"])
    assert written.dtype.descr[: len(table.dtype.descr)] == table.dtype.descr
    number = places(folder / "run")["interval"][1]
    assert manifactor(f"select run --factor {number} --range 0 .5 --out low.cs") == 0
    low = read_cs(folder / "low.cs")
    inside = places(folder / "run")["interval"][0] <= 0.5
    np.testing.assert_array_equal(low["uid"], table["uid"][inside])


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


@pytest.mark.slow
def test_images_turned_and_shifted_in_their_plane_are_brought_into_one_frame(folder, capsys):
    size = "--size 54 --pixel-size 4 --snr 100 --in-plane"
    assert manifactor(f"simulate molecule --n 300 {size} --out data") == 0
    assert manifactor("fit data/particles.star --sense geometry --out run") == 0
    for topology, (coordinate, _) in places(folder / "run").items():
        found = np.radians(coordinate) if topology == "circle" else coordinate
        assert coordinate_correlation(found, truth_of(folder / "data")[topology]) > 0.97
    record = record_of(folder / "run")
    known = {confounder["name"] for confounder in record["confounders"]}
    assert known == {"in-plane angle", "shift", "half set"}
    assert not any(c["meaning"] for c in record["confounders"])


@pytest.mark.slow
def test_uncorrected_defocus_is_named(folder, capsys):
    size = "--size 54 --pixel-size 4 --snr 30 --defocus 10000 25000"
    assert manifactor(f"simulate molecule --n 200 {size} --out data") == 0
    assert manifactor("fit data/particles.star --sense geometry --out run") == 0
    out = capsys.readouterr().out
    assert "Warning: " in out
    assert "defocus explains" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("lonely.star", "names the stack gone.mrcs"),
        ("empty", "or .mrc volumes; it holds none"),
        ("data/particles.star --view 180", "two angles in degrees, ROT,TILT; got '180'"),
        ("data/particles.star --view 0,999", "tilt of a view must lie between -180 and 180"),
        ("data/particles.star --phase-flip", "defocus is known"),
        ("data/particles.star --mask-radius 1", "`--mask-radius` must be a number in [8, 108]"),
        ("data/particles.star --low-pass 500", "`--low-pass` must lie between"),
        ("data/particles.star --components 0", "`--components` must be a whole number in [1"),
        ("z.5.pkl --view 0,0", "--view does not go with coordinates"),
        ("z.5.pkl --particles z.5.pkl", "one of .star, .cs"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    molecule, latent, folder, capsys, arguments, message
):
    shutil.copytree(molecule, folder / "data")
    star = (molecule / "particles.star").read_text()
    elsewhere = star.replace("data/particles.mrcs", "gone.mrcs")
    (folder / "lonely.star").write_text(elsewhere)
    (folder / "empty").mkdir()
    assert message in refusal(f"fit {arguments}", folder, capsys)
