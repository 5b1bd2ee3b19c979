"""Commands on runs: `report`, `explore`, `select`, `landscape` and `compare`."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from glob import escape
from pathlib import Path
from secrets import token_urlsafe
from signal import SIGINT
from socket import gethostname
from textwrap import fill
from typing import Any

import numpy as np

from manifactor._support.errors import extra, listed
from manifactor._support.files import real_path, require_place, write_bytes
from manifactor._support.progress import ProgressBars
from manifactor._support.stages import Stages
from manifactor.command import arguments, endings
from manifactor.command.outputs import own, require_ending, require_new
from manifactor.command.terminal import aligned, note, show
from manifactor.estimators import ManifoldFactorizer
from manifactor.runs.alignment import LEAST_SHARED, Alignment, align_runs
from manifactor.runs.folder import has_parts, read_record, read_run
from manifactor.runs.landscape import landscape as landscape_of
from manifactor.runs.places import as_csv, coordinate_columns
from manifactor.runs.run import Run, open_run, places_along, select_from_parts, selected, selection
from manifactor.tables.stores import is_stored
from manifactor.views import plots
from manifactor.views.report import REPORT_NAME, write_movies, write_report
from manifactor.views.sections import additions, open_additions
from manifactor.views.words import TEXT_WIDTH, report_text


def select(options: arguments.SelectOptions) -> None:
    """Write the samples in ranges of factors."""
    factors, bounds, out = options.factor, options.range, Path(options.out)
    if len(factors) != len(bounds):
        raise ValueError(
            "every --factor needs its own --range; "
            f"got {len(factors)} --factor and {len(bounds)} --range."
        )
    # The first --range belongs to the first --factor.
    ranges = [(factor, *ends) for factor, ends in zip(factors, bounds, strict=True)]
    require_new(out, overwrite=options.overwrite)
    how: dict[str, Any] = {
        "columns": _column_ranges(options),
        "cluster": options.cluster,
        "least_confidence": options.min_confidence,
        "inverted": options.invert,
    }
    folder = Path(options.run)
    _require_not_an_input(out, read_record(folder))
    if has_parts(folder):
        count, total = select_from_parts(folder, out, ranges, **how)
        show(f"{out}: {count} of {total} samples")
        return
    run = open_run(folder)
    chosen = selected(run, ranges, **how)
    write_bytes(out, selection(run, chosen, out.suffix.lower()))
    show(f"{out}: {len(chosen)} of {len(run.rows)} samples")


def _column_ranges(options: arguments.SelectOptions) -> list[tuple[str, float, float]]:
    """Return the name and the range of each column."""
    ranges = []
    for name, low, high in options.column:
        try:
            ranges.append((name, float(low), float(high)))
        except ValueError:
            raise ValueError(
                f"--column needs a name and two numbers; got {name} {low} {high}."
            ) from None
    return ranges


def _require_not_an_input(out: Path, record: dict) -> None:
    # --overwrite is meant for earlier selections; the samples themselves may exist
    # nowhere else. Tables in folders are changed by any file that is added.
    inputs = [Path(record[name]) for name in ("input", "particles") if name in record]
    path = real_path(out)
    if any(path == each or (each in path.parents and is_stored(each)) for each in inputs):
        raise ValueError(
            f"{out} is the input of the run and is not replaced. Choose another --out."
        )


def landscape(options: arguments.LandscapeOptions) -> None:
    """Write the free energy along a factor, or on the grid of two."""
    run, factors = open_run(options.run, some=True), options.factor or (1,)
    name = f"landscape-factor{'x'.join(map(str, factors))}.csv"
    out = require_ending(options.out or str(run.folder / name), ".csv")
    for path in (out, out.with_suffix(".png")):
        require_new(path, overwrite=options.overwrite)
    found = landscape_of(places_along(run, factors))
    with plots.style(plots.CLEAR):
        figure = plots.new_figure(4.4, 3.2)
        plots.landscape(figure.subplots(), found, factors)
        write_bytes(out.with_suffix(".png"), plots.clear_picture(figure, ".png"))
    write_bytes(out, found.as_csv)
    show(f"{found}.\n{out}, {out.with_suffix('.png').name}")


def compare(options: arguments.CompareOptions) -> None:
    """Print which factors of the first run others share; write one in the frame of the first."""
    names, out = options.runs, options.out and require_ending(options.out, ".csv")
    if len(names) < 2 or (out and len(names) > 2):
        need = "two runs with --out" if out else "two runs or more"
        raise ValueError(f"compare needs {need}; got {len(names)}.")
    if out:
        require_new(out, overwrite=options.overwrite)
    first, *others = (open_run(name, some=True) for name in names)
    found = [align_runs(first, other) for other in others]
    table = coordinate_columns(found[0].mapped(others[0].places), ".csv")
    table = {name: each for name, each in table.items() if np.isfinite(each).all()}
    if out and not table:
        raise ValueError(
            f"{names[0]} and {names[1]} share no factor, so that --out has no columns."
        )
    show(aligned([["factor", *names], *_shared([first, *others], found)]))
    for name, each in zip(names[1:], found, strict=True):
        show(f"{names[0]} and {name}: {each.samples.why}.")
    if out:
        write_bytes(out, as_csv({"sample": others[0].rows, **table}))
        show(f"{out}: samples of {names[1]} on the factors of {names[0]}")


def _shared(runs: Sequence[Run], found: Sequence[Alignment]) -> Iterator[list[str]]:
    """Yield a row for each factor of the first run, then for what only another one has."""
    cells = [{i: _private(*told) for i, told in each.explained[0].items()} for each in found]
    for known, each in zip(cells, found, strict=True):
        for (i, j, r2), how in zip(each.pairs, each.how, strict=True):
            known[i] = f"{j + 1} (R^2 {r2:.3f}, {how})"
    for i, place in enumerate(runs[0].places):
        yield [place.topology, str(i + 1), *(known[i] for known in cells)]
    for b, each in enumerate(found, start=1):
        for j, told in each.explained[1].items():
            row = [_private(*told), *["-"] * len(found)]
            row[b] = str(j + 1)
            yield [runs[b].places[j].topology, *row]


def _private(others: Sequence[int], r2: float) -> str:
    """Return what is said of a factor that this run does not share."""
    numbers = listed(str(k + 1) for k in others)
    together = f"{numbers} together" if len(others) > 1 else f"part of {numbers}"
    return f"{together if r2 >= LEAST_SHARED else 'private'} (R^2 {r2:.3f})"


@contextmanager
def reported(notices: Iterable[str]) -> Iterator[Stages]:
    """Yield stages that draw progress bars; say first what takes a while."""
    for notice in filter(None, notices):
        note(notice)
    with ProgressBars() as bars:
        yield Stages(bars)


def report(options: arguments.ReportOptions) -> None:
    """Print a run as text, and write the page that shows it."""
    folder = Path(options.run)
    record, estimator = read_run(folder)
    # Before anything is drawn, which takes seconds.
    out = _page_of(options)
    # The text first: it needs no matplotlib, the page does.
    run = open_run(folder, some=True)
    wanted = [each.wanted(run, options) for each in additions()]
    show(report_text(record, estimator))
    shown = _shown(run, estimator, wanted)
    for each in shown:
        for text in (*(fill(text, TEXT_WIDTH) for text in each.sentences()), *each.notes()):
            show(text)
    show(f"Report: {write_report(folder, estimator, out=out, shown=shown)}")
    if options.movies:
        movies = ", ".join(map(str, write_movies(folder, page=out, shown=shown)))
        show(f"Movies: {movies or 'none, as no factor has one dimension'}")


def _shown(run: Run, fit: ManifoldFactorizer, wanted: Sequence[Any]) -> list[Any]:
    """Return what packages show of a run, with a bar for what is slow."""
    with reported(each.notice(run) for each in additions()) as stages:
        return open_additions(run, fit, wanted, stages=stages)


def _page_of(options: arguments.ReportOptions) -> Path:
    """Return the file of the page; refuse one that cannot be written."""
    if options.out is None:
        out = Path(options.run, REPORT_NAME)
        own(out)
        return out
    out = require_ending(options.out, ".html")
    movies = out.parent.glob(f"{escape(out.stem)}-factor*") if options.movies else ()
    for path in (out, *movies):
        require_new(path, overwrite=options.overwrite)
    return out


def explore(options: arguments.ExploreOptions) -> None:
    """Serve a page on a run until interrupted."""
    # A missing package must show before the run is read, not after.
    for package in ("jinja2", "pydantic", "starlette", "uvicorn"):
        extra(package)
    # Imported here: no other command needs the explorer.
    from manifactor.views.explorer.scene import scene_of
    from manifactor.views.explorer.server import application, listening, serve

    folder = None if options.save_to is None else Path(options.save_to)
    if folder is not None:
        require_place(folder / "selection")
    # Other users of this machine can reach the port; the token keeps them out.
    token = token_urlsafe(16)
    run = open_run(options.run, some=True)
    wanted = [each.wanted(run, options) for each in additions()]
    with listening(options.port) as bound:
        _, fit = read_run(run.folder)
        shown = _shown(run, fit, wanted)
        for problem in filter(None, (each.problem() for each in shown)):
            note(problem)
        scene = scene_of(run, fit, shown)
        port = bound.getsockname()[1]
        show(f"Open in a browser on this machine: http://127.0.0.1:{port}/?token={token}")
        tunnel = f"ssh -L {port}:127.0.0.1:{port} {os.environ.get('USER', 'you')}@{gethostname()}"
        show(f"From another machine, first run there: {tunnel}")
        show("Stop with Ctrl-C.")
        try:
            with endings.leave_signals():
                serve(application(scene, token, folder=folder), bound)
        except KeyboardInterrupt as stop:
            # Ctrl-C is the way to stop the server, not an error.
            if endings.signal_of(stop) != SIGINT:
                raise
    show("Stopped.")
