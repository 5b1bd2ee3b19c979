"""Files and folders: whole or absent, written by one command at a time, read to their end."""

import os
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from manifactor._support import files
from manifactor._support.files import (
    claim,
    claims,
    numeric_order,
    require_place,
    require_regular_file,
    whole_folder,
    write_new,
    write_whole,
)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


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


def test_a_folder_takes_the_place_of_the_old_one_unless_it_fails(tmp_path):
    folder = tmp_path / "run"
    for name in ("first", "second"):
        with whole_folder(folder) as beside:
            (beside / name).touch()
        assert names(folder) == [name]
    with suppress(KeyboardInterrupt), whole_folder(folder) as beside:
        (beside / "half").touch()
        raise KeyboardInterrupt
    assert names(folder) == ["second"]
    assert names(tmp_path) == ["run"]


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
    renamed = lambda self, target: done.append("renamed") or rename(self, target)  # noqa: E731
    monkeypatch.setattr(type(tmp_path), "rename", renamed)
    write_whole(tmp_path / "a.txt", lambda file: file.write(b"new"))
    kinds = [Path(each).name.partition(".new.")[0] for each in done]
    assert kinds == [".a.txt", "named a.txt", tmp_path.name]
    done.clear()
    with whole_folder(tmp_path / "run") as beside:
        (beside / "b.txt").write_text("new")
    kinds = [Path(each).name.partition(".new.")[0] for each in done]
    assert kinds == [".run", "b.txt", "renamed", tmp_path.name]


def test_a_new_file_never_takes_a_name_that_exists(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    (tmp_path / "file").write_text("old")
    for name in ("link", "file"):
        with pytest.raises(FileExistsError):
            write_new(tmp_path / name, lambda file: file.write(b"new"))
    write_new(tmp_path / "new", lambda file: file.write(b"new"))
    assert (tmp_path / "new").read_text() == "new"
    assert (tmp_path / "file").read_text() == "old"
    assert names(tmp_path) == ["file", "link", "new"]


@pytest.mark.parametrize("name", ["x" * 250, "null\0", "..", "file/run", "gone/run"])
def test_a_name_that_cannot_be_written_is_refused(tmp_path, name):
    require_place(tmp_path / "run")
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"output .*Choose another") as found:
        require_place(tmp_path / name, remedy="Choose another --out.")
    assert "\n" not in str(found.value)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


OWNER = """
import sys
from pathlib import Path
from manifactor._support.files import claim, claims, temporary
with claims:
    claim(Path("run"))
    with temporary(Path("run"), folder=True), temporary(Path("run")):
        print("claimed", flush=True)
        sys.stdin.read()
"""


@pytest.mark.medium
def test_an_output_that_another_process_writes_is_refused_until_it_is_killed(tmp_path):
    command = [sys.executable, "-c", OWNER]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=pipe) as owner:
        try:
            assert owner.stdout.readline() == b"claimed\n"
            who = rf"another command \(process {owner.pid} on .*is writing .*run\. Wait"
            with claims, pytest.raises(ValueError, match=who):
                claim(tmp_path / "run")
            with claims:
                claim(tmp_path / "other")
        finally:
            owner.kill()
    # Its files are left, and nobody holds its lock.
    assert len(names(tmp_path)) == 3
    with claims:
        claim(tmp_path / "run")
        claim(tmp_path / "run")  # a second time by the same command
        assert names(tmp_path) == [".run.manifactor.lock"]
    assert names(tmp_path) == []


def left(folder, name, state):
    """A folder as a killed program leaves it."""
    path = folder / f".{name}.{state}.abcdefgh"
    path.mkdir()
    (path / state).touch()


KILLED = """
import os, sys
from pathlib import Path
from manifactor._support import files
operation, at_once = int(sys.argv[1]), sys.argv[2] == "True"
if not at_once:
    files.exchange = lambda *_: False
def count(event, _):
    global operation
    operation -= event in ("os.rename", "shutil.rmtree")
    if operation == 0:
        os._exit(9)
sys.addaudithook(count)
files.replace_folder(Path(".run.new.abcdefgh"), Path("run"))
"""


@pytest.mark.parametrize(("operation", "at_once"), [(1, True), (2, True), (2, False), (3, False)])
def test_a_kill_while_a_folder_is_replaced_loses_no_run(tmp_path, operation, at_once):
    run = tmp_path / "run"
    run.mkdir()
    (run / "before").touch()
    left(tmp_path, "run", "new")
    if at_once and not files.exchange(run, run):
        pytest.skip("no exchange of names here")
    command = [sys.executable, "-c", KILLED, str(operation), str(at_once)]
    assert subprocess.run(command, cwd=tmp_path).returncode == 9
    # Only between two renames there is no run, until the next command.
    between = (operation, at_once) == (2, False)
    assert run.is_dir() is not between
    with claims:
        claim(run)
    assert names(run) == (["before"] if between or operation == 1 else ["new"])
    assert names(tmp_path) == ["run"]


def test_only_what_is_left_of_the_output_itself_is_removed(tmp_path):
    (tmp_path / "run").mkdir()
    kept = [".run.new", ".run.old.1", ".run.stages", ".run.new.abcdefgh.new.abcdefgh", "run.new.x"]
    for name in kept:
        (tmp_path / name).mkdir()
    left(tmp_path, "run", "old")
    left(tmp_path, "run", "new")
    left(tmp_path, "other", "new")
    with claims:
        claim(tmp_path / "run")
    assert names(tmp_path) == sorted([*kept, "run", ".other.new.abcdefgh"])


def test_what_cannot_be_read_to_its_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    os.mkfifo("pipe")
    for name, target in {"loop": "loop", "lost": "nowhere", "link": "file"}.items():
        (tmp_path / name).symlink_to(target)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
    for name, problem in [
        (tmp_path / "pipe", "is a named pipe, which is not read from"),
        (tmp_path / "socket", "is a device or a socket"),
        (Path("/dev/zero"), "is a device or a socket"),
        (tmp_path / "loop", "is a link that leads back to itself"),
        (tmp_path / "lost", "does not exist"),
        (tmp_path, "is a folder"),
        (tmp_path / "pipe" / "a", "does not exist"),
        (tmp_path / "a\0b", "has a name that no file can have"),
        (tmp_path / ("a" * 300), "cannot be used: File name too long"),
    ]:
        with pytest.raises(ValueError, match=f"the indices must be a file; .* {problem}"):
            require_regular_file(name, "the indices")
    (tmp_path / "file").touch()
    require_regular_file(tmp_path / "link")


def test_numbers_in_names_are_ordered_as_numbers():
    names = ["v10", "v9", "u11", "v9.5"]
    ordered = sorted(map(Path, names), key=numeric_order)
    assert [path.name for path in ordered] == ["u11", "v9", "v9.5", "v10"]
