"""Embeddings of each factor, beside plain diffusion maps and linear ICA."""

import warnings

import numpy as np
from sklearn.decomposition import FastICA

from manifactor import plots
from manifactor.reproduce.cases import CASES
from manifactor.reproduce.lab import Found, Job, Lab
from manifactor.reproduce.section import Picture, Section, Settings, Table
from manifactor.scores import regression_r2

SHAPES = ("rectangle_z", "molecule_high", "torus")
NAMES = {
    "rectangle_z": ("long side", "short side"),
    "molecule_high": ("turn", "stretch"),
    "torus": ("large circle", "small circle"),
}


def fig6(settings: Settings, lab: Lab) -> Section:
    """The paper's Figure 4, with plain diffusion maps and linear ICA, which its code adds, beside it."""
    jobs = [Job(shape, method, settings.n, settings.seed) for shape in SHAPES for method in ("published", "default")]
    found = dict(zip(jobs, lab.find(jobs), strict=True))
    pictures, rows, numbers = [], [], {}
    for shape in SHAPES:
        ours, theirs = (found[Job(shape, m, settings.n, settings.seed)] for m in ("default", "published"))
        figure, numbers[shape] = _draw(shape, theirs, ours, settings.seed)
        rows += [
            [CASES[shape].title, NAMES[shape][true], *(_cell(pair) for pair in line.values())]
            for true, line in enumerate(numbers[shape])
        ]
        pictures.append(Picture(f"fig6-{shape}", figure, _caption(shape, settings)))
    return Section(
        "Embeddings of each factor (the paper's Figure 4)",
        [
            "Each factor alone: an interval is an arc, a circle a circle, coloured by the truth without mixing. "
            "Two columns of a plain diffusion map show the lowest functions, whosever they are: one of each side "
            "of the rectangle, the large circle's cosine and sine, two of the stretch. Nothing tells which belong "
            "together. FastICA unmixes linearly: it has both sides of the flat rectangle, one in each column, and "
            "cannot know a circle's two columns to be one factor. Two functions of a factor hold a little of the "
            "other one, as the thickness of the arc: a kernel sees less at the edges. The default takes that off "
            "where it makes places.",
        ],
        pictures,
        [
            Table(
                "R^2 of the factor / R^2 of the other factor, predicted from what each column shows.",
                ["data", "factor", "published", "default", "diffusion map", "FastICA"],
                rows,
            )
        ],
        numbers,
    )


def _cell(pair: list[float]) -> str:
    return f"{pair[0]:.2f} / {pair[1]:.2f}"


def _caption(shape: str, settings: Settings) -> str:
    case = CASES[shape]
    return (
        f"{case.heading}, {settings.n:,} samples. Rows: the true factor that gives the colour. Columns: the two "
        f"lowest functions of the factor found by the published method ({case.published_settings}), as in the "
        "paper; places on the factor found by the default (an interval's against the true ones, a circle's as "
        "cosine and sine); the two lowest functions of the plain diffusion map; two components of FastICA."
    )


def _draw(shape: str, theirs: Found, ours: Found, seed: int):
    figure = plots.new_figure(7.2, 3.6)
    axes = figure.subplots(2, 4)
    columns = {"published": None, "default": None, "diffusion map": theirs.spectrum.functions[:, 1:3]}
    columns["FastICA"] = _independent(theirs.samples, seed)
    numbers: list[dict] = [{}, {}]
    for true in range(2):
        for ax, (name, shown) in zip(axes[true], columns.items(), strict=True):
            found = ours if name == "default" else theirs
            values = _embedding(found, true, lowest=name == "published") if shown is None else shown
            if true == 0:
                ax.set_title(name)
            if values is None:
                plots.nothing(ax, "not found")
                numbers[true][name] = [0.0, 0.0]
                continue
            plots.place(ax, values, found.fitted_truth[true])
            numbers[true][name] = [regression_r2(values, found.fitted_truth[t]) for t in (true, 1 - true)]
            ax.set_xlabel("$R^2$ {:.2f}, of the other {:.2f}".format(*numbers[true][name]))
        axes[true, 0].set_ylabel(NAMES[shape][true])
    return figure, numbers


def _embedding(found: Found, true: int, *, lowest: bool) -> np.ndarray | None:
    """The factor that stands for a true one: its two lowest functions, as in the paper, or the places on it."""
    number = found.matching(true)
    if number is None:
        return None
    factor = found.factors[number]
    return factor.functions[:, :2] if lowest else factor.embedding


def _independent(samples: np.ndarray, seed: int) -> np.ndarray:
    with warnings.catch_warnings(action="ignore"):  # on circles it does not converge
        return FastICA(2, random_state=seed, whiten="unit-variance").fit_transform(samples)
