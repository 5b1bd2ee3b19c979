"""All recipes by name, and a folder that collects what they make."""

import json
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
import scipy
import sklearn

from manifactor.archive import require_writable, write_whole
from manifactor.extras import extra
from manifactor.plots import picture, style
from manifactor.reproduce.beyond import beyond
from manifactor.reproduce.fig1 import fig1
from manifactor.reproduce.fig2 import fig2
from manifactor.reproduce.fig3 import fig3
from manifactor.reproduce.fig4 import fig4
from manifactor.reproduce.fig5 import fig5
from manifactor.reproduce.fig6 import fig6
from manifactor.reproduce.fig7 import fig7
from manifactor.reproduce.lab import Lab
from manifactor.reproduce.page import as_html, as_markdown
from manifactor.reproduce.section import Section, Settings
from manifactor.reproduce.table1 import table1
from manifactor.reproduce.trials import trials
from manifactor.version import __version__

RECIPES: dict[str, Callable[[Settings, Lab], Section]] = {
    "fig1": fig1,
    "fig2": fig2,
    "fig3": fig3,
    "fig4": fig4,
    "fig5": fig5,
    "fig6": fig6,
    "fig7": fig7,
    "trials": trials,
    "beyond": beyond,
    "table1": table1,
}
NUMBERS = "numbers.json"
FORMAT = "manifactor reproduction"


def chosen(names: Sequence[str]) -> list[str]:
    """The recipes that are meant, each once, in the order of the table; none or "all" for all."""
    unknown = [name for name in names if name not in (*RECIPES, "all")]
    if unknown:
        raise ValueError(f"a recipe must be one of all, {', '.join(RECIPES)}; got {unknown[0]!r}.")
    return [name for name in RECIPES if not names or "all" in names or name in names]


def reproduce(
    names: Sequence[str],
    folder: Path,
    settings: Settings,
    *,
    overwrite: bool = False,
    n_jobs: int | None = None,
    callback: Callable[[str, float], None] | None = None,
) -> Iterator[tuple[str, float | None]]:
    """Run recipes and keep what they make in a folder; the name of each that is done, and its seconds.

    Pictures, numbers and the page are written after each recipe, so that an interrupted run can be taken up again: what
    the folder already holds of the same settings and version is kept, with None for its seconds.
    """
    extra("matplotlib")
    names = chosen(names)
    record = _record(folder, settings, overwrite)
    lab = Lab(n_jobs)
    callback = callback or (lambda name, fraction: None)
    for name in names:
        if name in record["sections"] and not overwrite:
            yield name, None
            continue
        start = time.perf_counter()
        lab.callback = partial(callback, name)
        callback(name, 0.0)
        with style():
            section = RECIPES[name](settings, lab)
            _write(folder, name, section, record, start)
        callback(name, 1.0)
        yield name, time.perf_counter() - start


def _record(folder: Path, settings: Settings, overwrite: bool) -> dict:
    """What the folder holds already, or an empty record."""
    new = {
        "format": FORMAT,
        "settings": asdict(settings),
        "versions": {"manifactor": __version__, **{m.__name__: m.__version__ for m in (np, scipy, sklearn)}},
        "python": platform.python_version(),
        "sections": {},
    }
    if not folder.exists():
        require_writable(folder.parent)
        folder.mkdir()
        return new
    require_writable(folder)
    old = _read(folder)
    if old is None:
        return new
    differs = [key for key in ("settings", "versions") if old.get(key) != new[key]]
    if not differs:
        return old
    if not overwrite:
        raise ValueError(
            f"{folder} holds a reproduction with other {' and '.join(differs)}: {old.get(differs[0])}. Choose "
            "another --out, or pass --overwrite to start anew."
        )
    for drawn in (shown for section in old["sections"].values() for shown in section["pictures"]):
        for suffix in (".pdf", ".png"):
            (folder / Path(f"{drawn['name']}{suffix}").name).unlink(missing_ok=True)
    return new


def _read(folder: Path) -> dict | None:
    """The record of an earlier reproduction; None for an empty folder."""
    try:
        record = json.loads((folder / NUMBERS).read_text(encoding="utf-8"))
        if record["format"] == FORMAT and isinstance(record["sections"], dict):
            return record
    except FileNotFoundError:
        if not any(folder.iterdir()):
            return None
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise ValueError(f"{folder} is not what this command writes, and stays as it is. Choose another --out.")


def _write(folder: Path, name: str, section: Section, record: dict, start: float) -> None:
    """Pictures first, the record of numbers and the page last: what the page shows is there."""
    for drawn in section.pictures:
        for suffix, content in picture(drawn.figure).items():
            _write_bytes(folder / f"{drawn.name}{suffix}", content)
    record["sections"][name] = {**section.record(), "took": round(time.perf_counter() - start, 1)}
    record["sections"] = {key: record["sections"][key] for key in RECIPES if key in record["sections"]}
    _write_bytes(folder / NUMBERS, json.dumps(record, indent=1).encode())
    _write_bytes(folder / "index.html", as_html(record, folder).encode())
    _write_bytes(folder / "index.md", as_markdown(record).encode())


def _write_bytes(path: Path, content: bytes) -> None:
    write_whole(path, lambda file: file.write(content))
