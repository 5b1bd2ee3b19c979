"""The grammar: defaults, help, values that look like options."""

import argparse
import re
from contextlib import suppress

import numpy as np
import pytest

from manifactor import ManifoldFactorizer
from manifactor.command.arguments import GRAMMAR, command_parser, parse_arguments
from manifactor.command.fit_options import SETTINGS
from manifactor.command.main import COMMANDS
from manifactor.command.options import output_name

from .conftest import manifactor


def parsed(line):
    return vars(parse_arguments(line.split(), COMMANDS))


def test_every_command_has_a_grammar():
    assert list(GRAMMAR) == list(COMMANDS)
    assert parsed("report run")["command"] is COMMANDS["report"]


def test_the_defaults_of_a_fit_are_those_of_the_estimator():
    arguments = parsed("fit data.npz")
    defaults = ManifoldFactorizer().get_params()
    assert {name: arguments[name] for name in SETTINGS} == {
        name: defaults[name] for name in SETTINGS
    }


@pytest.mark.parametrize("command", list(GRAMMAR))
def test_the_help_names_every_default_and_fits_into_80_columns(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert manifactor(f"{command} --help") == 0
    text = capsys.readouterr().out
    words = " ".join(text.split())
    required = {
        "select": "run --out a.csv",
        "average": "run --factor 1",
        "export": "run --to relion --factor 1",
        "demo": "",
        "completion": "bash",
    }
    arguments = parsed(f"{command} {required.get(command, 'X')}")
    given = ("question", "run", "input", "shape", "to", "factor", "recipes", "shell")
    for name, value in arguments.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, bool) or name in given:
            continue
        if isinstance(value, int | float | str) and name not in ("out", "command"):
            assert f"(default: {value})" in words, option
    assert all(len(line) <= 80 for line in text.splitlines())
    assert re.search(r"\n\n[A-Z][^\n]+", text), "a description follows the usage"


def test_a_direction_may_start_with_a_minus():
    assert parsed("fit a.star --view -180,120 --view=0,-90")["view"] == [
        (-180.0, 120.0),
        (0.0, -90.0),
    ]
    assert parsed("average run --factor 1 --view -1.5,2")["view"] == (-1.5, 2.0)


def test_a_range_on_a_circle_may_start_with_a_minus():
    arguments = parsed("select run --factor 2 --range -20 20 --out a.csv")
    assert arguments["factor"] == [2]
    assert arguments["range"] == [[-20.0, 20.0]]


def test_no_option_takes_what_is_no_number_or_infinite():
    taken = set()
    for name, grammar in GRAMMAR.items():
        parser = argparse.ArgumentParser()
        grammar.add_options(parser)
        for action in parser._actions:
            if action.type in (None, output_name):  # text
                continue
            with pytest.raises((ValueError, argparse.ArgumentTypeError)):
                action.type("nan")
            with suppress(ValueError, argparse.ArgumentTypeError):
                taken.add((name, action.dest, action.type("inf")))
    assert taken == {("simulate", "snr", np.inf)}  # images without noise


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("simulate torus --noise -1", "must be a finite number of at least 0; got '-1'"),
        ("simulate molecule --snr 0", "must be a number above 0; got '0'"),
        ("select run --out a.csv --min-confidence 2", "in [0, 1]; got '2'"),
        ("fit a.npy --seed -1", "must be a whole number in [0, 4294967295]; got '-1'"),
        ("views a.star --rows 0", "must be a whole number of at least 1; got '0'"),
    ],
)
def test_numbers_outside_of_their_limits_are_refused(capsys, line, message):
    with pytest.raises(SystemExit):
        parsed(line)
    assert message in capsys.readouterr().err


def test_numbers_and_words_are_told_apart():
    line = "fit a.npy --n-factors 2 --n-neighbors all --bandwidth .5 --fit-samples 900"
    arguments = parsed(line)
    chosen = [arguments[name] for name in ("n_factors", "n_neighbors", "bandwidth")]
    assert chosen == [2, "all", 0.5]
    assert arguments["fit_samples"] == 900


def every_action():
    """Every argument of every command."""
    commands = command_parser(COMMANDS)._subparsers._group_actions[0].choices
    return [action for command in commands.values() for action in command._actions]


def test_no_help_names_a_default_twice():
    for action in every_action():
        ends = re.findall(r"\(default: [^()]+\) \(default: ", action.help or "")
        assert ends == [], action.option_strings


def test_help_names_the_choices_that_its_placeholder_hides():
    for action in every_action():
        if action.metavar and action.choices:
            assert all(choice in action.help for choice in action.choices)
