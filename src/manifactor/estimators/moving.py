"""Moves of the samples as a caller gives them, checked; subsystems that they show; decoders."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from manifactor._support.errors import extra, warn_caller
from manifactor._support.parameters import require_number
from manifactor._support.threads import row_slices
from manifactor.estimators.arrays import OUTSIDE_MEMORY, kind_of, numbers
from manifactor.judging.evidence import SampleWarning
from manifactor.models.moves.paths import (
    Bursts,
    GivenMetric,
    Moves,
    NoDiffusionWarning,
    Pairs,
    Trajectory,
)
from manifactor.models.moves.subsystems import Subsystems, find_subsystems
from manifactor.operators.engines.gpu import from_tensor, is_tensor

# Fewer moves tell no local covariance.
FEWEST_MOVES = 50
# A time step that is so many times as long as the usual one is a break.
LONGEST_STEP = 1.5
# Correlation times from which on time averages are those of a product: with 40, the operator found
# none of a product's factors; with 200, all of them.
WELL_MIXED = 200

# Parameters of the estimator that moves leave no choice of, and their values.
REQUIRED = {
    "method": ("gradients",),
    "sense": ("auto",),
    "neighbors": ("auto",),
    "transformation": ("auto", "none"),
    "device": ("cpu",),
}


def read_moves(
    estimator: Any, X: Any, given: dict[str, Any], lag: Any = None
) -> tuple[Any, Moves | None]:
    """Return the samples, and their moves if any are given; several trajectories are joined."""
    names = [name for name, value in given.items() if value is not None and value is not False]
    if lag is not None:
        require_number("lag", lag, low=0)
        if not names or names[0] in ("metric", "bursts"):
            raise ValueError(
                f"`lag` is for `pairs`, `times` and `trajectories`; got {lag!r} without any of "
                "them. Leave it out."
            )
    if not names:
        return X, None
    if len(names) > 1 and names != ["times", "trajectories"]:
        raise ValueError(
            f"moves of the samples must be given in one way; got `{'` and `'.join(names)}`. Leave "
            "out all but one."
        )
    for name, allowed in REQUIRED.items():
        value = getattr(estimator, name)
        if not (isinstance(value, str) and value in allowed):
            raise ValueError(
                f"`{name}` must be {' or '.join(map(repr, allowed))} where `{names[0]}` tells the "
                f"moves of the samples; got {value!r}. Leave it at its default."
            )
    if isinstance(estimator.n_neighbors, str) and estimator.n_neighbors == "all":
        raise ValueError(
            f"`n_neighbors` must be a number or 'auto' with `{names[0]}`; got 'all'. Leave it at "
            "its default."
        )
    if sp.issparse(X) or kind_of(X) in OUTSIDE_MEMORY:
        raise ValueError(
            f"`X` must be samples in memory with `{names[0]}`; got {type(X).__name__}. Load them "
            "first, as in numpy.asarray(X)."
        )
    if names[0] in ("times", "trajectories"):
        path = read_path(X, times=given["times"], trajectories=given["trajectories"])
        # Several arrays are joined, in the order in which they were given.
        X = path.samples[np.argsort(path.row)] if given["trajectories"] is True else X
        return X, _short_or_long(_check(path), lag)
    if names[0] == "pairs":
        return X, _pairs_of(given["pairs"], _samples(X), 1.0 if lag is None else float(lag))
    return X, (_metric if names[0] == "metric" else _bursts)(given[names[0]], _samples(X))


def read_path(X: Any, *, times: Any = None, trajectories: Any = False) -> Trajectory:
    """Return samples in the order of time.

    `trajectories` is True if `X` is a list of them, or has a label for each row. Without times,
    rows of one trajectory are one step apart.
    """
    if trajectories is True:
        samples, piece = _join(X)
    else:
        samples = _samples(X)
        piece = _pieces(trajectories, len(samples))
    if times is None:
        order = np.argsort(piece, kind="stable")
        every = np.arange(len(samples), dtype=float)
        return Trajectory(samples[order], every, piece[order], order)
    return _in_time_order(times, samples, piece)


def _samples(X: Any) -> np.ndarray:
    """Return samples as an array of finite numbers, one a row."""
    samples = numbers(X, "X")
    if samples.ndim != 2:
        raise ValueError(f"`X` must have one sample a row; got an array of shape {samples.shape}.")
    return samples


def _join(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the samples of all trajectories, and the number of the one that each belongs to."""
    if not isinstance(X, list | tuple) and np.ndim(X) != 3:
        raise ValueError(
            "with `trajectories=True`, `X` must be a list of arrays, one for each trajectory; got "
            f"{type(X).__name__}. For one trajectory, pass [X]."
        )
    parts = [numbers(part, f"X[{number}]") for number, part in enumerate(X)]
    for number, part in enumerate(parts):
        if part.ndim != 2 or part.shape[1] != parts[0].shape[-1]:
            raise ValueError(
                "trajectories must have one sample a row and the same columns; got shapes "
                f"{parts[0].shape} in X[0] and {part.shape} in X[{number}]."
            )
    if not parts:
        raise ValueError("`X` must hold one trajectory or more; got an empty list.")
    return np.concatenate(parts), np.repeat(np.arange(len(parts)), [len(part) for part in parts])


