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
from .kinds import mutations_of
from .mutations import several, spliced

# In place of the folder's path, which is another one every time.
PLACEHOLDER = b"/the/project"


# Size and time of a file; anything else but a file and a folder has no size.
State = tuple[int, int]
FOLDER: State = (-2, 0)
NO_SIZE = -1


@dataclass(frozen=True)
class Project:
    """A folder and what its files hold when nothing is damaged."""

    folder: Path
    contents: dict[str, bytes]

    @classmethod
    def read(cls, folder: Path) -> "Project":
        """Return the project in a folder."""
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        names = [str(path.relative_to(folder)) for path in files]
        pairs = zip(names, files, strict=True)
        return cls(folder, {name: path.read_bytes() for name, path in pairs})

    @classmethod
    def made(cls, folder: Path, contents: dict[str, bytes]) -> "Project":
        """Return a project of these files, written into an empty folder."""
        project = cls(folder, contents)
        project.restore()
        return project

    def files(self, patterns: tuple[str, ...]) -> list[str]:
        """Return the names of the files that match one of some patterns."""
        return [
            name for name in self.contents if any(_matches(name, pattern) for pattern in patterns)
        ]

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
            other = self.contents[rng.choice(self._like(name))]
            data, how = spliced(data, other.replace(own, PLACEHOLDER), rng), "spliced"
        else:
            data, how = several(mutations_of(name), data, rng), "mutated"
        path.write_bytes(data.replace(PLACEHOLDER, own))
        return how

    def _like(self, name: str) -> list[str]:
        suffix = PurePath(name).suffix
        return [other for other in self.contents if PurePath(other).suffix == suffix]

    def changes(self) -> list[str]:
        """Return the names of files and folders that are new, changed or gone."""
        found = dict(_entries(self.folder))
        expected = self._expected
        return sorted(
            name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name)
        )

    @cached_property
    def _expected(self) -> dict[str, State]:
        """What each entry of the folder is when nothing is damaged."""
        folders = {str(parent) for name in self.contents for parent in PurePath(name).parents}
        sizes = {name: len(content) for name, content in self.contents.items()}
        return {
            **dict.fromkeys(folders - {"."}, FOLDER),
            **{name: (size, 10**9 * CHANGED) for name, size in sizes.items()},
        }

    def restore(self) -> None:
        """Bring the folder back to what it was."""
        changed = self.changes()
        for name in changed:
            _remove(self.folder / name)
        # A folder comes before its files.
        for name in changed:
            if name in self.contents:
                self._write(name)
            elif name in self._expected:
                (self.folder / name).mkdir(exist_ok=True)
        # Some readers look at the times of folders, too.
        for name, state in self._expected.items():
            if state == FOLDER:
                os.utime(self.folder / name, (CHANGED, CHANGED))

    def _write(self, name: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.contents[name])
        os.utime(path, (CHANGED, CHANGED))


def _entries(folder: Path, above: str = "") -> Iterator[tuple[str, State]]:
    """Yield the names of files and folders, with what they are."""
    with os.scandir(folder) as inside:
        for entry in inside:
            if entry.is_dir(follow_symlinks=False):
                yield above + entry.name, FOLDER
                yield from _entries(Path(entry), f"{above}{entry.name}/")
                continue
            status = entry.stat(follow_symlinks=False)
            plain = stat.S_ISREG(status.st_mode)
            yield (above + entry.name, (status.st_size if plain else NO_SIZE, status.st_mtime_ns))


def _matches(name: str, pattern: str) -> bool:
    # A slash counts as any other letter, so that ** reaches into folders.
    return fnmatch(name, pattern.replace("**/", ""))


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


# What may lie in the place of a file.
ODD_FILES = {
    "empty": lambda path: path.touch(),
    "a folder": lambda path: path.mkdir(),
    "a link to nothing": lambda path: path.symlink_to("nothing"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a pipe": lambda path: os.mkfifo(path),
    "gone": lambda path: None,
}
