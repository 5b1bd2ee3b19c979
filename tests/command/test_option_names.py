"""Messages name the options of a command, not the parameters of the library."""

import numpy as np
import pytest

from manifactor.command.arguments import flags_of
from manifactor.runs.options import FitOptions

from .conftest import manifactor, refusal


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("fit a.npy --n-functions 900", "error: --n-functions must be a whole number"),
        ("fit a.npy --bandwidth 0", "error: --bandwidth must be a number above 0"),
        (
            "fit a.npy --bandwidth local --n-neighbors all",
            "error: --bandwidth local needs a neighbour graph; got --n-neighbors all. "
            "Set --n-neighbors to a number.",
        ),
        ("simulate torus --n 0", "error: --n must be a whole number"),
        ("simulate molecule --n 3", "error: --n must be .* or take --snr inf."),
        ("simulate molecule --views all --correlate 3", "error: --correlate must be a number in"),
        ("simulate molecule --pixel-size 0", "error: --pixel-size must be a number"),
    ],
)
def test_errors_name_options(folder, capsys, line, message):
    np.save("a.npy", np.random.default_rng(0).uniform(size=(60, 2)))
    said = refusal(line, folder, capsys)
    start, _, end = message.partition(".*")
    assert said.startswith(f"manifactor: {start}")
    assert end in said


def test_warnings_name_options(folder, capsys, rng):
    X = np.r_[rng.uniform(size=(200, 2)), rng.uniform(size=(100, 2)) + 9]
    np.save("two.npy", X)
    assert manifactor("fit two.npy --n-neighbors 10 --sense geometry") == 0
    assert "Raise --n-neighbors, or work on" in capsys.readouterr().err


def test_an_option_of_another_name_is_known_by_it():
    options = flags_of(FitOptions())
    assert options["classes"] == "--class"
    assert "input" not in options
