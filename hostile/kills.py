"""Commands that are killed, and what is left of them.

A command runs in a forked process, which has everything imported: a kill costs tens of
milliseconds. The process kills itself before a file operation, as Python's audit events
tell them, or is killed after a time. Then the output must be the old one or the new
one, whole, or be put back by the next command, after which nothing else may be left.

Run as a program, this kills before some operations and prints one line of JSON for each
case: tests start it as a process of its own, since a process with threads must not fork.
"""

import gc
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import chdir, redirect_stdout
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from io import BytesIO, StringIO
from pathlib import Path

import numpy as np

# Those that change which files there are under which names, and all that change files.
RENAMES = frozenset({"os.rename", "shutil.rmtree"})
OPERATIONS = RENAMES | {
    *("open", "os.chmod", "os.link", "os.mkdir", "os.remove", "os.rmdir", "os.truncate"),
    "fcntl.flock",
}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT

# What all cases have, in a folder of its own.
INPUTS = [
    "simulate rectangle --n 120 --out a.npz",
    "simulate rectangle --n 120 --seed 1 --out b.npz",
    "simulate molecule --n 150 --size 54 --pixel-size 4 --snr 100 --out images",
    "fit images/particles.star --out run",
]
ALL_VIEWS = "simulate molecule --views all --n 60 --size 64 --pixel-size 4 --out views"


@dataclass(frozen=True)
class Case:
    """A command that writes."""

    line: str  # the command, and the next one after a kill
    out: str  # what it writes: a file or a folder
    before: tuple[str, ...] = ()  # commands that have written before; the last perhaps `out`
    stride: int = 1  # kills are before each so many operations; 1 for all
    operations: frozenset[str] = OPERATIONS  # kinds of operations that kills are before
    first: int = 1  # number of the first of these


@dataclass(frozen=True)
class Kill:
    """What a kill has led to; empty texts where all is well."""

    case: str
    moment: str
    output: str = ""
    left: str = ""


def with_old(line: str, out: str, **options) -> Case:
    """Return a case that overwrites an output of the same command."""
    return Case(f"{line} --out {out} --overwrite", out, (f"{line} --out {out}",), **options)


FOLDERS = [
    with_old("fit a.npz", "out"),
    with_old("fit a.npz b.npz", "out"),
    with_old("average run --factor 1 --bins 3", "out"),
    with_old("export run --factor 1 --bins 3 --to relion", "out"),
    with_old("simulate molecule --n 20 --size 54 --pixel-size 4", "out"),
]
# Commands that take hundredths of a second; with those of `FOLDERS`.
QUICK = [
    Case("fit a.npz --out out", "out"),
    Case("fit a.npz b.npz --out out", "out"),
    Case("fit a.npy --coordinates parquet --out out --overwrite", "out"),
    with_old("select run --factor 1 --range 0 0.7", "out.star"),
    Case("select run --factor 1 --range 0 0.7 --out out.csv", "out.csv"),
    with_old("simulate torus --n 50", "out.npz"),
    Case("simulate torus --n 50 --out out.npz", "out.npz"),
]
SLOW = [
    Case("report run", "run/report.html", ("report run",)),
    Case("report run --movies --out out.html --overwrite", "out.html", stride=3),
    with_old("views views/particles.star", "out.png"),
    with_old(ALL_VIEWS.removesuffix(" --out views"), "out", stride=2),
    Case("fit views/particles.star --all-views --out out --overwrite", "out", stride=9),
    Case("demo --n 300 --out out", "out/factorization.npz", stride=9),
]


def some_cases() -> list[Case]:
    """Return those of a test, in which few operations are tried."""
    fit, views, _, export, _ = FOLDERS
    # The first three operations remove folders that only tried the place.
    cases = [replace(fit, first=4, stride=2), replace(views, stride=8), replace(export, stride=2)]
    cases = [replace(case, operations=RENAMES) for case in (*cases, QUICK[3])]
    return [*cases, replace(QUICK[-1], stride=2)]


