"""How long do neighbour searches take, and which share of the neighbours do they find?

    python benchmarks/neighbors.py      100,000 samples in 3, 16 and 64 dimensions
    python benchmarks/neighbors.py --samples 30000 --columns 64

The samples lie on a 4-dimensional torus (a square, in up to three columns), mapped
linearly into the columns, with a little noise. The reference is the exact search of
scikit-learn: a tree in three dimensions, brute force in more. The ratio is that of the
CPU seconds.
"""

import argparse
import time

import numpy as np
from sklearn.neighbors import KNeighborsTransformer

from manifactor.operators.neighbors import make_search

from record import record

NEIGHBORS = 64
FEW = 3  # columns of a square, which a tree is for


def samples(n, columns, rng):
    angles = rng.uniform(0, 2 * np.pi, (n, 4))
    flat = np.hstack([np.cos(angles), np.sin(angles)])
    if columns <= FEW:
        flat = rng.uniform(size=(n, 2))
    turned = flat @ rng.normal(size=(flat.shape[1], columns)) / np.sqrt(columns)
    return (turned + 0.01 * rng.normal(size=(n, columns))).astype(np.float32)


def timed(search, X):
    start, used = time.perf_counter(), time.process_time()
    search.fit(X).transform(X)
    return {
        "seconds": round(time.perf_counter() - start, 2),
        "cpu_seconds": round(time.process_time() - used, 2),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--columns", type=int, nargs="+", default=[3, 16, 64])
    arguments = parser.parse_args()
    for columns in arguments.columns:
        X = samples(arguments.samples, columns, np.random.default_rng(0))
        few = columns <= FEW
        algorithm = "kd_tree" if few else "brute"
        name = "kd_tree" if few else "faiss"
        ours = make_search(name, NEIGHBORS)
        found = {name: timed(ours, X)}
        plain = KNeighborsTransformer(n_neighbors=NEIGHBORS, algorithm=algorithm, n_jobs=-1)
        reference = f"scikit-learn {algorithm}"
        found[reference] = timed(plain, X)
        theirs, mine = found[reference]["cpu_seconds"], found[name]["cpu_seconds"]
        record(
            "neighbour search: scikit-learn's exact one over ours",
            samples=arguments.samples,
            columns=columns,
            searches=found,
            recall=float(getattr(ours, "recall_", 1.0)),
            ratio=round(theirs / mine, 1),
        )


if __name__ == "__main__":
    main()
