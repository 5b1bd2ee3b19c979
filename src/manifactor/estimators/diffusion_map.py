"""DiffusionMap, the spectrum alone as a transformer, and what both estimators share."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import fields, replace
from functools import wraps
from operator import attrgetter
from typing import Any, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from manifactor._support.errors import warn_all
from manifactor._support.parameters import Choice, require_columns_of_numbers, require_unmasked
from manifactor._support.progress import shown_progress
from manifactor._support.stages import Callback, Stages
from manifactor._support.threads import one_blas_thread
from manifactor._support.values import require_spread, require_values
from manifactor.estimators.arrays import FEWEST_SAMPLES, as_rows, given_precision, in_pixels
from manifactor.estimators.reading import random_numbers
from manifactor.operators.engines.gpu import device_memory, from_tensor
from manifactor.operators.forecast import (
    Forecast,
    available_on,
    require_device_memory,
    require_memory,
)
from manifactor.operators.kernel import Bandwidth
from manifactor.operators.laplacian import Spectrum
from manifactor.operators.neighbors import APPROXIMATE_ABOVE
from manifactor.operators.operator import DiffusionSettings, Operator, require_diffusion
from manifactor.operators.pipeline import diffuse, forecast_diffusion
from manifactor.samples.columns import Labels, column_labels
from manifactor.samples.preparation import MOST_COLUMNS, Preparation

log = logging.getLogger("manifactor")

# What a fit remembers beside attributes that end with an underscore.
PRIVATE = ("_frame", "_moves", "_precision")

Fit = TypeVar("Fit", bound=Callable[..., Any])
Settings = TypeVar("Settings")

NO_WEIGHTS = (
    "`sample_weight` is not supported: weights change the density of the samples, which the "
    "default removes from the result; copies of a sample are merged, too. Leave it out. Where the "
    "density matters (`density_correction` below 1, or the senses 'volume', 'density' and 'sum'), "
    "draw samples by their weights and fit those: rows = "
    "numpy.random.default_rng(0).choice(len(X), n, replace=False, p=weight / weight.sum())."
)


def without_weights(fit: Fit) -> Fit:
    """Return a method `fit` that says why it takes no `sample_weight`."""

    @wraps(fit)  # scikit-learn reads in the signature that weights are not supported
    def explained(self, *samples, sample_weight=None, **how):
        if sample_weight is not None:
            raise TypeError(NO_WEIGHTS)
        return fit(self, *samples, **how)

    return explained  # type: ignore[return-value]


def read_off(path: str) -> Any:
    """Return a property: an attribute of an attribute of the estimator."""
    return property(attrgetter(path), doc=f"Read off `{path}`; see the attributes of the class.")


class SpectralEstimator(TransformerMixin, BaseEstimator):
    """What both estimators share: checks, the diffusion and what can be read off it."""

    diffusion_: Operator
    # Of an image, if images were fitted.
    image_shape_: tuple[int, ...] | None = None

    def _as_record(self, kind: type[Settings]) -> Settings:
        """Return the parameters that a record of settings holds as one."""
        return kind(**{field.name: getattr(self, field.name) for field in fields(kind)})  # type: ignore[arg-type]

    def _diffusion_settings(self) -> DiffusionSettings:
        """Return the parameters of the diffusion as one record."""
        return self._as_record(DiffusionSettings)

    def _chosen(self) -> dict[str, Choice]:
        """Return what the method chooses in place of parameters of the diffusion, and why."""
        return {}

    def _progress(self, callback: Callback | None) -> AbstractContextManager[Callback | None]:
        """Return a context with a callback that also shows stages if `verbose`."""
        return shown_progress(callback, verbose=self.verbose, name=type(self).__name__)

    def _unfitted(self) -> Self:
        """Return the same with what was set, and without what a fit has learnt."""
        fresh = copy(self)
        for name in vars(self):
            if name in PRIVATE or (name.endswith("_") and not name.startswith("__")):
                del fresh.__dict__[name]
        return fresh

    def _checked(self, X, names: Labels | None = None):
        """Return samples that nobody else can change; remember their columns, and the forecast."""
        # It may be larger than the memory.
        mapped = isinstance(X, np.memmap) and not X.flags.writeable
        X = self._validated(X, reset=True, names=names, copy=not mapped)
        self.forecast_ = self.forecast_shape(*_shape(X))
        return X

    def forecast(self, X) -> Forecast:
        """Return the memory that fitting these samples takes.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        Forecast

        Raises
        ------
        MemoryError
            As in `forecast_shape`.
        """
        return self.forecast_shape(*_shape(clone(self)._validated(as_rows(X)[0], reset=True)))

    def forecast_shape(self, n_samples: int, n_features: int) -> Forecast:
        """Return the memory of a fit of samples with so many columns.

        Parameters
        ----------
        n_samples, n_features : int

        Returns
        -------
        Forecast

        Raises
        ------
        MemoryError
            If they cannot fit into the memory of this machine, or of its GPU.
        """
        settings = self._diffusion_settings()
        require_diffusion(settings, n_samples)
        functions = self._chosen().get("functions")
        cost = forecast_diffusion(settings, n_samples, n_features, functions=functions)
        known = self.device == "cpu" or cost.device_memory > 0
        log.info("forecast: %s%s", cost, "" if known else ", if it were on the CPU")
        # The dense kernel is computed by the host on any device.
        if known or settings.dense:
            require_memory(cost, n_samples)
        if cost.device_memory:
            require_device_memory(cost, n_samples, available_on(self.device))
        return cost

    def require_room(self, n_samples: int, n_features: int) -> None:
        """Raise MemoryError if samples that are not read yet do not fit into memory.

        Parameters
        ----------
        n_samples, n_features : int
        """
        cost = self.forecast_shape(n_samples, n_features)
        # Samples in many columns are held even where few components are kept.
        held = 16.0 * n_samples * n_features
        require_memory(replace(cost, memory=max(cost.memory, held)), n_samples)

    def _validated(
        self, X, *, reset: bool, first_row: int = 0, names: Labels | None = None, copy: bool = False
    ):
        """Return finite floats of the right shape."""
        X = from_tensor(X)
        require_unmasked(X)
        require_columns_of_numbers(X)
        precomputed = self._diffusion_settings().precomputed
        if precomputed and not sp.issparse(X):
            raise ValueError(
                "with `neighbors='precomputed'`, `X` must be a sparse matrix of "
                f"distances; got {type(X).__name__}. Make one with "
                "sklearn.neighbors.kneighbors_graph(X, 64, mode='distance')."
            )
        X = validate_data(
            self,
            X,
            reset=reset,
            dtype=_accepted_types(X),
            accept_sparse="csr" if precomputed else False,
            order="C" if copy else None,
            copy=copy,
            ensure_all_finite=False,
            ensure_min_samples=0 if reset else 1,
        )
        if reset and X.shape[0] < FEWEST_SAMPLES:
            raise ValueError(
                f"a fit needs at least {FEWEST_SAMPLES} samples, one a row, and hundreds to show a "
                f"product; got {X.shape[0]} sample{'s' * (X.shape[0] != 1)}. Add samples."
            )
        names = column_labels(self, names, X.shape[1])
        values = X.data if precomputed else X
        require_values(values, first_row=first_row, names=names)
        if precomputed:
            _require_distances(X, square=reset)
        elif reset:
            require_spread(X, names=names)
        return X

    def restore(self) -> None:
        """Make an estimator of an archive, which holds no neighbour search, ready for use.

        Raises
        ------
        ValueError
            If a parameter is one that no fit accepts.
        """
        self.diffusion_ = self._restored().searchable(self.n_jobs)

    def _restored(self) -> Operator:
        """Return the diffusion of an archive with its settings, which must be right."""
        settings = self._diffusion_settings()
        # The device of the fit need not be there now.
        require_diffusion(replace(settings, device="cpu"), len(self.diffusion_.graph.inverse))
        return replace(self.diffusion_, settings=settings)

    def _prepared(self, X, first_row: int = 0):
        """Return new samples, checked, and prepared as those of the fit were."""
        check_is_fitted(self)
        checked = self._validated(self._rows(X), reset=False, first_row=first_row)
        return self.diffusion_.prepared(checked)

    def _rows(self, X):
        """Return new images, which must be like those of the fit, as rows; rows as they are."""
        known, given = self.image_shape_, tuple(getattr(X, "shape", ()))
        if known and given and (given == known or (len(given) != 2 and given[1:] != known)):
            raise ValueError(
                f"images must be an array of shape (n, {', '.join(map(str, known))}), as those of "
                f"the fit; got shape {given}. Pass one image as image[None]."
            )
        return as_rows(X)[0]

    def fit_transform(self, X, y=None, **fit_params):
        """Fit, and return what `transform` returns of the samples.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : ignored
        **fit_params
            As in `fit`.

        Returns
        -------
        array of shape (n_samples, n_columns)
            Of all samples, also where only some of them were drawn and fitted.
        """
        self.fit(X, **fit_params)
        if getattr(self, "rows_", None) is None:
            return given_precision(X, self._at_samples())
        whole = fit_params.get("trajectories", False) is True
        return self.transform(np.concatenate(X) if whole else X)

    def get_feature_names_out(self, input_features=None):
        """Return the names of the columns that `transform` returns.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        ndarray of str of shape (n_columns,)
            factor1_0, ... of a `ManifoldFactorizer`, function1, ... of a `DiffusionMap`.
        """
        check_is_fitted(self)
        return np.array(self._names, dtype=object)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        precomputed = self._diffusion_settings().precomputed
        tags.input_tags.three_d_array = not precomputed
        tags.input_tags.sparse = tags.input_tags.pairwise = precomputed
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    spectrum_: Spectrum = read_off("diffusion_.spectrum")
    bandwidth_curve_: Bandwidth = read_off("diffusion_.affinity.bandwidth")
    bandwidth_: float = read_off("bandwidth_curve_.value")
    neighbors_: str = read_off("diffusion_.graph.method.value")
    solver_: str = read_off("diffusion_.distinct.solver.value")
    recall_: float = read_off("diffusion_.graph.recall")
    components_: np.ndarray = read_off("diffusion_.graph.components")
    outliers_: np.ndarray = read_off("diffusion_.graph.outliers")
    preparation_: Preparation | None = read_off("diffusion_.preparation")

    @property
    def dimension_(self) -> int:
        """Intrinsic dimension."""
        return max(1, round(self.bandwidth_curve_.dimension))

    @property
    def n_neighbors_(self):
        """Neighbours of each sample; None where the caller's own search decided."""
        if self._diffusion_settings().dense:
            return "all"
        return self.diffusion_.graph.n_neighbors

    @property
    def n_functions_(self) -> int:
        """Functions computed, the constant one included."""
        return len(self.diffusion_.distinct.eigenvalues)

    @property
    def choices_(self) -> dict[str, Choice]:
        """What was chosen automatically, and why: a Choice for each."""
        found = dict(self.diffusion_.choices)
        if self.image_shape_ and (preparation := found.get("preparation")):
            why = f"images of {in_pixels(self.image_shape_)}: {preparation.why}"
            found["preparation"] = replace(preparation, why=why)
        return found


