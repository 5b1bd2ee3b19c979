"""The command line; the only place that prints."""

import argparse
import json
import shutil
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from getpass import getuser
from pathlib import Path
from secrets import token_urlsafe
from shutil import which
from socket import gethostname

import numpy as np
from tqdm import tqdm

from manifactor import datasets
from manifactor._support.extras import extra
from manifactor._support.files import require_writable, whole_folder, write_whole
from manifactor._support.parameters import require_finite
from manifactor.command.arguments import SETTINGS, build_parser
from manifactor.datasets.writing import write_dataset
from manifactor.inputs.reading import ImageSettings
from manifactor.runs.archive import is_run, load
from manifactor.runs.averaging import average, write_averages
from manifactor.runs.bridges import export
from manifactor.runs.checkpoints import Checkpoints
from manifactor.runs.folder import read_record, read_run, require_new_run
from manifactor.runs.run import open_run
from manifactor.runs.selection import selected, selection
from manifactor.runs.several import fit_side_by_side
from manifactor.runs.task import Task
from manifactor.scores import coordinate_correlation
from manifactor.views.report import write_report
from manifactor.views.words import about_particles, report_text, summary

DEMO_IMAGES = 2500
LONG = 20.0  # seconds from which on a fit is announced
EXIT_BAD_INPUT, EXIT_INTERRUPTED = 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the exit code is 0 when done, 2 for bad input, 130 when interrupted."""
    try:
        arguments = build_parser(COMMANDS, _Parser).parse_args(
            _with_views(sys.argv[1:] if argv is None else argv)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.showwarning = lambda message, *_, **__: _say(
                f"manifactor: warning: {_one_line(message)}"
            )
            arguments.command(arguments)
    except KeyboardInterrupt as stop:
        _say(f"manifactor: interrupted; {str(stop) or 'nothing half-written is left'}.")
        return EXIT_INTERRUPTED
    except (ValueError, OSError, MemoryError) as error:
        _say(f"manifactor: error: {_one_line(error) or type(error).__name__}")
        return EXIT_BAD_INPUT
    except SystemExit as stop:  # from the parser: its message is out
        return int(stop.code or 0)
    return 0


def _with_views(argv: Sequence[str]) -> list[str]:
    """Arguments in which a view that starts with a minus is no option."""
    out: list[str] = []
    for argument in argv:
        if out and out[-1] == "--view":
            out[-1] += f"={argument}"
        else:
            out.append(argument)
    return out


def simulate(arguments) -> None:
    """Write samples of a shape and their truth, or particle images of a moving molecule."""
    if arguments.shape == "molecule":
        out = Path(arguments.out or "molecule")
        _require_new(out, arguments.overwrite, mark="truth.csv")
        simulation = _simulated_molecule(arguments)
        with whole_folder(out) as folder:
            write_dataset(folder, simulation, name=_project_name(out))
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
    print(
        f"{out}: {X.shape[0]} samples with {X.shape[1]} columns (X), {len(truth)} true factors (truth1, ...)"
    )


def _simulated_molecule(arguments) -> datasets.Simulation:
    if (arguments.structure is None) != (arguments.rotor is None):
        raise ValueError(
            "--structure and --rotor go together: a file, and what of it turns."
        )
    own = None
    if arguments.structure:
        own = datasets.read_molecule(
            arguments.structure, rotor=arguments.rotor, assembly=arguments.assembly
        )
    return datasets.simulate_particles(
        arguments.n,
        motions=arguments.motions,
        signal_to_noise=arguments.snr,
        correlation=arguments.correlation,
        defocus=None if arguments.defocus is None else tuple(arguments.defocus),
        molecule=own,
        symmetry=arguments.symmetry,
        in_plane=arguments.in_plane,
        size=arguments.size,
        pixel_size=arguments.pixel_size,
        route=arguments.route,
        random_state=arguments.seed,
    )


def _project_name(folder: Path) -> str:
    """A folder's name as seen from the project's folder, which is where one is if the folder is there."""
    return folder.name if folder.is_absolute() or ".." in folder.parts else str(folder)


def fit(arguments) -> None:
    """Factor an input, or several views side by side, and write a run folder."""
    tasks = [
        _task(arguments, Path(path), view)
        for path in arguments.input
        for view in arguments.view or [None]
    ]
    out = Path(arguments.out or tasks[0].path.with_suffix("").name + "-run")
    if len(tasks) > 1 and (arguments.dry_run or arguments.resume or arguments.reuse):
        raise ValueError(
            "--dry-run, --resume and --reuse are for one input and one view; leave them out."
        )
    if arguments.resume and arguments.reuse:
        raise ValueError(
            "--resume goes on with this run, --reuse starts from another; choose one."
        )
    if len(tasks) > 1:
        _require_new(out, arguments.overwrite, mark="views.csv")
        with whole_folder(out) as folder:
            rows = fit_side_by_side(tasks, folder)
        print(_aligned([list(rows[0]), *(list(row.values()) for row in rows)]))
        failed = sum(row["verdict"] == "failed" for row in rows)
        print(
            f"One run for each view, and this table as views.csv: {out}"
            + (f"; {failed} failed" if failed else "")
        )
        return
    if not arguments.dry_run:
        require_new_run(out, overwrite=arguments.overwrite)
    if out.resolve() in [tasks[0].path.resolve(), *tasks[0].path.resolve().parents]:
        raise ValueError(
            f"the input lies in {out}, which would be replaced. Choose another --out."
        )
    if arguments.reuse is not None and not is_run(Path(arguments.reuse)):
        raise ValueError(
            f"--reuse must name the folder of an earlier run; {arguments.reuse} is none."
        )
    given = tasks[0].read()
    if (
        given.particles is not None
        and given.particles.angles is None
        and given.components is not None
    ):
        _say(
            "manifactor: note: the particles have no angles; all images are taken as one view."
        )
    cost = tasks[0].forecast(given)
    if arguments.dry_run:
        print(f"The fit will take {cost}{_where(arguments)}.")
        return
    require_finite(given.samples)
    _note_constant_columns(given.samples)
    if cost.seconds > LONG:
        _say(f"manifactor: note: this will take {cost}{_where(arguments)}.")
    estimator, record = _fitted(tasks[0], given, out, arguments)
    if arguments.reuse is not None and "neighbours" in estimator.timings_:
        _say(
            f"manifactor: note: nothing of {arguments.reuse} could be used: other samples, or other settings, of which "
            "--fit-samples is one."
        )
    print("\n".join([summary(estimator), *about_particles(record), ""]))
    print(
        f"Every sample's place: {out / 'coordinates.csv'}. Read more: manifactor report {out}"
    )


def _where(arguments) -> str:
    return (
        ""
        if arguments.device in (None, "cpu")
        else " on the CPU, and less on the device"
    )


def _fitted(task: Task, given, out: Path, arguments) -> tuple:
    """The fit with its stages kept beside the run folder to be, until that is written."""
    kept = out.parent / f".{out.name}.stages"
    if not arguments.resume and kept.is_dir():
        _say(
            f"manifactor: note: stages of a fit that was stopped were in {kept}; without --resume they are dropped."
        )
        shutil.rmtree(kept, ignore_errors=True)
    stages = Checkpoints(kept, resume=arguments.resume)
    if arguments.reuse is not None:
        stages.kept = load(arguments.reuse)._kept_stages().kept
    try:
        with _Bars() as bars:
            found = task.fit(
                given, out, overwrite=arguments.overwrite, stages=stages, callback=bars
            )
    except BaseException as stop:
        if kept.is_dir() and isinstance(stop, KeyboardInterrupt):
            raise KeyboardInterrupt(
                "finished stages are kept: the same command with --resume goes on"
            ) from None
        raise
    shutil.rmtree(kept, ignore_errors=True)
    return found


def _task(arguments, path: Path, view) -> Task:
    images = ImageSettings(
        arguments.phase_flip,
        arguments.mask_radius,
        arguments.low_pass,
        arguments.components,
        arguments.standardise,
    )
    settings = {name: getattr(arguments, name) for name in SETTINGS}
    return Task(
        path,
        particles=arguments.particles,
        indices=arguments.ind,
        view=view,
        width=arguments.width,
        images=images,
        settings=settings,
        seed=arguments.seed,
        n_fitted=arguments.fit_samples,
    )


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    """A table with columns as wide as needed."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def select(arguments) -> None:
    """Write the samples in ranges of factors."""
    if len(arguments.factor) != len(arguments.range):
        raise ValueError(
            f"every --factor needs its --range; got {len(arguments.factor)} and {len(arguments.range)} of them."
        )
    out = Path(arguments.out)
    _require_new(out, arguments.overwrite)
    run = open_run(arguments.run)
    if str(out.resolve()) in (run.record.get("input"), run.record.get("particles")):
        raise ValueError(
            f"{out} is what the run was made of, and stays as it is. Choose another --out."
        )
    ranges = [(f, *r) for f, r in zip(arguments.factor, arguments.range, strict=True)]
    chosen = selected(run, ranges, least_confidence=arguments.min_confidence)
    content = selection(run, chosen, out.suffix.lower())
    write_whole(out, lambda file: file.write(content))
    print(f"{out}: {len(chosen)} of {len(run.rows)} samples")


