"""Records of a long study, written as they come: an interrupt loses none of them."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from manifactor._support.files import write_whole
from manifactor._support.version import __version__

REMEDY = "Choose another --out, or pass --overwrite to start again."


def unfinished(out: Path) -> Path:
    """Return the file that holds the records of a study until it is finished."""
    return out.with_name(f"{out.name}.part")


def kept_records(out: Path, jobs: Sequence[dict]) -> list[dict]:
    """Return the records that an interrupted study has written.

    Parameters
    ----------
    out : Path
        File of the finished study.
    jobs : sequence of dict
        Entries that identify each record of the whole study, in its order.

    Returns
    -------
    list of dict
        Records of the first jobs; empty if no study was interrupted.

    Raises
    ------
    ValueError
        If the records belong to other jobs, or to another version of manifactor.
    """
    path = unfinished(out)
    if not path.is_file():
        return []
    kept = _read(path)
    _require_this_version(path, kept)
    # A study may be shorter than the one that was interrupted; nothing is cut off.
    same = len(kept) <= len(jobs) and all(map(_belongs, kept, jobs))
    if not same:
        raise ValueError(
            f"{path} must hold the first fits of this study; it holds others. {REMEDY}"
        )
    return kept


def _require_this_version(path: Path, kept: Sequence[dict]) -> None:
    """Refuse records of another version, whose fits may differ from those to come."""
    for record in kept:
        version = record.get("version", "an unknown version")
        if version != __version__:
            raise ValueError(
                f"{path} must hold fits of manifactor {__version__}; it holds fits of "
                f"{version}. {REMEDY}"
            )


def _belongs(record: dict, job: dict) -> bool:
    return all(record.get(name) == value for name, value in job.items())


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

    It gets the version of manifactor. All records stay in the file of the unfinished
    study.
    """
    path = unfinished(out)
    write_whole(path, lambda file: file.write("".join(map(_line, kept)).encode()))
    with path.open("a", encoding="utf-8") as file:
        for record in further:
            versioned = {**record, "version": __version__}
            file.write(_line(versioned))
            file.flush()
            yield versioned


def finish(out: Path) -> None:
    """Rename the file of the unfinished study to `out`.

    To be called after everything else was written that is made of the records: until
    then, a study that stops can be continued.
    """
    unfinished(out).replace(out)


def _line(record: dict) -> str:
    return f"{json.dumps(record)}\n"
