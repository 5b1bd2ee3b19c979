"""Bridges to programs that reconstruct volumes along a factor."""

import pickle
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from manifactor._support.errors import warn_caller
from manifactor._support.workers import Here, Workers
from manifactor.cryoem.averages.matching import match
from manifactor.cryoem.export.request import Request, command, comment, warning_comments
from manifactor.cryoem.files.cryosparc import (
    NEEDED,
    npy_bytes,
    result_group,
    results_of,
    with_own_paths,
)
from manifactor.cryoem.files.formats import particles_with
from manifactor.cryoem.files.particles import Particles, euler_matrices
from manifactor.runs.places import bin_labels, coordinate_columns
from manifactor.runs.run import Run
from manifactor.tables.pickles import read_pickled_array

# The bridges to RELION and cryoSPARC: a file of particles for each bin.


@dataclass(frozen=True)
class _Bin:
    """The particles of one bin."""

    name: str  # of its file, without the suffix
    content: bytes  # the file
    count: int  # particles
    centre: float  # in degrees on a circle

    def __str__(self) -> str:
        return f"{self.count} particles around {self.centre:.3g}"


def relion_files(request: Request) -> dict[str, bytes]:
    """Return a STAR file for each bin, and the commands that reconstruct them."""
    bins = list(_bins(request, suffix=".star"))
    commands = comment(
        "one bin along the factor after the other; the other factors are as they are. "
        "RELION finds images from the folder of its project:"
    )
    commands += command("cd", request.image_folder)
    # A STAR file without defocus is of images without a CTF.
    options = ["--ctf"] if "defocus_u" in request.run.particles.microscope else []
    if request.symmetry != "C1":
        options += ["--sym", request.symmetry]
    for each in bins:
        star = request.folder / f"{each.name}.star"
        volume = request.folder / f"{each.name}.mrc"
        commands += comment(str(each))
        commands += command("relion_reconstruct", "--i", star, "--o", volume, *options)
    files = {f"{each.name}.star": each.content for each in bins}
    return {**files, "commands.txt": commands.encode()}


def cryosparc_files(request: Request) -> dict[str, bytes]:
    """Return a .cs file for each bin with its .csg, and how to import them."""
    files = {}
    commands = comment(
        "one bin along the factor after the other; the other factors are as they are. "
        "In a workspace of the cryoSPARC project whose folder is "
        f"{request.image_folder}, build the job Import Result Group for each file:"
    )
    missing: list[str] = []
    for each in _bins(request, suffix=".cs"):
        content = with_own_paths(each.content, request.image_folder)
        files[f"{each.name}.cs"] = content
        files[f"{each.name}.csg"] = result_group(content, f"{each.name}.cs")
        commands += comment(f"{request.folder / each.name}.csg: {each}", width=None)
        missing = [name for name in NEEDED if name not in results_of(content)]
    commands += comment(
        "then Homogeneous Reconstruction Only with the particles of each"
        + ("." if request.symmetry == "C1" else f", symmetry {request.symmetry}.")
    )
    if missing:
        commands += comment(
            f"{request.run.particles.path} has no {', '.join(missing)}: connect the "
            "job's input also to the output of the original job that has them."
        )
    return {**files, "commands.txt": commands.encode()}


def _bins(request: Request, *, suffix: str) -> Iterator[_Bin]:
    """Yield the bins that hold particles, with their files."""
    run = request.run
    particles = run.particles
    if particles.path.suffix.lower() != suffix:
        raise ValueError(
            f"this program reads {suffix}; the run's particles are {particles.path.name}."
        )
    # A worker reads the file of particles again, and may run in another folder.
    known = replace(particles.without_images(), path=particles.path.absolute())
    bins = np.unique(request.labels)
    rows = [np.flatnonzero(request.labels == k) for k in bins]
    jobs = [
        (known[inside], coordinate_columns([p[inside] for p in run.places], suffix))
        for inside in rows
    ]
    contents = request.workers.map(particles_with, jobs)
    for k, inside, content in zip(bins, rows, contents, strict=True):
        # From 1, as bins are counted in bins.csv.
        yield _Bin(f"bin_{k + 1:02d}", content, len(inside), request.centres[k])


# The bridge to ASPIRE: a script that reconstructs matched averages along a factor.

