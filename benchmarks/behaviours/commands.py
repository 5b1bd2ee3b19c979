"""Sessions of commands: what they print, which files they leave, what those hold.

A session writes inputs to an empty folder and runs commands there. Every new file is
listed, and read by its ending. Files of run folders whose layout is the package's own
(`factorization.npz`) are not read; their fit is loaded.
"""

import io
import json
import os
import pickle
import re
import shlex
import subprocess
import sys
import tempfile
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path

import mrcfile
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import zarr

from manifactor import datasets, load

from behaviours.digest import Prose

# Texts for people in run.json, and what differs between two runs of one command (or is
# the same in all: the meanings of tests, which `report` prints).
SENTENCES = {"why", "reason", "advice", "evidence", "problem", "text", "reproduce"}
PASSING = {"seconds", "versions", "input_changed", "input", "particles", "meaning"}

NUMBER = re.compile(r"(?<![\w.])-?\d+\.?\d*(?:e[+-]?\d+)?|\d+")
COSTS = re.compile(r"[\d.,]+ (GB|MB|kB|s|minutes|hours)\b")


def command(line):
    """Run a command in this process; return its exit code and what it says."""
    # Not in a process of its own: imports would take most of the time.
    from manifactor.__main__ import main

    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["manifactor", *shlex.split(line)]
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main()
        except SystemExit as stop:
            code = stop.code
    return code, out.getvalue(), err.getvalue()


def session(inputs, *lines):
    """Run commands in a folder with inputs; return all that can be seen of them."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        inputs()
        before = files()
        told = {}
        for number, line in enumerate(lines, start=1):
            code, out, err = command(line)
            told[f"{number} {line}"] = {
                "exit": code,
                "lines of errors": len(err.splitlines()),
                # What follows in a report passes, or stands in run.json.
                "out": _prose(out.partition("Computation:")[0]),
                "err": _prose(err),
            }
        written = [path for path in files() if path not in before]
        return {
            "command": told,
            "files": [str(path) for path in written],
            "content": {str(path): _content(path) for path in written},
        }


def files():
    """Return all files in this folder and those inside it."""
    return sorted(path for path in Path().rglob("*") if path.is_file())


def _content(path):
    """Return what a file holds; None where only its presence counts."""
    if path.name == "factorization.npz":
        return {"coordinates": load(path).coordinates()}
    read = READERS.get(path.suffix) if path.name != "motions.npz" else None
    return read(path) if read else None


def _text(path):
    """Return the numbers in a text, and its different lines without them."""
    text = path.read_text().replace(str(Path.cwd()), "FOLDER")
    lines = dict.fromkeys(NUMBER.sub("#", line) for line in text.splitlines())
    numbers = np.array([float(number) for number in NUMBER.findall(text)])
    return {"lines": list(lines), "numbers": numbers}


def _record(path):
    return _marked(json.loads(path.read_text()))


def _marked(value, key=""):
    """Return a record with only the keys of what passes, its sentences as prose."""
    if key in PASSING:
        return "..."
    if isinstance(value, dict):
        return {k: _marked(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [_marked(inner, key) for inner in value]
    return _prose(value) if key in SENTENCES and value else value


def _page(path):
    """Return the headings of a page, and how many figures and tables it has."""
    page = path.read_text()
    headings = re.findall(r"<h[1-4][^>]*>(.*?)</h[1-4]>", page, flags=re.DOTALL)
    counts = {tag: page.count(f"<{tag}") for tag in ("svg", "img", "table", "script")}
    return {"headings": _prose("; ".join(headings)), **counts}


def _images(path):
    with mrcfile.open(path) as file:
        return {"images": np.array(file.data), "width": float(file.voxel_size.x)}


def _columns(path):
    table = pa.parquet.read_table(path).to_pydict()
    return {name: np.array(values) for name, values in table.items()}


def _fields(path):
    table = np.load(path)
    values = {n: table[n] for n in table.dtype.names}
    return {n: v if v.dtype.kind in "fiu" else str(v[0]) for n, v in values.items()}


READERS = {
    ".csv": _text,
    ".star": _text,
    ".txt": lambda path: {"text": _prose(path.read_text())},
    ".json": _record,
    ".html": _page,
    ".mrc": _images,
    ".mrcs": _images,
    ".npy": lambda path: {"array": np.load(path)},
    ".npz": lambda path: dict(np.load(path)),
    ".pkl": lambda path: {"array": np.asarray(pickle.loads(path.read_bytes()))},
    ".parquet": _columns,
    ".cs": _fields,
}


def _prose(text):
    """Return a text without the folder's name, and without times and memory."""
    return Prose(COSTS.sub(r"# \1", text.replace(str(Path.cwd()), "FOLDER")))


def nothing():
    """No input."""


