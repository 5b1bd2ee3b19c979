"""One case in a process of its own: its limits, and what counts as a failure."""

import faulthandler
import json
import os
import resource
import select
import shlex
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from random import Random

from manifactor.command.main import main

from .kinds import KINDS, Call, described, line_of
from .project import Project


@dataclass(frozen=True)
class Limits:
    """What a case may take."""

    cpu_seconds: int = 20  # processor time, which a busy machine does not lengthen
    # Above what the process had at its start; files of the corpus have under 1 MB.
    memory: int = 2**30
    # Seconds without any processor time after which a sleeping process is hung: it waits for a pipe
    # or a lock that nobody serves.
    asleep_seconds: float = 10.0
    file_size: int = 2**28  # bytes of a file that it may write: a backstop for the disk


@dataclass(frozen=True)
class Case:
    """A damaged file and what is done with it, given by kind, seed and number."""

    kind: str
    seed: int
    number: int


def run_case(case: Case, project: Project) -> dict:
    """Run a case, restore the project, and return what became of it; no problem for a clean one."""
    # Before the fork, so that the memory it takes is not that of the case.
    call, target = damage(case, project)
    what = f"{target} damaged, then {described(call, target)}"
    problem, output = run_call(call, target, project, Limits())
    output = output if problem else ""
    return {"case": asdict(case), "what": what, "problem": problem, "output": output}


def damage(case: Case, project: Project) -> tuple[Call, str]:
    """Damage a file of the project; return what then reads it, and its name."""
    rng = Random(f"{case.kind} {case.seed} {case.number}")
    reader = rng.choice(KINDS[case.kind])
    target = rng.choice(project.files(reader.targets))
    call = rng.choice(reader.calls)
    project.damage(target, rng)
    return call, target


def unread(project: Project, *, n_calls: int | None) -> Iterator[str]:
    """Yield what does not read a file that is not damaged.

    `n_calls` are the calls of each reader that are tried, the first ones; None for all.
    """
    for reader in chain(*KINDS.values()):
        targets = project.files(reader.targets)
        for number, call in enumerate(list(dict.fromkeys(reader.calls))[:n_calls]):
            target = targets[number % len(targets)]
            problem, output = run_call(call, target, project, Limits(), codes=(0,))
            if problem:
                yield f"{described(call, target)}: {problem}: {output[-300:]}"


def run_call(
    call: Call, target: str, project: Project, limits: Limits, codes: tuple[int, ...] = (0, 2)
) -> tuple[str, str]:
    """Read a file in a child of this process; restore the project.

    Returns what is wrong, "" for nothing, and what the child has printed. `codes` are the exit
    codes that are right.
    """
    said, saying = os.pipe()
    output = os.memfd_create("output")
    child = os.fork()
    if not child:
        _work(call, target, limits, saying, output)
    os.close(saying)
    try:
        problem = _watched(child, limits)
        with os.fdopen(said) as pipe:
            report = json.loads(pipe.read() or "{}")
        os.lseek(output, 0, os.SEEK_SET)
        with os.fdopen(output, errors="replace") as file:
            text = file.read()
        problem = problem or problem_of(report, text, limits, codes)
        return problem or left_behind(report, target, project.changes()), text
    finally:
        project.restore()


def _work(call: Call, target: str, limits: Limits, saying: int, output: int) -> None:
    """Do the work of the child, and never return."""
    os.dup2(output, 1)
    os.dup2(output, 2)
    faulthandler.enable()
    # Shows where a case is that takes too long, and ends it.
    faulthandler.register(signal.SIGXCPU, chain=True)
    report: dict = {}
    try:
        start = _memory("VmSize")
        report = {"asked": 0}
        seconds = int(sum(os.times()[:2])) + limits.cpu_seconds
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        resource.setrlimit(resource.RLIMIT_FSIZE, (limits.file_size, limits.file_size))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        report["code"] = exit_code(call, target)
        sys.stdout.flush()
        report["asked"] = _memory("VmPeak") - start
    except BaseException:
        traceback.print_exc()
    os.write(saying, json.dumps(report).encode())
    os._exit(0)


def exit_code(call: Call, target: str) -> int:
    """Return the exit code of a command, or 2 for a clean error of a function."""
    if isinstance(call, str):
        return main(shlex.split(line_of(call, target)))
    try:
        call(Path(target))
    except (ValueError, OSError) as error:
        # Not as it is: who catches an error decides how its text is shown.
        print(f"{type(error).__name__}: {str(error)!r}")
        return 2
    return 0


def _memory(name: str, process: int | str = "self") -> int:
    """Return an entry of the memory of a process, in bytes; 0 if there is none."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:  # it has ended
        return 0
    found = [line.split()[1] for line in lines if line.startswith(f"{name}:")]
    return 1024 * int(found[0]) if found else 0


def _watched(child: int, limits: Limits) -> str:
    """Wait for a child; end it if it takes too much, and return what it took."""
    handle = os.pidfd_open(child)
    start = _memory("VmRSS", child)
    busy, last = time.monotonic(), -1
    problem = ""
    while not select.select([handle], [], [], 0.05)[0]:
        if _memory("VmRSS", child) - start > limits.memory:
            problem = f"took more than {limits.memory / 2**30:g} GB"
        used = _cpu_ticks(child)
        if used != last:
            busy, last = time.monotonic(), used
        if time.monotonic() - busy > limits.asleep_seconds:
            problem = "hangs: it waits for something that does not come"
            os.kill(child, signal.SIGXCPU)
            time.sleep(0.2)
        if problem:
            os.kill(child, signal.SIGKILL)
            break
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(handle)
    if problem or status >= 0:
        return problem
    if -status == signal.SIGXCPU:
        return f"hangs: more than {limits.cpu_seconds} s of processor time"
    return f"died of {signal.Signals(-status).name}"


def _cpu_ticks(process: int) -> int:
    """Return the time used; always another number for a process that is ready to run."""
    try:
        after = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return -2
    # Such a process is not asleep, however busy the machine is.
    return time.monotonic_ns() if after[0] in "RD" else int(after[11]) + int(after[12])


def problem_of(report: dict, output: str, limits: Limits, codes: tuple[int, ...]) -> str:
    """Return what is wrong with how a case ended, "" for nothing."""
    if "asked" not in report:
        return "the fuzzer itself failed"
    if "code" not in report:
        return "traceback"
    # What a chunk of Zarr unpacks to is not promised: docs/guarantees.md.
    if report["asked"] > limits.memory and "decompression" not in output:
        return f"asked for {report['asked'] / 2**30:.1f} GB"
    if report["code"] not in codes:
        return f"exit code {report['code']}"
    if report["code"] == 2 and "Unable to allocate" in output:
        return "asked for memory without a check"
    if "\x1b" in output or "\x07" in output:
        return "prints a control sequence of a file"
    errors = output.count("manifactor: error: ")
    return f"{errors} lines of errors" if errors > 1 else ""


def left_behind(report: dict, target: str, changes: list[str]) -> str:
    """Return what a case has left that it should not, "" for nothing."""
    if "PWNED" in changes:
        return "code of the data was run"
    # But for the damaged file itself, and checkpoints.
    own = (f"{target}/", *(f"{name}/" for name in changes if ".stages" in name.split("/")[0]))
    others = [name for name in changes if not f"{name}/".startswith(own)]
    if report["code"] == 0:
        others = [name for name in others if Path(name).name.startswith(".")]
    return f"left {others[0]} behind" if others else ""
