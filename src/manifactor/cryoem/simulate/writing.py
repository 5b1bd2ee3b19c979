"""A simulated data set in RELION's files: stack, STAR file with optics, and truth."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from manifactor._support.stages import Callback
from manifactor.cryoem.files.mrc import write_stack, write_stack_in_parts
from manifactor.cryoem.simulate.all_views import ViewSimulation
from manifactor.cryoem.simulate.particles import Simulation

Simulated = Simulation | ViewSimulation

CTF_COLUMNS = ("rlnDefocusU", "rlnDefocusV", "rlnDefocusAngle", "rlnPhaseShift", "rlnCtfBfactor")


def write_dataset(folder: Path, simulation: Simulation, *, name: str) -> None:
    """Write particles.mrcs, particles.star and truth.csv into a folder."""
    pixel_size = simulation.pixel_size
    write_stack(folder / "particles.mrcs", simulation.images, pixel_size=pixel_size)
    _write_star(folder, simulation, name)
    _write_truth(folder / "truth.csv", _states(simulation))


def write_views(
    folder: Path, simulation: ViewSimulation, *, name: str, callback: Callback | None = None
) -> None:
    """Write particles of all views as `write_dataset` does, the images part by part.

    The angles in particles.star have the errors of the poses; truth.csv also holds the true ones.
    `callback` is called with "images" and the fraction that is written.
    """
    n, size = len(simulation), simulation.size

    def parts() -> Iterator[np.ndarray]:
        for rows, images in simulation.parts():
            yield images
            if callback is not None:
                callback("images", rows.stop / n)

    write_stack_in_parts(
        folder / "particles.mrcs", parts(), shape=(n, size, size), pixel_size=simulation.pixel_size
    )
    _write_star(folder, simulation, name)
    true = dict(zip(("rot", "tilt", "psi"), simulation.true_angles.T, strict=True))
    _write_truth(folder / "truth.csv", {**_states(simulation), **true})


def _write_star(folder: Path, simulation: Simulated, name: str) -> None:
    star = star_text(simulation, f"{name}/particles.mrcs")
    (folder / "particles.star").write_text(star, encoding="utf-8")


def _states(simulation: Simulated) -> dict[str, np.ndarray]:
    """Return the true states, an angle in degrees and lengths in Angstrom."""
    return {
        "angle": np.degrees(simulation.angle),
        "stretch_x": simulation.stretch[:, 0],
        "stretch_y": simulation.stretch[:, 1],
    }


def _write_truth(path: Path, truth: dict[str, np.ndarray]) -> None:
    np.savetxt(
        path,
        np.column_stack(list(truth.values())),
        delimiter=",",
        header=",".join(truth),
        comments="",  # no "#" before the column names
        fmt="%.8g",
    )


def star_text(simulation: Simulated, stack: str) -> str:
    """Return the STAR file of RELION 3.1 and later.

    Particles without CTF get no defocus columns.
    """
    optics = simulation.optics
    group = {
        "rlnOpticsGroupName": "opticsGroup1",
        "rlnOpticsGroup": "1",
        "rlnImagePixelSize": f"{simulation.pixel_size:.6f}",
        "rlnImageSize": str(simulation.size),
        "rlnImageDimensionality": "2",
        "rlnVoltage": f"{float(np.mean(optics.voltage)):.6f}",
        "rlnSphericalAberration": f"{float(np.mean(optics.spherical_aberration)):.6f}",
        "rlnAmplitudeContrast": f"{float(np.mean(optics.amplitude_contrast)):.6f}",
    }
    angles = simulation.angles
    particles = [_particle(i, angles[i], simulation, stack) for i in range(len(angles))]
    return _loop("optics", [group]) + _loop("particles", particles)


def _particle(i: int, angles: np.ndarray, simulation: Simulated, stack: str) -> dict[str, str]:
    """Return the columns of particle i, whose pose has these angles."""
    rot, tilt, psi = angles
    # RELION's angles and origins say how to undo the pose, and so does `shift`.
    x, y = simulation.shift[i] * simulation.pixel_size
    pose = {
        "rlnAngleRot": rot,
        "rlnAngleTilt": tilt,
        "rlnAnglePsi": psi,
        "rlnOriginXAngst": x,
        "rlnOriginYAngst": y,
    }
    columns = {
        "rlnImageName": _as_value(f"{i + 1:06d}@{stack}"),
        "rlnOpticsGroup": "1",
        "rlnMicrographName": "simulated.mrc",
        **_formatted(pose),
    }
    if simulation.defocus is not None:
        columns |= _formatted(_ctf(simulation.defocus[i]))
    # Half-sets, as RELION's refinement and postprocessing need them.
    columns["rlnRandomSubset"] = str(1 + i % 2)
    return columns


def _as_value(text: str) -> str:
    """Return a text as one value of a STAR file, in quotes if it has spaces."""
    return f'"{text}"' if len(text.split()) > 1 else text


def _ctf(defocus: float) -> dict[str, float]:
    """Return the CTF columns of a particle without astigmatism."""
    values = (defocus, defocus, 0.0, 0.0, 0.0)
    return dict(zip(CTF_COLUMNS, values, strict=True))


def _formatted(values: dict[str, float]) -> dict[str, str]:
    return {name: f"{value:.6f}" for name, value in values.items()}


def _loop(block: str, rows: list[dict[str, str]]) -> str:
    """Return a data block whose columns are the keys of the rows."""
    # The comment by which RELION tells its versions; the columns are those of the first row, as all
    # rows have the same.
    lines = ["", "# version 30001", "", f"data_{block}", "", "loop_"]
    lines += [f"_{name} #{i}" for i, name in enumerate(rows[0], start=1)]
    lines += [" ".join(row.values()) for row in rows]
    return "\n".join([*lines, "", ""])