def samples(n_samples=400):
    return datasets.sample("cylinder", n_samples, random_state=1)[0]


def arrays():
    np.save("a.npy", samples())
    np.save("b.npy", datasets.sample("square", 400, random_state=1)[0])
    np.savez("a.npz", X=samples().astype(np.float32), other=np.arange(3))
    store = zarr.open_array("a.zarr", mode="w", shape=(400, 3), chunks=(128, 3), dtype="f8")
    store[:] = samples()


def tables():
    """A table as csv, tsv, txt and Parquet, with an index, a label and scales."""
    X = samples() * [1, 100, 1]
    rows = [f"{i},{a:.6f},{b:.6f},{c:.6f},{'xy'[i % 2]}" for i, (a, b, c) in enumerate(X)]
    lines = ["id,length,cosine,sine,label", *rows, ""]
    Path("table.csv").write_text("\n".join(lines))
    Path("table.tsv").write_text("\n".join(lines).replace(",", "\t"))
    np.savetxt("table.txt", X, fmt="%.6f")
    columns = {"length": X[:, 0], "cosine": X[:, 1] / 100, "sine": X[:, 2]}
    table = pa.table({**columns, "label": ["xy"[i % 2] for i in range(len(X))]})
    pa.parquet.write_table(table, "table.parquet")
    Path("parts").mkdir()
    for part in range(2):
        pa.parquet.write_table(table[200 * part :][:200], f"parts/{part}.parquet")


def latents():
    """Coordinates of other programs, and the particles that they belong to."""
    z = samples().astype(np.float32)
    Path("z.5.pkl").write_bytes(pickle.dumps(z))
    Path("ind.pkl").write_bytes(pickle.dumps(np.arange(400) + 10))
    rows = "".join(f"{i + 1:06d}@a.mrcs {i % 2 + 1} {9000 + i}\n" for i in range(420))
    labels = "_rlnImageName #1\n_rlnRandomSubset #2\n_rlnDefocusU #3\n"
    Path("all.star").write_text(f"data_\n\nloop_\n{labels}{rows}")
    fields = [("uid", "u8"), *((f"components_mode_{k}/value", "f4") for k in range(3))]
    table = np.zeros(len(z), fields)
    table["uid"] = np.arange(len(z)) + 100
    for k in range(3):
        table[f"components_mode_{k}/value"] = z[:, k]
    with open("modes.cs", "wb") as file:
        np.save(file, table)


