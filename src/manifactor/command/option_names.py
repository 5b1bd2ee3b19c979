"""Messages of the library, with the options of a command for its parameters."""

import re
from argparse import ArgumentParser
from collections.abc import Mapping
from re import Match

# `name` or `name=value`, as the library writes its parameters.
PARAMETER = re.compile(r"`(\w+)(?:=([^`]+))?`")

# Parameters that the command line calls otherwise.
RENAMED = {
    "n": "n_samples",
    "bins": "n_bins",
    "snr": "signal_to_noise",
    "correlate": "view_correlation",
}


def options_of(command: ArgumentParser) -> dict[str, str]:
    """Return the options of a command by the parameters that they set."""
    # argparse has no public way to list what a parser knows.
    return {
        RENAMED.get(action.dest, action.dest): action.option_strings[-1]
        for action in command._actions
        if action.option_strings
    }


def in_options(text: str, options: Mapping[str, str]) -> str:
    """Return a message that names options where they set a parameter.

    >>> options = {"n_factors": "--n-factors", "method": "--method"}
    >>> in_options("`n_factors` must be 2 with `method='sum'`, not `X`.", options)
    '--n-factors must be 2 with --method sum, not `X`.'
    """

    def named(found: Match[str]) -> str:
        parameter, value = found.groups()
        if parameter not in options:
            return found[0]
        words = [options[parameter], *([] if value is None else [value.strip("'\"")])]
        return " ".join(words)

    return PARAMETER.sub(named, text)
