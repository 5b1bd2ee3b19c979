"""All recipes by name, and the folder that holds what they make."""

import json
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from manifactor._support.errors import extra
from manifactor._support.files import require_place, write_bytes
from manifactor._support.workers import Processes, Workers
from manifactor.runs.folder import versions
from manifactor.views.plots import picture, style
from studies.paper.beyond import beyond
from studies.paper.fig1 import fig1
from studies.paper.fig2 import fig2
from studies.paper.fig3 import fig3
from studies.paper.fig4 import fig4
from studies.paper.fig5 import fig5
from studies.paper.fig6 import fig6
from studies.paper.fig7 import fig7
from studies.paper.lab import Lab
from studies.paper.page import as_html, as_markdown
from studies.paper.section import Section, Settings
from studies.paper.table1 import table1
from studies.paper.trials import trials

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
# PDF to print, PNG for the page.
SUFFIXES = (".pdf", ".png")
# Written into the record, and asked for before a folder is touched.
FORMAT = "manifactor reproduction"


def chosen(names: Sequence[str]) -> list[str]:
    """Return the named recipes, each once, in the order of `RECIPES`.

    No name or "all" stands for all of them.
    """
    unknown = [name for name in names if name not in (*RECIPES, "all")]
    if unknown:
        raise ValueError(f"a recipe must be one of all, {', '.join(RECIPES)}; got {unknown[0]!r}.")
    if not names or "all" in names:
        return list(RECIPES)
    return [name for name in RECIPES if name in names]


def reproduce(
    names: Sequence[str],
    folder: Path,
    settings: Settings,
    *,
    overwrite: bool = False,
    workers: Workers = Processes(),
    callback: Callable[[str, float], None] | None = None,
) -> Iterator[tuple[str, float | None]]:
    """Run recipes, write what they make to a folder, and yield names and seconds.

    Pictures, numbers and the page are written after each recipe, so that an interrupted
    reproduction can be resumed: what the folder already holds of the same settings and version is
    kept, and None is yielded for its seconds.
    """
    # Before anything is computed: the first figure would fail after minutes.
    extra("matplotlib")
    names = chosen(names)
    record = _opened(folder, settings)
    lab = Lab(workers)
    callback = callback or (lambda name, fraction: None)
    for name in names:
        if name in record["sections"] and not overwrite:
            yield name, None
            continue
        start = time.perf_counter()
        lab.callback = partial(callback, name)
        callback(name, 0.0)
        record["sections"][name] = _made(name, folder, settings, lab)
        _write_record(folder, record)
        callback(name, 1.0)
        yield name, time.perf_counter() - start
    # Once more: an interrupt between numbers and page may have lost the page.
    _write_record(folder, record)


def _made(name: str, folder: Path, settings: Settings, lab: Lab) -> dict:
    """Run a recipe, write its pictures and return its section of the record."""
    start = time.perf_counter()
    with style():
        section = RECIPES[name](settings, lab)
        _write_pictures(folder, section)
    took = round(time.perf_counter() - start, 1)
    return {**section.record(), "took": took}


def _opened(folder: Path, settings: Settings) -> dict:
    """Return the record that the folder holds of these settings, or start one."""
    new = {
        "format": FORMAT,
        "settings": asdict(settings),
        "versions": versions(),
        "python": platform.python_version(),
        "sections": {},
    }
    # The parent must exist: a misspelt path makes no tree of folders.
    require_place(folder / "probe" if folder.exists() else folder, remedy="Choose another --out.")
    folder.mkdir(exist_ok=True)
    if not any(folder.iterdir()):
        _write_record(folder, new)
        return new
    old = _read(folder)
    # Numbers of different runs must not stand on one page.
    for key in ("settings", "versions"):
        if old[key] != new[key]:
            raise ValueError(
                f"{folder} holds a reproduction with other {key}: {old[key]}, not "
                f"{new[key]}. Choose another --out, or remove the folder."
            )
    # A section without its files is made again.
    kept = {
        name: section for name, section in old["sections"].items() if _has_pictures(folder, section)
    }
    return {**old, "sections": kept}


def _read(folder: Path) -> dict:
    """Return the record of an earlier reproduction."""
    path = folder / NUMBERS
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        record = {}
    if record.get("format") != FORMAT:
        raise ValueError(
            f"{folder} must be new, empty, or hold the {NUMBERS} of a reproduction; it stays as it "
            "is. Choose another --out."
        )
    return record


def _has_pictures(folder: Path, section: dict) -> bool:
    return all(
        (folder / (drawn["name"] + suffix)).is_file()
        for drawn in section["pictures"]
        for suffix in SUFFIXES
    )


def _write_pictures(folder: Path, section: Section) -> None:
    for drawn in section.pictures:
        for suffix, content in picture(drawn.figure).items():
            write_bytes(folder / f"{drawn.name}{suffix}", content)


def _write_record(folder: Path, record: dict) -> None:
    """Write the numbers, then the page."""
    done = record["sections"]
    # The order of the page, not that in which recipes were run.
    record["sections"] = {name: done[name] for name in RECIPES if name in done}
    write_bytes(folder / NUMBERS, json.dumps(record, indent=1).encode())
    write_bytes(folder / "index.html", as_html(record, folder).encode())
    write_bytes(folder / "index.md", as_markdown(record).encode())
