import dataclasses
import typing
from dataclasses import dataclass, replace

import numpy as np
import pytest
import scipy.sparse as sp

from manifactor._support.parameters import Choice
from manifactor.runs.archive import RECORDS
from manifactor.runs.rules import (
    BOOK,
    RULES,
    UNSAVED,
    Array,
    BrokenRule,
    Number,
    OneOf,
    RuleBook,
    fits,
    flags,
    indices,
    numbers,
    within,
)

OAK = Choice("oak", "set by the caller")


@dataclass(frozen=True)
class Leaf:
    values: np.ndarray
    weight: float = 1.0


@dataclass(frozen=True)
class Tree:
    place: np.ndarray
    nearest: np.ndarray
    used: np.ndarray
    links: typing.Any
    leaves: tuple[Leaf, ...] = ()
    kind: Choice = OAK
    extra: np.ndarray | None = None


SMALL = RuleBook(
    {
        Leaf: {"values": numbers("values"), "weight": Number(low=0, most="values")},
        Tree: {
            "place": numbers("samples", 2),
            "nearest": indices("samples", below="samples"),
            "used": flags("samples"),
            "links": numbers("samples", "samples"),
            "leaves": within(values="values"),
            "kind": OneOf(("oak", "elm")),
            "extra": Array((None,), "c"),
        },
    }
)
TREE = Tree(
    place=np.ones((3, 2)),
    nearest=np.array([2, 0, 1]),
    used=np.ones(3, dtype=bool),
    links=sp.csr_array(np.eye(3)),
    leaves=(Leaf(np.ones(4)), Leaf(np.zeros(4), 4)),
)


def test_a_record_that_keeps_all_rules_passes_with_its_sizes():
    assert SMALL.check(TREE) == {"samples": 3, "values": 4}


BROKEN = {
    "another size": ({"place": np.ones((4, 2))}, "Tree.nearest: has shape"),
    "another number of columns": ({"place": np.ones((3, 1))}, "Tree.place: has shape"),
    "too few axes": ({"place": np.ones(3)}, "Tree.place: has shape"),
    "an index beyond": ({"nearest": np.array([3, 0, 1])}, "beyond its last"),
    "an index before": ({"nearest": np.array([-1, 0, 1])}, "below its first"),
    "indices that are floats": ({"nearest": np.ones(3)}, "Tree.nearest: holds float64"),
    "flags that are numbers": ({"used": np.ones(3, int)}, "Tree.used: holds int64"),
    "foreign bytes": ({"place": np.ones((3, 2), ">f8")}, "has foreign bytes"),
    "nan": ({"place": np.full((3, 2), np.nan)}, "Tree.place: is not finite"),
    "huge": ({"place": np.full((3, 2), 1e200)}, "Tree.place: is not finite"),
    "nan in a matrix": (
        {"links": sp.csr_array(np.diag([1, np.nan, 1]))},
        "Tree.links: is not finite",
    ),
    "a smaller matrix": ({"links": sp.csr_array(np.eye(2))}, "Tree.links: has shape"),
    "a list for a matrix": ({"links": "abc"}, "Tree.links: is no array"),
    "records of different sizes": (
        {"leaves": (Leaf(np.ones(4)), Leaf(np.ones(5)))},
        r"Tree.leaves: Leaf.values: has shape \(5,\)",
    ),
    "a number beyond a size": ({"leaves": (Leaf(np.ones(4), 5),)}, "Leaf.weight: must not be 5"),
    "a number that is text": ({"leaves": (Leaf(np.ones(4), "1"),)}, "another type"),
    "nan for a number": ({"leaves": (Leaf(np.ones(4), np.nan),)}, "must not be nan"),
    "another record": ({"leaves": (Choice(1, "a"),)}, "Tree.leaves: has another type"),
    "another word": ({"kind": Choice("ash", "a")}, "Tree.kind: must not be 'ash'"),
    "no reason": ({"kind": Choice("oak", 3)}, "Choice.why: has another type"),
    "nothing": ({"place": None}, "Tree.place: has another type"),
    "nan in complex numbers": ({"extra": np.array([1j, np.nan])}, "is not finite"),
}


@pytest.mark.parametrize(("change", "message"), BROKEN.values(), ids=BROKEN)
def test_a_record_that_breaks_a_rule_is_refused_by_field(change, message):
    with pytest.raises(BrokenRule, match=message):
        SMALL.check(replace(TREE, **change))


@pytest.mark.parametrize(
    ("value", "hint", "expected"),
    [
        (1, float, True),
        (True, float, False),
        (True, int, False),
        (1.5, int, False),
        (None, int | None, True),
        ((1, 2), tuple[int, ...], True),
        ([1, 2], tuple[int, ...], False),
        (((1,), ()), tuple[tuple[int, ...], ...], True),
        ({"a": 1}, dict[str, float], True),
        ({"a": "b"}, dict[str, float], False),
        ({1: 2}, typing.Any, True),
    ],
)
def test_types_are_those_of_the_annotations(value, hint, expected):
    assert fits(value, hint) is expected


def may_be_an_array(hint):
    return np.ndarray in (hint, *typing.get_args(hint)) or hint is typing.Any


def test_every_array_of_every_record_has_a_rule():
    missing = [
        f"{name}.{field.name}"
        for name, record in RECORDS.items()
        for field in dataclasses.fields(record)
        if field.name not in UNSAVED
        and may_be_an_array(typing.get_type_hints(record)[field.name])
        and field.name not in RULES.get(record, {})
    ]
    assert missing == []


def test_rules_name_fields_that_there_are():
    for record, rules in RULES.items():
        assert set(rules) <= {field.name for field in dataclasses.fields(record)}
    assert set(BOOK.further) <= set(RULES)
