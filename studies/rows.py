"""Known hard cases: planets, tori, heavy tails, signals, nested samples, given numbers of factors.

Each row of the table is one kind of problem, drawn by its seed. Limits were not chosen by them.
"""

import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, pairwise

import numpy as np

from manifactor._support.workers import Processes, Workers
from manifactor.datasets.products import Truth, ring
from manifactor.estimators import ManifoldFactorizer
from manifactor.scores import score
from studies import conditioned, mixture
from studies.labels import Truths
from studies.pieces import results_as_done
from studies.records import count, with_verdict
from studies.running import exit_code, new_files, parser, report

# Samples, and truths that are each right.
Samples = tuple[np.ndarray, Sequence[Truth]]

# Radii of orbits in astronomical units, and their inclination in degrees.
ORBITS = {
    "Mercury": (0.387, 7.0),
    "Venus": (0.723, 3.39),
    "Earth": (1.0, 0.0),
    "Mars": (1.524, 1.85),
    "Jupiter": (5.2, 1.3),
    "Saturn": (9.54, 2.49),
}
# Numbers of samples of the same problem.
NESTED = (500, 1000, 2000, 4000, 8000)
# Problems of the calibration have no 8,000 samples.
NESTED_FAMILIES = tuple(name for name in mixture.FAMILIES if name != "calibration")


# Problems.


def _on_orbit(radius: float, inclination: float, angle: np.ndarray) -> np.ndarray:
    tilt = np.radians(inclination)
    across = np.sin(angle)
    return radius * np.c_[np.cos(angle), across * np.cos(tilt), across * np.sin(tilt)]


def planet(seed: int) -> Samples:
    """Draw where a planet is as seen from Earth: an annulus, and a small height."""
    rng = np.random.default_rng(seed)
    others = [orbit for name, orbit in ORBITS.items() if name != "Earth"]
    radius, _ = others[rng.integers(len(others))]
    inclination = rng.uniform(1, 7)
    angles = rng.uniform(0, 2 * np.pi, size=(2, rng.integers(300, 1001)))
    X = _on_orbit(radius, inclination, angles[1]) - _on_orbit(1, 0, angles[0])
    return X, [tuple(map(ring, angles))]


def planets(seed: int) -> Samples:
    """Draw where four planets are relative to each other."""
    rng = np.random.default_rng(seed)
    names = ("Earth", "Mars", "Jupiter", "Saturn")
    angles = rng.uniform(0, 2 * np.pi, size=(len(names), rng.choice([1000, 2000, 3000])))
    places = [_on_orbit(*ORBITS[name], angle) for name, angle in zip(names, angles, strict=True)]
    X = np.hstack([one - other for one, other in combinations(places, 2)])
    return X, [tuple(map(ring, angles))]


def torus(seed: int) -> Samples:
    """Draw a torus of revolution, even in its two angles and so uneven on the surface."""
    rng = np.random.default_rng(seed)
    ratio = rng.uniform(1.6, 3)
    along, around = rng.uniform(0, 2 * np.pi, size=(2, rng.choice([2000, 3000])))
    X = np.c_[(ratio + np.cos(around))[:, None] * ring(along), np.sin(around)]
    return X + rng.normal(scale=0.02, size=X.shape), [(ring(along), ring(around))]


def tails(freedom: int, seed: int) -> Samples:
    """Draw a product of two curves in 8 columns, with noise of Student's t."""
    rng = np.random.default_rng(seed)
    angles = rng.uniform(0, 2 * np.pi, size=(2, 3000))
    closed = rng.uniform(size=2) < 0.5
    truth = tuple(ring(t) if c else t[:, None] for t, c in zip(angles, closed, strict=True))
    # An interval is about as long as a circle of radius 1 is wide, a second factor is smaller.
    sizes = np.where(closed, (1.0, 0.8), (1 / 2, 1 / 3))
    X = np.hstack([size * t for size, t in zip(sizes, truth, strict=True)])
    X = X @ np.linalg.qr(rng.normal(size=(8, X.shape[1])))[0].T
    scale = np.sqrt(X.var(axis=0).sum()) * rng.uniform(0.01, 0.02)
    return X + scale * rng.standard_t(freedom, size=X.shape), [truth]


# Phase, width and height of the waves P, Q, R, S and T of a heart beat.
BEAT = np.array(
    [
        (-1.05, 0.25, 0.12),
        (-0.26, 0.1, -0.15),
        (0.0, 0.1, 1.0),
        (0.26, 0.1, -0.25),
        (1.75, 0.4, 0.3),
    ]
)


