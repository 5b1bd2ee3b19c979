"""Images of an antibody with moving arms, for `antibody.py`.

Sets after IgG-1D and IgG-2D of CryoBench, made by a projector of their own from beads of PDB entry
1HZH (columns chain, number, x, y, z, electrons): Fabs turn or swing about their hinges, or are
absent. The signal to noise is the variance of a clean image, CTF included, over that of the noise
in a pixel.
"""

import csv
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from scipy import fft
from scipy.spatial.transform import Rotation

from manifactor.cryoem.files.particles import euler_matrices, matrix_angles
from manifactor.cryoem.files.stacks import write_stack_in_parts
from manifactor.cryoem.one_view import KRIOS
from manifactor.cryoem.simulate.writing import star_text

# What the Fabs do. Two states are a turn by 2 radians apart; "lack" is a Fab that 30 % have not.
MOTIONS = {
    "turn": ("turn", ""),
    "both": ("turn", "turn"),
    "swing-turn": ("swing", "turn"),
    "swings": ("swing", "swing"),
    "rigid": ("", ""),
    "states": ("states", ""),
    "lack": ("turn", "lack"),
}
SWING = np.pi / 3
PIXEL_SIZES = {64: 4.5, 128: 3.0}  # Angstrom; the latter is that of CryoBench


@dataclass(frozen=True)
class Row:
    """A set of images."""

    motion: str = "turn"
    snr: float = 0.5
    n: int = 8000
    size: int = 64
    poses: float = 0.0  # degrees: root mean square of the errors of poses
    shift: float = 0.0  # pixels, at most
    ctf: int = 0
    preferred: int = 0

    def __str__(self) -> str:
        known = {f"{self.size} px": self.size != 64, f"poses {self.poses:g} deg off": self.poses}
        known |= {"CTF": self.ctf, "preferred views": self.preferred, "shifts": self.shift}
        return ", ".join([self.motion, *(name for name, there in known.items() if there)])


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


