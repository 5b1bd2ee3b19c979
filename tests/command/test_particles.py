"""The way of a structural biologist: particle files in, factor coordinates out and back."""

import json
import pickle
import shutil

import mrcfile
import numpy as np
import pytest
import starfile
from PIL import Image
from pyarrow import parquet

from manifactor import datasets, load
from manifactor.command.cli import main
from manifactor.cryoem.cryosparc import read_cs
from manifactor.cryoem.mrc import write_volume
from manifactor.inputs.pickles import read_pickled_array
from manifactor.scores import coordinate_correlation

N = 700


@pytest.fixture(scope="session")
def molecule(tmp_path_factory):
    """A simulated data set, written once."""
    folder = tmp_path_factory.mktemp("molecule") / "data"
    size = ["--size", "54", "--pixel-size", "4"]
    assert (
        main(
            [
                "simulate",
                "molecule",
                "--n",
                str(N),
                "--snr",
                "100",
                *size,
                "--out",
                str(folder),
            ]
        )
        == 0
    )
    return folder


@pytest.fixture(scope="session")
def run(molecule, tmp_path_factory):
    """The run of that data set."""
    out = tmp_path_factory.mktemp("run") / "run"
    assert main(["fit", str(molecule / "particles.star"), "--out", str(out)]) == 0
    return out


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def truth_of(molecule):
    angle, x, _ = np.loadtxt(molecule / "truth.csv", delimiter=",", skiprows=1).T
    phase = np.radians(4 * angle)
    return {
        "circle": np.column_stack([np.cos(phase), np.sin(phase)]),
        "interval": x[:, None],
    }


def places(run):
    """Places on the factors by topology, and the factors' numbers."""
    table = np.genfromtxt(run / "coordinates.csv", delimiter=",", names=True)
    topologies = [
        factor["topology"]
        for factor in json.loads((run / "run.json").read_text())["factors"]
    ]
    return {t: (table[f"factor{i}"], str(i)) for i, t in enumerate(topologies, start=1)}


def test_a_simulated_data_set_is_one_that_relion_reads(molecule):
    blocks = starfile.read(molecule / "particles.star")
    assert list(blocks) == ["optics", "particles"]
    assert blocks["optics"]["rlnImagePixelSize"][0] == 4.0
    assert len(blocks["particles"]) == N
    with mrcfile.open(molecule / "particles.mrcs") as stack:
        assert stack.data.shape == (N, 54, 54)
        assert stack.voxel_size.x == 4.0
        assert stack.is_image_stack()


def test_both_motions_are_found(molecule, run):
    assert json.loads((run / "run.json").read_text())["verdict"] == "product"
    for topology, (coordinate, _) in places(run).items():
        found = np.radians(coordinate) if topology == "circle" else coordinate
        assert coordinate_correlation(found, truth_of(molecule)[topology]) > 0.98


def test_places_that_noise_moves_far_are_no_product(folder, capsys):
    size = ["--size", "54", "--pixel-size", "4", "--snr", "1"]
    assert main(["simulate", "molecule", "--n", "2000", *size, "--out", "noisy"]) == 0
    assert main(["fit", "noisy/particles.star", "--out", "run"]) == 0
    record = json.loads((folder / "run" / "run.json").read_text())
    assert record["verdict"] != "product"
    assert record["reliability"] < 0.9
    assert "noise makes up" in record["reason"]


def test_the_places_are_appended_to_the_particles(molecule, run):
    before, after = (starfile.read(f / "particles.star") for f in (molecule, run))
    assert list(after["particles"])[: len(before["particles"].columns)] == list(
        before["particles"]
    )
    table = np.genfromtxt(run / "coordinates.csv", delimiter=",", names=True)
    np.testing.assert_allclose(
        after["particles"]["mfFactor1"], table["factor1"], atol=1e-6
    )
    np.testing.assert_allclose(
        after["particles"]["mfFactor2Confidence"],
        table["factor2_confidence"],
        atol=1e-6,
    )
    shortened = [
        line.rsplit(" ", 4)[0]
        for line in (run / "particles.star").read_text().splitlines()
        if "@" in line
    ]
    assert shortened == [
        line
        for line in (molecule / "particles.star").read_text().splitlines()
        if "@" in line
    ]


