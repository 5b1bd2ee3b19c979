"""Do the commands that `manifactor export` prints run in the programs they name?

    python benchmarks/bridges.py FOLDER [--only cryodrgn ...] [--particles 1000]

Each of cryoDRGN, RECOVAR, ASPIRE and cryosparc-tools is installed from PyPI into an
environment of its own below FOLDER (a few GB; set PIP_CONSTRAINT to choose builds
without CUDA). Particles of a molecule with two motions are simulated in all views, with
a CTF, in a project whose name has a blank and a semicolon. cryoDRGN trains on them for
one epoch, and its coordinates are then replaced by the true ones, so that the factors
are known. `fit` and `export` run as they are typed, and what `export` prints is run
unchanged from the root folder. RELION and cryoSPARC themselves are not on PyPI: every
path that they are given is resolved as they resolve it.

Volumes are compared with the mean of the true volumes of their bin (correlation; the
sign tells whether the contrast is right). Those of cryoDRGN after one epoch, and those
of RECOVAR, which needs larger images, are only counted.
"""

import argparse
import json
import os
import pickle
import shlex
import subprocess
import sys
import time
from pathlib import Path

import mrcfile
import numpy as np
import starfile

from beads import PIXEL_SIZE, simulated, volume

# RECOVAR without a GPU takes about 25 minutes for a volume.
BINS = 2
# Where each program leaves its volumes.
VOLUMES = {
    "cryodrgn": "volumes/vol_*.mrc",
    "recovar": "volumes/state???.mrc",
    "aspire": "volume_*.mrc",
}


def environment(folder, package):
    """Make the environment of a package; return the folder of its programs."""
    programs = folder / f"environment-{package}" / "bin"
    if not (programs / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", programs.parent], check=True)
        pip = [programs / "python", "-m", "pip", "install", "--quiet", package]
        subprocess.run(pip, check=True)
        (programs / "installed").touch()
    return programs


def shell(text, programs=None, *, log):
    """Run lines of a shell from the root folder; return the seconds they took."""
    path = os.environ["PATH"]
    # The source of this package is no business of the other programs.
    found = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    found |= {"PATH": f"{programs}:{path}" if programs else path}
    start = time.perf_counter()
    with log.open("a") as file:
        done = subprocess.run(
            ["bash", "-e", "-c", text], cwd="/", env=found, stdout=file, stderr=subprocess.STDOUT
        )
    if done.returncode:
        tail = "".join(log.read_text().splitlines(keepends=True)[-5:])
        raise RuntimeError(f"exit {done.returncode}: {tail}")
    return time.perf_counter() - start


def manifactor(*words):
    """Run manifactor; return what it prints to standard output."""
    line = [sys.executable, "-m", "manifactor", *map(str, words)]
    return subprocess.run(line, check=True, stdout=subprocess.PIPE, text=True).stdout


def train(data, folder, programs, log):
    """Train cryoDRGN for one epoch; return the path of its coordinates."""
    training = folder / "training 1"
    coordinates = training / "z.1.pkl"
    if not coordinates.exists():
        training.mkdir(exist_ok=True)
        quoted = {"star": shlex.quote(str(data.star)), "project": shlex.quote(str(data.project))}
        lines = """
cryodrgn parse_pose_star {star} -o poses.pkl
cryodrgn parse_ctf_star {star} -o ctf.pkl
cryodrgn train_vae {star} --datadir {project} --poses poses.pkl --ctf ctf.pkl \
  --zdim 3 -n 1 -o . --enc-dim 32 --enc-layers 1 --dec-dim 32 --dec-layers 1 \
  --no-analysis
""".format(**quoted)
        cd = f"cd {shlex.quote(str(training))}\n"
        shell(cd + lines, programs, log=log)
    with coordinates.open("wb") as file:
        pickle.dump(data.states.astype(np.float32), file)
    return coordinates


def check_spacing(paths):
    """Return the voxel size of volumes; refuse any but that of the images."""
    if len(paths) != BINS:
        raise RuntimeError(f"there are {len(paths)} volumes of {BINS}")
    for path in paths:
        with mrcfile.open(path, header_only=True) as file:
            spacing = float(file.voxel_size.x)
        if abs(spacing - PIXEL_SIZE) > 1e-3:
            raise RuntimeError(f"{path.name} has {spacing} A a voxel, not {PIXEL_SIZE}")
    return f"{PIXEL_SIZE:g} A a voxel"


def correlations(paths, data, labels):
    """Return the correlation of volumes with the true means of their bins."""
    found = []
    for k, path in enumerate(paths):
        ours = mrcfile.read(path)
        states = data.states[labels == k]
        truth = np.mean([volume(state) for state in states], axis=0)
        found.append(np.corrcoef(ours.ravel(), truth.ravel())[0, 1])
    return f"correlation with the truth {min(found):.2f} to {max(found):.2f}"


def bins_of(run, factor):
    """The bin of every particle along an interval."""
    table = np.genfromtxt(run / "coordinates.csv", delimiter=",", names=True)
    return np.minimum((table[f"factor{factor}"] * BINS).astype(int), BINS - 1)


def check_poses(folder, training):
    """Compare poses and CTF with those that cryoDRGN parses from the STAR file."""
    for name in ("poses.pkl", "ctf.pkl"):
        ours, theirs = (pickle.loads((each / name).read_bytes()) for each in (folder, training))
        pairs = zip(ours, theirs, strict=True) if name == "poses.pkl" else [(ours, theirs)]
        for mine, other in pairs:
            np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-5)


