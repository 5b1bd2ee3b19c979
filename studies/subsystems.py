"""Numbers of independent subsystems of linear mixtures: switches, and rings with wells.

The 10-cube is that of iVAMPnets: ten two-state chains, pairs of columns turned by 45 degrees, and
ten columns of noise. The composite is that of Kozdoba and Mannor: two rings of ten wells and six
double wells, in 300 runs whose frames are long steps apart. Rates are compared with exact ones.
"""

import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from manifactor import count_subsystems
from manifactor._support.workers import Processes, Workers
from studies.pieces import results_as_done
from studies.records import count
from studies.running import exit_code, new_files, parser, report

# Time between frames of the composite, its runs and the frames of each.
LAG, RUNS, FRAMES = 2.0, 300, 101


@dataclass(frozen=True)
class Recording:
    """Columns in time, and what is true of them."""

    X: np.ndarray  # (runs, frames, p)
    states: Sequence[np.ndarray]  # true coordinates of each subsystem, (runs, frames, c)
    rates: Sequence[float] = ()  # exact rate of each, if known
    lag: float = 1.0  # time between frames


# Ten switches.


def cube(
    seed: int,
    *,
    n_steps: int = 100_000,
    equal: bool = False,
    mixture: str = "turned",
    noise: float = 0.25,
    copied: float = 0.0,
) -> Recording:
    """Record ten switches of two states with noise, and ten columns of noise.

    A `mixture` is "turned" (pairs of columns by 45 degrees), "all" (a random mixture of all 20
    columns), or "before noise" (of the switches in 20 columns, with noise in each). `copied` is how
    often the second switch takes the state of the first.
    """
    rng = np.random.default_rng(seed)
    flips = np.full(10, 0.05) if equal else np.geomspace(0.02, 0.15, 10)
    flipped = rng.random((n_steps, 10)) < flips
    states = np.where((np.cumsum(flipped, axis=0) + rng.integers(0, 2, 10)) % 2, 1.0, -1.0)
    if copied:
        copies = rng.random(n_steps) < copied
        for t in range(1, n_steps):
            other = -states[t - 1, 1] if flipped[t, 1] else states[t - 1, 1]
            states[t, 1] = states[t, 0] if copies[t] else other
    if mixture == "before noise":
        X = states @ rng.normal(size=(10, 20))
        X = X + noise * X.std(axis=0) * rng.normal(size=X.shape)
    else:
        X = np.hstack([states, np.zeros_like(states)])
        X += np.repeat([noise, 1.0], 10) * rng.normal(size=X.shape)
        turn = np.eye(20)
        turn[:10, :10] = np.kron(np.eye(5), [[1, 1], [-1, 1]]) / np.sqrt(2)
        X = X @ (turn if mixture == "turned" else rng.normal(size=(20, 20)))
    parts = np.split(states[None], range(2 if copied else 1, 10), axis=2)
    return Recording(X[None], parts, () if copied else -np.log(1 - 2 * flips))


def noise_only(seed: int) -> Recording:
    """Record 40 columns of noise, with heavy tails."""
    return Recording(np.random.default_rng(seed).standard_t(4, size=(1, 10_000, 40)), [])


# Two rings and six double wells.