def volumes():
    """A spot that goes round in a box, as volumes and as images."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 200)
    spots = 0.4 * np.stack([np.cos(angle), np.sin(angle), 0 * angle])[..., None]
    sides = np.exp(-((np.linspace(-1, 1, 16) - spots) ** 2) / 0.1)
    boxes = np.einsum("ni,nj,nk->nijk", *sides)
    boxes = (boxes + 0.01 * rng.normal(size=boxes.shape)).astype(np.float32)
    Path("volumes").mkdir()
    for number, box in enumerate(boxes):
        mrcfile.write(f"volumes/vol_{number:03d}.mrc", box, voxel_size=5.0)
    with mrcfile.new("images.mrcs") as file:
        file.set_data(boxes.sum(axis=-1))
        file.set_image_stack()
        file.voxel_size = 5.0


class Evil:
    """An object whose pickle would run a command."""

    def __reduce__(self):
        return os.mkdir, ("executed",)


def damaged():
    np.save("good.npy", samples(60))
    Path("cut.npy").write_bytes(Path("good.npy").read_bytes()[:900])
    Path("cut.npz").write_bytes(b"PK\x03\x04 and no more")
    Path("empty.csv").write_text("")
    Path("words.csv").write_text("a,b\nx,y\nz,u\n")
    Path("hole.csv").write_text("a,b\n" + "1,2\n" * 50 + "3,\n" + "4,x\n")
    Path("evil.pkl").write_bytes(pickle.dumps(Evil()))
    Path("cut.parquet").write_bytes(b"PAR1 and no more PAR1")
    Path("cut.mrcs").write_bytes(b"\0" * 500)
    Path("cut.star").write_text("data_\nloop_\n_rlnImageName #1\n_rlnX #2\n1@a.mrcs\n")
    Path("cut.cs").write_bytes(b"\x93NUMPY and no more")
    Path("folder").mkdir()


def program():
    """The program itself, in a process of its own."""
    told = {}
    for line in ("--version", "fit --nonsense"):
        words = [sys.executable, "-m", "manifactor", *line.split()]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        told[line] = {"exit": done.returncode, "speaks": bool(done.stdout)}
    return told


SMALL = "--size 54 --pixel-size 4"
UNREADABLE = "nowhere.npy cut.npy cut.npz empty.csv words.csv hole.csv evil.pkl "
UNREADABLE += "cut.parquet cut.mrcs cut.star cut.cs folder"
BAD = [
    *(f"fit {name} --out run" for name in UNREADABLE.split()),
    "fit good.npy --out folder",
    "fit good.npy --columns nonsense --out run",
    "fit good.npy --n-factors 0 --out run",
    "fit good.npy --method guess --out run",
    "fit good.npy --all-views --out run",
    "fit good.npy --particles cut.star --out run",
    "simulate nonsense",
    "simulate torus --n 0",
    "select folder --factor 1 --range 0 1 --out a.csv",
    "average nowhere --factor 1",
    "report folder",
    "export nowhere --to relion --factor 1",
    "views good.npy",
]
SESSIONS = {
    name: partial(session, *how)
    for name, how in {
        "commands: all views": (
            nothing,
            "simulate molecule --views all --n 400 --snr 100 --out data",
            "views data/particles.star --width 20 --rows 3 --out map.png",
            "fit data/particles.star --all-views --out run",
            "select run --factor 1 --range .2 .6 --out part.star",
            "average run --factor 1 --bins 3 --out means",
            "export run --to relion --factor 1 --bins 3 --out bins",
            "export run --to recovar --factor 1 --bins 3",
            "export run --to cryodrgn --factor 1 --bins 3",
            "report run --out page.html",
        ),
        "commands: molecule": (
            nothing,
            f"simulate molecule --n 300 --snr 100 {SMALL} --out data",
            "fit data/particles.star --out run",
            "fit data/particles.star --n-factors 2 --components 8 --out few",
            "fit data/particles.star --class 1 --out no",
            "select run --factor 1 --range .2 .6 --out part.star",
            "average run --factor 1 --bins 4 --match --halves --out means",
            "average run --factor 1 --factor 2 --bins 3 --out grid",
            "export run --to relion --factor 1 --bins 3 --out bins",
            "report run --out page.html",
        ),
        "commands: contrast": (
            nothing,
            f"simulate molecule --n 200 --defocus 8000 15000 {SMALL} --motions xy "
            "--seed 3 --out data",
            "fit data/particles.star --phase-flip --mask-radius 80 --out run",
            "fit data/particles.star --view 180,120 --standardise --dry-run --out no",
        ),
        "commands: several views": (arrays, "fit a.npy b.npy --sense geometry --out run"),
        "commands: shapes": (
            nothing,
            "simulate torus --n 50 --noise .1 --ambient-dimension 6 --out a.npz",
            "simulate cylinder --n 50 --sampling outliers --out b.npz",
            "simulate torus --n 50 --out b.npz",
            "simulate torus --n 50 --out b.npz --overwrite",
        ),
        "commands: arrays": (
            arrays,
            "fit a.npy --out npy",
            "fit a.npz --method triplets --n-factors 2 --seed 4 --out npz",
            "fit a.zarr --out zarr",
            "fit a.npy --out npy",
            "fit a.npy --overwrite --n-functions 50 --out npy",
            "fit a.npy --fit-samples 300 --solver arpack --n-functions 30 --out drawn",
            "report npy",
        ),
        "commands: tables": (
            tables,
            "fit table.csv --drop id --standardise --out csv",
            "fit table.tsv --columns length,2-3 --standardise --out tsv",
            "fit table.txt --preparation none --neighbors brute --out txt",
            "fit table.parquet --out parquet",
            "fit parts --fit-samples 250 --coordinates parquet --out parts-run",
            "select csv --column length 1 2 --min-confidence .2 --out part.csv",
            "report tsv --out page.html",
        ),
        "commands: latents": (
            latents,
            "fit z.5.pkl --particles all.star --ind ind.pkl --out run",
            "fit modes.cs --out modes",
            *(
                f"select run --factor 1 --range .2 .6 --out part{ending}"
                for ending in (".star", ".csv", ".pkl", ".npy", ".parquet")
            ),
            "select run --factor 2 --range 350 10 --invert --out rest.star",
            "select run --column rlnDefocusU 9000 9200 --out near.star",
            "select modes --factor 1 --range 0 .3 --out part.cs",
            "export run --to relion --factor 1 --bins 3",
            "export run --to recovar --factor 1 --bins 3",
            "export run --to cryodrgn --factor 1 --bins 3",
            "export run --to aspire --factor 1 --bins 3",
            "export modes --to cryosparc --factor 1 --bins 3",
        ),
        "commands: volumes": (
            volumes,
            "fit volumes --n-factors 1 --out run",
            "fit images.mrcs --sense geometry --out images-run",
            "average run --factor 1 --bins 3 --out means",
        ),
        "commands: damaged files": (damaged, *BAD),
    }.items()
} | {"commands: program": program}