def forked(
    line: str,
    folder: Path,
    *,
    before: int | None = None,
    after: float | None = None,
    operations: frozenset[str] = OPERATIONS,
) -> int:
    """Run a command in a folder, in a process of its own; return how it ended, -9 for killed.

    It is killed after some seconds, or before the file operation of a number, from 1; 0 for none.
    The number of operations of a command that was not killed is in count.txt beside the folder.
    """
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            seen = [] if before is None else _kill_before(before, operations, folder)
            code = _run(line, folder)
            folder.with_name("count.txt").write_text(f"{len(seen)}")
        finally:
            os._exit(code)
    if after is not None:
        time.sleep(after)
        os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _run(line: str, folder: Path) -> int:
    from manifactor.command.main import main

    os.chdir(folder)
    log = os.open(folder.with_name("log.txt"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.write(2, f"$ {line}\n".encode())
    return main(line.split())


def _kill_before(number: int, operations: frozenset[str], folder: Path) -> list[str]:
    """Kill this process before an operation; return the list that all are added to."""
    seen: list[str] = []

    def hook(event: str, arguments: tuple) -> None:
        if event in operations and _is_change(event, arguments, folder):
            seen.append(event)
            if len(seen) == number:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    return seen


def _is_change(event: str, arguments: tuple, folder: Path) -> bool:
    """Return whether an event is about to change the folder."""
    if event != "open":
        return True
    path, _, flags = arguments
    if not isinstance(flags, int) or not flags & WRITING or isinstance(path, int):
        return False
    # Not caches of other packages.
    return os.path.abspath(os.fsdecode(path)).startswith(f"{folder}{os.sep}")


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def content(path: Path) -> dict[str, bytes]:
    """Return the files of an output by name."""
    if path.is_file():
        return {"": path.read_bytes()}
    files = [each for each in path.rglob("*") if each.is_file()]
    return {str(each.relative_to(path)): each.read_bytes() for each in files}


def problem_of(out: Path, old: dict[str, bytes], new: dict[str, bytes]) -> str:
    """Say why an output is neither the old one nor a new one, whole; else nothing."""
    if not os.path.lexists(out):
        return "it is missing" if old else ""
    found = content(out)
    if found == old:
        return ""
    if set(found) != set(new):
        return f"it has {sorted(found)}, not {sorted(new)}"
    broken = [name for name in new if not _is_whole(out / name, new[name])]
    return f"not whole: {broken}" if broken else ""


def _is_whole(path: Path, finished: bytes) -> bool:
    """Return whether a file is as it should be; times in it may be others."""
    found = path.read_bytes()
    try:
        return found == finished or TIMED.get(path.suffix, bytes.__eq__)(found, finished)
    except Exception:
        return False


def _same_arrays(found: bytes, finished: bytes) -> bool:
    """Return whether archives hold the same arrays; a manifest has seconds in it."""
    with np.load(BytesIO(found)) as one, np.load(BytesIO(finished)) as other:
        different = [name for name in other if one[name].tobytes() != other[name].tobytes()]
        return set(one) == set(other) and set(different) <= {"manifest"}


def _same_keys(found: bytes, finished: bytes) -> bool:
    return set(json.loads(found)) == set(json.loads(finished))


def _same_images(found: bytes, finished: bytes) -> bool:
    """Return whether stacks are the same but for the labels of their headers."""
    return all(found[part] == finished[part] for part in (slice(224), slice(1024, None)))


# How to compare files that hold times. All others are equal to the last byte.
TIMED: dict[str, Callable[[bytes, bytes], bool]] = {
    ".npz": _same_arrays,
    ".json": _same_keys,
    ".jsonl": _same_keys,
    ".mrcs": _same_images,
}


class Bench:
    """Folders in which cases run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.inputs = folder / "inputs"

    def prepare(self, *, views: bool = False) -> None:
        """Make the inputs of all cases."""
        from manifactor.command.main import main

        self.inputs.mkdir()
        # In this process: what commands import on their way is imported once.
        with chdir(self.inputs), redirect_stdout(StringIO()):
            for line in INPUTS:
                assert main(line.split()) == 0, line
        assert not views or forked(ALL_VIEWS, self.inputs) == 0
        # Pages that the collector does not touch are not copied for each process.
        gc.freeze()
        with np.load(self.inputs / "a.npz") as stored:
            np.save(self.inputs / "a.npy", stored["X"])

    def copied(self, start: Path, name: str = "work") -> Path:
        copy = self.folder / name
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(start, copy)
        return copy

    def kills(
        self, case: Case, moments: Callable[[float], Iterator[dict]] | None = None
    ) -> Iterator[Kill]:
        """Yield what each kill of a case has led to.

        `moments` gives options of `forked`, one for each kill, for the seconds that the command
        takes; None for kills before file operations.
        """
        start = self.copied(self.inputs, "start")
        for line in case.before:
            assert forked(line, start) == 0, line
        old = content(start / case.out)
        # Under the name of all others: some outputs hold their paths.
        done = self.copied(start)
        begin = time.monotonic()
        options = {"operations": case.operations}
        assert forked(case.line, done, before=0, **options) == 0, case.line
        seconds = time.monotonic() - begin
        n_operations = int(done.with_name("count.txt").read_text())
        new, expected = content(done / case.out), names(done)
        every = ({"before": k} for k in range(case.first, n_operations + 1, case.stride))
        for moment in every if moments is None else moments(seconds):
            work = self.copied(start)
            ended = forked(case.line, work, **options, **moment)
            when = f"{moment.get('before') or moment['after']}"
            # At a random moment, it may have ended already.
            if ended != -signal.SIGKILL and (moments is None or ended != 0):
                yield Kill(case.line, when, f"it ended with {ended} and was not killed")
            else:
                yield self._judged(case, work, when, old, new, expected)
        if moments is None:
            # Every operation was counted: there are no more.
            ended = forked(case.line, self.copied(start), before=n_operations + 1, **options)
            if ended != 0:
                yield Kill(case.line, "the end", f"it ended with {ended}")

    def _judged(self, case, work, moment, old, new, expected) -> Kill:
        out = work / case.out
        missing = bool(old) and not os.path.lexists(out)
        found = "" if missing else problem_of(out, old, new)
        if missing:
            # The next command that owns the place puts it back, though it is refused.
            code = forked(case.line.replace(" --overwrite", ""), work)
            found = problem_of(out, old, new)
            found = found or ("" if code == 2 else f"the next command: {code}")
        code = forked(case.line, work)
        # A command that was killed after its output was in place refuses to replace it.
        if code not in (0, 2) or (code == 2 and "--overwrite" in case.line):
            found = found or f"the next command ended with {code}"
        found = found or problem_of(out, {}, new)
        return Kill(case.line, moment, found, ", ".join(sorted(names(work) ^ expected)))


def warm_up() -> None:
    """Import what commands import, on one core, without starting any thread."""
    # Views are fitted in this process then, in which their operations are counted.
    os.environ["LOKY_MAX_CPU_COUNT"] = "1"
    os.environ["OMP_NUM_THREADS"] = "1"
    ours = ("manifactor.command.main", "manifactor.views.report")
    for module in (*ours, "matplotlib.pyplot", "mrcfile", "pyarrow.parquet"):
        import_module(module)


if __name__ == "__main__":
    warm_up()
    bench = Bench(Path(sys.argv[1]))
    bench.prepare()
    for each in some_cases():
        for kill in bench.kills(each):
            print(json.dumps(asdict(kill)), flush=True)
