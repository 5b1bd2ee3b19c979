"""A simulated data set in RELION's files: stack, STAR file with optics, and truth."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from manifactor._support.stages import Callback
from manifactor.cryoem.files.mrc import write_stack, write_stack_in_parts
from manifactor.cryoem.simulate.all_views import ViewSimulation
from manifactor.cryoem.simulate.one_view import Simulation

Simulated = Simulation | ViewSimulation


def write_dataset(folder: Path, simulation: Simulation, *, name: str) -> None:
    """Write particles.mrcs, particles.star and truth.csv into a folder."""
    images, pixel_size = simulation.images, simulation.pixel_size
    write_stack(folder / "particles.mrcs", images, pixel_size=pixel_size)
    _write_texts(folder, simulation, name)


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
    rot, tilt, psi = simulation.true_angles.T
    _write_texts(folder, simulation, name, rot=rot, tilt=tilt, psi=psi)


def _write_texts(folder: Path, simulation: Simulated, name: str, **more: np.ndarray) -> None:
    """Write particles.star, and truth.csv with angles in degrees and lengths in Angstrom."""
    star = star_text(simulation, f"{name}/particles.mrcs")
    (folder / "particles.star").write_text(star, encoding="utf-8")
    x, y = simulation.stretch.T
    truth = {"angle": np.degrees(simulation.angle), "stretch_x": x, "stretch_y": y, **more}
    np.savetxt(
        folder / "truth.csv",
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
    optics, n = simulation.optics, len(simulation.angle)
    microscope = optics.voltage, optics.spherical_aberration, optics.amplitude_contrast
    voltage, aberration, contrast = (_texts([float(np.mean(each))]) for each in microscope)
    group = {
        "rlnOpticsGroupName": ["opticsGroup1"],
        "rlnOpticsGroup": ["1"],
        "rlnImagePixelSize": _texts([simulation.pixel_size]),
        "rlnImageSize": [str(simulation.size)],
        "rlnImageDimensionality": ["2"],
        "rlnVoltage": voltage,
        "rlnSphericalAberration": aberration,
        "rlnAmplitudeContrast": contrast,
    }
    # A value with spaces is quoted.
    quote = '"' if len(stack.split()) > 1 else ""
    rot, tilt, psi = map(_texts, simulation.angles.T)
    # RELION's angles and origins say how to undo the pose, and so does `shift`.
    x, y = map(_texts, (simulation.shift * simulation.pixel_size).T)
    particles = {
        "rlnImageName": [f"{quote}{i:06d}@{stack}{quote}" for i in range(1, n + 1)],
        "rlnOpticsGroup": n * ["1"],
        "rlnMicrographName": n * ["simulated.mrc"],
        "rlnAngleRot": rot,
        "rlnAngleTilt": tilt,
        "rlnAnglePsi": psi,
        "rlnOriginXAngst": x,
        "rlnOriginYAngst": y,
    }
    if simulation.defocus is not None:
        # Without astigmatism.
        particles["rlnDefocusU"] = particles["rlnDefocusV"] = _texts(simulation.defocus)
        for name in ("rlnDefocusAngle", "rlnPhaseShift", "rlnCtfBfactor"):
            particles[name] = n * _texts([0.0])
    # Half-sets, as RELION's refinement and postprocessing need them.
    particles["rlnRandomSubset"] = [str(1 + i % 2) for i in range(n)]
    return _loop("optics", group) + _loop("particles", particles)


def _texts(values: Iterable[float]) -> list[str]:
    return [f"{value:.6f}" for value in values]


def _loop(block: str, columns: dict[str, list[str]]) -> str:
    """Return a data block of columns."""
    # The comment tells RELION which version wrote the file.
    lines = ["", "# version 30001", "", f"data_{block}", "", "loop_"]
    lines += [f"_{name} #{i}" for i, name in enumerate(columns, start=1)]
    lines += map(" ".join, zip(*columns.values(), strict=True))
    return "\n".join([*lines, "", ""])
