"""A Dask cluster from its address, its file or a client, or a new one."""

import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from manifactor._support.extras import extra
from manifactor._support.workers import WorkersLost
from manifactor.cluster.local import local_client
from manifactor.cluster.versions import check_workers
from manifactor.cluster.workers import ClusterSettings, ClusterWorkers, lost_named


@contextmanager
def cluster_workers(
    where: Any,
    *,
    device: str | None = None,
    settings: ClusterSettings = ClusterSettings(),
) -> Iterator[ClusterWorkers]:
    """Connect to a Dask cluster, or start one on this machine, and yield its workers.

    A cluster that was started here ends with the context, within a second.

    Parameters
    ----------
    where : str or distributed.Client
        "local" for one worker on each core, or for each GPU if `device` is "cuda";
        "local:4" for four; the address of a scheduler, such as "tcp://node1:8786"; the
        path of its scheduler file, which ends in .json; or a client, which stays open.
    device : str or None
        "cuda": every worker of this machine uses one GPU, in turn.
    settings : ClusterSettings

    Raises
    ------
    ValueError
        If `where` is none of these, if Dask is not installed, or if workers have
        another Python or another manifactor, or none.
    WorkersLost
        If no scheduler answers.

    Examples
    --------
    >>> with cluster_workers("local:2") as workers:  # doctest: +SKIP
    ...     results = list(workers.map(work, jobs))
    """
    extra("distributed")
    if not isinstance(where, str):
        yield _checked(ClusterWorkers(where, settings))
        return
    with _quiet_logs():
        if local := re.fullmatch(r"local(?::([1-9]\d*))?", where):
            number = int(local[1]) if local[1] else None
            client = local_client(number, device, settings.cores_each)
        else:
            client = _remote_client(where, settings)
        with client as connected:
            yield _checked(ClusterWorkers(connected, settings))


@contextmanager
def _remote_client(where: str, settings: ClusterSettings) -> Iterator[Any]:
    """Connect to a scheduler at an address or of a scheduler file."""
    distributed = extra("distributed")
    options = _addressed(where)
    try:
        with warnings.catch_warnings():
            # A table of all packages; `_checked` says what matters.
            mismatch = distributed.versions.VersionMismatchWarning
            warnings.simplefilter("ignore", mismatch)
            client = distributed.Client(
                **options, timeout=settings.connect_timeout, set_as_default=False
            )
    except (OSError, TimeoutError) as error:
        raise WorkersLost(
            f"no Dask scheduler answers at {where} within "
            f"{settings.connect_timeout:g} s. Start one with `dask scheduler`, or "
            "check the address."
        ) from error
    try:
        yield client
    finally:
        with suppress(Exception):
            client.close(timeout=1)


def _addressed(where: str) -> dict[str, str]:
    """Return how a client is told of a scheduler."""
    if where.endswith(".json"):
        if not Path(where).is_file():
            raise FileNotFoundError(2, "no such scheduler file", where)
        return {"scheduler_file": where}
    if re.fullmatch(r"(?!local:)[^:/\s]+:\d+|[a-z]+://\S+", where):
        return {"address": where}
    raise ValueError(
        "a cluster must be local, local:WORKERS, the address of a Dask scheduler such "
        "as tcp://node1:8786, or the path of its scheduler file (.json); got "
        f"{where!r}."
    )


@contextmanager
def _quiet_logs() -> Iterator[None]:
    """Silence Dask's loggers; what the user must know is raised."""
    names = ("distributed", "distributed.client", "tornado.application", "asyncio")
    loggers = [logging.getLogger(name) for name in names]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _checked(workers: ClusterWorkers) -> ClusterWorkers:
    """Return the workers if they run what this process runs."""
    with lost_named():
        check_workers(workers.client)
    return workers