def heart_and_breath(seed: int) -> Samples:
    """Draw an ECG beside breathing: columns of each are delays of its signal."""
    rng = np.random.default_rng(seed)
    phases = rng.uniform(0, 2 * np.pi, size=(2, rng.choice([1000, 2000, 3000])))
    delays = [np.linspace(0, 2 * np.pi, rng.integers(6, 21), endpoint=False) for _ in phases]
    heart, breath = (phase[:, None] + delay for phase, delay in zip(phases, delays, strict=True))
    away = (heart[..., None] - BEAT[:, 0] + np.pi) % (2 * np.pi) - np.pi
    beats = np.exp(-0.5 * (away / BEAT[:, 1]) ** 2) @ BEAT[:, 2]
    breaths = np.sin(breath) + rng.uniform(0, 0.3) * np.sin(2 * breath)
    X = np.hstack([beats / beats.std(), breaths / breaths.std()])
    return X + rng.normal(scale=rng.uniform(0, 0.05), size=X.shape), [tuple(map(ring, phases))]


def nested(seed: int, n: int) -> Samples:
    """Draw the first samples of a problem of the mixture that has 8,000 of them."""
    family = NESTED_FAMILIES[seed % len(NESTED_FAMILIES)]
    problem = mixture.draw(seed, family=family, n_samples=max(NESTED))
    return problem.X[:n], [tuple(each[:n] for each in truth) for truth in problem.truths]


def any_problem(seed: int) -> Samples:
    """Draw a problem of the mixture."""
    problem = mixture.draw(seed)
    return problem.X, problem.truths


# Fits.


def fitted(samples: Samples, seed: int, **options) -> dict:
    """Fit with the defaults, or with options, and return the answer and whether it is right."""
    X, truths = samples
    truth = truths[0]
    start = time.perf_counter()
    with warnings.catch_warnings(action="ignore"):
        try:
            # One thread: there is a process for each core already.
            fit = ManifoldFactorizer(random_state=seed, n_jobs=1, **options).fit(X)
        # One failure must not lose the other problems.
        except Exception as error:
            said = {"verdict": f"error: {error}", "factors": 0, "found": 0, "solved": False}
            said |= {"right": False, "told": [0.0], "true": len(truth), "topologies": []}
            said |= {"probability": None, "leak": 1.0, "answer": "", "sense": ""}
            return {**said, "seconds": round(time.perf_counter() - start, 2)}
    seconds = round(time.perf_counter() - start, 2)
    evidence = fit.evidence_
    embeddings = [factor.embedding for factor in fit.factors_]
    result, *others = (score(embeddings, each) for each in truths)
    solved = any(each.solved for each in (result, *others))
    if len(truth) == len(embeddings) == 1:
        solved = True  # where nothing divides, one factor is the answer
    judged = Truths(X, truths)
    return {
        "n": len(X),
        "columns": X.shape[1],
        "true": len(truth),
        "verdict": fit.verdict_,
        "answer": evidence.answer,
        # By what neighbours in the samples tell of each truth.
        "right": judged.label(embeddings, only_told=True).name == "right",
        "told": [round(float(r2), 3) for r2 in judged.ceilings[0]],
        "sense": evidence.sense,
        "probability": None if np.isnan(evidence.probability) else round(evidence.probability, 4),
        "factors": len(fit.factors_),
        "topologies": [factor.topology for factor in fit.factors_],
        # True factors that a factor tells.
        "found": int((result.r2.max(axis=1) >= 0.95).sum()),
        "solved": solved,
        "own": round(result.worst, 4),
        "leak": round(result.leak, 4),
        "functions": len(fit.diffusion_.distinct.eigenvalues),
        "dimension": round(fit.diffusion_.dimension, 2),
        "failed": [[test.name, round(float(test.net), 4)] for test in evidence.failed],
        "senses": fit.choices_["sense"].why if "sense" in fit.choices_ else "",
        "seconds": seconds,
    }


def with_copies(seed: int) -> dict:
    """Fit samples, and again with copies of them: both results should be the same."""
    X, more = conditioned.copied(seed)
    alone, again = fitted((X, [(X,)]), seed), fitted((more, [(more,)]), seed)
    names = ("verdict", "factors", "topologies", "probability")
    return {**again, "solved": all(alone[name] == again[name] for name in names)}


def given_number(seed: int) -> dict:
    """Fit with the default number of factors, and again with the number that it found."""
    samples = any_problem(seed)
    found = fitted(samples, seed)
    if found["factors"] < 2:
        return found
    return {**found, "given": fitted(samples, seed, n_factors=found["factors"])}


# Rows.


@dataclass(frozen=True)
class Row:
    """A row of the table: how its record is made, of how many seeds, and what is counted."""

    record: Callable[..., dict]
    n_seeds: int
    counted: str
    asked: str
    count: Callable[[Sequence[dict]], str]
    sizes: tuple[int | None, ...] = (None,)


def _drawn_by(draw: Callable[[int], Samples], seed: int) -> dict:
    return fitted(draw(seed), seed)


