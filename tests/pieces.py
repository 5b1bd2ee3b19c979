"""Pieces of work for other processes, which start soon as they import little."""

import os
import signal
import time


def cores_seen():
    """Return the cores that a piece may use, and the threads of its BLAS."""
    from manifactor._support.threads import cores

    return cores(), os.environ.get("OMP_NUM_THREADS")


def diffused(seed):
    """Return the eigenfunctions of a few samples."""
    from manifactor import DiffusionMap, datasets

    X, _ = datasets.sample("torus", 300, random_state=seed)
    return DiffusionMap(n_functions=12, random_state=0).fit_transform(X)


def divided(number):
    """Return a quotient."""
    return 6 // number


def ended(name, folder, awaited):
    """Return a job's name after the awaited job has ended; leave a sign of the end."""
    start = time.monotonic()
    while awaited and not (folder / awaited).exists():
        # Jobs that one process does in turn would wait for ever.
        assert time.monotonic() - start < 300
        time.sleep(0.01)
    (folder / name).touch()
    return name


def gpu_seen(name, folder, awaited):
    """Return the GPU that a piece sees, while the other piece is done in another process."""
    (folder / name).touch()
    ended(f"{name} has ended", folder, awaited)
    return os.environ["CUDA_VISIBLE_DEVICES"]


def killed(kills):
    """Return the argument, unless it says that the worker dies."""
    if kills:
        os.kill(os.getpid(), signal.SIGKILL)
    return kills


def killed_once(sign):
    """Return a name; the first worker dies."""
    if not sign.exists():
        sign.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return sign.name
