"""The noisy rectangle: five factor functions of each side."""

import numpy as np

from manifactor.scores import column_r2
from manifactor.studies.paper.cases import CASES
from manifactor.studies.paper.lab import COMPARED, Found, Lab
from manifactor.studies.paper.panels import (
    SHOWN,
    Lowest,
    function_row,
    lowest_functions,
)
from manifactor.studies.paper.section import Picture, Section, Settings
from manifactor.views import plots

TRIALS = {"rectangle_z": "z", "rectangle_xyz": "x, y and z"}  # where the noise is
SIDES = ("long side", "short side")
OF_NOISE = 0.3  # R^2 that the noisy samples add to that of the true x and y, for a function that depends on the noise


def fig2(settings: Settings, lab: Lab) -> Section:
    """The paper's Figure 1, and its second trial."""
    pictures, text, numbers = [], [], {}
    for trial, both in lab.compare(tuple(TRIALS), settings).items():
        lowest = {
            name: [lowest_functions(found, side) for side in range(2)]
            for name, found in both.items()
        }
        noise = {name: noise_functions(both[name], lowest[name]) for name in COMPARED}
        pictures.append(
            Picture(f"fig2-{trial}", _draw(both, lowest), _caption(trial, settings))
        )
        words = [
            f"{name.capitalize()}: {lowest[name][0].words} functions of the long side "
            f"and {lowest[name][1].words} of the short one depend on that side alone "
            f"(R^2 of at least .9), {noise[name]} of all depend on the noise"
            for name in COMPARED
        ]
        text.append(f"{CASES[trial].heading}. {'. '.join(words)}.")
        numbers[trial] = {
            name: {
                "function_r2": [side.r2 for side in lowest[name]],
                "of_noise": noise[name],
                **both[name].numbers,
            }
            for name in COMPARED
        }
    return Section(
        "Noisy rectangle: factor functions (the paper's Figure 1)",
        [*text, WHY],
        pictures,
        (),
        numbers,
    )


WHY = (
    "The paper shows cosines along each side, and so does the published method here "
    "for the lowest functions. Among higher ones two things get in. The thickness of "
    "the noise is a third, short direction: some 20 functions up, its own function "
    "and its products with those of the sides appear, pass for functions of a side, "
    "and look like speckle over x and y. And without density correction chance "
    "fluctuations of the density couple functions whose eigenvalues lie close "
    "together. Noise in x and y blurs the edges, near which functions then depend on "
    "it; no method undoes that. The paper does not say how large the noise is; .05 is "
    "that of the published data."
)


def noise_functions(found: Found, lowest: list[Lowest]) -> int:
    """How many of the functions depend on the noise: the samples explain more of them than the true x and y do."""
    samples, truth = found.samples[found.rows], np.hstack(found.fitted_truth)
    shown = [side.functions for side in lowest if len(side.r2)]
    return sum(
        int((column_r2(samples, f) - column_r2(truth, f) >= OF_NOISE).sum())
        for f in shown
    )


def _caption(trial: str, settings: Settings) -> str:
    return (
        f"Rectangle with Gaussian noise of .05 in {TRIALS[trial]}, {settings.n:,} "
        "samples. Left: the data, coloured by depth, which is stretched twofold. "
        f"Right: the {SHOWN} lowest functions of the factor found for the long side "
        "[0, 1 + sqrt(pi)] and of that for the short side [0, 1.5], over the true x "
        f"and y. Published: {CASES[trial].published_settings}. Default: nothing set. "
        "Above each: R^2 with which its own side explains the function."
    )


def _draw(both: dict[str, Found], lowest: dict[str, list[Lowest]]):
    figure = plots.new_figure(7.2, 3.4)
    left, right = figure.subfigures(1, 2, width_ratios=[1, 2.6])
    ax = left.add_subplot(projection="3d")
    x, y, z = both["published"].samples.T
    ax.scatter(x, y, z, c=z, s=0.6, cmap=plots.LINE_MAP, linewidths=0, rasterized=True)
    ax.view_init(30, -60)
    ax.set_box_aspect((np.ptp(x), np.ptp(y), 2 * np.ptp(z)))
    ax.set(xticks=[0, 1, 2], yticks=[0, 1], zticks=[])
    ax.tick_params(labelsize=6, pad=-2)
    rows = [(name, side) for name in both for side in range(2)]
    for axes, (name, side) in zip(right.subplots(len(rows), SHOWN), rows, strict=True):
        xy = np.hstack(both[name].fitted_truth)
        function_row(axes, lowest[name][side], xy, name=f"{name}\n{SIDES[side]}")
    return figure
