"""Damage files at random and see that every command refuses them cleanly.

``make fuzz CASES=20000 SEED=0`` runs it, ``make fuzz KIND=star SEED=0 CASE=12`` one
case alone.
"""

import argparse
import gc
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import redirect_stdout, suppress
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

from tqdm import tqdm

# Threads and arenas of other libraries would count as memory of the case, and a
# process with threads cannot be forked safely.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MPLBACKEND": "agg",
    "PYTHONHASHSEED": "0",
    "COLUMNS": "88",
}


def main() -> int:
    """Run cases, print the failures, and return 1 if there are any."""
    options = _options()
    if options.share is not None:
        _run_share(options)
        return 0
    start = time.monotonic()
    failures, counts = [], Counter()
    n_expected = options.cases if options.case is None else 1
    for found in tqdm(_found(options), total=n_expected, unit="case", mininterval=5):
        counts[found["case"]["kind"]] += 1
        if found["problem"]:
            failures.append(found)
            tqdm.write(_told(found, whole=options.case is not None))
    n_cases, seconds = sum(counts.values()), time.monotonic() - start
    print(_summary(failures))
    kinds = f"{len(counts)} kinds of files" if len(counts) > 1 else options.kind
    print(
        f"{n_cases} cases of {kinds}, seed {options.seed}, in {seconds:.0f} s: "
        f"{len(failures)} failures."
    )
    return 1 if failures or not n_cases else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", default=None, help="only this kind of files")
    parser.add_argument("--case", type=int, default=None, help="only this number")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    text = "calls of each reader that must first read a file that is not damaged"
    parser.add_argument("--rehearse", type=int, default=None, help=text)
    parser.add_argument("--share", type=int, default=None, help=argparse.SUPPRESS)
    return parser.parse_args()


def _found(options: argparse.Namespace):
    """Yield what became of each case, from as many processes as there are jobs."""
    jobs = 1 if options.case is not None else options.jobs
    command = [sys.executable, "-m", __spec__.name, *sys.argv[1:], "--jobs", str(jobs)]
    environment = {**os.environ, **ENVIRONMENT}
    how = {"env": environment, "stdout": subprocess.PIPE, "text": True}
    running = [subprocess.Popen([*command, "--share", str(k)], **how) for k in range(jobs)]
    lines: SimpleQueue[str | None] = SimpleQueue()
    for process in running:
        Thread(target=_pass_on, args=(process, lines), daemon=True).start()
    for _ in running:
        yield from map(json.loads, iter(lines.get, None))
    for process in running:
        if process.wait():
            raise SystemExit(f"a process of the fuzzer ended with {process.returncode}")


def _pass_on(process: subprocess.Popen, lines: SimpleQueue) -> None:
    """Put what a process prints into the queue, so that its pipe is never full."""
    for line in process.stdout or ():
        lines.put(line)
    lines.put(None)


def _run_share(options: argparse.Namespace) -> None:
    """Run every so many-th case and print what became of each as JSON."""
    from .project import Project
    from .running import run_case, unread

    with tempfile.TemporaryDirectory(prefix="manifactor-fuzz-") as folder:
        modules = Path(folder) / "modules"
        _in_a_child(lambda: _rehearse(Path(folder), modules))
        for name in modules.read_text().split():
            with suppress(Exception):  # parts of a package that has more than modules
                import_module(name)
        modules.unlink()
        # Objects that the collector does not visit stay in pages shared with children.
        gc.freeze()
        os.chdir(folder)
        project = Project.read(Path(folder))
        if not options.share and options.case is None:
            # Cases of a file that cannot be read undamaged would test nothing.
            problems = "\n".join(unread(project, n_calls=options.rehearse))
            if problems:
                raise SystemExit(f"undamaged files must be read:\n{problems}")
        for case in list(_cases(options))[options.share :: options.jobs]:
            print(json.dumps(run_case(case, project)), flush=True)
        os.chdir("/")


def _rehearse(folder: Path, modules: Path) -> None:
    """Make the corpus, and write down which modules that and reports have imported."""
    from manifactor.command.main import main

    from .corpus import make_corpus
    from .kinds import read_structure

    make_corpus(folder)
    os.chdir(folder)
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        main(["report", "z-run", "--out", "page.html"])
        read_structure(Path("molecule.pdb"))
    os.unlink("page.html")
    modules.write_text("\n".join(sorted(sys.modules)))


def _in_a_child(work) -> None:
    """Do some work in a child, whose threads this process does not get."""
    child = os.fork()
    if not child:
        try:
            work()
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        raise SystemExit("the corpus could not be made")


def _cases(options: argparse.Namespace):
    """Yield the cases, the kinds in turn."""
    from .kinds import KINDS
    from .running import Case

    kinds = list(KINDS) if options.kind is None else [options.kind]
    if options.case is not None:
        yield Case(kinds[0], options.seed, options.case)
        return
    for number in range(options.cases):
        turn, kind = divmod(number, len(kinds))
        yield Case(kinds[kind], options.seed, turn)


def _alone(case: dict) -> str:
    return f"make fuzz KIND={case['kind']} SEED={case['seed']} CASE={case['number']}"


def _told(found: dict, *, whole: bool) -> str:
    lines = found["output"].strip().splitlines()
    shown = [f"  | {line[:300]}" for line in (lines if whole else lines[-1:])]
    return "\n".join([f"{found['problem']}: {found['what']}", f"  {_alone(found['case'])}", *shown])


def _summary(failures: list[dict]) -> str:
    """Return each kind of failure once, with the number of its cases."""
    alike: dict[tuple, list[dict]] = {}
    for found in failures:
        last = (found["output"].strip().splitlines() or [""])[-1]
        where = re.findall(r'File "[^"]*/src/([^"]*)", line (\d+)', found["output"])
        place = ":".join(where[-1]) if where else ""
        key = (found["problem"], place, re.sub(r"\d+", "0", last)[:80])
        alike.setdefault(key, []).append(found["case"])
    ordered = sorted(alike.items(), key=lambda item: -len(item[1]))
    return "\n".join(f"{len(v):5d} x {'; '.join(k)}; {_alone(v[0])}" for k, v in ordered)


if __name__ == "__main__":
    sys.exit(main())
