"""Completion: what a shell offers where the tab key is pressed."""

import os
import subprocess
import sys

import pytest

from manifactor.command.arguments import GRAMMAR

from .conftest import manifactor


def offered(line):
    """Words that a shell completes the last word of a line to, as argcomplete asks for them."""
    read, write = os.pipe()
    asked = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_STDOUT_FILENAME": f"/dev/fd/{write}"}
    asked |= {"COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_IFS": "\n"}
    subprocess.run(
        [sys.executable, "-m", "manifactor"], env={**os.environ, **asked}, pass_fds=[write]
    )
    os.close(write)
    with os.fdopen(read) as file:
        return [word.strip() for word in file.read().split("\n")]


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="no file descriptors by name here")
def test_commands_options_and_values_are_completed():
    assert set(offered("manifactor ")) >= set(GRAMMAR)
    assert offered("manifactor ave") == ["average"]
    assert "--all-views" in offered("manifactor fit data.npz --a")
    assert offered("manifactor fit --sense g") == ["geometry"]
    assert offered("manifactor export run --to re") == ["recovar", "relion"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_to_ask_the_program(shell, capsys):
    assert manifactor(f"completion {shell}") == 0
    text = capsys.readouterr().out
    assert "_ARGCOMPLETE" in text
    assert "manifactor" in text