def resolve_relion(text):
    """Resolve every path as RELION does, from the folder of its project."""
    names = 0
    lines = [shlex.split(line, comments=True) for line in text.splitlines()]
    (_, project), *commands = [line for line in lines if line]
    for words in commands:
        assert words[0] == "relion_reconstruct"
        options = dict(zip(words[1:5:2], words[2:6:2], strict=True))
        assert Path(options["--o"]).parent.is_dir()
        for name in starfile.read(project / Path(options["--i"]))["particles"]["rlnImageName"]:
            index, _, stack = name.partition("@")
            with mrcfile.open(project / Path(stack), header_only=True) as file:
                assert 1 <= int(index) <= file.header.nz
            names += 1
    return f"{len(commands)} commands, {names} image names resolved"


CRYOSPARC = """
import sys
from pathlib import Path
from cryosparc.dataset import Dataset
folder, project = map(Path, sys.argv[1:])
count = 0
for group in sorted(folder.glob("*.csg")):
    lines = group.read_text().splitlines()
    metafiles = {line.split("'")[1] for line in lines if "metafile" in line}
    (metafile,) = metafiles
    data = Dataset.load(group.parent / metafile.lstrip(">"))
    sizes = {int(line.split()[1]) for line in lines if "num_items" in line}
    assert sizes == {len(data)}
    assert {"blob", "ctf", "alignments3D"} <= set(data.prefixes())
    for path in data["blob/path"]:
        assert (project / path).is_file(), path
    count += len(data)
print(count)
"""


def run_of(data, folder, coordinates, suffix):
    """Fit the coordinates with the particles; the run, and the stretch's number."""
    run = folder / f"run; {suffix}"
    if not run.exists():
        particles = data.star.with_suffix(suffix)
        manifactor("fit", coordinates, "--particles", particles, "--out", run)
    factors = json.loads((run / "run.json").read_text())["factors"]
    return run, 1 + [factor["topology"] for factor in factors].index("interval")


def exported(name, run, factor):
    """Export and return the commands that were printed, and the folder of the files."""
    options = ["--to", name, "--factor", factor, "--bins", BINS, "--overwrite"]
    printed = manifactor("export", run, *options)
    return printed.partition("\n")[2], run / f"{name}-factor{factor}"


def checked(name, folder, data, coordinates, log):
    """Export to a program, run what is printed; a row of the table."""
    suffix = ".cs" if name == "cryosparc" else ".star"
    run, factor = run_of(data, folder, coordinates, suffix)
    commands, out = exported(name, run, factor)
    labels = bins_of(run, factor)
    start = time.perf_counter()
    try:
        if name == "relion":
            what = resolve_relion(commands)
        elif name == "cryosparc":
            programs = environment(folder, "cryosparc-tools")
            what = resolve_cryosparc(out, data.project, programs)
        else:
            shell(commands, environment(folder, name), log=log)
            paths = sorted(out.glob(VOLUMES[name]))
            what = f"{len(paths)} volumes, {check_spacing(paths)}"
            # A model of one epoch has nothing to show yet, and RECOVAR says that these
            # images are too small for its local resolution.
            if name == "aspire":
                what += f", {correlations(paths, data, labels)}"
        if name == "recovar":
            check_poses(out, coordinates.parent)
            what += ", poses and CTF as cryoDRGN's"
    except (AssertionError, OSError, RuntimeError, ValueError) as problem:
        what = f"FAILED: {problem}"
    return name, what, f"{time.perf_counter() - start:.0f} s"


def resolve_cryosparc(out, project, programs):
    """Load every group with cryoSPARC's own reader and resolve its paths."""
    words = [programs / "python", "-c", CRYOSPARC, out, project]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return f"{done.stdout.strip()} image paths resolved"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--particles", type=int, default=1000)
    programs = ["cryodrgn", "recovar", "aspire", "relion", "cryosparc"]
    parser.add_argument("--only", nargs="+", choices=programs, default=programs)
    arguments = parser.parse_args()
    folder = arguments.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "log.txt"
    data = simulated(folder, arguments.particles)
    cryodrgn = environment(folder, "cryodrgn")
    coordinates = train(data, folder, cryodrgn, log)
    rows = [checked(name, folder, data, coordinates, log) for name in arguments.only]
    for name, what, seconds in rows:
        print(f"{name:10} {seconds:>6}  {what}")


if __name__ == "__main__":
    main()
