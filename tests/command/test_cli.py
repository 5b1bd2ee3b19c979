import json
import signal
import subprocess
import sys
import time
from types import ModuleType

import numpy as np
import pytest

from manifactor import command
from manifactor.command.main import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def data(folder):
    assert (
        main(
            ["simulate", "rectangle", "--n", "800", "--seed", "1", "--out", "data.npz"]
        )
        == 0
    )
    return folder / "data.npz"


def test_simulate_fit_and_report_follow_each_other(data, folder, capsys):
    assert main(["fit", "data.npz", "--n-factors", "2"]) == 0
    out = capsys.readouterr().out
    assert "Verdict: " in out
    assert "Factor 2: " in out
    record = json.loads((folder / "data-run" / "run.json").read_text())
    assert record["arguments"]["n_factors"] == 2
    assert (
        len((folder / "data-run" / "coordinates.csv").read_text().splitlines()) == 801
    )
    assert main(["report", "data-run"]) == 0
    out = capsys.readouterr().out
    assert "bandwidth" in out
    assert out.endswith("\nThe page: data-run/report.html\n")
    assert (folder / "data-run" / "report.html").is_file()


def test_simulated_truth_is_written_beside_the_samples(data):
    with np.load(data) as stored:
        assert sorted(stored) == ["X", "truth1", "truth2"]
        assert stored["X"].shape == (800, 2)


def test_the_same_seed_gives_the_same_run(data, folder):
    for out in ("one", "two"):
        assert main(["fit", "data.npz", "--seed", "4", "--out", out]) == 0
    assert (folder / "one" / "coordinates.csv").read_bytes() == (
        folder / "two" / "coordinates.csv"
    ).read_bytes()


def test_the_demo_finds_both_motions_and_can_be_repeated(folder, capsys, monkeypatch):
    for images in (400, 1000):
        monkeypatch.setattr("manifactor.command.cli.DEMO_IMAGES", images)
        assert main(["demo"]) == 0
    out = capsys.readouterr().out
    assert "Factor 1 is the true stretch: correlation 0.99" in out
    assert "Factor 2 is the true turn: correlation 0.99" in out
    assert (
        "demo-run/average-factor1/averages.gif and demo-run/average-factor2/averages.gif"
        in out
    )
    for name in ("particles.star", "report.html", "average-factor2/averages.mrcs"):
        assert (folder / "demo-run" / name).is_file()


def test_the_demo_does_not_replace_another_run(data, capsys):
    assert main(["fit", "data.npz", "--out", "mine"]) == 0
    assert main(["demo", "--out", "mine"]) == 2
    assert "the demo replaces earlier demos only" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["fitt"], "invalid choice: 'fitt'"),
        (["fit"], "required: INPUT"),
        (["fit", "nothing.csv"], "nothing.csv does not exist"),
        (
            ["fit", "data.npz", "--n-factors", "two"],
            "invalid whole number or auto value: 'two'",
        ),
        (
            ["fit", "data.npz", "--n-factors", "99"],
            "`n_factors` must be a whole number in [1, 6]; got 99",
        ),
        (["fit", "data.npz", "--n-functions", "900"], "got 900 with 800 samples"),
        (
            ["fit", "data.npz", "--bandwidth", "0"],
            "`bandwidth` must be a number above 0",
        ),
        (["fit", "data.npz", "--out", "no/such/folder"], "must be a writable folder"),
        (["fit", "data.npz", "--out", "data.npz/run"], "must be a writable folder"),
        (["fit", "data.npz", "--out", "/proc/run"], "must be a writable folder"),
        (["fit", "data.npz", "--colour"], "unrecognized arguments: --colour"),
        (["fit", "nan.csv"], "the first in row 2, column 1"),
        (["fit", "equal.csv"], "at least 3 samples must differ"),
        (["fit", "one.csv"], "minimum of 4 is required"),
        (["simulate", "tours"], "the shape must be one of"),
        (["simulate", "torus", "--n", "-5"], "`n_samples` must be at least 1; got -5"),
        (
            ["simulate", "torus", "--out", "no/such/data.npz"],
            "must be a writable folder: No such file",
        ),
        (
            ["simulate", "torus", "--out", "data.npz"],
            "must not exist yet; data.npz does",
        ),
        (["report", "."], "is not a run folder"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    data, folder, capsys, arguments, message
):
    (folder / "nan.csv").write_text("1,2\n3,4\n5,nan\n6,7\n8,9\n")
    (folder / "equal.csv").write_text("1,2\n" * 10)
    (folder / "one.csv").write_text("1,2\n")
    before = sorted(folder.rglob("*"))
    capsys.readouterr()
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("manifactor: error: ")
    assert captured.err.count("\n") == 1
    assert message in captured.err
    assert sorted(folder.rglob("*")) == before


