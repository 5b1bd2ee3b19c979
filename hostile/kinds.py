"""Which files are damaged, and what is then done with them."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from manifactor import cluster as connecting
from manifactor import datasets, load
from manifactor.command.fitting import checkpoint_folder
from manifactor.cryoem.all_views.volumes import open_motions, read_volumes
from manifactor.runs.folder import read_run
from manifactor.runs.run import open_run
from manifactor.tables.files import read_samples
from tests.views.scenes import open_scene

from .corpus import latents, samples

# A command as it is typed, with {} for the damaged file, or a function of that file.
Call = str | Callable[[Path], object]


@dataclass(frozen=True)
class Reader:
    """Files, and what reads each of them."""

    targets: tuple[str, ...]  # patterns of files of the corpus, of which one is damaged
    # Of which one is drawn; all of them read the file if it is not damaged. Those that stop at
    # reading are in the majority.
    calls: tuple[Call, ...]


def load_and_place(path: Path) -> None:
    """Read an archive and place new samples."""
    fit = load(path)
    known = {2: samples(), 3: latents()}
    X = known.get(fit.n_features_in_, np.full((9, fit.n_features_in_), 0.1))
    fit.transform(X[:5] + 0.01)
    fit.locate(X[:5] + 0.01)
    fit.coordinates()
    str(fit.evidence_)


def place_samples(path: Path) -> None:
    load("run").locate(read_samples(path)[:20, :2])


def refused_pickle(path: Path) -> None:
    """Read a pickle that holds no coordinates; it is refused, damaged or not."""
    with suppress(ValueError):
        read_samples(path)


def read_store(path: Path) -> None:
    read_samples(path.parts[0])


def read_scene(path: Path) -> None:
    """Read a run as the explorer does."""
    # Parts of coordinates lie in a folder of the run.
    scene = open_scene(Path(path.parts[0]))
    for what in (scene.about, scene.spectrum, scene.angles, scene.evidence):
        json.dumps(what())
    scene.select([])


def see_motions(path: Path) -> None:
    """Draw the molecule of a run."""
    run = open_run(path.parent)
    motions = open_motions(run, read_run(path.parent)[1])
    if motions is not None:  # the file may be gone
        motions.along(0, count=2, size=16)
        motions.volumes([1], [np.array([0.5])])


def read_structure(path: Path) -> None:
    datasets.read_molecule(path, rotor=["B"])


def read_address(path: Path) -> None:
    connecting._address(str(path))


def volumes_along(path: Path) -> None:
    read_volumes(path.parent, open_run("z-run"))


def lines(text: str) -> tuple[str, ...]:
    return tuple(text.strip().splitlines())


# Of a table, a store, a file of particles, and a run.
TABLE: tuple[Call, ...] = (
    *([read_samples] * 2 + [place_samples]),
    *lines("""
fit {} --dry-run
fit {} --standardise --dry-run
fit {} --drop 0 --dry-run
fit {} --method sum --out new
fit {} --out new
"""),
)
STORE: tuple[Call, ...] = (
    read_store,
    *lines("""
fit {} --dry-run
fit {} --coordinates parquet --dry-run
fit {} --coordinates parquet --method sum --out new
fit {} --coordinates csv --standardise --out new
"""),
)
PARTICLES: tuple[Call, ...] = lines("""
fit {} --dry-run
fit {} --phase-flip --dry-run
fit {} --view 30,60 --width 8 --dry-run
fit z.1.pkl --particles {} --dry-run
fit z.1.pkl --particles {} --out new
fit {} --method sum --out new
""")
READ_RUN: tuple[Call, ...] = (
    *([read_scene] * 2),
    *lines("""
select {run} --factor 2 --range .1 .7 --out new.csv
select {run} --factor 2 --range .1 .7 --invert --out new.npy
select {run} --column factor2_confidence 0 1 --out new.pkl
select {run} --min-confidence 0 --out new.parquet
"""),
)
REPORT = "report {run} --out new.html"
AVERAGE = "average {run} --factor 2 --bins 2 --out new"
READ_PARTICLE_RUN: tuple[Call, ...] = (
    *READ_RUN,
    *["export {run} --to relion --factor 2 --bins 2 --out new"] * 2,
    "select {run} --factor 2 --range .1 .7 --out new.star",
    "select {run} --column rlnDefocusU 9000 9400 --out new.csv",
)
READ_ARCHIVE: tuple[Call, ...] = (*[load_and_place] * 14, REPORT)
PICTURES: tuple[Call, ...] = lines("""
fit {} --dry-run
fit {} --dry-run
fit {} --method sum --out new
""")
STACK: tuple[Call, ...] = lines("""
fit {} --dry-run
fit one.star --dry-run
fit all.star --all-views --dry-run
fit {} --method sum --out new
fit one.star --method sum --out new
average image-run --factor 2 --bins 2 --out new
""")
VOLUMES: tuple[Call, ...] = (
    volumes_along,
    *lines("""
