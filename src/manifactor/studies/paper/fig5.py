"""The separability matrix ordered by factor, and the similarities that make it."""

import numpy as np

from manifactor.studies.paper.cases import CASES, Case
from manifactor.studies.paper.lab import Found, Job, Lab
from manifactor.studies.paper.pairs import best_similarities
from manifactor.studies.paper.section import Picture, Section, Settings
from manifactor.views import plots

SHAPES = ("rectangle_z", "torus")


def fig5(settings: Settings, lab: Lab) -> Section:
    """The matrix that is cut, and the histogram that gamma is set against."""
    found = lab.find(
        [Job(shape, "published", settings.n, settings.seed) for shape in SHAPES]
    )
    pictures, text, numbers = [], [], {}
    for shape, one in zip(SHAPES, found, strict=True):
        case = CASES[shape]
        best = best_similarities(one.spectrum, case.delta)
        passed, between = int((best > case.gamma).sum()), between_groups(one)
        pictures.append(
            Picture(f"fig5-{shape}", _draw(one, best, case), _caption(case, settings))
        )
        text.append(
            f"{case.heading}: {passed} of {len(best)} functions pass gamma, "
            f"{0 if one.triplets is None else len(one.triplets)} of them become "
            "triplets (a function that is a product is no part of another); "
            f"{between:.0%} of the separability lies between the groups."
        )
        gap = None if one.cut is None else one.cut.gap
        numbers[shape] = {
            "best_similarity": best,
            "passed": passed,
            "between_groups": between,
            "cut_gap": gap,
        }
    return Section(
        "Separability matrix and similarities", [*text, WHY], pictures, (), numbers
    )


WHY = (
    "The separability of two functions is the similarity of the product in which they "
    "occur together; functions that occur in no triplet are not in the matrix, "
    "functions of the noise (figure 2) may be. Gamma divides no two heaps: "
    "similarities of the rectangle's products fall off with the eigenvalue, as a "
    "product is spread over several functions of nearly the same eigenvalue, and what "
    "lies below gamma is lost. On the torus even the lowest products are spread: "
    "eigenvalues of a circle come in pairs, the product of two pairs has four "
    "dimensions, and the computed functions are any rotation of it; a gamma of .85 "
    "would leave next to nothing, and the paper takes .6. With delta = 1 the product "
    "of a circle's own cosine and sine, which is half the sine of the doubled angle, "
    "passes as well, as evidence that they belong to different factors: that is how "
    "the torus comes apart wrongly in some draws."
)


def between_groups(found: Found) -> float:
    """Share of the separability that the cut puts between groups; 0 where there is no cut."""
    if found.cut is None or found.triplets is None:
        return 0.0
    return float(2 * found.cut.objective / found.triplets.separability()[1].sum())


def _caption(case: Case, settings: Settings) -> str:
    return (
        f"{case.heading}, {settings.n:,} samples, {case.published_settings}. Left: "
        "separability, functions ordered by the factor that the cut puts them in. "
        "Right: the best similarity within delta of every function with a product of "
        "two lower ones, and gamma."
    )


def _draw(found: Found, best: np.ndarray, case: Case):
    figure = plots.new_figure(7.2, 2.8)
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.4])
    if found.cut is None or found.triplets is None:
        plots.nothing(left, "no triplet passed")
    else:
        functions, separability = found.triplets.separability()
        order = np.argsort(found.cut.labels, kind="stable")
        plots.matrix(
            left,
            separability[np.ix_(order, order)],
            groups=np.bincount(found.cut.labels).tolist(),
        )
        left.set_xticks(range(len(order)), functions[order], fontsize=5, rotation=90)
        left.set_yticks(range(len(order)), functions[order], fontsize=5)
        left.set(xlabel="function", ylabel="function")
    right.hist(best, bins=np.linspace(0, 1, 41).tolist(), color=plots.CATEGORIES[0])
    right.axvline(case.gamma, color=plots.CATEGORIES[1], linestyle="--", linewidth=1)
    right.set(xlabel="best similarity", ylabel="functions", xlim=(0, 1))
    return figure
