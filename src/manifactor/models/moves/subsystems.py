"""Independent subsystems of columns in time: linear functions that depend on no others.

Only different times are compared, since noise is independent there. With noise of a tenth of the
deviation of ten random mixtures, functions of variance 1 gave 6 subsystems of 10, and comparing the
same times 1; functions of lagged covariance 1, compared at different times, gave 10.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.sparse.csgraph import connected_components

from manifactor._support.threads import row_slices
from manifactor._support.values import quotient
from manifactor.models.moves.paths import Trajectory
from manifactor.models.sums.independence import diagonalizing_rotation
from manifactor.statistics import inverse_root, random_rows, random_shifts, whiten


@dataclass(frozen=True)
class Subsystems:
    """Independent subsystems of columns in time, the slowest first; `str` says them in words.

    Attributes
    ----------
    number : int
        How many there are.
    members : tuple of ndarray of int
        For each subsystem, the columns of whose variance it makes 5 % or more.
    shares : ndarray of shape (n_columns, number)
        Share of the variance of each column that each subsystem makes. The rest is noise.
    time_scales : tuple of ndarray
        For each subsystem, the times in which correlations of its functions fall by a factor e,
        slowest first.
    functions : tuple of ndarray of shape (n_samples, n_functions)
        For each subsystem, linear functions of the columns that show it, one for each time scale.
    lag, columns : float, tuple of str
        Time over which samples were compared, and names of the columns.
    """

    number: int
    members: tuple[np.ndarray, ...]
    shares: np.ndarray
    time_scales: tuple[np.ndarray, ...]
    functions: tuple[np.ndarray, ...]
    lag: float
    columns: tuple[str, ...]

    def __str__(self) -> str:
        words = f"{self.number or 'no'} independent subsystem{'s' * (self.number != 1)}"
        lines = [f"{len(self.columns)} columns show {words} (lag {self.lag:.6g})."]
        for number, (own, times) in enumerate(zip(self.members, self.time_scales, strict=True), 1):
            within = ", ".join(f"{time:.3g}" for time in times)
            named = ", ".join(self.columns[column] for column in own) or "none"
            lines.append(f"Subsystem {number}: columns {named}; time scales {within}.")
        return "\n".join(lines)

    __repr__ = __str__


def find_subsystems(path: Trajectory, lag: int, names: tuple[str, ...]) -> Subsystems:
    """Return the subsystems of a trajectory, samples in the order in which they were given."""
    unit = path.time
    columns = quotient(path.samples - path.samples.mean(axis=0), path.samples.std(axis=0))
    starts = {steps: path.starts(steps * lag) for steps in (1, 2, 3)}
    functions, memory = _linear_functions(columns, starts[1], lag)
    if not memory.size:
        return Subsystems(0, (), np.empty((len(names), 0)), (), (), lag * unit, names)
    functions = functions @ _independent_directions(functions, starts[2], lag, memory)
    number, label = connected_components(_linked(functions, starts[3], lag), directed=False)
    one, two = (_lagged(functions, starts[steps], steps * lag) for steps in (1, 2))
    parts = []
    for block in (np.flatnonzero(label == k) for k in range(number)):
        kept, axes = scipy.linalg.eigh(two[np.ix_(block, block)], one[np.ix_(block, block)])
        kept, values = kept[::-1], functions[:, block] @ axes[:, ::-1]
        loadings = columns[starts[1]].T @ values[starts[1] + lag] / len(starts[1])
        # What a function kept over the second lag, it kept over the first; noise keeps less.
        over_first = np.clip(kept, 1 / (values**2).mean(axis=0), 1.0)
        times = [_time_scale(*each, path, lag) * unit for each in zip(values.T, kept, strict=True)]
        share = (loadings**2 / over_first).sum(axis=1)
        parts.append((np.array(times), share, values[np.argsort(path.row)]))
    # The slowest first.
    scales, shares_of, ordered = zip(*sorted(parts, key=lambda part: -part[0][0]), strict=True)
    shares = np.column_stack(shares_of)
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1.0)
    members = tuple(np.flatnonzero(share >= 0.05) for share in shares.T)
    return Subsystems(number, members, shares, scales, ordered, lag * unit, names)


def _time_scale(values: np.ndarray, kept: float, path: Trajectory, lag: int) -> float:
    """Return the time in which correlations of a function, (n,), fall by a factor e, in steps."""
    # Over a fifth of that time, if recordings are long: noise counts less then than over one lag.
    longest, ends = -0.2 * lag / np.log(np.clip(kept, 1e-16, 1 - 1e-16)), path.starts(lag)
    long = max(2 * lag, lag + round(min(longest, len(values))))
    while long > 2 * lag and len(path.starts(long)) < 0.8 * len(ends):
        long = max(2 * lag, long // 2)
    one, other = (_lagged(values[:, None], path.starts(k), k)[0, 0] for k in (lag, long))
    # What errors make negative is gone, and what they make grow lasts.
    return (lag - long) / np.log(np.clip(other / one, 1e-16, 1 - 1e-16))


def _lagged(values: np.ndarray, starts: np.ndarray, lag: int) -> np.ndarray:
    """Return the covariance over a lag, the same in both directions of time, (p, p)."""
    product = values[starts].T @ values[starts + lag] / len(starts)
    return (product + product.T) / 2


def _linear_functions(
    columns: np.ndarray, starts: np.ndarray, lag: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return functions with lagged covariance 1, (n, d), and what part of variance they keep."""
    white = inverse_root(columns.T @ columns / len(columns), 1e-10)
    memory, modes = np.linalg.eigh(white.T @ _lagged(columns, starts, lag) @ white)
    # The largest of p columns of noise in n steps is sqrt(2 p / n).
    kept = memory > max(0.03, 1.5 * np.sqrt(2 * len(memory) / len(starts)))
    # Cumulants of more functions take minutes and gigabytes.
    if kept.sum() > 50:
        raise ValueError(
            f"at most 50 functions of the columns may remember the lag; got {kept.sum()}. "
            "Pass fewer columns, or a longer `lag`, which fast ones forget."
        )
    return columns @ (white @ modes[:, kept] / np.sqrt(memory[kept])), memory[kept]


