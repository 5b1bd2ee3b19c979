"""The command itself: exit codes, one-line messages, interrupts while it loads."""

import errno
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from manifactor.command.endings import DISK
from manifactor.command.main import main

from .conftest import manifactor


def python(*arguments, **options):
    """Run Python on the arguments."""
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, **options)


def test_the_version_is_printed(capsys):
    assert manifactor("--version") == 0
    assert re.fullmatch(r"manifactor \d+\.\d+\S*\n", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("problem", "code", "line"),
    [
        (ValueError("two\n lines"), 2, "error: two lines"),
        (MemoryError(), 2, "error: MemoryError: the memory that this process may use"),
        (MemoryError("Unable to allocate 9 GiB"), 2, "error: Unable to allocate 9 GiB: the mem"),
        (MemoryError("The fit needs 9 GB."), 2, "error: The fit needs 9 GB.\n"),
        (RuntimeError("can't start new thread"), 2, "error: no more threads can be"),
        (OSError(errno.EMFILE, "too many", "a.mrc"), 2, "error: too many files are op"),
        (OSError(errno.ENOMEM, "no memory"), 2, "error: the memory that this process"),
        (ImportError("a.so: failed to map segment"), 2, "error: the memory that this"),
        (PermissionError(13, "not yours", "a.npz"), 2, "error: a.npz cannot be used: not yours"),
        (OSError(errno.ENOSPC, "no space", "a.npz"), 2, "error: a.npz cannot be written: no sp"),
        (KeyboardInterrupt(), 130, "interrupted; no partial output was left."),
        (KeyboardInterrupt("half is kept"), 130, "interrupted; half is kept."),
    ],
)
def test_problems_become_one_line_and_an_exit_code(capsys, monkeypatch, problem, code, line):
    def fail(options):
        raise problem

    monkeypatch.setattr("manifactor.command.terminal.completion", fail)
    assert main(["completion", "bash"]) == code
    err = capsys.readouterr().err
    assert err.startswith(f"manifactor: {line}")
    assert err.count("\n") == 1


@pytest.mark.parametrize("kind", [TypeError, np.linalg.LinAlgError])
def test_a_mistake_in_the_program_keeps_its_traceback(monkeypatch, kind):
    def fail(options):
        raise kind

    monkeypatch.setattr("manifactor.command.terminal.completion", fail)
    with pytest.raises(kind) as error:
        main(["completion", "bash"])
    assert "Please report it with the lines above" in error.value.__notes__[0]


def test_warnings_are_one_line_on_standard_error(folder, capsys, rng):
    X = np.r_[rng.uniform(size=(200, 2)), rng.uniform(size=(100, 2)) + 9]
    np.savetxt(folder / "two.csv", X, delimiter=",")
    assert manifactor("fit two.csv --n-neighbors 10 --sense geometry") == 0
    err = capsys.readouterr().err
    assert "raise --n-neighbors" in err
    assert "n_neighbors" not in err
    expected = "warning: the neighbour graph has 2 components of 200, 100 samples"
    assert f"manifactor: {expected}" in err
    assert "Warning:" not in err


def closed_pipe():
    """Standard output that `head` has read enough of."""
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "w")


def full_disk():
    if not Path("/dev/full").exists():
        pytest.skip("no full device here")
    return open("/dev/full", "w")


@pytest.mark.parametrize(("output", "code"), [(full_disk, 2), (closed_pipe, 141)])
def test_a_text_that_is_all_that_was_asked_for_must_be_printed(
    folder, rng, monkeypatch, capsys, output, code
):
    np.save(folder / "data.npy", rng.uniform(size=(300, 2)))
    with output() as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert manifactor("fit data.npy --dry-run") == code
    problem = f"standard output cannot be written: {DISK}"
    expected = f"manifactor: error: {problem}\n" if code == 2 else ""
    assert capsys.readouterr().err == expected


# A numpy that says that it is being imported, and is imported until interrupted.
ENDLESS = "import signal; print('importing', flush=True); signal.pause()"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "pause"), reason="no POSIX signals here")
@pytest.mark.parametrize(
    ("module", "code", "line"),
    [
        ("numpy", 130, "manifactor: interrupted; no partial output was left.\n"),
        # Before the command can answer, the signal itself ends the process.
        ("socket", -signal.SIGINT, ""),
    ],
)
def test_an_interrupt_during_an_import_has_no_traceback(folder, module, code, line):
    (folder / module).mkdir()
    (folder / module / "__init__.py").write_text(ENDLESS)
    program = (
        f"import sys; sys.path.insert(0, {str(folder)!r}); "
        "from manifactor.__main__ import main; sys.exit(main())"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, "fit", "."], stdout=-1, stderr=-1, text=True
    ) as command:
        try:
            assert command.stdout.readline() == "importing\n"
            command.send_signal(signal.SIGINT)
            _, err = command.communicate(timeout=300)  # guards against a hang only
        finally:
            command.kill()
    assert (command.returncode, err) == (code, line)


@pytest.mark.parametrize("line", ["--help", "--version", "fit --help", "fit no.csv", "report no"])
def test_an_answer_that_needs_no_data_imports_no_library(folder, line):
    code = (
        "import sys; from manifactor.__main__ import main; main(); "
        "print([name for name in ('numpy', 'scipy', 'sklearn') if name in sys.modules])"
    )
    result = python("-c", code, *line.split(), cwd=folder)
    assert result.stdout.splitlines()[-1] == "[]"
    assert "no" not in line or "does not exist. Check its name" in result.stderr


WITHOUT_CRYOEM = """
import importlib.metadata, sys
known = importlib.metadata.entry_points
importlib.metadata.entry_points = lambda **how: [
    entry for entry in known(**how) if "cryoem" not in entry.value
]
sys.modules["manifactor.cryoem"] = None  # an import raises ImportError
from manifactor.__main__ import main
for line in sys.argv[1:]:
    sys.argv = ["manifactor", *line.split()]
    assert main() == 0
"""


@pytest.mark.slow
def test_tables_are_fitted_shown_and_selected_without_cryo_em(folder, data):
    lines = ["fit data.npz --sense geometry --out run", "report run"]
    lines += ["select run --factor 1 --range 0 .5 --out some.csv", "--help"]
    result = python("-c", WITHOUT_CRYOEM, *lines, cwd=folder)
    assert result.returncode == 0, result.stderr
    assert "average" not in result.stdout.partition("commands:")[2]