def _of(part: Sequence, total: Sequence) -> str:
    return f"{len(part)} of {len(total)}"


def _solved(records: Sequence[dict]) -> str:
    return f"{count(records, 'solved')} of {len(records)}"


def _wrong_products(records: Sequence[dict]) -> str:
    wrong = [one for one in with_verdict(records, "product") if not one["solved"]]
    return _of(wrong, records)


def _circles(records: Sequence[dict]) -> str:
    found = [one["found"] for one in records]
    numbers = ", ".join(f"{number}: {found.count(number)}" for number in sorted(set(found)))
    return f"{numbers}; wrong product {_wrong_products(records)}"


def _products_of_volume(records: Sequence[dict]) -> str:
    volume = [
        one
        for one in with_verdict(records, "product")
        if one["sense"] == "volume" and one["solved"]
    ]
    return _of(volume, records)


def _third_factors(records: Sequence[dict]) -> str:
    more = [one for one in records if one["factors"] > one.get("true", 2)]
    return f"{_of(more, records)}; solved {_solved(records)}"


def reversals(records: Sequence[dict]) -> list[tuple[dict, dict]]:
    """Return pairs of a solved fit and an unsolved one of the next larger number of samples.

    >>> fits = [{"seed": 1, "size": n, "solved": n < 2000} for n in (500, 1000, 2000)]
    >>> [(less["size"], more["size"]) for less, more in reversals(fits)]
    [(1000, 2000)]
    """
    return [(less, more) for less, more in _pairs(records) if less["solved"] > more["solved"]]


def _pairs(records: Sequence[dict]) -> list[tuple[dict, dict]]:
    ordered = sorted(records, key=lambda one: (one["seed"], one["size"]))
    return [(one, next_) for one, next_ in pairwise(ordered) if one["seed"] == next_["seed"]]


def _reversed(records: Sequence[dict]) -> str:
    found, pairs = reversals(records), _pairs(records)
    solved = [pair for pair in pairs if pair[0]["solved"]]
    seeds = ", ".join(f"{less['seed']} at {more['size']}" for less, more in found)
    where = f" (problem {seeds})" if found else ""
    return f"{_of(found, pairs)}, {len(solved)} of them solved{where}"


def _fails_when_given(records: Sequence[dict]) -> str:
    pairs = [(one, one["given"]) for one in records if "given" in one]
    fewer = [one for one, given in pairs if given["factors"] != one["factors"]]
    worse = [one for one, given in pairs if one["solved"] and not given["solved"]]
    return f"another number {_of(fewer, pairs)}, less right {_of(worse, pairs)}"


def _seconds(records: Sequence[dict]) -> str:
    seconds = [one["seconds"] for one in records]
    return f"median {np.median(seconds):.1f} s, worst {max(seconds):.1f} s" if seconds else "-"


def _by_size(counted: Callable[[Sequence[dict]], str]) -> Callable[[Sequence[dict]], str]:
    """Return what counts the records of each size by themselves."""

    def each(records: Sequence[dict]) -> str:
        sizes = sorted({one["size"] for one in records})
        own = {size: [one for one in records if one["size"] == size] for size in sizes}
        return "; ".join(f"{size}: {counted(some)}" for size, some in own.items())

    return each


def _returned_and_right(records: Sequence[dict]) -> str:
    """Count what is right, of those returned, and of those that neighbours tell well."""
    several = [one for one in records if one["factors"] > 1]
    told = [one for one in records if min(one["told"]) >= 0.9]
    right = [one for one in told if one["right"] and one["factors"] > 1]
    return f"returned {len(several)}, right {count(several, 'right')}, told {_of(right, told)}"


def _right(records: Sequence[dict]) -> str:
    """Count right divisions, and those that are said to be sure without being right."""
    sure = [one for one in records if one["verdict"] in ("product", "separable")]
    wrong = [one for one in sure if not one["right"]]
    right = [one for one in records if one["right"] and one["factors"] == one["true"]]
    return f"{_of(right, records)}, wrong and sure {len(wrong)}"


def _sure_and_right(records: Sequence[dict]) -> str:
    sure = [one for one in records if one["verdict"] == "product" and one["solved"]]
    return f"{_of(sure, records)}, found {count(records, 'solved')}"


def _as_one_factor(records: Sequence[dict]) -> str:
    return _of(with_verdict(records, "one factor"), records)


def _several_of_none(records: Sequence[dict]) -> str:
    said = [len(with_verdict(records, name)) for name in ("product", "separable", "partial")]
    return "product {}, separable {}, partial {} of {}".format(*said, len(records))


def _sized(draw: Callable[[int, int], Samples], seed: int, size: int) -> dict:
    return fitted(draw(seed, size), seed)


