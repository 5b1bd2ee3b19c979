"""A simulated data set on disk, as RELION would have it: a stack, a STAR file with optics, and the truth."""

from pathlib import Path

import numpy as np

from manifactor.cryoem.ctf import Optics
from manifactor.cryoem.pictures import write_stack
from manifactor.datasets.particles import Simulation

COLUMNS = (
    "rlnImageName",
    "rlnOpticsGroup",
    "rlnMicrographName",
    "rlnAngleRot",
    "rlnAngleTilt",
    "rlnAnglePsi",
    "rlnOriginXAngst",
    "rlnOriginYAngst",
    "rlnDefocusU",
    "rlnDefocusV",
    "rlnDefocusAngle",
    "rlnPhaseShift",
    "rlnCtfBfactor",
    "rlnRandomSubset",
)


def write_dataset(folder: Path, simulation: Simulation) -> None:
    """Write particles.mrcs, particles.star and truth.csv into a folder."""
    images, pixel_size = simulation.images, simulation.pixel_size
    write_stack(folder / "particles.mrcs", images, pixel_size=pixel_size)
    star = star_text(
        len(images),
        images.shape[1],
        pixel_size=pixel_size,
        view=simulation.view,
        defocus=simulation.defocus,
        optics=simulation.optics,
    )
    (folder / "particles.star").write_text(star, encoding="utf-8")
    truth = {
        "angle": np.degrees(simulation.angle),
        "stretch_x": simulation.stretch[:, 0],
        "stretch_y": simulation.stretch[:, 1],
    }
    columns = np.column_stack(list(truth.values()))
    np.savetxt(folder / "truth.csv", columns, delimiter=",", header=",".join(truth), comments="", fmt="%.8g")


def star_text(
    n_images: int,
    size: int,
    *,
    pixel_size: float,
    view: tuple[float, float, float],
    defocus: np.ndarray | None,
    optics: Optics,
) -> str:
    """The STAR file of RELION 3.1 and later; particles without CTF get no defocus columns."""
    group = {
        "rlnOpticsGroupName": "opticsGroup1",
        "rlnOpticsGroup": "1",
        "rlnImagePixelSize": f"{pixel_size:.6f}",
        "rlnImageSize": str(size),
        "rlnImageDimensionality": "2",
        "rlnVoltage": f"{float(np.mean(optics.voltage)):.6f}",
        "rlnSphericalAberration": f"{float(np.mean(optics.spherical_aberration)):.6f}",
        "rlnAmplitudeContrast": f"{float(np.mean(optics.amplitude_contrast)):.6f}",
    }
    names = [name for name in COLUMNS if defocus is not None or name not in CTF_COLUMNS]
    rows = [" ".join(_row(i, view, defocus, names)) for i in range(n_images)]
    return _loop("optics", list(group), [" ".join(group.values())]) + _loop("particles", names, rows)


CTF_COLUMNS = ("rlnDefocusU", "rlnDefocusV", "rlnDefocusAngle", "rlnPhaseShift", "rlnCtfBfactor")


def _row(i: int, view: tuple[float, float, float], defocus: np.ndarray | None, names: list[str]) -> list[str]:
    rot, tilt, psi = view
    blur = 0.0 if defocus is None else defocus[i]
    values = (f"{i + 1:06d}@particles.mrcs", "1", "simulated.mrc", rot, tilt, psi, 0.0, 0.0, blur, blur, 0.0, 0.0, 0.0)
    all_values = dict(zip(COLUMNS, (*values, str(1 + i % 2)), strict=True))
    return [v if isinstance(v := all_values[name], str) else f"{v:.6f}" for name in names]


def _loop(block: str, names: list[str], rows: list[str]) -> str:
    labels = "".join(f"_{name} #{i}\n" for i, name in enumerate(names, start=1))
    return f"\n# version 30001\n\ndata_{block}\n\nloop_\n{labels}" + "".join(f"{row}\n" for row in rows) + "\n"
