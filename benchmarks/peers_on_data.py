"""How well do other methods find the factors of the gallery's data?

    pip install umap-learn
    python benchmarks/peers_on_data.py [--seeds 3] [--page docs/peers.md]

Other methods are told the number of factors and the number of columns of each. Those
that give columns instead of factors get the best division of their columns, by the
truth. manifactor is told nothing. Factors are scored as in docs/accuracy.md. The table
replaces that between the marks of the page, which needs all data and methods. Without
--page and --methods, UMAP is left out if it is not installed.
"""

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.decomposition import PCA, FastICA
from sklearn.exceptions import ConvergenceWarning

from manifactor import DiffusionMap, ManifoldFactorizer, datasets
from manifactor.scores import Score, regression_r2, score

from record import record

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "examples"))
data_sets = import_module("data_sets")

# Draws that the method was not made with: its tests and examples start at 0.
FIRST_SEED = 100

START, END = "<!-- peers -->", "<!-- /peers -->"

Samples = tuple[np.ndarray, Sequence[np.ndarray]]


def named(name: str) -> Callable[[int, int], Samples]:
    def draw(n_samples: int, seed: int) -> Samples:
        return datasets.sample(name, n_samples, random_state=seed)

    return draw


def spikes(recording: Callable[[int, int], Samples]) -> Callable[[int, int], Samples]:
    """Square roots of counts, whose noise is even."""

    def draw(n_samples: int, seed: int) -> Samples:
        counts, truth = recording(n_samples, seed)
        return np.sqrt(counts), truth

    return draw


def pentane(n_samples: int, seed: int) -> Samples:
    """Draw positions of both ends, simulated without their interaction."""
    with np.load(ROOT / "examples" / "data" / "pentane.npz") as archive:
        positions = archive["free_positions"].astype(float)
        torsions = archive["free_torsions"].astype(float)
    rows = np.random.default_rng(seed).permutation(len(positions))[:n_samples]
    X = positions[rows][:, [0, 4]].reshape(len(rows), -1)
    truth = [np.column_stack([np.cos(a), np.sin(a)]) for a in torsions[rows].T]
    return X, truth


def latents(n_samples: int, seed: int) -> Samples:
    """Draw latents of cryoDRGN of a channel with a stretch and a four-fold turn."""
    with np.load(ROOT / "examples" / "data" / "channel-latents.npz") as archive:
        X = archive["z"].astype(float)
        stretch = archive["stretch"].astype(float)[:, None]
        turn = 4 * archive["angle"].astype(float)
    rows = np.random.default_rng(seed).permutation(len(X))[:n_samples]
    turned = np.column_stack([np.cos(turn), np.sin(turn)])
    return X[rows], [stretch[rows], turned[rows]]


DATA: dict[str, Callable[[int, int], Samples]] = {
    "torus": named("torus"),
    "rectangle": named("rectangle"),
    "spectra, two moving peaks": data_sets.moving_peaks,
    "images, two turning objects": named("turning_objects"),
    "images, robot gripper": data_sets.gripper_images,
    "neurons, head direction x speed": spikes(data_sets.direction_and_speed),
    "neurons, grid cells x head direction": spikes(data_sets.grid_and_direction),
    "molecular dynamics, two torsions": pentane,
    "latents of cryoDRGN, stretch x turn": latents,
}


def by_pca(X: np.ndarray, sizes: Sequence[int], seed: int) -> np.ndarray:
    return PCA(min(sum(sizes), X.shape[1]), random_state=seed).fit_transform(X)


def by_ica(X: np.ndarray, sizes: Sequence[int], seed: int) -> np.ndarray:
    count = min(sum(sizes), X.shape[1])
    reduced = PCA(count, random_state=seed).fit_transform(X)
    return FastICA(count, random_state=seed, max_iter=1000).fit_transform(reduced)


def by_umap(X: np.ndarray, sizes: Sequence[int], seed: int) -> np.ndarray:
    from umap import UMAP

    return UMAP(n_components=sum(sizes), random_state=seed, n_jobs=1).fit_transform(X)


def by_diffusion(X: np.ndarray, sizes: Sequence[int], seed: int) -> np.ndarray:
    # The first function is constant, and left out by `fit_transform`.
    count = sum(sizes) + 1
    return DiffusionMap(count, random_state=seed, n_jobs=1).fit_transform(X)


def by_published(X: np.ndarray, sizes: Sequence[int], seed: int) -> list[np.ndarray]:
    """Run the published algorithm: its dense kernel, its threshold of similarity."""
    settings = {"n_neighbors": "all", "density_correction": 0, "similarity_threshold": 0.85}
    return by_triplets(X, sizes, seed, **settings)


def by_triplets(X: np.ndarray, sizes: Sequence[int], seed: int, **settings) -> list[np.ndarray]:
    """Run the published algorithm on the kernel and with the defaults of manifactor."""
    fit = ManifoldFactorizer(
        len(sizes), method="triplets", random_state=seed, n_jobs=1, **settings
    ).fit(X)
    return [factor.embedding for factor in fit.factors_]


def by_manifactor(X: np.ndarray, sizes: Sequence[int], seed: int) -> list[np.ndarray]:
    fit = ManifoldFactorizer(random_state=seed, n_jobs=1).fit(X)
    return [factor.embedding for factor in fit.factors_]


METHODS: dict[str, Callable] = {
    "PCA": by_pca,
    "PCA + FastICA": by_ica,
    "UMAP": by_umap,
    "diffusion map": by_diffusion,
    "published algorithm": by_published,
    "the same, manifactor's kernel": by_triplets,
    "manifactor": by_manifactor,
}


