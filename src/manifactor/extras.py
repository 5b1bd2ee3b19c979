"""Optional packages, imported where they are used."""

from importlib import import_module
from types import ModuleType


def extra(name: str) -> ModuleType:
    """The module of an optional package, or an error that says how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ValueError(f"this needs the package {package}: pip install 'manifactor[cryoem]'.") from error
