"""Bridges to programs that reconstruct volumes along a factor: files, and commands that run."""

import pickle
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from pathlib import Path
from string import Template
from textwrap import wrap

import numpy as np
from scipy.spatial import KDTree

from manifactor._support.errors import one_line, printable, shell_line, warn_caller
from manifactor._support.workers import Workers
from manifactor.cryoem.directions import is_one_view
from manifactor.cryoem.files.cryosparc import npy_bytes, result_group
from manifactor.cryoem.files.formats import ParticleChoice, particles_with
from manifactor.cryoem.files.particles import Particles, euler_matrices
from manifactor.cryoem.files.stacks import ImageSource, image_folder, particle_images
from manifactor.runs.places import Place, bin_labels, coordinate_columns, match
from manifactor.runs.run import Run, require_as_many
from manifactor.tables.files import read_samples
from manifactor.tables.pickles import read_pickled_array


def export(
    run: Run,
    factor: int,
    program: str,
    *,
    n_bins: int,
    folder: Path,
    training: Path | None,
    workers: Workers,
) -> dict[str, bytes]:
    """Return files, by name, that let a program reconstruct volumes along a factor.

    "commands.txt" holds the commands. The other factors are held still: points along the factor
    have one coordinate on them, weights one distribution.
    """
    if training is not None and program != "cryodrgn":
        raise ValueError(
            f"--training is the folder of a cryoDRGN model; {program} uses none. Leave it out."
        )
    place = run.place(factor)
    if place.topology == "other":
        raise ValueError(
            f"points go along intervals and circles; factor {factor} has more dimensions."
        )
    others = [*run.places[: factor - 1], *run.places[factor:]]
    labels, centres = bin_labels(place.displayed, place.topology, n_bins=n_bins)
    request = Request(run, place, others, labels, centres, folder.absolute(), training, workers)
    files, commands = BRIDGES[program](request)
    notes = ""
    for message in request.warnings:
        warn_caller(message, UserWarning)
        notes += comment(f"WARNING: {message}")
    return {**files, "commands.txt": f"{notes}{commands}".encode()}


@dataclass(frozen=True)
class Request:
    """A run in bins along one factor, to be exported."""

    run: Run
    place: Place  # on the factor
    others: list[Place]  # on the other factors
    labels: np.ndarray  # (n,)
    centres: np.ndarray  # (n_bins,)
    folder: Path  # where the files will lie, absolute
    # Folder of the model that gave the coordinates; None for that of the input
    training: Path | None
    workers: Workers  # who writes the files of bins

    @property
    def particles(self) -> Particles | None:
        """Particles of the run, in its order; None if it knows none."""
        return self.run.particles if "particles" in self.run.record else None

    @property
    def bins(self) -> dict[int, np.ndarray]:
        """Rows of each bin that is not empty."""
        return {k: np.flatnonzero(self.labels == k) for k in np.unique(self.labels).tolist()}

    @property
    def symmetry(self) -> str:
        """Point group of the molecule; C1 where the fit was told none."""
        return self.run.record.get("all_views", {}).get("symmetry", "C1")

    @property
    def image_folder(self) -> Path:
        """Absolute folder that images are named from; that of the particles if there are none."""
        return self._found_folder or self.run.particles.path.absolute().parent

    @cached_property
    def _found_folder(self) -> Path | None:
        """The folder from which all names of stacks lead to them."""
        return image_folder(
            self.run.particles, folder=ParticleChoice.of_run(self.run.record).folder
        )

    @cached_property
    def first_image(self) -> ImageSource | None:
        """The first image, which tells box and pixel size; None if it is not found."""
        particles = self.particles
        if particles is None or particles.stack is None or self._found_folder is None:
            return None
        return particle_images(particles[:1], folder=self._found_folder)

    @property
    def warnings(self) -> list[str]:
        """What is wrong with volumes of these particles, in sentences."""
        particles = self.particles
        if particles is None:
            return []
        found = []
        if particles.angles is None:
            found.append(
                f"{particles.path} has no angles, without which no volume can be "
                "reconstructed. Fit with --particles that were refined in 3-D."
            )
        elif is_one_view(particles):
            found.append(
                "all particles of this run show the molecule from one direction, and "
                "volumes reconstructed from one view are meaningless. Export a run of "
                "coordinates of particles in all views (cryoDRGN, 3D variability)."
            )
        if particles.stack is not None and self._found_folder is None:
            found.append(
                f"the images that {particles.path} names were not found in its folder, in one "
                "above it or in the current folder; the commands run where they are."
            )
        return found

    def star_or_cs(self, suffix: str) -> Particles:
        """Return the particles if they are of the kind that a program reads."""
        particles = self.run.particles
        if particles.path.suffix.lower() != suffix:
            raise ValueError(
                f"this program reads {suffix}; the run's particles are {particles.path.name}."
            )
        return particles

    def latents(self) -> np.ndarray:
        """Return the coordinates that were fitted."""
        run, path = self.run, self.run.input
        fitted = ""
        if "all_views" in run.record:
            fitted = (
                "images of all views. For volumes along its motions, use manifactor average, or "
                "export to relion or aspire (STAR files) or cryosparc (.cs files)."
            )
        elif path.suffix.lower() == ".cs":
            fitted = (
                "components of cryoSPARC, which makes its own volumes of them: select particles to "
                ".cs and use it there."
            )
        elif "components" in run.record or not path.is_file():
            fitted = "images or volumes. Fit its z file with --particles."
        if fitted:
            raise ValueError(
                "this needs the coordinates that the program itself found; "
                f"{run.folder} was fitted to {fitted}"
            )
        latents = read_samples(path)
        require_as_many(run, len(latents), "rows")
        return latents

    def points(self, latents: np.ndarray) -> bytes:
        """Return the fitted coordinates of one sample in each bin, as text."""
        # A program decodes its own coordinates, not ours: a point is a sample's.
        rows = steady_samples(self.place, self.others, self.bins, self.centres)
        # Eight digits are what single precision has.
        lines = (" ".join(f"{value:.8g}" for value in point) for point in latents[rows])
        return "".join(f"{line}\n" for line in lines).encode()


