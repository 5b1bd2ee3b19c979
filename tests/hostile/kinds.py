"""Which files are damaged, and what is then done with them."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from manifactor import datasets, load
from manifactor.cluster import connecting
from manifactor.command.resuming import checkpoint_folder
from manifactor.inputs.files import read_samples
from manifactor.runs.folder import read_run
from manifactor.runs.given_volumes import read_volumes
from manifactor.runs.motions import open_motions
from manifactor.runs.run import open_run
from manifactor.studies.keeping import kept_records
from manifactor.studies.paper import recipes
from manifactor.views.explorer.scene import open_scene

from .binary import MRC, NPY, PICKLE, ZIP
from .corpus import latents, samples
from .mutations import BYTES, Mutation
from .parquet import PARQUET
from .text import JSON, TEXT

# How files are damaged, by the ending of their names.
FORMS: dict[str, tuple[Mutation, ...]] = {
    ".npy": NPY,
    ".cs": NPY,
    ".npz": ZIP,
    ".pkl": PICKLE,
    ".parquet": PARQUET,
    ".mrc": MRC,
    ".mrcs": MRC,
    ".json": JSON,
    ".part": JSON,
    ".zarray": JSON,
    ".zgroup": JSON,
    **dict.fromkeys((".csv", ".tsv", ".txt", ".star", ".pdb", ".cif", ".yaml"), TEXT),
}


def mutations_of(path: str) -> tuple[Mutation, ...]:
    """Return the damages that suit a file."""
    name = Path(path).name
    return FORMS.get(Path(path).suffix or name, BYTES)


# A command as it is typed, with {} for the damaged file, or a function of that file.
Call = str | Callable[[Path], object]


@dataclass(frozen=True)
class Kind:
    """Files of one kind, and what reads them.

    Attributes
    ----------
    targets : tuple of str
        Patterns of files of the corpus, of which one is damaged.
    calls : tuple of str or callable
        Of which one is drawn; those that stop at reading are in the majority.
    """

    targets: tuple[str, ...]
    calls: tuple[Call, ...]


def load_and_place(path: Path) -> None:
    """Read an archive and place new samples."""
    fit = load(path)
    X = latents() if fit.n_features_in_ == 3 else samples()
    fit.transform(X[:5] + 0.01)
    fit.locate(X[:5] + 0.01)
    fit.coordinates()
    str(fit.evidence_)


def place_samples(path: Path) -> None:
    """Read samples and place them by an archive."""
    load("run").locate(read_samples(path)[:20])


def read_scene(path: Path) -> None:
    """Read a run as the explorer does."""
    # Parts of coordinates lie in a folder of the run.
    scene = open_scene(Path(path.parts[0]))
    for what in (scene.about, scene.spectrum, scene.angles, scene.evidence):
        json.dumps(what())
    scene.selected([])


def see_motions(path: Path) -> None:
    """Draw the molecule of a run."""
    run = open_run(path.parent)
    motions = open_motions(run, read_run(path.parent)[1])
    if motions is None:  # the file is gone
        return
    motions.along(0, count=2, size=16)
    motions.volumes([1], [np.array([0.5])])


def read_structure(path: Path) -> None:
    """Read the atoms of a molecule."""
    datasets.read_molecule(path, rotor=["B"])


def read_study(path: Path) -> None:
    """Read the records of an interrupted study."""
    jobs = [{"shape": "torus", "seed": seed} for seed in range(3)]
    kept_records(path.with_suffix(""), jobs)


def read_reproduction(path: Path) -> None:
    """Read the numbers of an earlier reproduction."""
    recipes._opened(path.parent, recipes.Settings())


def read_address(path: Path) -> None:
    """Read a scheduler file."""
    connecting._address(str(path))


def volumes_along(path: Path) -> None:
    """Read a series of volumes along a factor."""
    read_volumes(path.parent, open_run("z-run"))


TABLE = (
    "fit {} --dry-run",
    "fit {} --dry-run",
    "fit {} --standardise --dry-run",
    "fit {} --columns 0-1 --dry-run",
    read_samples,
    read_samples,
    place_samples,
    "fit {} --method sum --out new",
    "fit {} --out new",
)
STORE = (
    "fit {} --dry-run",
    "fit {} --coordinates parquet --dry-run",
    read_samples,
    "fit {} --coordinates parquet --method sum --out new",
    "fit {} --coordinates csv --standardise --out new",
)
PARTICLES = (
    "fit {} --dry-run",
    "fit {} --phase-flip --dry-run",
    "fit {} --all-views --dry-run",
    "fit {} --view 30,60 --width 8 --dry-run",
    "fit {} --class 1 --optics-group 1 --dry-run",
    "fit z.1.pkl --particles {} --dry-run",
    "fit z.1.pkl --particles {} --out new",
    "fit {} --method sum --out new",
)
LINES = ("select {run} --factor 1 --range .2 .7 --out new.csv",) * 2
READ_RUN: tuple[Call, ...] = (
    "select {run} --factor 1 --range .2 .7 --out new.csv",
    "select {run} --factor 2 --range .2 .7 --out new.pkl",
    "select {run} --column confidence1 0 1 --invert --out new.parquet",
    "select {run} --column a 0 .5 --out new.npy",
    "select {run} --min-confidence .5 --out new.star",
    "average {run} --factor 2 --bins 2 --out new",
    "export {run} --to cryodrgn --factor 2 --bins 2 --out new",
    "export {run} --to relion --factor 2 --bins 2 --out new",
    "export {run} --to recovar --factor 1 --bins 2 --out new",
    read_scene,
    read_scene,
    "report {run} --out new.html",
)
READ_ARCHIVE: tuple[Call, ...] = (
    *[load_and_place] * 14,
    "fit x.csv --method sum --reuse {run} --out new",
    "fit z.1.pkl --reuse {run} --out new",
    "report {run} --out new.html",
)
READ_MOTIONS: tuple[Call, ...] = (
    *[see_motions] * 6,
    "average {run} --factor 2 --bins 2 --out new",
    read_scene,
)

RUNS = "run/", "z-run/", "image-run/", "moving-run/"

KINDS: dict[str, Kind] = {
    "npy": Kind(("x.npy", "whole.npy"), TABLE),
    "npz": Kind(("x.npz",), TABLE),
    "pickle": Kind(("z.1.pkl", "old.pkl", "poses.pkl", "ctf.pkl"), TABLE),
    "text": Kind(("x.csv", "x.tsv", "x.txt"), TABLE),
    "parquet": Kind(("x.parquet",), (*TABLE, *STORE)),
    "zarr": Kind(("x.zarr/**/*", "old.zarr/**/*"), STORE),
    "folder": Kind(("table/*.parquet",), STORE),
    "indices": Kind(
        ("ind.pkl", "list.pkl", "ind.npy"),
        (
            "fit z.1.pkl --particles one.star --ind {} --dry-run",
            "fit z.1.pkl --particles one.star --ind {} --dry-run",
            "fit z.1.pkl --particles one.star --ind {} --out new",
        ),
    ),
    "star": Kind(("one.star", "two.star", "old.star"), PARTICLES),
    "cs": Kind(("particles.cs", "modes.cs"), PARTICLES),
    "stack": Kind(
        ("a.mrcs",),
        (
            "fit {} --dry-run",
            "fit one.star --dry-run",
            "fit one.star --all-views --dry-run",
            "fit {} --method sum --out new",
            "fit particles.cs --method sum --out new",
            "average image-run --factor 2 --bins 2 --out new",
        ),
    ),
    "volumes": Kind(
        ("volumes/*.mrc", "volumes/z_values.txt"),
        (
            volumes_along,
            "fit volumes --dry-run",
            "fit volumes --method sum --out new",
            "average volume-run --factor 1 --bins 2 --out new",
        ),
    ),
    "record": Kind(tuple(f"{run}run.json" for run in RUNS), READ_RUN),
    "archive": Kind(tuple(f"{run}factorization.npz" for run in RUNS), READ_ARCHIVE),
    "coordinates": Kind(tuple(f"{run}coordinates.csv" for run in RUNS), READ_RUN),
    "parts": Kind(
        ("part-run/coordinates/*", "part-run/run.json"),
        (*LINES, "select {run} --column sample 0 9 --out new.pkl", read_scene),
    ),
    "motions": Kind(("moving-run/motions.npz",), READ_MOTIONS),
    "checkpoints": Kind(
        (".stopped.stages/*", ".large.stages/fit.*", ".large.stages/coordinates/*"),
        ("fit {resumed} --resume",),
    ),
    # Inputs that were changed after their fit.
    "used": Kind(
        ("x.csv", "z.1.pkl", "one.star", "two.star", "a.mrcs"),
        (
            "select run --column a 0 .5 --out new.npy",
            "select z-run --column rlnDefocusU 9000 9500 --out new.csv",
            "select z-run --factor 2 --range .1 .6 --out new.star",
            "average image-run --factor 2 --bins 2 --out new",
            "export z-run --to cryodrgn --factor 2 --bins 2 --out new",
            "export image-run --to relion --factor 2 --bins 2 --out new",
            "export z-run --to aspire --factor 1 --bins 2 --out new",
        ),
    ),
    "training": Kind(
        ("config.yaml", "ctf.pkl"),
        ("export z-run --to cryodrgn --factor 2 --bins 2 --out new",),
    ),
    "structure": Kind(("molecule.pdb", "molecule.cif"), (read_structure,)),
    "study": Kind(("study.jsonl.part",), (read_study,)),
    "reproduction": Kind(("reproduction/numbers.json",), (read_reproduction,)),
    "scheduler": Kind(("scheduler.json",), (read_address,)),
}

# What a fit that was stopped was, by the folder of its checkpoints.
RESUMED = {
    checkpoint_folder(Path("stopped")).name: "x.npy --out stopped",
    checkpoint_folder(Path("large")).name: "table --coordinates parquet --out large",
}


def line_of(call: str, target: str) -> str:
    """Return the command for a damaged file."""
    top = Path(target).parts[0]
    # Of a table that is a folder, the folder is read.
    given = top if top in ("x.zarr", "old.zarr", "table") else target
    return call.format(given, run=top, resumed=RESUMED.get(top, ""))


def described(call: Call, target: str) -> str:
    """Return what is done with a damaged file, in words."""
    if isinstance(call, str):
        return f"manifactor {line_of(call, target)}"
    return f"{call.__name__}({json.dumps(target)})"
