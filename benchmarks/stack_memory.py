"""How much memory does reading and preparing a stack of 20 GB take?

The stack is a sparse file: its header says 20 GB of images. The first few are real, the
others are zeros that take no room on the disk.
"""

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import mrcfile
import numpy as np

from manifactor import datasets
from manifactor.cryoem.components import image_components
from manifactor.cryoem.files.stacks import stack_images
from manifactor.cryoem.one_view import View
from manifactor.runs.options import FitOptions

from record import record

SIZE = 256


def sparse_stack(path: Path, gigabytes: float) -> int:
    """Write a stack of some real images and many zeros; return the number of images."""
    n = int(gigabytes * 1e9 / (4 * SIZE**2))
    images = datasets.simulate_particles(500, size=SIZE, pixel_size=1.0, random_state=0).images
    with mrcfile.new(path) as file:
        file.set_data(images)
        file.set_image_stack()
        file.voxel_size = 1.0
        file.header.nz = file.header.mz = n
        file.header.cella.z = n
    os.truncate(path, 1024 + 4 * SIZE**2 * n)
    return n


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=20.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        n = sparse_stack(Path(folder) / "particles.mrcs", arguments.gigabytes)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        start = time.perf_counter()
        source = stack_images(Path(folder) / "particles.mrcs")
        components = image_components(
            View(source), FitOptions(components=4), rng=np.random.default_rng(0)
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    record(
        "stack_memory",
        images=n,
        gigabytes=arguments.gigabytes,
        seconds=round(time.perf_counter() - start),
        peak_gigabytes=round(peak, 2),
        before_gigabytes=round(before, 2),
        samples=list(components.samples.shape),
    )


if __name__ == "__main__":
    main()