def command(*words: str | Path) -> str:
    """Return a command as one line; words with blanks or signs of the shell are quoted."""
    return shell_line(*words) + "\n"


def comment(text: str, *, width: int = 88) -> str:
    """Return a text as lines of a comment."""
    # Line ends in the name of a file would end the comment: all blanks are made one.
    text = printable(one_line(text))
    lines = wrap(text, width - 2, break_long_words=False, break_on_hyphens=False)
    return "".join(f"# {line}\n" for line in lines)


def steady_samples(
    place: Place, others: Sequence[Place], bins: Mapping[int, np.ndarray], centres: np.ndarray
) -> list[int]:
    """Return one sample of each bin that is not empty, all near one coordinate on other factors."""
    # The common coordinate is the one, of some drawn at random, that is nearest to all bins.
    if others:
        # In units of the standard deviation, so that no factor dominates the distance.
        features = np.column_stack([other.features / other.features.std() for other in others])
        # A fixed seed: the same command gives the same points.
        candidates = features[np.random.default_rng(0).permutation(len(features))[:300]]
        # All the samples that are taken from a bin, up to five, must lie near, and the farthest
        # bin decides.
        distances = [
            KDTree(features[rows]).query(candidates, [min(5, len(rows))])[0][:, 0]
            for rows in bins.values()
        ]
        common = candidates[np.max(distances, axis=0).argmin()]
        apart = np.linalg.norm(features - common, axis=1)
        bins = {k: rows[apart[rows].argsort()[:5]] for k, rows in bins.items()}
    along, targets = place.features, Place.from_displayed(centres, place.topology).features
    return [
        rows[np.linalg.norm(along[rows] - targets[k], axis=1).argmin()] for k, rows in bins.items()
    ]


# RELION and cryoSPARC: a file of particles for each bin.

Bridge = tuple[dict[str, bytes], str]


def _relion(request: Request) -> Bridge:
    """Return a STAR file for each bin, and the commands that reconstruct them."""
    files = {}
    commands = comment(
        "one bin along the factor after the other; the other factors are as they are. "
        "RELION finds images from the folder of its project:"
    )
    commands += command("cd", request.image_folder)
    # A STAR file without defocus is of images without a CTF.
    options = ["--ctf"] * ("defocus_u" in request.run.particles.microscope)
    options += ["--sym", request.symmetry] * (request.symmetry != "C1")
    for name, content, text in _bins(request, suffix=".star"):
        files[f"{name}.star"] = content
        star, volume = request.folder / f"{name}.star", request.folder / f"{name}.mrc"
        commands += comment(text)
        commands += command("relion_reconstruct", "--i", star, "--o", volume, *options)
    return files, commands


