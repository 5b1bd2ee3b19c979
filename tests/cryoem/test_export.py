"""Files and commands for other programs, run from the folders that they name."""

import pickle
import re
import shlex
import sys
from dataclasses import replace
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import starfile

from manifactor.cryoem.export import BRIDGES, comment, export, steady_samples
from manifactor.cryoem.files.formats import read_particles
from manifactor.cryoem.files.mrc import write_stack
from manifactor.cryoem.files.particles import euler_matrices
from manifactor.runs.places import Place, bin_labels
from manifactor.runs.run import Run
from manifactor.tables.pickles import read_pickled_array

from ..conftest import PickledWorkers

N = 300
BOX = 8
STACK = "Extract/job 1/particles.mrcs"


@pytest.fixture
def places(rng):
    return [Place(each, "interval") for each in rng.uniform(size=(2, N))]


@pytest.fixture
def project(tmp_path):
    """A RELION project whose name has a blank and a semicolon."""
    project = tmp_path / "my project; 2"
    (project / STACK).parent.mkdir(parents=True)
    images = np.zeros((N, BOX, BOX), dtype=np.float32)
    write_stack(project / STACK, images, pixel_size=3.0)
    return project


@pytest.fixture
def angles(rng):
    """All views."""
    tilt = np.degrees(np.arccos(rng.uniform(-1, 1, N)))
    return np.c_[rng.uniform(-180, 180, N), tilt, rng.uniform(-180, 180, N)]


@pytest.fixture
def make_run(project, places):
    """A function that writes the particles of a run of the places themselves."""

    def make(angles, *, ctf=False, z="z.5.pkl"):
        star = project / "Refine3D" / "run_data.star"
        star.parent.mkdir()
        star.write_text(star_text(angles, ctf=ctf))
        latents = np.column_stack([place.coordinate for place in places])
        (project / z).write_bytes(pickle.dumps(latents.astype(np.float32)))
        run = project / "run 1"
        run.mkdir()
        (run / "particles.star").write_text(star.read_text())
        record = {
            "input": str(project / z),
            "particles": str(star),
            "n_samples": N,
            "fingerprint": read_particles(star).fingerprint,
        }
        return Run(run, record, np.arange(N), tuple(places))

    return make


def star_text(angles, *, ctf):
    columns = ["AngleRot", "AngleTilt", "AnglePsi", "OriginXAngst", "OriginYAngst"]
    values = np.c_[angles, np.full((len(angles), 2), 1.5)]
    if ctf:
        columns += ["DefocusU", "DefocusV", "DefocusAngle"]
        values = np.c_[values, np.full((len(angles), 3), [12000.0, 11000.0, 30.0])]
    labels = "".join(f"_rln{name} #{i}\n" for i, name in enumerate(columns, start=3))
    rows = "".join(
        f'"{i:06d}@{STACK}" 1 {" ".join(f"{value:.6f}" for value in row)}\n'
        for i, row in enumerate(values, start=1)
    )
    return (
        "data_optics\n\nloop_\n_rlnOpticsGroup #1\n_rlnImagePixelSize #2\n_rlnVoltage #3\n"
        "_rlnSphericalAberration #4\n_rlnAmplitudeContrast #5\n1 3.0 300 2.7 0.1\n\n"
        "data_particles\n\nloop_\n_rlnImageName #1\n_rlnOpticsGroup #2\n"
        f"{labels}{rows}\n"
    )


@pytest.fixture
def run(make_run, angles):
    return make_run(angles)


def commands_of(files):
    """The commands of a file as a shell reads them: the folder they run in, and the rest."""
    lines = files["commands.txt"].decode().splitlines()
    (cd, folder), *rest = [words for line in lines if (words := read(line))]
    assert cd == "cd"
    return Path(folder), rest


def read(line):
    return shlex.split(line, comments=True)


def options_of(words):
    """Options with one value each."""
    return {word: value for word, value in pairwise(words) if word.startswith("-")}


