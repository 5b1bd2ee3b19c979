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
from manifactor.cryoem.all_views.shown import read_volumes
from manifactor.cryoem.all_views.volumes import open_motions
from manifactor.runs.folder import read_run
from manifactor.runs.run import open_run
from manifactor.tables.files import read_samples
from manifactor.views.explorer.scene import open_scene

from .binary import MRC, NPY, OURS, PICKLE, ZIP
from .corpus import latents, samples
from .mutations import BYTES, Mutation
from .parquet import PARQUET
from .text import JSON, TEXT

# How files are damaged, by their names or the ending of these.
FORMS: dict[str, tuple[Mutation, ...]] = {
    ".npy": NPY,
    ".cs": NPY,
    "x.npz": ZIP,
    ".npz": OURS,
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
    name, suffix = Path(path).name, Path(path).suffix
    return FORMS.get(name, FORMS.get(suffix, BYTES))


# A command as it is typed, with {} for the damaged file, or a function of that file.
Call = str | Callable[[Path], object]


@dataclass(frozen=True)
class Reader:
    """Files, and what reads each of them.

    Attributes
    ----------
    targets : tuple of str
        Patterns of files of the corpus, of which one is damaged.
    calls : tuple of str or callable
        Of which one is drawn; all of them read the file if it is not damaged. Those
        that stop at reading are in the majority.
    """

    targets: tuple[str, ...]
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
    """Read samples and place them by an archive."""
    load("run").locate(read_samples(path)[:20, :2])


def refused_pickle(path: Path) -> None:
    """Read a pickle that holds no coordinates; it is refused, damaged or not."""
    with suppress(ValueError):
        read_samples(path)


def read_store(path: Path) -> None:
    """Read a table that is a folder."""
    read_samples(path.parts[0])


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


def read_address(path: Path) -> None:
    """Read a scheduler file."""
    connecting._address(str(path))


def volumes_along(path: Path) -> None:
    """Read a series of volumes along a factor."""
    read_volumes(path.parent, open_run("z-run"))


# Of a table, a store, a file of particles, and a run.
TABLE: tuple[Call, ...] = (
    *["fit {} --dry-run"] * 2,
    "fit {} --standardise --dry-run",
    "fit {} --drop 0 --dry-run",
    *[read_samples] * 2,
    place_samples,
    "fit {} --method sum --out new",
    "fit {} --out new",
)
STORE: tuple[Call, ...] = (
    "fit {} --dry-run",
    "fit {} --coordinates parquet --dry-run",
    read_store,
    "fit {} --coordinates parquet --method sum --out new",
    "fit {} --coordinates csv --standardise --out new",
)
PARTICLES: tuple[Call, ...] = (
    "fit {} --dry-run",
    "fit {} --phase-flip --dry-run",
    "fit {} --view 30,60 --width 8 --dry-run",
    "fit z.1.pkl --particles {} --dry-run",
    "fit z.1.pkl --particles {} --out new",
    "fit {} --method sum --out new",
)
ALL_VIEWS: tuple[Call, ...] = (
    "fit {} --all-views --dry-run",
    "fit z.1.pkl --particles {} --dry-run",
)
READ_RUN: tuple[Call, ...] = (
    "select {run} --factor 2 --range .1 .7 --out new.csv",
    "select {run} --factor 2 --range .1 .7 --invert --out new.npy",
    "select {run} --column factor2_confidence 0 1 --out new.pkl",
    "select {run} --min-confidence 0 --out new.parquet",
    *[read_scene] * 2,
    "report {run} --out new.html",
)
READ_PARTICLE_RUN: tuple[Call, ...] = (
    *READ_RUN[:-1],
    "select {run} --factor 2 --range .1 .7 --out new.star",
    "select {run} --column rlnDefocusU 9000 9400 --out new.csv",
    "export {run} --to relion --factor 2 --bins 2 --out new",
    "export {run} --to relion --factor 2 --bins 2 --out new",
)
READ_ARCHIVE: tuple[Call, ...] = (
    *[load_and_place] * 14,
    *["fit x.csv --method sum --reuse {run} --out new"] * 2,
    "report {run} --out new.html",
)

INDEXED = "fit z.1.pkl --particles one.star --ind {}"
POINTS = "export z-run --to cryodrgn --factor 2 --bins 2 --out new"
AVERAGE = "average {run} --factor 2 --bins 2 --out new"
IMAGE_AVERAGE = "average image-run --factor 2 --bins 2 --out new"

KINDS: dict[str, tuple[Reader, ...]] = {
    "npy": (Reader(("x.npy", "whole.npy"), TABLE),),
    "npz": (Reader(("x.npz",), TABLE),),
    "pickle": (
        Reader(("z.1.pkl", "old.pkl"), TABLE),
        Reader(("poses.pkl", "ctf.pkl"), (refused_pickle,)),
    ),
    "text": (Reader(("x.csv", "x.tsv", "x.txt"), TABLE),),
    "parquet": (Reader(("x.parquet",), (*TABLE, *STORE)),),
    "zarr": (Reader(("x.zarr/*", "old.zarr/*"), STORE),),
    "folder": (Reader(("table/*",), STORE),),
    "indices": (
        Reader(
            ("ind.pkl", "list.pkl", "ind.npy"),
            (*[f"{INDEXED} --dry-run"] * 2, f"{INDEXED} --out new"),
        ),
    ),
    "star": (
        Reader(("one.star", "two.star", "old.star"), PARTICLES),
        Reader(("one.star", "two.star"), ("fit {} --class 1 --optics-group 1 --dry-run",)),
        Reader(("all.star",), ALL_VIEWS),
    ),
    "cs": (
        Reader(("particles.cs",), PARTICLES),
        Reader(("particles.cs",), ("fit {} --class 0 --optics-group 1 --dry-run",)),
        Reader(("modes.cs",), (*TABLE, "fit {} --particles particles.cs --dry-run")),
    ),
    "stack": (
        Reader(
            ("a.mrcs",),
            (
                "fit {} --dry-run",
                "fit one.star --dry-run",
                "fit all.star --all-views --dry-run",
                "fit {} --method sum --out new",
                "fit one.star --method sum --out new",
                IMAGE_AVERAGE,
            ),
        ),
    ),
    "volumes": (
        Reader(("volumes/z_values.txt",), (volumes_along,)),
        Reader(
            ("volumes/*.mrc",),
            (
                volumes_along,
                "fit volumes --dry-run",
                "fit volumes --method sum --out new",
                "average volume-run --factor 1 --bins 2 --out new",
            ),
        ),
    ),
    "record": (
        Reader(("run/run.json",), (*READ_RUN, "select run --column a 0 .5 --out new.npy")),
        Reader(("z-run/run.json",), (*READ_PARTICLE_RUN, POINTS)),
        Reader(("image-run/run.json",), (*READ_PARTICLE_RUN, AVERAGE)),
        Reader(("moving-run/run.json",), (*READ_RUN, AVERAGE, see_motions)),
    ),
    "coordinates": (
        Reader(("run/coordinates.csv",), READ_RUN),
        Reader(("z-run/coordinates.csv",), (*READ_PARTICLE_RUN, POINTS)),
        Reader(("image-run/coordinates.csv",), (*READ_PARTICLE_RUN, AVERAGE)),
        Reader(("moving-run/coordinates.csv",), (*READ_RUN, AVERAGE)),
    ),
    "archive": (
        Reader(("*run/factorization.npz",), READ_ARCHIVE),
        Reader(("z-run/factorization.npz",), ("fit z.1.pkl --reuse {run} --out new",)),
    ),
    "parts": (
        Reader(
            ("part-run/coordinates/*", "part-run/run.json"),
            (
                "select {run} --factor 1 --range .2 .7 --out new.csv",
                "select {run} --column sample 0 9 --out new.parquet",
                read_scene,
            ),
        ),
    ),
    "motions": (Reader(("moving-run/motions.npz",), (*[see_motions] * 6, AVERAGE, read_scene)),),
    "checkpoints": (
        Reader(
            (".stopped.stages/*", ".large.stages/fit.*", ".large.stages/coord*"),
            ("fit {resumed} --resume",),
        ),
    ),
    # Inputs that were changed after their fit.
    "used": (
        Reader(("x.csv",), ("select run --column a 0 .5 --out new.npy",)),
        Reader(("z.1.pkl",), (POINTS,)),
        Reader(
            ("one.star",),
            (
                "select z-run --column rlnDefocusU 9000 9500 --out new.csv",
                "select z-run --factor 2 --range .1 .6 --out new.star",
                "export z-run --to aspire --factor 2 --bins 2 --out new",
                POINTS,
            ),
        ),
        Reader(
            ("two.star", "a.mrcs"),
            (IMAGE_AVERAGE, "export image-run --to relion --factor 2 --bins 2 --out new"),
        ),
    ),
    "training": (Reader(("config.yaml", "ctf.pkl"), (POINTS,)),),
    "structure": (Reader(("molecule.pdb", "molecule.cif"), (read_structure,)),),
    "scheduler": (Reader(("scheduler.json",), (read_address,)),),
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
