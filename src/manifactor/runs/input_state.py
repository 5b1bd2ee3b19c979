"""Whether the files of an input are still those that the fit started with."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from manifactor._support.warning import warn_caller
from manifactor.cryoem.formats import particles_with
from manifactor.cryoem.particles import Particles
from manifactor.runs.places import Place, coordinate_columns

# Time of the last change in nanoseconds, and bytes; None for what does not exist.
FileState = tuple[int, int] | None


class InputWarning(UserWarning):
    """The input was changed or deleted while it was fitted."""


def last_changed(path: Path) -> str:
    """Return when a file or folder was last changed, to the second."""
    return _as_date(path.stat().st_mtime_ns)


def _as_date(nanoseconds: int) -> str:
    date = datetime.fromtimestamp(nanoseconds // 10**9, UTC)
    return date.isoformat(timespec="seconds")


@dataclass(frozen=True)
class InputState:
    """The files of an input as they were at a time."""

    files: tuple[Path, ...]  # the input first
    states: tuple[FileState, ...]

    @property
    def record(self) -> dict[str, str]:
        """The entry of run.json."""
        state = self.states[0]
        return {} if state is None else {"input_changed": _as_date(state[0])}

    @property
    def changed(self) -> list[Path]:
        """Files that are others by now, or gone."""
        return [
            path
            for path, state in zip(self.files, self.states, strict=True)
            if _state_of(path) != state
        ]


def input_state(files: Sequence[Path | str | None]) -> InputState:
    """Return the files of an input, those that are given, as they are now."""
    given = tuple(Path(path) for path in files if path is not None)
    return InputState(given, tuple(map(_state_of, given)))


def _state_of(path: Path) -> FileState:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _change(path: Path) -> str:
    if not path.exists():
        return f"{path} was removed while it was fitted."
    return (
        f"{path} was changed while it was fitted; the run may be of both versions. "
        "Fit again if its content is another."
    )


def warn_of_changes(state: InputState) -> None:
    """Warn of files that are no longer those that the fit started with.

    A fit that is finished is worth more than an error.
    """
    for path in state.changed:
        warn_caller(_change(path), InputWarning)


def particle_file(
    particles: Particles, places: Sequence[Place], before: InputState
) -> dict[str, bytes]:
    """Return the file of a run's particles with their places, by its name.

    Nothing, with a warning, if their own file is not as it was before the fit: it would be read
    again.
    """
    suffix = particles.path.suffix.lower()
    name = f"particles{suffix}"
    if particles.path in before.changed:
        warn_caller(
            f"{name} of the run was not written, since {particles.path} is no longer "
            "what was fitted.",
            InputWarning,
        )
        return {}
    return {name: particles_with(particles, coordinate_columns(places, suffix))}
