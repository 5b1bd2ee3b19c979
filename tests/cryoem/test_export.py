"""Files and commands for other programs, run from the folders that they name."""

import pickle
import re
import shlex
from dataclasses import replace
from io import BytesIO
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import starfile

from manifactor._support.workers import Here
from manifactor.cryoem.export import export, steady_samples
from manifactor.cryoem.files.cryosparc import npy_bytes
from manifactor.cryoem.files.formats import read_particles
from manifactor.cryoem.files.particles import euler_matrices
from manifactor.cryoem.files.stacks import write_stack
from manifactor.cryoem.runs import ParticleRun
from manifactor.runs.places import Place, bin_labels
from manifactor.tables.pickles import read_pickled_array

from ..conftest import PickledWorkers
from .files.test_cryosparc import structured
from .star_files import loop, row

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
        return ParticleRun(run, record, np.arange(N), tuple(places))

    return make


def star_text(angles, *, ctf):
    labels = "rlnImageName rlnOpticsGroup rlnAngleRot rlnAngleTilt rlnAnglePsi rlnOriginXAngst rlnOriginYAngst"
    more = "1.5 1.5"
    if ctf:
        labels += " rlnDefocusU rlnDefocusV rlnDefocusAngle"
        more += " 12000.0 11000.0 30.0"
    rows = [
        f'"{i:06d}@{STACK}" 1 {rot:.6f} {tilt:.6f} {psi:.6f} {more}\n'
        for i, (rot, tilt, psi) in enumerate(angles, start=1)
    ]
    microscope = "rlnVoltage rlnSphericalAberration rlnAmplitudeContrast"
    optics = loop(
        "optics", f"rlnOpticsGroup rlnImagePixelSize {microscope}", [row("1 3.0 300 2.7 0.1")]
    )
    return optics + loop("particles", labels, rows)


@pytest.fixture
def run(make_run, angles):
    return make_run(angles)


def commands_of(files):
    """The commands of a file as a shell reads them: the folder they run in, and the rest."""
    lines = files["commands.txt"].decode().splitlines()
    (cd, folder), *rest = [words for line in lines if (words := shlex.split(line, comments=True))]
    assert cd == "cd"
    return Path(folder), rest


def options_of(words):
    """Options with one value each."""
    return {word: value for word, value in pairwise(words) if word.startswith("-")}


def exported(run, program, *, factor=1, n_bins=4, training=None, workers=Here()):
    folder = run.folder / f"{program}-factor{factor}"
    how = {"folder": folder, "training": training, "workers": workers}
    return export(run, factor, program, n_bins=n_bins, **how)


def written(run, program):
    """The files of a program, in the folder where they are said to lie."""
    files = exported(run, program)
    folder = run.folder / f"{program}-factor1"
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder, files


def text_of(files):
    """The comments of the commands in one line."""
    return " ".join(files["commands.txt"].decode().replace("#", "").split())


def bins_of(labels):
    return {k: np.flatnonzero(labels == k) for k in np.unique(labels)}


def test_points_go_along_the_factor_and_hold_the_other_still(places):
    along, other = places
    labels, centres = bin_labels(along.coordinate, "interval", n_bins=6)
    rows = steady_samples(along, [other], bins_of(labels), centres)
    assert labels[rows].tolist() == list(range(6))
    assert np.abs(along.coordinate[rows] - centres).max() < 1 / 12
    assert np.ptp(other.coordinate[rows]) < 0.2


def test_points_and_embedding_are_in_the_coordinates_that_were_fitted(run):
    files = exported(run, "recovar")
    latents = read_pickled_array(run.input)
    assert np.array_equal(pickle.loads(files["embedding.pkl"]), latents.astype(np.float32))
    points = np.loadtxt(files["points.txt"].decode().splitlines())
    assert np.abs(latents[:, None] - points).max(axis=2).min(axis=0).max() < 1e-7
    assert files["points.txt"] == exported(run, "cryodrgn")["z_values.txt"]
    # Images without a CTF have one of -1 everywhere.
    assert pickle.loads(files["ctf.pkl"])[0, 2:].tolist() == [0, 0, 0, 300, 0, 1, 0]


