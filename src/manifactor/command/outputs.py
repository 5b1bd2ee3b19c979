"""What a command is about to write, checked before any work starts, and who does the work."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from manifactor._support.files import claim, require_place
from manifactor._support.workers import Workers
from manifactor.command.terminal import note

REMEDY = "Choose another --out."


def own(place: Path) -> None:
    """Refuse an output that cannot be written, or that another command writes."""
    require_place(place, remedy=REMEDY)
    claim(place)


def require_new(out: Path, *, overwrite: bool, mark: str = "") -> None:
    """Refuse an output that exists, unless it may be overwritten; folders hold a file `mark`."""
    own(out)
    # A link that leads nowhere does not exist, but somebody made it.
    if not os.path.lexists(out):
        return
    if not (out / mark).is_file():
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


@contextmanager
def chosen_workers(
    cluster: str | None, otherwise: Workers, *, device: str | None = None
) -> Iterator[Workers]:
    """Yield the workers of --cluster, or others where it was not given."""
    if cluster is None:
        yield otherwise
        return
    # Imported here: Dask takes a second to load.
    from manifactor.cluster import cluster_workers

    with cluster_workers(cluster, device=device) as workers:
        pieces = "1 piece" if workers.count == 1 else f"{workers.count} pieces"
        dashboard = getattr(workers, "dashboard", None)
        where = f"; its dashboard: {dashboard}" if dashboard else "."
        note(f"the cluster does {pieces} at the same time{where}")
        yield workers
