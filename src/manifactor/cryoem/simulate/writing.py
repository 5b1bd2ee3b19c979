"""A simulated data set in RELION's files: stack, STAR file with optics, and truth."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from manifactor._support.stages import Callback
from manifactor.cryoem.files.stacks import write_stack, write_stack_in_parts
from manifactor.cryoem.simulate.all_views import ViewSimulation
from manifactor.cryoem.simulate.one_view import Simulation
from manifactor.runs.places import as_csv


def write_dataset(
    folder: Path,
    simulation: Simulation | ViewSimulation,
    *,
    name: str,
    callback: Callback | None = None,
) -> None:
    """Write particles.mrcs, particles.star and truth.csv into a folder.

    Images of all views are written part by part, which `callback` is told of. Angles in
    particles.star have the errors of the poses; truth.csv also holds the true ones.
    """
    stack, pixel_size = folder / "particles.mrcs", simulation.pixel_size
    x, y = simulation.stretch.T
    truth = {"angle": np.degrees(simulation.angle), "stretch_x": x, "stretch_y": y}
    if isinstance(simulation, ViewSimulation):
        shape = len(simulation), simulation.size, simulation.size
        write_stack_in_parts(
            stack, _parts(simulation, callback), shape=shape, pixel_size=pixel_size
        )
        truth |= dict(zip(("rot", "tilt", "psi"), simulation.true_angles.T, strict=True))
    else:
        write_stack(stack, simulation.images, pixel_size=pixel_size)
    star = star_text(simulation, f"{name}/particles.mrcs")
    (folder / "particles.star").write_text(star, encoding="utf-8")
    (folder / "truth.csv").write_bytes(as_csv(truth))


def _parts(simulation: ViewSimulation, callback: Callback | None) -> Iterator[np.ndarray]:
    for rows, images in simulation.parts():
        yield images
        if callback is not None:
            callback("images", rows.stop / len(simulation))


def star_text(simulation: Simulation | ViewSimulation, stack: str) -> str:
    """Return RELION's STAR file (3.1 and later), without defocus columns if there is no CTF."""
    optics, n = simulation.optics, len(simulation.angle)
    group = {
        "rlnOpticsGroupName": ["opticsGroup1"],
        "rlnOpticsGroup": ["1"],
        "rlnImagePixelSize": [simulation.pixel_size],
        "rlnImageSize": [str(simulation.size)],
        "rlnImageDimensionality": ["2"],
        "rlnVoltage": [optics.voltage],
        "rlnSphericalAberration": [optics.spherical_aberration],
        "rlnAmplitudeContrast": [optics.amplitude_contrast],
    }
    # A value with spaces is quoted.
    quote = '"' if len(stack.split()) > 1 else ""
    rot, tilt, psi = simulation.angles.T
    # RELION's angles and origins say how to undo the pose, and so does `shift`.
    x, y = (simulation.shift * simulation.pixel_size).T
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
        particles["rlnDefocusU"] = particles["rlnDefocusV"] = simulation.defocus
        for name in ("rlnDefocusAngle", "rlnPhaseShift", "rlnCtfBfactor"):
            particles[name] = np.zeros(n)
    # Half-sets, as RELION's refinement and postprocessing need them.
    particles["rlnRandomSubset"] = [str(1 + i % 2) for i in range(n)]
    return _loop("optics", group) + _loop("particles", particles)


def _loop(block: str, columns: Mapping) -> str:
    """Return a data block of columns of texts and of numbers."""
    # The comment tells RELION which version wrote the file.
    lines = ["", "# version 30001", "", f"data_{block}", "", "loop_"]
    lines += [f"_{name} #{i}" for i, name in enumerate(columns, start=1)]
    for row in zip(*columns.values(), strict=True):
        texts = (value if isinstance(value, str) else f"{value:.6f}" for value in row)
        lines.append(" ".join(texts))
    return "\n".join([*lines, "", ""])
