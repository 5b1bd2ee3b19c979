"""The bridge to RECOVAR, which reconstructs volumes by kernel regression."""

import pickle

import numpy as np

from manifactor.cryoem.particles import Particles, euler_matrices
from manifactor.runs.bridges.commands import command, comment
from manifactor.runs.bridges.request import Request

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
NEEDED = CTF_COLUMNS[:-1]
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
    if all(name in known for name in NEEDED):
        for column, name in enumerate(CTF_COLUMNS, start=2):
            table[:, column] = known.get(name, 0.0)
    return table
