"""The option --cluster: who does the pieces of a command's work."""

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager

from manifactor._support.workers import Workers
from manifactor.command.options import Options, add
from manifactor.command.terminal import note


def add_cluster(options: Options, pieces: str) -> None:
    """Add the option that names a Dask cluster."""
    text = (
        f"do the {pieces} on the workers of a Dask cluster: local (one worker a core, "
        "or a GPU), local:N (N workers), the address of a scheduler, such as "
        "tcp://node1:8786, or its scheduler file (.json). All workers must see the "
        "same files"
    )
    add(options, "--cluster", text, metavar="WHERE")


@contextmanager
def chosen_workers(arguments: Namespace, otherwise: Workers) -> Iterator[Workers]:
    """Yield the workers of --cluster, or others where it was not given."""
    if arguments.cluster is None:
        yield otherwise
        return
    # Imported here: Dask takes a second to load.
    from manifactor.cluster import cluster_workers

    device = getattr(arguments, "device", None)
    with cluster_workers(arguments.cluster, device=device) as workers:
        pieces = "1 piece" if workers.count == 1 else f"{workers.count} pieces"
        where = f"; its dashboard: {workers.dashboard}" if workers.dashboard else "."
        note(f"the cluster does {pieces} at the same time{where}")
        yield workers
