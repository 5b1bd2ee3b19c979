"""`fit` on tables whose rows are in time, or have repeats: factors that move independently."""

import numpy as np
import pytest

from manifactor.runs.run import open_run

from ..moving import latents, seen
from .conftest import manifactor, record_of

N_STEPS, FIRST = 3000, 1200
SHORT = "--fit-samples 400"


@pytest.fixture(scope="module")
def walked():
    """Two trajectories of two latents, one after the other, and what is seen of them."""
    u = latents(N_STEPS, np.random.default_rng(1))
    return u, seen(u)


@pytest.fixture
def table(walked, folder, rng):
    """Both trajectories in one table, in any order, with the time and the name of each."""
    _, X = walked
    order = rng.permutation(N_STEPS)
    rows = ["x,name,y,t,z\n"]
    for k in order:
        name, start = ("first", 0) if k < FIRST else ("second run", FIRST)
        x, y, z = X[k]
        rows.append(f"{x},{name},{y},{0.5 * (k - start)},{z}\n")
    (folder / "a.csv").write_text("".join(rows))
    return order


def shares(run, u):
    """How far each latent is told by its own factor, the better of both, as correlations."""
    table = np.genfromtxt(run / "coordinates.csv", delimiter=",", names=True)
    assert np.array_equal(table["sample"], np.arange(len(u)))
    found = np.column_stack([table["factor1"], table["factor2"]])
    return np.abs(np.corrcoef(u.T, found.T)[:2, 2:]).max(axis=1)


@pytest.mark.slow
def test_time_and_trajectory_of_a_table_tell_its_factors_and_are_not_fitted(
    walked, table, folder, capsys
):
    assert manifactor(f"fit a.csv --time t --trajectory name {SHORT} --out run") == 0
    assert capsys.readouterr().err == ""
    assert (shares(folder / "run", walked[0][table]) > 0.97).all()
    record = record_of(folder / "run")
    assert record["sense"] == "dynamics"
    assert record["columns"]["names"] == ["x", "y", "z"]
    assert record["moves"]["time"] == "t"
    assert record["moves"]["trajectory"] == "name"
    assert (record["n_samples"], record["n_fitted"]) == (N_STEPS, 400)
    assert record["reproduce"].endswith(f"a.csv --time t --trajectory name {SHORT}")
    assert manifactor("select run --column t 0 10 --out part.csv") == 0
    assert len((folder / "part.csv").read_text().splitlines()) == 1 + 2 * 21


@pytest.mark.slow
def test_files_of_trajectories_are_one_fit(walked, folder, capsys):
    _, X = walked
    np.save("a.npy", X[:FIRST])
    np.save("b.npy", X[FIRST:])
    assert manifactor(f"fit a.npy b.npy --trajectories --n-factors 1 {SHORT} --out run") == 0
    record = record_of(folder / "run")
    assert record["moves"]["trajectories"]
    assert record["further"] == [str(folder / "b.npy")]
    assert f"{folder}/a.npy {folder}/b.npy" in record["reproduce"]
    assert np.array_equal(open_run("run").samples(), X)


def test_a_trajectory_costs_what_the_samples_drawn_of_it_cost(folder, capsys):
    np.save("a.npy", np.zeros((50_000, 3)))
    for options in ("--trajectories", "--fit-samples 3000", ""):
        assert manifactor(f"fit a.npy {options} --dry-run") == 0
    moving, drawn, plain = capsys.readouterr().out.split("The fit will take")[1:]
    assert moving == drawn != plain
    assert sorted(folder.iterdir()) == [folder / "a.npy"]
