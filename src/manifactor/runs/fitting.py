"""An input fitted: some samples are drawn and fitted, all are placed."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from manifactor._support.choices import Choice, given
from manifactor._support.parameters import require_count
from manifactor._support.stages import Stages
from manifactor.cryoem.images import Components
from manifactor.estimators import ManifoldFactorizer
from manifactor.estimators.drawing import DrawSettings
from manifactor.inputs.large import UnreadTable
from manifactor.inputs.reading import Input
from manifactor.inputs.unread import UnreadImages
from manifactor.runs.places import Place, all_places, fitted_places
from manifactor.spectral.neighbors import NeighborSettings, chosen

# An input whose files were checked, and not necessarily read.
Opened = Input | UnreadImages | UnreadTable


@dataclass(frozen=True)
class PlanSettings:
    """How many samples of an input are fitted; the others are placed."""

    # Noise needs neighbourhoods wider than itself. With more and more images the nearest ones are
    # near by noise alone, so a few thousand with many neighbours tell more than all of them.
    images: int = 3000
    # Of all else, as of tables that are not read as a whole.
    others: int = DrawSettings.most
    # Fitted images for each neighbour.
    images_per_neighbor: int = 30
    fewest: int = DrawSettings.fewest


@dataclass(frozen=True)
class FitPlan:
    """Which samples are fitted, with which parameters, and why."""

    rows: np.ndarray  # the samples to fit, ascending
    parameters: dict  # parameters of the factorizer
    # (n_features,): standard deviation of the noise in every column, where it is known
    noise: np.ndarray | None = None
    choices: dict[str, Choice] = field(default_factory=dict)

    def factorizer(self) -> ManifoldFactorizer:
        """Return the factorizer, not fitted yet."""
        return ManifoldFactorizer(**self.parameters)


def plan_fit(
    samples: Opened,
    *,
    settings: Mapping,
    seed: int,
    n_fitted: int | str = "auto",
    drawing: PlanSettings = PlanSettings(),
) -> FitPlan:
    """Return which samples to fit and how, before anything is computed."""
    parameters = {**settings, "random_state": seed}
    rows, how_many = _draw(samples, n_fitted, seed, drawing)
    choices = {"samples fitted": how_many}
    noise = None
    if _are_images(samples) and parameters.get("n_neighbors", "auto") == "auto":
        near = _neighbors_of_images(len(rows), drawing)
        parameters["n_neighbors"] = near.value
        choices["neighbours"] = near
    if isinstance(samples, UnreadImages):
        parameters["preparation"] = "none"
    elif isinstance(samples, Input) and samples.components is not None:
        # Noise was already removed from the images or volumes.
        parameters["preparation"] = "none"
        text = f"noise is removed where the input is read: {samples.components}"
        choices["preparation"] = Choice("principal components", text)
        noise = samples.components.weights
    return FitPlan(rows, parameters, noise, choices)


def _are_images(samples: Opened) -> bool:
    """Return whether samples are made of images, not of a table or of volumes."""
    if isinstance(samples, UnreadImages):
        return samples.view is not None
    return isinstance(samples, Input) and isinstance(samples.components, Components)


def _neighbors_of_images(n_images: int, drawing: PlanSettings) -> Choice:
    usual = NeighborSettings().n_neighbors
    wide = n_images // drawing.images_per_neighbor
    if wide <= usual:
        count = min(usual, n_images - 1)
        return Choice(count, "low eigenfunctions are most accurate with 64 to 128 neighbours")
    return Choice(
        wide,
        f"one for every {drawing.images_per_neighbor} fitted images: noise needs "
        "neighbourhoods wider than itself",
    )


def _draw(
    samples: Opened, n_fitted: int | str, seed: int, drawing: PlanSettings
) -> tuple[np.ndarray, Choice]:
    """Return the samples to fit, ascending, and why so many."""
    n_samples = len(samples.rows)  # of a large table, those that were drawn
    of_images = _are_images(samples)
    most = drawing.images if of_images else drawing.others
    asked = {"auto": most, "all": max(n_samples, drawing.fewest)}
    count = require_count(
        "fit_samples", asked.get(str(n_fitted), n_fitted), low=drawing.fewest, high=10**9
    )
    if count >= n_samples:
        found = given("all")
        if n_fitted == "auto":
            found = Choice("all", f"there are no more than {most:,}")
        return np.arange(n_samples), found
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(n_samples, count, replace=False, shuffle=False))
    shown = f"{count:,} of {n_samples:,}"
    if n_fitted != "auto":
        return rows, given(shown)
    why = f"{most:,} at most, so that a fit stays quick; the others are placed"
    if of_images:
        why = "few images with many neighbours average out more noise"
    return rows, Choice(shown, why)


def fit_input(
    samples: Input, plan: FitPlan, *, stages: Stages | None = None, callback=None
) -> tuple[ManifoldFactorizer, tuple[Place, ...]]:
    """Return a factorizer fitted to the planned samples, and the places of all."""
    fit = plan.factorizer().set_params(callback=callback)
    fit.fit(
        chosen(samples.samples, plan.rows),
        noise=plan.noise,
        stages=stages,
        column_names=samples.labels,
    )
    everything = len(plan.rows) == len(samples.samples)
    places = fitted_places(fit) if everything else all_places(fit, samples.samples)
    return fit, places
