"""Whether the workers of a Dask cluster run what this process runs."""

import pkgutil
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from manifactor._support.errors import first_sentence
from manifactor._support.extras import extra
from manifactor._support.version import __version__

# Packages that must agree in their first two numbers for equal results.
NUMERICAL = ("numpy", "scipy", "scikit-learn")


def check_workers(client: Any) -> None:
    """Raise an error if the workers of a client do not run what this process runs."""
    versions = client.get_versions(packages=NUMERICAL)
    ours = versions["client"]["packages"]
    theirs = [each["packages"] for each in versions["workers"].values()]
    if not theirs:
        warnings.warn("the cluster has no workers yet; pieces wait for the first.", stacklevel=2)
    check_versions(ours, theirs)
    if sys.version_info < (3, 12):
        _warn_of_profilers(client)
    found = client.run(
        pkgutil.resolve_name, "manifactor._support.version:__version__", on_error="return"
    )
    for answer in found.values():
        if isinstance(answer, OSError):  # the worker has left meanwhile
            continue
        if isinstance(answer, Exception):
            raise ValueError(not_installed(answer))
        if answer != __version__:
            raise ValueError(
                f"the workers must have manifactor {__version__}, as this process; got "
                f"{answer}. Install one version everywhere."
            )


def _warn_of_profilers(client: Any) -> None:
    """Warn of workers whose profiler may stop them for ever.

    It looks at all threads 100 times a second, which in Python 3.11 ends in a deadlock if memory is
    cleaned up while a thread starts.
    """
    look = extra("dask").config.get
    found = client.run(look, "distributed.worker.profile.enabled", on_error="return")
    if any(enabled is True for enabled in found.values()):
        warnings.warn(
            "Dask's profiler can stop workers of Python 3.11 for ever; start them with "
            "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED=False, or use Python 3.12.",
            stacklevel=2,
        )


def check_versions(
    ours: Mapping[str, str | None], theirs: Sequence[Mapping[str, str | None]]
) -> None:
    """Raise if a worker has another Python; warn if its packages may differ in results."""
    for package in ("python", *NUMERICAL):
        here = _release(ours.get(package))
        there = {_release(each.get(package)) for each in theirs} - {here}
        if not there:
            continue
        found = f"the workers have {package} {', '.join(sorted(there))}, this process has {here}"
        if package == "python":
            raise ValueError(f"{found}. Use one version everywhere.")
        warnings.warn(f"{found}: results may differ in the last digits.", stacklevel=2)


def _release(version: str | None) -> str:
    """Return the first two numbers of a version."""
    return ".".join(version.split(".")[:2]) if version else "no version"


def not_installed(error: Exception) -> str:
    """Return what to do about a worker that cannot import manifactor."""
    return (
        f"manifactor cannot be used on a worker ({first_sentence(error)}). Install it "
        "with `pip install 'manifactor[cluster]'` in the environment of the workers."
    )
