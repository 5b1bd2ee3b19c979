"""`fit` on tables: which columns are used, how they are scaled, what is said of them."""

import csv

import numpy as np
import pytest

from manifactor import load
from manifactor.runs.run import open_run

from .conftest import manifactor, record_of, refusal


@pytest.fixture
def table(folder, rng):
    """A rectangle whose sides are in other units, with an id, a label and a constant."""
    X = rng.uniform(size=(500, 2)) * [1.6, 1]
    with (folder / "a.csv").open("w") as file:
        file.write("id,length,width,mass,kind\n")
        for i, (length, width) in enumerate(X):
            file.write(f"s{i},{length},{1000 * width},3,{i % 4}\n")
    return X


def test_suspicious_columns_are_named_before_the_verdict(table, folder, capsys):
    assert manifactor("fit a.csv --out run") == 0
    said = capsys.readouterr()
    assert "warning: columns that hold text were left out: 'id'." in said.err
    assert "note: 1 of 4 columns are constant" in said.err
    assert "the first is column 'mass'" in said.err
    assert "Column 'kind' holds a few whole numbers, as a label does" in said.err
    assert "Columns 'length' and 'width' differ in scale" in said.out
    columns = record_of(folder / "run")["columns"]
    assert columns["names"] == ["length", "width", "mass", "kind"]
    assert columns["numbers"] == [1, 2, 3, 4]
    assert columns["scale"] is None


@pytest.mark.slow
def test_chosen_and_scaled_columns_show_the_product_and_place_other_tables(
    table, folder, capsys, undrawn
):
    line = "fit a.csv --drop id,3-4 --standardise --out run"
    assert manifactor(line) == 0
    assert "Verdict: product" in capsys.readouterr().out
    record = record_of(folder / "run")
    assert record["columns"]["names"] == ["length", "width"]
    assert record["reproduce"].endswith("a.csv --drop id,3-4 --standardise")
    assert manifactor("report run --out page.html") == 0
    assert (folder / "page.html").is_file()
    assert not (folder / "run" / "report.html").exists()
    assert "2 of 5: length, width; each to unit variance" in capsys.readouterr().out
    run, fit = open_run("run"), load("run")
    np.testing.assert_allclose(run.samples().std(axis=0), 1)
    assert run.column_names == ["length", "width"]
    rows = [f"{1000 * width},{length}" for length, width in table[:5]]
    (folder / "new.csv").write_text("\n".join(["width,length", *rows]))
    np.testing.assert_allclose(
        fit.coordinates(run.read("new.csv")), fit.coordinates()[:5], atol=1e-6
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("fit .", "or .mrc volumes; it holds none. For samples"),
        ("fit nan.csv", "row 1, column 'y' (line 3 of nan.csv)"),
        ("fit huge.csv", "1.8e+308, in row 2, column 'x' (line 4 of huge.csv). Such"),
        ("fit huge.csv --standardise", "is a usual mark for missing values: remove"),
        ("fit a.csv --width 5", "--width is the angle around a view"),
        ("fit a.csv --phase-flip --standardise", "--phase-flip does not go with coordinates"),
    ],
)
def test_wrong_columns_are_one_line_and_exit_code_2(table, folder, capsys, arguments, message):
    (folder / "nan.csv").write_text("x,y\n1,2\n3,inf\n5,6\n7,8\n9,8\n")
    (folder / "huge.csv").write_text("x,y\n1,2\n3,4\n1.7976931348623157e308,6\n7,8\n")
    assert message in refusal(arguments, folder, capsys)


def test_the_name_of_the_only_array_is_printed(folder, capsys, rng):
    np.savez(folder / "a.npz", Y=rng.uniform(size=(50, 2)))
    assert manifactor("fit a.npz --dry-run") == 0
    said = capsys.readouterr().err
    assert said == "manifactor: note: the samples are 'Y', the only array of a.npz.\n"


def test_shares_of_every_column_are_written_with_its_name(folder, rng):
    u, v = rng.uniform(size=(2, 600))
    table = np.column_stack([2 * u, v, 0.3 * u * v])
    header = 'length,"width, mm",area'
    np.savetxt("a.csv", table, delimiter=",", header=header, comments="")
    assert manifactor("fit a.csv --out run --sense geometry --fit-samples 500") == 0
    with (folder / "run" / "loadings.csv").open() as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["column", "factor1", "factor2", "factor1_factor2", "noise"]
    assert [row[0] for row in rows[1:]] == ["length", "width, mm", "area"]
    numbers = np.array([row[1:] for row in rows[1:]], dtype=float)
    assert numbers.sum(axis=1) == pytest.approx(1, abs=1e-5)
    assert numbers[:2, :2] == pytest.approx(np.eye(2), abs=0.03)
    assert manifactor("report run") == 0
    page = (folder / "run" / "report.html").read_text()
    assert "Factor 1 moves length (" in page
    assert "width, mm (" in page
