"""Commands that study the method itself: `bench` and `reproduce`."""

import json
from argparse import Namespace
from collections.abc import Sequence
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
    from manifactor.studies.accuracy import full_table, quick_table, render, run

    if arguments.problems is not None:
        raise ValueError(
            "--problems is an option of bench calibration; bench accuracy has a table "
            "of its own. Leave it out."
        )
    out = _bench_output(arguments)
    table = quick_table() if arguments.quick else full_table()
    total = sum(seeds for _, seeds in table)
    records = list(counted(run(table), total, "runs"))
    _write_lines(out, records)
    show(render(records))
    show(f"Every fit: {out}")


def _calibration(arguments: Namespace) -> None:
    """Measure how far verdicts on random problems can be relied on."""
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
    records = list(counted(calibration.run(n_problems), n_problems, "problems"))
    _write_lines(out, records)
    show(calibration.render(records))
    show(f"Every fit: {out}")
    if can_draw:
        files = calibration.diagram(records)
        for path in pictures:
            _write_bytes(path, files[path.suffix])
        show(f"Reliability diagram: {' and '.join(map(str, pictures))}")


def _can_draw() -> bool:
    """Return whether pictures can be drawn; say why where they cannot."""
    # Told before the fits, which take an hour; the table needs no picture.
    try:
        extra("matplotlib")
    except ValueError as error:
        note(f"there will be no picture: {error}")
        return False
    return True


def _bench_output(arguments: Namespace) -> Path:
    """Return the file to write, which must be new."""
    out = with_suffix(arguments.out or arguments.question, ".jsonl")
    require_new_file(out, overwrite=arguments.overwrite)
    return out


def _write_lines(out: Path, records: Sequence[dict]) -> None:
    """Write one line of JSON for each record."""
    lines = "".join(f"{json.dumps(record)}\n" for record in records)
    _write_bytes(out, lines.encode())


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