def test_the_report_has_signal_to_noise_leakage_and_confounders(run, capsys):
    assert main(["report", str(run)]) == 0
    out = capsys.readouterr().out
    for text in (
        "Principal components of the images or volumes",
        "Leakage: R^2 with which a place on one factor",
        "half set",
    ):
        assert text in out
    record = json.loads((run / "run.json").read_text())
    assert record["components"]["signal_to_noise"][0] > 100
    assert {c["name"] for c in record["confounders"]} == {"half set"}
    assert 0 < record["agreement"] <= 1
    assert 0.98 < record["reliability"] <= 1


@pytest.mark.parametrize("suffix", [".star", ".csv", ".parquet", ".pkl", ".npy"])
def test_a_selection_holds_exactly_the_particles_in_the_range(run, folder, suffix):
    (stretch, first), (turn, second) = places(run)["interval"], places(run)["circle"]
    expected = np.flatnonzero(
        (stretch >= 0.2) & (stretch <= 0.6) & ((turn >= 300) | (turn <= 60))
    )
    ranges = [
        "--factor",
        first,
        "--range",
        ".2",
        ".6",
        "--factor",
        second,
        "--range",
        "300",
        "60",
    ]
    out = folder / f"subset{suffix}"
    assert main(["select", str(run), *ranges, "--out", str(out)]) == 0
    assert len(expected) > 20
    np.testing.assert_array_equal(READ[suffix](out), expected)


READ = {
    ".star": lambda path: (
        starfile.read(path)["particles"]["rlnImageName"].str[:6].astype(int).to_numpy()
        - 1
    ),
    ".csv": lambda path: np.genfromtxt(path, delimiter=",", names=True)[
        "sample"
    ].astype(int),
    ".parquet": lambda path: parquet.read_table(path)["sample"].to_numpy(),
    ".pkl": read_pickled_array,
    ".npy": np.load,
}


def test_a_subset_can_be_fitted_again(molecule, run, folder):
    _, number = places(run)["interval"]
    shutil.copytree(molecule, folder / "data")
    assert (
        main(
            [
                "select",
                str(run),
                "--factor",
                number,
                "--range",
                "0",
                ".9",
                "--out",
                "subset.star",
            ]
        )
        == 0
    )
    assert main(["fit", "subset.star", "--out", "again"]) == 0
    before, after = (
        starfile.read(path)["particles"]
        for path in ("subset.star", "again/particles.star")
    )
    assert sorted(after.columns) == sorted(
        before.columns
    )  # the places are new, and stand there once
    assert len(after) == len(before)


def test_averages_along_a_factor_are_images_pictures_and_a_movie(run, folder, capsys):
    _, number = places(run)["circle"]
    assert (
        main(
            [
                "average",
                str(run),
                "--factor",
                number,
                "--bins",
                "6",
                "--match",
                "--out",
                "avg",
            ]
        )
        == 0
    )
    assert "matched over the other factors" in capsys.readouterr().out
    with mrcfile.open(folder / "avg" / "averages.mrcs") as stack:
        assert stack.data.shape == (6, 54, 54)
        assert stack.voxel_size.x == 4.0
        assert np.ptp(stack.data.mean(axis=0)) > 0
    with Image.open(folder / "avg" / "averages.gif") as movie:
        assert movie.n_frames == 6
    with Image.open(folder / "avg" / "averages.png") as picture:
        assert picture.width > 500
    assert len((folder / "avg" / "bins.csv").read_text().splitlines()) == 7


def test_averages_on_the_grid_of_two_factors(run, folder):
    assert (
        main(
            [
                "average",
                str(run),
                "--factor",
                "1",
                "--factor",
                "2",
                "--bins",
                "3",
                "--out",
                "grid",
            ]
        )
        == 0
    )
    with mrcfile.open(folder / "grid" / "averages.mrcs") as stack:
        assert len(stack.data) == 9


