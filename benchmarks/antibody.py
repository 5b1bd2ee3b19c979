"""How well are the motions of an antibody found at low signal, beside other programs?

python benchmarks/antibody.py BEADS [--rows all] [--seeds 1 3] [--jobs 16] [--results FILE]
python benchmarks/antibody.py BEADS --rows peers --cryodrgn [FOLDER] [--epochs 20]
python benchmarks/antibody.py BEADS --rows motion=turn,snr=.05,size=128,ctf=1 --keep DATA
python benchmarks/antibody.py --table FILE ... [--page docs/antibody.md] [--figures FOLDER]

BEADS and the rows are described in `antibody_images.py`. cryoDRGN is imported from where it is
installed or from FOLDER, and needs a GPU; its license keeps it from being a dependency.
"""

import argparse
import json
import os
import pickle
import resource
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, fields, replace
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType, SimpleNamespace

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy import fft
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from antibody_images import Antibody, Row, drawn, write_set
from manifactor.cryoem.all_views.fitting import fit_all_views, read_all_views
from manifactor.cryoem.all_views.model import MotionModel
from manifactor.cryoem.all_views.principal import principal_volumes
from manifactor.cryoem.all_views.transforms import read_transforms
from manifactor.cryoem.all_views.volumes import open_motions
from manifactor.runs.archive import Checkpoints
from manifactor.runs.landscape import landscape
from manifactor.runs.options import FitOptions
from manifactor.runs.run import open_run
from manifactor.runs.task import Task
from manifactor.scores import coordinate_correlation, information_imbalance, regression_r2

from record import record

# How the right verdict begins, where topologies do not tell it.
WORDS = {"rigid": "rigid", "states": "two states", "lack": "two classes; a circle in the larger"}
# Particles in which neighbours are compared, and whose volumes are; numbers of neighbours.
COMPARED, DECODED, NEIGHBOURS = 4000, 100, (50, 500)


ROWS = {
    **{f"turn-{snr:g}": Row("turn", snr) for snr in (0.5, 0.1, 0.05, 0.02)},
    **{f"both-{snr:g}": Row("both", snr, 10_000) for snr in (0.5, 0.1, 0.05)},
    **{f"swing-turn-{snr:g}": Row("swing-turn", snr, 10_000) for snr in (0.5, 0.1)},
    "swings-0.5": Row("swings", n=10_000),
    "errors-0.5": Row(poses=3.0, shift=2.0, ctf=1, preferred=1),
    **{f"lack-{snr:g}": Row("lack", snr, 4000) for snr in (0.5, 0.1, 0.02)},
    **{f"states-{snr:g}": Row("states", snr, 4000) for snr in (0.5, 0.1, 0.02)},
    **{f"rigid-{snr:g}": Row("rigid", snr, 4000) for snr in (0.5, 0.1, 0.02)},
}
ALL = tuple(ROWS)
ROWS["peers"] = Row("turn", 0.1, 30_000)
ROWS["peers-ctf"] = replace(ROWS["peers"], ctf=1, shift=2.0)
ROWS["igg-1d"] = Row("turn", 0.01, 100_000, size=128, ctf=1, shift=2.0)
ROWS["igg-2d"] = replace(ROWS["igg-1d"], motion="both")


def row_of(text: str) -> Row:
    """Return the row of a name, or of fields such as "motion=turn,snr=.1"."""
    kinds = {field.name: type(field.default) for field in fields(Row)}
    if text in ROWS:
        return ROWS[text]
    pairs = (part.split("=") for part in text.split(","))
    return Row(**{name: kinds[name](value) for name, value in pairs})


# What is measured.


def space_of(motions) -> np.ndarray:
    """Return places as points: a circle has the radius 1, an interval goes from -1 to 1."""
    points = [
        np.stack([np.cos(at), np.sin(at)], 1) if kind == "circle" else at.reshape(len(at), -1)
        for kind, at in motions
    ]
    return np.hstack(points)


