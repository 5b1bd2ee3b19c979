"""Processes that this one has started. Cheap to import."""

import os
import signal
from collections.abc import Collection
from contextlib import suppress
from multiprocessing import active_children
from multiprocessing.process import BaseProcess

# Windows has the second one only, which ends a process as surely there.
AT_ONCE = getattr(signal, "SIGKILL", signal.SIGTERM)


def kill_children(*, but: Collection[BaseProcess] = ()) -> None:
    """End the processes that this one has started, at once."""
    for child in active_children():
        if child not in but and child.pid is not None:
            # Not `child.kill`, which processes of joblib do not have.
            with suppress(ProcessLookupError):
                os.kill(child.pid, AT_ONCE)
