"""The accuracy benchmark: rates over seeds of right answers on shapes of known truth, beside simpler methods."""

import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import groupby
from multiprocessing import get_context

import numpy as np
from sklearn.decomposition import PCA, FastICA
from sklearn.manifold import LocallyLinearEmbedding
from threadpoolctl import threadpool_limits

from manifactor import datasets
from manifactor.estimators import DiffusionMap, ManifoldFactorizer
from manifactor.scores import regression_r2, score, wilson_interval

PAPER = ("rectangle_z", "rectangle_xyz", "torus", "cylinder", "cube")
REPEATED = (
    "square",
    "equal_cube",
    "equal_torus",
    "equal_torus3",
    "equal_cylinder",
    "sphere_circle",
    "sphere_interval",
    "sphere_sphere",
)
FLAT = ("rectangle", "torus", "cylinder", "square")
NOISE_COLUMNS, TURNED_COLUMNS = 20, 50


@dataclass(frozen=True)
class Case:
    """One row of the table: a shape, how it is sampled, and what is done to the samples."""

    group: str
    shape: str
    n: int = 3000
    sampling: str = "uniform"
    noise: float = 0.0  # standard deviation in every column, of the shape's diameter
    columns: int | None = None
    scale: float = 1.0
    method: str = "gradients"

    def draw(self, seed: int) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """Samples and truth."""
        if self.shape == "random":
            problem = datasets.random_problem(seed)
            return problem.X, problem.truth
        X, truth = datasets.sample(
            self.shape, self.n, sampling=self.sampling, random_state=seed
        )
        rng = np.random.default_rng(seed)
        diameter = np.linalg.norm(X.max(axis=0) - X.min(axis=0))
        if self.columns is not None:
            X = X @ np.linalg.qr(rng.normal(size=(self.columns, X.shape[1])))[0].T
        return self.scale * (
            X + self.noise * diameter * rng.normal(size=X.shape)
        ), truth


def full_table() -> list[tuple[Case, int]]:
    """Every case of the benchmark with its number of seeds."""
    cases = [(Case("the paper's", s), 20) for s in PAPER] + [
        (Case("repeated eigenvalues", s), 20) for s in REPEATED
    ]
    cases += [(Case("strips", f"strip{a}"), 20) for a in (3, 5, 7, 10)]
    for sampling in ("weighted", "dependent", "duplicates", "outliers"):
        cases += [
            (Case(f"sampling: {sampling}", s, sampling=sampling), 20) for s in FLAT
        ]
    for noise in (0.01, 0.02, 0.05):
        cases += [
            (Case(f"noise {noise:.2f}", s, noise=noise, columns=NOISE_COLUMNS), 20)
            for s in FLAT
        ]
    cases += [(Case("turned into R^50", s, columns=TURNED_COLUMNS), 5) for s in FLAT]
    cases += [
        (Case(f"times {scale:.0e}", s, scale=scale), 5)
        for scale in (1e-6, 1e6)
        for s in FLAT
    ]
    cases += [
        (Case("curved", s), 10) for s in ("swiss_roll", "warped_cylinder", "robot_arm")
    ]
    cases += [
        (Case("irreducible", s), 20)
        for s in ("sphere", "sphere3", "disk", "triangle", "parallelogram")
    ]
    cases += [(Case("twisted", s), 20) for s in ("moebius", "klein_bottle")]
    for n in (1000, 500):
        cases += [
            (Case(f"n = {n}: the paper's and repeated", s, n=n), 20)
            for s in (*PAPER, *REPEATED)
        ]
    cases += [
        (
            Case(
                "turning objects, deflation",
                "turning_objects",
                n=2000,
                method="deflation",
            ),
            10,
        )
    ]
    cases += [(Case("random", "random"), 200)]
    for method in BASELINES:
        cases += [(Case(f"the paper's: {method}", s, method=method), 5) for s in PAPER]
        cases += [(Case(f"repeated: {method}", s, method=method), 5) for s in REPEATED]
    return cases


def quick_table() -> list[tuple[Case, int]]:
    """A few small cases that run in seconds."""
    cases = [
        (Case("the paper's", "torus", n=1000), 2),
        (Case("irreducible", "disk", n=1000), 2),
    ]
    return [
        *cases,
        (Case("the paper's: pca", "torus", n=1000, method="pca"), 1),
        (Case("random", "random"), 2),
    ]


def run(
    table: Sequence[tuple[Case, int]], *, n_jobs: int | None = None
) -> Iterator[dict]:
    """One record for each case and seed, as soon as it is there."""
    jobs = [(case, seed) for case, seeds in table for seed in range(seeds)]
    workers = min(n_jobs or os.cpu_count() or 1, len(jobs))
    context = get_context(
        "spawn"
    )  # a forked process inherits threads that wait for each other
    with ProcessPoolExecutor(
        workers, mp_context=context, initializer=threadpool_limits, initargs=(1,)
    ) as pool:
        yield from pool.map(_record, jobs)