def written(run, program, **options):
    """The files of a program, in the folder where they are said to lie."""
    files = export(run, 1, program, n_bins=4, **options)
    folder = run.folder / f"{program}-factor1"
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder, files


def test_the_name_of_a_file_does_not_end_a_comment():
    assert all(line.startswith("# ") for line in comment("a\nrm b").splitlines())
    assert max(map(len, comment("word " * 60).splitlines())) <= 88
    assert comment("word " * 60, width=None).count("\n") == 1


def test_points_go_along_the_factor_and_hold_the_other_still(places):
    along, other = places
    labels, centres = bin_labels(along.coordinate, "interval", n_bins=6)
    rows = steady_samples(along, [other], labels, centres)
    assert labels[rows].tolist() == list(range(6))
    assert np.abs(along.coordinate[rows] - centres).max() < 1 / 12
    assert np.ptp(other.coordinate[rows]) < 0.2


def test_without_other_factors_points_are_nearest_to_the_centres_of_their_bins():
    along = Place(np.array([0.05, 0.15, 0.9]), "interval")
    labels, centres = bin_labels(along.coordinate, "interval", n_bins=4)
    assert steady_samples(along, [], labels, centres).tolist() == [1, 2]


def test_points_and_embedding_are_in_the_coordinates_that_were_fitted(run):
    files = export(run, 1, "recovar", n_bins=4)
    latents = read_pickled_array(run.input)
    embedding = pickle.loads(files["embedding.pkl"])
    assert np.array_equal(embedding, latents.astype(np.float32))
    points = np.loadtxt(files["points.txt"].decode().splitlines())
    apart = np.abs(latents[:, None] - points).max(axis=2).min(axis=0)
    assert apart.max() < 1e-7
    assert files["points.txt"] == export(run, 1, "cryodrgn", n_bins=4)["z_values.txt"]
    # Images without a CTF have one of -1 everywhere.
    _, _, u, v, _, _, aberration, amplitude, phase = pickle.loads(files["ctf.pkl"])[0]
    assert (u, v, aberration, amplitude, phase) == (0, 0, 0, 1, 0)


def test_weights_are_one_on_average_in_every_bin(run):
    files = export(run, 1, "aspire", n_bins=3)
    weights = np.lib.format.read_array(BytesIO(files["weights.npy"]))
    assert weights.shape == (N, 3)
    assert ((weights > 0).sum(axis=1) <= 1).all()
    labels, _ = bin_labels(run.places[0].coordinate, "interval", n_bins=3)
    assert weights.sum(axis=0) == pytest.approx(np.bincount(labels), rel=1e-5)


def test_what_cannot_be_exported_is_refused(run, tmp_path, rng):
    sheet = replace(run, places=(run.places[0], Place(rng.normal(size=(N, 2)), "other")))
    views = of_all_views(run, "C1")
    for given, factor, program, message, options in (
        (run, 1, "eman", f"one of {', '.join(BRIDGES)}; got eman", {}),
        (run, 1, "relion", "--training", {"training": tmp_path}),
        (run, 1, "cryosparc", "reads .cs", {}),
        (sheet, 2, "cryodrgn", "factor 2 has more dimensions", {}),
        (views, 1, "cryodrgn", "images of all views", {}),
        (views, 1, "recovar", "images of all views", {}),
    ):
        with pytest.raises(ValueError, match=message):
            export(given, factor, program, n_bins=3, **options)


def test_aspire_needs_a_star_file(make_cs_run):
    with pytest.raises(ValueError, match="ASPIRE reads"):
        export(make_cs_run(STACK), 1, "aspire", n_bins=3)


