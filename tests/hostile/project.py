"""The project folder of a case: made once, damaged, looked at, and restored."""

import os
import shutil
import stat
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePath
from random import Random

from .corpus import CHANGED
from .kinds import mutations_of
from .mutations import several, spliced

# In place of the folder's path, which is another one every time.
PLACEHOLDER = b"/the/project"


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

    def files(self, patterns: tuple[str, ...]) -> list[str]:
        """Return the names of the files that match one of some patterns."""
        return [
            name
            for name in self.contents
            if any(_matches(name, pattern) for pattern in patterns)
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
        """Return the names of files that are new, changed or gone, and of folders."""
        found = set(_entries(self.folder))
        before = set(self.contents) | _folders(self.contents)
        changed = {name for name in found & set(self.contents) if self._differs(name)}
        return sorted((found ^ before) | changed)

    def _differs(self, name: str) -> bool:
        status = os.lstat(self.folder / name)
        same = status.st_size == len(self.contents[name])
        return not (stat.S_ISREG(status.st_mode) and same and _is_old(status))

    def restore(self) -> None:
        """Bring the folder back to what it was."""
        for name in self.changes():
            path = self.folder / name
            if name not in self.contents and name not in _folders(self.contents):
                _remove(path)
        for name, content in self.contents.items():
            path = self.folder / name
            if not os.path.lexists(path) or self._differs(name):
                _remove(path)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
                os.utime(path, (CHANGED, CHANGED))
        for name in (*_folders(self.contents), "."):
            os.utime(self.folder / name, (CHANGED, CHANGED))


def _matches(name: str, pattern: str) -> bool:
    # A slash counts as any other letter, so that ** reaches into folders.
    return fnmatch(name, pattern.replace("**/", ""))


def _is_old(status: os.stat_result) -> bool:
    return status.st_mtime == CHANGED


def _entries(folder: Path):
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            yield os.path.relpath(os.path.join(parent, name), folder)


def _folders(names) -> set[str]:
    parents = {str(parent) for name in names for parent in PurePath(name).parents}
    return parents - {"."}


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
