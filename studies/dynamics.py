"""Factors of dynamics: latents that move independently, seen through warps and random networks.

Samples are trajectories, bursts, or points with their Jacobians. Plain fits of the same samples
show what moves add; controls are latents that depend on each other, and are no product.
"""

import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np

from manifactor._support.workers import Processes, Workers
from manifactor.datasets.products import ring
from manifactor.estimators import ManifoldFactorizer
from manifactor.estimators.moving import jacobian
from manifactor.scores import score
from studies.pieces import results_as_done
from studies.records import count, verdict_counts, with_verdict
from studies.running import exit_code, new_files, parser, report

LINE, RING = "interval", "circle"
Kinds = tuple[str, ...]
View = tuple[str, float]
Map = Callable[[np.ndarray], np.ndarray]

PAIRS: list[tuple[Kinds, View]] = [
    *product([(LINE, LINE)], [("warp", 0.2), ("warp", 0.3), ("warp", 0.45)]),
    *product([(RING, LINE)], [("warp", 0.2), ("warp", 0.45)]),
    ((RING, RING), ("warp", 0.3)),
    *product([(LINE, LINE)], [("network", 0.7), ("network", 1.5), ("network", 2.5)]),
    ((RING, LINE), ("network", 1.5)),
]
FOUR = [PAIRS[k] for k in (1, 4, 5, 7)]
WELL_VIEWS: list[View] = [("warp", 0.3), ("network", 1.5)]
CONTROLS = ("same noise", "same noise, circles", "speed", "drift", "triangle", "one latent")
FILMS = [((LINE, LINE), 3), ((RING, LINE), 4), ((RING, RING), 6)]
THREE: list[tuple[Kinds, View]] = [((LINE, LINE, LINE), ("warp", 0.3))]


# Latents and how they are seen.


def encoded(u: np.ndarray, kinds: Kinds) -> np.ndarray:
    """Return places in [0, 1] as an interval of length 1.3, or a circle of radius .5."""
    columns = zip(kinds, u.T, strict=True)
    return np.hstack(
        [0.5 * ring(2 * np.pi * t) if k == RING else 1.3 * t[:, None] for k, t in columns]
    )


def random_map(kinds: Kinds, view: View, rng: np.random.Generator) -> Map:
    """Draw the map from places to samples: a smooth warp, a network of two layers, or a shear."""
    name, size = view
    width = sum(2 if kind == RING else 1 for kind in kinds)
    if name == "shear":
        shear = np.eye(width)
        shear[1, 0] = size
        return lambda u: encoded(u, kinds) @ shear
    if name == "warp":
        waves, phases = 2.5 * rng.normal(size=(width, 32)), 2 * np.pi * rng.random(32)
        heights = size * rng.normal(size=(32, width + 2)) / 4

        def warped(u: np.ndarray) -> np.ndarray:
            flat = encoded(u, kinds)
            return np.pad(flat, ((0, 0), (0, 2))) + np.cos(flat @ waves + phases) @ heights

        return warped
    first = rng.normal(size=(width, 64)) * size / np.sqrt(width)
    second, last = rng.normal(size=(64, 64)) * size / 8, rng.normal(size=(64, 20)) / 8
    biases = 0.3 * rng.normal(size=(2, 64))

    def through_network(u: np.ndarray) -> np.ndarray:
        hidden = np.tanh((2 * encoded(u, kinds) - 1) @ first + biases[0])
        return np.tanh(hidden @ second + biases[1]) @ last

    return through_network


def folded(free: np.ndarray, kind: str) -> np.ndarray:
    """Return a free walk on a circle, or between two walls that reflect it."""
    if kind == RING:
        return free % 1
    return 1 - np.abs(1 - free % 2)


def wandering(
    kinds: Kinds, steps: np.ndarray, n_steps: int, rng: np.random.Generator
) -> np.ndarray:
    """Return places of latents that diffuse independently, (n_steps, n_latents)."""
    free = rng.random(len(kinds)) + np.cumsum(
        steps * rng.normal(size=(n_steps, len(kinds))), axis=0
    )
    return np.column_stack([folded(t, kind) for t, kind in zip(free.T, kinds, strict=True)])


def speeds_of(kinds: Kinds) -> np.ndarray:
    """Return the speed of each latent, relative to the first."""
    return 1 + 0.5 * np.arange(len(kinds))


def truth_of(u: np.ndarray, kinds: Kinds) -> list[np.ndarray]:
    """Return the true factors."""
    return [
        ring(2 * np.pi * t) if k == RING else t[:, None] for k, t in zip(kinds, u.T, strict=True)
    ]


# Fits: each returns the fit, the places of the samples that were fitted, and their kinds.

