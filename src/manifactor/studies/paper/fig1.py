"""Eigenfunctions of a rectangle: analytic and computed."""

import numpy as np

from manifactor import datasets
from manifactor.datasets.shapes import LONG
from manifactor.estimators import DiffusionMap
from manifactor.studies.paper.lab import Lab
from manifactor.studies.paper.section import Picture, Section, Settings, Table
from manifactor.views import plots

SIDES = np.array([LONG, 1.5])
SHOWN = 10


def fig1(settings: Settings, lab: Lab) -> Section:
    """The example of section 2.2 of the paper: functions are products of cosines, eigenvalues are sums."""
    X, _ = datasets.sample("rectangle", settings.n, random_state=settings.seed)
    spectrum = DiffusionMap(SHOWN + 6, random_state=settings.seed).fit(X).spectrum_
    modes = lowest_modes(SHOWN)
    exact = (np.pi**2 * modes**2 / SIDES**2).sum(axis=1)
    analytic = np.cos(np.pi * modes[:, 0] * X[:, :1] / SIDES[0]) * np.cos(
        np.pi * modes[:, 1] * X[:, 1:] / SIDES[1]
    )
    values, functions = (
        spectrum.eigenvalues[1 : SHOWN + 1],
        spectrum.functions[:, 1 : SHOWN + 1],
    )
    alike = cosines(analytic, functions, spectrum.weights)
    error = values / exact - 1
    rows = [
        [str(k), f"{m}, {n}", f"{e:.3f}", f"{v:.3f}", f"{r:+.1%}", f"{abs(a):.4f}"]
        for k, ((m, n), e, v, r, a) in enumerate(
            zip(modes, exact, values, error, alike, strict=True), start=1
        )
    ]
    words = (
        "Computed functions agree with the analytic ones to cosines of "
        f"{np.abs(alike).min():.4f} and better; eigenvalues are off by "
        f"{error.min():+.1%} to {error.max():+.1%}: a bias that random samples have, "
        "for the most part a common factor, which no method here minds."
    )
    return Section(
        "Rectangle: analytic and computed eigenfunctions (the example of section 2.2)",
        [words],
        [
            Picture(
                "fig1",
                _draw(X, analytic, functions * np.sign(alike), modes, alike),
                _caption(settings),
            )
        ],
        [
            Table(
                "Eigenvalues in true units.",
                ["k", "m, n", "analytic", "computed", "error", "cosine"],
                rows,
            )
        ],
        {"exact": exact, "computed": values, "cosine": np.abs(alike), "modes": modes},
    )


def _caption(settings: Settings) -> str:
    return (
        f"The {SHOWN} lowest Neumann eigenfunctions of the rectangle [0, 1 + sqrt(pi)] "
        f"x [0, 1.5], analytic (a) and computed (c) from {settings.n:,} uniform "
        "samples, neighbours and bandwidth chosen from the data, density correction "
        "on. Above each: m, n of cos(m pi x / a) cos(n pi y / b), and the cosine "
        "between both."
    )


def lowest_modes(count: int) -> np.ndarray:
    """Pairs m, n of the lowest non-constant eigenfunctions, ascending, (count, 2)."""
    grid = np.stack(
        np.meshgrid(np.arange(count + 1), np.arange(count + 1), indexing="ij"), axis=-1
    ).reshape(-1, 2)
    return grid[np.argsort((grid**2 / SIDES**2).sum(axis=1), kind="stable")][
        1 : count + 1
    ]


def cosines(one: np.ndarray, other: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Cosine between the columns of two arrays under the weights."""
    norms = [np.sqrt(weights @ values**2) for values in (one, other)]
    return (weights @ (one * other)) / (norms[0] * norms[1])


def _draw(X, analytic, computed, modes, alike):
    figure = plots.new_figure(7, 3.6)
    axes = figure.subplots(4, 5)
    for k in range(SHOWN):
        block, column = divmod(k, 5)
        m, n = modes[k]
        plots.function(
            axes[2 * block, column], X, analytic[:, k], title=f"{m}, {n} (a)"
        )
        plots.function(
            axes[2 * block + 1, column],
            X,
            computed[:, k],
            title=f"(c) {abs(alike[k]):.3f}",
        )
    for ax in axes.flat:
        ax.set_aspect("equal")
    return figure
