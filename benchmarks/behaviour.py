"""Does this version find what another version found, with the same seeds?

    python benchmarks/behaviour.py write before.npz       with the one version installed
    python benchmarks/behaviour.py write after.npz        with the other one
    python benchmarks/behaviour.py compare before.npz after.npz

Twelve shapes, noisy and many samples, and both other methods are fitted. The comparison
covers verdict, number of factors, topologies and the place of every sample. It exits
with 1 when anything differs by more than 1e-6.
"""

import argparse
import sys
import warnings

import numpy as np

from manifactor import ManifoldFactorizer, datasets

SHAPES = {
    "rectangle": 3000,
    "square": 2000,
    "torus": 3000,
    "equal_torus": 2000,
    "cube": 3000,
    "cylinder": 2000,
    "sphere_interval": 2000,
    "sphere": 2000,
    "disk": 1200,
    "moebius": 2000,
    "klein_bottle": 2000,
    "robot_arm": 1500,
}
TOLERANCE = 1e-6


def problems():
    """Yield name, samples and parameters of each fit."""
    for shape, n_samples in SHAPES.items():
        yield shape, datasets.sample(shape, n_samples, random_state=1)[0], {}
    noisy = datasets.sample("rectangle", 2500, noise=0.02, ambient_dimension=20, random_state=2)[0]
    yield "rectangle with noise in R^20", noisy, {}
    many = datasets.sample("torus", 20_000, random_state=3)[0]
    yield "torus of 20,000", many, {}
    torus = datasets.sample("torus", 3000, random_state=1)[0]
    yield "torus by triplets", torus, {"method": "triplets", "n_factors": 2}
    objects = datasets.sample("turning_objects", 1000, random_state=0)[0]
    yield "turning objects as a sum", objects, {"method": "sum"}


def write(path):
    found = {}
    for name, X, parameters in problems():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = ManifoldFactorizer(random_state=0, n_jobs=1, **parameters).fit(X)
        shapes = [factor.topology for factor in fit.factors_]
        found[f"{name}/said"] = np.array([fit.verdict_, str(fit.n_factors_), *shapes])
        found[f"{name}/places"] = np.hstack([factor.embedding for factor in fit.factors_])
        found[f"{name}/coordinates"] = fit.coordinates()
        print(name, *found[f"{name}/said"], flush=True)
    np.savez(path, **found)


def compare(before, after):
    with np.load(before) as old, np.load(after) as new:
        differences = [_difference(name, old[name], new[name]) for name in old.files]
    for name, difference in zip(old.files, differences, strict=True):
        print(f"{name:<45} {difference:.1e}")
    return int(max(differences) > TOLERANCE)


def _difference(name, old, new):
    """Return the largest relative difference; infinite where shapes or words differ."""
    if old.shape != new.shape:
        return np.inf
    if name.endswith("/said"):
        return 0.0 if (old == new).all() else np.inf
    scale = np.nanmax(np.abs(old), initial=1e-300)
    return float(np.nanmax(np.abs(old - new), initial=0.0) / scale)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("write").add_argument("path")
    both = commands.add_parser("compare")
    both.add_argument("before")
    both.add_argument("after")
    arguments = parser.parse_args()
    if arguments.command == "write":
        write(arguments.path)
    else:
        sys.exit(compare(arguments.before, arguments.after))


if __name__ == "__main__":
    main()
