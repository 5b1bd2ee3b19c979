"""Whether the workers of a Dask cluster run what this process runs."""

import pkgutil
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from manifactor._support.errors import first_sentence
from manifactor._support.version import __version__

# Packages that must agree in their first two numbers for equal results.
NUMERICAL = ("numpy", "scipy", "scikit-learn")


def check_workers(client: Any) -> None:
    """Raise an error if the workers of a client do not run what this process runs."""
    versions = client.get_versions(packages=NUMERICAL)
    ours = versions["client"]["packages"]
    theirs = [each["packages"] for each in versions["workers"].values()]
    if not theirs:
        warnings.warn("the cluster has no workers yet; the work waits.", stacklevel=2)
    check_versions(ours, theirs)
    found = client.run(
        pkgutil.resolve_name,
        "manifactor._support.version:__version__",
        on_error="return",
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


def check_versions(
    ours: Mapping[str, str | None], theirs: Sequence[Mapping[str, str | None]]
) -> None:
    """Raise if a worker has another Python; warn if its packages may differ in results.

    Parameters
    ----------
    ours : mapping of str to str
        Versions of packages, and of Python, of this process.
    theirs : sequence of mapping
        The same for each worker.
    """
    for package in ("python", *NUMERICAL):
        here = _release(ours.get(package))
        there = {_release(each.get(package)) for each in theirs} - {here}
        if not there:
            continue
        found = (
            f"the workers have {package} {', '.join(sorted(there))}, this process has "
            f"{here}"
        )
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
