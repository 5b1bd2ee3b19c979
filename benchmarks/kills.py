"""Do killed commands leave whole outputs, and nothing else?

Every command that writes is killed (SIGKILL) before each of its file operations, of the
slowest commands before some, and quick commands are killed at random moments. After a
kill, the old or the new output must be in place and whole, or the next command must put
the old one back; after the next command, nothing else may be left. The exit code is 0
if all of that holds for every kill, else 1.

    python benchmarks/kills.py [--random 500] [--seed 0] [--only WORD]
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from hostile.kills import FOLDERS, QUICK, SLOW, Bench, Case, Kill, warm_up


def at_random(
    bench: Bench, n_kills: int, rng: np.random.Generator, only: str = ""
) -> Iterator[tuple[Case, list[Kill]]]:
    """Kill quick commands that have a word at random moments, so many in all."""
    cases = [case for case in (*FOLDERS, *QUICK) if n_kills and only in case.line]
    for number, case in enumerate(cases):
        count = n_kills // len(cases) + (number < n_kills % len(cases))

        def moments(seconds: float, count: int = count) -> Iterator[dict]:
            for _ in range(count):
                yield {"after": rng.uniform(0, seconds)}

        yield case, list(bench.kills(case, moments))


def show(case: Case, kills: list[Kill]) -> None:
    whole = sum(not kill.output for kill in kills)
    clean = sum(not kill.left for kill in kills)
    print(f"{len(kills):6} {whole:6} {clean:6}  {case.line}", flush=True)
    for kill in kills:
        if kill.output or kill.left:
            print(f"        {kill.moment}: {kill.output}; left: {kill.left}")


def exit_code(kills: list[Kill]) -> int:
    """Return 0 if there were kills and each left a whole output and nothing else."""
    return 0 if kills and not any(kill.output or kill.left for kill in kills) else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--random", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="commands that have this word")
    chosen = parser.parse_args()
    warm_up()
    everything: list[Kill] = []
    with TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        bench.prepare(views=True)
        print(" kills  whole  clean  command, killed before its file operations")
        for case in (*FOLDERS, *QUICK, *SLOW):
            if chosen.only in case.line:
                kills = list(bench.kills(case))
                show(case, kills)
                everything += kills
        print("\n kills  whole  clean  command, killed at random moments")
        rng = np.random.default_rng(chosen.seed)
        for case, kills in at_random(bench, chosen.random, rng, chosen.only):
            show(case, kills)
            everything += kills
    whole = sum(not kill.output for kill in everything)
    clean = sum(not kill.left for kill in everything)
    print(f"\n{len(everything)} kills: {whole} outputs whole, {clean} left nothing.")
    return exit_code(everything)


if __name__ == "__main__":
    sys.exit(main())
