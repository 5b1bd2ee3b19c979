"""Results as digests: words, numbers and prose that are small enough to be stored."""

import hashlib
import json

import numpy as np

KINDS = ("words", "numbers", "prose")
# Smaller norms are those of rounding errors, which are compared with this one.
LEAST_NORM = 1e-6


class Prose(str):
    """Text for people: its wording may change while the results stay the same."""


def digest(result: dict) -> dict[str, dict]:
    """Return the leaves of a nested result by kind and name."""
    found: dict[str, dict] = {kind: {} for kind in KINDS}
    for kind, name, value in _leaves("", result):
        found[kind][name] = value
    return json.loads(json.dumps(found))  # as it will be read


def _leaves(name, value):
    """Yield kind, name and stored form of everything inside a value."""
    value = value.item() if isinstance(value, np.generic) else value
    if _holds(value, dict):  # records become columns
        value = {key: [record.get(key) for record in value] for key in value[0]}
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(f"{name}.{key}" if name else str(key), inner)
    elif isinstance(value, Prose) or _holds(value, Prose):
        text = value if isinstance(value, Prose) else "; ".join(filter(None, value))
        yield "prose", name, " ".join(text.split())
    elif isinstance(value, float) and np.isfinite(value):
        yield "numbers", name, ["float", "", float(value)]
    elif isinstance(value, np.ndarray):
        yield "numbers", name, _summary(value)
    elif _holds(value, float | np.floating):
        yield "numbers", name, _summary(np.array(value, dtype=float))
    else:
        yield "words", name, value if _is_json(value) else str(value)


def _is_json(value) -> bool:
    """Return whether a value is the same after it was written and read; nan is not."""
    return value is None or isinstance(value, str | int | list | tuple)


def _holds(value, kind) -> bool:
    """Return whether a list, or one inside it, has entries of a kind."""
    if not isinstance(value, list | tuple):
        return False
    return any(isinstance(inner, kind) or _holds(inner, kind) for inner in value)


def _summary(array: np.ndarray) -> list:
    """Return type, fingerprint and six numbers that stand for an array.

    The fingerprint is equal only for arrays that are the same to the last bit. The
    numbers are the norm, projections on three vectors of random signs, the least and
    the largest value.
    """
    values = array.astype(np.float64).ravel() + 0.0  # there is no minus zero
    known = values[np.isfinite(values)]
    kind = f"{array.dtype} {'x'.join(map(str, array.shape))}"
    if len(known) < len(values):
        kind += f" ({len(values) - len(known)} missing)"
    signs = [np.random.default_rng(k).choice([-1, 1], len(known)) for k in range(3)]
    ends = [known.min(), known.max()] if len(known) else []
    # Sums of numpy, not of BLAS, whose order depends on threads and addresses.
    sums = [(known * sign).sum() for sign in signs]
    numbers = [np.sqrt((known**2).sum()), *sums, *ends]
    bits = hashlib.sha256(values.tobytes()).hexdigest()[:10]
    return [kind, bits, *(float(f"{number:.12g}") for number in numbers)]


def difference(old: list, new: list) -> float:
    """Return how far numbers differ, relative to the norm of the first ones."""
    if old[0] != new[0]:
        return np.inf
    one, other = np.array(old[2:]), np.array(new[2:])
    return float(np.abs(one - other).max() / max(abs(one[0]), LEAST_NORM))
