"""Commands that study the method itself: `bench` and `reproduce`."""

import json
from argparse import Namespace
from pathlib import Path

from manifactor._support.files import write_whole
from manifactor.command.outputs import require_new_file, with_suffix
from manifactor.command.terminal import ProgressBars, counted, show

# The studies are imported by the functions: they import much that nothing else needs,
# and every other command would wait for it.


def bench(arguments: Namespace) -> None:
    """Run the accuracy benchmark, write one JSON line a fit, and print the table."""
    from manifactor.studies.accuracy import full_table, quick_table, render, run

    out = with_suffix(arguments.out, ".jsonl")
    require_new_file(out, overwrite=arguments.overwrite)
    table = quick_table() if arguments.quick else full_table()
    total = sum(seeds for _, seeds in table)
    records = list(counted(run(table), total, "runs"))
    lines = "".join(f"{json.dumps(record)}\n" for record in records)
    write_whole(out, lambda file: file.write(lines.encode()))
    show(render(records))
    show(f"Every fit: {out}")


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
