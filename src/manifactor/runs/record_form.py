"""The form of run.json: which entries it has, and of which types."""

from collections.abc import Mapping
from numbers import Real

REQUIRED = ("version", "n_samples", "verdict", "factors")
# Entries of run.json and their types; others than those above may be missing.
ENTRIES = {
    "input": str,
    "command": str,
    "particles": str,
    "fingerprint": str,
    "reproduce": str,
    "input_changed": str,
    "n_samples": int,
    "verdict": str,
    "n_fitted": int,
    "parts": int,
    "images": dict,
    "particle_choice": dict,
    "arguments": dict,
    "components": dict,
    "columns": dict,
    "neighbors": dict,
    "choices": dict,
    "seconds": dict,
    "versions": dict,
    "factors": list,
    "tests": list,
    "confounders": list,
    "leakage": list,
    "all_views": dict,
}
# No table has more rows or columns.
MOST = 2**53
# What each item of a list has.
ITEMS: dict[str, dict[str, type]] = {
    "factors": {"topology": str},
    "tests": {"name": str, "passed": bool, "meaning": str},
    "confounders": {"name": str, "factor": int, "r2": Real, "p": Real, "meaning": str},
}
# What each motion of a run of all views has, beside an axis.
MOTION: dict[str, type] = {
    "topology": str,
    "shown": Real,
    "blind": Real,
    "blind_particles": Real,
    "median_deviation": Real,
}


def misshapen(record: dict) -> str:
    """Return which entry is not of its type, "" for none."""
    for name, kind in ENTRIES.items():
        if name in record and not isinstance(record[name], kind):
            found = type(record[name]).__name__
            return f"{name} is {found}, not {kind.__name__}"
    for name, kinds in ITEMS.items():
        if not all(_has(item, kinds) for item in record.get(name, [])):
            return f"{name} must each have {', '.join(kinds)}"
    for choice in record.get("choices", {}).values():
        if not _has(choice, {"why": str}):
            return "choices must each have why"
    if not _whole_components(record.get("components", {"text": ""})):
        return "components must have text, and numbers as signal_to_noise and weights"
    if not _whole_columns(record.get("columns")):
        return "columns must have total, numbers, names, mean and scale, all in line"
    if not 0 <= record["n_samples"] <= MOST:
        return f"n_samples is {record['n_samples']}"
    if not _whole_choice(record.get("particle_choice", {})):
        return "particle_choice must have a folder, a pixel size and lists of numbers"
    if not all(map(_whole_motion, record.get("all_views", {}).get("motions", []))):
        return f"motions must each have {', '.join(MOTION)} and axis"
    view = record.get("view") or [0.0, 0.0]
    return "" if _are_angles(view) else "view must be two angles"


def _are_angles(view: list) -> bool:
    return len(view) == 2 and all(isinstance(angle, Real) for angle in view)


def _whole_motion(motion) -> bool:
    return _has(motion, MOTION) and _are_angles(motion.get("axis") or [0.0, 0.0])


def _has(item, kinds: Mapping[str, type]) -> bool:
    if not isinstance(item, dict):
        return False
    return all(isinstance(item.get(key), kind) for key, kind in kinds.items())


def _whole_components(components: dict) -> bool:
    numbers = [*components.get("signal_to_noise", []), *components.get("weights", [])]
    named = isinstance(components.get("text"), str)
    return named and all(isinstance(number, Real) for number in numbers)


def _whole_choice(choice: dict) -> bool:
    folder, size = choice.get("datadir"), choice.get("pixel_size")
    groups = [choice.get(name, []) for name in ("classes", "optics_groups")]
    return (
        (folder is None or isinstance(folder, str))
        and (size is None or (isinstance(size, Real) and float(size) > 0))
        and all(isinstance(numbers, list) for numbers in groups)
        and all(isinstance(number, int) for numbers in groups for number in numbers)
    )


def _whole_columns(columns: dict | None) -> bool:
    if columns is None:
        return True
    kinds = {"numbers": int, "names": str, "mean": Real, "scale": Real}
    typed = isinstance(columns.get("total"), int) and all(
        key in columns and all(isinstance(each, kind) for each in columns[key] or [])
        for key, kind in kinds.items()
    )
    if not typed or not 0 < columns["total"] <= MOST:
        return False
    total, numbers = columns["total"], columns["numbers"]
    if not all(0 <= number < total for number in numbers or []):
        return False
    used = total if numbers is None else len(numbers)
    lengths = {len(columns[key]) for key in kinds if columns[key] is not None}
    return lengths <= {used}
