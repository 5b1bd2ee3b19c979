"""`fit` on tables whose rows are in time, or have repeats: factors that move independently."""

from pathlib import Path

import numpy as np
import pytest

from manifactor import load
from manifactor.runs.run import open_run

from ..moving import latents, seen
from .conftest import manifactor, record_of, refusal

N_STEPS, FIRST = 4000, 1500
SHORT = "--fit-samples 600"


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
    assert (record["n_samples"], record["n_fitted"]) == (N_STEPS, 600)
    assert record["reproduce"].endswith(f"a.csv --time t --trajectory name {SHORT}")
    assert manifactor("select run --column t 0 10 --out part.csv") == 0
    assert len((folder / "part.csv").read_text().splitlines()) == 1 + 2 * 21


def test_files_of_trajectories_are_one_fit(walked, folder, capsys):
    u, X = walked
    np.save("a.npy", X[:FIRST])
    np.save("b.npy", X[FIRST:])
    assert manifactor(f"fit a.npy b.npy --trajectories {SHORT} --out run") == 0
    assert (shares(folder / "run", u) > 0.97).all()
    record = record_of(folder / "run")
    assert record["moves"]["trajectories"]
    assert record["further"] == [str(folder / "b.npy")]
    assert f"{folder}/a.npy {folder}/b.npy" in record["reproduce"]
    assert np.array_equal(open_run("run").samples(), X)


def test_bursts_are_in_the_columns_and_the_scale_of_the_table(folder, rng):
    u = rng.random((800, 2))
    v = u[:, None] + [0.02, 0.03] * rng.normal(size=(800, 5, 2))
    X, Y = seen(u), seen(v.reshape(-1, 2)).reshape(800, 5, 3)
    lines = [f"{k},{','.join(map(str, row))}" for k, row in enumerate(X)]
    (folder / "a.csv").write_text("\n".join(["id,x,y,z", *lines]))
    np.savez(folder / "near.npz", np.concatenate([np.zeros((800, 5, 1)), Y], axis=2))
    assert manifactor("fit a.csv --drop id --standardise --bursts near.npz --out run") == 0
    assert (shares(folder / "run", u) > 0.97).all()
    assert record_of(folder / "run")["moves"]["bursts"] == str(folder / "near.npz")


@pytest.fixture
def hopping(folder, rng):
    """A table of two latents in long steps, and what followed each row a time of 4 later."""
    u = latents(N_STEPS + 1, rng, steps=(0.12, 0.18))
    X = seen(u)
    table = np.column_stack([np.arange(len(X)), X])
    for name, rows in {"now.csv": table[:-1], "later.csv": table[1:, [2, 0, 3, 1]]}.items():
        header = "t,x,y,z" if name == "now.csv" else "y,t,z,x"
        np.savetxt(folder / name, rows, delimiter=",", header=header, comments="")
    return u[:-1]


def test_pairs_are_in_the_columns_of_the_table_and_lag_is_their_time(hopping, folder, capsys):
    line = f"fit now.csv --drop t --standardise --pairs later.csv {SHORT}"
    assert manifactor(f"{line} --out one") == 0
    assert (shares(folder / "one", hopping) > 0.97).all()
    assert manifactor(f"{line} --lag 4 --out four") == 0
    record = record_of(folder / "four")
    assert record["moves"]["pairs"] == str(folder / "later.csv")
    assert record["moves"]["lag"] == 4
    assert record["reproduce"].endswith(f"--pairs {folder}/later.csv --lag 4 {SHORT}")
    rates = [np.concatenate(load(folder / run).rates_) for run in ("one", "four")]
    assert rates[0] == pytest.approx(4 * rates[1])


def test_a_lag_chooses_the_metric_of_steps_or_their_pairs(hopping, folder):
    for lag, chosen in {"0": "metric", "2": "pairs"}.items():
        assert manifactor(f"fit now.csv --time t --lag {lag} {SHORT} --out run{lag}") == 0
        assert record_of(folder / f"run{lag}")["choices"]["dynamics"]["value"] == chosen


def test_a_trajectory_costs_what_the_samples_drawn_of_it_cost(folder, capsys):
    np.save("a.npy", np.zeros((50_000, 3)))
    for options in ("--trajectories", "--fit-samples 3000", ""):
        assert manifactor(f"fit a.npy {options} --dry-run") == 0
    moving, drawn, plain = capsys.readouterr().out.split("The fit will take")[1:]
    assert moving == drawn != plain
    assert sorted(folder.iterdir()) == [folder / "a.npy"]