def test_views_are_fitted_side_by_side_with_one_table(molecule, folder, capsys):
    for name, seed in (("a", 1), ("b", 2)):
        size = [
            "--size",
            "54",
            "--pixel-size",
            "4",
            "--snr",
            "100",
            "--seed",
            str(seed),
        ]
        assert main(["simulate", "molecule", "--n", "500", *size, "--out", name]) == 0
        (folder / name / "particles.star").rename(folder / name / f"{name}.star")
    capsys.readouterr()
    assert main(["fit", "a/a.star", "b/b.star", "--out", "views"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].split() == [
        "view",
        "particles",
        "verdict",
        "factors",
        "problem",
    ]
    assert "interval x circle" in out
    assert load(folder / "views" / "b").n_factors_ == 2
    assert main(["fit", "a/a.star", "b/b.star", "--out", "views"]) == 2


def test_a_view_is_picked_by_its_direction(molecule, folder, capsys):
    text = (molecule / "particles.star").read_text().splitlines(keepends=True)
    seen = [
        line.replace("180.000000 120.000000", "0.000000 20.000000")
        if "0@" in line
        else line
        for line in text
    ]
    (folder / "two.star").write_text("".join(seen))
    shutil.copytree(molecule, folder / "data")
    assert main(["fit", "two.star"]) == 2
    assert "images must show one view" in capsys.readouterr().err
    assert main(["fit", "two.star", "--view", "-180,120", "--out", "one"]) == 0
    names = starfile.read(folder / "one" / "particles.star")["particles"][
        "rlnImageName"
    ]
    assert len(names) == N - N // 10
    assert not names.str.contains("0@").any()


@pytest.fixture
def latent(molecule, folder):
    """Coordinates that another program might have found, and the particles they belong to."""
    truth = truth_of(molecule)
    z = np.column_stack([truth["circle"], truth["interval"] / 20]).astype(np.float32)
    with (folder / "z.5.pkl").open("wb") as file:
        pickle.dump(z, file)
        pickle.dump(z, file)
    shutil.copy(molecule / "particles.star", folder / "original.star")
    return z


def test_coordinates_of_another_program_go_back_to_the_particles(latent, folder):
    assert main(["fit", "z.5.pkl", "--particles", "original.star", "--out", "run"]) == 0
    particles = starfile.read(folder / "run" / "particles.star")["particles"]
    assert len(particles) == N
    assert "mfFactor2" in particles


def test_what_a_run_was_made_of_is_never_replaced(latent, folder, capsys):
    assert main(["fit", "z.5.pkl", "--particles", "original.star", "--out", "run"]) == 0
    for name in ("original.star", "z.5.pkl"):
        assert main(["select", "run", "--out", name, "--overwrite"]) == 2
        assert f"{name} is what the run was made of" in capsys.readouterr().err


def test_other_particles_under_the_same_name_are_noticed(latent, folder, capsys):
    assert main(["fit", "z.5.pkl", "--particles", "original.star", "--out", "run"]) == 0
    lines = (folder / "original.star").read_text().splitlines(keepends=True)
    rows = [i for i, line in enumerate(lines) if "@" in line]
    lines[rows[0]], lines[rows[1]] = lines[rows[1]], lines[rows[0]]
    (folder / "original.star").write_text("".join(lines))
    assert main(["select", "run", "--out", "all.star"]) == 2
    assert (
        "holds other particles, or another order, than when fitted"
        in capsys.readouterr().err
    )


def test_coordinates_of_some_particles_need_their_numbers(latent, folder, capsys):
    kept = np.arange(0, N, 2)
    np.savetxt(folder / "half.txt", latent[kept])
    (folder / "ind.pkl").write_bytes(pickle.dumps(kept))
    assert main(["fit", "half.txt", "--particles", "original.star"]) == 2
    assert f"original.star has {N} and half.txt has {N // 2}" in capsys.readouterr().err
    assert (
        main(
            [
                "fit",
                "half.txt",
                "--particles",
                "original.star",
                "--ind",
                "ind.pkl",
                "--out",
                "run",
            ]
        )
        == 0
    )
    names = starfile.read(folder / "run" / "particles.star")["particles"][
        "rlnImageName"
    ]
    assert (names.str[:6].astype(int) - 1).tolist() == kept.tolist()


@pytest.mark.parametrize(
    ("program", "files"),
    [
        ("cryodrgn", {"z_values.txt", "commands.txt"}),
        ("recovar", {"embedding.pkl", "points.txt", "commands.txt"}),
        ("aspire", {"weights.npy", "rows.npy", "aspire_volumes.py", "commands.txt"}),
    ],
)
def test_bridges_write_files_and_commands(latent, folder, capsys, program, files):
    assert main(["fit", "z.5.pkl", "--particles", "original.star", "--out", "run"]) == 0
    assert main(["export", "run", "--to", program, "--factor", "1", "--bins", "8"]) == 0
    out = folder / "run" / f"{program}-factor1"
    assert {path.name for path in out.iterdir()} == files
    if "z_values.txt" in files:
        points = np.loadtxt(out / "z_values.txt")
        assert points.shape == (8, 3)
        assert all(
            (np.abs(latent - point).max(axis=1) < 1e-5).any() for point in points
        )  # no point lies off the data
    if "weights.npy" in files:
        weights = np.load(out / "weights.npy")
        assert weights.shape == (N, 8)
        assert (np.count_nonzero(weights, axis=1) <= 1).all()


def test_a_run_of_images_has_no_coordinates_to_export(run, capsys):
    assert main(["export", str(run), "--to", "cryodrgn", "--factor", "1"]) == 2
    assert (
        "needs the coordinates that the program itself found" in capsys.readouterr().err
    )


def test_cryosparc_particles_come_back_with_their_uids(latent, folder):
    table = np.zeros(
        N,
        dtype=[
            ("uid", "<u8"),
            *((f"components_mode_{k}/value", "<f4") for k in range(3)),
        ],
    )
    table["uid"] = np.random.default_rng(0).permutation(N) + 10**12
    for k in range(3):
        table[f"components_mode_{k}/value"] = latent[:, k]
    with (folder / "particles.cs").open("wb") as file:
        np.save(file, table)
    assert main(["fit", "particles.cs", "--out", "run"]) == 0
    written = read_cs(folder / "run" / "particles.cs")
    np.testing.assert_array_equal(written["uid"], table["uid"])
    assert written.dtype.descr[: len(table.dtype.descr)] == table.dtype.descr
    number = places(folder / "run")["interval"][1]
    assert (
        main(
            [
                "select",
                "run",
                "--factor",
                number,
                "--range",
                "0",
                ".5",
                "--out",
                "low.cs",
            ]
        )
        == 0
    )
    low = read_cs(folder / "low.cs")
    np.testing.assert_array_equal(
        low["uid"], table["uid"][places(folder / "run")["interval"][0] <= 0.5]
    )
    with (folder / "other.cs").open("wb") as file:
        np.save(file, table[::-1])
    assert (
        main(["fit", "particles.cs", "--particles", "other.cs", "--out", "again"]) == 2
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "gone.star"], "gone.star does not exist"),
        (["fit", "gone.mrcs"], "gone.mrcs does not exist"),
        (
            ["fit", "lonely.star"],
            "names the stack gone.mrcs, which is neither in its folder nor in one above",
        ),
        (["fit", "evil.pkl"], "evil.pkl was refused and nothing in it was run"),
        (["fit", "empty"], "must hold .mrc volumes; it holds none"),
        (
            ["fit", "data/particles.star", "--view", "180"],
            "invalid ROT,TILT value: '180'",
        ),
        (
            ["fit", "data/particles.star", "--view", "0,0"],
            "within 10 degrees of rot 0, tilt 0 there are 0",
        ),
        (
            ["fit", "data/particles.star", "--phase-flip"],
            "phases can be flipped where the defocus is known",
        ),
        (
            ["fit", "data/particles.star", "--mask-radius", "1"],
            "`mask_radius` must be a number in [8, 108]",
        ),
        (
            ["fit", "data/particles.star", "--low-pass", "500"],
            "`low_pass` must lie between two pixels and half the box",
        ),
        (
            ["fit", "data/particles.star", "--components", "0"],
            "`n_components` must be a whole number in [1",
        ),
        (
            ["fit", "data/particles.star", "--particles", "data/particles.star"],
            "already is a file of particles",
        ),
        (["fit", "z.5.pkl", "--view", "0,0"], "go with particle images"),
        (["fit", "z.5.pkl", "--ind", "z.5.pkl"], "give them with --particles"),
        (["fit", "z.5.pkl", "--particles", "gone.star"], "gone.star does not exist"),
        (
            ["fit", "z.5.pkl", "--particles", "z.5.pkl"],
            "particles must come as one of .star, .cs",
        ),
        (
            ["select", "run", "--factor", "1", "--out", "a.star"],
            "every --factor needs its --range",
        ),
        (
            ["select", "run", "--factor", "3", "--range", "0", "1", "--out", "a.star"],
            "one of the run's 1 to 2; got 3",
        ),
        (["select", "run", "--out", "a.docx"], "--out must end in one of .star, .cs"),
        (["select", "run", "--out", "a.cs"], "choose --out with the same ending"),
        (
            ["average", "run", "--factor", "1", "--factor", "1"],
            "one factor or two different ones",
        ),
        (
            ["average", "run", "--factor", "1", "--bins", "0"],
            "`n_bins` must be a whole number in [1",
        ),
        (
            ["average", "run", "--factor", "1", "--out", "data"],
            "data is not what this command writes",
        ),
        (
            ["fit", "data/particles.star", "--view", "180,120", "--width", "-3"],
            "`width` must be a number in [0, 180]",
        ),
        (
            ["fit", "data", "--view", "0,0"],
            "--view cannot be given for a folder of volumes",
        ),
        (
            ["average", "run", "--factor", "1", "--factor", "2", "--match"],
            "this run has no other factors",
        ),
        (
            ["simulate", "molecule", "--structure", "a.pdb"],
            "--structure and --rotor go together",
        ),
        (
            ["simulate", "molecule", "--motions", "z"],
            "`motions` must be one of 'x', 'xy'; got 'z'",
        ),
        (
            ["simulate", "molecule", "--size", "20"],
            "every state of the molecule to stay inside",
        ),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    molecule, run, latent, folder, capsys, arguments, message
):
    shutil.copytree(molecule, folder / "data")
    shutil.copytree(run, folder / "run")
    lonely = (
        (molecule / "particles.star")
        .read_text()
        .replace("data/particles.mrcs", "gone.mrcs")
    )
    (folder / "lonely.star").write_text(lonely)
    (folder / "evil.pkl").write_bytes(b"cos\nsystem\n(S'touch owned'\ntR.")
    (folder / "empty").mkdir()
    before = sorted(folder.rglob("*"))
    capsys.readouterr()
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("manifactor: error: ")
    assert captured.err.count("\n") == 1
    assert message in captured.err
    assert sorted(folder.rglob("*")) == before