def average_command(arguments) -> None:
    """Write mean images or volumes along a factor, or on the grid of two."""
    run = open_run(arguments.run)
    out = Path(
        arguments.out
        or run.folder / f"average-factor{'x'.join(map(str, arguments.factor))}"
    )
    _require_new(out, arguments.overwrite, mark="bins.csv")
    if arguments.view is not None:
        run = run.seen_from(arguments.view, width=arguments.width)
    averages = average(
        run, arguments.factor, n_bins=arguments.bins, matched=arguments.match
    )
    with whole_folder(out) as folder:
        written = write_averages(averages, folder)
    print(
        f"{averages}.\n{out}: {', '.join(written[:4])}{', ...' if len(written) > 4 else ''}"
    )


def export_command(arguments) -> None:
    """Write files and commands for a program that makes volumes along a factor."""
    run = open_run(arguments.run)
    out = Path(arguments.out or run.folder / f"{arguments.to}-factor{arguments.factor}")
    _require_new(out, arguments.overwrite, mark="commands.txt")
    files = export(run, arguments.factor, arguments.to, n_bins=arguments.bins)
    with whole_folder(out) as folder:
        for name, content in files.items():
            (folder / name).write_bytes(content)
    print(
        f"{out}: {', '.join(files)}. Run there:\n{files['commands.txt'].decode()}",
        end="",
    )


