"""Does a fit of all views take 500,000 particles of 256 pixels?

`--dry-run` of all of them is timed. A part of them is fitted, and the peak of its
memory is measured. The images of that part are simulated; those of the others are holes
in sparse files. Images are bytes, which take 6.6 GB for 100,000 of them.

python benchmarks/all_views_scale.py [--particles 500000] [--fitted 100000] [--device cuda]
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import mrcfile
import numpy as np
from scipy import fft
from scipy.spatial.transform import Rotation

from manifactor import datasets
from manifactor.cryoem.files.particles import matrix_angles
from manifactor.runs.run import open_run
from manifactor.scores import coordinate_correlation

from record import record

SIZE, SMALL, SMALL_PIXEL = 256, 36, 8.0
PIXEL = SMALL_PIXEL * SMALL / SIZE
# Of the noise in a stack of bytes: rounding adds nothing, and 6 of it fit.
NOISE = 20.0
OPTICS = f"""
data_optics

loop_
_rlnOpticsGroup #1
_rlnImagePixelSize #2
_rlnImageSize #3
_rlnVoltage #4
_rlnSphericalAberration #5
_rlnAmplitudeContrast #6
1 {PIXEL:.6f} {SIZE} 300.0 2.7 0.1

data_particles

loop_
_rlnImageName #1
_rlnOpticsGroup #2
_rlnAngleRot #3
_rlnAngleTilt #4
_rlnAnglePsi #5
_rlnOriginXAngst #6
_rlnOriginYAngst #7
_rlnDefocusU #8
_rlnDefocusV #9
_rlnDefocusAngle #10
"""


def simulated(n):
    return datasets.simulate_views(
        n,
        size=SMALL,
        pixel_size=SMALL_PIXEL,
        blur=6.0,
        defocus=(10_000.0, 25_000.0),
        signal_to_noise=10.0,
        random_state=0,
    )


def enlarged(images):
    """Return the same images with more pixels."""
    spectra = fft.rfft2(images)
    half = SMALL // 2
    wide = np.zeros((len(images), SIZE, SIZE // 2 + 1), np.complex64)
    wide[:, :half, :half] = spectra[:, :half, :half]
    wide[:, 1 - half :, :half] = spectra[:, 1 - half :, :half]
    return fft.irfft2(wide, s=(SIZE, SIZE)) * (SIZE / SMALL) ** 2


def write_images(path, simulation, *, batch=250):
    """Write a stack of bytes."""
    n, rng = len(simulation), np.random.default_rng(1)
    # Fourier coefficients have as much noise as those of the small images.
    unit = simulation.noise * SIZE / SMALL / NOISE
    with mrcfile.new_mmap(path, shape=(n, SIZE, SIZE), mrc_mode=0) as file:
        file.set_image_stack()
        file.voxel_size = PIXEL
        for start in range(0, n, batch):
            rows = slice(start, min(start + batch, n))
            images = enlarged(simulation.clean(rows)) / unit
            images += NOISE * rng.standard_normal(images.shape, dtype=np.float32)
            file.data[rows] = np.clip(np.rint(images), -127, 127)


def write_holes(path, pattern, n):
    """Write a sparse stack of zeros with the header of another."""
    with pattern.open("rb") as file:
        path.write_bytes(file.read(1024))
    with mrcfile.open(path, mode="r+", permissive=True, header_only=True) as file:
        file.header.nz = n
    os.truncate(path, 1024 + n * SIZE**2)


def rows_of(stack, angles, shift, defocus):
    for i, (a, s, d) in enumerate(zip(angles, shift, defocus, strict=True)):
        pose = " ".join(f"{value:.6f}" for value in (*a, *s, d, d))
        yield f"{i + 1:06d}@{stack} 1 {pose} 0.0\n"


def write_project(folder, n_particles, n_fitted):
    """Write fitted.star, all.star and their stacks."""
    simulation = simulated(n_fitted)
    write_images(folder / "stack0.mrcs", simulation)
    known = rows_of(
        "stack0.mrcs", simulation.angles, simulation.shift * SMALL_PIXEL, simulation.defocus
    )
    text = OPTICS + "".join(known)
    (folder / "fitted.star").write_text(text)
    rng = np.random.default_rng(2)
    with (folder / "all.star").open("w") as file:
        file.write(text)
        for number, start in enumerate(range(n_fitted, n_particles, n_fitted), start=1):
            n, name = min(n_fitted, n_particles - start), f"stack{number}.mrcs"
            write_holes(folder / name, folder / "stack0.mrcs", n)
            angles = matrix_angles(Rotation.random(n, random_state=rng).as_matrix())
            defocus = rng.uniform(10_000, 25_000, n)
            file.writelines(rows_of(name, angles, np.zeros((n, 2)), defocus))


def measured(*arguments):
    """Run the command; return its seconds, those of the CPU, gigabytes, and output."""
    command = [sys.executable, "-m", "manifactor", *map(str, arguments)]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)} failed")
    return {
        "seconds": round(time.perf_counter() - start, 1),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "peak_gigabytes": round(usage.ru_maxrss / 1e6, 2),
    }, output.strip()


def correlations(run, truth):
    """Return how well the places agree with the motions of the same topology."""
    kinds = {2: "circle", 1: "interval"}
    true = {kinds[states.shape[1]]: states for states in truth}
    return {
        place.topology: round(coordinate_correlation(place.coordinate, true[place.topology]), 3)
        for place in run.places
        if place.topology in true
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--particles", type=int, default=500_000)
    parser.add_argument("--fitted", type=int, default=100_000)
    parser.add_argument("--device", default="cpu", help="of the fit, as torch calls it")
    parser.add_argument("--folder", help="exists, and is kept with all files")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(arguments.folder or temporary)
        if not (folder / "all.star").exists():
            # In a process of its own: the memory of a command counts from what its
            # parent holds.
            with ProcessPoolExecutor(1) as process:
                sizes = (arguments.particles, arguments.fitted)
                process.submit(write_project, folder, *sizes).result()
        used = sum(512 * path.stat().st_blocks for path in folder.glob("*.mrcs"))
        how = ("--all-views", "--device", arguments.device)
        dry, said = measured("fit", folder / "all.star", *how, "--dry-run")
        _, expected = measured("fit", folder / "fitted.star", *how, "--dry-run")
        out = folder / "run"
        real, _ = measured("fit", folder / "fitted.star", *how, "--out", out)
        run = open_run(out)
        record(
            "particles of all views, at full size",
            particles=arguments.particles,
            fitted=arguments.fitted,
            device=arguments.device,
            stack_gigabytes=round(used / 1e9, 1),
            dry_run={**dry, "said": said},
            fit={**real, "said_before": expected},
            stages=run.record["all_views"]["seconds"],
            correlations=correlations(run, simulated(arguments.fitted).truth),
        )


if __name__ == "__main__":
    main()