fit volumes --dry-run
fit volumes --method sum --out new
average volume-run --factor 1 --bins 2 --out new
"""),
)
PARTS: tuple[Call, ...] = (
    read_scene,
    "select {run} --factor 1 --range .2 .7 --out new.csv",
    "select {run} --column sample 0 9 --out new.parquet",
)
POINTS = "export z-run --to cryodrgn --factor 2 --bins 2 --out new"
INDEXED = "fit z.1.pkl --particles one.star --ind {}"
# Of inputs that were changed after their fit.
USED: dict[str, tuple[Call, ...]] = {
    "x.csv": ("select run --column a 0 .5 --out new.npy",),
    "z.1.pkl": (POINTS,),
    "one.star": lines("""
select z-run --column rlnDefocusU 9000 9500 --out new.csv
select z-run --factor 2 --range .1 .6 --out new.star
export z-run --to aspire --factor 2 --bins 2 --out new
export z-run --to cryodrgn --factor 2 --bins 2 --out new
"""),
    "two.star a.mrcs": lines("""
average image-run --factor 2 --bins 2 --out new
export image-run --to relion --factor 2 --bins 2 --out new
"""),
}
STAGES = ".large.stages/fit.* .large.stages/coord*"

READERS: list[tuple[str, str, tuple[Call, ...]]] = [
    ("npy", "x.npy whole.npy", TABLE),
    ("npz", "x.npz", TABLE),
    ("pickle", "z.1.pkl old.pkl", TABLE),
    ("pickle", "poses.pkl ctf.pkl", (refused_pickle,)),
    ("text", "x.csv x.tsv x.txt", TABLE),
    ("parquet", "x.parquet", (*TABLE, *STORE)),
    ("zarr", "x.zarr/* old.zarr/*", STORE),
    ("folder", "table/*", STORE),
    ("indices", "ind.pkl list.pkl ind.npy", (f"{INDEXED} --dry-run", f"{INDEXED} --out new")),
    ("star", "one.star two.star old.star", PARTICLES),
    ("star", "one.star two.star", ("fit {} --class 1 --optics-group 1 --dry-run",)),
    ("star", "all.star", ("fit {} --all-views --dry-run", PARTICLES[3])),
    ("cs", "particles.cs", PARTICLES),
    ("cs", "particles.cs", ("fit {} --class 0 --optics-group 1 --dry-run",)),
    ("cs", "modes.cs", (*TABLE, "fit {} --particles particles.cs --dry-run")),
    ("stack", "a.mrcs", STACK),
    ("pictures", "pictures/*", PICTURES),
    ("pictures", "pages.tif", PICTURES),
    ("volumes", "volumes/z_values.txt", (volumes_along,)),
    ("volumes", "volumes/*.mrc", VOLUMES),
    ("record", "run/run.json", (*READ_RUN, REPORT, "select run --column a 0 .5 --out new.npy")),
    ("record", "z-run/run.json", (*READ_PARTICLE_RUN, POINTS)),
    ("record", "image-run/run.json", (*READ_PARTICLE_RUN, AVERAGE)),
    ("record", "moving-run/run.json", (*READ_RUN, REPORT, AVERAGE, see_motions)),
    ("coordinates", "run/coordinates.csv", (*READ_RUN, REPORT)),
    ("coordinates", "z-run/coordinates.csv", (*READ_PARTICLE_RUN, POINTS)),
    ("coordinates", "image-run/coordinates.csv", (*READ_PARTICLE_RUN, AVERAGE)),
    ("coordinates", "moving-run/coordinates.csv", (*READ_RUN, REPORT, AVERAGE)),
    ("archive", "*run/factorization.npz", READ_ARCHIVE),
    ("parts", "part-run/coordinates/* part-run/run.json", PARTS),
    ("motions", "moving-run/motions.npz", (*[see_motions] * 6, AVERAGE, read_scene)),
    ("checkpoints", STAGES, ("fit {resumed} --resume",)),
    *(("used", targets, calls) for targets, calls in USED.items()),
    ("training", "config.yaml ctf.pkl", (POINTS,)),
    ("structure", "molecule.pdb molecule.cif", (read_structure,)),
    ("scheduler", "scheduler.json", (read_address,)),
]
KINDS: dict[str, list[Reader]] = {}
for kind, targets, calls in READERS:
    KINDS.setdefault(kind, []).append(Reader(tuple(targets.split()), calls))

# What a fit that was stopped was, by the folder of its checkpoints.
RESUMED = {checkpoint_folder(Path("large")).name: "table --coordinates parquet --out large"}


def line_of(call: str, target: str) -> str:
    """Return the command for a damaged file."""
    top = Path(target).parts[0]
    # Of a table or pictures in a folder, the folder is read.
    given = top if top in ("x.zarr", "old.zarr", "table", "pictures") else target
    return call.format(given, run=top, resumed=RESUMED.get(top, ""))


def described(call: Call, target: str) -> str:
    """Return what is done with a damaged file, in words."""
    if isinstance(call, str):
        return f"manifactor {line_of(call, target)}"
    return f"{call.__name__}({json.dumps(target)})"
