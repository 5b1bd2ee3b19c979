"""`fit` on samples: what it writes, says, refuses, keeps and reuses."""

import shutil
import signal
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from manifactor._support.threads import cores

from .conftest import interrupt_at, manifactor, record_of, refusal


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A table and its run, made once."""
    folder = tmp_path_factory.mktemp("fitted")
    assert manifactor(f"simulate rectangle --n 800 --seed 1 --out {folder}/data.npz") == 0
    assert manifactor(f"fit {folder}/data.npz --out {folder}/data-run --seed 4") == 0
    return folder


@pytest.fixture
def again(fitted, folder):
    """A copy of both, in the current folder."""
    shutil.copytree(fitted, folder, dirs_exist_ok=True)
    return folder


@pytest.mark.slow
def test_a_run_is_replaced_only_when_told_and_the_same_seed_gives_the_same(again, capsys):
    before = (again / "data-run" / "coordinates.csv").read_bytes()
    neighbors = record_of(again / "data-run")["neighbors"]
    assert neighbors == {"search": "kd_tree", "count": 64, "recall": 1.0}
    assert "pass --overwrite" in refusal("fit data.npz", again, capsys)
    # Checkpoints of an interrupted fit are not deleted in silence.
    (again / ".data-run.stages").mkdir()
    assert manifactor("fit data.npz --seed 4 --overwrite") == 0
    assert "note: deleting the checkpoints" in capsys.readouterr().err
    assert not (again / ".data-run.stages").exists()
    assert (again / "data-run" / "coordinates.csv").read_bytes() == before


@pytest.mark.slow
def test_a_run_is_made_from_the_stages_of_an_earlier_one(again, capsys):
    reuse = "--seed 4 --reuse data-run --n-factors 2"
    assert manifactor(f"fit data.npz --out second {reuse}") == 0
    assert list(record_of(again / "second")["seconds"]) == ["factors"]
    assert manifactor(f"fit data.npz --out third {reuse} --fit-samples 500") == 0
    assert "nothing of data-run could be reused" in capsys.readouterr().err


def test_an_interrupt_gives_130_and_leaves_nothing(data, folder, capsys, monkeypatch):
    still = SimpleNamespace(monotonic=lambda: 0.0)  # no stage is long enough to be kept
    monkeypatch.setattr("manifactor.runs.archive.time", still)
    interrupt_at("spectrum", 0.0, monkeypatch)
    before = sorted(folder.iterdir())
    assert manifactor("fit data.npz") == 130
    assert "interrupted; no partial output was left" in capsys.readouterr().err
    assert sorted(folder.iterdir()) == before


def test_some_samples_are_fitted_and_all_are_placed(data, folder, capsys):
    assert manifactor("fit data.npz --fit-samples 500 --out part") == 0
    assert "800 samples: 500 were fitted, the others placed" in capsys.readouterr().out
    assert len((folder / "part" / "coordinates.csv").read_text().splitlines()) == 801
    message = refusal("fit data.npz --fit-samples 2", folder, capsys)
    assert "error: --fit-samples must be 'auto' or a whole number in [4" in message


def test_a_dry_run_says_what_it_costs_and_writes_nothing(data, folder, capsys):
    assert manifactor("fit data.npz --dry-run") == 0
    said, _, *table = capsys.readouterr().out.splitlines()
    assert said.startswith("The fit will take about 0.3 GB and ")
    parts = [line.split()[0] for line in table]
    assert parts == ["part", "reading", "fitting", "writing"]
    assert sorted(path.name for path in folder.iterdir()) == ["data.npz"]


def test_a_dry_run_of_several_inputs_has_a_line_for_each(data, folder, capsys):
    (folder / "other.npz").write_bytes(data.read_bytes())
    assert manifactor("fit data.npz other.npz --dry-run --fit-samples 400") == 0
    said, _, *table = capsys.readouterr().out.splitlines()
    assert " workers, and " in said or cores() == 1
    assert [line.split()[0] for line in table] == ["view", "data", "other"]
    assert sorted(path.name for path in folder.iterdir()) == ["data.npz", "other.npz"]


def test_the_run_of_a_link_has_the_name_of_the_link(data, folder, capsys):
    (folder / "link.npz").symlink_to(data)
    assert ".link-run.stages" in refusal("fit link.npz --resume", folder, capsys)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("fit data.npz --n-factors 99", "--n-factors must be 'auto' or a whole number in [1, 6]"),
        ("fit data.npz --out /proc/run", "must be a writable folder"),
        ("fit inside/data.npz --out inside", "inside"),
        ("fit nan.csv inside/data.npz --out inside --overwrite", "lies in"),
        ("fit data.npz --cluster local", "this is one fit, which runs in one process"),
        ("fit data.npz nan.csv --cluster none.json", "none.json cannot be used: no such"),
        ("fit nan.csv", "row 2, column 1"),
        ("fit equal.csv", "at least 3"),
        ("fit one.csv", "to show a product; got 1 sample. Add samples."),
        ("fit data.npz data.npz --dry-run", "must have different names"),
        ("fit data.npz data.npz --reuse run", "one input and one view; got 2"),
        ("fit data.npz inside/data.npz --resume", "no checkpoint to resume in .data"),
        ("fit data.npz --resume --reuse run", "pass only one of them"),
        ("fit data.npz --resume", ".data-run.stages"),
        ("fit data.npz --reuse nosuch", "nosuch is not one"),
        ("fit data.npz --reuse . --dry-run", ". is not one"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(data, folder, capsys, arguments, message):
    (folder / "nan.csv").write_text("1,2\n3,4\n5,nan\n6,7\n8,9\n")
    (folder / "equal.csv").write_text("1,2\n" * 10)
    (folder / "one.csv").write_text("1,2\n")
    (folder / "inside").mkdir()
    (folder / "inside" / "views.csv").write_text("view\n")
    (folder / "inside" / "data.npz").write_bytes(data.read_bytes())
    assert message in refusal(arguments, folder, capsys)


def test_a_fit_too_large_for_memory_is_bad_input(data, folder, capsys, monkeypatch):
    monkeypatch.setattr("manifactor.operators.forecast.available_memory", lambda: 1e6)
    message = refusal("fit data.npz --dry-run", folder, capsys)
    assert "the fit must fit into memory" in message


@pytest.mark.slow
def test_a_stopped_fit_is_resumed(data, folder, capsys, monkeypatch, every_stage_is_long):
    with monkeypatch.context() as patch:
        interrupt_at("factors", 1.0, patch)
        assert manifactor("fit data.npz --out run") == 130
    expected = "interrupted; checkpoints are kept; repeat the command with --resume"
    assert expected in capsys.readouterr().err
    assert not (folder / "run").exists()
    assert (folder / ".run.stages" / "spectrum.npz").is_file()
    assert manifactor("fit data.npz --out run --resume") == 0
    assert list(record_of(folder / "run")["seconds"]) == ["factors"]
    assert not (folder / ".run.stages").exists()
    assert "--resume" in refusal("fit data.npz --out run2 --resume", folder, capsys)


@pytest.mark.skipif(
    not hasattr(signal, "pthread_sigmask"), reason="interrupts are sent another way on this system"
)
@pytest.mark.slow
def test_a_running_fit_ends_in_the_stage_in_which_it_is_interrupted(folder, rng):
    # So many samples are filtered by several threads, for seconds, between two calls
    # of the progress bars: the interrupt must be answered before the next call.
    np.save(folder / "many.npy", rng.uniform(size=(30_000, 2)))
    line = ["fit", "many.npy", "--fit-samples", "all"]
    with subprocess.Popen(
        [sys.executable, "-c", TELLING, *line], cwd=folder, stderr=-1, text=True
    ) as fit:
        try:
            said = wait_for("spectrum 0.0\n", fit.stderr)
            fit.send_signal(signal.SIGINT)
            _, after = fit.communicate(timeout=300)  # guards against a hang only
        finally:
            fit.kill()
    assert fit.returncode == 130, said + after
    assert after == "manifactor: interrupted; no partial output was left.\n"
    assert [path.name for path in folder.iterdir()] == ["many.npy"]


# The command, with its progress as lines on standard error. On the checkpoints' clock no
# time passes: on a busy machine a stage might otherwise be long enough to be kept.
TELLING = """
import sys
from types import SimpleNamespace
from manifactor.__main__ import main
from manifactor._support.progress import ProgressBars
from manifactor.runs import archive

archive.time = SimpleNamespace(monotonic=lambda: 0.0)

def tell(self, stage, fraction):
    print(stage, fraction, file=sys.stderr, flush=True)

ProgressBars.__call__ = tell
sys.exit(main())
"""


def wait_for(line, stream):
    """Read lines up to this one; what was read."""
    said = ""
    while not said.endswith(line):
        read = stream.readline()
        assert read, f"ended without {line!r}: {said}"
        said += read
    return said
