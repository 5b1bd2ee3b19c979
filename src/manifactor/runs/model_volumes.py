"""Volumes along the motions of a run of all views."""

from collections.abc import Sequence

from manifactor.runs.averaging import Averages, binned, places_along
from manifactor.runs.matching import match
from manifactor.runs.motions import RunMotions
from manifactor.runs.run import Run


def volumes_along(
    run: Run, motions: RunMotions, factors: Sequence[int], *, n_bins: int
) -> Averages:
    """Return volumes along one motion or two, the others in their middle.

    They are of the model that all particles together gave, at the centres of the bins;
    the counts are those of the particles of each bin.

    Parameters
    ----------
    run : Run
    motions : RunMotions
    factors : sequence of int
        One or two, counted from 1.
    n_bins : int
        Along each factor.
    """
    places = places_along(run, factors)
    labels, centres = binned(places, n_bins)
    shape = (n_bins,) * len(places)
    return Averages(
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
