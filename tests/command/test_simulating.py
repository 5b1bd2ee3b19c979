"""`simulate` and `demo`."""

import mrcfile
import numpy as np
import pytest
import starfile

from .conftest import manifactor, refusal


def test_simulated_truth_is_written_beside_the_samples(data):
    with np.load(data) as stored:
        assert sorted(stored) == ["X", "truth1", "truth2"]
        assert stored["X"].shape == (800, 2)


def test_all_views_are_simulated_with_their_poses(folder, capsys):
    line = "simulate molecule --views all --n 20 --snr inf --motions rigid --preferred"
    assert manifactor(f"{line} --pose-error 3 --correlate .5 --out 'all views'") == 0
    out = capsys.readouterr().out
    assert out.endswith("Next: manifactor fit 'all views/particles.star' --all-views\n")
    table = starfile.read(folder / "all views" / "particles.star")["particles"]
    truth = np.genfromtxt(folder / "all views" / "truth.csv", delimiter=",", names=True)
    error = np.abs(table["rlnAngleTilt"] - truth["tilt"])
    assert 0 < error.max() < 12
    assert not truth["angle"].any()
    with mrcfile.open(folder / "all views" / "particles.mrcs") as stack:
        assert stack.data.shape == (20, 48, 48)
        assert stack.voxel_size.x == pytest.approx(5.5)
        assert stack.is_image_stack()


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


@pytest.mark.slow
def test_the_demo_does_not_replace_another_run(data, folder, capsys):
    assert manifactor("fit data.npz --out mine") == 0
    message = refusal("demo --out mine", folder, capsys)
    assert "the demo replaces earlier demos only; mine is another run" in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("simulate tours", "must be one of"),
        ("simulate torus --out n.txt", "--out must end in .npz; got n.txt."),
        ("simulate torus --out data.npz", "must not exist yet; data.npz does"),
        ("simulate torus --sampling dense", "--sampling must be one of"),
        ("simulate molecule --structure a.pdb", "--structure and --rotor must be given"),
        ("simulate molecule --rotor A", "--structure and --rotor must be given"),
        ("simulate molecule --motions z", "--motions must be one of 'x', 'xy'; got 'z'"),
        ("simulate molecule --size 20", "stay inside"),
        ("simulate torus --snr 3", "--snr is an option for the molecule; got it with"),
        ("simulate molecule --noise 1", "--noise is an option for shapes; got it with"),
        ("simulate molecule --preferred", "--preferred is an option for --views all; got it"),
        ("simulate molecule --views all --in-plane", "--in-plane is an option for one view; got"),
        ("simulate torus --pose-error 2", "--pose-error is an option for the molecule"),
        ("simulate molecule --out mine", "mine was not written by this command"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(data, folder, capsys, arguments, message):
    (folder / "mine").mkdir()
    assert message in refusal(arguments, folder, capsys)
