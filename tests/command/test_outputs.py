"""What may be written, and what is never replaced."""

from pathlib import Path

import pytest

from manifactor.command.outputs import (
    name_in_project,
    require_new_file,
    require_new_folder,
    with_suffix,
)


def test_what_does_not_exist_may_be_written(tmp_path):
    require_new_file(tmp_path / "a.npz", overwrite=False)
    require_new_folder(tmp_path / "a", mark="bins.csv", overwrite=False)


def test_an_earlier_output_is_replaced_only_when_told(tmp_path):
    (tmp_path / "bins.csv").touch()
    for check in (
        lambda overwrite: require_new_file(tmp_path / "bins.csv", overwrite=overwrite),
        lambda overwrite: require_new_folder(
            tmp_path, mark="bins.csv", overwrite=overwrite
        ),
    ):
        check(overwrite=True)
        with pytest.raises(ValueError, match=r"must not exist yet; .* --overwrite"):
            check(overwrite=False)


@pytest.mark.parametrize("overwrite", [True, False])
def test_what_something_else_wrote_is_never_replaced(tmp_path, overwrite):
    with pytest.raises(ValueError, match="was not written by this command"):
        require_new_file(tmp_path, overwrite=overwrite)
    with pytest.raises(ValueError, match="was not written by this command"):
        require_new_folder(tmp_path, mark="bins.csv", overwrite=overwrite)


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(ValueError, match="must be a writable folder"):
        require_new_file(tmp_path / "none" / "a.npz", overwrite=True)


def test_a_suffix_is_added_once_and_replaces_nothing():
    assert with_suffix("a.npz", ".npz") == Path("a.npz")
    assert with_suffix("noise0.05", ".npz") == Path("noise0.05.npz")


def test_names_in_star_files_are_relative_to_the_project():
    assert name_in_project(Path("sim/data")) == "sim/data"
    assert name_in_project(Path("/sim/data")) == "data"
    assert name_in_project(Path("../sim/data")) == "data"
