"""How much faster is Algorithm 1 as matrix products than as the paper writes it?

    python benchmarks/algorithm1.py                   n = 10,000, N = 100
    python benchmarks/algorithm1.py --functions 400   the paper's largest case: minutes

The loops skip triplets outside the eigenvalue window before they multiply, as the paper
does. All get the same functions. The tests show that matrix products find what a loop
under the same rules finds.
"""

import argparse
import time

import numpy as np

from manifactor import DiffusionMap, datasets
from manifactor.models.triplets import find_triplets
from studies.paper.cases import PAPER_UNIT
from studies.paper.table1 import Table1Settings
from studies.paper.textbook import algorithm_1, cosine

from record import record


def tight(eigenvalues, functions, delta, gamma):
    """The same for pairs only, without numpy in the inner loop where it can be."""
    eigenvalues, columns, triplets = eigenvalues.tolist(), list(functions.T), {}
    for k in range(2, len(eigenvalues)):
        best, parts = 0.0, None
        for i in range(1, k):
            rest = eigenvalues[k] - eigenvalues[i]
            for j in range(i + 1, k):
                if abs(eigenvalues[j] - rest) < delta:
                    similarity = cosine(columns[k], columns[i] * columns[j])
                    if similarity > best:
                        best, parts = similarity, [i, j]
        if best > gamma:
            triplets[k] = parts
    return triplets


def timed(function, *arguments, **settings):
    start = time.perf_counter()
    result = function(*arguments, **settings)
    return result, round(time.perf_counter() - start, 3)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=10000)
    parser.add_argument("--functions", type=int, default=100)
    arguments = parser.parse_args()
    workload = Table1Settings()
    delta, gamma = PAPER_UNIT * workload.delta, workload.gamma
    X, _ = datasets.sample("rectangle_z", arguments.samples, noise=workload.noise, random_state=0)
    embedding = DiffusionMap(arguments.functions, density_correction=0, random_state=0)
    spectrum = embedding.fit(X).spectrum_
    columns = np.asfortranarray(spectrum.functions)
    _, products = timed(find_triplets, spectrum, tolerance=delta, threshold=gamma)
    quick, inner = timed(tight, spectrum.eigenvalues, columns, delta, gamma)
    plain, loop = timed(algorithm_1, spectrum.eigenvalues, columns, delta, gamma)
    assert plain == quick
    record(
        "Algorithm 1: textbook loop over matrix products",
        samples=arguments.samples,
        functions=arguments.functions,
        seconds={"matrix products": products, "textbook loop": loop, "tight loop": inner},
        ratio=round(loop / products),
        ratio_to_tight_loop=round(inner / products, 1),
    )


if __name__ == "__main__":
    main()
