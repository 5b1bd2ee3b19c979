"""Samples at places on the factors of a fit: the way back from `transform`."""

import numpy as np
from sklearn.utils.validation import check_array, check_is_fitted

from manifactor._support.errors import first_sentence
from manifactor._support.parameters import Choice, require_choice, require_count, require_unmasked
from manifactor._support.values import require_values
from manifactor.estimators.base import given_precision
from manifactor.estimators.locating import LocatingEstimator
from manifactor.factoring.factors.shapes import on_circle, unit_vectors
from manifactor.factoring.inversion import PlaceSpace, choose_window, values_at
from manifactor.spectral.gpu import from_tensor


class InvertingEstimator(LocatingEstimator):
    """An estimator that returns samples at places on the factors it has found."""

    def inverse_transform(self, X, *, values=None, n_neighbors="auto"):
        """Return samples at places on the factors, (n_new, n_features).

        The samples of the fit near a place are averaged by local linear regression, so
        that noise is averaged, too.

        A place outside an interval counts as its end, and cosine and sine of a circle
        as their angle. Where no samples are near, the nearest ones decide. If the fit
        has dropped principal components (`preparation_`), samples are without them.

        Parameters
        ----------
        X : array of shape (n_new, sum of widths)
            Places, in the columns of `transform`: an interval's coordinate, a circle's
            cosine and sine, or the embedding of a surface.
        values : array of shape (n_samples, ...) or None
            What to return at the places, with one entry for each sample of the fit;
            None for the samples.
        n_neighbors : int or "auto"
            How many samples to average; "auto" for what `inverse_neighbors` says.

        Returns
        -------
        array of shape (n_new, n_features) or (n_new, ...)
            In the precision of the places.

        Examples
        --------
        >>> from manifactor import ManifoldFactorizer, datasets
        >>> X, truth = datasets.sample("torus", 1000, random_state=0)
        >>> fit = ManifoldFactorizer(random_state=0).fit(X)
        >>> back = fit.inverse_transform(fit.transform(X))
        >>> bool(abs(back - X).max() < 0.1)
        True
        """
        check_is_fitted(self)
        places = self._checked_places(X)
        given = None if values is None else self._checked_values(values)
        table = self._points() if given is None else _table(given)
        count = self._count(n_neighbors, given)
        found = self.factorization_
        at = values_at(found.places(), table[found.in_graph], places, count)
        if given is None:
            return given_precision(X, self._unprepared(at))
        return given_precision(X, at.reshape(len(places), *given.shape[1:]))

    def inverse_neighbors(self, values=None) -> Choice:
        """Return how many samples `inverse_transform` averages, and why.

        It is the number that predicts samples left out best.

        Parameters
        ----------
        values : array of shape (n_samples, ...) or None
            As in `inverse_transform`. For None, the number is found once and kept.

        Returns
        -------
        Choice
            With `value` and `why`.
        """
        check_is_fitted(self)
        if values is not None:
            return self._chosen(self._checked_values(values))
        self._points()  # which refuses distances
        return self.factorization_.window

    def along(
        self, factor, n_frames=20, *, others=None, values=None, n_neighbors="auto"
    ) -> np.ndarray:
        """Return samples along one factor, with the others held: frames of a movie.

        Parameters
        ----------
        factor, n_frames, others
            As in `places_along`.
        values, n_neighbors
            As in `inverse_transform`.

        Returns
        -------
        ndarray of shape (n_frames, n_features) or (n_frames, ...)
            In the precision of the samples of the fit; in double precision if the fit
            was loaded from a file.
        """
        places = self.places_along(factor, n_frames, others=others)
        return self.inverse_transform(places, values=values, n_neighbors=n_neighbors)

    def places_along(self, factor, n_frames=20, *, others=None) -> np.ndarray:
        """Return places at even steps along one factor, with the others held.

        Parameters
        ----------
        factor : int
            Index of an interval or a circle, from 0. Frames run from one end of an
            interval to the other, or once round a circle without the first one twice.
        n_frames : int
        others : array of shape (sum of widths,) or (1, sum of widths), or None
            A place that the other factors are held at, such as `transform` of one
            sample, or a row of it. None holds them at a typical place: the median of
            an interval, the mean direction of a circle, the sample nearest to the mean
            of a surface.

        Returns
        -------
        ndarray of shape (n_frames, sum of widths)
            In the columns of `transform`, and the precision of `along`.
        """
        check_is_fitted(self)
        factor = require_count("factor", factor, low=0, high=self.n_factors_ - 1)
        n_frames = require_count("n_frames", n_frames, low=2, high=100_000)
        space = self.factorization_.places()
        held = _typical(space)
        if others is not None:
            held = self._checked_places(np.atleast_2d(from_tensor(others)), "others")
            _require_one(held)
        parts = space.columns(np.repeat(held, n_frames, axis=0))
        parts[factor] = _steps(self.factors_[factor].topology, factor, n_frames)
        return np.hstack(parts).astype(self._precision, copy=False)

    def _checked_places(self, X, argument: str = "X") -> np.ndarray:
        """Return places as floats; refuse those of another shape."""
        names = self.get_feature_names_out()
        places = _numbers(X, argument)
        if places.shape[1:] != (len(names),) or not len(places):
            raise ValueError(
                f"places must have shape (n_places, {len(names)}), with one place or "
                f"more and the columns of `transform`: {', '.join(names)}; got "
                f"{places.shape}. A circle has two columns, cosine and sine of its "
                "angle."
            )
        require_values(places, argument=argument)
        return places

    def _points(self) -> np.ndarray:
        """Return the samples of the fit, as prepared; refuse distances."""
        points = self.diffusion_.points
        if points is None:
            raise ValueError(
                "`values` must be given if the fit knows distances only "
                "(`neighbors='precomputed'`); got None. Pass the samples that the "
                "distances are of: inverse_transform(places, values=samples)."
            )
        return points

    def _unprepared(self, prepared: np.ndarray) -> np.ndarray:
        """Return prepared samples in the columns of the samples of the fit."""
        kept = self.preparation_
        if kept is None:
            return prepared
        return prepared @ kept.components.T + kept.mean

    def _count(self, n_neighbors, values: np.ndarray | None) -> int:
        """Return the number of samples to average; `values` have been checked."""
        if isinstance(n_neighbors, str):
            require_choice("n_neighbors", n_neighbors, ("auto",), "or a number")
            chosen = self.inverse_neighbors() if values is None else self._chosen(values)
            return chosen.value
        most = int(self.factorization_.in_graph.sum())
        return require_count("n_neighbors", n_neighbors, low=1, high=most)

    def _chosen(self, values: np.ndarray) -> Choice:
        """Choose the number of samples to average for values of the caller's own."""
        found = self.factorization_
        return choose_window(found.places(), _table(values)[found.in_graph])

    def _checked_values(self, values) -> np.ndarray:
        """Return values of the caller's own as floats, one entry for each sample."""
        given = _numbers(values, "values")
        n_samples = len(self.outliers_)
        if given.ndim == 0 or len(given) != n_samples:
            raise ValueError(
                f"`values` must have one entry for each of the {n_samples} samples of "
                f"the fit; got shape {given.shape}. If samples were drawn for the fit, "
                "`rows_` says which: values[fit.rows_]."
            )
        require_values(_table(given), argument="values")
        return given


