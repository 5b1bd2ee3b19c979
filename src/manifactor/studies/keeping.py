"""Records of a long study, written as they come: an interrupt loses none of them."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from manifactor._support.files import write_whole


def unfinished(out: Path) -> Path:
    """Return the file that holds the records until all of them are there."""
    return out.with_name(f"{out.name}.part")


def kept_records(out: Path, jobs: Sequence[dict]) -> list[dict]:
    """Return the records that an interrupted study has left.

    Parameters
    ----------
    out : Path
        File of the finished study.
    jobs : sequence of dict
        For each record of the whole study, entries that the record has.

    Returns
    -------
    list of dict
        Those of the first jobs; empty if no study was interrupted.

    Raises
    ------
    ValueError
        If the records are those of other jobs.
    """
    path = unfinished(out)
    if not path.is_file():
        return []
    kept = _read(path)
    # A study may be shorter than the one that was interrupted; nothing is cut off.
    same = len(kept) <= len(jobs) and all(map(_belongs, kept, jobs))
    if not same:
        raise ValueError(
            f"{path} must hold the first fits of this study; it holds others. Choose "
            "another --out, or pass --overwrite to start anew."
        )
    return kept


def _belongs(record: dict, job: dict) -> bool:
    return all(record.get(name) == value for name, value in job.items())


def _read(path: Path) -> list[dict]:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    # The last line has no end if the machine stopped while it was written.
    whole = [line for line in lines if line.endswith("\n")]
    try:
        return [json.loads(line) for line in whole]
    except ValueError as error:
        raise ValueError(
            f"{path} must hold one line of JSON for each fit: {error}. Pass "
            "--overwrite to start anew."
        ) from error


def keep(out: Path, kept: Sequence[dict], further: Iterable[dict]) -> Iterator[dict]:
    """Yield kept and further records, each after it was written to disk.

    The records become the file `out` when all of them are there.
    """
    path = unfinished(out)
    write_whole(path, lambda file: file.write("".join(map(_line, kept)).encode()))
    yield from kept
    with path.open("a", encoding="utf-8") as file:
        for record in further:
            file.write(_line(record))
            file.flush()
            yield record
    path.replace(out)


def _line(record: dict) -> str:
    return f"{json.dumps(record)}\n"
