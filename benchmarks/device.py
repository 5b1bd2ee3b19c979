"""How fast is the default factorization of a torus on a device, and how much faster than on the CPU?

python benchmarks/device.py [--device cuda] [--samples 100000 1000000] [--cpu]
"""

import argparse
import time

from manifactor import ManifoldFactorizer, datasets
from manifactor.scores import score

from record import record


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--samples", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--cpu", action="store_true", help="fit on the CPU too, for the ratio")
    arguments = parser.parse_args()
    warm, _ = datasets.sample("torus", 80_000, random_state=1)
    ManifoldFactorizer(device=arguments.device, random_state=0).fit(warm)  # the first call loads libraries
    for n in arguments.samples:
        X, truth = datasets.sample("torus", n, random_state=0)
        seconds, stages = {}, {}
        for device in [arguments.device, *(["cpu"] if arguments.cpu else [])]:
            start = time.perf_counter()
            fit = ManifoldFactorizer(device=device, random_state=0).fit(X)
            seconds[device] = round(time.perf_counter() - start, 2)
            stages[device] = {stage: round(value, 2) for stage, value in fit.timings_.items()}
            right = fit.verdict_ == "product" and [factor.topology for factor in fit.factors_] == ["circle", "circle"]
            assert right, fit.verdict_
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