def test_what_has_changed_since_the_fit_is_refused(run):
    path = Path(run.record["particles"])
    path.write_text(path.read_text().replace("_rlnAngleRot", "_rlnOther"))
    with pytest.raises(ValueError, match="RECOVAR needs the angles"):
        export(run, 1, "recovar", n_bins=4)
    run.input.write_bytes(pickle.dumps(np.zeros((N + 1, 2))))
    with pytest.raises(ValueError, match="301 rows now and had 300 when fitted"):
        export(run, 1, "cryodrgn", n_bins=3)


def trained(folder, *, box, ctf=None):
    """Write the files of a trained model."""
    (folder / "weights.5.pkl").touch()
    lattice = f"lattice_args:\n  D: {box + 1}\n  extent: 0.5\nmodel_args:\n  zdim: 2\n"
    dataset = f"dataset_args:\n  ctf: {ctf or 'null'}\n"
    (folder / "config.yaml").write_text(f"cmd:\n- a\n{dataset}{lattice}")


def test_cryodrgn_decodes_with_the_model_beside_the_coordinates(run, project):
    trained(project, box=BOX)
    folder, files = written(run, "cryodrgn")
    where, [words] = commands_of(files)
    assert where == folder
    assert words[:2] == ["cryodrgn", "eval_vol"]
    assert Path(words[2]) == project / "weights.5.pkl"
    options = options_of(words)
    assert Path(options["-c"]).is_file()
    assert np.loadtxt(where / options["--zfile"]).shape == (4, 2)
    assert float(options["--Apix"]) == 3.0
    *_, shown = files["commands.txt"].decode().splitlines()
    assert shown.startswith("# manifactor report ")
    assert shlex.split(shown)[-2:] == ["--volumes", str(folder)]
    # Trained on images of half the box.
    trained(project, box=BOX // 2)
    _, [words] = commands_of(export(run, 1, "cryodrgn", n_bins=4))
    assert float(options_of(words)["--Apix"]) == 6.0


def test_the_ctf_of_the_training_knows_the_pixel_size_best(run, project):
    ctf = np.array([[64, 1.25, 0, 0, 0, 300, 2.7, 0.1, 0]])
    (project / "ctf.pkl").write_bytes(pickle.dumps(ctf))
    trained(project, box=32, ctf=project / "ctf.pkl")
    _, [words] = commands_of(export(run, 1, "cryodrgn", n_bins=4))
    assert float(options_of(words)["--Apix"]) == 2.5


def test_without_a_model_there_is_no_command(run, tmp_path):
    commands = export(run, 1, "cryodrgn", n_bins=4)["commands.txt"].decode()
    assert all(line.startswith("#") for line in commands.splitlines())
    assert "--training" in commands
    trained(tmp_path, box=BOX)
    files = export(run, 1, "cryodrgn", n_bins=4, training=tmp_path)
    _, [words] = commands_of(files)
    assert Path(words[2]) == tmp_path / "weights.5.pkl"


def test_recovar_finds_particles_images_poses_and_ctf(make_run, angles):
    run = make_run(angles, ctf=True)
    folder, files = written(run, "recovar")
    where, [words] = commands_of(files)
    assert where == folder
    options = options_of(words)
    names = starfile.read(words[2])["particles"]["rlnImageName"]
    stacks = {name.partition("@")[2] for name in names}
    assert all((Path(options["--datadir"]) / stack).is_file() for stack in stacks)
    assert "--zdim1" not in words
    assert options["--uninvert-data"] == "true"  # white particles, RELION's CTF
    for option in ("--embedding", "--target"):
        assert (where / options[option]).is_file()
    rotations, shifts = pickle.loads((where / options["--poses"]).read_bytes())
    np.testing.assert_allclose(rotations, euler_matrices(angles), atol=1e-6)
    np.testing.assert_allclose(shifts, 0.5 / BOX)  # 1.5 A of 3 A a pixel
    table = read_pickled_array(where / options["--ctf"])
    row = [BOX, 3.0, 12000, 11000, 30, 300, 2.7, 0.1, 0]
    np.testing.assert_allclose(table, np.tile(row, (N, 1)), rtol=1e-6)


def test_relion_finds_every_image_from_its_project(make_run, angles, project):
    run = make_run(angles, ctf=True)
    folder, files = written(run, "relion")
    where, lines = commands_of(files)
    assert where == project
    count = 0
    for words in lines:
        assert words[0] == "relion_reconstruct"
        assert words[-1] == "--ctf"
        options = options_of(words)
        assert Path(options["--o"]).parent == folder
        for name in starfile.read(where / options["--i"])["particles"]["rlnImageName"]:
            assert (where / name.partition("@")[2]).is_file()
            count += 1
    assert count == N


def test_files_of_bins_do_not_depend_on_who_makes_them(make_run, angles):
    run, workers = make_run(angles), PickledWorkers()
    expected = export(run, 1, "relion", n_bins=4)
    assert export(run, 1, "relion", n_bins=4, workers=workers) == expected
    assert workers.done == 4 * ["particles_with"]


def of_all_views(run, symmetry):
    """The same run, as if it were fitted to images of all views."""
    record = {**run.record, "all_views": {"symmetry": symmetry}}
    return replace(run, record={**record, "input": record["particles"]})


def test_relion_is_told_the_symmetry_of_the_fit_and_corrects_no_ctf_without_one(run):
    _, lines = commands_of(export(of_all_views(run, "D2"), 1, "relion", n_bins=4))
    assert all(words[-2:] == ["--sym", "D2"] for words in lines)
    _, lines = commands_of(export(of_all_views(run, "C1"), 1, "relion", n_bins=4))
    assert not any({"--sym", "--ctf"} & set(words) for words in lines)


def test_images_that_are_not_found_are_reported(run, project):
    (project / STACK).rename(project / "elsewhere.mrcs")
    with pytest.warns(UserWarning, match="were not found"):
        files = export(run, 1, "relion", n_bins=4)
    assert files["commands.txt"].startswith(b"# WARNING: the images that")


@pytest.mark.parametrize("program", ["cryodrgn", "recovar", "aspire", "relion"])
def test_volumes_of_one_view_are_called_meaningless(make_run, angles, program):
    run = make_run(angles * [0.1, 0.1, 1] + [0, 60, 0])
    with pytest.warns(UserWarning, match="volumes .* one view are meaningless"):
        files = export(run, 1, program, n_bins=4)
    assert b"meaningless" in files["commands.txt"]


def test_aspire_averages_with_the_weights(make_run, angles, monkeypatch):
    """The script is run with a program that fits numbers as ASPIRE fits volumes."""
    run = make_run(angles, ctf=True)
    folder, files = written(run, "aspire")
    where, [words] = commands_of(files)
    assert where == folder
    pixels = np.random.default_rng(0).normal(size=N)
    saved = {}
    install_aspire(monkeypatch, pixels, saved)
    monkeypatch.chdir(where)
    exec(compile((where / words[1]).read_text(), words[1], "exec"), {})
    weights = np.load("weights.npy")
    for k, column in enumerate(weights.T, start=1):
        mean = column @ pixels / column.sum()
        assert saved[f"volume_{k:02d}.mrc"] == pytest.approx(-mean, rel=1e-4)


def install_aspire(monkeypatch, pixels, saved):
    """Put modules in ASPIRE's place: images are numbers, and so are volumes."""

    class Source(SimpleNamespace):
        def __getitem__(self, rows):
            return Source(pixels=self.pixels[rows])

    def relion_source(path, *, data_folder, pixel_size, dtype):
        names = starfile.read(path)["particles"]["rlnImageName"]
        assert all((Path(data_folder) / name[7:]).is_file() for name in names)
        assert pixel_size is None  # the STAR file has it
        return Source(pixels=pixels)

    class Volume(float):
        def __rmul__(self, factor):
            return Volume(factor * float(self))

        def save(self, path, *, overwrite):
            saved[path] = float(self)

    class Estimator:
        def __init__(self, weights, source, *, preconditioner, **_):
            assert preconditioner == "none"
            self.weights, self.source = weights, source

        @property
        def kernel(self):
            self._kernel = (self.weights**2).sum()

        def estimate(self):
            images = self.weights[:, 0] @ self.source.pixels
            return Volume(images / np.sqrt(len(self.weights)) / self._kernel)

    modules = {
        "aspire": {},
        "aspire.operators": {"IdentityFilter": object},
        "aspire.reconstruction": {"WeightedVolumesEstimator": Estimator},
        "aspire.source": {"RelionSource": relion_source},
    }
    for name, members in modules.items():
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)


