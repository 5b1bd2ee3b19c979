"""The two criteria: eigenvalue error against similarity, for all pairs."""

import numpy as np

from manifactor import plots
from manifactor.reproduce.cases import CASES, PAPER_UNIT, Found, Job, Lab
from manifactor.reproduce.section import Picture, Section, Settings, Table
from manifactor.scores import column_r2
from manifactor.spectral.spectrum import Spectrum

CASE = "rectangle_z"
PANELS = 6


def fig4(settings: Settings, lab: Lab) -> Section:
    """The paper's Figure 3."""
    found = lab.find([Job(CASE, "published", settings.n, settings.seed)])[0]
    case = CASES[CASE]
    spectrum = found.spectrum
    rows, numbers, cells = [], [], []
    figure = plots.new_figure(7.2, 3.6)
    for ax, k in zip(figure.subplots(2, 3).flat, product_functions(found, PANELS), strict=True):
        similarity, error, pairs = pair_scores(spectrum, k)
        allowed = np.flatnonzero(error < case.delta)
        order = allowed[np.argsort(-similarity[allowed])]
        best = order[0] if len(order) else int(similarity.argmax())
        second = float(similarity[order[1]]) if len(order) > 1 else 0.0
        right = across_factors(found, pairs[best])
        _draw(ax, similarity, error, best, pairs, k, case)
        numbers.append(
            {"k": k, "pair": pairs[best], "similarity": similarity[best], "error": error[best], "second": second}
            | {"across_factors": right}
        )
        i, j = pairs[best]
        cells = [f"{k}", f"{i}, {j}", f"{similarity[best]:.3f}", f"{error[best]:.3f}", f"{second:.3f}"]
        rows.append([*cells, "yes" if right else "no"])
    figure.supxlabel("similarity", fontsize=8)
    figure.supylabel("error of the eigenvalue sum, in units of lambda/4", fontsize=8)
    good = [number for number in numbers if number["across_factors"]]
    caption = (
        f"Six product functions of the noisy rectangle ({settings.n:,} samples, {case.published_settings}), evenly "
        "spread over the spectrum: for all pairs of lower functions, similarity of their product, and how far their "
        "eigenvalues miss the sum. Dashed: gamma and delta. Triangle: the best pair within delta."
    )
    return Section(
        "The two criteria (the paper's Figure 3)",
        [
            f"The best pair is one of functions of different sides in {len(good)} of {len(numbers)} panels. As in "
            "the paper it stands far out for low functions, and less so for high ones, where several functions "
            "have nearly the same eigenvalue and the product is spread over them.",
        ],
        [Picture("fig4", figure, caption)],
        [
            Table(
                "The best pairs. The error is in units of lambda/4.",
                ["function", "best pair", "similarity", "error", "second best", "of different sides"],
                rows,
            )
        ],
        {"panels": numbers},
    )


def product_functions(found: Found, count: int) -> list[int]:
    """Functions that no factor holds, evenly spread from the lowest to the highest."""
    pure = np.unique([k for factor in found.factors for k in np.flatnonzero(factor.coefficients.any(axis=1))])
    others = np.setdiff1d(np.arange(3, len(found.spectrum.eigenvalues)), pure)
    return others[np.linspace(0, len(others) - 1, count + 1).astype(int)[:-1]].tolist()


def pair_scores(spectrum: Spectrum, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of all pairs i < j < k: similarity of their product with function k, eigenvalue error (lambda/4), the pairs."""
    lower = spectrum.functions[:, 1:k]
    weights = spectrum.weights[:, None]
    inner = (lower * (weights * spectrum.functions[:, [k]])).T @ lower
    norms = np.sqrt((lower**2 * weights).T @ lower**2)
    i, j = np.triu_indices(k - 1, 1)
    error = np.abs(spectrum.eigenvalues[1 + i] + spectrum.eigenvalues[1 + j] - spectrum.eigenvalues[k]) / PAPER_UNIT
    return np.abs(inner[i, j]) / norms[i, j], error, np.column_stack([1 + i, 1 + j])


def across_factors(found: Found, pair: np.ndarray) -> bool:
    """Whether two functions are explained best by different true factors."""
    functions = found.spectrum.functions[:, pair]
    return len({int(np.argmax(column)) for column in np.array([column_r2(t, functions) for t in found.truth]).T}) == 2


def _draw(ax, similarity, error, best, pairs, k, case) -> None:
    ax.scatter(similarity, error, s=2, color=plots.GREY, linewidths=0, rasterized=True)
    ax.plot(similarity[best], error[best], "^", color=plots.CATEGORIES[1], markersize=6, clip_on=False, zorder=3)
    ax.axvline(case.gamma, color=plots.CATEGORIES[0], linestyle="--", linewidth=0.8)
    ax.axhline(case.delta, color=plots.CATEGORIES[0], linestyle="--", linewidth=0.8)
    i, j = pairs[best]
    ax.set_title(f"function {k}: best is {i} x {j}")
    ax.set(xlim=(0, 1), ylim=(0, max(4 * case.delta, 1.2 * error[best])))
