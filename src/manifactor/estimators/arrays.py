"""Arrays of samples: in memory or not, in single or double precision, of Dask or of torch.

Of samples that are not in memory, some are drawn and fitted. Results are computed in double
precision and returned in that of the samples.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from sklearn.utils import check_array

from manifactor._support.errors import extra, first_sentence
from manifactor._support.parameters import require_count, require_unmasked
from manifactor._support.values import require_values
from manifactor.factors.factor import Factor
from manifactor.factors.placing import Placed
from manifactor.operators.engines.gpu import from_tensor, like

# With more samples, a fit takes minutes and the coordinates hardly improve.
MOST_DRAWN = 20_000
# Every sample needs neighbours, and the spectrum more than the constant function.
FEWEST_SAMPLES = 4
# Sides of an image. Shorter ones are those of short trajectories, or coordinates of atoms.
FEWEST_PIXELS = 4
# Kinds of arrays that are not in memory.
OUTSIDE_MEMORY = ("dask", "chunks")


def image_shape(shape: Sequence[int]) -> tuple[int, ...] | None:
    """Return the shape of one image of an array of images; None for samples in rows."""
    if len(shape) < 3:
        return None
    _, height, width, *channels = shape
    if min(height, width) < FEWEST_PIXELS or channels not in ([], [1], [3]):
        raise ValueError(
            "samples must be rows, (n, columns), or images, (n, height, width) or (n, height, "
            f"width, 3), of {FEWEST_PIXELS} x {FEWEST_PIXELS} pixels or more; got an array of "
            f"shape {tuple(shape)}. Flatten other samples: X.reshape(len(X), -1)."
        )
    return height, width, *channels


def in_pixels(shape: Sequence[int]) -> str:
    """Return the shape of an image in words."""
    return f"{shape[0]} x {shape[1]} pixels{' in colour' * (tuple(shape[2:]) == (3,))}"


def as_rows(X: Any, *, several: bool = False) -> tuple[Any, tuple[int, ...] | None]:
    """Return images as rows of pixels, with the shape of one; other samples as they are.

    Several trajectories of images are films.
    """
    if several:
        films = [as_rows(film) for film in X] if isinstance(X, list) or np.ndim(X) > 3 else []
        return ([film for film, _ in films], films[0][1]) if films else (X, None)
    shape = image_shape(getattr(X, "shape", ()))
    if shape is None:
        return X, None
    if not hasattr(X, "reshape"):
        raise ValueError(
            f"images must be in memory, or a Dask array; got {type(X).__name__}. Convert them: "
            "dask.array.from_array(X)."
        )
    return X.reshape((X.shape[0], prod(shape))), shape


def kind_of(X: Any) -> str:
    """Return what holds samples: "dask", "chunks", "pandas", "polars", or "array" for all else.

    Chunks are those of Zarr or HDF5. Collections of Dask other than arrays are refused.
    """
    if hasattr(X, "__dask_graph__"):
        if not hasattr(X, "rechunk"):
            raise ValueError(
                f"of Dask, `X` must be an array; got {type(X).__name__}. Convert a data "
                "frame: X.to_dask_array(lengths=True)."
            )
        return "dask"
    package = type(X).__module__.partition(".")[0]
    # Arrays of HDF5 that were written at once have no chunks.
    if package == "h5py" or (hasattr(X, "dtype") and getattr(X, "chunks", None) is not None):
        return "chunks"
    return "polars" if package == "polars" else "pandas" if hasattr(X, "iloc") else "array"


def require_known_shape(X: Any) -> None:
    """Refuse a Dask array of unknown size, and what is not a table of numbers."""
    if X.ndim != 2:
        raise ValueError(f"`X` must have one sample a row; got an array of shape {X.shape}.")
    if X.dtype.kind not in "fiub":
        raise ValueError(f"`X` must hold real numbers; got values of type {X.dtype}.")
    if any(np.isnan(size) for size in X.shape):
        raise ValueError(
            "the number of samples of `X` must be known; its chunks are of unknown "
            "size. Call X.compute_chunk_sizes() first."
        )


def draw_rows(n_samples: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return the numbers of `count` random samples, ascending."""
    return np.sort(rng.choice(n_samples, count, replace=False, shuffle=False))


def draw_count(asked: int | str, n_samples: int) -> int:
    """Return how many samples to draw."""
    if asked == "auto":
        return min(n_samples, MOST_DRAWN)
    if asked == "all":
        return n_samples
    return min(require_count("fit_samples", asked, low=FEWEST_SAMPLES, high=10**9), n_samples)


def take_rows(X: Any, rows: np.ndarray) -> Any:
    """Return some samples, ascending; chunks that hold none of them are not read."""
    kind = kind_of(X)
    if kind == "chunks":
        at_once = X.chunks[0] if X.chunks else 2**16
        edges = np.append(np.arange(0, X.shape[0], at_once), X.shape[0])
        return take_by_chunks(rows, edges, lambda start, stop: np.asarray(X[start:stop]))
    if kind == "dask":
        return np.asarray(X[rows].compute())
    return (
        X.iloc[rows] if kind == "pandas" else X[rows] if kind == "polars" else np.asarray(X)[rows]
    )


def take_by_chunks(
    rows: np.ndarray, edges: np.ndarray, read: Callable[[int, int], np.ndarray]
) -> np.ndarray:
    """Return some samples of a table, chunk by chunk; chunks with none are not read."""
    found = []
    for low, high in pairwise(np.searchsorted(rows, edges)):
        if low < high:
            own = rows[low:high]
            block = read(int(own[0]), int(own[-1]) + 1)
            found.append(block[own - own[0]])
    return np.concatenate(found)


