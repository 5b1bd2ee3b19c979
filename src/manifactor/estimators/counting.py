"""How many independent subsystems there are in columns in time."""

from typing import Any

from manifactor._support.errors import warn_caller
from manifactor._support.parameters import require_number
from manifactor.estimators.moving import read_path
from manifactor.judging.evidence import SampleWarning
from manifactor.models.moves.paths import Trajectory
from manifactor.models.moves.subsystems import Subsystems, find_subsystems

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
