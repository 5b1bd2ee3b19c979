"""How does the block Chebyshev solver compare with ARPACK on the same matrix?

python benchmarks/eigensolver.py [--samples 10000] [--functions 100]
"""

import argparse
import time
from functools import partial

import numpy as np
from scipy.sparse.linalg import eigsh

from manifactor import datasets
from manifactor.operators.engines.solvers import chebyshev
from manifactor.operators.kernel import affinity
from manifactor.operators.neighbors import neighbor_graph

from record import record

TOLERANCE = 1e-7


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=10000)
    parser.add_argument("--functions", type=int, default=100)
    arguments = parser.parse_args()
    for shape in ("rectangle", "equal_cube", "equal_torus"):
        X, _ = datasets.sample(shape, arguments.samples, random_state=0)
        matrix = affinity(neighbor_graph(X, 64)).normalized()
        n = arguments.functions
        solvers = {
            "chebyshev": partial(
                chebyshev, matrix, n, tolerance=TOLERANCE, rng=np.random.default_rng(0)
            ),
            "eigsh": partial(eigsh, matrix, k=n, which="LA"),
            # Without `tol`, ARPACK works to machine precision.
            "eigsh, same tolerance": partial(eigsh, matrix, k=n, which="LA", tol=TOLERANCE),
        }
        seconds, residual = {}, {}
        for name, solve in solvers.items():
            start = time.perf_counter()
            found = solve()
            seconds[name] = round(time.perf_counter() - start, 2)
            if name == "chebyshev":
                found = found.values, found.vectors
            values, vectors = found
            missed = matrix @ vectors - vectors * values
            residual[name] = float(np.linalg.norm(missed, axis=0).max())
        record(
            "eigenpairs: ARPACK over Chebyshev",
            shape=shape,
            samples=arguments.samples,
            functions=arguments.functions,
            seconds=seconds,
            largest_residual=residual,
            ratio=round(seconds["eigsh"] / seconds["chebyshev"], 2),
        )


if __name__ == "__main__":
    main()
