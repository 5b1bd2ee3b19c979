"""Selections saved as new files: no file and no link is ever replaced."""

import os
from contextlib import suppress
from itertools import count
from pathlib import Path

from manifactor._support.files import write_new


def save_new(folder: Path, suffix: str, content: bytes) -> Path:
    """Write a file whole under the first free name, and return its path.

    The names are selection-001, selection-002, ... . Other explorers may save into the same folder
    at the same time.
    """
    paths = (folder / f"selection-{number:03d}{suffix}" for number in count(1))
    # A link is taken, too, even one that leads nowhere.
    free = (path for path in paths if not os.path.lexists(path))
    for path in free:
        # Somebody else may have taken the name meanwhile.
        with suppress(FileExistsError):
            write_new(path, lambda file: file.write(content))
            return path
    raise AssertionError("there is always another name")
