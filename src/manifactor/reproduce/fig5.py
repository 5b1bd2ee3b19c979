"""The separability matrix ordered by factor, and the similarities that make it."""

import numpy as np

from manifactor import plots
from manifactor.reproduce.cases import CASES
from manifactor.reproduce.fig4 import pair_scores
from manifactor.reproduce.lab import Found, Job, Lab
from manifactor.reproduce.section import Picture, Section, Settings

SHAPES = ("rectangle_z", "torus")


def fig5(settings: Settings, lab: Lab) -> Section:
    """The matrix that is cut, and the histogram from which gamma is read."""
    found = lab.find([Job(shape, "published", settings.n, settings.seed) for shape in SHAPES])
    pictures, text, numbers = [], [], {}
    for shape, one in zip(SHAPES, found, strict=True):
        case = CASES[shape]
        best = best_similarities(one, case.delta)
        figure, shares = _draw(one, best, case)
        caption = (
            f"{case.heading}, {settings.n:,} samples, {case.published_settings}. Left: "
            "separability, functions ordered by the factor that the cut puts them in. Right: the best similarity of "
            "every function with a product of two lower ones, and gamma."
        )
        pictures.append(Picture(f"fig5-{shape}", figure, caption))
        passed = int((best > case.gamma).sum())
        text.append(
            f"{case.heading}: {passed} of {len(best)} functions pass gamma; {shares:.0%} "
            "of the separability lies between the groups."
        )
        gap = None if one.cut is None else one.cut.gap
        numbers[shape] = {"best_similarity": best, "passed": passed, "between_groups": shares, "cut_gap": gap}
    text.append(
        "Gamma divides no two heaps: similarities of the rectangle's products fall off with the eigenvalue, as a "
        "product is spread over several functions of nearly the same eigenvalue, and what lies below gamma is "
        "lost. On the torus even the lowest products are spread: eigenvalues of a circle come in pairs, the "
        "product of two pairs has four dimensions, and the computed functions are any rotation of it. That is why "
        "the paper lowers gamma to .6 there. With delta = 1 the product of a circle's own cosine and sine, which "
        "is half the sine of the doubled angle, passes as well, as evidence that they belong to different factors."
    )
    return Section("Separability matrix and similarities", text, pictures, numbers=numbers)


def best_similarities(found: Found, delta: float) -> np.ndarray:
    """The best similarity of every function with a product of two lower ones whose eigenvalues add up, (N - 3,)."""
    best = []
    for k in range(3, len(found.spectrum.eigenvalues)):
        similarity, error, _ = pair_scores(found.spectrum, k)
        best.append(similarity[error < delta].max(initial=0.0))
    return np.array(best)


def _draw(found: Found, best: np.ndarray, case):
    figure = plots.new_figure(7.2, 2.8)
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.4])
    share = 0.0
    if found.cut is None or found.triplets is None:
        plots.nothing(left, "no triplet passed")
    else:
        functions, separability = found.triplets.separability()
        order = np.argsort(found.cut.labels, kind="stable")
        plots.matrix(left, separability[np.ix_(order, order)], groups=np.bincount(found.cut.labels).tolist())
        left.set_xticks(range(len(order)), functions[order], fontsize=5, rotation=90)
        left.set_yticks(range(len(order)), functions[order], fontsize=5)
        left.set(xlabel="function", ylabel="function")
        share = 2 * found.cut.objective / separability.sum()
    right.hist(best, bins=np.linspace(0, 1, 41), color=plots.CATEGORIES[0])
    right.axvline(case.gamma, color=plots.CATEGORIES[1], linestyle="--", linewidth=1)
    right.set(xlabel="best similarity", ylabel="functions", xlim=(0, 1))
    return figure, share
