"""The benchmark of sensitivity, on a method and settings made up for it."""

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from studies.accuracy import Case

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@dataclass(frozen=True)
class Peeling:
    window: float = 0.9
    n_rounds: int = 3
    offset: float = 0.0
    adaptive: bool = True
    mode: str = "auto"


@dataclass(frozen=True)
class Factoring:
    peeling: Peeling = field(default_factory=Peeling)
    most: float = np.inf
    idle: float = 2.0


@dataclass(frozen=True)
class Kernel:
    width: float = 1.0


@dataclass(frozen=True)
class Neighbors:
    count: int = 64


@dataclass(frozen=True)
class Diffusion:
    kernel: Kernel = field(default_factory=Kernel)
    neighbors: Neighbors = field(default_factory=Neighbors)
    solver: Kernel = field(default_factory=Kernel)


def diffuse(X, settings, *, rng):
    return settings.kernel.width * X


def factorize(diffusion, settings, *, rng):
    """Find both sides of a square unless the window is too wide."""
    if settings.peeling.n_rounds > 4:
        raise ValueError("too many rounds")
    right = settings.peeling.window < 1
    columns = diffusion.T if right else diffusion.T[:1]
    factors = [SimpleNamespace(embedding=column[:, None]) for column in columns]
    verdict = "product" if right else "none"
    return SimpleNamespace(factors=factors, evidence=SimpleNamespace(verdict=verdict))


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    for name in ("sensitivity", "varying", "record"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import sensitivity

    return sensitivity


@pytest.fixture
def core(benchmark):
    return benchmark.Core(diffuse, factorize, Diffusion(), Factoring())


PARTS = [("factoring",), ("diffusion", "kernel"), ("diffusion", "neighbors")]


def test_every_number_is_changed_both_ways_and_nothing_else_is(benchmark, core):
    changes = [(one.name, one.direction, one.new) for one in benchmark.variations(core, PARTS)]
    assert changes == [
        ("factoring.peeling.window", "x1.5", 1.0),
        ("factoring.peeling.window", "/1.5", pytest.approx(0.6)),
        ("factoring.peeling.n_rounds", "x1.5", 4),
        ("factoring.peeling.n_rounds", "/1.5", 2),
        ("factoring.idle", "x1.5", 3.0),
        ("factoring.idle", "/1.5", pytest.approx(4 / 3)),
        ("diffusion.kernel.width", "x1.5", 1.5),
        ("diffusion.kernel.width", "/1.5", pytest.approx(2 / 3)),
        ("diffusion.neighbors.count", "x1.5", 96),
        ("diffusion.neighbors.count", "/1.5", 43),
    ]


def test_one_number_is_changed_and_the_default_settings_stay(benchmark, core):
    new = benchmark.changed(core, ("factoring", "peeling", "n_rounds"), 4)
    assert new.factoring == replace(Factoring(), peeling=Peeling(n_rounds=4))
    assert core.factoring == Factoring()


@pytest.mark.slow
def test_what_a_setting_does_is_counted_and_the_loudest_comes_first(benchmark, core):
    pairs = [(Case("cheap", "square", n=200), seed) for seed in range(2)]
    before = [benchmark.outcome(core, *pair) for pair in pairs]
    assert before == [(True, "product")] * 2
    records = [
        benchmark.compared(one, before, benchmark.outcomes(core, pairs, one))
        for one in benchmark.variations(core, PARTS)
    ]
    wide = records[0]
    assert (wide["gained"], wide["lost"], wide["verdicts"], wide["errors"]) == (0, 2, 2, 0)
    lines = benchmark.table(records).splitlines()
    assert lines[2] == "| factoring.peeling.window | 0.9 | +0 -2 | 2 | +0 -0 | 0 |"
    assert lines[-1] == "Without effect: 4 of 5 settings."


def test_a_setting_that_breaks_the_method_is_an_answer(benchmark, core):
    pairs = [(Case("cheap", "square", n=200), 0)]
    (many,) = [
        replace(one, new=5)
        for one in benchmark.variations(core, PARTS)
        if one.name.endswith("n_rounds") and one.direction == "x1.5"
    ]
    found = benchmark.outcomes(core, pairs, many)
    assert found == [(False, "error: too many rounds")]
    assert benchmark.compared(many, [(True, "product")], found)["errors"] == 1


def test_the_diffusion_is_shared_by_all_changes_of_the_factoring(benchmark, core):
    pair = Case("cheap", "square", n=200), 0
    calls = []

    def counted(X, settings, *, rng):
        calls.append(settings)
        return X

    core = replace(core, diffuse=counted)
    for one in benchmark.variations(core, PARTS[:1]):
        benchmark.outcomes(core, [pair], one)
    assert len(calls) == 1


def test_the_cases_hold_each_shape_and_seed_once(benchmark):
    pairs = benchmark.cases()
    keys = [(case.shape, seed) for case, seed in pairs]
    assert len(keys) == len(set(keys)) == 26
    assert {case.method for case, _ in pairs} == {"gradients"}