class Antibody:
    """Beads of two Fabs and of the rest, with the hinges and axes of the Fabs."""

    def __init__(self, path: Path) -> None:
        """Read a table of beads."""
        with path.open() as file:
            beads = list(csv.DictReader(line for line in file if not line.startswith("#")))
        number = np.array([int(bead["number"]) for bead in beads])
        chain = np.array([bead["chain"] for bead in beads])
        weight = np.array([float(bead["electrons"]) for bead in beads], np.float32)
        at = np.array([[float(bead[axis]) for axis in "xyz"] for bead in beads])
        at -= np.average(at, axis=0, weights=weight)
        pairs = ("H", "L"), ("K", "M")
        fabs = [(chain == l) | ((chain == h) & (number <= 225)) for h, l in pairs]  # noqa: E741
        own = (*fabs, ~(fabs[0] | fabs[1]))
        self.parts, self.electrons = [at[part] for part in own], [weight[part] for part in own]
        near = (number >= 226) & (number <= 235)
        self.hinges = np.array([at[near & (chain == heavy)].mean(axis=0) for heavy, _ in pairs])
        along = unit([part.mean(axis=0) for part in self.parts[:2]] - self.hinges)
        across = unit(np.cross(along, [0.0, 0.0, 1.0]))
        # Fabs turn about axes 45 degrees off their own, and swing about axes across it.
        tilted = unit(along + across)
        self.axes = {"turn": tilted, "states": tilted, "swing": np.cross(along, across)}

    def moved(self, motion: str, angle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return rotations and shifts of the parts, (n, 3, 3, 3) and (n, 3, 3)."""
        turns, shifts = np.tile(np.eye(3), (len(angle), 3, 1, 1)), np.zeros((len(angle), 3, 3))
        for k, does in enumerate(MOTIONS[motion]):
            if does in self.axes:
                turned = Rotation.from_rotvec(angle[:, [k]] * self.axes[does][k])
                turns[:, k] = turned.as_matrix()
                shifts[:, k] = self.hinges[k] - turned.apply(self.hinges[k])
        return turns, shifts

    def images(self, row: Row, truth, rows: np.ndarray) -> np.ndarray:
        """Return images without noise, (n, size, size)."""
        turns, shifts = self.moved(row.motion, truth.angle[rows])
        flat = truth.rotations[rows, None, :2]
        maps, offsets = flat @ turns, (flat @ shifts[..., None])[..., 0]
        # A shift is what moves an image back.
        offsets -= truth.pixel_size * truth.shift[rows, None]
        images = np.empty((len(rows), row.size, row.size), np.float32)
        for i, lacks in enumerate(truth.lacks[rows]):
            own = [0, 2] if lacks else [0, 1, 2]
            places = [maps[i, k] @ self.parts[k].T + offsets[i, k][:, None] for k in own]
            x, y = (profiles(at, row) for at in np.hstack(places))
            images[i] = y @ (x * np.concatenate([self.electrons[k] for k in own])).T
        return images if truth.defocus is None else with_ctf(images, row, truth.defocus[rows])

    def volume(self, row: Row, truth, i: int) -> np.ndarray:
        """Return the molecule of a particle, indexed by z, y, x."""
        turns, shifts = self.moved(row.motion, truth.angle[[i]])
        own = [0, 2] if truth.lacks[i] else [0, 1, 2]
        places = np.vstack([self.parts[k] @ turns[0, k].T + shifts[0, k] for k in own])
        x, y, z = (profiles(at, row) for at in places.T)
        planes = z[:, None] * (y * np.concatenate([self.electrons[k] for k in own]))
        return planes @ x.T


def profiles(at: np.ndarray, row: Row) -> np.ndarray:
    """Return Gaussians around coordinates at the pixels of an axis, (size, n_beads)."""
    pixel_size = PIXEL_SIZES[row.size]
    width = np.sqrt(2) * max(0.8 * pixel_size, 4.0)
    pixels = (np.arange(row.size) - row.size // 2) * pixel_size
    apart = ((pixels[:, None] - at) / width).astype(np.float32)
    # Numbers below e^-40 slow processors down.
    return np.exp(-np.minimum(apart * apart, 40))


def with_ctf(images: np.ndarray, row: Row, defocus: np.ndarray) -> np.ndarray:
    """Return images with a CTF of 300 kV, Cs 2.7 mm and amplitude contrast .1."""
    wavelength, pixel_size = 0.0196875, PIXEL_SIZES[row.size]
    across, along = fft.fftfreq(row.size, pixel_size), fft.rfftfreq(row.size, pixel_size)
    squared = across[:, None] ** 2 + along**2
    delay = np.pi * wavelength * defocus[:, None, None] * squared
    delay -= np.pi / 2 * 2.7e7 * wavelength**3 * squared**2
    ctf = np.sqrt(1 - 0.1**2) * np.sin(delay) + 0.1 * np.cos(delay)
    return fft.irfft2(fft.rfft2(images) * ctf, s=images.shape[1:]).astype(np.float32)


def drawn(row: Row, seed: int) -> SimpleNamespace:
    """Return what is known of the particles of a set, true and as the STAR file has it."""
    rng, n, does = np.random.default_rng(seed), row.n, MOTIONS[row.motion]
    state = (rng.random(n) < (0.3 if "lack" in does else 0.5)).astype(int)
    draws = {"turn": lambda: rng.uniform(0, 2 * np.pi, n), "states": lambda: 2.0 * state}
    draws["swing"] = lambda: SWING * rng.uniform(-0.5, 0.5, n)
    angle = np.column_stack([draws[d]() if d in draws else np.zeros(n) for d in does])
    towards = rng.standard_normal((n, 3))
    if row.preferred:
        # 70 % are seen from within some 20 degrees of one of three directions.
        centres = unit(np.array([[1.0, 2.0, 0.5], [-1.0, 0.3, 1.0], [0.2, -0.5, -1.0]]))
        which = rng.choice(3, n, p=[0.5, 0.3, 0.2])
        towards += 3 * centres[which] * (rng.random(n) < 0.7)[:, None]
    x, y, z = unit(towards).T
    exact = np.degrees([np.arctan2(y, x), np.arccos(z), rng.uniform(-np.pi, np.pi, n)]).T
    rotations = euler_matrices(exact)
    wrong = np.radians(row.poses) / np.sqrt(3) * rng.standard_normal((n, 3))
    return SimpleNamespace(
        # Topology and coordinate of each motion: radians, or from -1 to 1.
        motions=[
            ("circle", along) if d == "turn" else ("interval", 2 * along / SWING)
            for d, along in zip(does, angle.T, strict=True)
            if d in ("turn", "swing")
        ],
        angle=angle,
        state=state,
        lacks=(state == 1) & ("lack" in does),
        rotations=rotations,
        angles=matrix_angles(Rotation.from_rotvec(wrong).as_matrix() @ rotations),
        shift=rng.uniform(-row.shift, row.shift, (n, 2)),
        defocus=rng.uniform(1e4, 2.5e4, n) if row.ctf else None,
        optics=KRIOS,
        size=row.size,
        pixel_size=PIXEL_SIZES[row.size],
    )


def write_set(beads: Path, row: Row, seed: int, folder: Path) -> None:
    """Write particles.star and particles.mrcs."""
    molecule, truth, rng = Antibody(beads), drawn(row, seed), np.random.default_rng([seed, 1])
    folder.mkdir(parents=True, exist_ok=True)
    batches = np.array_split(np.arange(row.n), max(row.n // 500, 1))
    noise = np.sqrt(molecule.images(row, truth, batches[0]).var(axis=(1, 2)).mean() / row.snr)

    def parts():
        for batch in batches:
            images = molecule.images(row, truth, batch)
            yield images + noise * rng.standard_normal(images.shape, dtype=np.float32)

    shape = (row.n, row.size, row.size)
    stack, star = folder / "particles.mrcs", folder / "particles.star"
    write_stack_in_parts(stack, parts(), shape=shape, pixel_size=truth.pixel_size)
    star.write_text(star_text(truth, stack.name))
