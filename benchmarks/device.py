"""How fast is the default factorization on a device, and how much faster than the CPU?

    python benchmarks/device.py [--device cuda] [--samples 100000 1000000] [--cpu]

The median of several fits counts. One fit before them, of as many samples, loads
libraries and allocates memory on the device.
"""

import argparse
import time

from manifactor import ManifoldFactorizer, datasets
from manifactor.scores import score

from record import record


def timed(X, device):
    """Return the seconds of a fit and its stages, and a result, which must be right."""
    start = time.perf_counter()
    fit = ManifoldFactorizer(device=device, random_state=0).fit(X)
    seconds = round(time.perf_counter() - start, 2)
    assert fit.verdict_ == "product", fit.verdict_
    topologies = [factor.topology for factor in fit.factors_]
    assert topologies == ["circle", "circle"], topologies
    thin = slice(None, None, max(1, len(X) // 10_000))
    places = [factor.embedding[thin] for factor in fit.factors_]
    stages = {stage: round(value, 2) for stage, value in fit.timings_.items()}
    return seconds, stages, (fit.verdict_, places, float(fit.spectrum_.residuals.max()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--samples", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cpu", action="store_true", help="fit on the CPU too, for the ratio")
    arguments = parser.parse_args()
    for n in arguments.samples:
        X, truth = datasets.sample("torus", n, random_state=0)
        runs = [timed(X, arguments.device)]
        if arguments.repeats:
            runs = [timed(X, arguments.device) for _ in range(arguments.repeats)]
        by_seconds = sorted(runs, key=lambda run: run[0])
        seconds, stages, (verdict, places, residual) = by_seconds[len(runs) // 2]
        found = {"seconds": {arguments.device: seconds}, "stages": {arguments.device: stages}}
        if arguments.cpu:
            found["seconds"]["cpu"], found["stages"]["cpu"], _ = timed(X, "cpu")
            found["ratio"] = round(found["seconds"]["cpu"] / seconds, 1)
        thin = slice(None, None, max(1, n // 10_000))
        record(
            "default factorization on a device",
            samples=n,
            **found,
            verdict=verdict,
            solved=bool(score(places, [t[thin] for t in truth]).solved),
            largest_residual=residual,
        )


if __name__ == "__main__":
    main()