def test_what_cannot_be_exported_or_has_changed_since_the_fit_is_refused(run, tmp_path):
    with pytest.raises(ValueError, match="--training"):
        exported(run, "relion", training=tmp_path)
    for program in ("cryodrgn", "recovar"):
        with pytest.raises(ValueError, match="images of all views"):
            exported(of_all_views(run, "C1"), program)
    path = Path(run.record["particles"])
    path.write_text(path.read_text().replace("_rlnAngleRot", "_rlnOther"))
    with pytest.raises(ValueError, match="RECOVAR needs the angles"):
        exported(run, "recovar")
    run.input.write_bytes(pickle.dumps(np.zeros((N + 1, 2))))
    with pytest.raises(ValueError, match="301 rows now and had 300 when fitted"):
        exported(run, "cryodrgn", n_bins=3)


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
    _, [words] = commands_of(exported(run, "cryodrgn"))
    assert float(options_of(words)["--Apix"]) == 6.0


def test_recovar_finds_particles_images_poses_and_ctf(make_run, angles):
    run = make_run(angles, ctf=True)
    folder, files = written(run, "recovar")
    where, [words] = commands_of(files)
    assert where == folder
    options = options_of(words)
    assert Path(words[2]).is_file()
    assert (Path(options["--datadir"]) / STACK).is_file()
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
    run, workers = make_run(angles, ctf=True), PickledWorkers()
    folder, files = written(run, "relion")
    where, lines = commands_of(files)
    assert where == project
    for words in lines:
        assert (words[0], words[-1]) == ("relion_reconstruct", "--ctf")
        options = options_of(words)
        assert Path(options["--o"]).parent == folder
        names = starfile.read(where / options["--i"])["particles"]["rlnImageName"]
        assert all((where / name.partition("@")[2]).is_file() for name in names)
    # The files do not depend on who makes them.
    assert exported(run, "relion", workers=workers) == files
    assert workers.done == 4 * ["particles_with"]


def of_all_views(run, symmetry):
    """The same run, as if it were fitted to images of all views."""
    record = {**run.record, "all_views": {"symmetry": symmetry}}
    return replace(run, record={**record, "input": record["particles"]})


def test_what_is_wrong_with_the_particles_is_reported(make_run, angles, project):
    run = make_run(angles * [0.1, 0.1, 1] + [0, 60, 0])
    for program in ("cryodrgn", "aspire"):
        with pytest.warns(UserWarning, match="volumes .* one view are meaningless"):
            files = exported(run, program)
        assert "meaningless" in text_of(files)
    (project / STACK).rename(project / "elsewhere.mrcs")
    with pytest.warns(UserWarning, match="not found"), pytest.warns(UserWarning, match="one view"):
        files = exported(replace(run), "relion")
    assert files["commands.txt"].startswith(b"# WARNING: all particles")


@pytest.fixture
def make_cs_run(run, project):
    """A function that gives a run the particles of a .cs file with these paths."""

    def make(path):
        fields = {"uid": np.arange(N, dtype="u8"), "blob/idx": np.arange(N, dtype="u4")}
        fields["blob/path"] = np.full(N, path.encode())
        fields["alignments3D/pose"] = np.random.default_rng(0).normal(size=(N, 3)).astype("f4")
        table = structured(fields | {"ctf/df1_A": np.zeros(N), "other/a": np.zeros(N)})
        (project / "J2").mkdir()
        particles = project / "J2" / "particles.cs"
        particles.write_bytes(npy_bytes(table))
        run.record["particles"] = str(particles)
        run.record["fingerprint"] = read_particles(particles).fingerprint
        return run

    return make


def test_cryosparc_imports_a_group_for_every_bin(make_cs_run, project):
    run = make_cs_run(STACK)
    files = exported(run, "cryosparc")
    for k in range(1, 5):
        group = files[f"bin_0{k}.csg"].decode()
        table = np.load(BytesIO(files[f"bin_0{k}.cs"]))
        results = re.findall(r"^  (\w+):$", group, re.MULTILINE)
        assert results == ["alignments3D", "blob", "ctf"]
        assert group.count(f"metafile: '>bin_0{k}.cs'") == 3
        assert group.count(f"num_items: {len(table)}\n") == 3
        assert all((project / path.decode()).is_file() for path in table["blob/path"])
    # Results that it lacks are named.
    path = Path(run.record["particles"])
    table = np.load(path)
    table.dtype.names = tuple(name.replace("ctf/", "x/") for name in table.dtype.names)
    path.write_bytes(npy_bytes(table))
    assert "has no ctf:" in text_of(exported(run, "cryosparc"))
