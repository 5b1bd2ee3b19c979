"""Simulated cryo-EM images: factor functions over the true turn and stretch."""

import numpy as np

from manifactor import datasets
from manifactor.studies.paper.cases import CASES
from manifactor.studies.paper.lab import COMPARED, Found, Lab
from manifactor.studies.paper.panels import (
    SHOWN,
    Lowest,
    function_row,
    latent,
    lowest_functions,
)
from manifactor.studies.paper.section import Picture, Section, Settings
from manifactor.views import plots

TRIALS = ("molecule_low", "molecule_high", "molecule_xy")
FACTORS = {
    2: ("turn", "stretch"),
    3: ("turn", "x stretch", "y stretch"),
}  # by how many there are


def fig3(settings: Settings, lab: Lab) -> Section:
    """The paper's Figure 2, for all of its three trials."""
    pictures, text, numbers = [], [], {}
    for trial, both in lab.compare(TRIALS, settings).items():
        lowest = {name: _by_factor(found) for name, found in both.items()}
        pictures.append(
            Picture(
                f"fig3-{trial}",
                _draw(both, lowest),
                _caption(trial, both["default"], settings),
            )
        )
        words = [_in_words(name, both[name], lowest[name]) for name in COMPARED]
        text.append(f"{CASES[trial].heading}. {' '.join(words)}")
        numbers[trial] = {
            name: {
                "function_r2": {f: shown.r2 for f, shown in lowest[name].items()},
                **both[name].numbers,
            }
            for name in COMPARED
        }
    return Section(
        "Simulated cryo-EM images (the paper's Figure 2)",
        [*text, WHY],
        pictures,
        (),
        numbers,
    )


WHY = (
    "The paper prints the second trial alone. The molecule is our own four-fold "
    "channel, since the paper's density is not at hand; noise is given as signal to "
    "noise of the fourth principal component, since a variance means nothing without "
    "a grey scale. The turn is shown over 0 to 360 degrees, four times the rotor's 0 "
    "to 90: a quarter turn of a four-fold rotor is a full circle of states. With "
    "stretches along x and y, the directions of both in the images have a squared "
    "cosine of .04: a sheet times a circle is the exact answer, and x, y and turn "
    "apart nearly right; two factors are compared with the former, three with the "
    "latter. The published method gets four components of unit variance, which blows "
    "up the weakest and its noise. Its eigenvalue criterion, delta = 1, lets nearly "
    "every pair pass here, since eigenvalues of data of unit variance are about that "
    "size."
)


def _by_factor(found: Found) -> dict[str, Lowest]:
    return {
        factor: lowest_functions(found, true)
        for true, factor in enumerate(FACTORS[len(found.truth)])
    }


def _in_words(name: str, found: Found, lowest: dict[str, Lowest]) -> str:
    pure = ", ".join(
        f"{shown.words} of the {factor}" for factor, shown in lowest.items()
    )
    return (
        f"{name.capitalize()}: R^2 {found.numbers['own']:.3f} own, "
        f"{found.score.leak:.3f} leaked; functions shown that depend on their factor "
        f"alone: {pure}."
    )


def _caption(trial: str, found: Found, settings: Settings) -> str:
    case = CASES[trial]
    over = (
        "stretches over x and y, the turn over x and turn"
        if case.motions == "xy"
        else "over stretch (across) and turn (up)"
    )
    return (
        f"{settings.n:,} images of 108 x 108 pixels, signal to noise "
        f"{case.signal_to_noise} (fourth component). Left: the molecule, whose orange "
        "part turns and whose blue part is stretched, and images of it. Right: the "
        f"{SHOWN} lowest functions of each factor, {over}. Published: four principal "
        f"components of unit variance, {case.published_settings}, density correction "
        f"as in the published code. Default: `manifactor fit`, {len(found.rows):,} of "
        "the images fitted, nothing set."
    )


def _draw(both: dict[str, Found], lowest: dict[str, dict[str, Lowest]]):
    figure = plots.new_figure(7.2, 4.2)
    left, right = figure.subfigures(1, 2, width_ratios=[1, 5])
    _draw_data(left, both["published"].images)
    rows = [
        (name, true, factor)
        for name in both
        for true, factor in enumerate(lowest[name])
    ]
    for axes, (name, true, factor) in zip(
        right.subplots(len(rows), SHOWN), rows, strict=True
    ):
        xy = _over(both[name].fitted_truth, true)
        function_row(axes, lowest[name][factor], xy, name=f"{name}\n{factor}")
    return figure


def _over(truth: tuple[np.ndarray, ...], true: int) -> np.ndarray:
    """The true coordinates that a function is drawn over, (n, 2): both stretches, or a stretch and the turn."""
    turn, stretch = truth[0], np.hstack(truth[1:])
    return (
        stretch
        if true > 0 and stretch.shape[1] == 2
        else np.column_stack([stretch[:, 0], latent(turn)])
    )


def _draw_data(figure, images: np.ndarray | None) -> None:
    axes = figure.subplots(4, 1)
    molecule = datasets.channel()
    colours = np.where(molecule.rotor, plots.CATEGORIES[1], plots.CATEGORIES[0])
    axes[0].scatter(
        molecule.atoms[:, 1],
        molecule.atoms[:, 2],
        c=colours,
        s=0.4,
        linewidths=0,
        rasterized=True,
    )
    axes[0].set_aspect("equal")
    for ax, image in zip(axes[1:], () if images is None else images, strict=True):
        ax.imshow(image, cmap="gray", interpolation="nearest")
    for ax in axes:
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
