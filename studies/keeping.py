"""Records of a long study, written as they come: an interrupt loses none of them."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from manifactor._support import __version__
from manifactor._support.files import write_bytes

REMEDY = "Choose another --out, or pass --overwrite to start again."


def unfinished(out: Path) -> Path:
    """Return the file that holds the records of a study until it is finished."""
    return out.with_name(f"{out.name}.part")


def kept_records(out: Path, jobs: Sequence[dict]) -> list[dict]:
    """Return the records that an interrupted study has written."""
    path = unfinished(out)
    if not path.is_file():
        return []
    kept = _read(path)
    _require_this_version(path, kept)
    # A study may be shorter than the one that was interrupted; nothing is cut off.
    found = positions(kept, jobs)
    if None in found or len(set(found)) < len(found):
        raise ValueError(f"{path} must hold fits of this study; it holds others. {REMEDY}")
    return kept


def positions(records: Sequence[dict], jobs: Sequence[dict]) -> list[int | None]:
    """Return the number of the job that each record belongs to; None for no job.

    >>> positions([{"seed": 7, "solved": True}], [{"seed": 3}, {"seed": 7}])
    [1]
    """
    # Jobs of one study may have different entries.
    entries = {tuple(job) for job in jobs}
    numbers = {_key(job, tuple(job)): number for number, job in enumerate(jobs)}

    def position(record: dict) -> int | None:
        keys = [_key(record, names) for names in entries]
        return next((numbers[key] for key in keys if key in numbers), None)

    return [position(record) for record in records]


def in_order(records: Sequence[dict], jobs: Sequence[dict]) -> list[dict]:
    """Return the records of all jobs in the order of the jobs."""
    found = dict(zip(positions(records, jobs), records, strict=True))
    return [found[number] for number in range(len(jobs))]


def _key(entries: dict, names: tuple[str, ...]) -> str:
    return json.dumps([(name, entries.get(name)) for name in names])


def _require_this_version(path: Path, kept: Sequence[dict]) -> None:
    """Refuse records of another version, whose fits may differ from those to come."""
    for record in kept:
        version = record.get("version", "an unknown version")
        if version != __version__:
            raise ValueError(
                f"{path} must hold fits of manifactor {__version__}; it holds fits of "
                f"{version}. {REMEDY}"
            )


def _read(path: Path) -> list[dict]:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    # The last line is incomplete if the machine stopped while it was written.
    whole = [line for line in lines if line.endswith("\n")]
    try:
        return [json.loads(line) for line in whole]
    except ValueError as error:
        raise ValueError(
            f"{path} must hold one line of JSON for each fit: {error}. {REMEDY}"
        ) from error


def keep(out: Path, kept: Sequence[dict], further: Iterable[dict]) -> Iterator[dict]:
    """Yield each further record after it was written to disk, behind the kept ones.

    It gets the version of manifactor. All records stay in the file of the unfinished study.
    """
    path = unfinished(out)
    _write(path, kept)
    with path.open("a", encoding="utf-8") as file:
        for record in further:
            versioned = {**record, "version": __version__}
            file.write(_line(versioned))
            file.flush()
            yield versioned


def finish(out: Path, records: Sequence[dict]) -> None:
    """Write all records to `out` and remove the file of the unfinished study.

    To be called after everything else was written that is made of the records: until then, a study
    that stops can be continued.
    """
    _write(out, records)
    unfinished(out).unlink()


def _write(path: Path, records: Sequence[dict]) -> None:
    write_bytes(path, "".join(map(_line, records)).encode())


def _line(record: dict) -> str:
    return f"{json.dumps(record)}\n"
