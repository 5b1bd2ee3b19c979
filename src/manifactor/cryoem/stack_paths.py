"""Where the stacks lie that a file of particles names."""

from pathlib import Path

import numpy as np

from manifactor._support.regular_files import real_path
from manifactor.cryoem.particles import Particles


def find_stack(name: str, beside: Path, folder: Path | None) -> Path:
    """Return the path of a stack that a file of particles names.

    RELION and cryoSPARC name it relative to the folder of the project, which is the particles'
    folder or one above it.
    """
    if folder is not None:
        return _stack_in(folder, name, beside)
    path = Path(name)
    if path.is_absolute() and path.is_file():
        return path
    for above in _search_folders(beside):
        if (above / name).is_file():
            return above / name
    raise ValueError(
        f"{beside} names the stack {name}, which is neither in its folder nor in one "
        "above it nor in the current folder. Run in the project's folder, or copy the "
        "stack, or give the folder that holds it with --datadir."
    )


def _stack_in(folder: Path, name: str, beside: Path) -> Path:
    """Return the path of a stack inside of a folder.

    The folder may be the project's, any folder on the way to the stack, or one that all stacks were
    copied to.
    """
    parts = [part for part in Path(name).parts if part != Path(name).anchor]
    for start in range(len(parts)):
        path = folder.joinpath(*parts[start:])
        if path.is_file():
            return path
    raise ValueError(
        f"{beside} names the stack {name}, and --datadir {folder} holds neither this "
        f"path nor {parts[-1] if parts else 'a file'}. Give the folder that holds the "
        "stacks."
    )


def _search_folders(beside: Path) -> list[Path]:
    """Return the folders that may be the project's, the nearest first."""
    # The particles may be a link: search around the link and around its target.
    around_link, around_target = beside.absolute().parents, real_path(beside).parents
    return [*around_link, *around_target, Path.cwd()]


def image_folder(particles: Particles, *, folder: Path | None = None) -> Path | None:
    """Return the folder from which the names of all stacks lead to them."""
    if particles.stack is None:
        return None
    names = np.unique(particles.stack)
    given = [] if folder is None else [folder.absolute(), *folder.absolute().parents]
    for project in [*given, *_search_folders(particles.path)]:
        if all((project / name).is_file() for name in names):
            return project
    return None