SCRIPT = '''\
"""Volumes along the factor: volume_01.mrc, volume_02.mrc, ..., one for each bin.

Row i of weights.npy is particle rows[i]; it counts weights[i, k] times in volume k + 1.
"""

import numpy as np
from aspire.operators import IdentityFilter
from aspire.reconstruction import WeightedVolumesEstimator
from aspire.source import RelionSource

source = RelionSource(
    {particles!r},
    data_folder={folder!r},
    pixel_size={pixel_size!r},
    dtype="float32",
)
{contrast}
rows = np.load("rows.npy")
weights = np.load("weights.npy")
for number, column in enumerate(weights.T, start=1):
    inside = np.flatnonzero(column)
    if not len(inside):
        continue
    counts = column[inside, None]
    n = len(inside)
    # ASPIRE's weights are coefficients of a model, not weights of an average: it fits
    # an image by its coefficient times the volume. The least squares of an average, in
    # which an image counts c times, have c / n on both sides of the normal equations.
    # ASPIRE's left side, the kernel, has the squares of the coefficients; its right
    # side has the coefficients over the root of n. The kernel is computed first.
    estimator = WeightedVolumesEstimator(
        np.sqrt(counts / n),
        source[rows[inside]],
        preconditioner="none",
        checkpoint_iterations=None,
    )
    estimator.kernel
    estimator.weights = counts / np.sqrt(n)
    volume = sign * estimator.estimate()
    volume.save(f"volume_{{number:02d}}.mrc", overwrite=True)
'''

# With and without a CTF.
CONTRAST = {
    True: "sign = -1  # ASPIRE's CTF has the opposite sign of RELION's",
    False: """\
sign = 1
# The STAR file has no defocus: its images are taken as free of a CTF.
source.unique_filters = [IdentityFilter()]
source.filter_indices = np.zeros(source.n, dtype=int)""",
}
# What ASPIRE needs for a CTF.
CTF_PARAMETERS = {
    "defocus_u",
    "defocus_v",
    "defocus_angle",
    "voltage",
    "spherical_aberration",
    "amplitude_contrast",
}


def aspire_files(request: Request) -> dict[str, bytes]:
    """Return weights for an average in each bin, and a script that uses them."""
    particles = request.run.particles
    path = particles.path.absolute()
    if path.suffix.lower() != ".star":
        raise ValueError(
            f"ASPIRE reads particles from STAR files; those of the run are {path}. "
            "Convert them first."
        )
    script = SCRIPT.format(
        particles=str(path),
        folder=str(request.image_folder),
        pixel_size=_missing_pixel_size(request),
        contrast=CONTRAST[particles.microscope.keys() >= CTF_PARAMETERS],
    )
    commands = comment("matched averages along the factor, one volume for each bin")
    commands += command("cd", request.folder)
    commands += command("python", "aspire_volumes.py")
    return {
        "weights.npy": npy_bytes(_weights(request)),
        "rows.npy": npy_bytes(request.run.rows),
        "aspire_volumes.py": script.encode(),
        "commands.txt": commands.encode(),
    }


def _weights(request: Request) -> np.ndarray:
    """Return how often a particle counts in the average of each bin, (n, n_bins)."""
    labels, n_bins = request.labels, len(request.centres)
    matching = match(labels, request.others, n_bins=n_bins)
    weights = np.zeros((len(labels), n_bins), dtype=np.float32)
    # 1 on average in every bin, as in a reconstruction without weights.
    scaled = matching.weights * matching.counts[labels]
    weights[np.arange(len(labels)), labels] = scaled
    return weights


def _missing_pixel_size(request: Request) -> float | None:
    """Return the pixel size where the STAR file lacks it, None where it has it."""
    if request.run.particles.pixel_size is not None:
        return None
    # ASPIRE does not work without one, as little as it matters without a CTF.
    source = request.first_image
    return 1.0 if source is None else source.pixel_size


# The bridge to RECOVAR, which reconstructs volumes by kernel regression.

# CTF parameters in the order of cryoDRGN's and RECOVAR's tables, behind the box and the pixel size.
CTF_COLUMNS = (
    "defocus_u",
    "defocus_v",
    "defocus_angle",
    "voltage",
    "spherical_aberration",
    "amplitude_contrast",
    "phase_shift",
)
# Parameters without which there is no CTF; few microscopes have a phase plate.
NEEDED_BY_RECOVAR = CTF_COLUMNS[:-1]
# Parameters of images without a CTF: it is -1 at all frequencies. The sign is that of RECOVAR,
# which is the opposite of RELION's.
NO_CTF = (0.0, 0.0, 0.0, 300.0, 0.0, 1.0, 0.0)


