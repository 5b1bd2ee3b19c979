"""The molecule of a run of all views, as the sliders and the direction say."""

from dataclasses import dataclass

import numpy as np

from manifactor.runs.motions import UNKNOWN, RunMotions
from manifactor.views.explorer.previews import Look, data_url


@dataclass(frozen=True)
class Molecule:
    """Mean images of a molecule that moves, from any direction.

    Attributes
    ----------
    motions : RunMotions
    pixels : int
        Width of an image.
    count : int
        Samples that are listed beside the image.
    """

    motions: RunMotions
    pixels: int = 192
    count: int = 12
    kind: str = "molecule"
    why: str = ""

    @property
    def width(self) -> float:
        """Width of an image in Angstrom."""
        return self.motions.model.box

    @property
    def views(self) -> dict:
        """How many particles each direction has, and how well it shows the motions."""
        views = self.motions.model.views
        n_motions = views.deviations.shape[1]
        return {
            "directions": np.round(views.directions, 4).tolist(),
            "counts": views.counts.tolist(),
            "deviations": [_numbers(each) for each in views.deviations.T],
            "unknown": UNKNOWN,
            "best": [self.motions.best_view(motion) for motion in range(n_motions)],
        }

    def shown(self, rows: np.ndarray, weights: np.ndarray, look: Look) -> dict:
        """Return the mean image at the places and from the direction of a look."""
        image = self.motions.image(look.at, look.view, size=self.pixels)
        return {"image": data_url(image, largest=self.pixels)}


def _numbers(values: np.ndarray) -> list[float | None]:
    """Return values for JSON, which does not know nan."""
    known = np.isfinite(values)
    return [
        round(float(value), 4) if is_known else None
        for value, is_known in zip(values, known, strict=True)
    ]
