"""Samples at places on the factors of a fit: the way back from `transform`."""

from dataclasses import replace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manifactor._support.parameters import require_count
from manifactor._support.values import require_values
from manifactor.estimators.locating import LocatingEstimator
from manifactor.estimators.precision import given_precision
from manifactor.factoring.factors.circles import on_circle, unit_vectors
from manifactor.factoring.inversion import (
    PlaceSpace,
    choose_window,
    place_space,
    values_at,
)
from manifactor.spectral.resident import from_tensor

# The key of `choices_` under which the number of neighbours is remembered.
CHOICE = "inverse neighbours"


class InvertingEstimator(LocatingEstimator):
    """An estimator that returns samples at places on the factors it has found."""

    def inverse_transform(self, X, *, values=None):
        """Return samples at places on the factors, (n_new, n_features).

        The samples of the fit near a place are averaged by local linear regression, so
        that noise is averaged, too. `choices_["inverse neighbours"]` says how many of
        them, after the first call: the number that predicts samples left out best.

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
            None for the samples. The number of neighbours is chosen for these values
            each time.

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
        rows = ~self.outliers_
        space = place_space(self.factors_, rows)
        if values is not None:
            return given_precision(X, self._given_at(places, values, space))
        points = self._points()[rows]
        if CHOICE not in self.factorization_.choices:
            self._choose(choose_window(space, points))
        count = self.factorization_.choices[CHOICE].value
        return given_precision(
            X, self._unprepared(values_at(space, points, places, count))
        )

    def along(self, factor, n_frames=20, *, others=None, values=None) -> np.ndarray:
        """Return samples along one factor, with the others held: frames of a movie.

        Parameters
        ----------
        factor, n_frames, others
            As in `places_along`.
        values
            As in `inverse_transform`.

        Returns
        -------
        ndarray of shape (n_frames, n_features) or (n_frames, ...)
        """
        places = self.places_along(factor, n_frames, others=others)
        return self.inverse_transform(places, values=values)

    def places_along(self, factor, n_frames=20, *, others=None) -> np.ndarray:
        """Return places at even steps along one factor, with the others held.

        Parameters
        ----------
        factor : int
            Index of an interval or a circle, from 0. Frames run from one end of an
            interval to the other, or once round a circle without the first one twice.
        n_frames : int
        others : array of shape (sum of widths,) or None
            A place, such as a row of `transform`, that the other factors are held at.
            None holds them at a typical place: the median of an interval, the mean
            direction of a circle, the sample nearest to the mean of a surface.

        Returns
        -------
        ndarray of shape (n_frames, sum of widths)
            In the columns of `transform`.
        """
        check_is_fitted(self)
        factor = require_count("factor", factor, low=0, high=self.n_factors_ - 1)
        n_frames = require_count("n_frames", n_frames, low=2, high=100_000)
        space = place_space(self.factors_, ~self.outliers_)
        held = _typical(space)
        if others is not None:
            held = self._checked_places(np.atleast_2d(others))
            _require_one(held)
        parts = space.columns(np.repeat(held, n_frames, axis=0))
        parts[factor] = _steps(self.factors_[factor].topology, factor, n_frames)
        return np.hstack(parts)

    def _checked_places(self, X) -> np.ndarray:
        """Return places as floats; refuse those of another shape."""
        names = self.get_feature_names_out()
        places = np.asarray(from_tensor(X), dtype=np.float64)
        if places.ndim != 2 or places.shape[1] != len(names):
            raise ValueError(
                f"places must have shape (n_places, {len(names)}), with the columns "
                f"of `transform`: {', '.join(names)}; got {places.shape}. A circle has "
                "two columns, cosine and sine of its angle."
            )
        require_values(places)
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

    def _choose(self, choice) -> None:
        """Remember the number of neighbours among the choices of the fit."""
        choices = {**self.factorization_.choices, CHOICE: choice}
        self.factorization_ = replace(self.factorization_, choices=choices)

    def _given_at(self, places, values, space: PlaceSpace) -> np.ndarray:
        """Return values of the caller's own at places."""
        given = np.asarray(from_tensor(values), dtype=np.float64)
        n_samples = len(self.outliers_)
        if given.ndim == 0 or len(given) != n_samples:
            raise ValueError(
                f"`values` must have one entry for each of the {n_samples} samples of "
                f"the fit; got shape {given.shape}. If samples were drawn for the fit, "
                "`rows_` says which: values[fit.rows_]."
            )
        table = given.reshape(n_samples, -1)
        require_values(table)
        table = table[~self.outliers_]
        count = choose_window(space, table).value
        found = values_at(space, table, places, count)
        return found.reshape(len(places), *given.shape[1:])


def _require_one(places: np.ndarray) -> None:
    if len(places) != 1:
        raise ValueError(
            f"`others` must be one place; got {len(places)}. Pass one row of "
            "`transform`."
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
