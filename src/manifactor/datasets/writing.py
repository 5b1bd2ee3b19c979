"""A simulated data set on disk, as RELION would have it: a stack, a STAR file with optics, and the truth."""

from pathlib import Path

import numpy as np

from manifactor.cryoem.mrc import write_stack
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


def write_dataset(folder: Path, simulation: Simulation, *, name: str) -> None:
    """Write particles.mrcs, particles.star and truth.csv into a folder that will be known by this name.

    As in RELION, images are named relative to the project's folder: name/particles.mrcs.
    """
    images, pixel_size = simulation.images, simulation.pixel_size
    write_stack(folder / "particles.mrcs", images, pixel_size=pixel_size)
    star = star_text(simulation, f"{name}/particles.mrcs")
    (folder / "particles.star").write_text(star, encoding="utf-8")
    truth = {
        "angle": np.degrees(simulation.angle),
        "stretch_x": simulation.stretch[:, 0],
        "stretch_y": simulation.stretch[:, 1],
    }
    columns = np.column_stack(list(truth.values()))
    np.savetxt(
        folder / "truth.csv",
        columns,
        delimiter=",",
        header=",".join(truth),
        comments="",
        fmt="%.8g",
    )


def star_text(simulation: Simulation, stack: str) -> str:
    """The STAR file of RELION 3.1 and later; particles without CTF get no defocus columns."""
    optics = simulation.optics
    group = {
        "rlnOpticsGroupName": "opticsGroup1",
        "rlnOpticsGroup": "1",
        "rlnImagePixelSize": f"{simulation.pixel_size:.6f}",
        "rlnImageSize": str(simulation.images.shape[1]),
        "rlnImageDimensionality": "2",
        "rlnVoltage": f"{float(np.mean(optics.voltage)):.6f}",
        "rlnSphericalAberration": f"{float(np.mean(optics.spherical_aberration)):.6f}",
        "rlnAmplitudeContrast": f"{float(np.mean(optics.amplitude_contrast)):.6f}",
    }
    names = [
        name
        for name in COLUMNS
        if simulation.defocus is not None or name not in CTF_COLUMNS
    ]
    rows = [
        " ".join(_row(i, simulation, stack, names))
        for i in range(len(simulation.images))
    ]
    return _loop("optics", list(group), [" ".join(group.values())]) + _loop(
        "particles", names, rows
    )


CTF_COLUMNS = (
    "rlnDefocusU",
    "rlnDefocusV",
    "rlnDefocusAngle",
    "rlnPhaseShift",
    "rlnCtfBfactor",
)


def _row(i: int, simulation: Simulation, stack: str, names: list[str]) -> list[str]:
    rot, tilt, psi = simulation.view
    x, y = simulation.shift[i] * simulation.pixel_size
    blur = 0.0 if simulation.defocus is None else simulation.defocus[i]
    pose = (rot, tilt, psi + simulation.psi[i], x, y)
    values = (
        f"{i + 1:06d}@{stack}",
        "1",
        "simulated.mrc",
        *pose,
        blur,
        blur,
        0.0,
        0.0,
        0.0,
        str(1 + i % 2),
    )
    all_values = dict(zip(COLUMNS, values, strict=True))
    return [
        v if isinstance(v := all_values[name], str) else f"{v:.6f}" for name in names
    ]


def _loop(block: str, names: list[str], rows: list[str]) -> str:
    labels = "".join(f"_{name} #{i}\n" for i, name in enumerate(names, start=1))
    return (
        f"\n# version 30001\n\ndata_{block}\n\nloop_\n{labels}"
        + "".join(f"{row}\n" for row in rows)
        + "\n"
    )
