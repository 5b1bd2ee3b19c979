"""Signals that end a command: the exit code, one line, and nothing that is left behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from joblib import cpu_count

from manifactor._support.files import clear_leftovers
from manifactor.command import endings
from manifactor.command.main import main

FIT = "fit a.npy b.npy c.npy --out run"
posix = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="processes are counted in /proc"
)
# A computation in C that takes minutes, in which Python calls no handler.
STUCK = """
import hashlib
from pathlib import Path
from manifactor._support.files import whole_folder
from manifactor.command.endings import end_by_signals
with end_by_signals(), whole_folder(Path("out")):
    print("computing", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)
"""


def of_session(number):
    """Processes of a session that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, session = (path / "stat").read_text().rsplit(")")[1].split()[:4]
        except OSError:  # it ended meanwhile
            continue
        if int(session) == number and state != "Z":
            found.append(path.name)
    return found


def wait_until(fact, *, limit=300):
    """Wait for a fact; the limit guards against a hang only."""
    start = time.monotonic()
    while not fact():
        assert time.monotonic() - start < limit
        time.sleep(0.02)


def started(*command, cwd):
    return subprocess.Popen(
        [sys.executable, *command],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Under nohup the tests, and what they start, ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )


@posix
@pytest.mark.slow
def test_a_signal_ends_all_processes_of_a_command(tmp_path):
    # So many that none is finished before the signal comes.
    for letter in "abc":
        X = np.random.default_rng(0).uniform(size=(8000, 3))
        np.save(tmp_path / f"{letter}.npy", X)
    n_workers = min(cpu_count(), 3)
    with started("-m", "manifactor", *FIT.split(), cwd=tmp_path) as command:
        try:
            wait_until((tmp_path / ".run.stages").exists)
            # This one, the workers, and two that remove what the others leave.
            n_processes = 1 if n_workers == 1 else 3 + n_workers
            wait_until(lambda: len(of_session(command.pid)) >= n_processes)
            time.sleep(0.5)  # for the last one to be told what to do
            # As a terminal does, to all processes.
            os.killpg(command.pid, signal.SIGHUP)
            out, err = command.communicate(timeout=300)
            wait_until(lambda: not of_session(command.pid), limit=30)
        finally:
            command.kill()
    assert command.returncode == 128 + signal.SIGHUP, err
    assert out == ""
    assert err.startswith("manifactor: ended by SIGHUP; ")
    assert "no partial output was left" in err
    assert err.count("\n") == 1
    kept = {path.name for path in tmp_path.iterdir()} - {"a.npy", "b.npy", "c.npy"}
    assert kept == set()


@posix
@pytest.mark.slow
def test_a_second_signal_ends_a_computation_in_c_and_the_next_command_clears_up(tmp_path):
    with started("-c", STUCK, cwd=tmp_path) as command:
        try:
            assert command.stdout.readline() == "computing\n"
            # A signal before the computation in C has begun would end the process in Python.
            process = psutil.Process(command.pid)
            begun = process.cpu_times().user
            wait_until(lambda: process.cpu_times().user > begun + 0.2)
            # One signal may come twice, as that of `timeout` does.
            for name in ("SIGTERM", "SIGTERM"):
                command.send_signal(getattr(signal, name))
            time.sleep(2 * endings.ONE_SIGNAL)
            assert command.poll() is None
            command.send_signal(signal.SIGINT)
            _, err = command.communicate(timeout=30)
        finally:
            command.kill()
    assert command.returncode == 130, err
    assert err == ""
    assert len(list(tmp_path.iterdir())) == 1
    clear_leftovers(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_handlers_are_restored_and_ignored_signals_stay_ignored():
    assert threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGHUP)
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as under nohup
        with endings.end_by_signals():
            assert signal.getsignal(signal.SIGTERM) is not before[0]
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is before[0]
    finally:
        signal.signal(signal.SIGHUP, before[1])


def test_a_thread_and_a_caller_of_main_keep_their_handlers(monkeypatch):
    seen = []

    def look(options=None):
        seen.append(signal.getsignal(signal.SIGTERM))

    def in_thread():
        with endings.end_by_signals():
            look()

    monkeypatch.setattr("manifactor.command.terminal.completion", look)
    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()
    assert main(["completion", "bash"]) == 0
    assert seen == 2 * [signal.getsignal(signal.SIGTERM)]
