"""A project of simulated particles in all views, for `bridges.py`.

A molecule of beads has two motions: half of it turns, half of it is shifted. Images
have a CTF, noise and origins off the centre, in the files of RELION and cryoSPARC.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from manifactor.cryoem.files.particles import euler_matrices
from manifactor.cryoem.files.stacks import write_stack
from manifactor.cryoem.one_view import contrast_transfer, image_frequencies

SIZE, PIXEL_SIZE, BLUR, N_BEADS = 32, 4.0, 5.0, 40
COLUMNS = [
    "rlnImageName",
    "rlnOpticsGroup",
    "rlnAngleRot",
    "rlnAngleTilt",
    "rlnAnglePsi",
    "rlnOriginXAngst",
    "rlnOriginYAngst",
    "rlnDefocusU",
    "rlnDefocusV",
    "rlnDefocusAngle",
    "rlnPhaseShift",
]


@dataclass(frozen=True)
class Data:
    """Particles of a project, and the states behind them."""

    project: Path
    star: Path
    states: np.ndarray  # (n, 3): cosine and sine of the turn, stretch


def beads(state):
    """Places of the beads in Angstrom, (N_BEADS, 3): half of them turn, half shift."""
    places = np.random.default_rng(1).uniform(-25, 25, (N_BEADS, 3))
    cosine, sine, stretch = state
    turn = np.array([[cosine, -sine, 0], [sine, cosine, 0], [0, 0, 1]])
    upper = places[: N_BEADS // 2] * [1, 1, 0.5] + [0, 0, 15]
    lower = places[N_BEADS // 2 :] * [1, 1, 0.5] - [0, 0, 15]
    shift = np.array([20 * stretch, 0, 0])
    return np.concatenate([upper @ turn.T, lower + shift])


def profile(coordinates):
    """Gaussians around coordinates along one axis of the grid, (n, SIZE)."""
    grid = PIXEL_SIZE * (np.arange(SIZE) - SIZE // 2)
    return np.exp(-0.5 * ((grid - coordinates[:, None]) / BLUR) ** 2)


def volume(state):
    x, y, z = (profile(axis) for axis in beads(state).T)
    return np.einsum("bz,by,bx->zyx", z, y, x)


def image(state, angles):
    x, y, _ = (euler_matrices(angles[None])[0] @ beads(state).T)[:, :]
    return profile(y).T @ profile(x)


def simulated(folder, n, *, noise=0.5, seed=0):
    """Write a RELION project and return it."""
    rng = np.random.default_rng(seed)
    turn = rng.uniform(0, 2 * np.pi, n)
    states = np.c_[np.cos(turn), np.sin(turn), rng.uniform(-1, 1, n)]
    rot, psi = rng.uniform(-180, 180, (2, n))
    tilt = np.degrees(np.arccos(rng.uniform(-1, 1, n)))
    angles = np.c_[rot, tilt, psi]
    defocus = rng.uniform(8000, 15000, n)
    shift = rng.integers(-2, 3, (n, 2))
    ctf = contrast_transfer(image_frequencies(SIZE, PIXEL_SIZE), defocus)
    clean = np.array([image(*each) for each in zip(states, angles, strict=True)])
    clean = np.fft.irfft2(np.fft.rfft2(clean) * ctf, s=(SIZE, SIZE))
    # The origins of a STAR file say how to undo the shift.
    moved = [
        np.roll(each, (-y, -x), axis=(0, 1)) for each, (x, y) in zip(clean, shift, strict=True)
    ]
    images = moved + noise * np.std(clean) * rng.normal(size=clean.shape)
    project = folder / "my project; 2"
    (project / "Extract/job001").mkdir(parents=True, exist_ok=True)
    (project / "Refine3D/job002").mkdir(parents=True, exist_ok=True)
    stack = "Extract/job001/particles.mrcs"
    write_stack(project / stack, np.array(images), pixel_size=PIXEL_SIZE)
    star = project / "Refine3D/job002/run_data.star"
    star.write_text(star_text(stack, angles, PIXEL_SIZE * shift, defocus))
    write_cs(star.with_suffix(".cs"), stack, angles, shift, defocus)
    return Data(project, star, states)


def star_text(stack, angles, origins, defocus):
    optics = (
        "data_optics\n\nloop_\n_rlnOpticsGroup #1\n_rlnImagePixelSize #2\n"
        "_rlnImageSize #3\n_rlnVoltage #4\n_rlnSphericalAberration #5\n"
        f"_rlnAmplitudeContrast #6\n1 {PIXEL_SIZE} {SIZE} 300 2.7 0.1\n\n"
    )
    labels = "".join(f"_{name} #{i}\n" for i, name in enumerate(COLUMNS, start=1))
    rows = []
    columns = np.c_[angles, origins, defocus, defocus]
    for i, numbers in enumerate(columns, start=1):
        values = " ".join(f"{number:.6f}" for number in numbers)
        rows.append(f"{i:06d}@{stack} 1 {values} 0.0 0.0\n")
    return f"{optics}data_particles\n\nloop_\n{labels}{''.join(rows)}\n"


def write_cs(path, stack, angles, shift, defocus):
    """Write the same particles as cryoSPARC has them."""
    matrices = euler_matrices(angles)
    fields = {
        "uid": np.arange(1, len(angles) + 1, dtype="u8"),
        "blob/path": np.full(len(angles), stack.encode()),
        "blob/idx": np.arange(len(angles), dtype="u4"),
        "blob/shape": np.full((len(angles), 2), SIZE, dtype="u4"),
        "blob/psize_A": np.full(len(angles), PIXEL_SIZE, dtype="f4"),
        "ctf/accel_kv": np.full(len(angles), 300, dtype="f4"),
        "ctf/cs_mm": np.full(len(angles), 2.7, dtype="f4"),
        "ctf/amp_contrast": np.full(len(angles), 0.1, dtype="f4"),
        "ctf/df1_A": defocus.astype("f4"),
        "ctf/df2_A": defocus.astype("f4"),
        "ctf/df_angle_rad": np.zeros(len(angles), dtype="f4"),
        "ctf/phase_shift_rad": np.zeros(len(angles), dtype="f4"),
        "alignments3D/pose": -Rotation.from_matrix(matrices).as_rotvec().astype("f4"),
        "alignments3D/shift": shift.astype("f4"),
        "alignments3D/psize_A": np.full(len(angles), PIXEL_SIZE, dtype="f4"),
    }
    types = [(name, v.dtype, v.shape[1:]) for name, v in fields.items()]
    table = np.empty(len(angles), dtype=types)
    for name, values in fields.items():
        table[name] = values
    with path.open("wb") as file:
        np.save(file, table)
