"""ManifoldFactorizer: samples to factors and coordinates, and back, as a transformer."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from operator import attrgetter
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manifactor._support.errors import Warned, reasons_told, warn_all
from manifactor._support.parameters import Choice
from manifactor._support.plugins import plugins
from manifactor._support.stages import Stages
from manifactor._support.workers import ignored
from manifactor.estimators.arrays import (
    coordinate_frame,
    coordinate_table,
    frame_of,
    given_places,
    given_precision,
    kind_of,
    lazy_table,
    numbers,
    places_as_table,
    places_of_table,
    precision_of,
    require_known_shape,
    table_width,
)
from manifactor.estimators.diffusion_map import (
    SpectralEstimator,
    blas_threads,
    read_off,
    without_weights,
)
from manifactor.estimators.reading import read_samples
from manifactor.factorization import Factorization, Proposals
from manifactor.factorize import factorize
from manifactor.factors.loadings import Loadings, find_loadings
from manifactor.factors.placing import Locate, Placed, place_blocks
from manifactor.judging.evidence import Evidence
from manifactor.models.moves.motion import MarkovModel
from manifactor.models.moves.paths import Trajectory
from manifactor.models.peeling.division import Split
from manifactor.models.sums.summands import Sum
from manifactor.models.triplets import Cut, Triplets
from manifactor.operators.engines.gpu import device_memory, from_tensor, like
from manifactor.operators.operator import Operator
from manifactor.samples.columns import column_labels
from manifactor.settings import SUM_NAMES, FactoringSettings, require_factoring


@dataclass(frozen=True)
class Locator:
    """A function from samples to their places on each factor; workers get it."""

    estimator: "ManifoldFactorizer"
    locate: Locate

    def __call__(
        self, X: Any, first_row: int = 0, *, report: Callable[[float], None] = ignored
    ) -> list[Placed]:
        """Return the places of samples, as `ManifoldFactorizer.locate`.

        Shapes: X (n_new, n_features).
        """
        X = self.estimator._rows(X)
        if np.ndim(X) != 2:
            self.estimator._prepared(X)  # which refuses it
        # Blocks are checked and prepared one by one: X may be larger than the memory.

        def prepare(block: Any, row: int) -> np.ndarray:
            prepared = self.estimator._prepared(block, first_row + row)
            report(row / np.shape(X)[0])
            return prepared

        # At most 512 MB of numbers.
        block = max(1, min(20_000, 2**26 // max(1, np.shape(X)[-1])))
        places = place_blocks(X, self.locate, prepare=prepare, block=block)
        report(1.0)
        return places

    def table(self, X: np.ndarray, first_row: int) -> np.ndarray:
        """Return places in the precision of the samples, side by side."""
        return places_as_table(given_places(X, self(X, first_row), self.estimator.factors_))


class ManifoldFactorizer(SpectralEstimator):
    """Independent factors of the manifold that samples were drawn from.

    Parameters
    ----------
    n_factors : int or "auto"
        Number of factors; "auto" finds it. More than the data show are refused. When
        fewer are asked for than there are, the smallest ones count as one.
    method : "gradients", "triplets" or "sum"
        "gradients" peels off blocks of functions whose gradients are orthogonal to all
        others. "triplets" is the algorithm of *Product Manifold Learning*: find
        eigenfunctions that are products of two lower ones, then cut the graph of such
        pairs. "sum" looks in the sense "sum" only; "deflation" is deprecated.
    sense : "auto", "geometry", "sum", "volume", "density", "separable" or "ica"
        For "gradients": the sense in which the data are to be a product. "geometry": the metric is
        a product, whatever the density of the samples. "sum": samples are a sum of one function of
        each factor, such as images of independent objects. "volume": the metric is a product up to
        a common stretch, which the density of the samples shows. "density": metric and density are
        products, as for independent Gaussians. "separable": not a product, but two coordinates in
        which every eigenfunction is one, as radius and angle on an annulus. "ica": factors are
        independent components, of the samples or of the eigenfunctions. "auto" looks at the
        geometry, and in the other senses if that is no product; `evidence_.sense` is the sense of
        the result.
    n_functions : int or "auto"
        Eigenpairs to compute, the constant function included. "auto" takes one for
        every 8 samples, 100 at most, and more (up to 400) where the factors found have
        fewer dimensions than the data. A sum needs none and takes no number.
    n_neighbors, bandwidth, density_correction, neighbors, preparation, solver
    device, n_jobs
        As in `DiffusionMap`.
    transformation : "auto", "none", "sqrt", "log" or "ranks"
        A function of every column, taken first and undone by `inverse_transform`: the square
        root of counts, the logarithm of positive values, or ranks within each column. "auto"
        tries the square root where no value is negative, there are ten columns or more and at
        most 20,000 samples, and these are not a product; it is taken if that makes them one.
        `choices_["transformation"].why` then says so.
    eigenvalue_tolerance : float or "auto"
        For "triplets": how far the eigenvalue of a product may lie from the sum of its
        parts' (the paper's delta, times 4: the paper measures in a quarter of the
        eigenvalue). "auto" is a tenth of the product's eigenvalue.
    similarity_threshold : float in [0, 1] or "auto"
        For "triplets": least absolute cosine between a function and a product of
        others (the paper's gamma). "auto" is 0.7.
    exclude : sequence of int
        For "triplets": indices of functions that are kept out of every factor. Peel
        off a factor that was found, and fit again.
    random_state : int, RandomState or None
        For the eigensolver and the parts of many samples. The search for factors draws
        the same random numbers in every fit.
    callback : callable or None
        Called as ``callback(stage, fraction)``, with the part of a stage that is done.
    verbose : bool or int
        Whether to show the stages of `fit` and `locate`: a progress bar for each on a terminal
        and in a notebook (with ipywidgets), elsewhere a line with its seconds.

    Attributes
    ----------
    verdict_ : "product", "separable", "partial", "one factor" or "none"
        "one factor" if the data are one curve.
    n_factors_ : int
        1 when the verdict is "one factor" or "none".
    factors_ : tuple of Factor
        The one with the smallest eigenvalue first; by "sum", the one that explains
        most of the data. A surface of a sum that is a product of lengths itself is
        replaced by its factors; `evidence_.terms` tells which these are.
    evidence_ : Evidence
        The tests behind the verdict; ``str()`` reads as prose.
    splits_ : tuple of Split
        How the functions fell into blocks, step by step, with the noise of each step.
    triplets_, cut_
        What the triplet method found on the way; None where it found nothing.
    sum_
        The terms that add up to the data, by "sum"; else None.
    rows_ : ndarray of int or None
        Numbers of the samples that were drawn and fitted, ascending; None for all.
    image_shape_ : tuple of int or None
        (height, width) or (height, width, channels), if images were fitted.
    diffusion_, factorization_
        The two records that all other attributes are read off.
    spectrum_, bandwidth_, bandwidth_curve_, dimension_, components_, outliers_
    preparation_, choices_, recall_, forecast_, timings_
        As in `DiffusionMap`.

    Warns
    -----
    ColumnWarning
        Before the fit if a column numbers the rows or looks like labels. After it,
        unless the verdict is "product", if columns order the rows or differ in scale a
        hundredfold or more. The evidence names the columns, too. With ``n_factors=1``,
        where no product is expected, columns are not looked at.

    Notes
    -----
    `fit` takes no `sample_weight`: by default, the density of the samples is removed
    from the result. Where it matters, draw samples by their weights and fit those.

    Where moves of the samples are known, `fit` finds factors in the sense "dynamics":
    latents that diffuse independently of each other, whatever map leads from them to the
    samples. Lengths are then in units of local moves. One of these is given:

    - ``fit(X, metric=C)``: a covariance of small moves for each sample, of shape
      (n_samples, n_features, n_features), or its Jacobian along d latents, with d columns;
    - ``fit(X, times=t)``: the times of samples that follow each other in short steps, or
      ``fit([X1, X2], trajectories=True)``: trajectories in the order of time. In one array,
      ``trajectories=labels`` tells them apart, with `times` or rows in order. A step of more
      than 1.5 times the usual one is a break. Local covariances are measured from all steps,
      less the noise of measurement; samples to fit are drawn evenly;
    - ``fit(X, bursts=Y)``: samples that are a short move away from each one, of shape
      (n_samples, n_repeats, n_features);
    - ``fit(X, pairs=Y, lag=tau)``: what followed each sample at a time tau later, of the
      shape of X, where moves may be as long as the factors. All pairs tell the operator
      whose functions are divided, and samples to fit are drawn. `times` and
      `trajectories` of long steps are taken as such pairs if the process goes through its
      range often enough; `choices_["dynamics"]` is "metric" or "pairs". With these, a `lag`
      in the units of `times` takes all pairs so far apart, and 0 the metric of steps.

    Examples
    --------
    >>> from manifactor import ManifoldFactorizer, datasets
    >>> X, truth = datasets.sample("torus", 3000, random_state=0)
    >>> fit = ManifoldFactorizer(random_state=0).fit(X)
    >>> fit.verdict_, [factor.topology for factor in fit.factors_]
    ('product', ['circle', 'circle'])
    """

    factorization_: Factorization
    # That of the samples of the fit; archives do not hold it.
    _precision: type[np.floating] = np.float64
    _frame: tuple[str, Any] = ("pandas", None)

    def __init__(
        self,
        n_factors="auto",
        *,
        method="gradients",
        sense="auto",
        n_functions="auto",
        n_neighbors="auto",
        bandwidth="auto",
        density_correction=1.0,
        eigenvalue_tolerance="auto",
        similarity_threshold="auto",
        exclude=(),
        neighbors="auto",
        preparation="auto",
        transformation="auto",
        solver="auto",
        device="cpu",
        n_jobs=-1,
        random_state=None,
        callback=None,
        verbose=False,
    ):
        self.n_factors = n_factors
        self.method = method
        self.sense = sense
        self.n_functions = n_functions
        self.n_neighbors = n_neighbors
        self.bandwidth = bandwidth
        self.density_correction = density_correction
        self.eigenvalue_tolerance = eigenvalue_tolerance
        self.similarity_threshold = similarity_threshold
        self.exclude = exclude
        self.neighbors = neighbors
        self.preparation = preparation
        self.transformation = transformation
        self.solver = solver
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    @without_weights
    def fit(
        self,
        X,
        y=None,
        *,
        metric=None,
        times=None,
        trajectories=False,
        bursts=None,
        pairs=None,
        lag=None,
        noise=None,
        column_names=None,
        fit_samples="auto",
    ):
        """Factor the manifold of the samples.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Or images, (n, height, width[, 3]). With `trajectories=True`, a list of such arrays.
        y : ignored
        metric, times, trajectories, bursts, pairs, lag
            Moves of the samples; see the notes on `ManifoldFactorizer`.
        noise : array of shape (n_features,), (n_samples, n_features[, n_features]) or None
            Standard deviation in every column, after the `transformation`: "product" then also
            requires that it hardly moves the places. Of each sample, or its covariance: it is
            factored where it would lie without noise.
        column_names : sequence of str or None
            For warnings and errors. None takes those of a DataFrame, or numbers from 0.
        fit_samples : int, "auto" or "all"
            Samples to draw, `rows_`, and fit; `locate` places all. "auto": all in memory, 20,000
            of an array of Dask, Zarr or HDF5, and 3,000 of trajectories and of pairs.

        Returns
        -------
        self
        """
        moves = {"metric": metric, "times": times, "trajectories": trajectories}
        moves |= {"bursts": bursts, "pairs": pairs, "lag": lag}
        with reasons_told():
            found, warned = self._fitted(X, moves, noise, column_names, fit_samples)
        warn_all(warned)
        self.__dict__ = found.__dict__
        return self

    def _fitted(
        self, X, moves: dict, noise=None, names=None, fit_samples="auto"
    ) -> tuple[Self, tuple[Warned, ...]]:
        """Return this estimator fitted to samples, and its warnings, which are not issued."""
        settings, fresh = self._checked_settings(), self._unfitted()
        with self._progress(self.callback) as callback:
            samples = read_samples(fresh, X, moves, noise, names, fit_samples)
            stages = Stages(callback)
            with device_memory(), blas_threads(samples.columns):
                result = factorize(samples, self._diffusion_settings(), settings, stages=stages)
        drawn = result.drawn
        assert drawn is not None
        fresh.factorization_ = _lean(result)
        fresh.timings_, fresh.rows_ = stages.timings, drawn.rows
        fresh._frame, fresh._precision, fresh._moves = drawn.frame, drawn.precision, drawn.moves
        return fresh, result.warned

    @property
    def candidates_(self) -> Proposals:
        """What was proposed, as a table: the result, then the others, likeliest first."""
        return Proposals(self.factorization_.proposals)

    def choose(self, k: int) -> Self:
        """Return a copy of the estimator whose result is candidate `k` of `candidates_`.

        It has the factors and coordinates of that candidate, and its own `evidence_`.

        Parameters
        ----------
        k : int
            Number in `candidates_`; 0 is the result of the fit.

        Returns
        -------
        ManifoldFactorizer
        """
        other = copy(self)
        other.factorization_ = _lean(self._result.choose(k))
        return other

    def _checked_settings(self) -> FactoringSettings:
        """Return the parameters of the factorization as one record; refuse wrong ones."""
        factoring = self._as_record(FactoringSettings)
        known = isinstance(self.n_functions, Integral)
        require_factoring(factoring, n_functions=self.n_functions if known else None)
        if self.method in SUM_NAMES and self.n_functions != "auto":
            raise ValueError(
                f"`n_functions` must be 'auto' with `method={self.method!r}`, which "
                f"does not use functions; got {self.n_functions!r}. Leave it out."
            )
        return factoring

    def _chosen(self) -> dict[str, Choice]:
        """Return what the method chooses in place of parameters of the diffusion, and why."""
        return self._as_record(FactoringSettings).choices

    diffusion_: Operator = read_off("factorization_.diffusion")
    factors_: tuple[Any, ...] = read_off("factorization_.factors")
    sum_: Sum | None = read_off("factorization_.sum")
    evidence_: Evidence = read_off("factorization_.evidence")
    verdict_: str = read_off("evidence_.verdict")
    splits_: tuple[Split, ...] = read_off("factorization_.splits")
    triplets_: Triplets | None = read_off("factorization_.triplets")
    cut_: Cut | None = read_off("factorization_.cut")
    _names: list[str] = read_off("factorization_.names")

    @property
    def rates_(self) -> list[np.ndarray]:
        """Rates at which the functions of each factor are forgotten, where moves are known.

        In one over the caller's unit of time, seconds for dates: of a burst or a move of `metric`,
        1. Implied time scales are one over them.
        """
        return self.factorization_.rates

    def markov_model(self, factor, n_states=20) -> MarkovModel:
        """Return a Markov model of the moves along one factor.

        It needs the `pairs`, `times` or `trajectories` of the fit, which archives do not hold.

        Parameters
        ----------
        factor : int
            Index of an interval or a circle, from 0.
        n_states : int
            Parts of the factor, each with as many samples.

        Returns
        -------
        MarkovModel
        """
        result, moves = self._result, getattr(self, "_moves", None)
        if isinstance(moves, Trajectory):
            moves = moves.pairs(self.choices_["lag"].value, "")
        return result.markov_model(factor, moves, n_states)

    @property
    def _result(self) -> Factorization:
        check_is_fitted(self)
        return self.factorization_

    @property
    def n_factors_(self) -> int:
        """Number of factors."""
        return len(self.factors_)

    @property
    def choices_(self) -> dict[str, Choice]:
        """What was chosen automatically, and why: a Choice for each."""
        return super().choices_ | self.factorization_.choices

    def _at_samples(self) -> np.ndarray:
        return np.hstack([factor.embedding for factor in self.factors_])

    def transform(self, X):
        """Return embeddings in all factors side by side, (n_new, sum of widths).

        Parameters
        ----------
        X : array of shape (n_new, n_features)
            Or images, as in `fit`. Also a Dask array.

        Returns
        -------
        array of shape (n_new, sum of widths)
            An interval's coordinate, a circle's cosine and sine, the embedding of a surface. In the
            precision of the samples; a Dask array or a tensor if they are one.
        """
        check_is_fitted(self)
        return self._by_blocks(X, attrgetter("_embeddings"), len(self._names))

    def _embeddings(self, X, first_row: int = 0) -> np.ndarray:
        """Return embeddings in all factors side by side; rows count from the first."""
        found = np.hstack([places for places, _ in self._placed(X, first_row)])
        return found.astype(precision_of(X), copy=False)

    def _placed(self, X, first_row: int = 0) -> list[tuple]:
        """Return embedding and coordinate of new samples on each factor."""
        # First, as it checks that there is a fit.
        prepared, found = self._prepared(X, first_row), self.factorization_
        return found.placer.places(found.factors, found.diffusion, prepared)

    def coordinates(self, X=None):
        """Return one number for each sample and 1-D factor, (n, n_factors).

        Columns of other factors are nan.

        Parameters
        ----------
        X : array of shape (n_new, n_features) or None
            New samples, or images as in `fit`; None for the training samples.

        Returns
        -------
        array of shape (n, n_factors)
            In the precision of the samples; a Dask array or a tensor if they are one.
            Those of the training samples are an ndarray, and in double precision if the
            fit was loaded from a file.
        """
        check_is_fitted(self)
        if X is not None:
            return self._by_blocks(X, attrgetter("_new_coordinates"), self.n_factors_)
        known = [(factor.embedding, factor.coordinate) for factor in self.factors_]
        return coordinate_table(known, self.factors_, self._precision)

    def frame(self, X=None):
        """Return a table of coordinates: a data frame with a row for each sample.

        Columns are ``factor1`` for an interval; ``factor1_degrees``, ``factor1_cos`` and
        ``factor1_sin`` for a circle; ``factor1_0``, ``factor1_1``, ... for the embedding of
        other shapes; and ``factor1_confidence`` for each of them.

        Parameters
        ----------
        X : array of shape (n_new, n_features) or None
            New samples; None for the samples of the fit.

        Returns
        -------
        DataFrame
            Of polars if the samples were one, else of pandas, which must be installed. It has
            the index of the samples' own data frame. For other samples of the fit, the index
            is `rows_` where some were drawn, and numbers of rows otherwise, as for a fit that
            was loaded from a file.
        """
        check_is_fitted(self)
        if X is not None:
            return coordinate_frame(self.locate(X), self.factors_, *frame_of(X))
        package, index = self._frame
        index = self.rows_ if index is None else index
        return coordinate_frame(self.factors_, self.factors_, package, index)

    def _new_coordinates(self, X, first_row: int = 0) -> np.ndarray:
        """Return the coordinates of new samples; rows count from the first."""
        return coordinate_table(self._placed(X, first_row), self.factors_, precision_of(X))

    def locate(self, X) -> list[Placed]:
        """Return embedding, coordinate and confidence of new samples on each factor.

        The coordinate is None for shapes other than intervals and circles. The
        confidence of a new sample is that of the nearest training sample. A sample far
        from all of them takes the place of the nearest one, with confidence 0. On
        factors of a sum, the confidence falls with the distance from the sum.

        Parameters
        ----------
        X : array of shape (n_new, n_features)
            Or images, as in `fit`. Also an array on disk, which is read block by block, or a Dask
            array.

        Returns
        -------
        list of Placed
            One for each factor; unpacks as (embedding, coordinate, confidence). Of a
            Dask array these are Dask arrays with its chunks of rows, and equal the
            places of the same samples in memory.
        """
        check_is_fitted(self)
        if kind_of(X) == "dask":
            work = partial(_locating, n_new=X.shape[0])
            table = self._by_blocks(X, work, table_width(self.factors_))
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
        return Locator(self._lean(), self._result.locator(n_new))

    def _lean(self) -> "ManifoldFactorizer":
        """Return the same without what only a next fit needs; it goes to workers."""
        lean = copy(self).set_params(callback=None, verbose=False)
        for name in ("_frame", "_moves"):  # as large as the fit itself
            lean.__dict__.pop(name, None)
        return lean

    def _by_blocks(self, X, work: Callable[["ManifoldFactorizer"], Callable], width: int):
        """Return what a function of the fit makes of samples; of a Dask array, block by block."""
        if kind_of(X) != "dask":
            return like(X, work(self)(X))
        X = self._rows(X)
        require_known_shape(X)
        # The number of columns is checked now, not when the first block is computed.
        self._validated(np.zeros((1, X.shape[1])), reset=False)
        return lazy_table(X, partial(work, self._lean()), width, dtype=precision_of(X))

    def inverse_transform(self, X, *, values=None, n_neighbors="auto"):
        """Return samples at places on the factors, (n_new, n_features), or images.

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
        result, places = self._result, numbers(X, "X")
        table = None if values is None else numbers(values, "values")
        at = result.samples_at(places, table, n_neighbors)
        if values is None and self.image_shape_:
            at = at.reshape(-1, *self.image_shape_)
        return given_precision(X, at)

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
        result, table = self._result, None if values is None else numbers(values, "values")
        return result.window_of(table)

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
            Images if images were fitted. In the precision of the samples of the fit; in double
            precision if the fit was loaded from a file.
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
            A place that the other factors are held at, such as `transform` of one sample, or a row
            of it. None holds them at a typical place: the median of an interval, the mean direction
            of a circle, the sample nearest to the mean of a surface.

        Returns
        -------
        ndarray of shape (n_frames, sum of widths)
            In the columns of `transform`, and the precision of `along`.
        """
        held = None if others is None else np.atleast_2d(from_tensor(others))
        places = self._result.places_along(factor, n_frames, held)
        return places.astype(self._precision, copy=False)

    def loadings(self, X=None, *, places=None, column_names=None) -> Loadings:
        """Return the shares of each column's variance that factors, pairs and noise explain.

        Parameters
        ----------
        X : array of shape (n, ...) or None
            What is known of the samples of the fit, one row for each: their columns, other
            measurements, images; None for the columns that were fitted. With another number of
            rows, new samples in the columns of the fit, which are located.
        places : array of shape (n, sum of widths) or None
            Places of the rows of `X`, as of `transform`.
        column_names : sequence of str or None
            None for the names that `X` or the samples of the fit had, or numbers from 0.

        Returns
        -------
        Loadings

        Examples
        --------
        >>> from manifactor import ManifoldFactorizer, datasets
        >>> X, truth = datasets.sample("cylinder", 1000, random_state=0)
        >>> ManifoldFactorizer(random_state=0).fit(X).loadings().shares.round(1).tolist()
        [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
        """
        check_is_fitted(self)
        space, of_fit = self.factorization_.places(), len(self.outliers_)
        given, hidden = self.factorization_.columns() if X is None else (numbers(X, "X"), 0.0)
        table = given.reshape(len(given), -1)
        fitted = table.shape[1] == self.n_features_in_
        if places is not None:
            places = self.factorization_.checked_places(numbers(places, "places"), "places")
            space = replace(space, places=places)
        elif len(table) == of_fit:
            table = table[self.factorization_.in_graph]
        elif fitted:
            as_given = given.ndim == 2 or self.image_shape_
            space = replace(space, places=self._embeddings(X if as_given else table))
        if len(space.places) != len(table):
            raise ValueError(
                f"`X` must have {of_fit} rows, one for each sample of the fit (`X[fit.rows_]` if "
                f"these were drawn), or its {self.n_features_in_} columns, or as many rows as "
                f"`places`; got shape {given.shape}."
            )
        names = getattr(X, "columns", None) if column_names is None else column_names
        names = column_labels(self if fitted else None, names, table.shape[1])
        shape = (X is None and self.image_shape_) or given.shape[1:] or (1,)
        return find_loadings(space, table, names, shape, hidden)

    def plot(self, figure=None):
        """Draw the factors, the spectrum and the angles between factors.

        Parameters
        ----------
        figure : matplotlib Figure, SubFigure or None
            What to draw on; None for a new one of pyplot, which ``plt.show()`` shows.

        Returns
        -------
        Figure or SubFigure
            That which was drawn on.
        """
        check_is_fitted(self)
        return plugins("views")["overview"].load()(self, figure=figure)

    def _repr_html_inner(self) -> str:
        """Return the result above scikit-learn's diagram; before a fit, that alone."""
        fitted = hasattr(self, "factorization_")
        card = plugins("views")["card"].load()(self) if fitted else ""
        return card + super()._repr_html_inner()

    def _repr_mimebundle_(self, **kwargs) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)
        # scikit-learn leaves it out where the user has asked for plain text.
        if "text/html" in bundle:
            bundle["text/html"] = self._repr_html_inner()
        return bundle

    def restore(self) -> None:
        """Make an estimator that was read from an archive ready for use."""
        self._checked_settings()
        found = replace(self.factorization_, diffusion=self._restored())
        self.factorization_ = found.searchable(self.n_jobs)


def fit_quietly(estimator: ManifoldFactorizer, X) -> tuple[ManifoldFactorizer, tuple[Warned, ...]]:
    """Return an estimator fitted to samples without moves, and its warnings, which are data."""
    moves = dict.fromkeys(["metric", "times", "bursts", "pairs", "lag"])
    return estimator._fitted(X, {**moves, "trajectories": False})


def _locating(estimator: ManifoldFactorizer, n_new: int) -> Callable[[np.ndarray, int], np.ndarray]:
    """Return a function from a block of samples and its first row to a table of places."""
    return estimator.locator(n_new).table


def _lean(result: Factorization) -> Factorization:
    """Return a result as the estimator keeps it, in the host's memory."""
    return replace(result.settled(), warned=(), drawn=None)
