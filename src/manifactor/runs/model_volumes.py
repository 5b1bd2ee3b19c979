"""Volumes along the motions of a run of all views."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manifactor.runs.averaging import Averages, binned, places_along
from manifactor.runs.matching import match
from manifactor.runs.motions import RunMotions
from manifactor.runs.run import Run


@dataclass(frozen=True)
class ModelVolumes(Averages):
    """Volumes of the model of all particles, at the centres of bins of them."""

    @property
    def filled(self) -> np.ndarray:
        """All bins: a model has a volume everywhere."""
        return np.arange(len(self.means))

    def __str__(self) -> str:
        counts = self.matching.counts
        return (
            f"{len(counts)} volumes of the model that all {counts.sum()} particles "
            f"gave, at the centres of bins of {counts.min()} to {counts.max()} "
            "particles"
        )


def volumes_along(
    run: Run, motions: RunMotions, factors: Sequence[int], *, n_bins: int
) -> ModelVolumes:
    """Return volumes along one motion or two, the others in their middle.

    They are of the model that all particles together gave, at the centres of the bins; the counts
    are those of the particles of each bin.
    """
    places = places_along(run, factors)
    labels, centres = binned(places, n_bins)
    shape = (n_bins,) * len(places)
    return ModelVolumes(
        means=motions.volumes([factor - 1 for factor in factors], centres),
        shape=shape,
        centres=centres,
        places=places,
        matching=match(labels, [], n_bins=n_bins ** len(places)),
        pixel_size=motions.model.voxel_size,
    )


def require_plain(*, matched: bool, halves: bool) -> None:
    """Refuse what means of images have and a model has not."""
    if matched:
        raise ValueError(
            "--match is for means of images; volumes of all views have the other "
            "factors held in their middle. Leave it out, or give a --view ROT,TILT."
        )
    if halves:
        raise ValueError(
            "--halves is for means of images; the volumes of all views are of all "
            "particles. Leave it out, or give a --view ROT,TILT."
        )
