"""What both estimators share: samples to spectrum, stage by stage, and the spectrum's functions at new samples."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from manifactor._support.parameters import (
    require_choice,
    require_count,
    require_finite,
    require_number,
)
from manifactor._support.stages import Stages, fingerprint
from manifactor.spectral.diffusion import SAMPLES_PER_FUNCTION
from manifactor.spectral.forecast import Forecast, forecast, require_memory
from manifactor.spectral.kernel import (
    Affinity,
    affinity,
    dense_affinity,
    warn_of_weak_links,
    without_outliers,
)
from manifactor.spectral.neighbors import (
    SEARCHES,
    NeighborGraph,
    NeighborSettings,
    chosen,
    neighbor_graph,
)
from manifactor.spectral.parts import PARTED, Part, draw_parts
from manifactor.spectral.preparation import (
    PREPARATIONS,
    Preparation,
    choose_preparation,
)
from manifactor.spectral.resident import from_tensor, require_device
from manifactor.spectral.solvers import SOLVERS
from manifactor.spectral.spectrum import Spectrum, extend, laplacian_spectrum

log = logging.getLogger("manifactor")

MIN_SAMPLES = 4
AUTO_FUNCTIONS = 100
UNRESOLVED = 1e-3  # eigenvalue of the walk near which its spectrum ends


class SpectralEstimator(TransformerMixin, BaseEstimator):
    """An estimator that computes a spectrum first; parameters and documentation are those of `DiffusionMap`."""

    def _fit_spectrum(self, X) -> tuple[Spectrum, np.random.Generator]:
        """Fit all that comes before the factors, or keep it if only later parameters changed.

        Returned are the spectrum on the distinct samples, and the random numbers for what is left to do.

        The estimator remembers; a second fit of the same samples starts where the first one differs.
        """
        mapped = isinstance(X, np.memmap) and not X.flags.writeable
        X = self._validated(X, reset=True)
        X = X if mapped else X.copy()  # the caller may go on to change it
        n_neighbors, n_functions = self._sizes(X.shape[0])
        self.forecast_ = self.forecast_shape(*_shape(X))
        seed = check_random_state(self.random_state).randint(2**31)
        rng, later = np.random.default_rng(seed).spawn(2)
        self.timings_: dict[str, float] = {}
        stages = self._stages = getattr(self, "_stages", None) or self._kept_stages()
        near = fingerprint(
            X, n_neighbors, repr(self.neighbors), self.preparation, self.device
        )
        fixed = seed if isinstance(self.random_state, Integral) else None
        kernel = (
            self.bandwidth,
            self.density_correction,
            self.n_functions,
            n_functions,
            self.solver,
            fixed,
        )
        self._keys = {"neighbours": near, "spectrum": fingerprint(near, *kernel)}

        def make() -> tuple:
            preparation, graph = stages(
                "neighbours", near, lambda: self._neighbours(X, n_neighbors)
            )
            prepared = X if preparation is None else preparation(X)
            graph = graph.with_search(prepared, self.n_jobs)
            return preparation, *self._spectra(
                prepared, graph, n_neighbors, n_functions, rng
            )

        self.preparation_, graph, walk, parts, spectrum = stages(
            "spectrum", self._keys["spectrum"], make
        )
        X = X if self.preparation_ is None else self.preparation_(X)
        graph = graph.with_search(X, self.n_jobs)
        self._graph, self._affinity, self._parts, self._samples = graph, walk, parts, X
        self.spectrum_ = spectrum.with_copies(graph)
        self.bandwidth_ = walk.bandwidth.value
        self.bandwidth_curve_ = walk.bandwidth
        self.dimension_ = max(1, round(walk.bandwidth.dimension))
        self.n_neighbors_ = "all" if n_neighbors == "all" else graph.n_neighbors
        self.n_functions_ = self._base_functions = len(spectrum.eigenvalues)
        self.neighbors_, self.recall_, self.solver_ = (
            graph.method.value,
            graph.recall,
            spectrum.solver,
        )
        self.components_, self.outliers_ = graph.components, graph.outliers
        return spectrum, later

    def forecast(self, X) -> Forecast:
        """Memory and time that fitting these samples will take, without fitting them."""
        return self.forecast_shape(*_shape(clone(self)._validated(X, reset=True)))

    def forecast_shape(self, n_samples: int, n_features: int) -> Forecast:
        """The same for so many samples of so many columns; an error where they cannot fit into memory."""
        n_neighbors, n_functions = self._sizes(n_samples)
        search = self.neighbors if isinstance(self.neighbors, str) else "custom"
        cost = forecast(
            n_samples,
            n_features,
            n_neighbors=n_neighbors,
            n_functions=n_functions,
            search=search,
        )
        log.info(
            "forecast: %s%s",
            cost,
            "" if self.device == "cpu" else ", if it were on the CPU",
        )
        if self.device == "cpu" or n_neighbors == "all":  # which is for the host
            require_memory(cost, n_samples)
        return cost

    def _neighbours(
        self, X, n_neighbors: int | str
    ) -> tuple[Preparation | None, NeighborGraph]:
        with self._stage("preparation"):
            preparation = self._preparation(X)
            X = X if preparation is None else preparation(X)
        with self._stage("neighbours"):
            return preparation, self._search(n_neighbors)(X)

    def _spectra(
        self,
        X,
        graph: NeighborGraph,
        n_neighbors: int | str,
        n_functions: int,
        rng: np.random.Generator,
    ) -> tuple[NeighborGraph, Affinity, tuple[Part, ...], Spectrum]:
        """Graph without outliers, walk, parts where there are many samples, and spectrum on the distinct samples."""
        dense, known = n_neighbors == "all", not sp.issparse(X)
        graph = graph.on_device(self.device)
        n_functions = self._resolvable(n_functions, len(graph.distinct))
        settings: dict[str, Any] = {
            "bandwidth": self.bandwidth,
            "density_correction": self.density_correction,
        }
        with self._stage("affinity"):
            walk = (
                dense_affinity(X, graph, **settings)
                if dense
                else affinity(graph, **settings)
            )
            if not dense and known:
                graph, walk = without_outliers(X, graph, walk, **settings)
            warn_of_weak_links(walk)
        parts: tuple[Part, ...] = ()
        if len(graph.distinct) > PARTED and not dense and known:
            with self._stage("parts"):
                search, correction = self._search(n_neighbors), self.density_correction
                samples = chosen(X, graph.distinct)
                parts = draw_parts(
                    samples,
                    n_functions,
                    search=search,
                    density_correction=correction,
                    rng=rng,
                )
        with self._stage("spectrum"):
            start = (parts[0].rows, parts[0].spectrum) if parts else None
            progress = partial(self._tell, "spectrum")
            spectrum = laplacian_spectrum(
                walk,
                n_functions,
                solver=self.solver,
                start=start,
                progress=progress,
                rng=rng,
            )
        self._require_resolved(spectrum, n_functions, walk)
        return graph, walk, parts, spectrum

    def _settle(self) -> None:
        """Bring what is on a device to this machine's side."""
        if self.device != "cpu":  # whose memory is not for keeping
            self._graph, self._affinity = (
                self._graph.settled(),
                self._affinity.settled(),
            )
            self._parts = tuple(part.settled() for part in self._parts)
            self.spectrum_ = self.spectrum_.settled()
            self._stages = self._kept_stages()

    def _kept_stages(self) -> Stages:
        """The stages of this fit, to start another from; neighbours only where no outliers were left out of them."""
        if not hasattr(self, "_keys") or not hasattr(self, "spectrum_"):
            return Stages()
        kept = getattr(self, "_stages", None)
        if kept and "spectrum" in kept.kept:
            spectrum = kept.kept["spectrum"][1][-1].settled()
        else:
            spectrum = self.spectrum_.without_copies(self._graph).lowest(
                self._base_functions
            )
        found = {
            "neighbours": (self.preparation_, self._graph),
            "spectrum": (
                self.preparation_,
                self._graph,
                self._affinity,
                self._parts,
                spectrum,
            ),
        }
        names = ["spectrum"] if self._graph.outliers.any() else list(found)
        return Stages({name: (self._keys[name], found[name]) for name in names})

    def _search(self, n_neighbors: int | str) -> Callable[[Any], NeighborGraph]:
        """What makes a neighbour graph of samples."""
        count = (
            NeighborSettings().n_neighbors if n_neighbors == "all" else int(n_neighbors)
        )

        def search(X) -> NeighborGraph:
            k = min(count, X.shape[0] - 1)
            return neighbor_graph(
                X, k, method=self.neighbors, n_jobs=self.n_jobs, device=self.device
            )

        return search

    def _resolvable(self, n_functions: int, n_distinct: int) -> int:
        """The number of functions to compute, once copies are known."""
        if self.n_functions == "auto":
            n_functions = _auto_functions(n_distinct)
        if n_functions >= n_distinct:
            raise ValueError(
                f"`n_functions` must be smaller than the number of distinct samples; got {n_functions} with "
                f"{n_distinct} distinct samples. Lower it or add samples."
            )
        return n_functions

    def _require_resolved(
        self, spectrum: Spectrum, n_functions: int, walk: Affinity
    ) -> None:
        found = len(spectrum.eigenvalues)
        if found < 2:
            raise ValueError(
                "the kernel must resolve more than the constant function; with bandwidth "
                f"{walk.bandwidth.value:.3g} it does not. Lower `bandwidth`."
            )
        unresolved = (
            np.exp(-walk.step * spectrum.eigenvalues[-1]) < UNRESOLVED
        )  # else the solver stopped, and said so
        if found < n_functions and self.n_functions != "auto" and unresolved:
            raise ValueError(
                f"the kernel resolves {found} functions of these samples; got `n_functions`={n_functions}. "
                "Lower it, or lower `bandwidth`."
            )

    def _preparation(self, X):
        """What takes noise off the samples, None where nothing does or where the caller's own distances count."""
        require_choice("preparation", self.preparation, PREPARATIONS)
        own = not isinstance(self.neighbors, str) or self.neighbors == "precomputed"
        return (
            None if own or self.preparation == "none" else choose_preparation(X).value
        )

    def _functions_at(self, X) -> np.ndarray:
        """The spectrum's functions at new samples."""
        return extend(
            self._prepared(X),
            self.spectrum_,
            self._affinity,
            self._graph,
            self._samples,
        )

    def _prepared(self, X):
        """New samples, checked and prepared as those of the fit were."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        return X if self.preparation_ is None else self.preparation_(X)

    def _validated(self, X, *, reset: bool):
        """Finite floats of the right shape."""
        X = from_tensor(X)
        precomputed = (
            isinstance(self.neighbors, str) and self.neighbors == "precomputed"
        )
        if precomputed and not sp.issparse(X):
            raise ValueError(
                "with `neighbors='precomputed'`, `X` must be a sparse matrix of distances; got "
                f"{type(X).__name__}. Make one with sklearn.neighbors.kneighbors_graph(X, 64, mode='distance')."
            )
        many = (
            len(getattr(X, "shape", ())) == 2
            and X.shape[0] > NeighborSettings().approximate_above
        )  # which are not copied for a few digits
        X = validate_data(
            self,
            X,
            reset=reset,
            dtype=[np.float64, np.float32] if many else np.float64,
            accept_sparse="csr" if precomputed else False,
            ensure_all_finite=False,
            ensure_min_samples=MIN_SAMPLES if reset else 1,
        )
        require_finite(X.data if precomputed else X)
        if precomputed and (X.data < 0).any():
            raise ValueError(
                f"distances must not be negative; got {X.data.min():.3g}. Pass distances, not similarities."
            )
        if precomputed and reset and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"a precomputed distance graph must be square; got shape {X.shape}."
            )
        return X

    def _sizes(self, n_samples: int) -> tuple[int | str, int]:
        """Number of neighbours and of functions, chosen or checked; the other parameters are checked on the way."""
        require_choice("solver", self.solver, ["auto", *SOLVERS])
        if self.device != "cpu":
            require_device(self.device)
            require_choice("solver", self.solver, ["auto", "chebyshev"], "on a device")
        if isinstance(self.neighbors, str):
            require_choice(
                "neighbors", self.neighbors, ["auto", "precomputed", *SEARCHES]
            )
        elif not (
            hasattr(self.neighbors, "fit") and hasattr(self.neighbors, "transform")
        ):
            raise ValueError(
                "`neighbors` must be a name or an object with fit and transform, like "
                f"sklearn.neighbors.KNeighborsTransformer; got {self.neighbors!r}."
            )
        if isinstance(self.bandwidth, str):
            require_choice(
                "bandwidth", self.bandwidth, ["auto", "local"], "or a positive number"
            )
            if self.bandwidth == "local" and self.n_neighbors == "all":
                raise ValueError(
                    "`bandwidth='local'` needs a neighbour graph; set `n_neighbors` to a number."
                )
        else:
            require_number("bandwidth", self.bandwidth, above=0)
        require_number("density_correction", self.density_correction, low=0, high=1)
        n_neighbors: int | str = min(NeighborSettings().n_neighbors, n_samples - 1)
        if isinstance(self.n_neighbors, str):
            require_choice(
                "n_neighbors", self.n_neighbors, ["auto", "all"], "or a number"
            )
            n_neighbors = "all" if self.n_neighbors == "all" else n_neighbors
            if n_neighbors == "all" and (
                not isinstance(self.neighbors, str) or self.neighbors == "precomputed"
            ):
                raise ValueError(
                    "`n_neighbors='all'` measures Euclidean distances; leave `neighbors` at 'auto'."
                )
        else:
            n_neighbors = require_count(
                "n_neighbors", self.n_neighbors, 1, n_samples - 1, n_samples
            )
        if isinstance(self.n_functions, str):
            require_choice("n_functions", self.n_functions, ["auto"], "or a number")
            return n_neighbors, _auto_functions(n_samples)
        return n_neighbors, require_count(
            "n_functions", self.n_functions, 2, n_samples - 1, n_samples
        )

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        """Time a stage, log it, and tell the callback."""
        self._tell(name, 0.0)
        start = time.perf_counter()
        yield
        self.timings_[name] = time.perf_counter() - start
        log.info("%s: %.2f s", name, self.timings_[name])
        self._tell(name, 1.0)

    def _tell(self, stage: str, fraction: float) -> None:
        if self.callback is not None:
            self.callback(stage, fraction)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        precomputed = (
            isinstance(self.neighbors, str) and self.neighbors == "precomputed"
        )
        tags.input_tags.sparse = tags.input_tags.pairwise = precomputed
        return tags


def _shape(X) -> tuple[int, int]:
    """Samples and columns; distances have no columns."""
    return X.shape[0], 0 if sp.issparse(X) else X.shape[1]


def _auto_functions(n_samples: int) -> int:
    return min(AUTO_FUNCTIONS, max(3, n_samples // SAMPLES_PER_FUNCTION), n_samples - 1)
