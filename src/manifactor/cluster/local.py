"""A Dask cluster of processes on this machine."""

import logging
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from manifactor._support.children import AT_ONCE
from manifactor._support.errors import first_sentence
from manifactor._support.extras import extra
from manifactor._support.threads import cores, interrupts_held, start_trackers
from manifactor._support.workers import WorkersLost


@contextmanager
def local_client(
    number: int | None, device: str | None, cores_each: int | None = None
) -> Iterator[Any]:
    """Start a scheduler and workers on this machine, and connect to them."""
    dask, distributed = extra("dask"), extra("distributed")
    gpus = _gpus() if device == "cuda" else []
    number = number or len(gpus) or cores()
    share = cores_each or max(1, cores() // number)
    with ExitStack() as stack:
        stack.enter_context(_environment_kept())
        stack.enter_context(dask.config.set(_configuration(share)))
        # Before interrupts are held: they let them through when they start.
        start_trackers()
        # Ctrl-C reaches all processes of a terminal; only this one must answer it. One that comes
        # while the workers start is answered when they can be ended.
        with interrupts_held():
            cluster = _local_cluster(number, gpus)
            stack.callback(_end, cluster)
            client = distributed.Client(cluster, set_as_default=False)
            stack.callback(_close, client)
        yield client


def _local_cluster(number: int, gpus: Sequence[str]) -> Any:
    """Start a scheduler in this process, and processes that work."""
    distributed = extra("distributed")
    own = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    scheduler = {"cls": distributed.Scheduler, "options": {**own, "dashboard": True}}
    options = {
        **own,
        "dashboard": False,
        # Pieces use threads themselves.
        "nthreads": 1,
        # A share of the memory would end pieces that the machine can hold.
        "memory_limit": 0,
        "silence_logs": logging.CRITICAL,
    }
    workers = {
        index: {"cls": distributed.Nanny, "options": {**options, "env": _visible(gpus, index)}}
        for index in range(number)
    }
    with warnings.catch_warnings():
        # On a busy machine, it warns that directories are made slowly.
        warnings.filterwarnings("ignore", message="Creating scratch directories")
        try:
            return distributed.SpecCluster(
                workers=workers, scheduler=scheduler, silence_logs=logging.CRITICAL
            )
        # Nothing but Dask is inside, which raises what a process did that never began.
        except Exception as error:
            raise WorkersLost(
                f"the workers did not start ({first_sentence(error)}). Ask for fewer."
            ) from error


def _configuration(share: int) -> dict[str, Any]:
    """Return Dask's settings for workers that have so many cores each."""
    limits = ("OMP", "MKL", "OPENBLAS")
    environment = {f"{library}_NUM_THREADS": str(share) for library in limits}
    return {
        # What `cores` reads in the worker.
        "distributed.nanny.pre-spawn-environ": {**environment, "LOKY_MAX_CPU_COUNT": str(share)},
        # A piece that waits at a worker that dies would be blamed for it as well.
        "distributed.scheduler.worker-saturation": 1.0,
        # Its nanny sees when a worker of this machine dies. One that computes in a library for
        # minutes does not answer, and lives.
        "distributed.scheduler.worker-ttl": None,
        # Dask's profiler looks at all threads 100 times a second. In Python 3.11 that stops a
        # worker for ever if memory is cleaned up while a thread starts.
        "distributed.worker.profile.enabled": False,
        # On a busy machine a worker takes long to start, and to start anew.
        "distributed.comm.timeouts.connect": "1 minute",
        "distributed.deploy.lost-worker-timeout": "5 minutes",
    }


def _gpus() -> list[str]:
    """Return what CUDA_VISIBLE_DEVICES calls the GPUs that this process may use."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [name for name in visible.split(",") if name]
    return [str(number) for number in range(extra("torch").cuda.device_count())]


def _visible(gpus: Sequence[str], index: int) -> dict[str, str]:
    """Return the environment in which a worker sees its GPU only."""
    return {"CUDA_VISIBLE_DEVICES": gpus[index % len(gpus)]} if gpus else {}


def _end(cluster: Any) -> None:
    """End a cluster of this machine and its processes, whatever they do."""
    for nanny in list(cluster.workers.values()):
        nanny.close_gracefully()  # starts no other process
        with suppress(ProcessLookupError):
            if nanny.pid:
                os.kill(nanny.pid, AT_ONCE)
    _close(cluster)


def _close(connection: Any) -> None:
    """Close a client or a cluster; not for long, whatever the machine does besides."""
    with suppress(TimeoutError):
        connection.close(timeout=5)


@contextmanager
def _environment_kept() -> Iterator[None]:
    """Undo what Dask sets for its workers in the environment of this process."""
    before = dict(os.environ)
    try:
        yield
    finally:
        for name in set(os.environ) - set(before):
            del os.environ[name]
        os.environ.update(before)
