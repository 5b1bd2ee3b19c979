"""Memory and time of a fit of all views, estimated before any image is read."""

from dataclasses import dataclass

from manifactor._support.threads import cores
from manifactor.cryoem.all_views.factoring import AllViewsSettings
from manifactor.cryoem.all_views.transforms import TransformSettings
from manifactor.spectral.forecast import Forecast


@dataclass(frozen=True)
class AllViewsRates:
    """Rates of `forecast_all_views`.

    They were measured on a core of 2.4 GHz, in fits of 3,000 to 100,000 images of 48
    and 256 pixels.
    """

    # Bytes a second of reading images, in single precision, and of their Fourier
    # transforms.
    read_bytes: float = 3.5e8
    # Seconds for an image in a round of expectation maximisation, and in a comparison
    # with volumes alone; and those of a set of volumes that is solved for, whatever
    # the number of images.
    round_seconds: float = 5e-4
    compare_seconds: float = 1.5e-4
    volume_seconds: float = 0.4
    # Rounds from known places, and cells of views that are compared: estimates.
    known_rounds: int = 5
    n_cells: int = 10
    # Seconds of factoring the coordinates of as many images as are fitted at most, and
    # of all that is written of an image.
    factor_seconds: float = 8.0
    write_seconds: float = 1e-4
    # Bytes that are held for an image: its coefficients, the covariance of its
    # coordinates, and its line of text; and for one that volumes are learned from,
    # products of its features. Beside them, a block of images that is read, volumes,
    # and the sums of each thread.
    image_bytes: float = 4000.0
    learned_bytes: float = 12_000.0
    shared_bytes: float = 8e8
    thread_bytes: float = 1e8


def forecast_all_views(
    n_images: int,
    size: int,
    *,
    n_mates: int = 1,
    settings: AllViewsSettings = AllViewsSettings(),
    rates: AllViewsRates = AllViewsRates(),
) -> Forecast:
    """Estimate memory and time of a fit of all views, before any image is read.

    Parameters
    ----------
    n_images : int
    size : int
        Width of an image in pixels.
    n_mates : int
        Order of the point group. Every image counts as often.
    settings : AllViewsSettings
    rates : AllViewsRates
    """
    principal, placing = settings.principal, settings.placing
    threads = min(cores(), principal.regression.max_threads)
    fitted = min(settings.fitted_share * n_images, settings.max_fitted)
    n_shown = n_images * n_mates
    # Rounds of two half sets, each with one to start from; of the final volumes; of
    # volumes of the motions from known places, which end when no term is added; and
    # from all, in which images are compared with volumes before and after.
    rounds = (
        (min(2 * principal.half_set, n_shown), principal.rounds + 1),
        (min(principal.learned, n_shown), principal.final_rounds),
        (min(fitted * n_mates, placing.learned), rates.known_rounds),
        (min(placing.learned, n_shown), 2 * placing.rounds + 1),
        (min(placing.consistency.compared, n_images), rates.n_cells),
    )
    images = sum(count * times for count, times in rounds)
    # Three sets of volumes in a round of the motions, and in a cell of views.
    volumes = (
        2 * principal.rounds
        + principal.final_rounds
        + 3 * (rates.known_rounds + placing.rounds + rates.n_cells)
    )
    # All images are compared with the principal volumes and with those of the motions.
    work = rates.round_seconds * images + rates.compare_seconds * 2 * n_images
    # Small images have no frequencies up to the usual cut.
    cut = min(1.0, (size // 2 - 1) / TransformSettings().cycles)
    seconds = (
        4.0 * n_images * size**2 / rates.read_bytes
        + rates.volume_seconds * volumes * cut**3
        + work / threads
        + rates.factor_seconds * fitted / settings.max_fitted
        + rates.write_seconds * n_images
    )
    memory = (
        rates.shared_bytes
        + rates.thread_bytes * threads
        + rates.image_bytes * n_images
        + rates.learned_bytes * min(placing.learned, n_shown)
    )
    return Forecast(memory, seconds)
