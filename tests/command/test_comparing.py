"""`compare`: which factors runs share, and the table of one in the frame of another."""

import numpy as np
import pytest

from manifactor import datasets, load

from .conftest import manifactor, refusal


@pytest.fixture(scope="module")
def samples():
    return datasets.sample("cylinder", 500, random_state=1)[0]


@pytest.fixture
def runs(samples, folder):
    """Two programs' coordinates of one data set, and the first half in rows of its own."""
    turned = samples @ np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    for name, X in {"a": samples, "b": 2 * turned, "half": samples[:320]}.items():
        np.save(f"{name}.npy", X)
        assert manifactor(f"fit {name}.npy --sense geometry --out {name}") == 0
    return folder


@pytest.mark.slow
def test_runs_are_compared_and_written_in_the_frame_of_the_first(runs, capsys):
    capsys.readouterr()
    assert manifactor("compare a b half") == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split() == ["factor", "a", "b", "half"]
    assert [line.split()[0] for line in lines[:2]] == [f.topology for f in load("a").factors_]
    assert not any("private" in line for line in lines)
    assert lines[2:] == [
        "a and b: 500 samples in common were compared.",
        # Fewer rows are other samples; a run's fit locates them.
        next(line for line in lines if line.startswith("a and half: samples differ; ")),
    ]

    assert manifactor("compare a b --out b-as-a.csv") == 0
    tables = [
        np.genfromtxt(name, delimiter=",", names=True)
        for name in ("a/coordinates.csv", "b-as-a.csv")
    ]
    assert tables[1].dtype.names == ("sample", "factor1", "factor2")
    for number, factor in enumerate(load("a").factors_, start=1):
        right, moved = (table[f"factor{number}"] for table in tables)
        off = (moved - right + 180) % 360 - 180
        assert np.median(abs(off)) < (3 if factor.topology == "circle" else 0.02)
    assert "b-as-a.csv does." in refusal("compare a b --out b-as-a.csv", runs, capsys)
    np.save("flat.npy", datasets.sample("rectangle", 300, random_state=0)[0])
    assert manifactor("fit flat.npy --sense geometry --n-factors 1 --out flat") == 0
    assert "must have 100 samples in common" in refusal("compare a flat", runs, capsys)
