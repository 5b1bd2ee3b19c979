"""The separability matrix ordered by factor, and the similarities behind it."""

import numpy as np

from manifactor.views import plots
from studies.paper.cases import CASES, Case
from studies.paper.finding import Found, Job
from studies.paper.lab import Lab
from studies.paper.pairs import best_similarities
from studies.paper.section import Picture, Section, Settings

# One shape with simple eigenvalues and one whose eigenvalues come in pairs.
CUT_SHAPES = ("rectangle_z", "torus")


def fig5(settings: Settings, lab: Lab) -> Section:
    """Return the matrix that is cut, and the histogram that gamma is set against."""
    jobs = [Job(shape, "published", settings.n, settings.seed) for shape in CUT_SHAPES]
    pictures, text, numbers = [], [], {}
    for shape, found in zip(CUT_SHAPES, lab.find(jobs), strict=True):
        case = CASES[shape]
        best = best_similarities(found.spectrum, case.delta)
        figure = _draw(found, best, case)
        pictures.append(Picture(f"fig5-{shape}", figure, _caption(case, settings)))
        numbers[shape] = {
            "best_similarity": best,
            "passed": int((best > case.gamma).sum()),
            "between_groups": between_groups(found),
            "cut_gap": None if found.cut is None else found.cut.gap,
        }
        text.append(_in_words(found, case, numbers[shape]))
    return Section("Separability matrix and similarities", [*text, WHY], pictures, (), numbers)


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


def _in_words(found: Found, case: Case, numbers: dict) -> str:
    n_triplets = 0 if found.triplets is None else len(found.triplets)
    n_functions = len(numbers["best_similarity"])
    return (
        f"{case.heading}: {numbers['passed']} of {n_functions} functions pass gamma, "
        f"{n_triplets} of them become triplets (a function that is a product is no "
        f"part of another); {numbers['between_groups']:.0%} of the separability lies "
        "between the groups."
    )


def between_groups(found: Found) -> float:
    """Return the share of the separability between groups; 0 without a cut."""
    if found.cut is None or found.triplets is None:
        return 0.0
    # The objective counts each pair once, the matrix twice.
    total = found.triplets.separability()[1].sum()
    return float(2 * found.cut.objective / total)


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
    _draw_separability(left, found)
    # The same bins for both shapes, so that their histograms can be compared.
    bins = np.linspace(0, 1, 41).tolist()
    right.hist(best, bins=bins, color=plots.CATEGORIES[0])
    right.axvline(case.gamma, color=plots.CATEGORIES[1], linestyle="--", linewidth=1)
    right.set(xlabel="best similarity", ylabel="functions", xlim=(0, 1))
    return figure


def _draw_separability(ax, found: Found) -> None:
    if found.cut is None or found.triplets is None:
        plots.nothing(ax, "no triplet passed")
        return
    functions, separability = found.triplets.separability()
    # Stable: within a group, functions stay in the order of their eigenvalues.
    order = np.argsort(found.cut.labels, kind="stable")
    ordered = separability[np.ix_(order, order)]
    plots.matrix(ax, ordered, groups=np.bincount(found.cut.labels).tolist())
    ax.set_xticks(range(len(order)), functions[order], fontsize=5, rotation=90)
    ax.set_yticks(range(len(order)), functions[order], fontsize=5)
    ax.set(xlabel="function", ylabel="function")
