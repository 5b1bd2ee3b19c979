"""The noisy rectangle: five functions of each side."""

from dataclasses import dataclass, field

import numpy as np

from manifactor.scores import column_r2
from manifactor.views import plots
from studies.paper.cases import CASES
from studies.paper.finding import Found
from studies.paper.lab import Lab
from studies.paper.panels import Lowest, PanelSettings, function_row, lowest_functions
from studies.paper.section import Picture, Section, Settings

# The directions of the noise in each of the paper's trials.
NOISY = {"rectangle_z": "z", "rectangle_xyz": "x, y and z"}
# In the order of the truth.
SIDES = ("long side", "short side")


@dataclass(frozen=True)
class Fig2Settings:
    """Settings of `fig2`."""

    panels: PanelSettings = field(default_factory=PanelSettings)
    # A function depends on the noise if the noisy samples explain more of it than the true x and y
    # do, by at least this R^2.
    noise_gain: float = 0.3


@dataclass(frozen=True)
class Sides:
    """What one method found: its functions of both sides, and how many are noise's."""

    found: Found
    lowest: list[Lowest]
    of_noise: int

    @property
    def words(self) -> str:
        """How many functions depend on their side alone, and how many on the noise."""
        long, short = self.lowest
        return (
            f"{long.words} functions of the long side and {short.words} of the short "
            "one depend on that side alone (R^2 of at least .9), "
            f"{self.of_noise} of all depend on the noise"
        )

    @property
    def numbers(self) -> dict:
        """All that was measured."""
        return {
            "function_r2": [side.r2 for side in self.lowest],
            "of_noise": self.of_noise,
            **self.found.numbers,
        }


def fig2(settings: Settings, lab: Lab, *, recipe: Fig2Settings = Fig2Settings()) -> Section:
    """Return the paper's Figure 1, for both of its trials."""
    pictures, text, numbers = [], [], {}
    for trial, both in lab.compare(tuple(NOISY), settings).items():
        sides = {name: sides_of(found, recipe) for name, found in both.items()}
        figure = _draw(sides, recipe)
        caption = _caption(trial, settings, recipe)
        pictures.append(Picture(f"fig2-{trial}", figure, caption))
        words = [f"{name.capitalize()}: {one.words}" for name, one in sides.items()]
        text.append(f"{CASES[trial].heading}. {'. '.join(words)}.")
        numbers[trial] = {name: one.numbers for name, one in sides.items()}
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


def sides_of(found: Found, recipe: Fig2Settings = Fig2Settings()) -> Sides:
    """Return the lowest functions of both sides."""
    lowest = [lowest_functions(found, side, settings=recipe.panels) for side in range(len(SIDES))]
    return Sides(found, lowest, noise_functions(found, lowest, recipe))


def noise_functions(found: Found, lowest: list[Lowest], recipe: Fig2Settings) -> int:
    """Return how many of the functions depend on the noise."""
    # Functions are known on the fitted samples only.
    samples = found.samples[found.rows]
    truth = np.hstack(found.fitted_truth)
    count = 0
    for side in lowest:
        # Without functions there is nothing to regress.
        if len(side.r2):
            by_samples = column_r2(samples, side.functions)
            by_truth = column_r2(truth, side.functions)
            count += int((by_samples - by_truth >= recipe.noise_gain).sum())
    return count


def _caption(trial: str, settings: Settings, recipe: Fig2Settings) -> str:
    return (
        f"Rectangle with Gaussian noise of .05 in {NOISY[trial]}, {settings.n:,} "
        "samples. Left: the data, coloured by depth, which is stretched twofold. "
        f"Right: the {recipe.panels.n_functions} lowest functions of the factor found "
        "for the long side [0, 1 + sqrt(pi)] and of that for the short side [0, 1.5], "
        f"over the true x and y. Published: {CASES[trial].published_settings}. "
        "Default: nothing set. Above each: R^2 with which its own side explains the "
        "function."
    )


def _draw(sides: dict[str, Sides], recipe: Fig2Settings):
    figure = plots.new_figure(7.2, 3.4)
    left, right = figure.subfigures(1, 2, width_ratios=[1, 2.6])
    # Both methods get the same samples.
    _draw_samples(left, sides["published"].found.samples)
    rows = [(name, side) for name in sides for side in range(len(SIDES))]
    panels = right.subplots(len(rows), recipe.panels.n_functions)
    for axes, (name, side) in zip(panels, rows, strict=True):
        xy = np.hstack(sides[name].found.fitted_truth)
        label = f"{name}\n{SIDES[side]}"
        function_row(axes, sides[name].lowest[side], xy, name=label)
    return figure


def _draw_samples(figure, samples: np.ndarray) -> None:
    ax = figure.add_subplot(projection="3d")
    x, y, z = samples.T
    # Rasterised: 10,000 points as vectors would make a PDF of megabytes.
    ax.scatter(x, y, z, c=z, s=0.6, cmap=plots.LINE_MAP, linewidths=0, rasterized=True)
    ax.view_init(30, -60)
    # The depth is noise of .05, invisible at the scale of the sides.
    ax.set_box_aspect((np.ptp(x), np.ptp(y), 2 * np.ptp(z)))
    ax.set(xticks=[0, 1, 2], yticks=[0, 1], zticks=[])
    ax.tick_params(labelsize=6, pad=-2)
