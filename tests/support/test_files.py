import os
import stat
from pathlib import Path

import pytest

from manifactor._support import files
from manifactor._support.files import (
    require_place,
    require_writable,
    whole_folder,
    write_new,
    write_whole,
)


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


@pytest.mark.parametrize("at_once", [True, False])
def test_a_folder_that_is_replaced_leaves_no_trace(tmp_path, monkeypatch, at_once):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "old").touch()
    if not at_once:
        monkeypatch.setattr(files, "exchange", lambda *_: False)
    with whole_folder(folder) as beside:
        (beside / "new").touch()
    assert [path.name for path in folder.iterdir()] == ["new"]
    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize("at_once", [True, False])
def test_a_link_to_a_folder_is_replaced_and_the_folder_kept(tmp_path, monkeypatch, at_once):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").symlink_to("elsewhere")
    if not at_once:
        monkeypatch.setattr(files, "exchange", lambda *_: False)
    with whole_folder(tmp_path / "run") as beside:
        (beside / "new").touch()
    assert not (tmp_path / "run").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "run"]


def test_linux_and_macos_exchange_folders_in_one_step(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
        (folder / folder.name).touch()
    if not files.exchange(one, other):
        pytest.skip("this file system cannot")
    assert (one / "other").is_file()
    assert (other / "one").is_file()
    assert not files.exchange(one, tmp_path / "gone")


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="no /proc here")
def test_files_are_on_the_disk_before_they_get_their_names(tmp_path, monkeypatch):
    done = []
    fsync, replace, rename = os.fsync, os.replace, type(tmp_path).rename

    def synced(descriptor):
        done.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    def named(source, target):
        done.append(f"named {target.name}")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", named)
    monkeypatch.setattr(
        type(tmp_path),
        "rename",
        lambda self, target: done.append("renamed") or rename(self, target),
    )
    write_whole(tmp_path / "a.txt", lambda file: file.write(b"new"))
    kinds = [Path(each).name.partition(".new.")[0] for each in done]
    assert kinds == [".a.txt", "named a.txt", tmp_path.name]
    done.clear()
    with whole_folder(tmp_path / "run") as beside:
        (beside / "b.txt").write_text("new")
    assert [Path(each).name.partition(".new.")[0] for each in done] == [
        ".run",
        "b.txt",
        "renamed",
        tmp_path.name,
    ]


@pytest.mark.parametrize("links", [True, False])
def test_a_new_file_never_takes_a_name_that_exists(tmp_path, monkeypatch, links):
    def none(*_):
        raise PermissionError(1, "Operation not permitted")

    if not links:
        monkeypatch.setattr(os, "link", none)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    (tmp_path / "file").write_text("old")
    for name in ("link", "file"):
        with pytest.raises(FileExistsError):
            write_new(tmp_path / name, lambda file: file.write(b"new"))
    write_new(tmp_path / "new", lambda file: file.write(b"new"))
    assert (tmp_path / "new").read_text() == "new"
    assert (tmp_path / "file").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link", "new"]


@pytest.mark.parametrize("name", ["x" * 250, "null\0", "..", "file/run", "gone/run"])
def test_a_name_that_cannot_be_written_is_refused(tmp_path, name):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"output .*Choose another") as found:
        require_place(tmp_path / name, remedy="Choose another --out.")
    assert "\n" not in str(found.value)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
