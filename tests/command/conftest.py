"""Commands as they are typed, and what several tests are given."""

import io
import json
import pickle
import shlex
import shutil

import numpy as np
import pytest

from manifactor._support.progress import ProgressBars
from manifactor.command.main import main

from ..cryoem.star_files import loop, row

N = 600
POSE = ("rlnAngleRot", "rlnAngleTilt", "rlnAnglePsi")


class Screen(io.StringIO):
    """Standard error that is a terminal."""

    def isatty(self):
        return True


def manifactor(line):
    """Run a command as it is typed; its exit code."""
    return main(shlex.split(line))


def refusal(line, folder, capsys):
    """Run a command that must be refused: one line, exit code 2, nothing printed or written. The line."""
    before = sorted(folder.rglob("*"))
    capsys.readouterr()
    assert manifactor(line) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("manifactor: error: ")
    assert captured.err.count("\n") == 1
    assert sorted(folder.rglob("*")) == before
    return captured.err


def interrupt_at(stage, fraction, monkeypatch):
    """Interrupt fits when a stage gets that far."""

    def interrupt(self, *reached):
        if reached == (stage, fraction):
            raise KeyboardInterrupt

    monkeypatch.setattr(ProgressBars, "__call__", interrupt)


def record_of(run):
    """What run.json says."""
    return json.loads((run / "run.json").read_text())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def data(folder):
    assert manifactor("simulate rectangle --n 400 --seed 1 --out data.npz") == 0
    return folder / "data.npz"


@pytest.fixture(scope="session")
def molecule(tmp_path_factory):
    """A simulated data set, written once."""
    folder = tmp_path_factory.mktemp("molecule") / "data"
    size = "--size 54 --pixel-size 4"
    assert manifactor(f"simulate molecule --n {N} --snr 100 {size} --out {folder}") == 0
    return folder


@pytest.fixture(scope="session")
def run(molecule, tmp_path_factory):
    """The run of that data set."""
    out = tmp_path_factory.mktemp("run") / "run"
    assert manifactor(f"fit {molecule / 'particles.star'} --sense geometry --out {out}") == 0
    return out


@pytest.fixture
def latent(molecule, folder):
    """Coordinates that another program might have found, and the particles they belong to."""
    truth = truth_of(molecule)
    z = np.column_stack([truth["circle"], truth["interval"] / 20]).astype(np.float32)
    with (folder / "z.5.pkl").open("wb") as file:
        pickle.dump(z, file)
        pickle.dump(z, file)
    shutil.copy(molecule / "particles.star", folder / "original.star")
    return z


def truth_of(molecule):
    angle, x, _ = np.loadtxt(molecule / "truth.csv", delimiter=",", skiprows=1).T
    phase = np.radians(4 * angle)
    return {"circle": np.column_stack([np.cos(phase), np.sin(phase)]), "interval": x[:, None]}


def places(run):
    """Places on the factors by topology, and the factors' numbers."""
    table = np.genfromtxt(run / "coordinates.csv", delimiter=",", names=True)
    topologies = [factor["topology"] for factor in record_of(run)["factors"]]
    return {t: (table[f"factor{i}"], str(i)) for i, t in enumerate(topologies, start=1)}


@pytest.fixture(scope="session")
def numbers(run):
    """The number of each factor of that run by its topology."""
    return {topology: number for topology, (_, number) in places(run).items()}


def write_star(path, columns):
    """Write particles of stack.mrcs with columns of numbers, images of 16 pixels of 5 A."""
    optics = "rlnOpticsGroup rlnImagePixelSize rlnVoltage rlnSphericalAberration"
    table = np.column_stack(list(columns.values())).astype(str)
    rows = [row(f"{i}@stack.mrcs", "1", *values) for i, values in enumerate(table, start=1)]
    labels = " ".join(["rlnImageName", "rlnOpticsGroup", *columns])
    optics = loop("optics", f"{optics} rlnAmplitudeContrast", [row("1 5.0 300 2.7 0.1")])
    with open(path, "w") as file:
        file.write(optics + loop("particles", labels, rows))
