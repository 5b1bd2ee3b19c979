"""Weights of samples: why there are none, and what to do instead."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import wraps
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from manifactor._support.parameters import require_columns_of_numbers, require_unmasked
from manifactor._support.progress import shown_progress
from manifactor._support.stages import Callback, Stages
from manifactor._support.threads import one_blas_thread
from manifactor._support.values import require_spread, require_values
from manifactor.estimators.columns import Labels, column_labels, require_labels
from manifactor.estimators.drawing import require_samples
from manifactor.factoring.factors.factor import Factor
from manifactor.factoring.placement import Placed
from manifactor.spectral.diffusion import Diffusion
from manifactor.spectral.forecast import (
    Forecast,
    available_on,
    require_device_memory,
    require_memory,
)
from manifactor.spectral.gpu import from_tensor, like
from manifactor.spectral.neighbors import APPROXIMATE_ABOVE
from manifactor.spectral.pipeline import forecast_diffusion, kept_stages
from manifactor.spectral.preparation import MOST_COLUMNS
from manifactor.spectral.settings import DiffusionSettings, require_diffusion

Fit = TypeVar("Fit", bound=Callable[..., Any])

NO_WEIGHTS = (
    "`sample_weight` is not supported: weights change the density of the samples, "
    "which the default removes from the result; copies of a sample are merged, too. "
    "Leave it out. Where the density matters (`density_correction` below 1, or the "
    "senses 'volume', 'density' and 'sum'), draw samples by their weights and fit "
    "those: rows = numpy.random.default_rng(0).choice(len(X), n, replace=False, "
    "p=weight / weight.sum())."
)


def without_weights(fit: Fit) -> Fit:
    """Return a method `fit` that says why it takes no `sample_weight`.

    The signature stays the same: scikit-learn reads there that weights are not supported.
    """

    @wraps(fit)
    def explained(self, *samples, sample_weight=None, **how):
        if sample_weight is not None:
            raise TypeError(NO_WEIGHTS)
        return fit(self, *samples, **how)

    return explained  # type: ignore[return-value]


# Results in the precision of the samples; what is computed stays in double.


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


# What both estimators share: checks, the diffusion, and what is read off it.

log = logging.getLogger("manifactor")


class SpectralEstimator(TransformerMixin, BaseEstimator):
    """What both estimators share: checks, the diffusion and what can be read off it."""

    diffusion_: Any

    def _diffusion_settings(self) -> DiffusionSettings:
        """Return the parameters of the diffusion as one record."""
        return DiffusionSettings(
            n_functions=self.n_functions,
            n_neighbors=self.n_neighbors,
            bandwidth=self.bandwidth,
            density_correction=self.density_correction,
            neighbors=self.neighbors,
            preparation=self.preparation,
            solver=self.solver,
            device=self.device,
            n_jobs=self.n_jobs,
        )

    def _progress(self, callback: Callback | None) -> AbstractContextManager[Callback | None]:
        """Return a context with a callback that also shows stages if `verbose`."""
        return shown_progress(
            callback, verbose=self.verbose, name=type(self).__name__, steady=("places",)
        )

    def _begin(
        self, X, stages: Stages | None, callback: Callback | None, names: Labels | None = None
    ) -> tuple:
        """Check samples and parameters; return samples, cost, stages and a generator.

        A second fit of the same samples starts where the first one differs: `stages` keeps what was
        computed. Without a fixed seed, its own memory serves no stage that draws random numbers;
        the caller's does.
        """
        X = self._owned(self._validated(X, reset=True, names=names), X)
        cost = self.forecast_shape(*_shape(X))
        seed = check_random_state(self.random_state).randint(2**31)
        drawn = stages is None or isinstance(self.random_state, Integral)
        stages = stages or Stages(getattr(self, "_kept", None))
        stages.start(callback, seed if drawn else None)
        # A child of the seed's generator: earlier versions drew the same numbers.
        (rng,) = np.random.default_rng(seed).spawn(1)
        return X, cost, stages, rng

    def _remember(self, diffusion: Diffusion, cost: Forecast, stages: Stages) -> None:
        """Remember timings, and what the next fit may start from."""
        self.forecast_, self.timings_ = cost, stages.timings
        # A device's memory is not for keeping: the host's copy of the results is.
        on_host = self.device == "cpu"
        self._kept = stages.kept if on_host else kept_stages(diffusion).kept

    def forecast(self, X) -> Forecast:
        """Return the memory and time that fitting these samples takes.

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
        return self.forecast_shape(*_shape(clone(self)._validated(X, reset=True)))

    def forecast_shape(
        self, n_samples: int, n_features: int, *, n_cores: int | None = None
    ) -> Forecast:
        """Return the memory and time of a fit of samples with so many columns.

        Parameters
        ----------
        n_samples, n_features : int
        n_cores : int or None
            Cores at 2.4 GHz that the time is of; None for as many as there are.

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
        cost = forecast_diffusion(settings, n_samples, n_features, n_cores=n_cores)
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

    @staticmethod
    def _owned(X, given):
        """Return samples that nobody else can change.

        A read-only memory map is not copied: it may be larger than the memory. Nor is what was
        converted to floats on the way, such as images of bytes.
        """
        mapped = isinstance(given, np.memmap) and not given.flags.writeable
        is_array = isinstance(given, np.ndarray)
        own = is_array and not np.may_share_memory(X, given)
        return X if mapped or own else X.copy()

    def _validated(self, X, *, reset: bool, first_row: int = 0, names: Labels | None = None):
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
            ensure_all_finite=False,
            ensure_min_samples=0 if reset else 1,
        )
        if reset:
            require_samples(X.shape[0])
        require_labels(names, X.shape[1])
        names = column_labels(self, names)
        values = X.data if precomputed else X
        require_values(values, first_row=first_row, names=names)
        if precomputed:
            _require_distances(X, square=reset)
        elif reset:
            require_spread(X, names=names)
        return X

    def restore(self) -> None:
        """Make an estimator that was read from an archive ready for use.

        Archives hold no neighbour search, which is built again, and no stages, which
        the next fit may start from.

        Raises
        ------
        ValueError
            If a parameter is one that no fit accepts.
        """
        settings = self._diffusion_settings()
        # The device of the fit need not be there now.
        checked = replace(settings, device="cpu")
        require_diffusion(checked, len(self.diffusion_.graph.inverse))
        found = replace(self.diffusion_, settings=settings)
        self.diffusion_ = found.searchable(self.n_jobs)
        self._kept = kept_stages(self.diffusion_).kept

    def _prepared(self, X, first_row: int = 0):
        """Return new samples, checked, and prepared as those of the fit were."""
        check_is_fitted(self)
        checked = self._validated(X, reset=False, first_row=first_row)
        return self.diffusion_.prepared(checked)

    def _functions_at(self, X) -> np.ndarray:
        """Return the spectrum's functions at new samples."""
        prepared = self._prepared(X)  # first, as it checks that there is a fit
        return self.diffusion_.extended(prepared)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        precomputed = self._diffusion_settings().precomputed
        tags.input_tags.sparse = tags.input_tags.pairwise = precomputed
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def spectrum_(self):
        """Spectrum on the training samples."""
        return self.diffusion_.spectrum

    @property
    def bandwidth_curve_(self):
        """The curve that bandwidth and dimension were read from."""
        return self.diffusion_.affinity.bandwidth

    @property
    def bandwidth_(self) -> float:
        """Eps of the kernel."""
        return self.bandwidth_curve_.value

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
    def neighbors_(self) -> str:
        """The neighbour search that was used."""
        return self.diffusion_.graph.method.value

    @property
    def solver_(self) -> str:
        """The eigensolver that was used."""
        return self.diffusion_.distinct.solver.value

    @property
    def recall_(self) -> float:
        """Share of the nearest neighbours that the search found."""
        return self.diffusion_.graph.recall

    @property
    def components_(self) -> np.ndarray:
        """The graph's component of each sample before joining, the largest first."""
        return self.diffusion_.graph.components

    @property
    def outliers_(self) -> np.ndarray:
        """Samples without neighbours, which were left out of the graph."""
        return self.diffusion_.graph.outliers

    @property
    def preparation_(self):
        """The principal components that were kept; None for samples as they are."""
        return self.diffusion_.preparation

    @property
    def choices_(self) -> dict:
        """What was chosen automatically, and why: a Choice for each."""
        return dict(self.diffusion_.choices)


