"""Advice that was measured: how often following what a fit advises makes its result better.

Problems of the mixture are fitted; where the evidence advises something, it is done, as far as a
program can do it, and the second fit is compared with the first by the truth.
"""

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from scipy.stats import kurtosis, rankdata
from sklearn.cluster import KMeans
from sklearn.neighbors import NearestNeighbors

from manifactor._support.errors import NothingFoundError
from manifactor.datasets.products import ring
from manifactor.estimators import ManifoldFactorizer
from manifactor.samples.columns import suspicious_columns
from manifactor.scores import column_r2, score
from studies.mixture import Problem, draw
from studies.pieces import of_seeds, seeds
from studies.running import exit_code, new_files, parser, report

# Fewer than in the mixture: advice is printed where samples are few, and twice as many are drawn.
N_SAMPLES = (300, 1500)
# Columns of which less is predicted are not explained by the factors, or are noise.
LITTLE = 0.5
OUTCOMES = ("helped", "surer", "nothing", "hurt")
CERTAIN = ("product", "separable")


@dataclass(frozen=True)
class Case:
    """A problem, the same with twice the samples, and the fit that advises something."""

    problem: Problem
    more: Problem
    fit: ManifoldFactorizer

    @property
    def embedding(self) -> np.ndarray:
        """Where samples lie on all factors together."""
        return np.hstack(_embeddings(self.fit))


@dataclass(frozen=True)
class Trial:
    """What to fit instead: samples with their truth, and parameters."""

    problem: Problem
    parameters: Mapping[str, int] = field(default_factory=dict)
    whole: bool = True  # whether the truth is that of the first fit


def _rows(problem: Problem, rows) -> Problem:
    truths = tuple(tuple(t[rows] for t in truth) for truth in problem.truths)
    return replace(problem, X=problem.X[rows], truths=truths)


def _columns(case: Case, X: np.ndarray) -> Trial:
    return Trial(replace(case.problem, X=X))


# Ways to follow a piece of advice: each returns what to fit, or None where there is nothing to do.


def twice_the_samples(case: Case) -> Trial:
    """Fit the samples and as many more."""
    return Trial(case.more)


def one_factor_more(case: Case) -> Trial:
    """Ask for one factor more than were found."""
    return Trial(case.problem, {"n_factors": case.fit.n_factors_ + 1})