def test_ranges_outside_a_factor_are_refused(run, folder, capsys):
    _, interval = places(run)["interval"]
    _, circle = places(run)["circle"]
    for number, low, high, message in (
        (interval, ".6", ".2", "two ascending numbers in [0, 1]; got 0.6 0.2"),
        (circle, "-400", "10", "two numbers of degrees in [-360, 360]; got -400 10"),
    ):
        assert (
            main(
                [
                    "select",
                    str(run),
                    "--factor",
                    number,
                    "--range",
                    low,
                    high,
                    "--out",
                    "a.csv",
                ]
            )
            == 2
        )
        assert message in capsys.readouterr().err


def test_a_series_of_volumes_is_factored_and_averaged(folder, capsys):
    volumes, angle, _ = datasets.simulate_volumes(
        400, size=24, pixel_size=9.5, blur=9.0, random_state=0
    )
    (folder / "series").mkdir()
    for i, volume in enumerate(volumes):
        write_volume(folder / "series" / f"vol_{i}.mrc", volume, pixel_size=9.5)
    assert main(["fit", "series", "--out", "run"]) == 0
    turn, number = places(folder / "run")["circle"]
    ring = np.column_stack([np.cos(4 * angle), np.sin(4 * angle)])
    assert coordinate_correlation(np.radians(turn), ring) > 0.97
    assert main(["average", "run", "--factor", number, "--bins", "4"]) == 0
    out = folder / "run" / f"average-factor{number}"
    with mrcfile.open(out / "average_001.mrc") as volume:
        assert volume.data.shape == (24, 24, 24)
        assert volume.voxel_size.x == pytest.approx(9.5)
    assert "vseries" in (out / "averages.cxc").read_text()