def recovar_files(request: Request) -> dict[str, bytes]:
    """Return points, embedding, poses and CTF for RECOVAR, and the command."""
    latents = request.latents()
    particles = request.run.particles
    source = request.run.choice.images(particles)
    box, pixel_size = source.shape[-1], source.pixel_size
    suffix = particles.path.suffix.lower()
    words = ["recovar", "reconstruct_from_external_embedding"]
    words += [str(request.run.folder.absolute() / f"particles{suffix}")]
    words += ["--datadir", str(request.image_folder)]
    words += ["--poses", "poses.pkl", "--ctf", "ctf.pkl"]
    words += ["--embedding", "embedding.pkl", "--target", "points.txt"]
    if latents.shape[1] == 1:
        words.append("--zdim1")
    # RELION's particles are white and its CTF is positive at low frequencies; RECOVAR's CTF is
    # negative there, as for dark particles.
    if suffix == ".star":
        words += ["--uninvert-data", "true"]
    words += ["-o", "volumes"]
    commands = comment("volumes along the factor by kernel regression")
    commands += command("cd", request.folder) + command(*words)
    return {
        # Pickles are what RECOVAR takes; they are written here and never read.
        "embedding.pkl": pickle.dumps(latents.astype(np.float32)),
        "points.txt": request.points(latents),
        "poses.pkl": pickle.dumps(_poses(particles, box)),
        "ctf.pkl": pickle.dumps(_ctf_table(particles, box, pixel_size)),
        "commands.txt": commands.encode(),
    }


