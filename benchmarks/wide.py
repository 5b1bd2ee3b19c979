"""What do principal components save, and change, where samples are images?

python benchmarks/wide.py [--samples 2000] [--side 48] [--seeds 1]
"""

import argparse
import time
import warnings

import numpy as np

from manifactor import ManifoldFactorizer, scores

from record import record


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--side", type=int, default=48, help="pixels")
    parser.add_argument("--seeds", type=int, default=1)
    arguments = parser.parse_args()
    for noise, sharp in [(0, False), (0.05, False), (0.2, False), (0.5, False), (0, True)]:
        for seed in range(arguments.seeds):
            X, truth = moving_objects(
                arguments.samples, arguments.side, noise=noise, sharp=sharp, seed=seed
            )
            for preparation in ("none", "auto"):
                found = fitted(X, truth, preparation)
                record("wide samples", noise=noise, sharp=sharp, seed=seed, **found)


def moving_objects(n_samples, side, *, noise, sharp, seed):
    """Images of an object that moves along a line and one that moves on a circle."""
    rng = np.random.default_rng(seed)
    line = rng.uniform(size=n_samples)
    angle = rng.uniform(0, 2 * np.pi, n_samples)
    pixel = np.mgrid[:side, :side] * 48 / side
    circle = np.stack([24 + 8 * np.sin(angle), 32 + 8 * np.cos(angle)])
    straight = np.stack([10 + 28 * line, np.full(n_samples, 8.0)])
    X = sum(objects(pixel, place, sharp=sharp) for place in (straight, circle))
    X = X.reshape(n_samples, -1) + noise * rng.normal(size=(n_samples, side**2))
    return X, (line[:, None], np.c_[np.cos(angle), np.sin(angle)])


def objects(pixel, place, *, sharp):
    square = ((pixel[:, None] - place[:, :, None, None]) ** 2).sum(axis=0)
    return (square < 36).astype(float) if sharp else np.exp(-square / 32)


def fitted(X, truth, preparation):
    start = time.process_time()
    with warnings.catch_warnings(action="ignore"):
        fit = ManifoldFactorizer(preparation=preparation, random_state=0).fit(X)
    seconds = time.process_time() - start
    solved = scores.score([f.embedding for f in fit.factors_], truth).solved
    kept = fit.preparation_
    return {
        "kept": X.shape[1] if kept is None else kept.components.shape[1],
        "verdict": fit.verdict_,
        "solved": bool(solved),
        "cpu_seconds": round(seconds, 1),
    }


if __name__ == "__main__":
    main()