def test_images_turned_and_shifted_in_their_plane_are_brought_into_one_frame(
    folder, capsys
):
    size = ["--size", "54", "--pixel-size", "4", "--snr", "100", "--in-plane"]
    assert main(["simulate", "molecule", "--n", "1000", *size, "--out", "data"]) == 0
    assert main(["fit", "data/particles.star", "--out", "run"]) == 0
    for topology, (coordinate, _) in places(folder / "run").items():
        found = np.radians(coordinate) if topology == "circle" else coordinate
        assert coordinate_correlation(found, truth_of(folder / "data")[topology]) > 0.97
    record = json.loads((folder / "run" / "run.json").read_text())
    assert {c["name"] for c in record["confounders"]} == {
        "in-plane angle",
        "shift",
        "half set",
    }
    assert not any(c["meaning"] for c in record["confounders"])


def test_uncorrected_defocus_is_named(folder, capsys):
    size = [
        "--size",
        "54",
        "--pixel-size",
        "4",
        "--snr",
        "30",
        "--defocus",
        "10000",
        "25000",
    ]
    assert main(["simulate", "molecule", "--n", "1200", *size, "--out", "data"]) == 0
    assert main(["fit", "data/particles.star", "--out", "run"]) == 0
    out = capsys.readouterr().out
    assert "Warning: " in out
    assert "defocus explains" in out


