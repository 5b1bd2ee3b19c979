import os
import stat

import pytest

from manifactor._support.files import require_writable, whole_folder, write_whole


def test_a_file_is_written_with_the_mode_of_any_new_file(tmp_path):
    path = tmp_path / "a.txt"
    write_whole(path, lambda file: file.write(b"new"))
    (tmp_path / "other").touch()
    assert path.read_bytes() == b"new"
    modes = [stat.S_IMODE(os.stat(p).st_mode) for p in (path, tmp_path / "other")]
    assert modes[0] == modes[1]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_file_that_fails_leaves_the_old_one_and_nothing_else(tmp_path, error):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail(file):
        file.write(b"half")
        raise error

    with pytest.raises(type(error)):
        write_whole(path, fail)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_takes_the_place_of_the_old_one(tmp_path):
    folder = tmp_path / "run"
    for name in ("first", "second"):
        with whole_folder(folder) as beside:
            (beside / name).touch()
        assert [path.name for path in folder.iterdir()] == [name]
        assert list(tmp_path.iterdir()) == [folder]


def test_a_folder_that_fails_leaves_the_old_one_and_nothing_else(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "old").touch()

    def interrupted():
        with whole_folder(folder) as beside:
            (beside / "half").touch()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [path.name for path in folder.iterdir()] == ["old"]
    assert list(tmp_path.iterdir()) == [folder]


def test_a_folder_that_cannot_be_replaced_is_put_back(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "old").touch()
    rename = type(folder).rename

    def only_away(self, target):
        if target == folder and not (self / "old").exists():
            raise OSError("busy")
        return rename(self, target)

    monkeypatch.setattr("manifactor._support.files.exchange", lambda *_: False)
    monkeypatch.setattr(type(folder), "rename", only_away)
    with pytest.raises(OSError, match="busy"), whole_folder(folder) as beside:
        (beside / "new").touch()
    assert [path.name for path in folder.iterdir()] == ["old"]
    assert list(tmp_path.iterdir()) == [folder]


def test_a_folder_that_does_not_exist_is_not_writable(tmp_path):
    match = r"goes into .*gone, which must be a writable folder: No such file"
    with pytest.raises(ValueError, match=match):
        require_writable(tmp_path / "gone")
    require_writable(tmp_path)
    assert not list(tmp_path.iterdir())