def _shape(X) -> tuple[int, int]:
    """Return the numbers of samples and columns; distances have no columns."""
    return X.shape[0], 0 if sp.issparse(X) else X.shape[1]


def _accepted_types(X: Any) -> list[type]:
    """Return the float types that are left as they are, the one to convert to first.

    Single precision is enough for neighbours, and for columns that are projected on principal
    components: many numbers are not copied for a few digits. It holds integers of 16 bits as they
    are, such as those of images.
    """
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if len(shape) != 2:
        return [np.float64]
    many = shape[0] > APPROXIMATE_ABOVE
    wide = shape[1] > MOST_COLUMNS
    dtype = getattr(X, "dtype", None)
    if wide and isinstance(dtype, np.dtype) and dtype.kind in "iub":
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


@contextmanager
def blas_threads(X, *, most: int = 200_000) -> Iterator[None]:
    """Limit BLAS to one thread for up to `most` samples.

    Our own threads use the other cores, and results then do not depend on the number of BLAS
    threads. For more samples, more BLAS threads pay.
    """
    with one_blas_thread() if X.shape[0] <= most else nullcontext():
        yield


def rows_at_a_time(X, *, most: int = 20_000, numbers: int = 2**26) -> int:
    """Return how many samples to place at a time: at most 512 MB of numbers."""
    n_columns = max(1, np.shape(X)[-1])
    return max(1, min(most, numbers // n_columns))
