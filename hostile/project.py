"""The project folder of a case: made once, damaged, looked at, and restored."""

import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path, PurePath
from random import Random

from .corpus import CHANGED
from .damages import damages_of, several, spliced

# In place of the folder's path, which is another one every time.
PLACEHOLDER = b"/the/project"

# Size and time of a file; anything else but a file and a folder has no size.
State = tuple[int, int]
FOLDER: State = (-2, 0)
NO_SIZE = -1

# What may lie in the place of a file.
ODD_FILES = {
    "empty": lambda path: path.touch(),
    "a folder": lambda path: path.mkdir(),
    "a link to nothing": lambda path: path.symlink_to("nothing"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a pipe": lambda path: os.mkfifo(path),
    "gone": lambda path: None,
}


@dataclass(frozen=True)
class Project:
    """A folder and what its files hold when nothing is damaged."""

    folder: Path
    contents: dict[str, bytes]

    @classmethod
    def read(cls, folder: Path) -> "Project":
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        return cls(folder, {str(path.relative_to(folder)): path.read_bytes() for path in files})

    @classmethod
    def made(cls, folder: Path, contents: dict[str, bytes]) -> "Project":
        """Return a project of these files, written into an empty folder."""
        project = cls(folder, contents)
        project.restore()
        return project

    def files(self, patterns: tuple[str, ...]) -> list[str]:
        """Return the names of the files that match one of some patterns."""
        return [name for name in self.contents if any(fnmatch(name, each) for each in patterns)]

    def damage(self, name: str, rng: Random) -> str:
        """Damage a file, and return how."""
        path = self.folder / name
        if rng.random() < 0.03:
            how = rng.choice(list(ODD_FILES))
            path.unlink()
            ODD_FILES[how](path)
            return how
        own = os.fsencode(self.folder)
        data = self.contents[name].replace(own, PLACEHOLDER)
        if rng.random() < 0.05:
            suffix = PurePath(name).suffix
            like = [other for other in self.contents if PurePath(other).suffix == suffix]
            other = self.contents[rng.choice(like)]
            data, how = spliced(data, other.replace(own, PLACEHOLDER), rng), "spliced"
        else:
            data, how = several(damages_of(name), data, rng), "damaged"
        path.write_bytes(data.replace(PLACEHOLDER, own))
        return how

    def changes(self) -> list[str]:
        """Return the names of files and folders that are new, changed or gone."""
        found, expected = dict(_entries(self.folder)), self._expected
        every = found.keys() | expected.keys()
        return sorted(name for name in every if found.get(name) != expected.get(name))

    @cached_property
    def _expected(self) -> dict[str, State]:
        """What each entry of the folder is when nothing is damaged."""
        folders = {str(parent) for name in self.contents for parent in PurePath(name).parents}
        files = {name: (len(each), 10**9 * CHANGED) for name, each in self.contents.items()}
        return {**dict.fromkeys(folders - {"."}, FOLDER), **files}

    def restore(self) -> None:
        """Bring the folder back to what it was."""
        changed = self.changes()
        for name in changed:
            path = self.folder / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        # A folder comes before its files.
        for name in changed:
            path = self.folder / name
            if name in self.contents:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(self.contents[name])
                os.utime(path, (CHANGED, CHANGED))
            elif name in self._expected:
                path.mkdir(exist_ok=True)
        # Some readers look at the times of folders, too.
        for name, state in self._expected.items():
            if state == FOLDER:
                os.utime(self.folder / name, (CHANGED, CHANGED))


def _entries(folder: Path, above: str = "") -> Iterator[tuple[str, State]]:
    """Yield the names of files and folders, with what they are."""
    with os.scandir(folder) as inside:
        for entry in inside:
            if entry.is_dir(follow_symlinks=False):
                yield above + entry.name, FOLDER
                yield from _entries(Path(entry), f"{above}{entry.name}/")
                continue
            status = entry.stat(follow_symlinks=False)
            size = status.st_size if stat.S_ISREG(status.st_mode) else NO_SIZE
            yield above + entry.name, (size, status.st_mtime_ns)