def _pieces(labels: Any, n_samples: int) -> np.ndarray:
    """Return the number of the trajectory that each sample belongs to; one for all by default."""
    if labels is False or labels is None:
        return np.zeros(n_samples, dtype=int)
    labels = np.asarray(labels)
    if labels.shape != (n_samples,):
        raise ValueError(
            "`trajectories` must be True, with a list of arrays as `X`, or have one label for each "
            f"of the {n_samples} samples; got shape {labels.shape}."
        )
    present = np.array([label is not None and label == label for label in labels.tolist()], bool)
    _require_rows(present, "`trajectories` must have a label for each sample", "Fill it in.")
    labels = labels.astype(str) if labels.dtype.kind == "O" else labels
    return np.unique(labels, return_inverse=True)[1]


def _in_time_order(times: Any, samples: np.ndarray, piece: np.ndarray) -> Trajectory:
    """Return trajectories in the order of time, broken at long steps."""
    times, second = np.asarray(times), 1.0
    if times.dtype.kind == "M":
        times, second = times.astype("datetime64[ns]").astype(np.int64), 1e-9
    times = numbers(times, "times")
    if times.shape != (len(samples),):
        raise ValueError(
            f"`times` must have one number for each of the {len(samples)} samples; got shape "
            f"{times.shape}."
        )
    order = np.lexsort((times, piece))
    steps, same = np.diff(times[order]), np.diff(piece[order]) == 0
    equal = np.flatnonzero(same & (steps == 0))
    if len(equal):
        first = equal[0]
        raise ValueError(
            f"`times` must differ; rows {order[first]} and {order[first + 1]} have the same, "
            f"{times[order[first]]:g}. Tell several trajectories apart by `trajectories`, with a "
            "label for each row."
        )
    # Of fewer than two samples, which are refused below, there is no step.
    unit = float(np.median(steps[same])) if same.any() else 1.0
    breaks = np.cumsum(~same | (steps > LONGEST_STEP * unit))
    piece = np.concatenate([[0], breaks])[: len(samples)]
    return Trajectory(samples[order], times[order] / unit, piece, order, time=unit * second)


