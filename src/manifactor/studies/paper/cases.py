"""The paper's data sets, with the settings that it and its published configurations give for them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sklearn.decomposition import PCA

from manifactor import datasets

PAPER_UNIT = 4.0  # the paper's eigenvalues, and with them its delta, are a quarter of the Laplacian's
PAPER_COMPONENTS = 4


@dataclass(frozen=True)
class Case:
    """A data set of the paper, and the settings of the published method for it.

    Attributes
    ----------
    name : str
        A shape of `datasets.SHAPES`, or the molecule's.
    title : str
    delta, gamma : float
        The paper's; delta in its own unit, nan where the paper has no such data: a tenth of the eigenvalue is taken.
    bandwidth : float
        eps of the kernel, from the published configurations: the paper does not give it.
    n_factors : int
        What the method is told.
    density_correction : float
    motions, signal_to_noise
        Of the molecule; None for shapes.
    """

    name: str
    title: str
    delta: float
    gamma: float
    bandwidth: float | str = "auto"
    n_factors: int = 2
    density_correction: float = 0.0
    motions: str | None = None
    signal_to_noise: float | None = None

    def draw(self, n_samples: int, seed: int) -> "Data":
        """Samples and truth."""
        if self.motions is None:
            return Data(*datasets.sample(self.name, n_samples, random_state=seed))
        simulation = datasets.simulate_particles(
            n_samples,
            motions=self.motions,
            signal_to_noise=self.signal_to_noise,
            random_state=seed,
        )
        return Data(None, simulation.truth, simulation)

    @property
    def heading(self) -> str:
        """The title as a sentence begins."""
        return self.title[0].upper() + self.title[1:]

    @property
    def tolerance(self) -> float | str:
        """delta in true units."""
        return "auto" if np.isnan(self.delta) else PAPER_UNIT * self.delta

    @property
    def published_settings(self) -> str:
        """The settings of the published method in words."""
        return (
            f"dense kernel, eps = {self.bandwidth}, delta = {self.delta} in units of "
            f"lambda/4 (that is {self.tolerance} in true units), gamma = {self.gamma}, "
            "100 functions or as many as the kernel resolves"
        )


@dataclass(frozen=True)
class Data:
    """Samples of a shape, (n, d), or images of the molecule, and the truth behind them, (n, c) for each factor."""

    points: np.ndarray | None
    truth: tuple[np.ndarray, ...]
    simulation: datasets.Simulation | None = None

    def truth_for(self, n_found: int) -> tuple[np.ndarray, ...]:
        """The true factors to compare so many with: stretches along x and y are one factor, a sheet, or two."""
        sheet = self.simulation is not None and self.truth[1].shape[1] == 2
        return (
            (self.truth[0], *np.hsplit(self.truth[1], 2))
            if sheet and n_found > len(self.truth)
            else self.truth
        )

    @cached_property
    def samples(self) -> np.ndarray:
        """What the published method gets, (n, d): of images, four principal components of unit variance."""
        if self.points is not None:
            return self.points
        assert self.simulation is not None
        pixels = self.simulation.images.reshape(len(self.simulation.images), -1)
        X = PCA(
            PAPER_COMPONENTS, svd_solver="randomized", random_state=0
        ).fit_transform(pixels)
        return X / X.std(axis=0)


def _molecule(name: str, title: str, motions: str, signal_to_noise: float) -> Case:
    return Case(name, title, 1.0, 0.8, 10.0, 2, 1.0, motions, signal_to_noise)


CASES = {
    case.name: case
    for case in (
        Case("rectangle_z", "rectangle, z noise", 0.5, 0.85, 0.5),
        Case("rectangle_xyz", "rectangle, xyz noise", 0.5, 0.85, 0.5),
        _molecule("molecule_low", "molecule, x and theta, low noise", "x", 100.0),
        _molecule("molecule_high", "molecule, x and theta, high noise", "x", 5.0),
        _molecule("molecule_xy", "molecule, x, y and theta, low noise", "xy", 100.0),
        Case("torus", "torus", 1.0, 0.6, 0.5),
        Case("cube", "cube", 0.25, 0.8, 1.0, 3),
    )
}
BEYOND = {
    case.name: case
    for case in (
        Case("square", "square", np.nan, 0.7),
        Case("equal_torus", "torus of equal circles", np.nan, 0.7),
        Case("sphere_sphere", "two equal spheres", np.nan, 0.7),
        Case("robot_arm", "arm with two joints", np.nan, 0.7),
    )
}
