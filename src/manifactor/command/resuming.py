"""What an interrupted fit has left, beside the run folder that it was to write."""

import shutil
from pathlib import Path

from manifactor.command.terminal import note


def checkpoint_folder(out: Path) -> Path:
    """Return the folder that holds the work on a run until the run is complete."""
    # Hidden, and beside the run folder: that one appears only when it is complete.
    return out.parent / f".{out.name}.stages"


def require_checkpoints(folder: Path) -> None:
    """Refuse to resume a fit that has left nothing."""
    if not folder.is_dir():
        raise ValueError(f"no checkpoint to resume in {folder}. Leave --resume out.")


def delete_checkpoints(folder: Path) -> None:
    """Delete what an interrupted fit has left, since this one starts afresh."""
    if folder.is_dir():
        note(
            f"deleting the checkpoints of an interrupted fit in {folder}; "
            "--resume would have continued it."
        )
        shutil.rmtree(folder, ignore_errors=True)
