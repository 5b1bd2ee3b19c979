"""Pipes, links to themselves and files without permission, wherever a file is read."""

import os
import pickle

import numpy as np
import pytest

from .conftest import refusal

STAR = "data_\nloop_\n_rlnImageName #1\n" + "".join(f"{k}@a.mrcs\n" for k in range(1, 51))


@pytest.fixture
def here(folder, rng):
    z = rng.normal(size=(50, 2))
    np.save(folder / "z.npy", z)
    (folder / "z.pkl").write_bytes(pickle.dumps(z))
    (folder / "p.star").write_text(STAR)
    for suffix in (".star", ".cs", ".mrcs", ".npy", ".csv", ".pkl"):
        os.mkfifo(folder / f"pipe{suffix}")
        (folder / f"loop{suffix}").symlink_to(f"loop{suffix}")
    (folder / "volumes").mkdir()
    os.mkfifo(folder / "volumes" / "a.mrc")
    (folder / "tables").mkdir()
    os.mkfifo(folder / "tables" / "a.parquet")
    return folder


@pytest.mark.parametrize(
    "line",
    [
        "fit pipe.star",
        "fit pipe.cs",
        "fit pipe.mrcs",
        "fit pipe.npy",
        "fit pipe.csv",
        "fit volumes",
        "fit tables",
        "fit z.pkl --particles pipe.star",
        "fit z.pkl --particles p.star --ind pipe.pkl",
        "views pipe.star",
    ],
)
def test_a_pipe_is_refused_and_not_waited_for(here, capsys, line):
    said = refusal(f"{line} --out run" * line.startswith("fit") or line, here, capsys)
    assert "is a named pipe, which is not read from" in said


@pytest.mark.parametrize(
    "line",
    [
        "fit loop.star",
        "fit loop.npy",
        "fit z.pkl --particles loop.star",
        "fit z.pkl --particles p.star --ind loop.pkl",
    ],
)
def test_a_link_to_itself_is_refused(here, capsys, line):
    said = refusal(f"{line} --out run", here, capsys)
    assert "is a link that leads back to itself" in said


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
@pytest.mark.parametrize("name", ["z.npy", "p.star"])
def test_a_file_without_permission_is_refused(here, capsys, name):
    (here / name).chmod(0)
    assert "ermission" in refusal(f"fit {name} --out run", here, capsys)
