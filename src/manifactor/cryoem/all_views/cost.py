"""Memory and time of a fit of all views, before any image is read."""

from manifactor._support.memory import available_memory
from manifactor.cryoem.all_views.transforms import point_group
from manifactor.cryoem.files.stacks import ImageSource
from manifactor.runs.cost import Cost, PartCost, cores_of_worker, cost_of_parts
from manifactor.runs.task import Task


def cost_of_all_views(task: Task, source: ImageSource, *, n_workers: int) -> Cost:
    """Return what the fit costs; refuse more than the machine's memory."""
    cost = forecast_all_views(
        len(source),
        source.shape[0],
        n_mates=len(point_group(task.options.symmetry)),
        n_workers=n_workers,
        on_device=task.options.device != "cpu",
    )
    if not cost.fits:
        raise MemoryError(
            f"the fit must fit into memory; {len(source)} particles need {cost}, "
            f"and this machine can give {available_memory() / 1e9:.1f} GB. Give "
            "fewer particles, such as those of one --class or --optics-group."
        )
    return cost


def forecast_all_views(
    n_images: int, size: int, *, n_mates: int = 1, n_workers: int = 1, on_device: bool = False
) -> Cost:
    """Estimate memory and time of a fit of all views, before any image is read.

    Rates were measured in fits of 3,000 to 100,000 images of 48 to 256 pixels.
    """
    threads = min(cores_of_worker(n_workers), 8)
    n_shown, n_fitted = n_images * n_mates, min(0.4 * n_images, 6000)
    # A set of volumes takes .3 s; small images have no frequencies up to the usual cut.
    volume_seconds = 0.3 * min(1.0, (size // 2 - 1) / 12.5) ** 3
    # Few images show few terms, of which there are few volumes and products.
    terms = min(1.0, n_shown / 4000)
    # An image takes 4000 bytes: its coefficients, the covariance of its coordinates, its line of
    # text. Volumes, a block of images, and the sums of each thread are held beside them, and what
    # torch needs to use a GPU.
    start = 4e8 + 2e8 * terms + 1.5e9 * on_device
    here = start + 4000 * n_images
    sums = 2.2e8 * terms * (1 if on_device else threads)
    there = start + sums + 4000 * n_images / n_workers

    def divided(name: str, n_compared: float, n_volumes: int, n_learned: int = 0) -> PartCost:
        # Of an image, seconds in a round of expectation maximisation, and in a comparison with
        # volumes alone; and bytes of products of its features, if volumes are learned from it.
        each = (1e-4 if on_device else 3e-4) * n_compared + 1.5e-4 * n_images
        seconds = each / (threads * n_workers)
        memory = there + 12_000 * n_learned / n_workers
        return PartCost(name, seconds + volume_seconds * n_volumes, memory, on_workers=True)

    # Two half sets in 7 rounds, with one to start from, and the final volumes in 3.
    principal = 8 * min(12_000, n_shown) + 3 * min(20_000, n_shown)
    # Some 5 rounds from known places, 3 from all, in which images are compared before and after,
    # and some 10 cells of views. Three sets of volumes are solved for in each.
    learned = min(30_000, n_shown)
    motions = 5 * min(n_fitted * n_mates, 30_000) + 7 * learned + 10 * min(4000, n_images)
    reading = 4.0 * n_images * size**2 / 3.5e8 / n_workers
    parts = [
        PartCost("reading", reading, there, on_workers=True),
        divided("volumes", principal, 17),
        PartCost("factors", 8 * n_fitted / 6000, here),
        divided("placing", motions, 54, learned),
        PartCost("writing", 1e-4 * n_images, here),
    ]
    return cost_of_parts(parts, n_workers=n_workers, device_memory=3e9 * on_device)