def aligned(kind: str, found, deviation, true) -> dict:
    """Return errors of coordinates after the best turn and mirror, or the best line."""
    if kind == "circle":
        sums = {sign: np.mean(np.exp(1j * (true - sign * found))) for sign in (1, -1)}
        sign, shown = max(sums, key=lambda sign: abs(sums[sign])), 180 / np.pi
        correlation, fitted = abs(sums[sign]), sign * found + np.angle(sums[sign])
        error = (true - fitted + np.pi) % (2 * np.pi) - np.pi
    else:
        slope, start = np.polyfit(found, true, 1)
        correlation, fitted = abs(np.corrcoef(found, true)[0, 1]), start + slope * found
        error, deviation, shown = true - fitted, abs(slope) * deviation, 50.0
    return {
        "kind": kind,
        "correlation": correlation,
        "median_error": shown * np.median(np.abs(error)),  # degrees, or percent
        "error_over_deviation": np.sqrt(np.mean(error**2) / np.mean(deviation**2)),
        "coverage": np.mean(np.abs(error) < deviation),
        "sketch": np.column_stack([true, fitted])[:1500],
    }


def matched(places, motions) -> list[dict]:
    """Return errors of the true motions that were found, each in a factor of its own."""
    score = np.zeros((len(motions), len(places)))
    for i, motion in enumerate(motions):
        for k, place in enumerate(places):
            if place.topology == motion[0] and place.deviation is not None:
                score[i, k] = coordinate_correlation(place.coordinate, space_of([motion]))
    pairs = zip(*linear_sum_assignment(-score), strict=True)
    return [
        aligned(motions[i][0], places[k].coordinate, places[k].deviation, motions[i][1])
        for i, k in pairs
        if score[i, k] > 0
    ]


def common_neighbours(found: np.ndarray, true: np.ndarray) -> dict[int, float]:
    """Return the share of nearest neighbours that two spaces have in common."""
    ranks = [cdist(space, space).argsort(axis=1).argsort(axis=1) for space in (found, true)]
    return {
        k: float(((ranks[0] <= k) & (ranks[1] <= k)).sum() / len(found) - 1) / k for k in NEIGHBOURS
    }