def _cryosparc(request: Request) -> Bridge:
    """Return a .cs file for each bin with its .csg, and how to import them."""
    files: dict[str, bytes] = {}
    commands = comment(
        "one bin along the factor after the other; the other factors are as they are. "
        "In a workspace of the cryoSPARC project whose folder is "
        f"{request.image_folder}, build the job Import Result Group for each file:"
    )
    missing: list[str] = []
    for name, particles, text in _bins(request, suffix=".cs"):
        content, group, missing = result_group(particles, f"{name}.cs", request.image_folder)
        files |= {f"{name}.cs": content, f"{name}.csg": group}
        commands += comment(f"{request.folder / name}.csg: {text}", width=10**6)
    commands += comment(
        "then Homogeneous Reconstruction Only with the particles of each"
        + ("." if request.symmetry == "C1" else f", symmetry {request.symmetry}.")
    )
    if missing:
        commands += comment(
            f"{request.run.particles.path} has no {', '.join(missing)}: connect the "
            "job's input also to the output of the original job that has them."
        )
    return files, commands


def _bins(request: Request, *, suffix: str) -> list[tuple[str, bytes, str]]:
    """Return name, file and description of each bin that holds particles."""
    particles = request.star_or_cs(suffix)
    # A worker reads the file of particles again, and may run in another folder.
    known = replace(particles.without_images(), path=particles.path.absolute())
    places = request.run.places
    jobs = [
        (known[rows], coordinate_columns([place[rows] for place in places], suffix))
        for rows in request.bins.values()
    ]
    contents = request.workers.map(particles_with, jobs)
    return [
        # From 1, as bins are counted in bins.csv.
        (f"bin_{k + 1:02d}", content, f"{len(rows)} particles around {request.centres[k]:.3g}")
        for (k, rows), content in zip(request.bins.items(), contents, strict=True)
    ]


# ASPIRE: a script that reconstructs matched averages along a factor.

WITH_CTF = "sign = -1  # ASPIRE's CTF has the opposite sign of RELION's"
WITHOUT_CTF = """\
sign = 1
# The STAR file has no defocus: its images are taken as free of a CTF.
source.unique_filters = [IdentityFilter()]
source.filter_indices = np.zeros(source.n, dtype=int)"""


def _aspire(request: Request) -> Bridge:
    """Return weights for an average in each bin, and a script that uses them."""
    particles = request.star_or_cs(".star")
    pixel_size = None
    if particles.pixel_size is None:
        # ASPIRE does not work without one, as little as it matters without a CTF.
        pixel_size = 1.0 if request.first_image is None else request.first_image.pixel_size
    template = Path(__file__).with_name("aspire_volumes.txt").read_text("utf-8")
    script = Template(template).substitute(
        particles=repr(str(particles.path.absolute())),
        folder=repr(str(request.image_folder)),
        pixel_size=pixel_size,
        contrast=WITH_CTF if _has_ctf(particles) else WITHOUT_CTF,
    )
    labels, n_bins = request.labels, len(request.centres)
    matching = match(labels, request.others, n_bins=n_bins)
    # How often a particle counts in each bin: 1 on average, as in a reconstruction without weights.
    weights = np.zeros((len(labels), n_bins), dtype=np.float32)
    weights[np.arange(len(labels)), labels] = matching.weights * matching.counts[labels]
    commands = comment("matched averages along the factor, one volume for each bin")
    commands += command("cd", request.folder) + command("python", "aspire_volumes.py")
    return {
        "weights.npy": npy_bytes(weights),
        "rows.npy": npy_bytes(request.run.rows),
        "aspire_volumes.py": script.encode(),
    }, commands


# RECOVAR, which reconstructs volumes by kernel regression.

# Parameters without which there is no CTF, in the order of cryoDRGN's and RECOVAR's tables; behind
# them is the phase shift, and few microscopes have a phase plate.
CTF_COLUMNS = (
    "defocus_u",
    "defocus_v",
    "defocus_angle",
    "voltage",
    "spherical_aberration",
    "amplitude_contrast",
)


def _has_ctf(particles: Particles) -> bool:
    return particles.microscope.keys() >= set(CTF_COLUMNS)


def _recovar(request: Request) -> Bridge:
    """Return points, embedding, poses and CTF for RECOVAR, and the command."""
    latents = request.latents()
    particles = request.run.particles
    source = ParticleChoice.of_run(request.run.record).images(particles)
    box = source.shape[-1]
    suffix = particles.path.suffix.lower()
    known = request.run.folder.absolute() / f"particles{suffix}"
    words = ["--poses", "poses.pkl", "--ctf", "ctf.pkl"]
    words += ["--embedding", "embedding.pkl", "--target", "points.txt"]
    words += ["--zdim1"] * (latents.shape[1] == 1)
    # RELION's particles are white and its CTF is positive at low frequencies; RECOVAR's CTF is
    # negative there, as for dark particles.
    words += ["--uninvert-data", "true"] * (suffix == ".star")
    commands = comment("volumes along the factor by kernel regression")
    commands += command("cd", request.folder)
    program = "recovar", "reconstruct_from_external_embedding"
    commands += command(*program, known, "--datadir", request.image_folder, *words, "-o", "volumes")
    if particles.angles is None:
        raise ValueError(
            f"RECOVAR needs the angles of the particles; {particles.path} has none. "
            "Fit with --particles that were refined in 3-D."
        )
    # Shifts in parts of the box.
    shift = np.zeros((len(particles), 2)) if particles.shift is None else particles.shift
    poses = euler_matrices(particles.angles), shift / box
    return {
        # Pickles are what RECOVAR takes; they are written here and never read.
        "embedding.pkl": pickle.dumps(latents.astype(np.float32)),
        "points.txt": request.points(latents),
        "poses.pkl": pickle.dumps(poses),
        "ctf.pkl": pickle.dumps(_ctf_table(particles, box, source.pixel_size)),
    }, commands


