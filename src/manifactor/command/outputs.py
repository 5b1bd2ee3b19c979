"""Checks on what a command is about to write, made before any work starts."""

from pathlib import Path

from manifactor._support.files import require_writable


def require_new_file(path: Path, *, overwrite: bool) -> None:
    """Refuse a file that exists, unless it may be overwritten."""
    _require_new(path, ours=path.is_file(), overwrite=overwrite)


def require_new_folder(folder: Path, *, mark: str, overwrite: bool) -> None:
    """Refuse a folder that exists, unless it may be overwritten.

    Parameters
    ----------
    folder : Path
    mark : str
        Name of a file that the command always writes. A folder without it was made by
        something else and is never replaced.
    overwrite : bool
    """
    _require_new(folder, ours=(folder / mark).is_file(), overwrite=overwrite)


def _require_new(out: Path, *, ours: bool, overwrite: bool) -> None:
    require_writable(out.parent, remedy="Choose another --out.")
    if not out.exists():
        return
    if not ours:
        raise ValueError(
            f"{out} was not written by this command and is not replaced. "
            "Choose another --out."
        )
    if not overwrite:
        raise ValueError(
            f"the output must not exist yet; {out} does. "
            "Choose another --out, or pass --overwrite."
        )


def with_suffix(path: str, suffix: str) -> Path:
    """Return the path, with the suffix appended unless it already ends in it."""
    # Not `Path.with_suffix`, which would turn "noise0.05" into "noise0.npz".
    return Path(path) if path.endswith(suffix) else Path(path + suffix)


def name_in_project(folder: Path) -> str:
    """Return the folder as RELION names it: relative to the project's folder.

    The project's folder is the current one if `folder` lies in it. For a folder
    elsewhere, only its last part is known to be right.
    """
    elsewhere = folder.is_absolute() or ".." in folder.parts
    return folder.name if elsewhere else str(folder)