def _shape(X) -> tuple[int, int]:
    """Return the numbers of samples and columns; distances have no columns."""
    return X.shape[0], 0 if sp.issparse(X) else X.shape[1]


def _accepted_types(X: Any) -> list[type]:
    """Return the float types that are left as they are, the one to convert to first."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if len(shape) != 2:
        return [np.float64]
    # Many numbers are not copied for a few digits.
    many, wide = shape[0] > APPROXIMATE_ABOVE, shape[1] > MOST_COLUMNS
    dtype = getattr(X, "dtype", None)
    if wide and isinstance(dtype, np.dtype) and dtype.kind in "iub":
        # Single precision holds integers of 16 bits as they are, such as those of images.
        return [np.float32 if dtype.itemsize <= 2 else np.float64]
    return [np.float64, np.float32] if many or wide else [np.float64]


def _require_distances(X, *, square: bool) -> None:
    if (X.data < 0).any():
        raise ValueError(
            f"distances must not be negative; got {X.data.min():.3g}. Pass distances, "
            "not similarities."
        )
    if square and X.shape[0] != X.shape[1]:
        raise ValueError(f"a precomputed distance graph must be square; got shape {X.shape}.")
    # As a column: distances that are all equal are as small as their size.
    require_spread(np.append(X.data, 0.0)[:, None])


def blas_threads(X) -> AbstractContextManager[None]:
    """Limit BLAS to one thread for up to 200,000 samples; beyond, more threads pay.

    Our own threads use the other cores, and results do not depend on the number of BLAS threads.
    """
    return one_blas_thread() if X.shape[0] <= 200_000 else nullcontext()


class DiffusionMap(SpectralEstimator):
    """Eigenfunctions of the Laplacian of the manifold that samples were drawn from.

    Parameters
    ----------
    n_functions : int or "auto"
        Eigenpairs to compute, the constant function included. "auto" takes one for
        every 8 samples, 100 at most.
    n_neighbors : int, "auto" or "all"
        Neighbours of each sample. "all" keeps the full kernel between all pairs, as in the paper.
    bandwidth : float, "auto" or "local"
        eps of the kernel exp(-d^2/eps). "local" scales distances by those to the 8th neighbours.
    density_correction : float in [0, 1]
        1 gives the Laplacian whatever the sampling density, 0 the random walk that the
        density drives.
    neighbors : str or an object like KNeighborsTransformer
        "auto", "kd_tree", "brute", "faiss" or "precomputed". "auto" is exact up to 50,000 samples
        or 5 dimensions, and uses faiss beyond, if it is installed. With "precomputed", `X` is a
        sparse matrix of distances, and rows given to `transform` are distances to the training
        samples; a row that belongs to a training sample must hold its own zero.
    preparation : "auto" or "none"
        "auto" drops principal components that the data show to be noise, and in more
        than 64 columns those that distances between neighbours do not depend on, before
        neighbours are searched; `choices_["preparation"].why` says what was done and
        why. Precomputed distances and a search of the caller's own are left alone.
    transformation : "auto", "none", "sqrt", "log" or "ranks"
        A function of every column, taken first: the square root of counts, the
        logarithm of positive values, or ranks within each column, from 0 to 1. "auto"
        leaves the columns as they are.
    solver : "auto", "dense", "arpack" or "chebyshev"
        Eigensolver; "auto" is dense for few samples, else Chebyshev filtering.
    device : str
        "cpu", or a device that torch knows, such as "cuda": neighbours, affinity and
        spectrum are then computed there in single precision. "torch:cpu" has torch do
        the same on the CPU. Torch tensors may be given anywhere; `transform`,
        `fit_transform` and `coordinates` then return tensors.
    n_jobs : int or None
        Threads of the neighbour search: -1 for all cores, None for 1, or for what
        `joblib.parallel_config` says. Results do not depend on it.
    random_state : int, RandomState or None
        For the eigensolver and other random numbers.
    callback : callable or None
        Called as ``callback(stage, fraction)``, with the part of a stage that is done.
    verbose : bool or int
        Whether to show the stages of a fit: a progress bar for each on a terminal and
        in a notebook (with ipywidgets), elsewhere a line with its seconds.

    Attributes
    ----------
    diffusion_ : Operator
        Everything that was computed; the attributes below are read off it.
    spectrum_ : Spectrum
        Eigenvalues, functions, weights, residuals.
    bandwidth_ : float
    bandwidth_curve_ : Bandwidth
        The curve that the bandwidth and the dimension were read from.
    dimension_ : int
        Intrinsic dimension.
    components_ : ndarray of shape (n_samples,)
        The graph's component of each sample before joining, the largest first.
    outliers_ : ndarray of bool of shape (n_samples,)
        Samples without neighbours. They were left out and take the place of their
        nearest neighbour.
    preparation_ : Preparation or None
        The principal components that were kept; None for the samples as they are.
    n_neighbors_, n_functions_, neighbors_, solver_
        What was used; `n_neighbors_` is None where the caller's own search or distances decided.
    choices_ : dict of str to Choice
        What was chosen automatically, and why.
    image_shape_ : tuple of int or None
        (height, width) or (height, width, channels), if images were fitted.
    recall_ : float
        Share of the nearest neighbours that the search found; 1 if it is exact, nan if
        it is the caller's own.
    forecast_ : Forecast
        Memory that was expected.
    timings_ : dict
        Seconds by stage.

    Examples
    --------
    >>> from manifactor import DiffusionMap, datasets
    >>> X, truth = datasets.sample("torus", 1000, random_state=0)
    >>> DiffusionMap(n_functions=5, random_state=0).fit_transform(X).shape
    (1000, 4)
    """

    def __init__(
        self,
        n_functions="auto",
        *,
        n_neighbors="auto",
        bandwidth="auto",
        density_correction=1.0,
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
        self.n_functions = n_functions
        self.n_neighbors = n_neighbors
        self.bandwidth = bandwidth
        self.density_correction = density_correction
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
    def fit(self, X, y=None):
        """Compute the spectrum of the samples.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Or images, of shape (n_samples, height, width) or (n_samples, height, width, 3).
        y : ignored

        Returns
        -------
        self
        """
        fresh = self._unfitted()
        X, fresh.image_shape_ = as_rows(X)
        with self._progress(self.callback) as callback:
            X = fresh._checked(X)
            rng, stages = random_numbers(self.random_state), Stages(callback)
            with device_memory(), blas_threads(X):
                found = diffuse(X, self._diffusion_settings(), stages=stages, rng=rng)
                fresh.diffusion_ = found.settled()
        warn_all(found.warned)
        fresh.timings_ = stages.timings
        self.__dict__ = fresh.__dict__
        return self

    def transform(self, X):
        """Return the functions at new samples, (n_new, n_functions - 1).

        Parameters
        ----------
        X : array of shape (n_new, n_features)
            Or images, as in `fit`.

        Returns
        -------
        array of shape (n_new, n_functions - 1)
            Without the constant function, in the precision of the samples.
        """
        prepared = self._prepared(X)  # first, as it checks that there is a fit
        return given_precision(X, self.diffusion_.extended(prepared)[:, 1:])

    def _at_samples(self) -> np.ndarray:
        return self.spectrum_.functions[:, 1:].copy()

    @property
    def _names(self) -> list[str]:
        return [f"function{k}" for k in range(1, self.n_functions_)]
