"""The grammar: defaults, help, values that look like options, completion."""

import argparse
import os
import re
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from manifactor import ManifoldFactorizer
from manifactor.command.arguments import command_parser, commands, parse_arguments
from manifactor.cryoem.export import BRIDGES
from manifactor.operators.neighbors import SEARCHES
from manifactor.runs.options import FitOptions, add_options, output_name
from manifactor.runs.run import SELECTIONS
from manifactor.samples.preparation import PREPARATIONS
from manifactor.settings import METHOD_NAMES, SENSE_NAMES

from .conftest import manifactor


def parsed(line):
    return vars(parse_arguments(line.split())[1])


def test_the_defaults_of_a_fit_are_those_of_the_estimator():
    parameters = FitOptions().parameters
    usual = ManifoldFactorizer().get_params()
    assert parameters == {name: usual[name] for name in parameters}
    assert vars(replace(FitOptions(), input=("a.npy",))) == parsed("fit a.npy")


def test_the_choices_of_options_are_those_of_the_library():
    actions = {action.dest: action for action in every_action()}
    assert actions["method"].choices == list(METHOD_NAMES)
    assert actions["sense"].choices == ["auto", *SENSE_NAMES]
    assert actions["preparation"].choices == list(PREPARATIONS)
    assert actions["neighbors"].choices == ["auto", *SEARCHES]
    assert actions["to"].choices == list(BRIDGES)
    (endings,) = (a.help for a in every_action() if "chooses the format" in (a.help or ""))
    assert endings.endswith(", ".join(SELECTIONS))


@pytest.mark.parametrize("command", list(commands()))
def test_the_help_names_every_default_and_fits_into_80_columns(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert manifactor(f"{command} --help") == 0
    text = capsys.readouterr().out
    words = " ".join(text.split())
    required = {"select": "run --out a.csv", "average": "run --factor 1", "demo": ""}
    required |= {"export": "run --to relion --factor 1", "completion": "bash"}
    arguments = parsed(f"{command} {required.get(command, 'X')}")
    given = ("run", "input", "shape", "to", "factor", "shell")
    for name, value in arguments.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, bool) or name in given:
            continue
        if isinstance(value, int | float | str) and name != "out":
            assert f"(default: {value})" in words, option
    assert all(len(line) <= 80 for line in text.splitlines())
    assert re.search(r"\n\n[A-Z][^\n]+", text), "a description follows the usage"


def test_no_option_takes_what_is_no_number_or_infinite():
    taken = set()
    for name, command in commands().items():
        parser = argparse.ArgumentParser()
        add_options(parser, command.options)
        for action in parser._actions:
            if action.type in (None, output_name):  # text
                continue
            with pytest.raises((ValueError, argparse.ArgumentTypeError)):
                action.type("nan")
            with suppress(ValueError, argparse.ArgumentTypeError):
                taken.add((name, action.dest, action.type("inf")))
    assert taken == {("simulate", "snr", np.inf)}  # images without noise


def every_action():
    """Every argument of every command."""
    parsers = command_parser()._subparsers._group_actions[0].choices
    return [action for parser in parsers.values() for action in parser._actions]


def test_help_names_the_choices_that_its_placeholder_hides():
    for action in every_action():
        if action.metavar and action.choices:
            assert all(choice in action.help for choice in action.choices)


# What a shell offers where the tab key is pressed.


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


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="no file descriptors by name here")
def test_commands_options_and_values_are_completed():
    assert set(offered("manifactor ")) >= set(commands())
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