def well_chain(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Return places, their density, the moves over a frame, and the slowest rate of a diffusion.

    On a grid, so that moves and rate are exact: a ring of ten wells, or a double well.
    """
    if name == "ring":
        x = np.arange(600) * 2 * np.pi / 600
        # The ring has a width: turns are faster by the mean of 1 / r^2.
        energy, diffusion = np.cos(10 * x), 0.25 * 1.0125
        hops = np.ones(600)
    else:
        x = np.linspace(-2.6, 2.6, 521)
        energy, diffusion = 2 * (x**2 - 1) ** 2, 0.75
        hops = np.r_[np.ones(520), 0]
    beta = 1 / (0.25 if name == "ring" else 0.75)
    step = x[1] - x[0]
    forward = hops * diffusion / step**2 * np.exp(-beta / 2 * (np.roll(energy, -1) - energy))
    backward = np.roll(hops, 1) * diffusion / step**2
    backward = backward * np.exp(-beta / 2 * (np.roll(energy, 1) - energy))
    generator = np.zeros((len(x), len(x)))
    rows = np.arange(len(x))
    np.add.at(generator, (rows, (rows + 1) % len(x)), forward)
    np.add.at(generator, (rows, (rows - 1) % len(x)), backward)
    generator -= np.diag(generator.sum(axis=1))
    density = np.exp(-beta * energy)
    density /= density.sum()
    root = np.sqrt(density)
    values, axes = np.linalg.eigh(root[:, None] * generator / root)
    moves = (axes * np.exp(LAG * values)) @ axes.T * root / root[:, None]
    return x, density, np.cumsum(np.maximum(moves, 0), axis=1), float(-values[-2])


def composite(seed: int, *, mixed: bool = False, runs: int = RUNS) -> Recording:
    """Record two rings and six double wells, at most mixed at random, (runs, frames, 10)."""
    rng = np.random.default_rng(seed)
    chains = {name: well_chain(name) for name in ("ring", "wells")}
    parts, rates = [], []
    for name in ("ring", "ring", *6 * ("wells",)):
        x, density, moves, rate = chains[name]
        rates.append(rate)
        at = rng.choice(len(x), size=runs, p=density)
        path = [at]
        for _ in range(FRAMES - 1):
            at = (moves[at] < rng.random((runs, 1)) * moves[at, -1:]).sum(axis=1)
            path.append(at)
        places = x[np.stack(path, axis=1)]
        if name == "ring":
            radius = 1 + rng.normal(scale=np.sqrt(0.25 / 20), size=places.shape)
            parts.append(np.stack([radius * np.cos(places), radius * np.sin(places)], axis=2))
        else:
            parts.append(places[:, :, None])
    X = np.concatenate(parts, axis=2)
    return Recording(X @ rng.normal(size=(10, 10)) if mixed else X, parts, rates, LAG)


GROUPS: dict[str, Callable[[int], Recording]] = {
    "ten switches, rates 1:8": cube,
    "equal rates": partial(cube, equal=True),
    "all 20 columns mixed at random": partial(cube, mixture="all"),
    "mixed in 20 columns, each with noise of 30 %": partial(
        cube, mixture="before noise", noise=0.3
    ),
    "without noise": partial(cube, noise=0.0),
    "5,000 steps": partial(cube, n_steps=5000),
    "control: one pair coupled": partial(cube, copied=0.05),
    "control: one pair coupled weakly": partial(cube, copied=0.01),
    "control: noise": noise_only,
    "rings and wells, 30,000 pairs": composite,
    "rings and wells, mixed at random": partial(composite, mixed=True),
    "rings and wells, mixed, 300,000 pairs": partial(composite, mixed=True, runs=10 * RUNS),
}


def rate_of(state: np.ndarray) -> float:
    """Return the rate that the true coordinates of a subsystem show in this recording."""
    alone = count_subsystems(list(state), trajectories=True)
    return float(np.mean(1 / np.concatenate(alone.time_scales)))


def record(group: str, seed: int) -> dict:
    """Return the record of one count."""
    drawn = GROUPS[group](seed)
    start = time.perf_counter()
    times = drawn.lag * np.tile(np.arange(drawn.X.shape[1]), len(drawn.X))
    with warnings.catch_warnings(action="ignore"):
        found = count_subsystems(list(drawn.X), times, trajectories=True)
    seconds = round(time.perf_counter() - start, 1)
    right = found.number == len(drawn.states)
    errors, exact = [], []
    for state, rate in zip(drawn.states, drawn.rates, strict=False) if right else ():
        flat = state.reshape(-1, state.shape[2]) - state.mean(axis=(0, 1))
        near = [np.abs(functions.T @ flat).max() / len(flat) for functions in found.functions]
        # Both functions of a ring are equally fast.
        own = float(np.mean(1 / found.time_scales[int(np.argmax(near))]) * drawn.lag)
        with warnings.catch_warnings(action="ignore"):
            errors.append(abs(own / rate_of(state) - 1))
        exact.append(abs(own / float(rate * drawn.lag) - 1))
    return {
        "group": group,
        "seed": seed,
        "number": found.number,
        "right": right,
        "sizes": [len(each) for each in found.time_scales],
        "rate error": round(max(errors, default=0.0), 4),
        "exact error": round(max(exact, default=0.0), 4),
        "rates": len(errors),
        "rates right": sum(error <= 0.05 for error in errors),
        "exact right": sum(error <= 0.05 for error in exact),
        "seconds": seconds,
    }


def run(
    todo: Sequence[dict], *, known: Collection[int] = (), workers: Workers = Processes()
) -> Iterator[dict]:
    """Yield the record of each job, as they are done."""
    left = [job for number, job in enumerate(todo) if number not in known]
    return results_as_done(workers, record, [(job["group"], job["seed"]) for job in left])


def render(records: Sequence[dict]) -> str:
    """Return the table in Markdown."""
    lines = [
        "| group | recordings | number right | found | rates within 5 % of the recording's own | "
        "of the exact ones | median time |",
        "|---|---|---|---|---|---|---|",
    ]
    for group in GROUPS:
        own = [one for one in records if one["group"] == group]
        if own:
            numbers = sorted({one["number"] for one in own})
            n_rates = sum(one["rates"] for one in own)
            shares = [
                f"{sum(one[key] for one in own)} of {n_rates} "
                f"(all of a recording: {sum(one[key] == one['rates'] > 0 for one in own)})"
                if n_rates
                else "-"
                for key in ("rates right", "exact right")
            ]
            seconds = f"{np.median([one['seconds'] for one in own]):.1f} s"
            found = ", ".join(map(str, numbers))
            cells = (group, len(own), count(own, "right"), found, *shares, seconds)
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> None:
    """Count subsystems of recordings, and how often their number and rates are right."""
    grammar = parser(__doc__.partition("\n")[0])
    groups = list(GROUPS)
    grammar.add_argument("--groups", nargs="+", choices=groups, default=groups, metavar="NAME")
    grammar.add_argument("--seeds", type=int, nargs=2, default=(200, 210), metavar=("FROM", "TO"))
    options = grammar.parse_args(argv)
    seeds = range(*options.seeds)[: 1 if options.quick else None]
    todo = [{"group": group, "seed": seed} for group in options.groups for seed in seeds]
    files = new_files(options, "subsystems", ".jsonl", ".md")
    report(files, todo, partial(run, todo), render, overwrite=options.overwrite)


if __name__ == "__main__":
    sys.exit(exit_code(main))
