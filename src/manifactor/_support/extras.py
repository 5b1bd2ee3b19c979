"""Optional packages, imported where they are used."""

from importlib import import_module
from types import ModuleType

from manifactor._support.errors import first_sentence

# The extra that installs each package; "cryoem" for all others.
EXTRAS = {
    "cloudpickle": "cluster",
    "dask": "cluster",
    "distributed": "cluster",
    "faiss": "ann",
    "matplotlib": "plots",
    "starlette": "explore",
    "torch": "gpu",
    "uvicorn": "explore",
    "zarr": "cluster",
}


def extra(name: str) -> ModuleType:
    """Import a module of an optional package."""
    try:
        return import_module(name)
    except MemoryError:
        raise
    # Nothing but the package is inside; a broken one may raise anything.
    except Exception as error:
        package = _root(name)
        install = f"pip install 'manifactor[{EXTRAS.get(package, 'cryoem')}]'"
        if _is_missing(package, error):
            raise ValueError(f"this needs the package {package}: {install}.") from error
        raise ValueError(
            f"the package {package} does not load: {first_sentence(error)}. "
            f"Install it anew: {install}."
        ) from error


def _is_missing(package: str, error: Exception) -> bool:
    """Return whether the package itself was not found, rather than one it imports."""
    if not isinstance(error, ModuleNotFoundError):
        return False
    return _root(error.name or package) == package


def _root(module: str) -> str:
    return module.partition(".")[0]
