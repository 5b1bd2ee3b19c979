"""Commands that study the method itself: `bench` and `reproduce`."""

from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from manifactor._support.extras import extra
from manifactor._support.files import write_whole
from manifactor._support.parameters import require_count
from manifactor.command.outputs import require_new_file, with_suffix
from manifactor.command.terminal import ProgressBars, counted, note, show

# The studies are imported by the functions: they import much that nothing else needs,
# and every other command would wait for it.


def bench(arguments: Namespace) -> None:
    """Run a benchmark, write one JSON line a fit, and print the table."""
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
    out = _bench_output(arguments)
    table = quick_table() if arguments.quick else full_table()
    records = _recorded(
        out,
        jobs(table),
        lambda first: run(table, first=first),
        overwrite=arguments.overwrite,
    )
    show(render(records))
    show(f"Every fit: {out}")


def _calibration(arguments: Namespace) -> None:
    """Measure how often each verdict on random problems is right."""
    from manifactor.studies import calibration

    settings = calibration.CalibrationSettings()
    default = settings.quick_problems if arguments.quick else settings.n_problems
    n_problems = default if arguments.problems is None else arguments.problems
    require_count("--problems", n_problems, 1, 10**6)
    out = _bench_output(arguments)
    pictures = [out.with_suffix(suffix) for suffix in (".pdf", ".png")]
    for path in pictures:
        require_new_file(path, overwrite=arguments.overwrite)
    can_draw = _can_draw()
    records = _recorded(
        out,
        calibration.jobs(n_problems),
        lambda first: calibration.run(n_problems, first=first),
        overwrite=arguments.overwrite,
    )
    show(calibration.render(records))
    show(f"Every fit: {out}")
    if can_draw:
        files = calibration.diagram(records)
        for path in pictures:
            _write_bytes(path, files[path.suffix])
        show(f"Reliability diagram: {' and '.join(map(str, pictures))}")


def _can_draw() -> bool:
    """Return whether pictures can be drawn; say why where they cannot."""
    # Before the fits, which take hours; the table needs no picture.
    try:
        extra("matplotlib")
    except ValueError as error:
        note(f"no picture will be drawn: {error}")
        return False
    return True


def _bench_output(arguments: Namespace) -> Path:
    """Return the file to write, which must be new."""
    out = with_suffix(arguments.out or arguments.question, ".jsonl")
    require_new_file(out, overwrite=arguments.overwrite)
    return out


def _recorded(
    out: Path,
    jobs: Sequence[dict],
    run: Callable[[int], Iterator[dict]],
    *,
    overwrite: bool,
) -> list[dict]:
    """Run a study, or the rest of one that was interrupted, and write its records.

    Parameters
    ----------
    out : Path
    jobs : sequence of dict
        What tells the records apart.
    run : callable
        Returns the records from a given one on.
    overwrite : bool
        Whether to start anew.
    """
    from manifactor.studies.keeping import keep, kept_records, unfinished

    part, total = unfinished(out), len(jobs)
    if overwrite:
        part.unlink(missing_ok=True)
    kept = kept_records(out, jobs)
    if kept:
        note(
            f"continuing after {len(kept)} of {total} fits, which are in {part}; "
            "--overwrite starts anew."
        )
    try:
        return list(counted(keep(out, kept, run(len(kept))), total, "fits"))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"finished fits are kept in {part}; repeat the command to continue"
        ) from None


def _write_bytes(path: Path, content: bytes) -> None:
    write_whole(path, lambda file: file.write(content))


def reproduce(arguments: Namespace) -> None:
    """Make the paper's figures and table, with numbers."""
    from manifactor.studies.paper import recipes
    from manifactor.studies.paper.section import Settings

    out = Path(arguments.out)
    try:
        with ProgressBars() as bars:
            results = recipes.reproduce(
                arguments.recipes,
                out,
                Settings(quick=arguments.quick, seed=arguments.seed),
                overwrite=arguments.overwrite,
                callback=bars,
            )
            for name, seconds in results:
                show(f"{name:<8} {_outcome(seconds)}")
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            "finished recipes are kept; repeat the command to continue"
        ) from None
    show(f"Report: {out / 'index.html'}. All numbers: {out / 'numbers.json'}.")
    show("The figures are in the same folder, as PDF and PNG.")


def _outcome(seconds: float | None) -> str:
    if seconds is None:
        return "already done; --overwrite runs it again"
    return f"{seconds:.0f} s"
