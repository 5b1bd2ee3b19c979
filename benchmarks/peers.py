"""How fast and how accurate are 100 eigenpairs at n = 100,000 in other packages?

    pip install umap-learn pydiffmap pyamg
    python benchmarks/peers.py [--samples 100000] [--functions 100] [--minutes 20]

Every solver gets our affinity as its graph (pydiffmap makes its own, with as many
neighbours), and is stopped after some minutes. Residuals are of the unit eigenvectors
of the matrix that the solver was given. Packages that are not installed are left out.
"""

import argparse
import json
import subprocess
import sys
import time
import warnings
from importlib.util import find_spec

import numpy as np
import scipy.sparse as sp

from manifactor import datasets
from manifactor.operators.kernel import affinity
from manifactor.operators.laplacian import laplacian_spectrum
from manifactor.operators.neighbors import neighbor_graph

from record import record

ROUNDING = 1e-13  # residuals below are as good as none


def graph_of(n_samples):
    X, _ = datasets.sample("torus", n_samples, random_state=0)
    walk = affinity(neighbor_graph(X, 64))
    adjacency = sp.csr_matrix(sp.diags_array(walk.pull) @ walk.kernel @ sp.diags_array(walk.pull))
    return X, walk, adjacency / adjacency.max()


def residual(matrix, vectors):
    """The largest residual of columns as eigenvectors of a matrix."""
    vectors = vectors / np.linalg.norm(vectors, axis=0)
    image = matrix @ vectors
    values = (vectors * image).sum(axis=0)
    return float(np.linalg.norm(image - vectors * values, axis=0).max())


def normalized(adjacency):
    scale = 1 / np.sqrt(np.asarray(adjacency.sum(axis=1)).ravel())
    return sp.csr_array(sp.diags_array(scale) @ adjacency @ sp.diags_array(scale)), scale


def ours(accuracy):
    def run(X, walk, adjacency, count):
        start = time.perf_counter()
        spectrum = laplacian_spectrum(walk, count, rng=np.random.default_rng(0), accuracy=accuracy)
        seconds = time.perf_counter() - start
        return seconds, residual(
            walk.normalized(), spectrum.functions * np.sqrt(spectrum.weights)[:, None]
        )

    return run


def embedding(solver):
    def run(X, walk, adjacency, count):
        from sklearn.manifold import spectral_embedding

        start = time.perf_counter()
        found = spectral_embedding(
            adjacency, n_components=count, eigen_solver=solver, random_state=0, drop_first=False
        )
        seconds = time.perf_counter() - start
        matrix, scale = normalized(
            adjacency - sp.diags(adjacency.diagonal())
        )  # its Laplacian knows no loops
        return seconds, residual(matrix, found / scale[:, None])

    return run


def umap_layout(X, walk, adjacency, count):
    from umap.spectral import spectral_layout

    start = time.perf_counter()
    found = spectral_layout(X, adjacency, count - 1, np.random.RandomState(0))
    seconds = time.perf_counter() - start
    return seconds, residual(normalized(adjacency)[0], found)


def pydiffmap(X, walk, adjacency, count):
    from pydiffmap import diffusion_map

    start = time.perf_counter()
    model = diffusion_map.DiffusionMap.from_sklearn(
        n_evecs=count - 1, k=64, epsilon=walk.bandwidth.value / 4, alpha=1
    )
    model.fit(X)
    seconds = time.perf_counter() - start
    return seconds, residual(
        model.epsilon_fitted * model.L, model.evecs
    )  # the walk less 1; L is that over epsilon


PEERS = {
    "manifactor": (ours(0.01), "manifactor"),
    "manifactor, residuals below 1e-7": (ours(1e-6), "manifactor"),
    "manifactor, residuals below 1e-13": (ours(4e-12), "manifactor"),
    "SpectralEmbedding arpack": (embedding("arpack"), "sklearn"),
    "SpectralEmbedding lobpcg": (embedding("lobpcg"), "sklearn"),
    "SpectralEmbedding amg": (embedding("amg"), "pyamg"),
    "umap spectral layout": (umap_layout, "umap"),
    "pydiffmap": (pydiffmap, "pydiffmap"),
}


def ratio(peer, mine):
    """Return seconds of a peer over our fastest run with residuals as small, if any."""
    asked = max(ROUNDING, peer["largest_residual"])
    seconds = [run["seconds"] for run in mine if run["largest_residual"] <= asked]
    return round(peer["seconds"] / min(seconds), 1) if seconds else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--functions", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--only", choices=list(PEERS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only:
        warnings.simplefilter("ignore")
        seconds, worst = PEERS[arguments.only][0](*graph_of(arguments.samples), arguments.functions)
        print(json.dumps({"seconds": round(seconds, 1), "largest_residual": worst}))
        return
    found = {}
    for name, (_, package) in PEERS.items():
        if find_spec(package) is None:
            continue
        command = [sys.executable, __file__, "--only", name]
        command += ["--samples", str(arguments.samples)]
        command += ["--functions", str(arguments.functions)]
        try:
            run = subprocess.run(
                command, capture_output=True, text=True, timeout=60 * arguments.minutes
            )
            found[name] = (
                json.loads(run.stdout.splitlines()[-1])
                if run.stdout
                else run.stderr.splitlines()[-1]
            )
        except subprocess.TimeoutExpired:
            found[name] = f"not done after {arguments.minutes:g} minutes"
        print(name, found[name], flush=True)
    # A solver that failed or was stopped has a message instead of numbers.
    done = {name: peer for name, peer in found.items() if isinstance(peer, dict)}
    mine = [peer for name, peer in done.items() if "manifactor" in name]
    rivals = {name: peer for name, peer in done.items() if "manifactor" not in name}
    record(
        "eigenpairs: seconds of other packages over ours at equal or smaller residuals",
        samples=arguments.samples,
        functions=arguments.functions,
        peers=found,
        ratios={name: ratio(peer, mine) for name, peer in rivals.items()},
    )


if __name__ == "__main__":
    main()