def _ctf_table(particles: Particles, box: int, pixel_size: float) -> np.ndarray:
    """Return box, pixel size and CTF parameters of each particle, (n, 9)."""
    # Images without a CTF: it is -1 at all frequencies, with RECOVAR's sign.
    row = np.array([box, pixel_size, 0, 0, 0, 300, 0, 1, 0], dtype=np.float32)
    table = np.tile(row, (len(particles), 1))
    if _has_ctf(particles):
        for column, name in enumerate((*CTF_COLUMNS, "phase_shift"), start=2):
            table[:, column] = particles.microscope.get(name, 0.0)
    return table


# cryoDRGN, whose model decodes points in its coordinates.


def _cryodrgn(request: Request) -> Bridge:
    """Return points for `cryodrgn eval_vol`, and the command."""
    files = {"z_values.txt": request.points(request.latents())}
    given = request.run.input
    folder = (request.training or given.parent).absolute()
    # An epoch's coordinates, z.20.pkl, belong to its weights, weights.20.pkl.
    epoch = re.fullmatch(r"z(\.\d+)?\.pkl", given.name)
    weights = folder / f"weights{(epoch and epoch[1]) or ''}.pkl"
    old = folder / "config.pkl"
    config = old if old.is_file() else folder / "config.yaml"
    commands = comment("volumes along the factor, by the model of the coordinates:")
    if not (weights.is_file() and config.is_file()):
        return files, commands + comment(
            f"the model was not found: there is no {weights.name} with a "
            f"config.yaml in {folder}. Export again with --training "
            "FOLDER, the output folder of cryodrgn train_vae, for the command."
        )
    commands += command("cd", request.folder)
    words = ["--zfile", "z_values.txt", "-o", "volumes"]
    voxel_size = _voxel_size(request, config)
    if voxel_size is None:
        commands += comment("the pixel size is not known: without --Apix, volumes have 1 A a voxel")
    else:
        words += ["--Apix", f"{voxel_size:.6g}"]
    commands += command("cryodrgn", "eval_vol", weights, "-c", config, *words)
    commands += comment("to see them along the factor, on the page of the run:")
    run = request.run.folder.absolute()
    shown = command("manifactor", "report", run, "--volumes", request.folder)
    return files, f"{commands}# {shown}"


def _voxel_size(request: Request, config: Path) -> float | None:
    """Return the voxel size in Angstrom of a model's volumes; None where it is unknown."""
    # The model may have been trained on downsampled images: the width is what they share.
    found = re.fullmatch(r"\d{1,6}", _stated(config, "lattice_args", "D"))
    # The lattice of an even box has one point more, to be symmetric about 0.
    box = int(found[0]) - 1 if found else 0
    try:
        # The first two columns of the CTF are the box and the pixel size.
        table = read_pickled_array(Path(_stated(config, "dataset_args", "ctf").strip("\"'")))
        width = float(table[0, 0]) * float(table[0, 1])
    except (OSError, ValueError, IndexError):
        width = 0.0
    particles, image = request.particles, request.first_image
    if not 0 < width < inf and particles is not None and image is not None:
        width = image.shape[-1] * (particles.pixel_size or 0.0)
    return width / box if box > 0 and 0 < width < inf else None


def _stated(config: Path, section: str, entry: str) -> str:
    """Return what a section of a model's config says; "" where it does not say it."""
    # Before version 2 the config was a pickle, which is not read here.
    if config.suffix != ".yaml":
        return ""
    text = config.read_text("utf-8", "replace")
    found = re.search(rf"^{section}:.*\n(?:[ \t].*\n)*?[ \t]+{entry}:(.*)", text, re.MULTILINE)
    return found[1].strip() if found else ""


BRIDGES = {
    "cryodrgn": _cryodrgn,
    "recovar": _recovar,
    "aspire": _aspire,
    "relion": _relion,
    "cryosparc": _cryosparc,
}
