"""The workers of a Dask cluster: how to find them, and how they do pieces of work."""

import json
import logging
import os
import pickle
import re
import uuid
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from manifactor._support.errors import extra, first_sentence
from manifactor._support.workers import (
    Outcome,
    Outcomes,
    Piece,
    Processes,
    Workers,
    WorkersLost,
    outcome,
)

# Packages that equal results depend on.
PACKAGES = ("manifactor", "numpy", "scipy", "scikit-learn")
# Seconds. A scheduler that runs answers within one, on a busy machine within five.
CONNECT_TIMEOUT = 10.0
ADDRESS = re.compile(r"(?!(?i:local):)[^:/\s]+:\d+|[a-z]+://\S+")


def check_versions(client: Any) -> None:
    """Warn where the workers of a client do not have what this process has."""
    versions = client.get_versions(packages=PACKAGES)
    ours = versions["client"]["packages"]
    theirs = [worker["packages"] for worker in versions["workers"].values()]
    for package in ("python", *PACKAGES):
        others = {str(packages.get(package)) for packages in theirs} - {str(ours.get(package))}
        if others:
            warnings.warn(
                f"the workers have {package} {', '.join(sorted(others))}, this process has "
                f"{ours.get(package)}: results may differ, or pieces fail. Use one version "
                "everywhere.",
                stacklevel=2,
            )


@dataclass(frozen=True)
class ClusterWorkers(Workers):
    """The workers of a `distributed.Client`; a piece whose worker dies is done again."""

    client: Any

    @property
    def count(self) -> int:
        """How many pieces are done at the same time."""
        with _name_loss():
            return max(1, sum(self.client.nthreads().values()))

    @property
    def dashboard(self) -> str | None:
        """Address of the page that shows the work; None if the scheduler has none."""
        with _name_loss():
            versions = self.client.get_versions(packages=["bokeh"])
        served = versions["scheduler"]["packages"]["bokeh"] is not None
        return self.client.dashboard_link if served else None

    def _done(self, pieces: Sequence[Piece]) -> Outcomes:
        waiting = iter(pieces)
        under_way: dict[Any, int] = {}
        completed = extra("distributed").as_completed(loop=self.client.loop)
        try:
            for _ in pieces:
                # One that each worker does and one that waits for it. All at once would fill the
                # scheduler's memory, as each brings its arguments.
                for piece in islice(waiting, max(0, 2 * self.count - len(under_way))):
                    future = self._submit(piece)
                    under_way[future] = piece[0]
                    completed.add(future)
                future = next(completed)
                yield _outcome(future, under_way.pop(future), len(pieces))
        finally:
            with suppress(Exception):  # a scheduler that is gone cancels nothing
                self.client.cancel(list(under_way))

    def _submit(self, piece: Piece) -> Any:
        index, work, _ = piece
        # As bytes: Dask would look into the arguments for tasks of its own, and a worker that
        # cannot load a function hangs up instead of saying why.
        packed = extra("cloudpickle").dumps(_Packed(piece))
        key = f"{getattr(work, '__name__', 'piece')}-{index}-{uuid.uuid4().hex}"
        with _name_loss(), warnings.catch_warnings():
            # It advises to scatter the arguments, which dies with their holder.
            warnings.filterwarnings("ignore", message="Sending large graph")
            return self.client.submit(pickle.loads, packed, key=key, pure=False)


class _Packed(tuple):
    """A piece of work that is done, and becomes its outcome, when it is unpickled."""

    def __reduce__(self) -> tuple:
        return outcome, tuple(self)


def _outcome(future: Any, index: int, total: int) -> Outcome:
    """Return what a finished future holds."""
    with _name_loss():
        if future.status != "error":
            return future.result()
        error = future.exception()
    # The errors of a piece are outcomes; this one comes from before it.
    if isinstance(error, ImportError) and "manifactor" in str(error):
        raise ValueError(
            f"manifactor cannot be used on a worker ({first_sentence(error)}). Install it "
            "with `pip install 'manifactor[cluster]'` in the environment of the workers."
        ) from error
    if isinstance(error, extra("distributed").KilledWorker):
        deaths = error.allowed_failures + 1
        error = WorkersLost(
            f"piece {index + 1} of {total} ended its worker {deaths} times, probably because the "
            "memory was full. Give the workers more memory, or the piece fewer samples."
        )
    return Outcome(index, error=error)


