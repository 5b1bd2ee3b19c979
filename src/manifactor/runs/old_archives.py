"""Archives of earlier versions: their JSON trees as those of this version.

A record of a tree is {"record": name, "fields": {name: tree}}. Fields that this release does not
know may stay, as the reader ignores them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

# The oldest version that can be read, that of release 0.2.0.
OLDEST_VERSION = 7
NONE = {"value": None}
READING = ("coefficients", "topology", "chart", "cloud", "ends")


def renewed(tree: Any, version: int) -> Any:
    """Return the JSON tree of a version as one of this; in 7, factors placed new samples."""
    if isinstance(tree, list) and version < 8:
        return [renewed(branch, version) for branch in tree]
    if not isinstance(tree, dict) or version >= 8:
        return tree
    if tree.get("record") == "Factorization":
        fields = tree["fields"]
        return {**tree, "fields": {**fields, "placer": _placer(fields)}}
    return {key: renewed(value, version) for key, value in tree.items()}


def _placer(fields: Mapping[str, Any]) -> dict:
    """Return the placer of a factorization."""
    factors = [factor["fields"] for factor in fields["factors"]["tuple"]]
    if fields.get("sum", NONE) == NONE:
        for field in ("slopes", "shift"):
            lines = [factor.get(field, NONE) for factor in factors]
            if any(line != NONE for line in lines):
                return _record("Integrated", **_readings(factors), lines={"tuple": lines})
        return _record("ByFunctions", **_readings(factors))
    divided, first = [], 0
    terms = {term["fields"]["term"]["value"]: term["fields"] for term in _tuple(fields, "divided")}
    for number in range(len(_tuple(fields["sum"]["fields"], "summands"))):
        count = 1
        if number in terms:
            count = terms[number]["n_factors"]["value"]
            placer = _record("ByFunctions", **_readings(factors[first : first + count]))
            divided.append(_record("DividedTerm", **terms[number], placer=placer))
        first += count
    return _record("ByTerms", sum=fields["sum"], divided={"tuple": divided})


def _readings(factors: Sequence[Mapping[str, Any]]) -> dict:
    records = [_record("Reading", **{name: each[name] for name in READING}) for each in factors]
    return {"readings": {"tuple": records}}


def _record(name: str, **fields: Any) -> dict:
    return {"record": name, "fields": fields}


def _tuple(fields: Mapping[str, Any], name: str) -> list:
    return fields.get(name, {"tuple": []})["tuple"]
