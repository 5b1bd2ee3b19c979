"""Rows of the accuracy table on `datasets.FIELD`, data as people have them."""

from collections.abc import Iterator
from dataclasses import dataclass

from manifactor.datasets import FIELD
from studies.cases import Row, rows_of


@dataclass(frozen=True)
class FieldSettings:
    """Settings of `field_rows`: numbers of seeds and of samples."""

    # Each group has 3 to 14 shapes, so that its rate rests on 30 runs and more.
    seeds: int = 10
    # A rotation must change nothing at all, so few seeds show it.
    rotated_columns: int = 10
    rotated_seeds: int = 3
    # More samples must never make Gaussians worse, and must show that a near-product is no product.
    gaussian_sizes: tuple[int, ...] = (1000, 10_000, 30_000)
    near_sizes: tuple[int, ...] = (1000, 30_000)
    # A fit of 30,000 samples takes as long as ten of 3000.
    size_seeds: int = 3


def field_rows(settings: FieldSettings = FieldSettings()) -> Iterator[Row]:
    """Yield the cases of every group of `datasets.FIELD`, and of other sizes."""
    for group, shapes in FIELD.items():
        yield from rows_of(group, shapes, settings.seeds)
    gaussians, near = FIELD["gaussian"], FIELD["near products"]
    columns = settings.rotated_columns
    group = f"gaussian, turned into R^{columns}"
    yield from rows_of(group, gaussians, settings.rotated_seeds, columns=columns)
    for n in settings.gaussian_sizes:
        yield from rows_of(f"gaussian, n = {n}", gaussians, settings.size_seeds, n=n)
    for n in settings.near_sizes:
        yield from rows_of(f"near products, n = {n}", near, settings.size_seeds, n=n)