def _require_new(out: Path, overwrite: bool, *, mark: str | None = None) -> None:
    """Refuse what exists, but for a file, or a folder with such a mark, that may be replaced, before work starts."""
    require_writable(out.parent)
    if not out.exists():
        return
    if not (out.is_file() if mark is None else (out / mark).is_file()):
        raise ValueError(
            f"{out} is not what this command writes, and stays as it is. Choose another --out."
        )
    if not overwrite:
        raise ValueError(
            f"the output must not exist yet; {out} does. Choose another --out, or pass --overwrite."
        )


def report(arguments) -> None:
    """Print a run as text, and write the page that shows it into its folder."""
    folder = Path(arguments.run)
    record, estimator = read_run(folder)
    print(report_text(record, estimator))
    print(f"The page: {write_report(folder, estimator)}")


def explore(arguments) -> None:
    """Serve a page on a run until interrupted."""
    from manifactor.views.explorer.scene import open_scene  # needed by no other command
    from manifactor.views.explorer.server import application, listening, serve, warm_up

    for package in ("starlette", "uvicorn"):  # asked for before the work, not after
        extra(package)
    folder = None if arguments.save_to is None else Path(arguments.save_to)
    if folder is not None:
        require_writable(folder)
    token = token_urlsafe(16)
    with listening(arguments.port) as bound:
        scene = open_scene(Path(arguments.run))
        warm_up(scene)
        port = bound.getsockname()[1]
        print(
            f"Open in a browser on this machine: http://127.0.0.1:{port}/?token={token}"
        )
        print(
            f"From another machine, first there: ssh -L {port}:127.0.0.1:{port} {_user()}@{gethostname()}"
        )
        print("Stop with Ctrl-C.", flush=True)
        with suppress(KeyboardInterrupt):  # the way to stop
            serve(application(scene, token, folder=folder), bound)
    print("Stopped.")


def _user() -> str:
    """The user's name, which some containers do not know."""
    try:
        return getuser()
    except (KeyError, OSError, ImportError):
        return "you"


