"""Memory and time of a fit of all views, estimated before any image is read."""

from dataclasses import dataclass

from manifactor.cryoem.all_views.factoring import AllViewsSettings
from manifactor.cryoem.all_views.transforms import TransformSettings
from manifactor.runs.cost import Cost, PartCost, cores_of_worker, cost_of_parts


@dataclass(frozen=True)
class AllViewsRates:
    """Rates of `forecast_all_views`.

    They were measured on a core of 2.4 GHz, in fits of 3,000 to 100,000 images of 48 and 256
    pixels.
    """

    # Bytes a second of reading images, in single precision, and of their Fourier transforms.
    read_bytes: float = 3.5e8
    # Seconds for an image in a round of expectation maximisation, and in a comparison with volumes
    # alone; and those of a set of volumes that is solved for, whatever the number of images.
    round_seconds: float = 5e-4
    compare_seconds: float = 1.5e-4
    volume_seconds: float = 0.4
    # Rounds from known places, and cells of views that are compared: estimates.
    known_rounds: int = 5
    n_cells: int = 10
    # Seconds of factoring the coordinates of as many images as are fitted at most, and of all that
    # is written of an image.
    factor_seconds: float = 8.0
    write_seconds: float = 1e-4
    # Bytes that are held for an image: its coefficients, the covariance of its coordinates, and its
    # line of text; and for one that volumes are learned from, products of its features. Beside
    # them, a block of images that is read, volumes, and the sums of each thread.
    image_bytes: float = 4000.0
    learned_bytes: float = 12_000.0
    shared_bytes: float = 8e8
    thread_bytes: float = 1e8


def forecast_all_views(
    n_images: int,
    size: int,
    *,
    n_mates: int = 1,
    n_workers: int = 1,
    n_cores: int | None = None,
    settings: AllViewsSettings = AllViewsSettings(),
    rates: AllViewsRates = AllViewsRates(),
) -> Cost:
    """Estimate memory and time of a fit of all views, before any image is read."""
    most_threads = settings.principal.regression.max_threads
    threads = min(cores_of_worker(n_workers, n_cores), most_threads)
    # Small images have no frequencies up to the usual cut.
    cut = min(1.0, (size // 2 - 1) / TransformSettings().cycles)
    volume_seconds = rates.volume_seconds * cut**3
    fitted = min(settings.fitted_share * n_images, settings.max_fitted)
    n_shown = n_images * n_mates
    learned = min(settings.placing.learned, n_shown)
    here = rates.shared_bytes + rates.image_bytes * n_images
    there = rates.shared_bytes + rates.thread_bytes * threads
    there += rates.image_bytes * n_images / n_workers

    def divided(name: str, work: float, volumes: int, memory: float) -> PartCost:
        seconds = work / (threads * n_workers) + volume_seconds * volumes
        return PartCost(name, seconds, there + memory / n_workers, on_workers=True)

    return cost_of_parts(
        [
            # A core reads while the others wait for the disk.
            divided("reading", threads * _reading_seconds(n_images, size, rates), 0, 0),
            divided("volumes", *_volume_work(n_images, n_shown, settings, rates), 0),
            PartCost("factors", rates.factor_seconds * fitted / settings.max_fitted, here),
            divided(
                "placing",
                *_placing_work(n_images, n_shown, fitted * n_mates, settings, rates),
                rates.learned_bytes * learned,
            ),
            PartCost("writing", rates.write_seconds * n_images, here),
        ],
        n_workers=n_workers,
    )


def _reading_seconds(n_images: int, size: int, rates: AllViewsRates) -> float:
    return 4.0 * n_images * size**2 / rates.read_bytes


def _volume_work(
    n_images: int, n_shown: int, settings: AllViewsSettings, rates: AllViewsRates
) -> tuple[float, int]:
    """Return seconds of a core for principal volumes, and how many are solved for."""
    principal = settings.principal
    # Rounds of two half sets, each with one to start from, and of the final volumes.
    images = min(2 * principal.half_set, n_shown) * (principal.rounds + 1)
    images += min(principal.learned, n_shown) * principal.final_rounds
    # All images are compared with the principal volumes.
    seconds = rates.round_seconds * images + rates.compare_seconds * n_images
    return seconds, 2 * principal.rounds + principal.final_rounds


def _placing_work(
    n_images: int, n_shown: int, n_known: float, settings: AllViewsSettings, rates: AllViewsRates
) -> tuple[float, int]:
    """Return seconds of a core for volumes of the motions and places, and volumes."""
    placing = settings.placing
    # Rounds from known places, which end when no term is added; from all, in which images are
    # compared with volumes before and after; and of cells of views.
    images = (
        min(n_known, placing.learned) * rates.known_rounds
        + min(placing.learned, n_shown) * (2 * placing.rounds + 1)
        + min(placing.consistency.compared, n_images) * rates.n_cells
    )
    seconds = rates.round_seconds * images + rates.compare_seconds * n_images
    # Three sets of volumes in a round of the motions, and in a cell of views.
    return seconds, 3 * (rates.known_rounds + placing.rounds + rates.n_cells)