def test_an_existing_run_is_kept_unless_told_otherwise(data, folder, capsys):
    assert main(["fit", "data.npz"]) == 0
    assert main(["fit", "data.npz"]) == 2
    assert "pass --overwrite" in capsys.readouterr().err
    assert main(["fit", "data.npz", "--overwrite"]) == 0


def test_an_interrupt_gives_130_and_leaves_nothing(data, folder, capsys, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("manifactor.spectral.pipeline.laplacian_spectrum", interrupt)
    before = sorted(folder.iterdir())
    assert main(["fit", "data.npz"]) == 130
    assert "interrupted; nothing half-written is left" in capsys.readouterr().err
    assert sorted(folder.iterdir()) == before


def test_warnings_are_one_line_on_standard_error(folder, capsys, rng):
    X = np.r_[rng.uniform(size=(200, 2)), rng.uniform(size=(100, 2)) + 9]
    np.savetxt(folder / "two.csv", X, delimiter=",")
    assert main(["fit", "two.csv", "--n-neighbors", "10"]) == 0
    err = capsys.readouterr().err
    assert (
        "manifactor: warning: the neighbour graph has 2 components of 200, 100 samples"
        in err
    )
    assert "Warning:" not in err


def test_a_constant_column_is_noted(folder, capsys, rng):
    np.savetxt(
        folder / "flat.csv",
        np.c_[rng.uniform(size=(300, 2)), np.ones(300)],
        delimiter=",",
    )
    assert main(["fit", "flat.csv"]) == 0
    assert "note: 1 of 3 columns are constant" in capsys.readouterr().err


def test_the_installed_command_is_quiet_in_a_pipe(data, folder):
    result = subprocess.run(
        [sys.executable, "-m", "manifactor.command.cli", "fit", "data.npz"],
        capture_output=True,
        text=True,
        cwd=folder,
    )
    assert result.returncode == 0
    assert result.stderr == ""
    assert "Verdict" in result.stdout


def test_some_samples_are_fitted_and_all_are_placed(data, folder, capsys):
    assert main(["fit", "data.npz", "--fit-samples", "500", "--out", "part"]) == 0
    assert (
        "500 of 800 samples were fitted, the others placed" in capsys.readouterr().out
    )
    assert len((folder / "part" / "coordinates.csv").read_text().splitlines()) == 801
    assert main(["fit", "data.npz", "--fit-samples", "2"]) == 2
    assert "`fit_samples` must be a whole number in [4" in capsys.readouterr().err


def test_an_interrupt_while_the_program_is_still_loading_is_one_line(
    capsys, monkeypatch
):
    class Loading(ModuleType):
        def __getattr__(self, name):
            raise KeyboardInterrupt

    monkeypatch.setitem(
        sys.modules, "manifactor.command.cli", Loading("manifactor.command.cli")
    )
    assert command.main() == 130
    assert capsys.readouterr().err == "manifactor: interrupted; nothing was written.\n"


def test_the_package_itself_loads_nothing_until_it_is_asked():
    code = "import manifactor, sys; print('numpy' in sys.modules, manifactor.__version__, 'load' in dir(manifactor))"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True
    ).stdout
    assert out.startswith("False ")
    assert out.endswith(" True\n")


def test_a_dry_run_says_what_it_costs_and_writes_nothing(data, folder, capsys):
    assert main(["fit", "data.npz", "--dry-run"]) == 0
    assert "The fit will take about" in capsys.readouterr().out
    assert sorted(path.name for path in folder.iterdir()) == ["data.npz"]
    assert main(["fit", "data.npz", "data.npz", "--dry-run"]) == 2
    assert "are for one input and one view" in capsys.readouterr().err