def demo(arguments) -> None:
    """Simulate a molecule that turns and stretches, factor its images, average them along each motion."""
    extra("matplotlib")  # asked for before the work, not after
    out = Path(arguments.out)
    data = out.with_name(out.name + "-data")
    if is_run(out) and read_record(out)["input"] != str(
        (data / "particles.star").resolve()
    ):
        raise ValueError(
            f"the demo replaces earlier demos only; {out} is another run. Choose another --out."
        )
    require_new_run(out, overwrite=True)
    _require_new(data, True, mark="truth.csv")
    print(
        f"A channel whose top turns and whose lower part stretches: {DEMO_IMAGES} noisy images, nothing told of it."
    )
    simulation = datasets.simulate_particles(DEMO_IMAGES, random_state=0)
    with whole_folder(data) as folder:
        write_dataset(folder, simulation, name=_project_name(data))
    task = Task(data / "particles.star")
    with _Bars() as bars:
        estimator, record = task.fit(task.read(), out, overwrite=True, callback=bars)
    print("\n".join(["", summary(estimator), *about_particles(record)]))
    run = open_run(out)
    true = {
        "circle": ("turn", simulation.truth[0]),
        "interval": ("stretch", simulation.truth[1]),
    }
    for number, place in enumerate(run.places, start=1):
        if place.topology in true:
            name, latent = true[place.topology]
            print(
                f"Factor {number} is the true {name}: correlation {coordinate_correlation(place.coordinate, latent):.3f}."
            )
            with whole_folder(out / f"average-factor{number}") as folder:
                write_averages(average(run, [number], n_bins=12, matched=True), folder)
    page = write_report(out)
    movies = " and ".join(
        str(path) for path in sorted(out.glob("average-factor*/averages.gif"))
    )
    print(f"\nThe motions as movies: {movies}")
    print(
        f"Every particle's place: {out / 'particles.star'} (RELION reads it) and {out / 'coordinates.csv'}"
    )
    print(
        f"All on one page, to open in a browser: {page}. The images themselves: {data}"
    )
    program = "manifactor" if which("manifactor") else sys.argv[0]
    print(f"To move along the motions yourself: {program} explore {out}")


def bench(arguments) -> None:
    """Run the accuracy benchmark, one JSON line for each run, and print the table."""
    from manifactor.studies.accuracy import (  # needed by no other command
        full_table,
        quick_table,
        render,
        run,
    )

    out = _with_suffix(arguments.out, ".jsonl")
    _require_new(out, arguments.overwrite)
    table = quick_table() if arguments.quick else full_table()
    total = sum(seeds for _, seeds in table)
    records = list(
        tqdm(run(table), total=total, disable=None, file=sys.stderr, desc="runs")
    )
    text = "".join(json.dumps(record) + "\n" for record in records)
    write_whole(out, lambda file: file.write(text.encode()))
    print(render(records))
    print(f"Every run: {out}")


def reproduce_command(arguments) -> None:
    """Make the paper's figures and table, with numbers."""
    from manifactor.studies.paper.recipes import reproduce  # needed by no other command
    from manifactor.studies.paper.section import Settings

    out = Path(arguments.out)
    settings = Settings(quick=arguments.quick, seed=arguments.seed)
    try:
        with _Bars() as bars:
            for name, took in reproduce(
                arguments.recipes,
                out,
                settings,
                overwrite=arguments.overwrite,
                callback=bars,
            ):
                line = (
                    "there already; --overwrite makes it anew"
                    if took is None
                    else f"{took:.0f} s"
                )
                print(f"{name:<8} {line}", flush=True)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            "finished recipes are kept, and the same command goes on"
        ) from None
    print(
        f"The page: {out / 'index.html'}. All numbers: {out / 'numbers.json'}. Figures beside them, as PDF and PNG."
    )


class _Bars:
    """A progress bar for each stage on a terminal, nothing in a pipe."""

    def __init__(self):
        self.bars: dict[str, tqdm] = {}

    def __call__(self, stage: str, fraction: float) -> None:
        if stage not in self.bars:
            shape = "{desc:<12} |{bar:24}| {elapsed_s:.1f} s"
            self.bars[stage] = tqdm(
                total=1.0, desc=stage, bar_format=shape, disable=None, file=sys.stderr
            )
        self.bars[stage].update(fraction - self.bars[stage].n)
        if fraction >= 1:
            self.bars.pop(stage).close()

    def __enter__(self) -> "_Bars":
        return self

    def __exit__(self, *_) -> None:
        for bar in self.bars.values():
            bar.close()


def _note_constant_columns(X: np.ndarray) -> None:
    constant = np.flatnonzero(X.min(axis=0) == X.max(axis=0))
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
    "explore": explore,
    "select": select,
    "average": average_command,
    "export": export_command,
    "bench": bench,
    "reproduce": reproduce_command,
}


if __name__ == "__main__":
    sys.exit(main())