def lazy_table(X: Any, worker: Callable[[], Callable], width: int, *, dtype: type[np.floating]):
    """Return a Dask array of `width` columns, with one row for each sample of a Dask array.

    The worker is called once where blocks are computed. It returns a function from samples, and the
    number of their first row, to a table.
    """
    dask, array = extra("dask"), extra("dask.array")
    # All columns of a sample are needed at once.
    whole_rows = X.rechunk({1: -1})
    return array.map_blocks(
        _rows,
        whole_rows,
        dask.delayed(worker, pure=False, traverse=False)(),
        dtype=dtype,
        chunks=(whole_rows.chunks[0], (width,)),
        meta=np.empty((0, 0), dtype=dtype),
    )


def _rows(block: np.ndarray, work: Callable, block_info=None) -> np.ndarray:
    """Return the rows of a block; a message counts rows from the first of all."""
    return work(block, int(block_info[0]["array-location"][0][0]))


def places_as_table(places: Sequence[Placed]) -> np.ndarray:
    """Return all numbers of places side by side."""
    return np.column_stack([part for placed in places for part in placed if part is not None])


def table_width(factors: Sequence[Factor]) -> int:
    """Return the number of columns of `places_as_table`."""
    # The embedding, the coordinate if there is one, and the confidence.
    return sum(f.embedding.shape[1] + (f.coordinate is not None) + 1 for f in factors)


def places_of_table(table, factors: Sequence[Factor]) -> list[Placed]:
    """Return places from the table that `places_as_table` makes of them."""
    places = []
    for factor in factors:
        width, end = factor.embedding.shape[1], table_width([factor])
        coordinate = None if factor.coordinate is None else table[:, width]
        places.append(Placed(table[:, :width], coordinate, table[:, end - 1]))
        table = table[:, end:]
    return places


def precision_of(X: Any) -> type[np.floating]:
    """Return float32 for samples in single precision, else float64."""
    kinds = getattr(X, "dtypes", [getattr(X, "dtype", None)])
    # Of numpy "float32", of torch "torch.float32", of pandas also "Float32".
    names = {str(kind).removeprefix("torch.").lower() for kind in kinds}
    return np.float32 if names == {"float32"} else np.float64


def given_precision(X: Any, array: np.ndarray):
    """Return an array in the precision of samples, a tensor if these are one."""
    return like(X, array.astype(precision_of(X), copy=False))


def rounded(coordinate: np.ndarray, topology: str, dtype: type[np.floating]) -> np.ndarray:
    """Return the coordinates on a factor in a precision; angles stay below 2 pi."""
    if dtype == coordinate.dtype:
        return coordinate
    single = coordinate.astype(dtype)
    # An angle just below 2 pi is rounded to one above.
    return np.where(single < dtype(2 * np.pi), single, dtype(0)) if topology == "circle" else single


def given_places(X: Any, places: Sequence[Placed], factors: Sequence[Factor]) -> list[Placed]:
    """Return places on each factor in the precision of samples."""
    dtype = precision_of(X)
    return [
        Placed(
            embedding.astype(dtype, copy=False),
            None if coordinate is None else rounded(coordinate, factor.topology, dtype),
            confidence.astype(dtype, copy=False),
        )
        for (embedding, coordinate, confidence), factor in zip(places, factors, strict=True)
    ]


def coordinate_table(
    places: Sequence[tuple], factors: Sequence[Factor], dtype: type[np.floating]
) -> np.ndarray:
    """Return coordinates of (embedding, coordinate) on each factor side by side, nan for None."""
    table = np.full((len(places[0][0]), len(factors)), np.nan, dtype)
    for column, (_, coordinate), factor in zip(table.T, places, factors, strict=True):
        if coordinate is not None:
            column[:] = rounded(coordinate, factor.topology, dtype)
    return table


def frame_of(X: Any, rows: np.ndarray | None = None) -> tuple[str, Any]:
    """Return the package of data frames for rows of samples, and their index, None for numbers."""
    kind = kind_of(X)
    if kind != "pandas":
        return "polars" if kind == "polars" else "pandas", None
    return "pandas", X.index if rows is None else X.index[rows]


def coordinate_frame(
    places: Sequence[Factor] | Sequence[Placed], factors: Sequence[Factor], package: str, index: Any
) -> Any:
    """Return coordinates and confidence on each factor as a data frame of a package."""
    columns: dict[str, Any] = {}
    at: Any
    for number, (factor, at) in enumerate(zip(factors, places, strict=True), start=1):
        known = {f"_{k}": column for k, column in enumerate(at.embedding.T)}
        if factor.topology == "interval":
            known = {"": at.coordinate}
        elif factor.topology == "circle":
            angle = at.coordinate
            known = {"_degrees": np.degrees(angle), "_cos": np.cos(angle), "_sin": np.sin(angle)}
        known["_confidence"] = at.confidence
        columns |= {f"factor{number}{name}": column for name, column in known.items()}
    how = {} if package == "polars" else {"index": index}
    return extra(package).DataFrame(columns, **how)


def numbers(given: Any, argument: str) -> np.ndarray:
    """Return an argument as finite floats of any shape; refuse masked values, and text."""
    given = from_tensor(given)
    require_unmasked(given, argument)
    try:
        found = check_array(
            given,
            dtype=np.float64,
            ensure_2d=False,
            allow_nd=True,
            ensure_all_finite=False,
            ensure_min_samples=0,
            ensure_min_features=0,
        )
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`{argument}` must be a dense array of real numbers; got {type(given).__name__} "
            f"({first_sentence(error)}). Convert it, or leave out what is not a number."
        ) from error
    # Values of images by the numbers of their pixels, as in `fit`.
    flat = found.reshape(len(found), prod(found.shape[1:])) if found.ndim > 2 else found
    require_values(np.atleast_1d(flat), argument=argument)
    return found
