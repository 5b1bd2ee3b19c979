"""Embeddings of each factor, beside plain diffusion maps and linear ICA."""

import warnings

import numpy as np
from sklearn.decomposition import FastICA

from manifactor.scores import regression_r2
from manifactor.studies.paper.cases import CASES
from manifactor.studies.paper.lab import Found, Lab
from manifactor.studies.paper.section import Picture, Section, Settings, Table
from manifactor.views import plots

NAMES = {
    "rectangle_z": ("long side", "short side"),
    "molecule_high": ("turn", "stretch"),
    "torus": ("large circle", "small circle"),
}
WAYS = ("published", "default", "diffusion map", "FastICA")
MIXED = 0.95  # R^2 below which an embedding does not show its factor


def fig6(settings: Settings, lab: Lab) -> Section:
    """The paper's Figure 4, with plain diffusion maps and linear ICA, which its code adds, beside it."""
    pictures, rows, numbers = [], [], {}
    for shape, both in lab.compare(tuple(NAMES), settings).items():
        shown = embeddings(both["published"], both["default"], settings.seed)
        truth = {
            way: both["default" if way == "default" else "published"].fitted_truth
            for way in WAYS
        }
        numbers[shape] = [_told(shown[true], truth, true) for true in range(2)]
        rows += [
            [
                CASES[shape].title,
                NAMES[shape][true],
                *(_cell(line[way]) for way in WAYS),
            ]
            for true, line in enumerate(numbers[shape])
        ]
        figure = _draw(shown, truth, numbers[shape], NAMES[shape])
        pictures.append(Picture(f"fig6-{shape}", figure, _caption(shape, settings)))
    caption = (
        "R^2 of the factor / R^2 of the other factor, predicted from what each column "
        "shows. (Two functions also hold the other factor as the thickness of their "
        "arc, however thin; nearest neighbours read it.)"
    )
    table = Table(caption, ["data", "factor", *WAYS], rows)
    return Section(
        "Embeddings of each factor (the paper's Figure 4)",
        [WHAT, _in_words(numbers)],
        pictures,
        [table],
        numbers,
    )


WHAT = (
    "Each factor alone should be an arc for an interval and a circle for a circle, "
    "coloured by the truth without mixing. Two columns of a plain diffusion map show "
    "the lowest functions, whosever they are, and nothing tells which belong "
    "together. FastICA unmixes linearly: it has both sides of the flat rectangle, one "
    "in each of two columns, and cannot know a circle's two columns to be one factor; "
    "shown are the two of its columns that tell most of the factor in question, which "
    "takes the truth to know. The paper's text gives gamma = .80 for the molecule and "
    "the caption of its figure .85; the text's is taken."
)


def _in_words(numbers: dict[str, list[dict]]) -> str:
    """Where the published method's embeddings do not show what the paper's do."""
    mixed = [
        f"{NAMES[shape][true]} of the {CASES[shape].title} ({line['published'][0]:.2f} "
        f"of it, {line['published'][1]:.2f} of the other)"
        for shape, lines in numbers.items()
        for true, line in enumerate(lines)
        if line["published"][0] < MIXED
    ]
    if not mixed:
        return "In this draw the published method's embeddings agree with the true factors, as in the paper."
    return (
        "In this draw, and unlike in the paper's, the published method's embeddings "
        f"mix: {'; '.join(mixed)}. The cut has put functions of one factor into both "
        "groups; figure 5 shows why that happens, the table over seeds how often."
    )


def embeddings(
    theirs: Found, ours: Found, seed: int
) -> list[dict[str, np.ndarray | None]]:
    """For each of two true factors, what each way shows of it, (n, 1 or 2); None where it was not found."""
    independent = _independent(theirs.samples, seed)
    shown: list[dict[str, np.ndarray | None]] = []
    for true in range(2):
        lowest, own = theirs.matching(true), ours.matching(true)
        best = np.argsort(
            [
                -regression_r2(column[:, None], theirs.truth[true])
                for column in independent.T
            ]
        )[:2]
        shown.append(
            {
                "published": None
                if lowest is None
                else theirs.factors[lowest].functions[:, :2],
                "default": None if own is None else ours.factors[own].embedding,
                "diffusion map": theirs.spectrum.functions[:, 1:3],
                "FastICA": independent[:, np.sort(best)],
            }
        )
    return shown


def _independent(samples: np.ndarray, seed: int) -> np.ndarray:
    """As many independent components as there are columns, (n, d)."""
    with warnings.catch_warnings(action="ignore"):  # on circles it does not converge
        return FastICA(random_state=seed, whiten="unit-variance").fit_transform(samples)


def _told(shown: dict, truth: dict, true: int) -> dict[str, list[float]]:
    """R^2 with which each way tells the factor, and the other one."""
    return {
        way: [0.0, 0.0]
        if values is None
        else [regression_r2(values, truth[way][t]) for t in (true, 1 - true)]
        for way, values in shown.items()
    }


def _cell(pair: list[float]) -> str:
    return f"{pair[0]:.2f} / {pair[1]:.2f}"


def _caption(shape: str, settings: Settings) -> str:
    case = CASES[shape]
    return (
        f"{case.heading}, {settings.n:,} samples. Rows: the true factor that gives the "
        "colour. Columns: the two lowest functions of the factor found by the "
        f"published method ({case.published_settings}), as in the paper; places on the "
        "factor found by the default (an interval's against the true ones, a circle's "
        "as cosine and sine); the two lowest functions of the plain diffusion map; "
        "two components of FastICA."
    )


def _draw(shown: list[dict], truth: dict, numbers: list[dict], names: tuple[str, str]):
    figure = plots.new_figure(7.2, 3.6)
    axes = figure.subplots(2, len(WAYS))
    for true, row in enumerate(axes):
        for ax, way in zip(row, WAYS, strict=True):
            if shown[true][way] is None:
                plots.nothing(ax, "not found")
            else:
                plots.place(ax, shown[true][way], truth[way][true])
                ax.set_xlabel(
                    "$R^2$ {:.2f}, of the other {:.2f}".format(*numbers[true][way])
                )
        row[0].set_ylabel(names[true])
    for ax, way in zip(axes[0], WAYS, strict=True):
        ax.set_title(way)
    return figure
