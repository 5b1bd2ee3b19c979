"""A small project folder with every kind of file that manifactor reads."""

import io
import json
import os
import pickle
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path

import mrcfile
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import zarr
from PIL import Image
from scipy.spatial.transform import Rotation

from manifactor import datasets
from manifactor.command.arguments import parse_arguments
from manifactor.command.fitting import checkpoint_folder, tasks_of
from manifactor.command.main import main
from manifactor.cryoem.all_views.model import motion_records
from manifactor.cryoem.all_views.motions import Motions
from manifactor.cryoem.all_views.volumes import MODEL_FILE
from manifactor.cryoem.files.particles import euler_matrices
from manifactor.runs.archive import Checkpoints, load, save
from manifactor.runs.folder import read_places, read_run, write_run
from tests.cryoem.moving import moving_model, moving_views
from tests.cryoem.simulate.test_structures import ATOMS, mmcif, pdb
from tests.cryoem.star_files import loop, row

N = 60
SIDE = 16  # pixels of an image
PIXEL = 8.0  # Angstrom

# A moment that all files were changed at, so that every corpus has the same bytes.
CHANGED = 1_600_000_000


def make_corpus(folder: Path) -> None:
    """Write all files into a folder, the same bytes in every folder of this machine."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            X = samples()
            _write_tables(X)
            _write_pickles(latents())
            _write_stores(X)
            _write_images(X)
            _write_particles(X)
            _write_others()
            _set_times()
            _write_runs()
            _set_times()
    finally:
        os.chdir(before)


def samples() -> np.ndarray:
    """Return samples on a rectangle, (60, 2)."""
    return datasets.sample("rectangle", N, random_state=0)[0]


def latents() -> np.ndarray:
    """Return samples on a cylinder, (60, 3), of which circle and interval are found."""
    rng = np.random.default_rng(0)
    turn, along = np.meshgrid(np.arange(12) / 12 * 2 * np.pi, np.arange(5) / 4)
    uneven = np.column_stack([turn.ravel(), along.ravel()])
    turn, along = (uneven + rng.uniform(-0.02, 0.02, (N, 2))).T
    return np.column_stack([np.cos(turn), np.sin(turn), 2 * along])


def _write_tables(X: np.ndarray) -> None:
    np.save("x.npy", X)
    np.save("whole.npy", (1000 * X).astype(np.int16))
    np.savez("x.npz", X=X, truth1=X[:, :1])
    np.savetxt("x.csv", X, delimiter=",", header="a,b", comments="", fmt="%.6f")
    names = [f"s{k}" for k in range(N)]
    lines = [f"{name}\t{a:.5f}\t{b:.5f}" for name, (a, b) in zip(names, X, strict=True)]
    Path("x.tsv").write_text("\n".join(["name\ta\tb", *lines, ""]))
    np.savetxt("x.txt", X, fmt="%.6g")
    _write_parquet(Path("x.parquet"), X, names)


def _write_parquet(path: Path, X: np.ndarray, names: list[str]) -> None:
    table = {"a": X[:, 0], "b": X[:, 1].astype(np.float32), "name": names}
    pa.parquet.write_table(pa.table(table), path, row_group_size=40)


def _write_pickles(X: np.ndarray) -> None:
    z = X.astype(np.float32)
    with open("z.1.pkl", "wb") as file:
        pickle.dump(z, file)
        pickle.dump(z, file)
    contents = {
        "old.pkl": (pickle.dumps(z, protocol=2)),
        "poses.pkl": pickle.dumps((np.zeros((N, 3, 3), np.float32), z)),
        "ctf.pkl": pickle.dumps(np.tile([[64, 4, 9e3, 9e3, 0, 300, 2.7, 0.1, 0]], (N, 1))),
        "ind.pkl": pickle.dumps(np.arange(N)),
        "list.pkl": pickle.dumps(list(range(N))),
    }
    for name, content in contents.items():
        Path(name).write_bytes(content)
    np.save("ind.npy", np.arange(N))


def _write_stores(X: np.ndarray) -> None:
    how = {"shape": X.shape, "chunks": (32, 2)}
    zarr.open_array("x.zarr", mode="w", dtype="f8", zarr_format=3, **how)[:] = X
    group = zarr.open_group("old.zarr", mode="w", zarr_format=2)
    group.create_array("X", dtype="f4", **how)[:] = X
    Path("table").mkdir()
    for part, rows in enumerate(np.array_split(np.arange(N), 2)):
        path = Path("table") / f"part-{part}.parquet"
        _write_parquet(path, X[rows], [str(k) for k in rows])


def _write_images(X: np.ndarray) -> None:
    """Write images of a spot that moves, as stacks, and volumes of it."""
    axis = np.linspace(-1, 1, SIDE)
    column = np.exp(-((axis - X[:, :1]) ** 2) / 0.1)
    line = np.exp(-((axis - X[:, 1:]) ** 2) / 0.1)
    images = (line[:, :, None] * column[:, None]).astype(np.float32)
    _write_mrc(Path("a.mrcs"), images[:40], stack=True)
    _write_mrc(Path("b.mrcs"), images[40:], stack=True)
    Path("volumes").mkdir()
    for k in range(9):
        volume = images[k, ::2, ::2, None] * column[k, ::2]
        _write_mrc(Path("volumes") / f"vol_{k:03d}.mrc", volume, stack=False)
    np.savetxt("volumes/z_values.txt", latents()[:9], fmt="%.6f")
    _write_pictures((255 * images[:20]).astype(np.uint8))


def _write_pictures(images: np.ndarray) -> None:
    """Write images as pictures in a folder, some of them in colour, and as pages of a file."""
    Path("pictures").mkdir()
    kinds = ("a{}.png", "b{}.jpg", "c{}.tif", "d{}.gif", "e{}.bmp", "f{}.webp")
    for k, image in enumerate(images):
        picture = Image.fromarray(image).convert(("L", "RGB", "P", "RGBA")[k // 6])
        name = kinds[k % 6].format(k)
        (picture.convert("RGB") if name.startswith("b") else picture).save(f"pictures/{name}")
    first, *others = map(Image.fromarray, images)
    first.save("pages.tif", save_all=True, append_images=others)


def _write_mrc(path: Path, data: np.ndarray, *, stack: bool) -> None:
    with mrcfile.new(path) as file:
        file.set_data(data.astype(np.float32))
        if stack:
            file.set_image_stack()
        file.voxel_size = PIXEL
        # The time of writing is in the label.
        file.header.label[0] = b"made for tests"


OPTICS = """rlnOpticsGroup rlnOpticsGroupName rlnVoltage rlnSphericalAberration
rlnAmplitudeContrast rlnImagePixelSize rlnImageSize"""
LABELS = """rlnImageName rlnOpticsGroup rlnDefocusU rlnDefocusV rlnDefocusAngle rlnAngleRot
rlnAngleTilt rlnAnglePsi rlnOriginXAngst rlnOriginYAngst rlnRandomSubset rlnClassNumber"""
OLD_LABELS = """rlnImageName rlnVoltage rlnSphericalAberration rlnAmplitudeContrast rlnDefocusU
rlnDefocusV rlnDefocusAngle rlnDetectorPixelSize rlnMagnification rlnAngleRot rlnAngleTilt
rlnAnglePsi rlnOriginX rlnOriginY"""


def _write_particles(X: np.ndarray) -> None:
    """Write the images as particles of one view, and as if they were seen from all sides."""
    rng = np.random.default_rng(1)
    angles = np.column_stack([rng.normal(30, 2, N), rng.normal(60, 2, N), np.zeros(N)])
    rng = np.random.default_rng(2)
    tilt = np.degrees(np.arccos(rng.uniform(-1, 1, N)))
    rot, psi = rng.uniform(-180, 180, (2, N))
    turned = np.column_stack([rot, tilt, psi])
    images = [f"{k + 1:06d}@a.mrcs" if k < 40 else f"{k - 39:06d}@b.mrcs" for k in range(N)]
    groups = [row(str(k), f"group{k}", "300", "2.7", "0.1", "8.0", "16") for k in (1, 2)]
    for name, n_groups, seen in (("one", 1, angles), ("two", 2, angles), ("all", 1, turned)):
        lines = [
            row(
                *(images[k], str(1 + k % n_groups), f"{9000 + 10 * k}", "9100", "12.5"),
                *(f"{angle:.4f}" for angle in seen[k]),
                *("0.5", "-1", str(1 + k % 2), "1"),
            )
            for k in range(N)
        ]
        text = loop("optics", " ".join(OPTICS.split()), groups[:n_groups])
        Path(f"{name}.star").write_text(text + loop("particles", " ".join(LABELS.split()), lines))
    optics = ("300", "2.7", "0.1", "9000", "9100", "12.5", "5.0", "6250")
    poses = [[f"{angle:.4f}" for angle in each] for each in angles]
    lines = [row(images[k], *optics, *poses[k], "0", "1") for k in range(N)]
    Path("old.star").write_text(loop("", " ".join(OLD_LABELS.split()), lines))
    _write_cs(X, angles)


def _write_cs(X: np.ndarray, angles: np.ndarray) -> None:
    numbers = {
        **{"blob/psize_A": PIXEL, "ctf/accel_kv": 300, "ctf/cs_mm": 2.7, "ctf/amp_contrast": 0.1},
        **{"ctf/df2_A": 9e3, "ctf/df_angle_rad": 0, "ctf/phase_shift_rad": 0},
        "alignments3D/psize_A": PIXEL,
    }
    fields = {
        "uid": np.arange(N, dtype=np.uint64) + 100,
        "blob/path": np.array([f"{'ab'[k >= 40]}.mrcs" for k in range(N)], "S8"),
        "blob/idx": np.array([k % 40 for k in range(N)], np.uint32),
        "blob/shape": np.full((N, 2), SIDE, np.uint32),
        **{name: np.full(N, value, np.float32) for name, value in numbers.items()},
        "ctf/df1_A": np.linspace(9e3, 1e4, N, dtype=np.float32),
        "ctf/exp_group_id": np.arange(N, dtype=np.uint32) % 2,
        "alignments3D/pose": _rotation_vectors(angles),
        "alignments3D/shift": np.ones((N, 2), np.float32),
        "alignments3D/split": np.arange(N, dtype=np.uint32) % 2,
        "alignments3D/class": np.zeros(N, np.uint32),
    }
    _write_fields("particles.cs", fields)
    modes = {f"components_mode_{k}/value": X[:, k].astype("f4") for k in (0, 1)}
    _write_fields("modes.cs", {"uid": fields["uid"], **modes})


def _rotation_vectors(angles: np.ndarray) -> np.ndarray:
    """Return the poses of cryoSPARC, which turn the image to the molecule."""
    turns = Rotation.from_matrix(euler_matrices(angles)).inv()
    return turns.as_rotvec().astype(np.float32)


def _write_fields(name: str, fields: dict[str, np.ndarray]) -> None:
    kinds = [(each, values.dtype, values.shape[1:]) for each, values in fields.items()]
    table = np.zeros(N, kinds)
    for each, values in fields.items():
        table[each] = values
    with open(name, "wb") as file:
        np.save(file, table)


def _write_others() -> None:
    Path("molecule.pdb").write_text(pdb(ATOMS))
    Path("molecule.cif").write_text(mmcif(ATOMS))
    training = "dataset_args:\n  ctf: ctf.pkl\nlattice_args:\n  D: 65\n  extent: 0.5\n"
    Path("config.yaml").write_text(training)
    Path("weights.1.pkl").write_bytes(b"")
    address = {"type": "Scheduler", "address": "tcp://127.0.0.1:1", "workers": {}}
    Path("scheduler.json").write_text(json.dumps(address))


def _write_runs() -> None:
    for line in (
        "fit x.csv --method sum --out run",
        "fit z.1.pkl --particles one.star --out z-run",
        "fit two.star --method sum --out image-run",
        "fit volumes --method sum --out volume-run",
        "fit x.parquet --method sum --coordinates parquet --out part-run",
    ):
        if main(line.split()) != 0:
            raise RuntimeError(f"the corpus cannot be made: {line}")
    _write_moving_run()
    _write_checkpoints("table --coordinates parquet", Path("large"))
    for path in sorted(Path().glob("*run")):
        _settle_run(path)


def _write_moving_run() -> None:
    """Write the run of coordinates once more, as that of particles of all views."""
    record, fit = read_run("z-run")
    rows, places = read_places("z-run")
    deviation = np.full(N, 0.02)
    places = tuple(replace(place, deviation=deviation) for place in places)
    found = {
        "symmetry": "C1",
        "agreement": [0.99, 0.9],
        "information": [30.0, 20.0],
        "consistency": [0.98, 0.95],
        "motions": motion_records(moving_views(), places),
    }
    record = {**record, "all_views": found}
    # The run has its circle first; the model of the tests has it last.
    model = moving_model()
    volumes, motions = model.volumes[[0, 2, 3, 1]], Motions(("circle", "interval"))
    trees = {MODEL_FILE: replace(model, volumes=volumes, motions=motions)}
    write_run(fit, "moving-run", record=record, places=places, rows=rows, trees=trees)


def _write_checkpoints(line: str, out: Path) -> None:
    """Write what a fit of a large table that was stopped has left."""
    task = tasks_of(parse_arguments(["fit", *line.split()])[1])[0]
    folder = checkpoint_folder(out)
    task.fit(task.read(), out, stages=Checkpoints(folder, task.key))
    (out / "coordinates").rename(folder / "coordinates")
    for path in out.iterdir():
        path.unlink()
    out.rmdir()


def _settle_run(folder: Path) -> None:
    """Replace the seconds that a fit took: they differ from time to time."""
    fit = load(folder / "factorization.npz")
    fit.timings_ = dict.fromkeys(fit.timings_, 0.5)
    save(fit, folder / "factorization.npz")
    path = folder / "run.json"
    record = json.loads(path.read_text())
    record["seconds"] = dict.fromkeys(record["seconds"], 0.5)
    if "all_views" in record:
        record["all_views"].pop("seconds", None)
    path.write_text(json.dumps(record, indent=2) + "\n")


def _set_times() -> None:
    for path in Path().rglob("*"):
        os.utime(path, (CHANGED, CHANGED))
