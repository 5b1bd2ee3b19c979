"""Optional packages, imported where they are used."""

from importlib import import_module
from types import ModuleType

EXTRAS = {"faiss": "ann", "matplotlib": "plots", "torch": "gpu"}  # the extra that brings a package, cryoem unless named


def extra(name: str) -> ModuleType:
    """The module of an optional package, or an error that says how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        brings = EXTRAS.get(package, "cryoem")
        raise ValueError(f"this needs the package {package}: pip install 'manifactor[{brings}]'.") from error
