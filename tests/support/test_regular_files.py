import os
import socket
from pathlib import Path

import pytest

from manifactor._support.files import require_regular_file


def test_a_file_and_a_link_to_it_are_taken(tmp_path):
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").symlink_to("a")
    require_regular_file(tmp_path / "a")
    require_regular_file(tmp_path / "b")


def test_what_cannot_be_read_to_its_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    os.mkfifo("pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "lost").symlink_to("nowhere")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
    for name, problem in [
        (tmp_path / "pipe", "is a named pipe, which is not read from"),
        (tmp_path / "socket", "is a socket"),
        (tmp_path / "loop", "is a link that leads back to itself"),
        (tmp_path / "lost", "does not exist"),
        (tmp_path, "is a folder"),
        (tmp_path / "pipe" / "a", "does not exist"),
        (tmp_path / "a\0b", "has a name that no file can have"),
        (tmp_path / ("a" * 300), "cannot be used: File name too long"),
    ]:
        with pytest.raises(ValueError, match=f"the indices must be a file; .* {problem}"):
            require_regular_file(name, "the indices")


def test_a_device_is_refused():
    with pytest.raises(ValueError, match="/dev/zero is a device, which is not read"):
        require_regular_file(Path("/dev/zero"))