def _poses(particles: Particles, box: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rotations (n, 3, 3), and shifts (n, 2) in parts of the box."""
    if particles.angles is None:
        raise ValueError(
            f"RECOVAR needs the angles of the particles; {particles.path} has none. "
            "Fit with --particles that were refined in 3-D."
        )
    shift = particles.shift
    if shift is None:
        shift = np.zeros((len(particles), 2))
    return euler_matrices(particles.angles), shift / box


def _ctf_table(particles: Particles, box: int, pixel_size: float) -> np.ndarray:
    """Return box, pixel size and CTF parameters of each particle, (n, 9)."""
    known = particles.microscope
    table = np.empty((len(particles), 2 + len(CTF_COLUMNS)), dtype=np.float32)
    table[:, 0], table[:, 1] = box, pixel_size
    table[:, 2:] = NO_CTF
    if all(name in known for name in NEEDED_BY_RECOVAR):
        for column, name in enumerate(CTF_COLUMNS, start=2):
            table[:, column] = known.get(name, 0.0)
    return table


# The bridge to cryoDRGN, whose model decodes points in its coordinates.


@dataclass(frozen=True)
class _Model:
    """The files of a trained model."""

    weights: Path
    config: Path

    @property
    def is_there(self) -> bool:
        return self.weights.is_file() and self.config.is_file()

    @property
    def box(self) -> int | None:
        """Side of its volumes in voxels; None where the config does not state it."""
        found = re.fullmatch(r"\d{1,6}", self._stated("lattice_args", "D"))
        # The lattice of an even box has one point more, to be symmetric about 0.
        side = int(found[0]) - 1 if found else 0
        return side if side > 0 else None

    def trained_width(self) -> float | None:
        """Return the width in Angstrom of the images that it was trained on."""
        path = Path(self._stated("dataset_args", "ctf").strip("\"'"))
        if not path.is_file():
            return None
        try:
            table = read_pickled_array(path)
        except ValueError:
            return None
        if table.ndim != 2 or not len(table) or table.shape[1] < 2:
            return None
        # The first two columns are the box and the pixel size.
        width = float(table[0, 0]) * float(table[0, 1])
        return width if 0 < width < float("inf") else None

    def _stated(self, section: str, entry: str) -> str:
        """Return what a section of the config says; "" where it does not say it."""
        # Before version 2 the config was a pickle, which is not read here.
        if self.config.suffix != ".yaml":
            return ""
        inside = False
        for line in self.config.read_text("utf-8", "replace").splitlines():
            name, _, value = line.partition(":")
            if not line[:1].isspace():
                inside = name == section
            elif inside and name.strip() == entry:
                return value.strip()
        return ""


def cryodrgn_files(request: Request) -> dict[str, bytes]:
    """Return points for `cryodrgn eval_vol`, and the command."""
    points = request.points(request.latents())
    model = _model(request)
    commands = comment("volumes along the factor, by the model of the coordinates:")
    if model.is_there:
        commands += command("cd", request.folder)
        commands += _evaluation(model, _pixel_size(request, model))
        commands += comment("to see them along the factor, on the page of the run:")
        commands += f"# {_shown(request)}"
    else:
        commands += comment(
            f"the model was not found: there is no {model.weights.name} with a "
            f"config.yaml in {model.weights.parent}. Export again with --training "
            "FOLDER, the output folder of cryodrgn train_vae, for the command."
        )
    return {"z_values.txt": points, "commands.txt": commands.encode()}


def _shown(request: Request) -> str:
    """Return the command that shows the volumes."""
    run = request.run.folder.absolute()
    return command("manifactor", "report", run, "--volumes", request.folder)


def _evaluation(model: _Model, pixel_size: float | None) -> str:
    """Return the command that decodes the points."""
    words = ["cryodrgn", "eval_vol", str(model.weights), "-c", str(model.config)]
    words += ["--zfile", "z_values.txt", "-o", "volumes"]
    if pixel_size is not None:
        return command(*words, "--Apix", f"{pixel_size:.6g}")
    note = "the pixel size is not known: without --Apix, volumes have 1 A a voxel"
    return comment(note) + command(*words)


def _model(request: Request) -> _Model:
    """Return where the model of the coordinates lies."""
    given = request.run.input
    folder = (request.training or given.parent).absolute()
    # An epoch's coordinates, z.20.pkl, belong to its weights, weights.20.pkl.
    epoch = re.fullmatch(r"z(\.\d+)?\.pkl", given.name)
    weights = folder / f"weights{(epoch and epoch[1]) or ''}.pkl"
    old = folder / "config.pkl"
    return _Model(weights, old if old.is_file() else folder / "config.yaml")


def _pixel_size(request: Request, model: _Model) -> float | None:
    """Return the voxel size in Angstrom of the model's volumes.

    The model may have been trained on downsampled images: the width is what they share.
    """
    width = model.trained_width()
    if width is None:
        width = _width_of_images(request)
    box = model.box
    return None if width is None or box is None else width / box


def _width_of_images(request: Request) -> float | None:
    """Return the width in Angstrom of the run's images, None where it is unknown."""
    particles, image = request.particles, request.first_image
    if particles is None or particles.pixel_size is None or image is None:
        return None
    return image.shape[-1] * particles.pixel_size


# Files and commands for a program that reconstructs volumes along a factor.

BRIDGES: dict[str, Callable[[Request], dict[str, bytes]]] = {
    "cryodrgn": cryodrgn_files,
    "recovar": recovar_files,
    "aspire": aspire_files,
    "relion": relion_files,
    "cryosparc": cryosparc_files,
}


def export(
    run: Run,
    factor: int,
    program: str,
    *,
    n_bins: int,
    folder: Path | None = None,
    training: Path | None = None,
    workers: Workers = Here(),
) -> dict[str, bytes]:
    """Return files, by name, that let a program reconstruct volumes along a factor.

    "commands.txt" holds the commands, each with the folder in which it runs. The other factors are
    held still: points along the factor have one place on them, weights one distribution.
    """
    _require_program(program, training)
    if folder is None:
        folder = run.folder / f"{program}-factor{factor}"
    request = _request(
        run, factor, n_bins=n_bins, folder=folder.absolute(), training=training, workers=workers
    )
    files = BRIDGES[program](request)
    warnings = request.warnings
    for message in warnings:
        warn_caller(message, UserWarning)
    commands = warning_comments(warnings).encode() + files["commands.txt"]
    return {**files, "commands.txt": commands}


def _require_program(program: str, training: Path | None) -> None:
    if program not in BRIDGES:
        raise ValueError(f"the program must be one of {', '.join(BRIDGES)}; got {program}.")
    if training is not None and program != "cryodrgn":
        raise ValueError(
            f"--training is the folder of a cryoDRGN model; {program} uses none. Leave it out."
        )


def _request(
    run: Run, factor: int, *, n_bins: int, folder: Path, training: Path | None, workers: Workers
) -> Request:
    """Return the run in bins along a factor."""
    place = run.place(factor)
    if place.topology == "other":
        raise ValueError(
            f"points go along intervals and circles; factor {factor} has more dimensions."
        )
    others = [other for i, other in enumerate(run.places, start=1) if i != factor]
    labels, centres = bin_labels(place.displayed, place.topology, n_bins=n_bins)
    return Request(run, place, others, labels, centres, folder, training, workers)


# Bridges to programs that reconstruct volumes.
#
# Each gives a program the points along a factor in its own coordinates, or weights, or particles,
# with commands that run as they are printed.
#
# points, commands one particle for each bin along a factor; lines of a shell request what is
# exported, which every bridge is given cryodrgn, recovar, aspire, bin_files the files and commands
# of each program exporting `export`, and the table of all bridges

__all__ = ["BRIDGES", "export"]