def test_a_sample_far_from_those_that_were_fitted_is_placed_without_confidence(
    folder, rng
):
    X = rng.uniform(size=(1200, 2)) * [2, 1]
    X[::400] += 30
    np.savetxt(folder / "far.csv", X, delimiter=",")
    assert main(["fit", "far.csv", "--fit-samples", "600", "--out", "run"]) == 0
    table = np.genfromtxt(folder / "run" / "coordinates.csv", delimiter=",", names=True)
    assert len(table) == 1200
    assert np.isfinite(table["factor1"]).all()
    assert (table["factor1_confidence"][::400] == 0).all()


def test_averages_follow_the_motion_in_order(run, folder):
    """Along the stretch the lower part of the molecule moves one way, bin after bin."""
    _, number = places(run)["interval"]
    assert (
        main(["average", str(run), "--factor", number, "--bins", "5", "--out", "avg"])
        == 0
    )
    with mrcfile.open(folder / "avg" / "averages.mrcs") as stack:
        mass = np.clip(stack.data - np.median(stack.data), 0, None).sum(axis=2)
    height = (mass * np.arange(54)).sum(axis=1) / mass.sum(axis=1)
    steps = np.diff(height)
    assert (steps > 0).all() or (steps < 0).all()


def test_the_cells_of_a_grid_are_the_averages_of_their_bins(run, folder):
    assert (
        main(
            [
                "average",
                str(run),
                "--factor",
                "1",
                "--factor",
                "2",
                "--bins",
                "2",
                "--out",
                "grid",
            ]
        )
        == 0
    )
    assert (
        main(["average", str(run), "--factor", "1", "--bins", "2", "--out", "line"])
        == 0
    )
    with (
        mrcfile.open(folder / "grid" / "averages.mrcs") as grid,
        mrcfile.open(folder / "line" / "averages.mrcs") as line,
    ):
        counts = np.genfromtxt(folder / "grid" / "bins.csv", delimiter=",", names=True)[
            "samples"
        ].reshape(2, 2)
        rows = (
            np.einsum("ab,abij->aij", counts, grid.data.reshape(2, 2, 54, 54))
            / counts.sum(axis=1)[:, None, None]
        )
        np.testing.assert_allclose(
            rows, line.data, rtol=1e-4, atol=1e-4 * np.abs(line.data).max()
        )