def _record(job: tuple[Case, int]) -> dict:
    case, seed = job
    X, truth = case.draw(seed)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            recovered, verdict = METHODS[case.method](X, truth, seed)
        except (
            Exception
        ) as error:  # one method that gives up must not lose the others' runs
            recovered, verdict = [X[:, :1]], f"error: {error}"
    seconds = time.perf_counter() - start
    found = score(recovered, truth)
    return {
        **asdict(case),
        "n": len(X),
        "seed": seed,
        "verdict": verdict,
        "solved": found.solved,
        "number_right": found.number_right,
        "own": round(found.worst, 4),
        "leak": round(found.leak, 4),
        "attainable": round(_attainable(case, X, truth), 4),
        "seconds": round(seconds, 2),
    }


def _attainable(case: Case, X: np.ndarray, truth: Sequence[np.ndarray]) -> float:
    """R^2 with which noisy samples, seen in the shape's own columns only, tell the worst of the truth: the bound."""
    if not case.noise:
        return 1.0
    clean = PCA(
        datasets.sample(case.shape, 10, random_state=0)[0].shape[1]
    ).fit_transform(X)
    return min(regression_r2(clean, true) for true in truth)


def _by_factorizer(X, truth, seed: int, **settings) -> tuple[list[np.ndarray], str]:
    fit = ManifoldFactorizer(random_state=seed, n_jobs=1, **settings).fit(X)
    return [factor.embedding for factor in fit.factors_], fit.verdict_


def _columns(values: np.ndarray) -> tuple[list[np.ndarray], str]:
    return list(values.T[:, :, None]), ""


def _by_triplets(X, truth, seed: int) -> tuple[list[np.ndarray], str]:
    return _by_factorizer(X, truth, seed, method="triplets", n_factors=len(truth))


def _by_deflation(X, truth, seed: int) -> tuple[list[np.ndarray], str]:
    return _by_factorizer(X, truth, seed, method="deflation")


def _by_pca(X, truth, seed: int) -> tuple[list[np.ndarray], str]:
    return _columns(PCA(len(truth)).fit_transform(X))


def _by_ica(X, truth, seed: int) -> tuple[list[np.ndarray], str]:
    return _columns(FastICA(len(truth), random_state=seed).fit_transform(X))


def _by_diffusion_and_ica(X, truth, seed: int) -> tuple[list[np.ndarray], str]:
    functions = DiffusionMap(len(truth) + 1, random_state=seed, n_jobs=1).fit_transform(
        X
    )
    return _by_ica(functions, truth, seed)


def _by_hessian_and_ica(X, truth, seed: int) -> tuple[list[np.ndarray], str]:
    """Hessian eigenmaps unroll flat boxes; independent components then find the sides."""
    d = len(truth)
    unrolled = LocallyLinearEmbedding(
        n_neighbors=d * (d + 3) // 2 + 12,
        n_components=d,
        method="hessian",
        eigen_solver="dense",
        random_state=seed,
    ).fit_transform(X)
    return _by_ica(unrolled, truth, seed)


BASELINES: dict[str, Callable] = {
    "triplets": _by_triplets,
    "ica": _by_ica,
    "diffusion + ica": _by_diffusion_and_ica,
    "hessian lle + ica": _by_hessian_and_ica,
    "pca": _by_pca,
}
METHODS: dict[str, Callable] = {
    "gradients": _by_factorizer,
    "deflation": _by_deflation,
    **BASELINES,
}


def render(records: Iterable[dict]) -> str:
    """The table in Markdown: one row for each group, then how far verdicts on random problems can be relied on."""
    records = list(records)
    lines = [
        "| group | runs | solved | 95 % interval | number right | product / partial / "
        "none | seconds |"
    ]
    lines += ["|---|---|---|---|---|---|---|"]
    for group, members in groupby(records, key=lambda record: record["group"]):
        lines.append(_row(group, list(members)))
    random = [record for record in records if record["group"] == "random"]
    if random:
        lines += [
            "",
            "| verdict on random problems | said | number right | solved |",
            "|---|---|---|---|",
        ]
        for verdict in ("product", "partial", "none"):
            said = [record for record in random if record["verdict"] == verdict]
            right, solved = (
                sum(record[key] for record in said)
                for key in ("number_right", "solved")
            )
            lines.append(f"| {verdict} | {len(said)} | {right} | {solved} |")
    return "\n".join(lines) + "\n"


def _row(group: str, members: list[dict]) -> str:
    n = len(members)
    solved, right = (
        sum(record[key] for record in members) for key in ("solved", "number_right")
    )
    low, high = wilson_interval(solved, n)
    verdicts = " / ".join(
        str(sum(r["verdict"] == v for r in members))
        for v in ("product", "partial", "none")
    )
    verdicts = verdicts if members[0]["verdict"] else "-"
    seconds = np.median([record["seconds"] for record in members])
    return f"| {group} | {n} | {solved / n:.0%} | {low:.0%}-{high:.0%} | {right / n:.0%} | {verdicts} | {seconds:.1f} |"
