"""What killed programs have left, and what running ones write."""

import os
import subprocess
import sys
import time

import pytest

from manifactor._support.files import (
    LeftoverSettings,
    _machine,
    away,
    clear_leftovers,
    is_half_replaced,
    name_beside,
    temporary,
)

pytest.importorskip("fcntl", reason="no locks here")
WRITER = """
import sys
from pathlib import Path
from manifactor._support.files import temporary
with temporary(Path("run"), folder=True), temporary(Path("a.csv")):
    print("writing", flush=True)
    sys.stdin.read()
"""


def left(folder, name, *, state="new", tag="abcdefgh"):
    """A folder as a killed program leaves it."""
    path = folder / name_beside(folder / name, state, tag)
    path.mkdir()
    (path / state).touch()
    return path


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_is_written_is_left_alone_until_its_program_is_killed(tmp_path):
    command = [sys.executable, "-c", WRITER]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=pipe) as writer:
        try:
            assert writer.stdout.readline() == b"writing\n"
            before = names(tmp_path)
            assert len(before) == 2
            assert clear_leftovers(tmp_path) == []
            assert names(tmp_path) == before
        finally:
            writer.kill()
    assert names(tmp_path) == before
    assert clear_leftovers(tmp_path) == []
    assert names(tmp_path) == []


def test_what_this_process_writes_is_left_alone(tmp_path):
    with temporary(tmp_path / "run", folder=True) as folder:
        clear_leftovers(tmp_path)
        assert folder.is_dir()
    assert names(tmp_path) == []


def test_what_a_user_made_is_never_removed(tmp_path):
    kept = [".run.new", ".run.old.1", ".run.stages", ".run.new.12345678", "run.new.x"]
    for name in kept:
        (tmp_path / name).mkdir()
    left(tmp_path, "run")
    clear_leftovers(tmp_path)
    assert names(tmp_path) == sorted(kept)


def test_what_another_machine_writes_is_removed_after_a_day(tmp_path):
    path = left(tmp_path, "run")
    other = tmp_path / path.name.replace(_machine(), "00000000")
    path.rename(other)
    clear_leftovers(tmp_path)
    assert other.is_dir()
    yesterday = time.time() - LeftoverSettings().idle - 1
    os.utime(other, (yesterday, yesterday))
    clear_leftovers(tmp_path)
    assert other.is_dir()  # a file in it is newer
    os.utime(other / "new", (yesterday, yesterday))
    clear_leftovers(tmp_path)
    assert names(tmp_path) == []


def test_a_replacement_that_was_interrupted_is_finished(tmp_path):
    left(tmp_path, "run", state="old")
    left(tmp_path, "run")
    assert is_half_replaced(tmp_path / "run")
    assert clear_leftovers(tmp_path) == [tmp_path / "run"]
    assert names(tmp_path) == ["run"]
    assert names(tmp_path / "run") == ["new"]
    assert not is_half_replaced(tmp_path / "run")


def test_an_output_without_successor_is_put_back(tmp_path):
    left(tmp_path, "run", state="old")
    left(tmp_path, "run", tag="another_")
    assert clear_leftovers(tmp_path) == [tmp_path / "run"]
    assert names(tmp_path) == ["run"]
    assert names(tmp_path / "run") == ["old"]


def test_a_link_that_was_moved_away_is_put_back(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    old = tmp_path / name_beside(tmp_path / "run", "old", "abcdefgh")
    old.symlink_to("elsewhere")
    assert clear_leftovers(tmp_path) == [tmp_path / "run"]
    assert names(tmp_path) == ["elsewhere", "run"]
    assert (tmp_path / "run").is_symlink()


def test_an_old_output_is_removed_once_another_is_in_its_place(tmp_path):
    (tmp_path / "run").mkdir()
    left(tmp_path, "run", state="old")
    assert clear_leftovers(tmp_path) == []
    assert names(tmp_path) == ["run"]


def test_an_old_output_is_known_by_the_name_of_its_successor(tmp_path):
    new = left(tmp_path, "run")
    assert away(tmp_path / "run", new).name == new.name.replace(".new.", ".old.")
    other = away(tmp_path / "run", tmp_path / ".run.stages").name
    assert other.startswith(".run.old.")
