"""Results in the precision of the samples; what is computed stays in double."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from manifactor.factoring.factors.factor import Factor
from manifactor.factoring.placement import Placed
from manifactor.spectral.resident import like


def precision_of(X: Any) -> type[np.floating]:
    """Return float32 for samples in single precision, else float64.

    >>> precision_of(np.zeros((3, 2), dtype=np.float32))
    <class 'numpy.float32'>
    """
    kinds = getattr(X, "dtypes", [getattr(X, "dtype", None)])
    # Of numpy "float32", of torch "torch.float32", of pandas also "Float32".
    names = {str(kind).removeprefix("torch.").lower() for kind in kinds}
    return np.float32 if names == {"float32"} else np.float64


def given_precision(X: Any, array: np.ndarray):
    """Return an array in the precision of samples, a tensor if these are one."""
    return like(X, array.astype(precision_of(X), copy=False))


def given_angle(X: Any, angle: np.ndarray) -> np.ndarray:
    """Return angles in the precision of samples, all of them below 2 pi."""
    dtype = precision_of(X)
    if dtype == angle.dtype:
        return angle
    rounded = angle.astype(dtype)
    # In single precision, an angle just below 2 pi is rounded to one above.
    return np.where(rounded < dtype(2 * np.pi), rounded, dtype(0))


def given_coordinates(X: Any, columns: np.ndarray, factors: Sequence[Factor]) -> np.ndarray:
    """Return coordinates, (n, n_factors), in the precision of samples."""
    table = columns.astype(precision_of(X), copy=False)
    # Factors of more dimensions have nan, which is no angle.
    circles = [factor.topology == "circle" for factor in factors]
    return np.where(circles, given_angle(X, columns), table)


def given_places(X: Any, places: Sequence[Placed], factors: Sequence[Factor]) -> list[Placed]:
    """Return places on each factor in the precision of samples."""
    dtype = precision_of(X)
    if dtype == np.float64:
        return list(places)
    found = []
    for placed, factor in zip(places, factors, strict=True):
        coordinate = placed.coordinate
        if coordinate is not None:
            circle = factor.topology == "circle"
            coordinate = given_angle(X, coordinate) if circle else coordinate
            coordinate = coordinate.astype(dtype, copy=False)
        embedding, confidence = placed.embedding, placed.confidence
        found.append(Placed(embedding.astype(dtype), coordinate, confidence.astype(dtype)))
    return found
