"""Simulated cryo-EM images: functions over the true turn and stretch."""

from dataclasses import dataclass

import numpy as np

from manifactor import datasets
from manifactor.views import plots
from studies.paper.cases import CASES
from studies.paper.finding import Found
from studies.paper.lab import Lab
from studies.paper.panels import Lowest, PanelSettings, function_row, latent, lowest_functions
from studies.paper.section import Picture, Section, Settings

# The paper prints the second of its trials only.
MOLECULES = ("molecule_low", "molecule_high", "molecule_xy")
# In the order of the truth.
TWO_MOTIONS = ("turn", "stretch")
THREE_MOTIONS = ("turn", "x stretch", "y stretch")


@dataclass(frozen=True)
class Motions:
    """What one method found: its lowest functions of each true motion, by name."""

    found: Found
    lowest: dict[str, Lowest]

    @property
    def words(self) -> str:
        """R^2 own and leaked, and how many functions depend on their factor alone."""
        pure = ", ".join(f"{shown.words} of the {motion}" for motion, shown in self.lowest.items())
        return (
            f"R^2 {self.found.numbers['own']:.3f} own, {self.found.score.leak:.3f} "
            f"leaked; functions shown that depend on their factor alone: {pure}."
        )

    @property
    def numbers(self) -> dict:
        """All that was measured."""
        r2 = {motion: shown.r2 for motion, shown in self.lowest.items()}
        return {"function_r2": r2, **self.found.numbers}


def fig3(settings: Settings, lab: Lab, *, recipe: PanelSettings = PanelSettings()) -> Section:
    """Return the paper's Figure 2, for all of its three trials."""
    pictures, text, numbers = [], [], {}
    for trial, both in lab.compare(MOLECULES, settings).items():
        motions = {name: motions_of(found, recipe) for name, found in both.items()}
        figure = _draw(motions, recipe)
        caption = _caption(trial, both["default"], settings, recipe)
        pictures.append(Picture(f"fig3-{trial}", figure, caption))
        words = [f"{name.capitalize()}: {one.words}" for name, one in motions.items()]
        text.append(f"{CASES[trial].heading}. {' '.join(words)}")
        numbers[trial] = {name: one.numbers for name, one in motions.items()}
    return Section(
        "Simulated cryo-EM images (the paper's Figure 2)", [*text, WHY], pictures, (), numbers
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


def motions_of(found: Found, recipe: PanelSettings = PanelSettings()) -> Motions:
    """Return the lowest functions of each true motion."""
    # Stretches along x and y are one factor or two: see `Data.truth_for`.
    names = THREE_MOTIONS if len(found.truth) == 3 else TWO_MOTIONS
    lowest = {
        name: lowest_functions(found, true, settings=recipe) for true, name in enumerate(names)
    }
    return Motions(found, lowest)


def _caption(trial: str, found: Found, settings: Settings, recipe: PanelSettings) -> str:
    case = CASES[trial]
    # One caption for two ways of drawing: see `_over`.
    over = "over stretch (across) and turn (up)"
    if case.motions == "xy":
        over = "stretches over x and y, the turn over x and turn"
    return (
        f"{settings.n:,} images of 108 x 108 pixels, signal to noise "
        f"{case.signal_to_noise} (fourth component). Left: the molecule, whose orange "
        "part turns and whose blue part is stretched, and images of it. Right: the "
        f"{recipe.n_functions} lowest functions of each factor, {over}. Published: "
        f"four principal components of unit variance, {case.published_settings}, "
        "density correction as in the published code. Default: `manifactor fit`, "
        f"{len(found.rows):,} of the images fitted, nothing set."
    )


def _draw(motions: dict[str, Motions], recipe: PanelSettings):
    figure = plots.new_figure(7.2, 4.2)
    left, right = figure.subfigures(1, 2, width_ratios=[1, 5])
    # The default has the same images, prepared.
    images = motions["published"].found.images
    _draw_data(left, () if images is None else images)
    rows = [
        (name, true, motion)
        for name, one in motions.items()
        for true, motion in enumerate(one.lowest)
    ]
    panels = right.subplots(len(rows), recipe.n_functions)
    for axes, (name, true, motion) in zip(panels, rows, strict=True):
        one = motions[name]
        xy = _over(one.found.fitted_truth, true)
        function_row(axes, one.lowest[motion], xy, name=f"{name}\n{motion}")
    return figure


def _over(truth: tuple[np.ndarray, ...], true: int) -> np.ndarray:
    """Return the true coordinates, (n, 2), that a function is drawn over.

    A function of a stretch is drawn over both stretches where there are two; all others are drawn
    over the stretch and the turn.
    """
    # The turn comes first in all trials.
    turn, stretch = truth[0], np.hstack(truth[1:])
    is_stretch = true > 0
    if is_stretch and stretch.shape[1] == 2:
        return stretch
    return np.column_stack([stretch[:, 0], latent(turn)])


def _draw_data(figure, images) -> None:
    """Draw the molecule and some images of it in a column."""
    axes = figure.subplots(1 + len(images), 1, squeeze=False)[:, 0]
    # Seen from the side: the axis of rotation points upwards.
    molecule = datasets.channel()
    y, z = molecule.atoms[:, 1:].T
    colours = np.where(molecule.rotor, plots.CATEGORIES[1], plots.CATEGORIES[0])
    axes[0].scatter(y, z, c=colours, s=0.4, linewidths=0, rasterized=True)
    axes[0].set_aspect("equal")
    for ax, image in zip(axes[1:], images, strict=True):
        # Other interpolations would smooth the noise away.
        ax.imshow(image, cmap="gray", interpolation="nearest")
    for ax in axes:
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
