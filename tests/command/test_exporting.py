"""`select`, `average`, `export` and `landscape`: files for other programs."""

import mrcfile
import numpy as np
import pytest
import starfile
from PIL import Image
from pyarrow import parquet

from manifactor.tables.pickles import read_pickled_array

from .conftest import N, manifactor, places, refusal

READ = {
    ".star": lambda path: (
        starfile.read(path)["particles"]["rlnImageName"].str[:6].astype(int).to_numpy() - 1
    ),
    ".csv": lambda path: np.genfromtxt(path, delimiter=",", names=True)["sample"].astype(int),
    ".parquet": lambda path: parquet.read_table(path)["sample"].to_numpy(),
    ".pkl": read_pickled_array,
    ".npy": np.load,
}


@pytest.mark.medium
@pytest.mark.parametrize("suffix", READ)
def test_a_selection_holds_exactly_the_particles_in_the_range(run, folder, suffix):
    (stretch, first), (turn, second) = places(run)["interval"], places(run)["circle"]
    expected = np.flatnonzero((stretch >= 0.2) & (stretch <= 0.6) & ((turn >= 300) | (turn <= 60)))
    ranges = f"--factor {first} --range .2 .6 --factor {second} --range 300 60"
    out = folder / f"subset{suffix}"
    assert manifactor(f"select {run} {ranges} --out {out}") == 0
    assert len(expected) > 20
    np.testing.assert_array_equal(READ[suffix](out), expected)


@pytest.mark.slow
def test_averages_along_a_factor_are_images_pictures_and_a_movie(run, numbers, folder, capsys):
    line = f"average {run} --factor {numbers['circle']} --bins 6 --match --view -180,120 --out avg"
    assert manifactor(line) == 0
    assert "matched over the other factors" in capsys.readouterr().out
    with mrcfile.open(folder / "avg" / "averages.mrcs") as stack:
        assert stack.data.shape == (6, 54, 54)
        assert stack.voxel_size.x == 4.0
    with Image.open(folder / "avg" / "averages.gif") as movie:
        assert movie.n_frames == 6
    with Image.open(folder / "avg" / "averages.png") as picture:
        assert picture.width > 500
    bins = np.genfromtxt(folder / "avg" / "bins.csv", delimiter=",", names=True)
    assert bins["samples"].sum() == N  # all are of this view


BRIDGES = {
    "cryodrgn": {"z_values.txt", "commands.txt"},
    "recovar": {"embedding.pkl", "points.txt", "poses.pkl", "ctf.pkl", "commands.txt"},
    "aspire": {"weights.npy", "rows.npy", "aspire_volumes.py", "commands.txt"},
}


@pytest.mark.slow
def test_a_run_of_latents_is_exported_and_its_inputs_are_guarded(molecule, latent, folder, capsys):
    (folder / molecule.name).symlink_to(molecule)  # images, as the STAR file names them
    assert manifactor("fit z.5.pkl --particles original.star --sense geometry --out run") == 0
    for program, files in BRIDGES.items():
        assert manifactor(f"export run --to {program} --factor 1 --bins 8") == 0
        out = folder / "run" / f"{program}-factor1"
        assert {path.name for path in out.iterdir()} == files
    for name in ("original.star", "z.5.pkl"):
        message = refusal(f"select run --out {name} --overwrite", folder, capsys)
        assert f"{name} is the input of the run" in message
    lines = (folder / "original.star").read_text().splitlines(keepends=True)
    rows = [i for i, line in enumerate(lines) if "@" in line]
    lines[rows[0]], lines[rows[1]] = lines[rows[1]], lines[rows[0]]
    (folder / "original.star").write_text("".join(lines))
    message = refusal("select run --out all.star", folder, capsys)
    assert "original.star holds other particles" in message


@pytest.mark.medium
def test_every_bin_has_its_own_file_for_relion(molecule, run, folder, capsys):
    assert manifactor(f"export {run} --to relion --factor 1 --bins 4 --out bins") == 0
    stars = [folder / "bins" / f"bin_0{k}.star" for k in range(1, 5)]
    names = [starfile.read(path)["particles"]["rlnImageName"] for path in stars]
    assert sum(len(part) for part in names) == N == len(set().union(*names))
    commands = (folder / "bins" / "commands.txt").read_text()
    assert commands.count(f"relion_reconstruct --i {folder / 'bins'}/bin_") == 4
    printed = capsys.readouterr()
    assert printed.out.endswith(f"To run, from any folder:\n{commands}")
    assert "volumes reconstructed from one view are meaningless" in printed.err


@pytest.mark.slow
def test_a_landscape_is_a_table_and_a_picture(run, folder, capsys):
    line = f"landscape {run} --factor 1 --out energy.csv"
    assert manifactor(line) == 0
    assert "kT, with errors of" in capsys.readouterr().out
    table = np.genfromtxt(folder / "energy.csv", delimiter=",", names=True)
    assert table["kT"].min() == 0
    assert table["density"].mean() == pytest.approx(1)
    assert (folder / "energy.png").read_bytes()[1:4] == b"PNG"
    assert "must not exist yet" in refusal(line, folder, capsys)
