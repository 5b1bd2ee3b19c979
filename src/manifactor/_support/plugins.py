"""What applications and other packages add to the library: entry points, by group.

Cheap to import: a plug-in is imported when it is loaded.
"""

from functools import cache
from importlib.metadata import entry_points
from typing import Any


@cache
def plugins(group: str) -> dict[str, Any]:
    """Return the plug-ins of a group, such as "records", by name."""
    groups = entry_points(group=".".join(("manifactor", group)))
    return {entry.name: entry for entry in groups}


@cache
def loaded(group: str) -> dict[str, Any]:
    """Return what the plug-ins of a group name."""
    return {name: entry.load() for name, entry in plugins(group).items()}
