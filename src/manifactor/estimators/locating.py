"""Places of Dask arrays, computed block by block when they are asked for."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manifactor._support.errors import extra
from manifactor._support.workers import ignored
from manifactor.estimators.base import (
    SpectralEstimator,
    given_coordinates,
    given_places,
    precision_of,
    rows_at_a_time,
)
from manifactor.estimators.drawing import is_lazy, require_known_shape
from manifactor.factoring.factors.factor import Factor
from manifactor.factoring.placement import Placed, Placer, make_placer, place_blocks
from manifactor.spectral.gpu import like

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


# Where new samples lie on the factors of a fit: in memory, on disk, or of Dask.


@dataclass(frozen=True)
class Locator:
    """A function from samples to their places on each factor.

    Attributes
    ----------
    estimator : ManifoldFactorizer
    placer : callable
        From prepared samples to places.
    """

    estimator: Any
    placer: Placer

    def __call__(
        self, X: Any, first_row: int = 0, *, report: Callable[[float], None] = ignored
    ) -> list[Placed]:
        """Return the places of samples, as `ManifoldFactorizer.locate`.

        Shapes: X (n_new, n_features).
        """
        if np.ndim(X) != 2:
            self.estimator._prepared(X)  # which refuses it
        # Blocks are checked and prepared one by one: X may be larger than the memory.

        def prepare(block: Any, row: int) -> np.ndarray:
            prepared = self.estimator._prepared(block, first_row + row)
            report(row / np.shape(X)[0])
            return prepared

        places = place_blocks(X, self.placer, prepare=prepare, block=rows_at_a_time(X))
        report(1.0)
        return places


def block_work(estimator: Any, what: str, n_new: int) -> Callable[[np.ndarray, int], np.ndarray]:
    """Return a function from a block of samples to what a method returns, as a table."""
    if what == "locate":
        return partial(_located, estimator.locator(n_new))
    methods = {"transform": estimator._embeddings, "coordinates": estimator._new_coordinates}
    return methods[what]


def _located(locator: Locator, X: np.ndarray, first_row: int) -> np.ndarray:
    places = locator(X, first_row)
    return places_as_table(given_places(X, places, locator.estimator.factors_))


class LocatingEstimator(SpectralEstimator):
    """An estimator that places samples on the factors it has found."""

    factorization_: Any
    # Of the samples of the fit; archives do not hold it.
    _precision: type[np.floating] = np.float64

    @property
    def factors_(self):
        """Factors, the one with the smallest eigenvalue first."""
        return self.factorization_.factors

    @property
    def n_factors_(self) -> int:
        """Number of factors."""
        return len(self.factors_)

    @property
    def sum_(self):
        """Terms that add up to the data, or None."""
        return self.factorization_.sum

    def get_feature_names_out(self, input_features=None):
        """Return the names of the columns that `transform` returns: factor1_0, ...

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        ndarray of str of shape (sum of widths,)
        """
        check_is_fitted(self)
        names = [
            f"factor{number}_{column}"
            for number, factor in enumerate(self.factors_, start=1)
            for column in range(factor.embedding.shape[1])
        ]
        return np.array(names, dtype=object)

    def transform(self, X):
        """Return embeddings in all factors side by side, (n_new, sum of widths).

        Parameters
        ----------
        X : array of shape (n_new, n_features)
            Also a Dask array.

        Returns
        -------
        array of shape (n_new, sum of widths)
            An interval's coordinate, a circle's cosine and sine, the embedding of a
            surface. In the precision of the samples; a Dask array or a tensor if they
            are one.
        """
        if is_lazy(X):
            return self._lazy(X, "transform", len(self.get_feature_names_out()))
        return like(X, self._embeddings(X))

    def _embeddings(self, X, first_row: int = 0) -> np.ndarray:
        """Return embeddings in all factors side by side; rows count from the first."""
        found = np.hstack([places for places, _ in self._placed(X, first_row)])
        return found.astype(precision_of(X), copy=False)

    def _placed(self, X, first_row: int = 0) -> list[tuple]:
        """Return embedding and coordinate of new samples on each factor."""
        # First, as it checks that there is a fit.
        prepared = self._prepared(X, first_row)
        if self.sum_ is not None:
            placer = make_placer(self.factorization_, n_new=len(prepared))
            return [placed[:2] for placed in place_blocks(prepared, placer)]
        functions = self.diffusion_.extended(prepared)
        return [factor.place(functions) for factor in self.factors_]

    def coordinates(self, X=None):
        """Return one number for each sample and 1-D factor, (n, n_factors).

        Columns of other factors are nan.

        Parameters
        ----------
        X : array of shape (n_new, n_features) or None
            New samples; None for the training samples.

        Returns
        -------
        array of shape (n, n_factors)
            In the precision of the samples; a Dask array or a tensor if they are one.
            Those of the training samples are an ndarray, and in double precision if the
            fit was loaded from a file.
        """
        check_is_fitted(self)
        if is_lazy(X):
            return self._lazy(X, "coordinates", self.n_factors_)
        if X is not None:
            return like(X, self._new_coordinates(X))
        known = [factor.coordinate for factor in self.factors_]
        found = _side_by_side(known, len(self.diffusion_.graph.inverse))
        return given_coordinates(np.empty(0, self._precision), found, self.factors_)

    def _new_coordinates(self, X, first_row: int = 0) -> np.ndarray:
        """Return the coordinates of new samples; rows count from the first."""
        placed = self._placed(X, first_row)
        columns = [coordinate for _, coordinate in placed]
        found = _side_by_side(columns, len(placed[0][0]))
        return given_coordinates(X, found, self.factors_)

    def locate(self, X) -> list[Placed]:
        """Return embedding, coordinate and confidence of new samples on each factor.

        The coordinate is None for shapes other than intervals and circles. The
        confidence of a new sample is that of the nearest training sample. A sample far
        from all of them takes the place of the nearest one, with confidence 0. On
        factors of a sum, the confidence falls with the distance from the sum.

        Parameters
        ----------
        X : array of shape (n_new, n_features)
            Also one on disk, which is read block by block, or a Dask array.

        Returns
        -------
        list of Placed
            One for each factor; unpacks as (embedding, coordinate, confidence). Of a
            Dask array these are Dask arrays with its chunks of rows, and equal the
            places of the same samples in memory.
        """
        check_is_fitted(self)
        if is_lazy(X):
            table = self._lazy(X, "locate", table_width(self.factors_))
            return places_of_table(table, self.factors_)
        n_new = np.shape(X)[0] if np.ndim(X) else 1
        with self._progress(None) as callback:
            report = ignored if callback is None else partial(callback, "places")
            places = self.locator(n_new)(X, report=report)
        return given_places(X, places, self.factors_)

    def locator(self, n_new: int) -> Locator:
        """Return a function that does what `locate` does, for many calls.

        Its places are in double precision, whatever that of the samples.

        Parameters
        ----------
        n_new : int
            Samples that will be located in all: for many, more is computed beforehand.
            The places are the same.

        Returns
        -------
        Locator
            Called with samples, it returns their places, a list of Placed.
        """
        check_is_fitted(self)
        return Locator(self._lean(), make_placer(self.factorization_, n_new=n_new))

    def _lean(self) -> "LocatingEstimator":
        """Return the same without what only a next fit needs; it goes to workers."""
        lean = copy(self).set_params(callback=None, verbose=False)
        # As large as the fit itself.
        lean.__dict__.pop("_kept", None)
        return lean

    def _lazy(self, X, what: str, width: int):
        """Return one of the methods of a Dask array, as a Dask array."""
        check_is_fitted(self)
        require_known_shape(X)
        # The number of columns is checked now, not when the first block is computed.
        self._validated(np.zeros((1, X.shape[1])), reset=False)
        worker = partial(block_work, self._lean(), what, X.shape[0])
        return lazy_table(X, worker, width, dtype=precision_of(X))


def _side_by_side(columns: Sequence[np.ndarray | None], n_samples: int) -> np.ndarray:
    """Return columns as a table; those that are None are nan."""
    unknown = np.full(n_samples, np.nan)
    return np.column_stack([unknown if c is None else c for c in columns])


# A fit as a notebook shows it, and its figure.


class DisplayedEstimator(LocatingEstimator):
    """An estimator whose result is shown by notebooks, and drawn by `plot`.

    Drawings lie in a room above this one, which is imported when something is drawn: the only
    imports that point up.
    """

    def plot(self, figure=None):
        """Draw the factors, the spectrum and the angles between factors.

        Parameters
        ----------
        figure : matplotlib Figure, SubFigure or None
            What to draw on; None for a new figure of its own, which pyplot does not
            know: save it, or leave it as the last line of a cell of a notebook. For
            ``plt.show()``, give one of pyplot's: ``fit.plot(plt.figure())``.

        Returns
        -------
        Figure or SubFigure
            That which was drawn on.
        """
        check_is_fitted(self)
        return import_module("manifactor.views.plots").overview(self, figure=figure)

    def _repr_html_inner(self) -> str:
        return self._with_result(super()._repr_html_inner())

    def _repr_mimebundle_(self, **kwargs) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)
        # scikit-learn leaves it out where the user has asked for plain text.
        if "text/html" in bundle:
            bundle["text/html"] = self._with_result(bundle["text/html"])
        return bundle

    def _with_result(self, diagram: str) -> str:
        """Return the result above scikit-learn's diagram; before a fit, that alone."""
        if not hasattr(self, "factorization_"):
            return diagram
        return import_module("manifactor.views.notebook").result_html(self) + diagram