@pytest.fixture
def wrong(folder, rng):
    """Files with what cannot be used as time, trajectory or bursts."""
    X = np.cumsum(rng.normal(size=(80, 2)), axis=0)

    def write(name, times, labels):
        lines = [f"{t},{w},{x},{y}" for t, w, (x, y) in zip(times, labels, X, strict=True)]
        (folder / name).write_text("\n".join(["t,run,x,y", *lines]))

    every, one = list(range(80)), [1] * 80
    write("right.csv", every, one)
    write("twice.csv", [*every[:79], 78], one)
    write("hole.csv", [*every[:79], ""], one)
    write("endless.csv", [*every[:79], "inf"], one)
    write("nameless.csv", every, [1] * 79 + [""])
    write("pairs.csv", every, [k // 2 for k in every])
    write("mixed.csv", rng.permutation(80), one)
    np.save("x.npy", X)
    np.save("wide.npy", np.zeros((80, 3)))
    Y = X[:, None] + rng.normal(size=(80, 3, 2))
    np.save("short.npy", Y[:79])
    Y[5, 1, 1] = np.nan
    np.save("nan.npy", Y)
    np.save("later.npy", X + 1)
    np.savetxt("short.csv", X[:79], delimiter=",")
    Path("later.star").touch()
    np.save("holed.npy", np.where(np.arange(80)[:, None] == 7, np.nan, X))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("right.csv --time s", "--time: there is no column 's'"),
        ("right.csv --time 2-3", "--time must name one column"),
        ("x.npy --time 0 --trajectory 1", "--trajectory must name one column, and leave others"),
        ("twice.csv --time t --drop run", "rows 78 and 79 have the same, 78. Tell several trajectories apart by --trajectory"),
        ("hole.csv --time t --drop run", "line 81, column 't' is empty"),
        ("endless.csv --time t --drop run", "--time must be finite"),
        ("nameless.csv --trajectory run --drop t", "--trajectory must have a label for each sample; that of row 79"),
        ("pairs.csv --time t --trajectory run", "50 steps or more"),
        ("mixed.csv --time t --drop run", "rows must be in the order of time"),
        ("x.npy wide.npy --trajectories", "must have the same columns; x.npy has '0', '1', and wide.npy"),
        ("right.csv --trajectories --trajectory run", "by a column, --trajectory, or by files"),
        ("x.npy --bursts none.npy", "--bursts must be a file; none.npy does not exist"),
        ("x.npy --bursts right.csv", "--bursts must be an .npy or .npz file"),
        ("x.npy --bursts wide.npy", "(samples, repeats, columns); got float64, shape (80, 3)"),
        ("x.npy --bursts short.npy", "--bursts must have shape (80, r, 2)"),
        ("x.npy --bursts nan.npy", "--bursts must be finite; that of row 5"),
        ("x.npy wide.npy --bursts nan.npy", "--bursts goes with one input; got 2"),
        ("x.npy --trajectories --bursts nan.npy", "in one way; got --trajectories and --bursts"),
        ("x.npy --pairs none.npy", "--pairs must be a file; none.npy does not exist"),
        ("x.npy --pairs wide.npy", "--pairs must be a table with the columns of the input"),
        ("right.csv --pairs x.npy", "with the columns of the input, 't', 'run', 'x', 'y'; got x.npy with '0', '1'"),
        ("x.npy --pairs right.csv", "must be a table with the columns of the input, '0', '1'; got right.csv with 't'"),
        ("x.npy --pairs short.csv", "--pairs must have the shape of `X`, (80, 2), with what followed each sample"),
        ("x.npy --pairs x.npy", "--pairs must differ from"),
        ("x.npy --pairs holed.npy", "--pairs must be finite"),
        ("x.npy --pairs later.star", "the input must end in one of"),
        ("x.npy wide.npy --pairs later.npy", "--pairs goes with one input; got 2"),
        ("right.csv --time t --drop run --pairs right.csv", "in one way; got --time and --pairs"),
        ("x.npy --lag 2", "--lag is for --pairs"),
        ("x.npy --pairs later.npy --lag 0", "--lag must be positive with --pairs"),
        ("x.npy --pairs later.npy --lag -1", "--lag: must be a finite number of at least 0"),
        ("right.csv --time t --drop run --lag 70", "--lag must leave 50 pairs or more"),
        ("x.npy --trajectories --method sum", "--method must be 'gradients' where --trajectories"),
        ("x.npy --trajectories --coordinates parquet", "a table that is read in parts; got x.npy. Add --coordinates csv"),
    ],
)  # fmt: skip
def test_moves_that_cannot_be_used_are_one_line_and_exit_code_2(
    wrong, folder, capsys, arguments, message
):
    assert message in refusal(f"fit {arguments} --out run", folder, capsys)


def test_images_have_no_columns_of_time(molecule, folder, capsys):
    line = f"fit {molecule / 'particles.star'} --time t"
    assert "--time does not go with a file of particles" in refusal(
        f"{line} --out run", folder, capsys
    )
    assert "--time does not go with particles of all views" in refusal(
        f"{line} --all-views", folder, capsys
    )
