"""Eigenfunctions of a rectangle: analytic and computed."""

from dataclasses import dataclass

import numpy as np

from manifactor import datasets
from manifactor.datasets.shapes import PAPER_SIDE
from manifactor.estimators import DiffusionMap
from manifactor.operators.laplacian import Spectrum
from manifactor.views import plots
from studies.paper.lab import Lab
from studies.paper.section import Picture, Section, Settings, Table


@dataclass(frozen=True)
class Fig1Settings:
    """Settings of `fig1`."""

    # The sides of `datasets.rectangle`, which are the paper's.
    sides: tuple[float, float] = (PAPER_SIDE, 1.5)
    # Two rows of five pairs of panels.
    n_shown: int = 10
    n_columns: int = 5
    # Functions computed beyond those shown.
    n_spare: int = 6


@dataclass(frozen=True)
class Modes:
    """The lowest analytic eigenfunctions beside the computed ones."""

    numbers: np.ndarray  # (k, 2): m and n of cos(m pi x / a) cos(n pi y / b)
    exact: np.ndarray  # (k,): eigenvalues
    computed: np.ndarray  # (k,): eigenvalues
    # (n, k): values on the samples; the computed ones have the sign of the analytic
    analytic: np.ndarray
    # (n, k): values on the samples; the computed ones have the sign of the analytic
    functions: np.ndarray
    alike: np.ndarray  # (k,): absolute cosine between both

    @property
    def error(self) -> np.ndarray:
        """Relative error of the eigenvalues."""
        return self.computed / self.exact - 1


def fig1(settings: Settings, lab: Lab, *, recipe: Fig1Settings = Fig1Settings()) -> Section:
    """Return the example of section 2.2 of the paper.

    Functions are products of cosines, and eigenvalues are sums.
    """
    X, _ = datasets.sample("rectangle", settings.n, random_state=settings.seed)
    n_functions = recipe.n_shown + recipe.n_spare
    fit = DiffusionMap(n_functions, random_state=settings.seed).fit(X)
    modes = compared(X, fit.spectrum_, recipe)
    figure = _draw(X, modes, recipe)
    return Section(
        "Rectangle: analytic and computed eigenfunctions (the example of section 2.2)",
        [_in_words(modes)],
        [Picture("fig1", figure, _caption(settings, recipe))],
        [_table(modes)],
        {
            "exact": modes.exact,
            "computed": modes.computed,
            "cosine": modes.alike,
            "modes": modes.numbers,
        },
    )


def compared(X: np.ndarray, spectrum: Spectrum, recipe: Fig1Settings) -> Modes:
    """Return the lowest modes of the rectangle beside the computed functions."""
    sides = np.array(recipe.sides)
    numbers = lowest_modes(recipe.n_shown, recipe.sides)
    exact = (np.pi**2 * numbers**2 / sides**2).sum(axis=1)
    along, across = numbers.T
    analytic = np.cos(np.pi * along * X[:, :1] / sides[0]) * np.cos(
        np.pi * across * X[:, 1:] / sides[1]
    )
    # Function 0 is the constant.
    shown = slice(1, recipe.n_shown + 1)
    functions = spectrum.functions[:, shown]
    # Under the weights of the spectrum, in which its functions are orthonormal.
    alike = cosines(analytic, functions, spectrum.weights)
    return Modes(
        numbers,
        exact,
        spectrum.eigenvalues[shown],
        analytic,
        # An eigenfunction has no sign of its own; side by side they are to look alike.
        functions * np.sign(alike),
        np.abs(alike),
    )


def lowest_modes(count: int, sides: tuple[float, float] = Fig1Settings.sides) -> np.ndarray:
    """Return m, n of the lowest non-constant eigenfunctions, ascending, (count, 2)."""
    # The lowest `count` modes have wave numbers of at most `count`, whatever the sides.
    waves = np.arange(count + 1)
    grid = np.stack(np.meshgrid(waves, waves, indexing="ij"), axis=-1).reshape(-1, 2)
    eigenvalues = (grid**2 / np.array(sides) ** 2).sum(axis=1)
    ascending = grid[np.argsort(eigenvalues, kind="stable")]
    return ascending[1 : count + 1]


def cosines(one: np.ndarray, other: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the cosine between the columns of two arrays under the weights."""
    norms = np.sqrt(weights @ one**2) * np.sqrt(weights @ other**2)
    return (weights @ (one * other)) / norms


def _in_words(modes: Modes) -> str:
    return (
        "Computed functions agree with the analytic ones to cosines of "
        f"{modes.alike.min():.4f} and better; eigenvalues are off by "
        f"{modes.error.min():+.1%} to {modes.error.max():+.1%}: a bias that random "
        "samples have, for the most part a common factor, which no method here minds."
    )


def _table(modes: Modes) -> Table:
    columns = zip(modes.numbers, modes.exact, modes.computed, modes.error, modes.alike, strict=True)
    rows = [
        [str(k), f"{m}, {n}", f"{exact:.3f}", f"{computed:.3f}", f"{e:+.1%}", f"{a:.4f}"]
        for k, ((m, n), exact, computed, e, a) in enumerate(columns, start=1)
    ]
    header = ["k", "m, n", "analytic", "computed", "error", "cosine"]
    return Table("Eigenvalues in true units.", header, rows)


def _caption(settings: Settings, recipe: Fig1Settings) -> str:
    return (
        f"The {recipe.n_shown} lowest Neumann eigenfunctions of the rectangle "
        "[0, 1 + sqrt(pi)] x [0, 1.5], analytic (a) and computed (c) from "
        f"{settings.n:,} uniform samples, neighbours and bandwidth chosen from the "
        "data, density correction on. Above each: m, n of cos(m pi x / a) "
        "cos(n pi y / b), and the cosine between both."
    )


def _draw(X: np.ndarray, modes: Modes, recipe: Fig1Settings):
    figure = plots.new_figure(7, 3.6)
    # A row of analytic functions and one of computed ones for each block.
    n_rows = 2 * (recipe.n_shown // recipe.n_columns)
    axes = figure.subplots(n_rows, recipe.n_columns)
    for k, (m, n) in enumerate(modes.numbers):
        # Each computed function lies below its analytic one.
        block, column = divmod(k, recipe.n_columns)
        above, below = axes[2 * block : 2 * block + 2, column]
        plots.function(above, X, modes.analytic[:, k], title=f"{m}, {n} (a)")
        title = f"(c) {modes.alike[k]:.3f}"
        plots.function(below, X, modes.functions[:, k], title=title)
    # The panels have the proportions of the rectangle.
    for ax in axes.flat:
        ax.set_aspect("equal")
    return figure
