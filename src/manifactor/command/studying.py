"""Commands that study the method itself: `bench` and `reproduce`."""

from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from manifactor._support.errors import extra
from manifactor._support.files import make_folder, write_bytes
from manifactor._support.parameters import require_count
from manifactor._support.workers import Processes
from manifactor.command.options import REMEDY, chosen_workers, own, require_replaceable
from manifactor.command.signals import leaving
from manifactor.command.terminal import ProgressBars, counted, note, show

# The studies are imported by the functions: they import much that nothing else needs, and every
# other command would wait for it.


def bench(arguments: Namespace) -> None:
    """Run a benchmark, write one line of JSON for each fit, and print the table."""
    benchmarks = {"accuracy": _accuracy, "calibration": _calibration}
    benchmarks[arguments.question](arguments)


def _accuracy(arguments: Namespace) -> None:
    """Measure the rate of right answers on each group of shapes."""
    from manifactor.studies.accuracy import full_table, jobs, quick_table, render, run

    if arguments.problems is not None:
        raise ValueError(
            "--problems is an option of bench calibration; the cases of bench accuracy "
            "are fixed. Leave it out."
        )
    files = _bench_files(arguments, ".jsonl", ".md")
    table = quick_table() if arguments.quick else full_table()
    with _recorded(
        files[".jsonl"], jobs(table), lambda **how: run(table, **how), arguments
    ) as records:
        report = render(records)
        show(report)
        write_bytes(files[".md"], report.encode())
    show(f"Every fit: {files['.jsonl']}. The table: {files['.md']}")


def _calibration(arguments: Namespace) -> None:
    """Measure how often each verdict on random problems is right."""
    from manifactor.studies import calibration

    settings = calibration.CalibrationSettings()
    default = settings.quick_problems if arguments.quick else settings.n_problems
    n_problems = default if arguments.problems is None else arguments.problems
    require_count("--problems", n_problems, low=1, high=10**6)
    files = _bench_files(arguments, ".jsonl", ".md", ".svg", ".png")
    can_draw = _can_draw()
    with _recorded(
        files[".jsonl"],
        calibration.jobs(n_problems),
        lambda **how: calibration.run(n_problems, **how),
        arguments,
        unit="problems",
    ) as records:
        report = calibration.render(records)
        show(report)
        # Before the pictures: drawing may fail, and the table needs none of them.
        write_bytes(files[".md"], report.encode())
        if can_draw:
            drawn = _write_pictures(calibration.diagram(records), files)
            write_bytes(files[".md"], f"{report}{drawn}".encode())
    show(f"Every fit: {files['.jsonl']}. The table: {files['.md']}")


def _write_pictures(pictures: Mapping[str, bytes], files: Mapping[str, Path]) -> str:
    """Write the pictures of the calibration and return Markdown that shows one."""
    if not pictures:
        note("no picture is drawn: no problem has a verdict.")
        return ""
    for suffix, content in pictures.items():
        write_bytes(files[suffix], content)
    names = " and ".join(str(files[suffix]) for suffix in pictures)
    show(f"Reliability diagram: {names}")
    return f"\n![Share of right answers over confidence]({files['.svg'].name})\n"


def _can_draw() -> bool:
    """Return whether pictures can be drawn; say why where they cannot."""
    # Before the fits, which take hours; the table needs no picture.
    try:
        extra("matplotlib")
    except ValueError as error:
        note(f"no picture will be drawn: {error}")
        return False
    return True


def _bench_files(arguments: Namespace, *suffixes: str) -> dict[str, Path]:
    """Return the files to write by suffix, which must be new, and make their folder."""
    folder = Path(arguments.out)
    files = {suffix: folder / f"{arguments.question}{suffix}" for suffix in suffixes}
    if folder.suffix in suffixes and not folder.is_dir():
        raise ValueError(
            f"--out must name a folder, into which {files['.jsonl'].name} is written; "
            f"got {folder}. {REMEDY}"
        )
    make_folder(folder, remedy=REMEDY)
    own(files[".jsonl"])
    continued = _is_unfinished(files[".jsonl"])
    for path in files.values():
        require_replaceable(path, overwrite=arguments.overwrite or continued)
    return files


def _is_unfinished(out: Path) -> bool:
    """Return whether a study was interrupted whose other files may be replaced."""
    from manifactor.studies.keeping import unfinished

    # A study starts only where its files do not exist: beside its unfinished records, a table or a
    # picture is its own. Finished records are those of an earlier study.
    return unfinished(out).is_file() and not out.exists()


@contextmanager
def _recorded(
    out: Path,
    jobs: Sequence[dict],
    run: Callable[..., Iterator[dict]],
    arguments: Namespace,
    *,
    unit: str = "fits",
) -> Iterator[list[dict]]:
    """Run a study, or the rest of one that was interrupted, and yield its records.

    The study is finished, and can no longer be continued, when everything inside of the context
    succeeded.
    """
    from manifactor.studies.keeping import (
        finish,
        in_order,
        keep,
        kept_records,
        positions,
        unfinished,
    )

    part, total = unfinished(out), len(jobs)
    if arguments.overwrite:
        part.unlink(missing_ok=True)
    kept = kept_records(out, jobs)
    if kept:
        note(
            f"continuing after {len(kept)} of {total} {unit}, which are in {part}; "
            "--overwrite starts again."
        )
    text = f"finished {unit} are kept in {part}; repeat the command to continue"
    with leaving(lambda: text):
        with chosen_workers(arguments, Processes()) as workers:
            known = set(positions(kept, jobs))
            further = keep(out, kept, run(known=known, workers=workers))
            found = [*kept, *counted(further, total, unit, n_done=len(kept))]
        records = in_order(found, jobs)
        yield records
        finish(out, records)


def reproduce(arguments: Namespace) -> None:
    """Make the paper's figures and table, with numbers."""
    from manifactor.studies.paper import recipes
    from manifactor.studies.paper.section import Settings

    # What cannot be made is refused before there is a folder.
    extra("matplotlib")
    recipes.chosen(arguments.recipes)
    settings = Settings(quick=arguments.quick, seed=arguments.seed)
    out = Path(arguments.out)
    make_folder(out, remedy=REMEDY)
    own(out / recipes.NUMBERS)
    text = "finished recipes are kept; repeat the command to continue"
    with (
        leaving(lambda: text),
        chosen_workers(arguments, Processes()) as workers,
        # The fits of a recipe are its pieces.
        ProgressBars(steady=recipes.RECIPES) as bars,
    ):
        results = recipes.reproduce(
            arguments.recipes,
            out,
            settings,
            overwrite=arguments.overwrite,
            workers=workers,
            callback=bars,
        )
        for name, seconds in results:
            show(f"{name:<8} {_outcome(seconds)}")
    show(f"Report: {out / 'index.html'}. All numbers: {out / 'numbers.json'}.")
    show("The figures are in the same folder, as PDF and PNG.")


def _outcome(seconds: float | None) -> str:
    if seconds is None:
        return "already done; --overwrite runs it again"
    return f"{seconds:.0f} s"