@pytest.fixture
def surface(folder, rng):
    """A run of a disk times a circle, with particles."""
    disk, angle = (
        datasets.sample("disk", 1500, random_state=0)[0],
        rng.uniform(0, 2 * np.pi, 1500),
    )
    np.save(folder / "z.npy", np.column_stack([disk, np.cos(angle), np.sin(angle)]))
    rows = "".join(f"{i + 1:06d}@a.mrcs {i}\n" for i in range(1500))
    (folder / "original.star").write_text(
        f"data_\n\nloop_\n_rlnImageName #1\n_rlnCoordinateX #2\n{rows}"
    )
    assert main(["fit", "z.npy", "--particles", "original.star", "--out", "run"]) == 0
    topologies = [
        factor["topology"]
        for factor in json.loads((folder / "run" / "run.json").read_text())["factors"]
    ]
    return str(1 + topologies.index("other")), str(1 + topologies.index("circle"))


def test_a_factor_of_two_dimensions_has_a_column_for_each(surface, folder, capsys):
    other, circle = surface
    columns = list(starfile.read(folder / "run" / "particles.star"))
    assert f"mfFactor{other}Dimension1" in columns
    assert f"mfFactor{other}Dimension2" in columns
    assert (
        main(
            [
                "select",
                "run",
                "--factor",
                circle,
                "--range",
                "-20",
                "20",
                "--out",
                "some.star",
            ]
        )
        == 0
    )
    angle = starfile.read(folder / "some.star")[f"mfFactor{circle}"]
    assert (np.minimum(angle, 360 - angle) <= 20).all()
    assert (
        main(["export", "run", "--to", "cryodrgn", "--factor", circle, "--bins", "6"])
        == 0
    )
    capsys.readouterr()
    for command in (
        ["select", "--range", "0", "1", "--out", "a.csv"],
        ["average"],
        ["export", "--to", "aspire"],
    ):
        assert main([command[0], "run", "--factor", other, *command[1:]]) == 2
        assert "more dimensions" in capsys.readouterr().err


def test_points_along_a_factor_hold_the_others_still(surface, folder):
    _, circle = surface
    assert (
        main(["export", "run", "--to", "cryodrgn", "--factor", circle, "--bins", "8"])
        == 0
    )
    points = np.loadtxt(folder / "run" / f"cryodrgn-factor{circle}" / "z_values.txt")
    assert np.ptp(points[:, :2], axis=0).max() < 0.35  # of a disk of diameter 2
    turn = np.unwrap(np.arctan2(points[:, 3], points[:, 2]))
    assert abs(turn[-1] - turn[0]) == pytest.approx(2 * np.pi * 7 / 8, abs=0.5)


def test_weights_for_aspire_are_those_of_the_bins(surface, folder):
    _, circle = surface
    assert (
        main(["export", "run", "--to", "aspire", "--factor", circle, "--bins", "4"])
        == 0
    )
    weights = np.load(folder / "run" / f"aspire-factor{circle}" / "weights.npy")
    angle = np.genfromtxt(
        folder / "run" / "coordinates.csv", delimiter=",", names=True
    )[f"factor{circle}"]
    for k in range(4):
        inside = weights[:, k] > 0
        assert (np.abs((angle[inside] - 90 * k + 180) % 360 - 180) <= 45).all()
        assert inside.sum() > 200


def test_every_bin_has_its_own_file_for_relion(run, folder, capsys):
    assert (
        main(
            [
                "export",
                str(run),
                "--to",
                "relion",
                "--factor",
                "1",
                "--bins",
                "4",
                "--out",
                "bins",
            ]
        )
        == 0
    )
    names = [
        starfile.read(folder / "bins" / f"bin_0{k}.star")["particles"]["rlnImageName"]
        for k in range(1, 5)
    ]
    assert sum(len(part) for part in names) == N
    assert len(set().union(*names)) == N
    assert (folder / "bins" / "commands.txt").read_text().count(
        "relion_reconstruct --i bin_"
    ) == 4
    assert main(["export", str(run), "--to", "cryosparc", "--factor", "1"]) == 2
    assert (
        "this program reads .cs; the run's particles are particles.star"
        in capsys.readouterr().err
    )