@contextmanager
def _name_loss() -> Iterator[None]:
    """Raise `WorkersLost` for all that a lost scheduler raises."""
    try:
        yield
    except (OSError, TimeoutError, CancelledError) as error:
        raise WorkersLost(
            "the connection to the Dask scheduler is lost. Start it again, and repeat "
            "the command, a fit with --resume: what is finished is kept."
        ) from error


@contextmanager
def cluster_workers(where: Any, *, device: str | None = None) -> Iterator[Workers]:
    """Connect to a Dask cluster, or name processes of this machine, and yield the workers.

    Parameters
    ----------
    where : str or distributed.Client
        "local" for one process on each core of this machine, or for each GPU if `device`
        is "cuda"; "local:4" for four; the address of a scheduler, such as
        "tcp://node1:8786"; the path of its scheduler file, which ends in .json; or a
        client, which stays open.
    device : str or None
        "cuda": every process of this machine uses one GPU, in turn.

    Raises
    ------
    ValueError
        If `where` is none of these, or if Dask is not installed.
    WorkersLost
        If no scheduler answers.

    Examples
    --------
    >>> with cluster_workers("local:2") as workers:  # doctest: +SKIP
    ...     results = list(workers.map(work, jobs))
    """
    local = re.fullmatch(r"local(?::([1-9]\d*))?", where) if isinstance(where, str) else None
    if local:
        gpus = _gpus() if device == "cuda" else ()
        yield Processes(int(local[1] or len(gpus)) or None, gpus)
        return
    with ExitStack() as stack:
        client = where
        if isinstance(where, str):
            stack.enter_context(_quiet_logs())
            client = stack.enter_context(_remote_client(where))
        with _name_loss():
            check_versions(client)
        yield ClusterWorkers(client)


def _gpus() -> tuple[str, ...]:
    """Return what CUDA_VISIBLE_DEVICES calls the GPUs that this process may use."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return tuple(name for name in visible.split(",") if name)
    return tuple(map(str, range(extra("torch").cuda.device_count())))


@contextmanager
def _remote_client(where: str) -> Iterator[Any]:
    """Connect to a scheduler at an address or of a scheduler file."""
    distributed, address = extra("distributed"), _address(where)
    try:
        with warnings.catch_warnings():
            # A table of all packages; `check_versions` names those that matter.
            warnings.simplefilter("ignore", distributed.versions.VersionMismatchWarning)
            client = distributed.Client(address, timeout=CONNECT_TIMEOUT, set_as_default=False)
    except (OSError, TimeoutError) as error:
        remedy = (
            f" within {CONNECT_TIMEOUT:g} s. Start one with `dask scheduler`, or check the address."
            if where == address
            else f", which {where} names. The file may be left from a scheduler that has ended; "
            f"start another with `dask scheduler --scheduler-file {where}`."
        )
        raise WorkersLost(f"no Dask scheduler answers at {address}{remedy}") from error
    try:
        yield client
    finally:
        with suppress(Exception):  # a scheduler that is gone closes nothing
            client.close(timeout=1)


def _address(where: str) -> str:
    """Return the address of a scheduler, given that or its scheduler file."""
    if ADDRESS.fullmatch(where):
        return where
    if not where.endswith(".json"):
        raise ValueError(
            "a cluster must be local, local:WORKERS, the address of a Dask scheduler such as "
            f"tcp://node1:8786, or the path of its scheduler file (.json); got {where!r}."
        )
    if not os.path.isfile(where):
        raise FileNotFoundError(2, "no such scheduler file", where)
    with suppress(ValueError, TypeError, LookupError):  # no text, no JSON, no such entry
        address = json.loads(Path(where).read_bytes())["address"]
        if ADDRESS.fullmatch(address):
            return address
    raise ValueError(
        f"a scheduler file must name the address of a Dask scheduler; {where} does "
        f"not. Write one with `dask scheduler --scheduler-file {where}`."
    )


@contextmanager
def _quiet_logs() -> Iterator[None]:
    """Silence Dask's loggers; what the user must know is raised."""
    names = ("distributed", "distributed.client", "tornado.application", "asyncio")
    with ExitStack() as stack:
        for logger in map(logging.getLogger, names):
            stack.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.CRITICAL + 1)
        yield