def _independent_directions(
    functions: np.ndarray, starts: np.ndarray, lag: int, memory: np.ndarray
) -> np.ndarray:
    """Return the rotation in which functions are least dependent, (d, d)."""
    some = functions[random_rows(len(functions), 100_000)]
    n, d = some.shape
    i, j = np.triu_indices(d)
    fourth = np.zeros((len(i), len(i)))
    for rows in row_slices(n, max(1, 2**24 // len(i))):
        products = some[rows][:, i] * some[rows][:, j]
        fourth += products.T @ products / n
    square = np.empty((d, d), dtype=int)
    square[i, j] = square[j, i] = np.arange(len(i))
    covariance = some.T @ some / n
    crossed = covariance[i][:, :, None] * covariance[j][:, None]
    gaussian = covariance[i, j][:, None, None] * covariance + crossed + crossed.transpose(0, 2, 1)
    # Cumulants of noisy functions are less accurate, and count less. Different rates tell as much
    # as the cumulants, of which d do.
    weight = np.where(i == j, 1.0, np.sqrt(2)) * np.sqrt(memory[i] * memory[j])
    cumulants = weight[:, None, None] * (fourth[:, square] - gaussian)
    rates = d * _lagged(functions, starts, 2 * lag)[None]
    return diagonalizing_rotation(np.concatenate([cumulants, rates]))


def _linked(functions: np.ndarray, starts: np.ndarray, lag: int) -> np.ndarray:
    """Return which functions depend on each other beyond what shifts in time leave, (d, d)."""
    starts = starts[random_rows(len(starts), 100_000)]
    m = len(starts)
    # Squares of a switch without noise are constant but for errors of its function, alike in two of
    # them: about 1 / sqrt(k) after k correlation times. Features count from variances of 300 / k.
    forgotten = np.clip(1 - np.diag(_lagged(functions, starts, 2 * lag)), 1 / m, 1.0)
    floor = np.minimum(300.0 / forgotten, 0.3 * m)
    first = _features(functions[starts], functions[starts + 2 * lag], floor)
    second = _features(functions[starts + lag], functions[starts + 3 * lag], floor)
    shifted = (np.roll(second, shift, axis=0) for shift in random_shifts(m, 20))
    by_chance = np.max([_dependence(first, each) for each in shifted], axis=0)
    return _dependence(first, second) > np.maximum(0.01, 3.0 * by_chance)


def _features(before: np.ndarray, after: np.ndarray, floor: np.ndarray) -> np.ndarray:
    """Return orthogonal features of each function, of length 1, or less if small, (m, d, 5)."""

    def features(one: np.ndarray, other: np.ndarray, least: float) -> np.ndarray:
        one, other = one / one.std(), other / one.std()
        values = np.column_stack([one, other, one**2, one * other, (other - one) ** 2])
        white, strength = whiten(values)
        return white * (strength / np.sqrt(len(white) * (strength**2 + least)))

    return np.stack(list(map(features, before.T, after.T, floor)), axis=1)


def _dependence(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the largest squared correlation of features of each two functions, (d, d)."""
    m, d, r = first.shape
    products = first.reshape(m, -1).T @ second.reshape(m, -1)
    blocks = products.reshape(d, r, d, r).transpose(0, 2, 1, 3)
    squares = np.linalg.norm(blocks, 2, axis=(2, 3)) ** 2
    return np.maximum(squares, squares.T)
