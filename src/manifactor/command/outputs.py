"""Checks on what a command is about to write, made before any work starts."""

import os
from pathlib import Path

from manifactor._support.claims import claim, clear_locks
from manifactor._support.files import require_place
from manifactor._support.temporaries import clear_leftovers
from manifactor.command.terminal import note

REMEDY = "Choose another --out."


def own(place: Path) -> None:
    """Refuse an output that cannot be written, or that another command is writing.

    What killed commands have left beside it is removed, or put into its place.
    """
    require_place(place, remedy=REMEDY)
    claim(place)
    clear(place.parent)


def clear(folder: Path) -> None:
    """Clear what killed commands have left in a folder, and say what was saved."""
    clear_locks(folder)
    for path in clear_leftovers(folder):
        note(f"a killed command had half replaced {path}, which is whole again.")


def require_new_file(path: Path, *, overwrite: bool) -> None:
    """Refuse a file that exists, unless it may be overwritten."""
    own(path)
    require_replaceable(path, overwrite=overwrite)


def require_replaceable(path: Path, *, overwrite: bool) -> None:
    """Refuse a file that exists, beside one that this command owns already."""
    _require_new(path, ours=path.is_file(), overwrite=overwrite)


def require_new_folder(folder: Path, *, mark: str, overwrite: bool) -> None:
    """Refuse a folder that exists, unless it may be overwritten."""
    own(folder)
    _require_new(folder, ours=(folder / mark).is_file(), overwrite=overwrite)


def _require_new(out: Path, *, ours: bool, overwrite: bool) -> None:
    # A link that leads nowhere does not exist, but somebody made it.
    if not os.path.lexists(out):
        return
    if not ours:
        raise ValueError(f"{out} was not written by this command and is not replaced. {REMEDY}")
    if not overwrite:
        raise ValueError(
            f"the output must not exist yet; {out} does. Choose another --out, or pass --overwrite."
        )


def require_ending(path: str, ending: str) -> Path:
    """Return the path of a file; refuse a name with another ending, or with none."""
    if not path.lower().endswith(ending):
        raise ValueError(f"--out must end in {ending}; got {path}.")
    return Path(path)


def name_in_project(folder: Path) -> str:
    """Return the folder as RELION names it: relative to the project's folder.

    The project's folder is the current one if `folder` lies in it. For a folder elsewhere, only its
    last part is known to be right.
    """
    elsewhere = folder.is_absolute() or ".." in folder.parts
    return folder.name if elsewhere else str(folder)