Fitted = tuple[ManifoldFactorizer, np.ndarray, Kinds]


def _fit(seed: int, X: np.ndarray, **known) -> ManifoldFactorizer:
    # One thread: there is a process for each core already.
    return ManifoldFactorizer(random_state=seed, n_jobs=1).fit(X, **known)


def of_trajectory(
    kinds: Kinds,
    view: View,
    seed: int,
    *,
    n_steps: int = 20_000,
    step: float = 0.02,
    noise: float = 0.0,
    speeds: Sequence[float] | None = None,
    n_fitted: int = 3000,
    plain: bool = False,
) -> Fitted:
    """Fit a trajectory, by its steps or, if `plain`, without regard to time."""
    rng = np.random.default_rng(seed)
    see = random_map(kinds, view, rng)
    speeds = speeds_of(kinds) if speeds is None else np.asarray(speeds)
    u = wandering(kinds, step * speeds, n_steps, rng)
    X = see(u)
    X = X + noise * X.std() * rng.normal(size=X.shape)
    known = {} if plain else {"times": np.arange(n_steps)}
    fit = _fit(seed, X, fit_samples=n_fitted, **known)
    return fit, u[fit.rows_], kinds


def of_bursts(kinds: Kinds, view: View, seed: int, *, n_repeats: int) -> Fitted:
    """Fit even samples by bursts of moves around each of them."""
    rng = np.random.default_rng(seed)
    see, u = random_map(kinds, view, rng), rng.random((3000, len(kinds)))
    free = u[:, None] + 0.02 * speeds_of(kinds) * rng.normal(size=(3000, n_repeats, len(kinds)))
    columns = zip(np.moveaxis(free, 2, 0), kinds, strict=True)
    v = np.stack([folded(t, kind) for t, kind in columns], axis=2)
    Y = see(v.reshape(-1, len(kinds))).reshape(3000, n_repeats, -1)
    return _fit(seed, see(u), bursts=Y), u, kinds


def of_jacobians(kinds: Kinds, view: View, seed: int) -> Fitted:
    """Fit even samples by the derivatives of the map."""
    rng = np.random.default_rng(seed)
    see, u, h = random_map(kinds, view, rng), rng.random((3000, len(kinds))), 1e-4
    sides = [(see(u + h * e) - see(u - h * e)) / (2 * h) for e in np.eye(len(kinds))]
    return _fit(seed, see(u), metric=np.stack(sides, axis=2) * speeds_of(kinds)), u, kinds


def filmed(u: np.ndarray, kinds: Kinds, rng: np.random.Generator) -> np.ndarray:
    """Return frames of 16 x 24 pixels, (n, 384), of two balls whose ways cross."""
    row, column = np.mgrid[:16, :24]
    dark = np.ones((len(u), 16, 24), dtype=np.float32)
    for k, (t, kind) in enumerate(zip(u.T, kinds, strict=True)):
        if kind == RING:
            at = 5 * ring(2 * np.pi * t) + [7.5, (7.5, 15.5)[k]]
        else:
            at = np.column_stack([(5 + 0 * t, 13 - 10 * t)[k], 3 + 17 * t])
        squares = (row - at[:, 0, None, None]) ** 2 + (column - at[:, 1, None, None]) ** 2
        # The second one is larger and darker, and is hidden by the first.
        dark *= 1 - (1, 0.8)[k] * np.exp(-squares / (2 * (1.7, 2.2)[k] ** 2)).astype(np.float32)
    frames = 1 - dark + 0.02 * rng.normal(size=dark.shape)
    return frames.reshape(len(u), -1).astype(np.float32)