def _check(path: Trajectory) -> Trajectory:
    """Return a trajectory that is long enough and in order; warn of smooth motion."""
    samples = path.samples
    starts = path.starts(1) if len(samples) > 1 else np.empty(0, dtype=int)
    if len(starts) < FEWEST_MOVES:
        raise ValueError(
            f"trajectories must have {FEWEST_MOVES} steps or more, and thousands to show a "
            f"product; got {len(starts)}. Add samples, or check `times`: steps longer than "
            f"{LONGEST_STEP:g} times the usual one are breaks."
        )
    step = np.diff(samples, axis=0)
    square, spread = (step[starts] ** 2).sum(axis=1).mean(), 2 * samples.var(axis=0).sum()
    # 1 where rows were shuffled, .02 for steps of a tenth of an interval.
    if square > 0.8 * spread:
        raise ValueError(
            "rows must be in the order of time, with steps that are short beside the data; a "
            f"sample is as far from the next as from any other ({square / spread:.0%} of the mean "
            "square). Give `times`, or samples that follow each other sooner."
        )
    first, second = step[path.starts(2)], step[path.starts(2) + 1]
    correlation = (first * second).sum() / max((first**2).sum(), np.finfo(float).tiny)
    # 0 for a diffusion.
    if correlation > 0.5:
        warn_caller(
            f"steps must be those of a diffusion, each independent of the one before; they have a "
            f"correlation of {correlation:.2f}, as those of smooth motion. Such a path shows one "
            "direction at a time, not the metric of all factors: give every n-th sample, or fit "
            "without `times` or `trajectories`.",
            NoDiffusionWarning,
        )
    return path


def _short_or_long(path: Trajectory, lag: float | None) -> Trajectory | Pairs:
    """Return a trajectory whose steps tell a metric, or the pairs that tell its operator."""
    if lag == 0:
        return replace(path, why="the caller gave a lag of 0")
    if lag is not None:
        steps = max(1, round(lag / path.time))
        count = len(path.starts(steps))
        if count < FEWEST_MOVES:
            raise ValueError(
                f"`lag` must leave {FEWEST_MOVES} pairs or more; got {lag:g}, {steps} steps, of "
                f"which trajectories have {count}. Lower it."
            )
        return path.pairs(steps, "the caller gave a lag")
    if not path.is_too_long():
        return replace(path, why="steps are shorter than the distance to the 64th neighbour")
    times = path.correlation_times()
    why = f"steps are longer than the distance to the 64th neighbour, and {times:.0f}"
    if times >= WELL_MIXED:
        return path.pairs(1, f"{why} correlation times are enough")
    why += f" correlation times are too few for the operator, which takes {WELL_MIXED}"
    return replace(path, why=why)


def pairs_as_well(moves: Moves | None, lag: float | None, verdict: str) -> Pairs | None:
    """Return the pairs of a trajectory whose metric tells little, if it is mixed well enough."""
    unsure = verdict in ("partial", "none") and lag is None
    if not (unsure and isinstance(moves, Trajectory)):
        return None
    times = moves.correlation_times()
    why = f'the verdict by a metric is "{verdict}", and {times:.0f} correlation times are enough'
    return moves.pairs(1, why) if times >= WELL_MIXED else None


def _pairs_of(after: Any, samples: np.ndarray, lag: float) -> Pairs:
    """Return samples and what followed each of them."""
    if lag == 0:
        raise ValueError("`lag` must be positive with `pairs`, the time between them; got 0.")
    later = numbers(after, "pairs")
    if later.shape != samples.shape:
        raise ValueError(
            f"`pairs` must have the shape of `X`, {samples.shape}, with what followed each sample; "
            f"got {later.shape}. Leave out samples that nothing followed, as in "
            "fit(X[:-1], pairs=X[1:])."
        )
    if len(samples) < FEWEST_MOVES:
        raise ValueError(
            f"`pairs` must be {FEWEST_MOVES} or more, and thousands to show a product; got "
            f"{len(samples)}. Add samples."
        )
    if not (later != samples).any():
        raise ValueError("`pairs` must differ from `X`: nothing moved.")
    return Pairs(samples, later, lag, float(len(samples)), "the caller gave pairs")


