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
    # with volumes alone; and those of a round whatever the number of images, in which
    # volumes are solved for and transformed.
    round_seconds: float = 4e-4
    compare_seconds: float = 1.5e-4
    volume_seconds: float = 1.0
    # Seconds of factoring the coordinates of as many images as are fitted at most, and
    # of all that is written of an image.
    factor_seconds: float = 8.0
    write_seconds: float = 1e-4
    # Bytes that are held for an image: its coefficients, the covariance of its
    # coordinates, and its line of text. Beside them, a block of images that is read,
    # volumes, and the sums of each thread.
    image_bytes: float = 4000.0
    shared_bytes: float = 7.5e8
    thread_bytes: float = 1e8


def forecast_all_views(
    n_images: int,
    size: int,
    *,
    settings: AllViewsSettings = AllViewsSettings(),
    rates: AllViewsRates = AllViewsRates(),
) -> Forecast:
    """Estimate memory and time of a fit of all views, before any image is read.

    Parameters
    ----------
    n_images : int
    size : int
        Width of an image in pixels.
    settings : AllViewsSettings
    rates : AllViewsRates
    """
    principal, placing = settings.principal, settings.placing
    threads = min(cores(), principal.regression.max_threads)
    # Rounds of two half sets, each with one to start from, of the final volumes, and of
    # the volumes of the motions, which are also made of two halves of the views.
    rounds = (
        (min(2 * principal.half_set, n_images), principal.rounds + 1),
        (min(principal.learned, n_images), principal.final_rounds),
        (min(placing.learned, n_images), placing.rounds + 2),
    )
    images = sum(count * times for count, times in rounds)
    volumes = sum(times for _, times in rounds) + principal.rounds + 3
    # All images are compared with the principal volumes and with those of the motions.
    work = rates.round_seconds * images + rates.compare_seconds * 2 * n_images
    # Small images have no frequencies up to the usual cut.
    cut = min(1.0, (size // 2 - 1) / TransformSettings().cycles)
    fitted = min(settings.fitted_share * n_images, settings.max_fitted)
    seconds = (
        4.0 * n_images * size**2 / rates.read_bytes
        + rates.volume_seconds * volumes * cut**3
        + work / threads
        + rates.factor_seconds * fitted / settings.max_fitted
        + rates.write_seconds * n_images
    )
    memory = rates.shared_bytes + rates.thread_bytes * threads
    return Forecast(memory + rates.image_bytes * n_images, seconds)
