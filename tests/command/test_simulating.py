"""`simulate` and `demo`."""

import numpy as np
import pytest

from .conftest import manifactor


def test_simulated_truth_is_written_beside_the_samples(data):
    with np.load(data) as stored:
        assert sorted(stored) == ["X", "truth1", "truth2"]
        assert stored["X"].shape == (400, 2)


@pytest.mark.slow
def test_the_demo_finds_both_motions_and_can_be_repeated(folder, capsys):
    assert manifactor("demo --n 300") == 0
    out = capsys.readouterr().out
    assert "Factor 1 is the true stretch: correlation 0.9" in out
    assert "Factor 2 is the true rotation: correlation 0.9" in out
    assert "demo-run/average-factor1/averages.gif and demo-run/average-factor2/averages.gif" in out
    for name in ("particles.star", "report.html", "average-factor2/averages.mrcs"):
        assert (folder / "demo-run" / name).is_file()
    # An earlier demo is no reason to refuse another one.
    assert manifactor("demo --n 1") == 2
    assert "error: --n must be" in capsys.readouterr().err