def _metric(metric: Any, samples: np.ndarray) -> GivenMetric:
    """Return covariances of moves, or Jacobians."""
    matrices = numbers(metric, "metric")
    n, p = samples.shape
    if matrices.ndim != 3 or matrices.shape[:2] != (n, p) or not 1 <= matrices.shape[2] <= p:
        raise ValueError(
            f"`metric` must have shape {(n, p, p)}, a covariance of moves for each sample, or "
            f"({n}, {p}, d), its Jacobian along d latents; got {matrices.shape}."
        )
    are_roots = matrices.shape[2] < p
    size = np.abs(matrices).max(axis=(1, 2))
    _require_rows(size > 0, "`metric` must not be 0", "Leave such samples out.")
    if not are_roots:
        off = np.abs(matrices - matrices.transpose(0, 2, 1)).max(axis=(1, 2))
        _require_rows(
            off <= 1e-6 * size,
            "covariances in `metric` must be symmetric",
            "Covariances of Jacobians J are J @ J.transpose(0, 2, 1).",
        )
        _require_rows(
            np.linalg.eigvalsh(matrices)[:, 0] >= -1e-6 * size,
            "covariances in `metric` must not be negative",
            "Add samples to each covariance, or set negative eigenvalues to 0.",
        )
    return GivenMetric(matrices, are_roots)


def _bursts(bursts: Any, samples: np.ndarray) -> Bursts:
    """Return samples with those that are a short move away from each."""
    repeats = numbers(bursts, "bursts")
    n, p = samples.shape
    if repeats.ndim != 3 or repeats.shape[0] != n or repeats.shape[2] != p or not repeats.shape[1]:
        raise ValueError(
            f"`bursts` must have shape ({n}, r, {p}), with r samples a short move away from each; "
            f"got {repeats.shape}."
        )
    if n * repeats.shape[1] < FEWEST_MOVES:
        raise ValueError(
            f"`bursts` must have {FEWEST_MOVES} moves or more in all; got {n * repeats.shape[1]}. "
            "Add samples or repeats."
        )
    if not (repeats != samples[:, None]).any():
        raise ValueError("`bursts` must move the samples; all repeats equal their samples.")
    return Bursts(samples, repeats)


def _require_rows(right: np.ndarray, what: str, remedy: str) -> None:
    if not right.all():
        count, first = int((~right).sum()), int(np.argmin(right))
        more = f" and {count - 1} more" if count > 1 else ""
        raise ValueError(f"{what}; that of row {first} is wrong{more}. {remedy}")


# Steps in all and for each column, and correlation times of the slowest subsystem.
FEWEST_STEPS, FEWEST_OF_COLUMN, FEWEST_TIMES = 200, 10, 20


def count_subsystems(
    X: Any, times: Any = None, trajectories: Any = False, *, lag: float | None = None
) -> Subsystems:
    """Count the independent subsystems that columns in time are linear mixtures of.

    Noise that forgets itself within the lag is not counted. If columns are not linear in the
    subsystems, use ``ManifoldFactorizer().fit(X, times=t)``.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_columns), or list of such
        One sample a row; a list of recordings with ``trajectories=True``.
    times : array-like of shape (n_samples,), default=None
        Time of each sample, numbers or dates. By default, rows are one step apart.
    trajectories : bool or array-like of shape (n_samples,), default=False
        True if `X` is a list of recordings, or the label of the one that each row belongs to.
    lag : float, default=None
        Time over which samples are compared: longer than what noise remembers, shorter than the
        time scales of the subsystems. The usual step by default.

    Returns
    -------
    Subsystems
        Their number, columns and time scales, in seconds if times are dates.
    """
    path = read_path(X, times=times, trajectories=trajectories)
    names = getattr(X[0] if trajectories is True else X, "columns", range(path.samples.shape[1]))
    subsystems = find_subsystems(path, _steps(path, lag), tuple(map(str, names)))
    longest = max((float(scales[0]) for scales in subsystems.time_scales), default=0.0)
    lasts = path.duration * path.time
    if longest * FEWEST_TIMES > lasts:
        warn_caller(
            f"recordings must be {FEWEST_TIMES} times as long as the longest time scale, "
            f"{longest:.3g}; got {lasts:.3g}. Record for longer, or remove trends.",
            SampleWarning,
        )
    return subsystems


