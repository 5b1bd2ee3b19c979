"""Optional packages, imported where they are used."""

from importlib import import_module
from types import ModuleType

# the extra that brings a package, cryoem unless named
EXTRAS = {
    "faiss": "ann",
    "matplotlib": "plots",
    "starlette": "explore",
    "torch": "gpu",
    "uvicorn": "explore",
}


def extra(name: str) -> ModuleType:
    """The module of an optional package, or an error that says how to install it."""
    try:
        return import_module(name)
    except Exception as error:  # whatever a broken package raises
        package = name.partition(".")[0]
        install = f"pip install 'manifactor[{EXTRAS.get(package, 'cryoem')}]'"
        if (
            isinstance(error, ModuleNotFoundError)
            and (error.name or package).partition(".")[0] == package
        ):
            raise ValueError(f"this needs the package {package}: {install}.") from error
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(
            f"the package {package} does not load: {reason}. Install it anew: {install}."
        ) from error
