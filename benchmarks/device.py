"""How fast is the default factorization of a torus on a device, and how much faster than on the CPU?

    python benchmarks/device.py [--device cuda] [--samples 100000 1000000] [--repeats 3] [--cpu]

Of several fits the median counts; one before them, of as many samples, loads libraries and makes room on the device.
"""

import argparse
import time

import numpy as np

from manifactor import ManifoldFactorizer, datasets
from manifactor.scores import score

from record import record


def timed(X, device):
    """Seconds of a fit, and the fit, which must be right."""
    start = time.perf_counter()
    fit = ManifoldFactorizer(device=device, random_state=0).fit(X)
    seconds = time.perf_counter() - start
    assert fit.verdict_ == "product", fit.verdict_
    assert [factor.topology for factor in fit.factors_] == ["circle", "circle"], fit.factors_
    return seconds, fit


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--samples", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cpu", action="store_true", help="fit on the CPU too, for the ratio")
    arguments = parser.parse_args()
    for n in arguments.samples:
        X, truth = datasets.sample("torus", n, random_state=0)
        seconds, stages = {}, {}
        for device in [arguments.device, *(["cpu"] if arguments.cpu else [])]:
            runs = []
            for _ in range(1 + arguments.repeats if device == arguments.device else 1):
                took, fit = timed(X, device)
                runs.append(took)
            seconds[device] = round(float(np.median(runs[len(runs) > 1 :])), 2)
            stages[device] = {stage: round(value, 2) for stage, value in fit.timings_.items()}
        thin = slice(None, None, max(1, n // 10_000))
        record(
            "default factorization on a device",
            samples=n,
            seconds=seconds,
            stages=stages,
            verdict=fit.verdict_,
            solved=bool(score([f.embedding[thin] for f in fit.factors_], [t[thin] for t in truth]).solved),
            largest_residual=float(fit.spectrum_.residuals.max()),
            **({"ratio": round(seconds["cpu"] / seconds[arguments.device], 1)} if arguments.cpu else {}),
        )


if __name__ == "__main__":
    main()
