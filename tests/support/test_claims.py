"""Outputs that one command at a time may write."""

import os
import subprocess
import sys

import pytest

from manifactor._support.claims import claim, claims_released

pytest.importorskip("fcntl", reason="no locks here")
OWNER = """
import sys
from pathlib import Path
from manifactor._support.claims import claim, claims_released
with claims_released():
    claim(Path("run"))
    print("claimed", flush=True)
    sys.stdin.read()
"""


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
        finally:
            owner.kill()
    # Its file is left, and nobody holds its lock.
    assert [path.name for path in tmp_path.iterdir()] == [".run.manifactor.lock"]
    with claims_released():
        claim(tmp_path / "run")
        claim(tmp_path / "run")  # a second time by the same command
        text = (tmp_path / ".run.manifactor.lock").read_text()
        assert text.startswith(f"process {os.getpid()} on ")
    assert list(tmp_path.iterdir()) == []


def test_a_lock_file_of_somebody_else_stops_nobody(tmp_path, monkeypatch):
    def refused(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("manifactor._support.claims.lock", refused)
    with claims_released():
        claim(tmp_path / "run")


def test_where_there_are_no_locks_nothing_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("manifactor._support.claims.lock", lambda path: None)
    with claims_released():
        claim(tmp_path / "run")
        assert list(tmp_path.iterdir()) == []