ROWS: dict[str, Row] = {
    "planet seen from Earth": Row(
        partial(_drawn_by, planet), 60, 'wrong "product"', "at most 1 of 60", _wrong_products
    ),
    "four planets": Row(partial(_drawn_by, planets), 20, "circles found", "-", _circles),
    "torus of revolution": Row(
        partial(_drawn_by, torus),
        20,
        '"product" in the volume, right',
        "18 of 20",
        _products_of_volume,
    ),
    "noise t(3)": Row(partial(_drawn_by, partial(tails, 3)), 40, "solved", "80 %", _solved),
    "noise t(2)": Row(
        partial(_drawn_by, partial(tails, 2)), 40, "a third factor", "never", _third_factors
    ),
    "ECG and breathing": Row(partial(_drawn_by, heart_and_breath), 20, "solved", "-", _solved),
    "nested samples": Row(
        partial(_sized, nested), 220, "reversals of pairs", "at most 2 %", _reversed, sizes=NESTED
    ),
    "number of factors given": Row(given_number, 400, "not as the default", "0", _fails_when_given),
    "noise, percent": Row(
        partial(_sized, conditioned.noisy),
        12,
        "returned and right",
        "95 % of those told",
        _by_size(_returned_and_right),
        sizes=conditioned.NOISES,
    ),
    "copies of rows": Row(with_copies, 60, "the same result", "60 of 60", _solved),
    "levels": Row(
        partial(_sized, conditioned.levelled),
        10,
        "right",
        "45 of 50",
        _by_size(_right),
        sizes=conditioned.LEVELS,
    ),
    "classes": Row(partial(_drawn_by, conditioned.classified), 40, "right", "32 of 40", _right),
    "noisy circle": Row(
        partial(_drawn_by, conditioned.noisy_circle), 30, "one factor", "28 of 30", _as_one_factor
    ),
    "coupled surface": Row(
        partial(_drawn_by, conditioned.coupled), 30, "one curve", "never", _as_one_factor
    ),
    "conformal map, dimensions": Row(
        partial(_sized, conditioned.conformal),
        5,
        '"product", right',
        "9 of 10",
        _by_size(_sure_and_right),
        sizes=conditioned.DIMENSIONS,
    ),
    "no product": Row(
        partial(_drawn_by, conditioned.no_product),
        210,
        "several factors",
        "at most 1 % product",
        _several_of_none,
    ),
    "time, n = 3,000": Row(
        partial(_sized, nested), 220, "seconds", "worst 15 s", _seconds, sizes=(3000,)
    ),
}


def record(row: str, seed: int, size: int | None) -> dict:
    """Return the record of one problem of a row; `size` is the number of samples if it is given."""
    given = {} if size is None else {"size": size}
    return {"row": row, "seed": seed, **given, **ROWS[row].record(seed, **given)}


def jobs(names: Sequence[str], n_seeds: int | None = None) -> list[dict]:
    """Return the entries that identify each record: those of all rows, or of some."""
    return [
        {"row": name, "seed": seed, **({} if size is None else {"size": size})}
        for name in names
        for seed in range(n_seeds or ROWS[name].n_seeds)
        for size in ROWS[name].sizes
    ]


def run(
    todo: Sequence[dict], *, known: Collection[int] = (), workers: Workers = Processes()
) -> Iterator[dict]:
    """Yield the record of each job, as they are done."""
    left = [job for number, job in enumerate(todo) if number not in known]
    drawn = [(job["row"], job["seed"], job.get("size")) for job in left]
    return results_as_done(workers, record, drawn)


def render(records: Sequence[dict]) -> str:
    """Return the table in Markdown."""
    lines = ["| row | fits | counted | asked | got | time |", "|---|---|---|---|---|---|"]
    for name, row in ROWS.items():
        own = [one for one in records if one["row"] == name]
        if own:
            cells = (name, len(own), row.counted, row.asked, row.count(own), _seconds(own))
            lines.append(f"| {' | '.join(map(str, cells))} |")
    errors = [one for one in records if one["verdict"].startswith("error")]
    lines += [f"\n{one['row']}, seed {one['seed']}: {one['verdict']}" for one in errors]
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> None:
    """Fit known hard cases and count how many come out right."""
    grammar = parser(__doc__.partition("\n")[0])
    grammar.add_argument(
        "--rows", nargs="+", choices=list(ROWS), default=list(ROWS), metavar="NAME"
    )
    grammar.add_argument("--seeds", type=int, metavar="N", help="of each row; 2 with --quick")
    options = grammar.parse_args(argv)
    todo = jobs(options.rows, options.seeds or (2 if options.quick else None))
    files = new_files(options, "rows", ".jsonl", ".md")
    study = partial(run, todo)
    report(files, todo, study, render, overwrite=options.overwrite)


if __name__ == "__main__":
    sys.exit(exit_code(main))
