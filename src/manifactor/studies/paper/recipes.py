"""All recipes by name, and a folder that collects what they make."""

import json
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from manifactor._support.extras import extra
from manifactor._support.files import require_writable, write_whole
from manifactor.runs.folder import versions
from manifactor.studies.paper.beyond import beyond
from manifactor.studies.paper.fig1 import fig1
from manifactor.studies.paper.fig2 import fig2
from manifactor.studies.paper.fig3 import fig3
from manifactor.studies.paper.fig4 import fig4
from manifactor.studies.paper.fig5 import fig5
from manifactor.studies.paper.fig6 import fig6
from manifactor.studies.paper.fig7 import fig7
from manifactor.studies.paper.lab import Lab
from manifactor.studies.paper.page import as_html, as_markdown
from manifactor.studies.paper.section import Section, Settings
from manifactor.studies.paper.table1 import table1
from manifactor.studies.paper.trials import trials
from manifactor.views.plots import picture, style

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
SUFFIXES = (".pdf", ".png")
FORMAT = "manifactor reproduction"


def chosen(names: Sequence[str]) -> list[str]:
    """The recipes that are meant, each once, in the order of the table; none or "all" for all."""
    unknown = [name for name in names if name not in (*RECIPES, "all")]
    if unknown:
        raise ValueError(
            f"a recipe must be one of all, {', '.join(RECIPES)}; got {unknown[0]!r}."
        )
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
    record = _opened(folder, settings)
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
            _write_pictures(folder, section)
        record["sections"][name] = {
            **section.record(),
            "took": round(time.perf_counter() - start, 1),
        }
        _write_record(folder, record)
        callback(name, 1.0)
        yield name, time.perf_counter() - start
    _write_record(folder, record)  # the page may have been lost to an interrupt


def _opened(folder: Path, settings: Settings) -> dict:
    """What the folder holds already of these settings, or an empty record in it."""
    new = {
        "format": FORMAT,
        "settings": asdict(settings),
        "versions": versions(),
        "python": platform.python_version(),
        "sections": {},
    }
    if not folder.exists():
        require_writable(folder.parent)
        folder.mkdir()
    require_writable(folder)
    if not any(folder.iterdir()):
        _write_record(folder, new)
        return new
    old = _read(folder)
    for key in ("settings", "versions"):
        if old[key] != new[key]:
            raise ValueError(
                f"{folder} holds a reproduction with other {key}: {old[key]}, not "
                f"{new[key]}. Choose another --out, or remove the folder."
            )
    kept = {
        name: section
        for name, section in old["sections"].items()
        if _has_pictures(folder, section)
    }
    return {**old, "sections": kept}


def _read(folder: Path) -> dict:
    """The record of an earlier reproduction."""
    try:
        record = json.loads((folder / NUMBERS).read_text(encoding="utf-8"))
        if (
            record["format"] == FORMAT
            and dict(record["settings"])
            and dict(record["versions"])
        ):
            as_markdown(record)  # whether all is there that the page needs
            for section in record["sections"].values():
                _has_pictures(folder, section)
            return record
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    raise ValueError(
        f"{folder} must be new, empty, or hold the {NUMBERS} that this command writes, "
        "undamaged; it is none of these, and stays as it is. Choose another --out."
    )


def _has_pictures(folder: Path, section: dict) -> bool:
    return all(
        (folder / (drawn["name"] + suffix)).is_file()
        for drawn in section["pictures"]
        for suffix in SUFFIXES
    )


def _write_pictures(folder: Path, section: Section) -> None:
    for drawn in section.pictures:
        for suffix, content in picture(drawn.figure).items():
            _write_bytes(folder / f"{drawn.name}{suffix}", content)


def _write_record(folder: Path, record: dict) -> None:
    """The numbers, then the page."""
    record["sections"] = {
        name: record["sections"][name] for name in RECIPES if name in record["sections"]
    }
    _write_bytes(folder / NUMBERS, json.dumps(record, indent=1).encode())
    _write_bytes(folder / "index.html", as_html(record, folder).encode())
    _write_bytes(folder / "index.md", as_markdown(record).encode())


def _write_bytes(path: Path, content: bytes) -> None:
    write_whole(path, lambda file: file.write(content))
