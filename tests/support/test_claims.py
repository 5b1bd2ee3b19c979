"""Outputs that one command at a time may write."""

import os
import socket
import subprocess
import sys

import pytest

from manifactor._support.files import ClaimSettings, claim, claims_released, clear_locks, lock

pytest.importorskip("fcntl", reason="no locks here")
OWNER = """
import sys
from pathlib import Path
from manifactor._support.files import claim, claims_released
with claims_released():
    claim(Path("run"))
    print("claimed", flush=True)
    sys.stdin.read()
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_an_output_that_another_process_writes_is_refused_until_it_is_killed(tmp_path):
    command = [sys.executable, "-c", OWNER]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=pipe) as owner:
        try:
            assert owner.stdout.readline() == b"claimed\n"
            who = rf"another command \(process {owner.pid} on .*is writing .*run\. Wait"
            with claims_released(), pytest.raises(ValueError, match=who):
                claim(tmp_path / "run")
            with claims_released():
                claim(tmp_path / "other")
                clear_locks(tmp_path)
                assert names(tmp_path) == [".other.manifactor.lock", ".run.manifactor.lock"]
        finally:
            owner.kill()
    # Its file is left, and nobody holds its lock.
    assert names(tmp_path) == [".run.manifactor.lock"]
    with claims_released():
        claim(tmp_path / "run")
        claim(tmp_path / "run")  # a second time by the same command
        text = (tmp_path / ".run.manifactor.lock").read_text()
        assert text.startswith(f"process {os.getpid()} on ")
    assert list(tmp_path.iterdir()) == []


def test_a_lock_file_of_somebody_else_stops_nobody(tmp_path, monkeypatch):
    def refused(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("manifactor._support.files.lock", refused)
    with claims_released():
        claim(tmp_path / "run")


def test_where_there_are_no_locks_nothing_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("manifactor._support.files.lock", lambda path: None)
    with claims_released():
        claim(tmp_path / "run")
        assert list(tmp_path.iterdir()) == []


def states(folder):
    """What would change if anything in a folder were replaced or written to."""
    found = {path: path.lstat() for path in folder.rglob("*")}
    return {path: (each.st_ino, each.st_mtime_ns) for path, each in found.items()}


def link(path):
    path.with_name("victim").write_text("kept")
    path.symlink_to("victim")


def lost_link(path):
    path.symlink_to("victim")


def folder(path):
    path.mkdir()
    (path / "victim").write_text("kept")


@pytest.mark.parametrize(
    ("make", "kind"),
    [(link, "a link"), (lost_link, "a link"), (folder, "a folder"), (os.mkfifo, "a named pipe")],
)
def test_what_is_no_lock_file_is_refused_and_left_alone(tmp_path, make, kind):
    path = tmp_path / ".run.manifactor.lock"
    make(path)
    before = states(tmp_path)
    message = rf"run\.manifactor\.lock must be a lock file .* it is {kind}\. Remove it\."
    with pytest.raises(ValueError, match=message), claims_released():
        claim(tmp_path / "run")
    assert states(tmp_path) == before


def test_a_link_that_appears_after_the_check_is_not_followed(tmp_path, monkeypatch):
    (tmp_path / "victim").write_text("kept")
    (tmp_path / ".run.manifactor.lock").symlink_to("victim")
    monkeypatch.setattr("manifactor._support.files._require_file", lambda path: None)
    with pytest.raises(OSError, match=r"run\.manifactor\.lock"), claims_released():
        claim(tmp_path / "run")
    assert (tmp_path / "victim").read_text() == "kept"


def test_links_are_not_locked(tmp_path):
    (tmp_path / "victim").touch()
    (tmp_path / "link").symlink_to("victim")
    with pytest.raises(OSError, match="link"):
        lock(tmp_path / "link")


def test_windows_which_has_no_such_flags_claims_nothing_and_follows_no_link(tmp_path, monkeypatch):
    monkeypatch.setattr("manifactor._support.files.fcntl", None)
    monkeypatch.setattr("manifactor._support.files.NO_DETOUR", 0)
    with claims_released():
        claim(tmp_path / "run")
        assert list(tmp_path.iterdir()) == []
    (tmp_path / ".run.manifactor.lock").symlink_to("victim")
    with pytest.raises(ValueError, match="it is a link"):
        claim(tmp_path / "run")
    assert not (tmp_path / "victim").exists()


HERE = f"process 123 on {socket.gethostname()}"


@pytest.mark.parametrize("text", [HERE, ""])
def test_the_lock_file_of_a_killed_command_is_removed(tmp_path, text):
    (tmp_path / ".run.manifactor.lock").write_text(text)
    clear_locks(tmp_path)
    assert names(tmp_path) == []


@pytest.mark.parametrize("text", [f"{HERE}.other", "process 123 on other", "notes"])
def test_a_lock_file_of_another_machine_stays(tmp_path, text):
    (tmp_path / ".run.manifactor.lock").write_text(text)
    clear_locks(tmp_path)
    assert names(tmp_path) == [".run.manifactor.lock"]


@pytest.mark.parametrize("make", [link, lost_link, folder, os.mkfifo])
def test_what_is_no_lock_file_is_never_removed(tmp_path, make):
    make(tmp_path / ".run.manifactor.lock")
    before = states(tmp_path)
    clear_locks(tmp_path)
    assert states(tmp_path) == before


def test_lock_files_stay_where_there_are_no_locks(tmp_path, monkeypatch):
    (tmp_path / ".run.manifactor.lock").write_text(HERE)
    monkeypatch.setattr("manifactor._support.files.fcntl", None)
    clear_locks(tmp_path)
    assert names(tmp_path) == [".run.manifactor.lock"]


def test_a_lock_that_is_held_only_to_remove_it_refuses_nobody(tmp_path, monkeypatch):
    path = tmp_path / ".run.manifactor.lock"
    path.write_text(HERE)
    other = lock(path)

    def removed(seconds):
        path.unlink()
        os.close(other)

    monkeypatch.setattr("manifactor._support.files.time.sleep", removed)
    with claims_released():
        claim(tmp_path / "run", settings=ClaimSettings(patience=60.0))
        assert path.read_text() == f"process {os.getpid()} on {socket.gethostname()}"