def more_functions(case: Case) -> Trial | None:
    """Compute more functions than the default does at most."""
    most = min(600, len(case.problem.X) // 4)
    known = len(case.fit.spectrum_.eigenvalues)
    return Trial(case.problem, {"n_functions": most}) if most > known else None


def half_of_the_range(case: Case) -> Trial:
    """Fit the half of the samples on one side, along the direction of largest variance."""
    X = case.problem.X - case.problem.X.mean(axis=0)
    along = X @ np.linalg.svd(X, full_matrices=False)[2][0]
    return Trial(_rows(case.problem, along < np.median(along)), whole=False)


def largest_cluster(case: Case) -> Trial:
    """Fit the larger of two clusters by the lowest functions."""
    functions = case.fit.spectrum_.functions[:, 1:3]
    labels = KMeans(2, n_init=5, random_state=0).fit_predict(functions)
    return Trial(_rows(case.problem, labels == np.bincount(labels).argmax()), whole=False)


def without_unexplained_columns(case: Case) -> Trial | None:
    """Leave out the columns that the factors do not predict."""
    return _without(case, column_r2(case.embedding, case.problem.X) < LITTLE)


def without_noisy_columns(case: Case) -> Trial | None:
    """Leave out the columns that the others do not predict."""
    X, numbers = case.problem.X, np.arange(case.problem.X.shape[1])
    if len(numbers) < 3:
        return None
    r2 = [column_r2(X[:, numbers != k], X[:, [k]])[0] for k in numbers]
    return _without(case, np.array(r2) < LITTLE)


def _without(case: Case, which: np.ndarray) -> Trial | None:
    some = which.any() and (~which).sum() > 1
    return _columns(case, case.problem.X[:, ~which]) if some else None


def columns_as_advised(case: Case) -> Trial:
    """Leave out columns that are not measurements, and bring the others to one scale."""
    X = case.problem.X
    found = suspicious_columns(X)
    X = np.delete(X, [*found.get("index", ()), *found.get("label", ())], axis=1)
    return _columns(case, X / X.std(axis=0) if "scale" in found else X)


def unexplained_columns_scaled_up(case: Case) -> Trial:
    """Multiply the column that the factors predict least, and others like it, by 5."""
    r2 = column_r2(case.embedding, case.problem.X)
    which = r2 <= max(r2.min(), LITTLE)
    if which.all():
        which = r2 <= r2.min()
    return _columns(case, case.problem.X * np.where(which, 5, 1))


def logarithm(case: Case) -> Trial | None:
    """Take the logarithm of positive columns with tails."""
    X = case.problem.X
    which = (X >= 0).all(axis=0) & _with_tails(X)
    # Counts may be 0.
    logs = np.log(np.where(which, X + 0.01 * X.mean(axis=0), 1))
    return _columns(case, np.where(which, logs, X)) if which.any() else None


def ranks(case: Case) -> Trial | None:
    """Take ranks of columns with tails, within the range of three standard deviations."""
    X = case.problem.X
    which = _with_tails(X)
    even = np.sqrt(12) * X.std(axis=0) * (rankdata(X, axis=0) / len(X) - 0.5)
    return _columns(case, np.where(which, even, X)) if which.any() else None


def _with_tails(X: np.ndarray) -> np.ndarray:
    """Return which columns have longer tails than a Gaussian, nearly."""
    return kurtosis(X, axis=0) > -0.3


def thinned(case: Case) -> Trial:
    """Keep half of the samples, with a probability that falls as the density rises."""
    X = case.problem.X
    distances = NearestNeighbors(n_neighbors=64).fit(X).kneighbors()[0]
    near, far = np.log(distances[:, [15, 63]]).T
    volume = np.exp(np.log(4) / np.mean(far - near) * (far - far.mean()))
    low, high = 0.0, 1e9
    for _ in range(100):
        middle = np.sqrt(max(low, 1e-9) * high)
        kept = np.minimum(1, middle * volume)
        low, high = (middle, high) if kept.mean() < 0.5 else (low, middle)
    rows = np.random.RandomState(0).uniform(size=len(X)) < kept
    return Trial(_rows(case.problem, rows))


# Advice that says how to read the result: it is right or wrong, and nothing is fitted.


def is_one_factor(case: Case) -> bool:
    """Whether the data are one factor."""
    return len(case.problem.truth) == 1


def are_right(case: Case) -> bool:
    """Whether every factor is right."""
    return _state(case.fit, case.problem)[1]


def are_right_together(case: Case) -> bool:
    """Whether all coordinates together tell the place of every sample."""
    truth = np.hstack(case.problem.truth)
    return bool(column_r2(case.embedding, truth).min() >= 0.95)


# Words of the advice, and the ways to follow it.
FOLLOWED: dict[str, tuple[Callable[[Case], Trial | bool | None], ...]] = {
    "Then fit again.": (columns_as_advised,),
    "Add samples": (twice_the_samples,),
    "Reduce the noise": (without_noisy_columns,),
    "eave out noisy columns": (without_noisy_columns,),
    "Fit a part": (half_of_the_range,),
    "Fit each cluster": (largest_cluster,),
    "sk for one factor more": (one_factor_more,),
    "Raise `n_functions`": (more_functions, unexplained_columns_scaled_up),
    "Look at the columns": (without_unexplained_columns,),
    "Scale up the columns": (unexplained_columns_scaled_up,),
    "ake the data as one factor": (is_one_factor,),
    "Use the coordinates, they are right": (are_right,),
    "Use the coordinates, they tell samples apart": (are_right,),
    "Use the coordinates, but": (are_right,),
    "Use the coordinates together": (are_right_together,),
    "Take the factors together": (are_right_together,),
    "Use the factors": (are_right,),
}
# The same of advice that is no longer given, by the test that it followed from: more problems may
# show that it helps.
NOT_GIVEN: dict[str, tuple[Callable[[Case], Trial | bool | None], ...]] = {
    "evenness": (logarithm, ranks, thinned),
    "further product": (half_of_the_range,),
    "blocks": (twice_the_samples,),
    "probability": (twice_the_samples,),
}


def record(seed: int, *, family: str | None = None) -> dict:
    """Fit a problem, follow each piece of advice, and return what came of it."""
    n = round(np.exp(np.random.RandomState(seed).uniform(*np.log(N_SAMPLES))))
    more = draw(seed, family=family, n_samples=2 * n)
    problem = _rows(more, slice(n))
    start = time.perf_counter()
    said: dict = {"verdict": "error", "advice": "", "followed": []}
    with warnings.catch_warnings(action="ignore"):
        # One failure must not lose the other problems.
        try:
            fit = ManifoldFactorizer(random_state=seed, n_jobs=1).fit(problem.X)
            said = _followed(Case(problem, more, fit), seed)
        except Exception as error:
            said["error"] = str(error)
    return {
        "seed": seed,
        "family": problem.family,
        "member": problem.member,
        "samples": n,
        "factors": len(problem.truth),
        **said,
        "seconds": round(time.perf_counter() - start, 2),
    }


def _followed(case: Case, seed: int) -> dict:
    """Return the first result, and that of each way to follow its advice."""
    evidence = case.fit.evidence_
    _, solved = _state(case.fit, case.problem)
    followed = []
    given = {words: ways for words, ways in FOLLOWED.items() if words in evidence.advice}
    others = {f"({name})": ways for name, ways in NOT_GIVEN.items() if evidence.fails(name)}
    done: dict[str, dict | None] = {}
    for words, ways in (given | others).items():
        for way in ways:
            name = way.__name__
            if name not in done:
                done[name] = _outcome(case, way(case), seed)
            if (found := done[name]) is not None:
                followed.append({"advice": words, "way": name, **found})
    return {
        "verdict": evidence.verdict,
        "solved": solved,
        "advice": evidence.advice,
        "failed": [test.name for test in evidence.failed],
        "followed": followed,
    }


def _outcome(case: Case, trial: Trial | bool | None, seed: int) -> dict | None:
    """Return what came of one way to follow advice; None where there was nothing to do."""
    if trial is None:
        return None
    if isinstance(trial, bool):
        return {"outcome": "helped" if trial else "hurt"}
    before, was_solved = _state(case.fit, case.problem)
    try:
        fit = ManifoldFactorizer(random_state=seed, n_jobs=1, **trial.parameters)
        verdict = fit.fit(trial.problem.X).verdict_
    except (NothingFoundError, ValueError):
        # The fit says that there is nothing more, and the first result stays.
        return {"verdict": "refused", "solved": was_solved, "outcome": "nothing"}
    after, solved = _state(fit, trial.problem)
    first = case.fit.verdict_
    surer = solved and verdict in CERTAIN and first not in CERTAIN
    outcome = "surer" if surer else "nothing"
    if not trial.whole and len(case.problem.truth) == 1:
        # What the factors of a part are, nobody knows: a verdict without failed tests will do.
        outcome = "helped" if verdict in CERTAIN else "nothing"
    elif (after, solved) != (before, was_solved):
        outcome = "helped" if (solved, after) > (was_solved, before) else "hurt"
    return {"verdict": verdict, "solved": solved, "outcome": outcome}


def _state(fit: ManifoldFactorizer, problem: Problem) -> tuple[int, bool]:
    """Return how many factors are right, and whether all of them are.

    Of data with one factor, the answer is right if there is one, or coordinates that separate.
    """
    found = _embeddings(fit)
    if len(problem.truth) == 1:
        right = len(found) == 1 or any(score(found, each).solved for each in problem.truths[1:])
        return int(right), right
    scored = score(found, problem.truth)
    right = 0
    for true, own in scored.match:
        others = np.delete(scored.r2[true], own).max(initial=0)
        leaks = np.delete(scored.r2[:, own], true).max(initial=0)
        right += bool(scored.r2[true, own] >= 0.95 and max(others, leaks) <= 0.10)
    return right, scored.solved


def _embeddings(fit: ManifoldFactorizer) -> list[np.ndarray]:
    """Return where samples lie on every factor, or by both angles of a flat torus."""
    symmetries = fit.evidence_.symmetries
    if fit.verdict_ == "none" and symmetries is not None and symmetries.angles is not None:
        return [ring(angle) for angle in symmetries.angles.T]
    return [factor.embedding for factor in fit.factors_]


def render(records: Iterable[dict]) -> str:
    """Return the table in Markdown: how often each way to follow advice helped."""
    records = list(records)
    rows: dict[tuple[str, ...], list[tuple[dict, dict]]] = {}
    for one in records:
        for each in one["followed"]:
            key = each["advice"], one["verdict"], each["way"]
            rows.setdefault(key, []).append((one, each))
    advised = sum(bool(one["advice"]) for one in records)
    heads = ["advice, or (test)", "verdict", "followed by", "cases", *OUTCOMES]
    heads += ["wrong before", "of these helped"]
    lines = [
        f"{advised} of {len(records)} problems were given advice.",
        "",
        f"| {' | '.join(heads)} |",
        "|---" * len(heads) + "|",
    ]
    for (words, verdict, way), cases in sorted(rows.items(), key=lambda row: -len(row[1])):
        outcomes = [each["outcome"] for _, each in cases]
        wrong = [each["outcome"] for one, each in cases if not one["solved"]]
        counts = [len(cases), *map(outcomes.count, OUTCOMES), len(wrong), wrong.count("helped")]
        cells = [words, verdict, way.replace("_", " "), *map(str, counts)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> None:
    """Follow the advice of fits of random problems."""
    grammar = parser(__doc__.partition("\n")[0])
    grammar.add_argument("--problems", type=int, metavar="N", help="1000, or 10 with --quick")
    options = grammar.parse_args(argv)
    n_problems = options.problems or (10 if options.quick else 1000)
    files = new_files(options, "advice", ".jsonl", ".md")
    study = partial(of_seeds, record, n_problems)
    report(files, seeds(n_problems), study, render, overwrite=options.overwrite)


if __name__ == "__main__":
    sys.exit(exit_code(main))