@pytest.fixture
def make_cs_run(run, project):
    """A function that gives a run the particles of a .cs file with these paths."""

    def make(path):
        types = [("uid", "u8"), ("blob/path", "S60"), ("blob/idx", "u4")]
        types += [("alignments3D/pose", "f4", 3), ("ctf/df1_A", "f4"), ("other/a", "f4")]
        table = np.zeros(N, dtype=types)
        table["uid"] = np.arange(N)
        table["blob/path"] = path
        table["blob/idx"] = np.arange(N)
        table["alignments3D/pose"] = np.random.default_rng(0).normal(size=(N, 3))
        (project / "J2").mkdir()
        particles = project / "J2" / "particles.cs"
        with particles.open("wb") as file:
            np.save(file, table)
        run.record["particles"] = str(particles)
        run.record["fingerprint"] = read_particles(particles).fingerprint
        return run

    return make


def test_cryosparc_imports_a_group_for_every_bin(make_cs_run, project):
    _, files = written(make_cs_run(STACK), "cryosparc")
    count = 0
    for k in range(1, 5):
        group = files[f"bin_0{k}.csg"].decode()
        table = np.load(BytesIO(files[f"bin_0{k}.cs"]))
        results = re.findall(r"^  (\w+):$", group, re.MULTILINE)
        assert results == ["alignments3D", "blob", "ctf"]
        assert group.count(f"metafile: '>bin_0{k}.cs'") == 3
        assert group.count(f"num_items: {len(table)}\n") == 3
        assert all((project / path.decode()).is_file() for path in table["blob/path"])
        count += len(table)
    assert count == N
    commands = files["commands.txt"].decode()
    assert str(project) in " ".join(commands.replace("#", "").split())
    assert all(line.startswith("#") for line in commands.splitlines())