def _steps(path: Trajectory, lag: float | None) -> int:
    """Return the lag in steps; refuse recordings that are too short for it."""
    if lag is not None:
        require_number("lag", lag, low=0.5 * path.time)
    steps = 1 if lag is None else max(1, round(lag / path.time))
    n_samples, n_columns = path.samples.shape
    count = len(path.starts(3 * steps)) if n_samples > 3 * steps else 0
    if count < max(FEWEST_STEPS, FEWEST_OF_COLUMN * n_columns):
        raise ValueError(
            f"recordings must have {FEWEST_STEPS} samples or more, and {FEWEST_OF_COLUMN} for each "
            f"of the {n_columns} columns, with another one three lags later; got {count}. Add "
            "samples, pass fewer columns (principal components), or a shorter `lag`."
        )
    return steps


def jacobian(decoder: Callable[[Any], Any], z: Any) -> np.ndarray:
    """Return the derivatives of a decoder at latents, for ``fit(decoder(z), metric=J)``.

    Parameters
    ----------
    decoder : callable
        From latents (n, d) to samples, (n, p) or images (n, ...), each row by itself. A module of
        torch, or a function of tensors if `z` is one, is differentiated exactly; a function of
        arrays by central differences.
    z : array-like or tensor of shape (n, d)
        Latents. For a module, an array is moved to its device and precision.

    Returns
    -------
    ndarray of shape (n, p, d)
        Images are flattened. Where p = d, pass ``metric=J @ J.transpose(0, 2, 1)``.
    """
    latents = numbers(z, "z")
    if latents.ndim != 2 or not latents.size:
        raise ValueError(f"`z` must have one latent a row, (n, d); got shape {latents.shape}.")
    modules = list(decoder.modules()) if hasattr(decoder, "modules") else []
    kinds = [type(module).__name__ for module in modules if module.training]
    if any("BatchNorm" in kind or "Dropout" in kind for kind in kinds):
        raise ValueError(
            "`decoder` must decode each row by itself, without chance; it is in training. Call "
            "decoder.eval() first."
        )
    z = z if is_tensor(z) else extra("torch").as_tensor(latents) if modules else latents
    if modules:
        z = z.to(next(decoder.parameters(), z))  # type: ignore[attr-defined]
    derivatives = _by_torch if is_tensor(z) else _by_differences
    return np.concatenate([derivatives(decoder, z[rows]) for rows in row_slices(len(z), 1000)])


def _by_torch(decoder: Callable[[Any], Any], latents: Any) -> np.ndarray:
    """Return derivatives along one latent after the other."""
    torch = extra("torch")
    columns = []
    for along in torch.eye(latents.shape[1], dtype=latents.dtype, device=latents.device):
        # Not `torch.func.jvp`, which takes ten seconds when it is first called.
        tangent = along.expand_as(latents)
        column = torch.autograd.functional.jvp(decoder, latents.detach(), tangent)[1]
        columns.append(from_tensor(column).reshape(len(latents), -1))
    return np.stack(columns, axis=2)


def _by_differences(decoder: Callable[[Any], Any], latents: np.ndarray) -> np.ndarray:
    """Return central differences of a function of arrays."""
    count = len(latents)
    # Rounding is divided by the step, and the third derivative multiplied by its square.
    step = np.finfo(np.result_type(decoder(latents), np.float32)).eps ** (1 / 3)
    columns = []
    for along in np.eye(latents.shape[1]):
        after, before = (latents + sign * step * along for sign in (1, -1))
        rise = np.asarray(decoder(after)) - np.asarray(decoder(before))
        columns.append(rise.reshape(count, -1) / ((after - before) @ along)[:, None])
    return np.stack(columns, axis=2)
