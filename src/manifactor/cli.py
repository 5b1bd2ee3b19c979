"""The command line; the only place that prints."""

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from tqdm import tqdm

from manifactor import datasets
from manifactor.archive import is_run, read_record, read_run, require_new_run, write_run, write_whole
from manifactor.estimators import ManifoldFactorizer
from manifactor.factoring.factorize import METHODS
from manifactor.samples import read_samples
from manifactor.scores import coordinate_correlation
from manifactor.spectral.preparation import PREPARATIONS
from manifactor.version import __version__

DEMO_SAMPLES = 3000
EXIT_BAD_INPUT, EXIT_INTERRUPTED = 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the exit code is 0 when done, 2 for bad input, 130 when interrupted."""
    try:
        arguments = _parser().parse_args(argv)
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.showwarning = lambda message, *_, **__: _say(f"manifactor: warning: {_one_line(message)}")
            arguments.command(arguments)
    except KeyboardInterrupt:
        _say("manifactor: interrupted; nothing was written.")
        return EXIT_INTERRUPTED
    except (ValueError, OSError, MemoryError) as error:
        _say(f"manifactor: error: {_one_line(error) or type(error).__name__}")
        return EXIT_BAD_INPUT
    except SystemExit as stop:  # from the parser: its message is out
        return int(stop.code or 0)
    return 0


def simulate(arguments) -> None:
    """Write samples of a shape and their truth to an .npz file."""
    out = _with_suffix(arguments.out or f"{arguments.shape}.npz", ".npz")
    if out.exists() and not arguments.overwrite:
        raise ValueError(f"the output file must not exist yet; {out} does. Choose another --out, or pass --overwrite.")
    X, truth = datasets.sample(
        arguments.shape,
        arguments.n,
        noise=arguments.noise,
        ambient_dimension=arguments.ambient_dimension,
        sampling=arguments.sampling,
        random_state=arguments.seed,
    )
    arrays = {"X": X, **{f"truth{i}": t for i, t in enumerate(truth, start=1)}}
    write_whole(out, lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]
    print(f"{out}: {X.shape[0]} samples with {X.shape[1]} columns (X), {len(truth)} true factors (truth1, ...)")


def fit(arguments) -> None:
    """Factor the samples in a file and write a run folder."""
    source = Path(arguments.input)
    out = Path(arguments.out or source.with_suffix("").name + "-run")
    require_new_run(out, overwrite=arguments.overwrite)
    X = read_samples(source)
    _note_constant_columns(X)
    settings = {name: getattr(arguments, name) for name in SETTINGS}
    estimator = _fitted(X, random_state=arguments.seed, **settings)
    record = {"command": "fit", "input": str(source.resolve()), "seed": arguments.seed, "arguments": settings}
    write_run(estimator, out, record=record, overwrite=arguments.overwrite)
    print(summary(estimator))
    print(f"\nEvery sample's place: {out / 'coordinates.csv'}. Read more: manifactor report {out}")


def report(arguments) -> None:
    """Print a run as text, and keep the text in the run folder."""
    record, estimator = read_run(arguments.run)
    lines = [
        f"{record.get('command', 'run')} of {record.get('input', 'unknown input')}",
        "",
        summary(estimator),
        "",
        "Chosen:",
        f"  samples      {len(estimator.spectrum_.weights)}, intrinsic dimension {estimator.dimension_}",
        f"  preparation  {estimator.preparation_.reason if estimator.preparation_ else 'none needed'}",
        f"  outliers     {int(estimator.outliers_.sum())}",
        f"  neighbours   {estimator.n_neighbors_} ({estimator.neighbors_})",
        f"  bandwidth    {estimator.bandwidth_:.4g}",
        f"  functions    {estimator.n_functions_} ({estimator.solver_}, residuals up to "
        f"{estimator.spectrum_.residuals.max():.1e})",
        f"  seed         {record.get('seed')}",
        "Seconds:",
        *(f"  {stage:<12} {seconds:.2f}" for stage, seconds in estimator.timings_.items()),
        "Versions:",
        *(f"  {name:<12} {version}" for name, version in record.get("versions", {}).items()),
    ]
    text = "\n".join(lines) + "\n"
    print(text, end="")
    write_whole(Path(arguments.run) / "report.txt", lambda file: file.write(text.encode()))


def demo(arguments) -> None:
    """Factor the built-in torus and compare with the truth."""
    out = Path(arguments.out)
    if is_run(out) and read_record(out).get("command") != "demo":
        raise ValueError(f"the demo replaces earlier demos only; {out} is another run. Choose another --out.")
    require_new_run(out, overwrite=True)
    print(f"A torus: two circles of radius 2.77 and 2, {DEMO_SAMPLES} samples in R^4, nothing told about it.")
    X, truth = datasets.sample("torus", DEMO_SAMPLES, random_state=0)
    estimator = _fitted(X, random_state=0)
    write_run(estimator, out, record={"command": "demo", "input": "the built-in torus", "seed": 0}, overwrite=True)
    print("\n" + summary(estimator))
    for number, factor in enumerate(estimator.factors_, start=1):
        if factor.topology == "circle" and factor.coordinate is not None:
            agreements = [coordinate_correlation(factor.coordinate, circle) for circle in truth]
            best = int(np.argmax(agreements))
            print(f"Factor {number} is the true circle {best + 1}: circular correlation {agreements[best]:.3f}.")
    print(f"\nEvery sample's place: {out / 'coordinates.csv'}. Read more: manifactor report {out}")


def bench(arguments) -> None:
    """Run the accuracy benchmark, one JSON line for each run, and print the table."""
    from manifactor.benchmark import full_table, quick_table, render, run  # needed by no other command

    out = _with_suffix(arguments.out, ".jsonl")
    if out.exists() and not arguments.overwrite:
        raise ValueError(f"the output file must not exist yet; {out} does. Choose another --out, or pass --overwrite.")
    table = quick_table() if arguments.quick else full_table()
    total = sum(seeds for _, seeds in table)
    records = list(tqdm(run(table), total=total, disable=None, file=sys.stderr, desc="runs"))
    text = "".join(json.dumps(record) + "\n" for record in records)
    write_whole(out, lambda file: file.write(text.encode()))
    print(render(records))
    print(f"Every run: {out}")


def summary(estimator: ManifoldFactorizer) -> str:
    """Verdict and factors in words."""
    lines = [f"Verdict: {estimator.verdict_}. {estimator.evidence_}"]
    lines += [f"Factor {i}: {factor}." for i, factor in enumerate(estimator.factors_, start=1)]
    return "\n".join(lines)


def _fitted(X, **settings) -> ManifoldFactorizer:
    """Fit with a progress bar for each stage on a terminal, silently in a pipe."""
    bars: dict[str, tqdm] = {}

    def progress(stage: str, fraction: float) -> None:
        if stage not in bars:
            shape = "{desc:<12} |{bar:24}| {elapsed_s:.1f} s"
            bars[stage] = tqdm(total=1.0, desc=stage, bar_format=shape, disable=None, file=sys.stderr)
        bars[stage].update(fraction - bars[stage].n)
        if fraction >= 1:
            bars.pop(stage).close()

    try:
        return ManifoldFactorizer(callback=progress, **settings).fit(X)
    finally:
        for bar in bars.values():
            bar.close()


def _note_constant_columns(X: np.ndarray) -> None:
    constant = np.flatnonzero((X[:1] == X).all(axis=0))
    if 0 < len(constant) < X.shape[1]:
        _say(
            f"manifactor: note: {len(constant)} of {X.shape[1]} columns are constant and say nothing, the first is "
            f"column {constant[0]}; they do no harm."
        )


def _with_suffix(path: str, suffix: str) -> Path:
    return Path(path) if path.endswith(suffix) else Path(path + suffix)


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _one_line(message) -> str:
    return " ".join(str(message).split())


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str):
        _say(f"manifactor: error: {message}. See {self.prog} --help.")
        raise SystemExit(EXIT_BAD_INPUT)


def _count_or(*words: str) -> Callable[[str], int | str]:
    def parse(text: str) -> int | str:
        return text if text in words else int(text)

    parse.__name__ = f"whole number or {' or '.join(words)}"
    return parse


def _number_or(*words: str) -> Callable[[str], float | str]:
    def parse(text: str) -> float | str:
        return text if text in words else float(text)

    parse.__name__ = f"number or {' or '.join(words)}"
    return parse


SETTINGS: dict[str, dict] = {
    "n_factors": {"type": _count_or("auto"), "help": "how many factors to look for"},
    "method": {"choices": list(METHODS), "help": "how to find them"},
    "n_functions": {"type": _count_or("auto"), "help": "eigenfunctions to compute"},
    "n_neighbors": {"type": _count_or("auto", "all"), "help": "neighbours of each sample; all for the full kernel"},
    "bandwidth": {"type": _number_or("auto", "local"), "help": "eps of the kernel exp(-d^2/eps)"},
    "density_correction": {"type": float, "help": "0 (none) to 1 (full)"},
    "eigenvalue_tolerance": {"type": _number_or("auto"), "help": "the paper's delta, times 4"},
    "similarity_threshold": {"type": float, "help": "the paper's gamma"},
    "preparation": {"choices": PREPARATIONS, "help": "against noise"},
    "solver": {"help": "eigensolver: auto, dense, arpack or chebyshev"},
}


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="manifactor", description="Factor a data manifold into its independent degrees of freedom.")
    parser.add_argument("--version", action="version", version=f"manifactor {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("demo", help="factor the built-in torus")
    command.add_argument("--out", default="demo-run", help="run folder (demo-run)")
    command.set_defaults(command=demo)

    command = commands.add_parser("simulate", help="write samples of a built-in shape")
    command.add_argument("shape", metavar="SHAPE", help=", ".join(sorted(datasets.SHAPES)))
    command.add_argument("--n", type=int, default=3000, help="samples (3000)")
    command.add_argument("--noise", type=float, help="standard deviation of Gaussian noise")
    command.add_argument("--ambient-dimension", type=int, metavar="D", help="rotate into R^D")
    command.add_argument("--sampling", default="uniform", help=f"{', '.join(datasets.SAMPLINGS)} (uniform)")
    command.add_argument("--seed", type=int, default=0, help="random seed (0)")
    command.add_argument("--out", help="file to write (SHAPE.npz)")
    command.add_argument("--overwrite", action="store_true", help="replace an existing file")
    command.set_defaults(command=simulate)

    command = commands.add_parser("fit", help="factor the samples in a file")
    command.add_argument("input", metavar="INPUT", help=".npy, .npz (array X), .csv, .tsv or .txt: one sample a row")
    command.add_argument("--out", help="run folder (named after the input)")
    command.add_argument(
        "--overwrite", action="store_true", help="replace an earlier run and all that is in its folder"
    )
    command.add_argument("--seed", type=int, default=0, help="random seed (0)")
    defaults = ManifoldFactorizer().get_params()
    for name, options in SETTINGS.items():
        text = f"{options['help']} ({defaults[name]})"
        command.add_argument(f"--{name.replace('_', '-')}", default=defaults[name], **{**options, "help": text})
    command.set_defaults(command=fit)

    command = commands.add_parser("bench", help="measure accuracy on shapes of known truth")
    command.add_argument("question", choices=["accuracy"])
    command.add_argument("--quick", action="store_true", help="a few small cases, in seconds")
    command.add_argument("--out", default="accuracy.jsonl", help="file to write (accuracy.jsonl)")
    command.add_argument("--overwrite", action="store_true", help="replace an existing file")
    command.set_defaults(command=bench)

    command = commands.add_parser("report", help="describe a run in words")
    command.add_argument("run", metavar="RUN", help="folder that fit wrote")
    command.set_defaults(command=report)
    return parser


if __name__ == "__main__":
    sys.exit(main())
