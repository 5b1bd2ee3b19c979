"""Places of Dask arrays, computed block by block when they are asked for."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from manifactor._support.extras import extra
from manifactor.factoring.factors.factor import Factor
from manifactor.factoring.placement import Placed

# Returns a function from samples, and the number of their first row, to a table.
Worker = Callable[[], Callable[[np.ndarray, int], np.ndarray]]


def lazy_table(X: Any, worker: Worker, width: int, *, dtype: type[np.floating] = np.float64):
    """Return a Dask array with one row for each sample.

    Shapes: X (n_samples, n_features) -> (n_samples, width).
    """
    dask, array = extra("dask"), extra("dask.array")
    # A sample is placed by all its columns.
    whole_rows = X.rechunk({1: -1})
    work = dask.delayed(worker, pure=False, traverse=False)()
    return array.map_blocks(
        _rows,
        whole_rows,
        work,
        dtype=dtype,
        chunks=(whole_rows.chunks[0], (width,)),
        meta=np.empty((0, 0), dtype=dtype),
    )


def _rows(block: np.ndarray, work: Callable, block_info=None) -> np.ndarray:
    """Return the rows of a block; a message counts rows from the first of all."""
    first = int(block_info[0]["array-location"][0][0])
    return work(block, first)


def places_as_table(places: Sequence[Placed]) -> np.ndarray:
    """Return all numbers of places side by side."""
    columns = []
    for placed in places:
        known = [each for each in placed if each is not None]
        columns += [each.reshape(len(each), -1) for each in known]
    return np.hstack(columns)


def table_width(factors: Sequence[Factor]) -> int:
    """Return the number of columns of `places_as_table`."""
    return sum(sum(_widths(factor)) for factor in factors)


def places_of_table(table, factors: Sequence[Factor]) -> list[Placed]:
    """Return places from the table that `places_as_table` makes of them."""
    places, start = [], 0
    for factor in factors:
        embedding, coordinate, _ = _widths(factor)
        last = start + embedding + coordinate
        places.append(
            Placed(
                table[:, start : start + embedding],
                table[:, last - 1] if coordinate else None,
                table[:, last],
            )
        )
        start = last + 1
    return places


def _widths(factor: Factor) -> tuple[int, int, int]:
    """Return the columns of embedding, coordinate and confidence."""
    return factor.embedding.shape[1], int(factor.coordinate is not None), 1
