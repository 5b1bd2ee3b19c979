"""What may be written, and what is never replaced."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

from manifactor._support.files import claims
from manifactor.command.outputs import require_new
from manifactor.cryoem.simulating import _name_in_project as name_in_project

from .conftest import refusal


@pytest.fixture(autouse=True)
def released():
    with claims:
        yield


def test_what_exists_is_replaced_only_when_told_and_if_it_is_ours(tmp_path):
    (tmp_path / "bins.csv").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for out, mark in ((tmp_path / "bins.csv", ""), (tmp_path, "bins.csv")):
        require_new(out, mark=mark, overwrite=True)
        with pytest.raises(ValueError, match=r"must not exist yet; .* --overwrite"):
            require_new(out, mark=mark, overwrite=False)
    others = [(tmp_path, ""), (tmp_path, "other.csv"), (tmp_path / "link", "")]
    for overwrite, (out, mark) in product([True, False], others):
        with pytest.raises(ValueError, match="was not written by this command"):
            require_new(out, mark=mark, overwrite=overwrite)


def test_names_in_star_files_are_relative_to_the_project():
    assert name_in_project(Path("sim/data")) == "sim/data"
    assert name_in_project(Path("/sim/data")) == "data"
    assert name_in_project(Path("../sim/data")) == "data"


def test_a_second_fit_into_one_folder_is_refused_at_once(folder, capsys):
    np.save(folder / "data.npy", np.eye(9))
    with FileLock(folder / ".run.manifactor.lock"):
        err = refusal("fit data.npy --out run", folder, capsys)
    assert "is writing run. Wait until it has ended, or choose another" in err
