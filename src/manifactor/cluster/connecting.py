"""A Dask cluster from its address, its file or a client, or a new one."""

import json
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
    where: Any, *, device: str | None = None, settings: ClusterSettings = ClusterSettings()
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
    address = _address(where)
    try:
        with warnings.catch_warnings():
            # A table of all packages; `_checked` says what matters.
            mismatch = distributed.versions.VersionMismatchWarning
            warnings.simplefilter("ignore", mismatch)
            client = distributed.Client(
                address, timeout=settings.connect_timeout, set_as_default=False
            )
    except (OSError, TimeoutError) as error:
        raise WorkersLost(_no_answer(where, address, settings)) from error
    try:
        yield client
    finally:
        with suppress(Exception):  # a scheduler that is gone closes nothing
            client.close(timeout=1)


def _no_answer(where: str, address: str, settings: ClusterSettings) -> str:
    """Return what to do if no scheduler answers at an address."""
    silent = f"no Dask scheduler answers at {address}"
    if where == address:
        return (
            f"{silent} within {settings.connect_timeout:g} s. Start one with "
            "`dask scheduler`, or check the address."
        )
    return (
        f"{silent}, which {where} names. The file may be left from a scheduler that "
        f"has ended; start another with `dask scheduler --scheduler-file {where}`."
    )


def _address(where: str) -> str:
    """Return the address of a scheduler, given that or its scheduler file."""
    if where.endswith(".json"):
        return _address_in(Path(where))
    if re.fullmatch(r"(?!(?i:local):)[^:/\s]+:\d+|[a-z]+://\S+", where):
        return where
    raise ValueError(
        "a cluster must be local, local:WORKERS, the address of a Dask scheduler such "
        "as tcp://node1:8786, or the path of its scheduler file (.json); got "
        f"{where!r}."
    )


def _address_in(file: Path) -> str:
    """Return the address that a scheduler file names."""
    if not file.is_file():
        raise FileNotFoundError(2, "no such scheduler file", str(file))
    try:
        address = json.loads(file.read_text(encoding="utf-8"))["address"]
    except (ValueError, TypeError, LookupError):  # no text, no JSON, no such entry
        address = None
    if not isinstance(address, str):
        raise ValueError(
            f"a scheduler file must name the address of a Dask scheduler; {file} does "
            f"not. Write one with `dask scheduler --scheduler-file {file}`."
        )
    return address


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