def test_a_run_is_made_from_the_stages_of_an_earlier_one(data, folder, capsys):
    assert main(["fit", "data.npz", "--out", "first"]) == 0
    assert (
        main(
            [
                "fit",
                "data.npz",
                "--out",
                "second",
                "--reuse",
                "first",
                "--n-factors",
                "2",
            ]
        )
        == 0
    )
    assert list(
        json.loads((folder / "second" / "run.json").read_text())["seconds"]
    ) == ["factors"]
    assert (
        main(
            ["simulate", "rectangle", "--n", "700", "--seed", "2", "--out", "other.npz"]
        )
        == 0
    )
    assert main(["fit", "other.npz", "--out", "third", "--reuse", "first"]) == 0
    assert "nothing of first could be used" in capsys.readouterr().err


def test_a_stopped_fit_is_resumed(data, folder, capsys, monkeypatch):
    monkeypatch.setattr("manifactor.runs.checkpoints.LONG", 0.0)

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("manifactor.runs.task.write_run", stop)
        assert main(["fit", "data.npz", "--out", "run"]) == 130
    assert (
        "finished stages are kept: the same command with --resume goes on"
        in capsys.readouterr().err
    )
    assert not (folder / "run").exists()
    assert main(["fit", "data.npz", "--out", "run", "--resume"]) == 0
    assert list(json.loads((folder / "run" / "run.json").read_text())["seconds"]) == [
        "factors"
    ]
    assert not (folder / ".run.stages").exists()
    assert main(["fit", "data.npz", "--out", "run2", "--resume"]) == 2
    assert "there is nothing to go on from" in capsys.readouterr().err


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_a_file_far_too_large_for_memory_is_refused_before_it_is_read(
    folder, capsys, more
):
    np.lib.format.open_memmap(
        "big.npy", mode="w+", dtype=np.float32, shape=(5 * 10**7, 8)
    )  # takes no room on a disk
    assert main(["fit", "big.npy", "--fit-samples", "all", *more]) == 2
    assert (
        "the fit must fit into memory; 50000000 samples need about "
        in capsys.readouterr().err
    )


def test_an_interrupted_fit_s_stages_are_not_dropped_in_silence(data, folder, capsys):
    (folder / ".data-run.stages").mkdir()
    assert main(["fit", "data.npz"]) == 0
    assert "without --resume they are dropped" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["nosuch", ".", "data.npz"])
def test_only_a_run_can_be_reused(data, capsys, name):
    assert main(["fit", "data.npz", "--out", "next", "--reuse", name, "--dry-run"]) == 2
    assert (
        f"--reuse must name the folder of an earlier run; {name} is none"
        in capsys.readouterr().err
    )


def test_the_record_says_how_neighbours_were_found(data, folder):
    assert main(["fit", "data.npz"]) == 0
    record = json.loads((folder / "data-run" / "run.json").read_text())
    assert record["neighbors"] == {"search": "kd_tree", "count": 64, "recall": 1.0}


def test_a_fit_too_large_for_memory_is_bad_input(data, capsys, monkeypatch):
    monkeypatch.setattr("manifactor.spectral.forecast.machine_memory", lambda: 1e6)
    assert main(["fit", "data.npz", "--dry-run"]) == 2
    assert "the fit must fit into memory" in capsys.readouterr().err


@pytest.mark.skipif(
    not hasattr(signal, "pthread_sigmask"),
    reason="interrupts are sent another way on this system",
)
def test_a_running_fit_ends_soon_after_an_interrupt(folder, rng):
    np.save(folder / "many.npy", rng.uniform(size=(80_000, 2)))
    program = "import logging, manifactor.__main__; logging.basicConfig(level=20); exit(manifactor.__main__.main())"
    command = [sys.executable, "-c", program, "fit", "many.npy", "--fit-samples", "all"]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as fit:
        try:
            said = ""
            while "parts: " not in said:  # the longest stage, the spectrum, comes next
                line = fit.stderr.readline()
                assert line, said
                said += line
            time.sleep(1)
            fit.send_signal(signal.SIGINT)
            said = fit.communicate(timeout=10)[
                1
            ]  # a second or two, on a machine that has nothing else to do
        finally:
            fit.kill()
    assert fit.returncode == 130, said
    assert "Traceback" not in said
    assert "interrupted; nothing half-written is left" in said
    assert [path.name for path in folder.iterdir()] == ["many.npy"]
