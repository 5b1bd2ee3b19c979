"""How a study is run: its options, its files, and records that survive an interrupt."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tqdm import tqdm

from manifactor._support.files import write_bytes
from manifactor._support.workers import Processes
from studies.keeping import finish, in_order, keep, kept_records, positions, unfinished


def parser(description: str, *, out: str = ".") -> ArgumentParser:
    """Return a parser with the options that all studies share."""
    found = ArgumentParser(description=description)
    found.add_argument("--quick", action="store_true", help="few small cases, in a minute or two")
    found.add_argument("--out", type=Path, default=Path(out), metavar="FOLDER")
    found.add_argument("--overwrite", action="store_true", help="start again, replacing files")
    return found


def new_files(options: Namespace, name: str, *suffixes: str) -> dict[str, Path]:
    """Return the files of a study by suffix; they must be new, or those of an unfinished study."""
    options.out.mkdir(exist_ok=True)
    files = {suffix: options.out / f"{name}{suffix}" for suffix in suffixes}
    records = files[".jsonl"]
    continued = unfinished(records).is_file() and not records.exists()
    for path in files.values():
        if path.exists() and not (options.overwrite or continued):
            raise ValueError(f"{path} must not exist yet. Pass --overwrite or another --out.")
    return files


@contextmanager
def recorded(
    out: Path, jobs: Sequence[dict], run: Callable[..., Iterator[dict]], *, overwrite: bool
) -> Iterator[list[dict]]:
    """Run a study, or the rest of one that was interrupted, and yield its records.

    The study is finished, and can no longer be continued, when everything inside of the context
    succeeded.
    """
    part = unfinished(out)
    if overwrite:
        part.unlink(missing_ok=True)
    kept = kept_records(out, jobs)
    if kept:
        print(f"continuing after {len(kept)} of {len(jobs)} fits in {part}", file=sys.stderr)
    further = keep(out, kept, run(known=set(positions(kept, jobs)), workers=Processes()))
    bar = tqdm(further, total=len(jobs), initial=len(kept), unit=" fits")
    records = in_order([*kept, *bar], jobs)
    yield records
    finish(out, records)


def report(
    files: dict[str, Path],
    jobs: Sequence[dict],
    run: Callable[..., Iterator[dict]],
    render: Callable[[list[dict]], str],
    *,
    overwrite: bool,
) -> None:
    """Run a study, or the rest of one; print its report and write it."""
    with recorded(files[".jsonl"], jobs, run, overwrite=overwrite) as records:
        text = render(records)
        print(text)
        write_bytes(files[".md"], text.encode())


def exit_code(main: Callable[[Sequence[str] | None], None]) -> int:
    """Run a study's `main` and return its exit code: 2 with one line for a wrong option."""
    try:
        main(None)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; the same command continues", file=sys.stderr)
        return 130
    return 0
