"""How long does a fit take that finds no product, beside one of a torus of that size?

    python benchmarks/refusals.py

CPU seconds, of all threads, compare on a machine that does other work too.
"""

import time
import warnings

import numpy as np
from sklearn.datasets import load_digits

from manifactor import ManifoldFactorizer, datasets
from manifactor.datasets.sampling import rotated_into

from record import record


def seconds(X):
    start = time.process_time()
    with warnings.catch_warnings(action="ignore"):
        fit = ManifoldFactorizer(random_state=0).fit(X)
    return time.process_time() - start, fit.verdict_


def main():
    rng = np.random.default_rng(0)
    tables = {
        "digits": load_digits().data,
        "lognormal in six columns": np.exp(rng.normal(size=(3000, 6))),
        "Gaussian in five columns": rng.normal(size=(2000, 5)),
    }
    found = {}
    for name, X in tables.items():
        torus = datasets.sample("torus", len(X), random_state=0)[0]
        product, _ = seconds(rotated_into(torus, X.shape[1], np.random.RandomState(0)))
        none, verdict = seconds(X)
        found[name] = {
            "verdict": verdict,
            "seconds": round(none, 2),
            "of a product": round(product, 2),
            "ratio": round(none / product, 1),
        }
        print(name, found[name], flush=True)
    record("time of a fit that finds no product", tables=found)


if __name__ == "__main__":
    main()
