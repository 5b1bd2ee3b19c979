"""The bridges to RELION and cryoSPARC: a file of particles for each bin."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from manifactor.cryoem.formats import particles_with
from manifactor.cryoem.result_groups import NEEDED, result_group, results_of, with_own_paths
from manifactor.runs.bridges.commands import command, comment
from manifactor.runs.bridges.request import Request
from manifactor.runs.places import coordinate_columns


@dataclass(frozen=True)
class _Bin:
    """The particles of one bin."""

    name: str  # of its file, without the suffix
    content: bytes  # the file
    count: int  # particles
    centre: float  # in degrees on a circle

    def __str__(self) -> str:
        return f"{self.count} particles around {self.centre:.3g}"


def relion_files(request: Request) -> dict[str, bytes]:
    """Return a STAR file for each bin, and the commands that reconstruct them."""
    bins = list(_bins(request, suffix=".star"))
    commands = comment(
        "one bin along the factor after the other; the other factors are as they are. "
        "RELION finds images from the folder of its project:"
    )
    commands += command("cd", request.image_folder)
    # A STAR file without defocus is of images without a CTF.
    options = ["--ctf"] if "defocus_u" in request.run.particles.microscope else []
    if request.symmetry != "C1":
        options += ["--sym", request.symmetry]
    for each in bins:
        star = request.folder / f"{each.name}.star"
        volume = request.folder / f"{each.name}.mrc"
        commands += comment(str(each))
        commands += command("relion_reconstruct", "--i", star, "--o", volume, *options)
    files = {f"{each.name}.star": each.content for each in bins}
    return {**files, "commands.txt": commands.encode()}


def cryosparc_files(request: Request) -> dict[str, bytes]:
    """Return a .cs file for each bin with its .csg, and how to import them."""
    files = {}
    commands = comment(
        "one bin along the factor after the other; the other factors are as they are. "
        "In a workspace of the cryoSPARC project whose folder is "
        f"{request.image_folder}, build the job Import Result Group for each file:"
    )
    missing: list[str] = []
    for each in _bins(request, suffix=".cs"):
        content = with_own_paths(each.content, request.image_folder)
        files[f"{each.name}.cs"] = content
        files[f"{each.name}.csg"] = result_group(content, f"{each.name}.cs")
        commands += comment(f"{request.folder / each.name}.csg: {each}", width=None)
        missing = [name for name in NEEDED if name not in results_of(content)]
    commands += comment(
        "then Homogeneous Reconstruction Only with the particles of each"
        + ("." if request.symmetry == "C1" else f", symmetry {request.symmetry}.")
    )
    if missing:
        commands += comment(
            f"{request.run.particles.path} has no {', '.join(missing)}: connect the "
            "job's input also to the output of the original job that has them."
        )
    return {**files, "commands.txt": commands.encode()}


def _bins(request: Request, *, suffix: str) -> Iterator[_Bin]:
    """Yield the bins that hold particles, with their files."""
    run = request.run
    particles = run.particles
    if particles.path.suffix.lower() != suffix:
        raise ValueError(
            f"this program reads {suffix}; the run's particles are {particles.path.name}."
        )
    # A worker reads the file of particles again, and may run in another folder.
    known = replace(particles.without_images(), path=particles.path.absolute())
    bins = np.unique(request.labels)
    rows = [np.flatnonzero(request.labels == k) for k in bins]
    jobs = [
        (known[inside], coordinate_columns([p[inside] for p in run.places], suffix))
        for inside in rows
    ]
    contents = request.workers.map(particles_with, jobs)
    for k, inside, content in zip(bins, rows, contents, strict=True):
        # From 1, as bins are counted in bins.csv.
        yield _Bin(f"bin_{k + 1:02d}", content, len(inside), request.centres[k])