def test_paths_beside_a_cs_file_become_absolute(make_cs_run, project):
    files = export(make_cs_run(f">{STACK}"), 1, "cryosparc", n_bins=4)
    table = np.load(BytesIO(files["bin_01.cs"]))
    assert {path.decode() for path in table["blob/path"]} == {str(project / STACK)}


def test_results_that_a_cs_file_lacks_are_named(make_cs_run):
    run = make_cs_run(STACK)
    path = Path(run.record["particles"])
    table = np.load(path)
    table.dtype.names = tuple(name.replace("ctf/", "x/") for name in table.dtype.names)
    with path.open("wb") as file:
        np.save(file, table)
    commands = export(run, 1, "cryosparc", n_bins=4)["commands.txt"].decode()
    assert "has no ctf:" in " ".join(commands.replace("#", "").split())


@pytest.mark.parametrize(
    ("lattice", "ctf"), [("D: 1", None), ("D: 33", np.zeros(3)), ("D: 33", np.zeros((0, 9)))]
)
def test_a_config_without_a_size_leaves_the_pixel_size_out(run, project, lattice, ctf):
    trained(project, box=32, ctf=project / "ctf.pkl")
    config = project / "config.yaml"
    config.write_text(config.read_text().replace("D: 33", lattice))
    (project / "ctf.pkl").write_bytes(pickle.dumps(ctf))
    _, [words] = commands_of(export(run, 1, "cryodrgn", n_bins=4))
    assert ("--Apix" in words) == (lattice == "D: 33")