def autoencoded(frames: np.ndarray, n_latents: int, seed: int) -> tuple[np.ndarray, Any]:
    """Train an autoencoder of frames; return its latents and its decoder."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    widths = (frames.shape[1], 128, 64, n_latents)

    def network(widths: Sequence[int]) -> nn.Sequential:
        layers = [nn.Linear(*each) for each in pairwise(widths)]
        return nn.Sequential(*[each for layer in layers for each in (layer, nn.Tanh())][:-1])

    encoder, decoder = network(widths), network(widths[::-1])
    X = torch.from_numpy(frames - frames.mean(axis=0))
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])
    n_epochs, size = 30, 200
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 3e-3, total_steps=n_epochs * -(-len(X) // size)
    )
    for _ in range(n_epochs):
        for rows in torch.randperm(len(X)).split(size):
            loss = ((decoder(encoder(X[rows])) - X[rows]) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    with torch.no_grad():
        return encoder(X).double().numpy(), decoder.double()


def of_film(kinds: Kinds, n_latents: int, seed: int, *, how: str, n_fitted: int = 3000) -> Fitted:
    """Fit latents of an autoencoder of a film: by their steps, plainly, or by the decoder."""
    rng = np.random.default_rng(seed)
    u = wandering(kinds, 0.02 * speeds_of(kinds), 20_000, rng)
    z, decoder = autoencoded(filmed(u, kinds, rng), n_latents, seed)
    if how == "times":
        fit = _fit(seed, z, times=np.arange(len(z)), fit_samples=n_fitted)
        return fit, u[fit.rows_], kinds
    some = rng.choice(len(z), n_fitted, replace=False)
    if how == "plain":
        return _fit(seed, z[some]), u[some], kinds
    # Moves of the latents that change frames by as much in all directions.
    change = jacobian(decoder, z[some])
    squares = change.transpose(0, 2, 1) @ change
    squares += 0.01 * np.median(np.trace(squares, axis1=1, axis2=2)) * np.eye(n_latents)
    return _fit(seed, z[some], metric=np.linalg.inv(squares)), u[some], kinds


def of_wells(n_wells: int, view: View, seed: int, *, pull: float = 0.0) -> Fitted:
    """Fit Langevin motion in two or three wells along each latent; `pull` couples the latents."""
    rng = np.random.default_rng(seed)
    # A step is made of four.
    size = np.array([0.3, 0.39]) / 2
    kicks = size * rng.normal(size=(20_000, 4, 2))
    at, u = rng.normal(size=2), np.empty((20_000, 2))
    for t, four in enumerate(kicks):
        for kick in four:
            if n_wells == 2:
                force = -2.4 * at * (at**2 - 1)
            else:
                outside = np.maximum(np.abs(at) - 1.2, 0) * np.sign(at)
                force = -3.0 * np.sin(2 * np.pi * at / 1.1) - 20 * outside
            at = at + size**2 / 2 * (force - pull * at[::-1]) + kick
        u[t] = at
    kinds: Kinds = (LINE, LINE)
    X = random_map(kinds, view, rng)(u / 3 + 0.5)
    fit = _fit(seed, X[:-1], pairs=X[1:])
    return fit, u[fit.rows_], kinds


def of_control(name: str, seed: int, *, step: float = 0.02) -> Fitted:
    """Fit latents that depend on each other, or a single one, seen through a warp."""
    rng = np.random.default_rng(seed)
    noise, at, u = rng.normal(size=(20_000, 2)) * step, rng.random(2) / 2, np.empty((20_000, 2))
    kinds: Kinds = (RING, RING) if "circles" in name else (LINE, LINE)
    if name.startswith("same noise"):
        noise[:, 1] = 0.5 * noise[:, 0] + np.sqrt(0.75) * noise[:, 1]
    for t, move in enumerate(noise):
        if name == "speed":
            move[1] *= 0.4 + 1.6 * at[0]
        elif name == "drift":
            move[1] += 25 * step**2 * (at[0] - at[1])
        moved = (at + move) % 1 if kinds[0] == RING else 1 - np.abs(1 - np.abs(at + move))
        if name != "triangle" or moved.sum() < 1:
            at = moved
        u[t] = at
    if name == "one latent":
        u, kinds = u[:, :1], (LINE,)
    see = random_map(kinds, ("warp", 0.3), rng)
    return _fit(seed, see(u), times=np.arange(len(u))), u, kinds


GROUPS: dict[str, list[Callable[[int], Fitted]]] = {
    "pairs": [partial(of_trajectory, *case) for case in PAIRS],
    "pairs, plain fit": [partial(of_trajectory, *case, plain=True) for case in PAIRS],
    "three intervals": [partial(of_trajectory, *case, n_fitted=10_000) for case in THREE],
    "bursts": [partial(of_bursts, *case, n_repeats=r) for r, case in product((5, 20), FOUR)],
    "Jacobians": [partial(of_jacobians, *case) for case in [*FOUR, PAIRS[3], PAIRS[9]]],
    "noise 1 %": [partial(of_trajectory, *case, noise=0.01) for case in FOUR],
    "noise 5 %": [partial(of_trajectory, *case, noise=0.05) for case in FOUR],
    "shear": [partial(of_trajectory, (LINE, LINE), ("shear", size)) for size in (0.5, 1.5)],
    "step .01": [partial(of_trajectory, *case, step=0.01) for case in FOUR],
    "step .01, four times as long": [
        partial(of_trajectory, *case, step=0.01, n_steps=80_000) for case in FOUR
    ],
    "speeds 1:3": [
        partial(of_trajectory, *case, step=0.01, n_steps=80_000, speeds=speeds)
        for case, speeds in product(FOUR[:2], ((1, 3), (3, 1)))
    ],
    "speeds 1:10": [
        partial(of_trajectory, *case, step=0.005, n_steps=320_000, speeds=speeds)
        for case, speeds in product(FOUR[:2], ((1, 10), (10, 1)))
    ],
    "step .05": [partial(of_trajectory, *case, step=0.05) for case in FOUR],
    "steps .10 and .15": [
        partial(of_trajectory, *case, step=step) for step, case in product((0.1, 0.15), FOUR)
    ],
    "autoencoder": [partial(of_film, *case, how="times") for case in FILMS],
    "autoencoder, 6,000 fitted": [
        partial(of_film, *case, how="times", n_fitted=6000) for case in FILMS
    ],
    "autoencoder, plain fit": [partial(of_film, *case, how="plain") for case in FILMS],
    "autoencoder, its decoder": [partial(of_film, *case, how="decoder") for case in FILMS],
    "double and triple wells": [
        partial(of_wells, n_wells, view) for n_wells, view in product((2, 3), WELL_VIEWS)
    ],
    "controls": [partial(of_control, name) for name in CONTROLS],
    "controls, steps .05": [partial(of_control, name, step=0.05) for name in CONTROLS],
    "controls, steps .12": [
        *(partial(of_control, name, step=0.12) for name in CONTROLS),
        *(partial(of_wells, 2, WELL_VIEWS[0], pull=pull) for pull in (0.3, 1.0)),
    ],
}


def record(group: str, case: int, seed: int) -> dict:
    """Return the record of one fit."""
    start = time.perf_counter()
    with warnings.catch_warnings(action="ignore"):
        fit, u, kinds = GROUPS[group][case](seed)
    seconds = round(time.perf_counter() - start, 1)
    evidence, truth = fit.evidence_, truth_of(u, kinds)
    rows = slice(None) if fit.rows_ is None or len(u) == len(fit.rows_) else fit.rows_
    truth = [each[rows] for each in truth]
    found = score([factor.embedding for factor in fit.factors_], truth)
    return {
        "group": group,
        "case": case,
        "seed": seed,
        "verdict": fit.verdict_,
        "answer": evidence.answer,
        "factors": [factor.topology for factor in fit.factors_],
        "solved": found.solved if len(truth) > 1 else len(fit.factors_) == 1,
        "own": round(found.worst, 4),
        "leak": round(found.leak, 4),
        "choices": {
            name: fit.choices_[name].value
            for name in ("dynamics", "lag", "directions")
            if name in fit.choices_
        },
        "failed": [test.name for test in evidence.failed],
        "tests": {test.name: [round(test.value, 4), round(test.net, 4)] for test in evidence.tests},
        "seconds": seconds,
    }


def run(
    todo: Sequence[dict], *, known: Collection[int] = (), workers: Workers = Processes()
) -> Iterator[dict]:
    """Yield the record of each job, as they are done."""
    left = [job for number, job in enumerate(todo) if number not in known]
    drawn = [(job["group"], job["case"], job["seed"]) for job in left]
    return results_as_done(workers, record, drawn)


def render(records: Sequence[dict]) -> str:
    """Return the table in Markdown."""
    lines = [
        "| group | fits | solved | product / separable / partial / one factor / none | "
        '"product" that is solved | median time |',
        "|---|---|---|---|---|---|",
    ]
    for group in GROUPS:
        own = [one for one in records if one["group"] == group]
        if own:
            products = with_verdict(own, "product")
            right = f"{count(products, 'solved')} of {len(products)}"
            seconds = f"{np.median([one['seconds'] for one in own]):.0f} s"
            cells = (group, len(own), count(own, "solved"), verdict_counts(own), right, seconds)
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> None:
    """Fit samples whose moves are known, and count how many come out right."""
    grammar = parser(__doc__.partition("\n")[0])
    groups = list(GROUPS)
    grammar.add_argument("--groups", nargs="+", choices=groups, default=groups, metavar="NAME")
    grammar.add_argument("--seeds", type=int, nargs=2, default=(100, 110), metavar=("FROM", "TO"))
    options = grammar.parse_args(argv)
    seeds = range(*options.seeds)[: 1 if options.quick else None]
    todo = [
        {"group": group, "case": case, "seed": seed}
        for group in options.groups
        for seed in seeds
        for case in range(len(GROUPS[group]))[: 1 if options.quick else None]
    ]
    files = new_files(options, "dynamics", ".jsonl", ".md")
    study = partial(run, todo)
    report(files, todo, study, render, overwrite=options.overwrite)


if __name__ == "__main__":
    sys.exit(exit_code(main))
