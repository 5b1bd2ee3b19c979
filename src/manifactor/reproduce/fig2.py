"""The noisy rectangle: five factor functions of each side."""

import numpy as np

from manifactor import plots
from manifactor.reproduce.cases import CASES
from manifactor.reproduce.lab import Found, Job, Lab
from manifactor.reproduce.panels import SHOWN, function_row, share_pure
from manifactor.reproduce.section import Picture, Section, Settings

TRIALS = ("rectangle_z", "rectangle_xyz")
METHODS = ("published", "default")
NOISE = {"rectangle_z": "z", "rectangle_xyz": "x, y and z"}


def fig2(settings: Settings, lab: Lab) -> Section:
    """The paper's Figure 1, and its second trial."""
    jobs = [Job(trial, method, settings.n, settings.seed) for trial in TRIALS for method in METHODS]
    found = dict(zip(jobs, lab.find(jobs), strict=True))
    pictures, text, numbers = [], [], {}
    for trial in TRIALS:
        both = {method: found[Job(trial, method, settings.n, settings.seed)] for method in METHODS}
        figure, r2 = _draw(both)
        case = CASES[trial]
        pictures.append(Picture(f"fig2-{trial}", figure, _caption(trial, settings)))
        words = [
            f"{name}: {share_pure(r2[name][0])} functions of the long side and {share_pure(r2[name][1])} of the "
            "short one depend on that side alone (R^2 of at least .9)"
            for name in METHODS
        ]
        text.append(f"{case.heading}. {'; '.join(words)}.")
        numbers[trial] = {name: {"function_r2": r2[name], **both[name].numbers} for name in METHODS}
    text.append(
        "The paper shows cosines along each side, and so does the published method here for the lowest functions. "
        "Higher ones mix: without density correction, chance fluctuations of the density couple functions whose "
        "eigenvalues lie close together. Noise in x and y rounds the edges, which moves functions near them; no "
        "method undoes that. The paper does not say how large the noise is; .05 is that of the published data."
    )
    return Section("Noisy rectangle: factor functions (the paper's Figure 1)", text, pictures, numbers=numbers)


def _caption(trial: str, settings: Settings) -> str:
    return (
        f"Rectangle with Gaussian noise of .05 in {NOISE[trial]}, {settings.n:,} samples. Left: the data, coloured "
        f"by depth. Right: the {SHOWN} lowest functions of the factor found for the long side [0, 1 + sqrt(pi)] "
        "and of that for the short side [0, 1.5], over the true x and y. Published: "
        f"{CASES[trial].published_settings}. Default: nothing set. Above each: R^2 with which its own side "
        "explains the function."
    )


def _draw(both: dict[str, Found]):
    figure = plots.new_figure(7.2, 3.4)
    left, right = figure.subfigures(1, 2, width_ratios=[1, 2.6])
    first = both["published"]
    ax = left.add_subplot(projection="3d")
    x, y, z = first.samples.T
    ax.scatter(x, y, z, c=z, s=0.6, cmap=plots.LINE_MAP, linewidths=0, rasterized=True)
    ax.view_init(30, -60)
    ax.set_box_aspect((np.ptp(x), np.ptp(y), 2 * np.ptp(z)))
    ax.set(xticks=[0, 1, 2], yticks=[0, 1], zticks=[])
    ax.tick_params(labelsize=6, pad=-2)
    axes = right.subplots(2 * len(METHODS), SHOWN)
    r2 = {}
    for block, (name, found) in enumerate(both.items()):
        xy = np.hstack(found.fitted_truth)
        r2[name] = [
            function_row(axes[2 * block + side], found, side, xy, name=f"{name}\n{('long', 'short')[side]} side")
            for side in range(2)
        ]
    return figure, r2