def _numbers(given, argument: str) -> np.ndarray:
    """Return an argument as floats of any shape; refuse masked values, and text."""
    given = from_tensor(given)
    require_unmasked(given, argument)
    try:
        return check_array(
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
            f"`{argument}` must be a dense array of real numbers; got "
            f"{type(given).__name__} ({first_sentence(error)}). Convert it, or leave "
            "out what is no number."
        ) from error


def _table(values: np.ndarray) -> np.ndarray:
    """Return values with one row for each sample."""
    return values.reshape(len(values), -1)


def _require_one(places: np.ndarray) -> None:
    if len(places) != 1:
        raise ValueError(
            f"`others` must be one place; got {len(places)}. Pass one row of `transform`."
        )


def _typical(space: PlaceSpace) -> np.ndarray:
    """Return a typical place on each factor, (1, sum of widths)."""
    middles = {
        "interval": lambda part: np.median(part, axis=0),
        "circle": lambda part: unit_vectors(part.mean(axis=0)[None])[0],
        "other": _medoid,
    }
    parts = zip(space.topologies, space.columns(space.places), strict=True)
    return np.hstack([middles[topology](part) for topology, part in parts])[None]


def _medoid(places: np.ndarray) -> np.ndarray:
    """Return the place nearest to the mean."""
    return places[((places - places.mean(axis=0)) ** 2).sum(axis=1).argmin()]


def _steps(topology: str, factor: int, n_frames: int) -> np.ndarray:
    """Return places at even steps along an interval or a circle."""
    if topology == "interval":
        return np.linspace(0, 1, n_frames)[:, None]
    if topology == "circle":
        return on_circle(2 * np.pi * np.arange(n_frames) / n_frames)
    raise ValueError(
        f"`factor` must be an interval or a circle, which have an order; factor "
        f"{factor} is a surface. Pass places along a path of your own to "
        "inverse_transform."
    )