def divisions(columns: Sequence[int], sizes: Sequence[int]) -> Iterator[list]:
    """All ways to give each factor its number of columns."""
    if not sizes:
        yield []
        return
    for first in combinations(columns, sizes[0]):
        rest = [column for column in columns if column not in first]
        yield from ([first, *others] for others in divisions(rest, sizes[1:]))


def best_division(columns: np.ndarray, truth: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Divide columns so that they explain the true factors best."""
    sizes = [true.shape[1] for true in truth]
    if columns.shape[1] < sum(sizes):
        raise ValueError(
            f"`columns` must have at least as many columns as the true factors, "
            f"{sum(sizes)}; got {columns.shape[1]}."
        )
    known: dict = {}

    def explained(chosen: tuple[int, ...], factor: int) -> float:
        if (chosen, factor) not in known:
            source = columns[:, list(chosen)]
            known[chosen, factor] = regression_r2(source, truth[factor])
        return known[chosen, factor]

    best = max(
        divisions(range(columns.shape[1]), sizes),
        key=lambda groups: sum(explained(g, k) for k, g in enumerate(groups)),
    )
    return [columns[:, list(group)] for group in best]


@dataclass(frozen=True)
class Result:
    """A method's score on one draw; `own` has 0 for a factor that was not found."""

    own: list[float]
    leak: float
    solved: bool
    seconds: float
    converged: bool


def result(method: str, X: np.ndarray, truth, seed: int) -> Result:
    sizes = [true.shape[1] for true in truth]
    start = time.process_time()
    found, converged = converging(lambda: METHODS[method](X, sizes, seed))
    seconds = time.process_time() - start
    if isinstance(found, np.ndarray):
        found = best_division(found, truth)
    scored = score(found, truth)
    return Result(own_of(scored), scored.leak, scored.solved, seconds, converged)


def converging(run: Callable[[], Any]) -> tuple[Any, bool]:
    """Return what `run` returns, and whether it did so without ConvergenceWarning.

    Other warnings are dropped: they are about the data, which the scores show.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = run()
    return found, not any(issubclass(w.category, ConvergenceWarning) for w in caught)


def own_of(scored: Score) -> list[float]:
    matched = {true: scored.r2[true, found] for true, found in scored.match}
    return [float(matched.get(true, 0.0)) for true in range(len(scored.r2))]


def row(data: str, method: str, results: Sequence[Result]) -> str:
    own = np.mean([each.own for each in results], axis=0)
    leak = np.mean([each.leak for each in results])
    solved = sum(each.solved for each in results)
    seconds = np.median([each.seconds for each in results])
    shown = ", ".join(f"{value:.2f}" for value in own)
    stopped = sum(not each.converged for each in results)
    note = f" ({stopped} of {len(results)} did not converge)" if stopped else ""
    return (
        f"| {data} | {method}{note} | {shown} | {leak:.2f} "
        f"| {solved} of {len(results)} | {seconds:.1f} |"
    )


def with_table(text: str, lines: Sequence[str]) -> str:
    """Return a page's text with the table between its marks replaced."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        raise ValueError(f"the page must have the marks {START} and {END}, in order.")
    return before + "\n".join([START, *lines, END]) + after


def is_there(method: str) -> bool:
    return method != "UMAP" or find_spec("umap") is not None


def chosen(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the arguments; refuse what would print or publish less than was asked."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=1500)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data", choices=list(DATA), nargs="+", default=list(DATA))
    parser.add_argument("--methods", choices=list(METHODS), nargs="+")
    parser.add_argument("--page", type=Path, help="page whose table is replaced")
    arguments = parser.parse_args(argv)
    if arguments.page is not None:
        if arguments.methods or set(arguments.data) < set(DATA):
            parser.error("--page needs all data and methods: leave them out.")
        arguments.methods = list(METHODS)
        try:
            with_table(arguments.page.read_text(encoding="utf-8"), [])
        except (OSError, ValueError) as error:
            parser.error(f"--page {arguments.page}: {error}")
    if not all(map(is_there, arguments.methods or [])):
        parser.error("UMAP needs umap-learn: pip install umap-learn.")
    arguments.methods = arguments.methods or list(filter(is_there, METHODS))
    return arguments


def measured(data: str, methods: Sequence[str], *, samples: int, seeds: int) -> list:
    """Record the methods' results on one kind of data, and return their rows."""
    draws = {seed: DATA[data](samples, seed) for seed in range(FIRST_SEED, FIRST_SEED + seeds)}
    rows = []
    for method in methods:
        results = [result(method, X, truth, seed) for seed, (X, truth) in draws.items()]
        rows.append(row(data, method, results))
        own = np.mean([each.own for each in results], axis=0)
        record(
            "peers on data",
            data=data,
            method=method,
            samples=samples,
            own=own.round(3).tolist(),
            leak=[round(each.leak, 3) for each in results],
            solved=[each.solved for each in results],
            seconds=[round(each.seconds, 2) for each in results],
            converged=[each.converged for each in results],
        )
    return rows


def main() -> None:
    arguments = chosen()
    if "UMAP" in arguments.methods:  # compiles its functions: half a minute
        converging(lambda: by_umap(np.random.default_rng(0).normal(size=(200, 5)), [2], 0))
    lines = [
        "| data | method | R^2 of each factor | leak | solved | CPU seconds |",
        "|---|---|---|---|---|---|",
    ]
    draws = {"samples": arguments.samples, "seeds": arguments.seeds}
    for data in arguments.data:
        lines += measured(data, arguments.methods, **draws)
    print("\n".join(lines))
    if arguments.page is not None:
        text = arguments.page.read_text(encoding="utf-8")
        arguments.page.write_text(with_table(text, lines), encoding="utf-8")


if __name__ == "__main__":
    main()