def fsc_areas(found: np.ndarray, true: np.ndarray) -> tuple[float, float]:
    """Return the area below the Fourier shell correlation, and its mean to 12 cycles per box.

    The area is that of CryoBench, to half a cycle per pixel: at most .5.
    """
    size = len(true)
    along = np.rint(size * fft.fftfreq(size))
    shell = np.rint(np.sqrt(sum(np.square(np.meshgrid(*3 * [along]))))).astype(int).ravel()
    ours, theirs = (fft.fftn(volume).ravel() for volume in (found, true))
    cross = np.bincount(shell, (ours * theirs.conj()).real)
    powers = np.bincount(shell, np.abs(ours) ** 2) * np.bincount(shell, np.abs(theirs) ** 2)
    curve = (cross / np.sqrt(np.maximum(powers, 1e-300)))[1 : size // 2 + 1]
    return curve.mean() / 2, curve[:12].mean()


def compared(space: np.ndarray, decode, beads: Path, row: Row, truth) -> dict:
    """Return how a space compares with the true one, and volumes with true volumes."""
    rows = np.random.default_rng(0).permutation(row.n)[:COMPARED]
    if not truth.motions:
        return {}
    some, molecule = space[rows], Antibody(beads)
    true = [space_of([motion])[rows] for motion in truth.motions]
    others = {"truth": np.hstack(true), "pose": truth.rotations.reshape(-1, 9)[rows]}
    if truth.defocus is not None:
        others["defocus"] = truth.defocus[rows, None]
    middle = some.mean(axis=0)
    plane = (some - middle) @ np.linalg.svd(some - middle, full_matrices=False)[2][:2].T
    found = {
        "neighbours": common_neighbours(some, others["truth"]),
        "r2": [regression_r2(some, each) for each in true],
        "imbalance": {name: information_imbalance(some, each) for name, each in others.items()},
        "sketch": np.column_stack([plane, truth.angle[rows, 0]])[:1500],
    }
    if decode is not None:
        areas = [fsc_areas(decode(i), molecule.volume(row, truth, i)) for i in rows[:DECODED]]
        found["fsc"] = np.mean(areas, axis=0)
    return found


# The programs.


def assessed(beads: Path, row: Row, seed: int, folder: Path, device: str) -> list[dict]:
    """Fit a set by default; return what is found, and what principal volumes alone tell."""
    truth, path = drawn(row, seed), folder / "particles.star"
    stages = Checkpoints(folder / "kept")
    task = Task(path, FitOptions(input=(str(path),), all_views=True, device=device))
    found, start = {"method": "manifactor"}, time.perf_counter()
    particles, source, grid = read_all_views(task)
    with warnings.catch_warnings(action="ignore"):
        try:
            fit, _ = fit_all_views(task, particles, source, grid, folder / "run", stages=stages)
        except ValueError as error:
            fit, words = None, str(error).partition(".")[0].removeprefix("the verdict is ")
    found |= {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time()}
    found["gigabytes"] = peak_gigabytes()
    names = ("images", "principal volumes")
    alone = {"method": "principal volumes alone"}
    alone["seconds"] = sum(stages.timings.get(name, 0) for name in names)
    if fit is None:
        found |= {"headline": words, "kinds": []}
    else:
        found |= found_in(open_run(folder / "run"), fit, beads, row, truth)
    words, kinds = WORDS.get(row.motion), sorted(kind for kind, _ in truth.motions)
    right = found["headline"].startswith(words) if words else sorted(found["kinds"]) == kinds
    # Images and principal volumes are those of the fit.
    stages = Checkpoints(folder / "kept")
    how = {"rng": np.random.default_rng(0), "stages": stages}
    transforms = read_transforms(source, particles, grid, **how)
    principal = principal_volumes(transforms, seed=0, stages=stages)
    if principal.rank:
        known = SimpleNamespace(features=lambda z: np.column_stack([[1.0], z]))
        parts = {"grid": grid, "box": transforms.box, "size": row.size, "motions": known}
        parts |= {"volumes": principal.volumes, "views": None, "consistency": None}
        model, z = MotionModel(**parts), principal.coordinates
        alone |= compared(z, lambda i: model.density(z[i]), beads, row, truth)
    return [found | {"right": right}, alone | {"rank": principal.rank}]


def found_in(run, fit, beads: Path, row: Row, truth) -> dict:
    """Return what a run says, and how far it is right."""
    places, found = run.places, {"headline": run.record["all_views"]["headline"]}
    found |= {"verdict": run.record["verdict"], "kinds": [place.topology for place in places]}
    if run.clusters is not None:
        counts = np.zeros((run.clusters.max() + 1, 2))
        np.add.at(counts, (run.clusters, truth.state), 1)
        return found | {"accuracy": counts[linear_sum_assignment(-counts)].sum() / row.n}
    motions, decode = open_motions(run, fit), None
    if motions is not None:
        numbers, at = range(len(places)), [place.displayed for place in places]
        decode = lambda i: motions.volumes(numbers, [each[[i]] for each in at])[0]  # noqa: E731
        # True places are even: each well is false.
        found["wells"] = [landscape([place]).energy.max() for place in places]
    # From 0 to 1 on an interval.
    pairs = [(p.topology, p.coordinate * (1 + (p.topology == "interval"))) for p in places]
    space = compared(space_of(pairs), decode, beads, row, truth)
    return found | space | {"factors": matched(places, truth.motions)}


def bounded(beads: Path, row: Row, seed: int, folder: Path) -> list[dict]:
    """Return what the places of one turning Fab would be with exact volumes and poses.

    Errors are those of 200 particles, up to 60 degrees.
    """
    molecule, truth, some = Antibody(beads), drawn(row, seed), np.arange(200)
    rng, apart, true = np.random.default_rng([seed, 2]), np.radians(np.arange(-60, 61)), truth.angle
    shown = np.empty((len(apart), len(some), row.size, row.size), np.float32)
    for images, turn in zip(shown, apart, strict=True):
        truth.angle = true + np.array([turn, 0])
        images[:] = molecule.images(row, truth, some)
    clean, truth.angle = shown[len(apart) // 2], true
    noise = np.sqrt(clean.var(axis=(1, 2)).mean() / row.snr)
    seen = clean + noise * rng.standard_normal(clean.shape, dtype=np.float32)
    squares = np.array([((seen - images) ** 2).sum(axis=(1, 2)) for images in shown])
    likelihood = np.exp((squares.min(axis=0) - squares) / 2 / noise**2)
    errors = apart @ likelihood / likelihood.sum(axis=0)
    space = space_of([("circle", true[:, 0] + rng.choice(errors, row.n))])
    return [{"method": "exact volumes and poses", **compared(space, None, beads, row, truth)}]


def peak_gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def trained(
    beads: Path, row: Row, seed: int, folder: Path, package: str, epochs: int
) -> list[dict]:
    """Train cryoDRGN by default; return what its latent variables tell."""
    sys.path.append(package)
    # Its pictures and graphs are not needed, nor what they import.
    idle = {"add_args": lambda parser: parser, "main": lambda arguments: None}
    sys.modules["cryodrgn.commands.analyze"] = SimpleNamespace(**idle)
    sys.modules["igraph"] = ModuleType("igraph")
    torch, models = import_module("torch"), import_module("cryodrgn.models")
    truth, out, start = drawn(row, seed), folder / "cryodrgn", time.perf_counter()
    out.mkdir()

    def command(name: str, *words) -> None:
        module, parser = import_module(f"cryodrgn.commands.{name}"), argparse.ArgumentParser()
        module.add_args(parser)
        module.main(parser.parse_args([*map(str, words)]))

    star, poses, ctf = folder / "particles.star", out / "poses.pkl", out / "ctf.pkl"
    command("parse_pose_star", star, "-o", poses)
    # Its CTF has the other sign.
    words = ["--ctf", ctf] if row.ctf else ["--uninvert-data"]
    if row.ctf:
        command("parse_ctf_star", star, "-o", ctf)
    words += ["-o", out, "--poses", poses, "--zdim", 8, "-n", epochs, "--seed", 0]
    stack = star.with_suffix(".mrcs")
    command("train_vae", stack, *words, "--checkpoint", 0, "--no-analysis")
    seconds, config = time.perf_counter() - start, str(out / "config.yaml")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model, lattice = models.HetOnlyVAE.load(config, str(out / "weights.pkl"), device=device)
    model.eval()
    scale = import_module("cryodrgn.utils").load_yaml(config)["dataset_args"]["norm"]
    z, grid = (
        pickle.loads((out / "z.pkl").read_bytes()),
        (lattice.coords, lattice.D, lattice.extent),
    )

    def decode(i: int) -> np.ndarray:
        return model.decoder.eval_volume(*grid, [*map(float, scale)], z[i]).cpu().numpy()

    found = {"method": f"cryoDRGN, {epochs} epochs", "seconds": seconds, "device": device.type}
    found["gigabytes"] = peak_gigabytes()
    return [found | compared(z.astype(float), decode, beads, row, truth)]


def measured(arguments) -> list[dict]:
    """Return the results of all rows and seeds; each is recorded when it is there."""
    names = [name for word in arguments.rows for name in (ALL if word == "all" else [word])]
    # The longest first, each with its share of the cores.
    names.sort(key=lambda name: -row_of(name).n)
    share = max(1, len(os.sched_getaffinity(0)) // arguments.jobs)
    os.environ["LOKY_MAX_CPU_COUNT"] = str(share)
    spawn, results, written, found = get_context("spawn"), [], {}, {}
    with (
        tempfile.TemporaryDirectory() as temporary,
        # Peaks of memory are those of a process.
        ProcessPoolExecutor(arguments.jobs, spawn, max_tasks_per_child=1) as pool,
    ):
        for name in names:
            for seed in range(*arguments.seeds):
                folder = Path(arguments.keep or temporary).absolute() / f"{name}-{seed}"
                job = (arguments.beads.absolute(), row_of(name), seed, folder)
                written[pool.submit(write_set, *job)] = (name, *job)
        for task in as_completed(written):
            task.result()
            name, *job = written[task]
            if arguments.cryodrgn is not None:
                more = (arguments.cryodrgn, arguments.epochs)
                found[pool.submit(trained, *job, *more)] = name, job
            found[pool.submit(assessed, *job, arguments.device)] = name, job
            if row_of(name).motion == "turn":
                found[pool.submit(bounded, *job)] = name, job
        for task in as_completed(found):
            name, (_, row, seed, _) = found[task]
            if task.exception() is not None:
                print(f"{name}, seed {seed}: {task.exception()!r}", flush=True)
                continue
            for result in task.result():
                line = plain({"row": name, "seed": seed, **asdict(row), **result})
                results.append(line)
                record(
                    "antibody", **{k: v for k, v in line.items() if k not in ("factors", "sketch")}
                )
                if arguments.results:
                    with open(arguments.results, "a") as file:
                        file.write(json.dumps(line) + "\n")
    return results


def plain(value):
    """Return a value as JSON has it."""
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(each) for each in value]
    return round(float(value), 4) if isinstance(value, (float, np.floating)) else value


# Tables and pictures.

FIRST = "images | right | verdict | correlation | median error | error / deviation | inside 68 %"
FIRST += " | false wells, kT | seconds | GB"
SECOND = "images | method | neighbours, k = 50 | k = 500 | R^2 | imbalance to truth | to pose"
SECOND += " | to defocus | FSC area | FSC to 12 cycles | seconds"


def tables(results: list[dict]) -> str:
    """Return what is found, and how spaces compare, as tables in Markdown: means over seeds."""
    groups = defaultdict(list)
    for result in results:
        row = Row(**{field.name: result[field.name] for field in fields(Row)})
        groups[row, result["method"]].append(result)
    order, first, second = [*ROWS.values()], [], []
    places = {row: order.index(row) if row in order else len(order) for row, _ in groups}
    for (row, method), runs in sorted(groups.items(), key=lambda item: places[item[0][0]]):
        data, seconds = f"| {row} | {row.snr:g} |", mean(runs, "seconds", digits=0)
        if "right" in runs[0]:
            said = ", ".join(dict.fromkeys(map(verdict, runs)))
            right = [run for run in runs if run["right"]]
            cells = [f"{row.n:,}", f"{len(right)} of {len(runs)}", said]
            cells += [of_factors(right, "correlation", 3), of_factors(right, "median_error", 1)]
            cells += [of_factors(right, name, 2) for name in ("error_over_deviation", "coverage")]
            cells += [mean(right, "wells"), seconds, mean(runs, "gigabytes", digits=1)]
            first.append(f"{data} {' | '.join(cells)} |")
        if any("neighbours" in run for run in runs):
            cells = [f"{row.n:,}", method]
            cells += [mean(runs, "neighbours", str(k)) for k in NEIGHBOURS]
            cells += [mean(runs, "r2")]
            cells += [mean(runs, "imbalance", name) for name in ("truth", "pose", "defocus")]
            cells += [mean(runs, "fsc", k, digits=3) for k in (0, 1)] + [seconds]
            second.append(f"{data} {' | '.join(cells)} |")
    heads = [f"| data | SNR | {head} |" for head in (FIRST, SECOND)]
    heads = [f"{head}\n|{(head.count('|') - 1) * '---|'}" for head in heads]
    return "\n".join([heads[0], *first, "", heads[1], *second])


def verdict(run: dict) -> str:
    """Return the verdict in words."""
    several = f" ({run['verdict']})" if len(run["kinds"]) > 1 and "verdict" in run else ""
    accuracy = f" ({run['accuracy']:.0%} of the particles)" if "accuracy" in run else ""
    # A refusal goes on with its reason.
    headline = run["headline"] if run["kinds"] else run["headline"].partition(":")[0]
    return headline + several + accuracy


def mean(runs: list[dict], name: str, key=None, *, digits: int = 2) -> str:
    """Return the mean of a measurement over the runs that have it; of several motions, each."""
    found = [run[name] for run in runs if name in run]
    if isinstance(key, str):
        found = [each.get(key) for each in found if key in each]
    elif key is not None:
        found = [each[key] for each in found]
    if not found:
        return ""
    return ", ".join(f"{value:.{digits}f}" for value in np.atleast_1d(np.mean(found, axis=0)))


def of_factors(runs: list[dict], name: str, digits: int) -> str:
    """Return the means of a measurement of each motion."""
    columns = [[factor[name] for factor in run["factors"]] for run in runs if run.get("factors")]
    return mean([{name: column} for column in columns], name, digits=digits)


def draw(results: list[dict], folder: Path) -> None:
    """Draw found angles over true ones by SNR, and the spaces of all methods."""
    from manifactor import plots  # a machine that measures need not have it

    names = [name for name in ALL if name.startswith("turn-")]
    turns = {run["row"]: run for run in reversed(results) if run.get("factors")}
    own = [run for run in results if run["row"] == "peers" and "sketch" in run]
    spaces = {run["method"]: run for run in own if "exact" not in run["method"]}
    spaces = dict(sorted(spaces.items(), key=lambda item: "cryo" in item[0]))
    with plots.style(plots.CLEAR):
        figure = plots.new_figure(9.6, 2.8)
        for ax, name in zip(figure.subplots(1, len(names), sharey=True), names, strict=True):
            ticks = [0, 180, 360]
            ax.set(title=f"SNR {row_of(name).snr:g}", xlabel="true angle", aspect="equal")
            ax.set(xlim=(0, 360), ylim=(0, 360), xticks=ticks, yticks=ticks)
            if name in turns:
                points = np.degrees(turns[name]["factors"][0]["sketch"]) % 360
                ax.scatter(*points.T, s=2, linewidths=0, color=plots.colour(0))
        figure.axes[0].set_ylabel("found angle")
        (folder / "antibody-angles.png").write_bytes(plots.clear_picture(figure, ".png"))
        figure = plots.new_figure(9.6, 3.4)
        panels = np.atleast_1d(figure.subplots(1, max(len(spaces), 1)))
        for ax, (method, run) in zip(panels, spaces.items(), strict=False):
            x, y, angle = np.array(run["sketch"]).T
            ax.scatter(x, y, s=3, c=np.degrees(angle), cmap=plots.circle_map(), linewidths=0)
            ax.set(title=method, xticks=[], yticks=[], aspect="equal", adjustable="datalim")
        (folder / "antibody-spaces.png").write_bytes(plots.clear_picture(figure, ".png"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("beads", type=Path, nargs="?", help="table of the beads")
    parser.add_argument("--rows", nargs="+", default=["all"], help=f"all, or of: {', '.join(ROWS)}")
    parser.add_argument("--seeds", type=int, nargs=2, default=(1, 2), metavar=("FIRST", "END"))
    parser.add_argument("--jobs", type=int, default=1, help="sets that are fitted side by side")
    parser.add_argument("--device", default="cpu", help="of the fits")
    parser.add_argument("--keep", help="folder for images and runs")
    parser.add_argument("--results", help="file that lines of JSON are appended to")
    parser.add_argument("--table", type=Path, nargs="+", help="of such files, without measuring")
    parser.add_argument("--page", type=Path, help="that the tables are written into")
    parser.add_argument("--figures", type=Path, help="folder for the pictures")
    parser.add_argument("--cryodrgn", nargs="?", const=".", metavar="FOLDER")
    parser.add_argument("--epochs", type=int, default=20, help="of cryoDRGN")
    arguments = parser.parse_args()
    lines = [line for path in arguments.table or () for line in path.open()]
    results = [json.loads(line) for line in lines] if lines else measured(arguments)
    print(tables(results))
    if arguments.page is not None:
        before, _, after = arguments.page.read_text().partition("<!-- antibody -->")
        _, mark, after = after.partition("<!-- /antibody -->")
        text = f"{before}<!-- antibody -->\n{tables(results)}\n{mark}{after}"
        arguments.page.write_text(text)
    if arguments.figures is not None:
        draw(results, arguments.figures)


if __name__ == "__main__":
    main()
