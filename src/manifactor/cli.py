"""The command line; the only place that prints."""

import argparse
import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from tqdm import tqdm

from manifactor import datasets
from manifactor.archive import is_run, read_record, read_run, require_new_run, whole_folder, write_whole
from manifactor.arguments import SETTINGS, build_parser
from manifactor.averaging import average, write_averages
from manifactor.bridges import export
from manifactor.cryoem.dataset import write_dataset
from manifactor.estimators import ManifoldFactorizer
from manifactor.inputs import ImageSettings, read_input
from manifactor.jobs import open_run, run_fit, selected, selection
from manifactor.scores import coordinate_correlation

DEMO_IMAGES, DEMO_SEED = 2500, 0
EXIT_BAD_INPUT, EXIT_INTERRUPTED = 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the exit code is 0 when done, 2 for bad input, 130 when interrupted."""
    try:
        arguments = build_parser(COMMANDS, _Parser).parse_args(argv)
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
    """Write samples of a shape and their truth, or particle images of a moving molecule."""
    if arguments.shape == "molecule":
        out = Path(arguments.out or "molecule")
        _require_new(out, arguments.overwrite, mark="truth.csv")
        simulation = _simulated_molecule(arguments)
        with whole_folder(out) as folder:
            write_dataset(folder, simulation)
        print(
            f"{out}: particles.star and particles.mrcs, {arguments.n} images, and truth.csv. Next: manifactor fit "
            f"{out / 'particles.star'}"
        )
        return
    out = _with_suffix(arguments.out or f"{arguments.shape}.npz", ".npz")
    _require_new(out, arguments.overwrite)
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


def _simulated_molecule(arguments) -> datasets.Simulation:
    if (arguments.structure is None) != (arguments.rotor is None):
        raise ValueError("--structure and --rotor go together: a file, and what of it turns.")
    own = datasets.read_molecule(arguments.structure, rotor=arguments.rotor) if arguments.structure else None
    return datasets.simulate_particles(
        arguments.n,
        motions=arguments.motions,
        signal_to_noise=arguments.snr,
        correlation=arguments.correlation,
        defocus=None if arguments.defocus is None else tuple(arguments.defocus),
        molecule=own,
        size=arguments.size,
        pixel_size=arguments.pixel_size,
        route=arguments.route,
        random_state=arguments.seed,
    )


def fit(arguments) -> None:
    """Factor an input, or several views side by side, and write a run folder."""
    views = arguments.view or [None]
    sources = [(Path(path), view) for path in arguments.input for view in views]
    out = Path(arguments.out or sources[0][0].with_suffix("").name + "-run")
    if len(sources) > 1:
        _fit_views(arguments, sources, out)
        return
    require_new_run(out, overwrite=arguments.overwrite)
    estimator, record = _fit_one(arguments, *sources[0], out, quiet=False)
    print(summary(estimator))
    print("\n".join(_about_particles(record)))
    print(f"Every sample's place: {out / 'coordinates.csv'}. Read more: manifactor report {out}")


def _fit_one(arguments, path: Path, view, out: Path, *, quiet: bool) -> tuple[ManifoldFactorizer, dict]:
    images = ImageSettings(
        arguments.phase_flip, arguments.mask_radius, arguments.low_pass, arguments.components, arguments.standardise
    )
    given = read_input(
        path,
        particles=arguments.particles,
        indices=arguments.ind,
        view=view,
        width=arguments.width,
        settings=images,
        rng=np.random.default_rng(arguments.seed),
    )
    if not quiet:
        _note_constant_columns(given.samples)
    settings = {name: getattr(arguments, name) for name in SETTINGS}
    record = {
        "command": "fit",
        "input": str(path.resolve()),
        "seed": arguments.seed,
        "view": view,
        "width": arguments.width,
        "images": vars(images),
        "arguments": settings,
    }
    with _Bars(quiet) as bars:
        return run_fit(
            given,
            out,
            record=record,
            settings=settings,
            seed=arguments.seed,
            overwrite=arguments.overwrite,
            callback=bars,
        )


def _fit_views(arguments, sources, out: Path) -> None:
    """Fit several inputs or views on all cores, each into its own folder, with one table."""
    _require_new(out, arguments.overwrite, mark="views.csv")
    names = [_view_name(path, view) for path, view in sources]
    if len(set(names)) < len(names):
        raise ValueError(f"the inputs must have different names; got {', '.join(names)}.")
    with whole_folder(out) as folder:
        tasks = zip(sources, names, strict=True)
        rows = Parallel(n_jobs=-1)(delayed(_fit_view)(arguments, *source, folder / name) for source, name in tasks)
        table = "view,particles,verdict,factors,problem\n" + "".join(f"{row}\n" for row in rows)
        (folder / "views.csv").write_text(table, encoding="utf-8")
        if all(row.split(",")[2] == "failed" for row in rows):
            raise ValueError(f"no view could be fitted; the first: {rows[0].split(',', 4)[4]}")
    print(_columns(table))
    print(f"One run for each view, and this table as views.csv: {out}")


def _fit_view(arguments, path: Path, view, out: Path) -> str:
    """One line of the table of views."""
    try:
        with warnings.catch_warnings(action="ignore"):
            estimator, record = _fit_one(arguments, path, view, out, quiet=True)
    except (ValueError, OSError) as error:
        return f"{out.name},,failed,,{_one_line(error)}"
    shapes = " x ".join(factor.topology for factor in estimator.factors_)
    meanings = [c["meaning"] for c in record.get("confounders", []) if c["meaning"]]
    return f"{out.name},{record['n_samples']},{estimator.verdict_},{shapes},{'; '.join(meanings)}"


def _view_name(path: Path, view) -> str:
    return path.stem if view is None else f"{path.stem}_rot{view[0]:g}_tilt{view[1]:g}"


def _columns(table: str) -> str:
    """A table of comma-separated lines, aligned."""
    rows = [line.split(",", 4) for line in table.splitlines()]
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def _about_particles(record: dict) -> list[str]:
    """What run.json says of images and particles, in words."""
    lines = []
    if "components" in record:
        lines.append(f"Images: {record['components']['text']}.")
    if record.get("n_samples", 0) > record.get("n_fitted", 0):
        lines.append(f"{record['n_fitted']} of {record['n_samples']} samples were fitted, the others placed.")
    meanings = [c["meaning"] for c in record.get("confounders", []) if c["meaning"]]
    lines += [f"Warning: {meaning}." for meaning in meanings]
    if record.get("confounders") and not meanings:
        lines.append("None of what is known of the particles (pose, microscope, half set) explains a factor.")
    return lines


def select(arguments) -> None:
    """Write the samples in ranges of factors."""
    if len(arguments.factor) != len(arguments.range):
        raise ValueError(
            f"every --factor needs its --range; got {len(arguments.factor)} and {len(arguments.range)} of them."
        )
    out = Path(arguments.out)
    _require_new(out, arguments.overwrite)
    run = open_run(arguments.run)
    chosen = selected(run, [(f, *r) for f, r in zip(arguments.factor, arguments.range, strict=True)])
    content = selection(run, chosen, out.suffix.lower())
    write_whole(out, lambda file: file.write(content))
    print(f"{out}: {len(chosen)} of {len(run.rows)} samples")


def average_command(arguments) -> None:
    """Write mean images or volumes along a factor, or on the grid of two."""
    run = open_run(arguments.run)
    out = Path(arguments.out or run.folder / f"average-factor{'x'.join(map(str, arguments.factor))}")
    _require_new(out, arguments.overwrite, mark="bins.csv")
    averages = average(run, arguments.factor, n_bins=arguments.bins, matched=arguments.match)
    with whole_folder(out) as folder:
        written = write_averages(averages, folder)
    print(f"{averages}.\n{out}: {', '.join(written[:4])}{', ...' if len(written) > 4 else ''}")


def export_command(arguments) -> None:
    """Write files and commands for a program that makes volumes along a factor."""
    run = open_run(arguments.run)
    out = Path(arguments.out or run.folder / f"{arguments.to}-factor{arguments.factor}")
    _require_new(out, arguments.overwrite, mark="commands.txt")
    files = export(run, arguments.factor, arguments.to, n_bins=arguments.bins)
    with whole_folder(out) as folder:
        for name, content in files.items():
            (folder / name).write_bytes(content)
    print(f"{out}: {', '.join(files)}. Run there:\n{files['commands.txt'].decode()}", end="")


def _require_new(out: Path, overwrite: bool, *, mark: str | None = None) -> None:
    """Refuse what exists, but for a file, or a folder with such a mark, that may be replaced."""
    if not out.exists():
        return
    what = "folder" if out.is_dir() else "file"
    ours = out.is_dir() and mark is not None and (out / mark).is_file() if mark else out.is_file()
    if not ours and out.is_dir():
        raise ValueError(f"{out} is a folder that this command did not write. Choose another --out.")
    if not overwrite:
        raise ValueError(
            f"the output {what} must not exist yet; {out} does. Choose another --out, or pass --overwrite."
        )


def report(arguments) -> None:
    """Print a run as text, and keep the text in the run folder."""
    print(_write_report(Path(arguments.run)), end="")


def _write_report(folder: Path) -> str:
    record, estimator = read_run(folder)
    lines = [
        f"{record.get('command', 'run')} of {record.get('input', 'unknown input')}",
        "",
        summary(estimator),
        *_about_particles(record),
        *_diagnostics(record),
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
    write_whole(folder / "report.txt", lambda file: file.write(text.encode()))
    return text


def _diagnostics(record: dict) -> list[str]:
    """Signal to noise, agreement, leakage and confounders as tables."""
    lines = []
    if "signal_to_noise" in record.get("components", {}):
        pairs = zip(record["components"]["signal_to_noise"], record["components"]["weights"], strict=True)
        lines += ["", "Principal components (signal to noise, weight):"]
        lines += [f"  {i:<12} {ratio:<10.3g} {weight:.2f}" for i, (ratio, weight) in enumerate(pairs, start=1)]
    if len(record.get("leakage", [])) > 1:
        lines += ["", "What a place on one factor (row) tells of another (column), R^2:"]
        for i, row in enumerate(record["leakage"], start=1):
            lines.append(f"  factor {i:<5} " + " ".join("   -" if v is None or v != v else f"{v:.2f}" for v in row))
    if record.get("confounders"):
        lines += ["", "What is known of the particles, and how much of each factor it explains (R^2, p):"]
        names = dict.fromkeys(c["name"] for c in record["confounders"])
        for name in names:
            cells = [f"{c['r2']:.2f} ({c['p']:.2f})" for c in record["confounders"] if c["name"] == name]
            lines.append(f"  {name:<15} " + "  ".join(cells))
    return lines


def demo(arguments) -> None:
    """Simulate a molecule that turns and stretches, factor its images, average them along each motion."""
    out = Path(arguments.out)
    data = out.with_name(out.name + "-data")
    if is_run(out) and read_record(out).get("demo") is None:
        raise ValueError(f"the demo replaces earlier demos only; {out} is another run. Choose another --out.")
    require_new_run(out, overwrite=True)
    _require_new(data, True, mark="truth.csv")
    print(
        f"A channel whose top turns and whose lower part stretches: {DEMO_IMAGES} noisy images, nothing told about it."
    )
    simulation = datasets.simulate_particles(DEMO_IMAGES, random_state=DEMO_SEED)
    with whole_folder(data) as folder:
        write_dataset(folder, simulation)
    given = read_input(data / "particles.star", rng=np.random.default_rng(DEMO_SEED))
    record = {"command": "fit", "demo": True, "input": str((data / "particles.star").resolve()), "seed": DEMO_SEED}
    with _Bars() as bars:
        estimator, record = run_fit(
            given, out, record=record, settings={}, seed=DEMO_SEED, overwrite=True, callback=bars
        )
    print("\n" + summary(estimator))
    print("\n".join(_about_particles(record)))
    run = open_run(out)
    names = {"circle": ("turn", simulation.truth[0]), "interval": ("stretch", simulation.truth[1])}
    for number, place in enumerate(run.places, start=1):
        if place.topology in names:
            name, true = names[place.topology]
            found = np.radians(place.coordinate) if place.topology == "circle" else place.coordinate
            print(f"Factor {number} is the true {name}: correlation {coordinate_correlation(found, true):.3f}.")
            with whole_folder(out / f"average-factor{number}") as folder:
                write_averages(average(run, [number], n_bins=12, matched=True), folder)
    _write_report(out)
    movies = " and ".join(str(path) for path in sorted(out.glob("average-factor*/averages.gif")))
    print(f"\nThe two motions as movies: {movies}")
    print(f"Every particle's place: {out / 'particles.star'} (RELION reads it) and {out / 'coordinates.csv'}.")
    print(f"All in words: {out / 'report.txt'}")


def bench(arguments) -> None:
    """Run the accuracy benchmark, one JSON line for each run, and print the table."""
    from manifactor.benchmark import full_table, quick_table, render, run  # needed by no other command

    out = _with_suffix(arguments.out, ".jsonl")
    _require_new(out, arguments.overwrite)
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


class _Bars:
    """A progress bar for each stage on a terminal, nothing in a pipe."""

    def __init__(self, quiet: bool = False):
        self.bars: dict[str, tqdm] = {}
        self.disable = True if quiet else None

    def __call__(self, stage: str, fraction: float) -> None:
        if stage not in self.bars:
            shape = "{desc:<12} |{bar:24}| {elapsed_s:.1f} s"
            self.bars[stage] = tqdm(total=1.0, desc=stage, bar_format=shape, disable=self.disable, file=sys.stderr)
        self.bars[stage].update(fraction - self.bars[stage].n)
        if fraction >= 1:
            self.bars.pop(stage).close()

    def __enter__(self) -> "_Bars":
        return self

    def __exit__(self, *_) -> None:
        for bar in self.bars.values():
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


COMMANDS = {
    "demo": demo,
    "simulate": simulate,
    "fit": fit,
    "report": report,
    "select": select,
    "average": average_command,
    "export": export_command,
    "bench": bench,
}


if __name__ == "__main__":
    sys.exit(main())
