"""DiffusionMap and ManifoldFactorizer: thin scikit-learn faces of the spectral and factoring wings."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial import KDTree
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from manifactor.factoring.factorize import METHODS, SAMPLES_PER_FUNCTION, Diffusion
from manifactor.factoring.pure import MAX_FACTORS
from manifactor.forecast import Forecast, forecast, require_memory
from manifactor.parameters import require_choice, require_count, require_finite, require_indices, require_number
from manifactor.spectral.kernel import Affinity, affinity, dense_affinity, warn_of_weak_links, without_outliers
from manifactor.spectral.neighbors import MANY, SEARCHES, NeighborGraph, chosen, neighbor_graph
from manifactor.spectral.parts import PARTED, Part, draw_parts
from manifactor.spectral.preparation import PREPARATIONS, Preparation, prepare
from manifactor.spectral.resident import device_memory, from_tensor, like, require_device
from manifactor.spectral.solvers import SOLVERS
from manifactor.spectral.spectrum import Spectrum, extend, laplacian_spectrum
from manifactor.stages import Stages, fingerprint
from manifactor.threads import one_blas_thread

log = logging.getLogger("manifactor")

MIN_SAMPLES = 4
AUTO_NEIGHBORS = 64  # the lowest 30 functions of flat 2-D and 3-D shapes were most accurate between 64 and 128
AUTO_FUNCTIONS = 100
BLOCK = 20_000  # new samples that are placed at a time
REACH = 4.0  # bandwidths, as lengths, beyond which a new sample has no neighbours: the kernel is 1e-7 there
UNRESOLVED = 1e-3  # eigenvalue of the walk near which its spectrum ends
SMALL = 200_000  # samples up to which linear algebra is faster on one thread


class _Spectral(TransformerMixin, BaseEstimator):
    """What both estimators share: samples to spectrum, and the spectrum's functions at new samples."""

    def _fit_spectrum(self, X) -> tuple[Spectrum, np.random.Generator]:
        """Fit all that comes before the factors, or keep it if only later parameters changed.

        Returned are the spectrum on the distinct samples, and the random numbers for what is left to do.

        The estimator remembers; a second fit of the same samples starts where the first one differs.
        """
        mapped = isinstance(X, np.memmap) and not X.flags.writeable
        X = self._validated(X, reset=True)
        X = X if mapped else X.copy()  # the caller may go on to change it
        n_neighbors, n_functions = self._sizes(X.shape[0])
        self.forecast_ = self._forecast(X, n_neighbors, n_functions)
        seed = check_random_state(self.random_state).randint(2**31)
        rng, later = np.random.default_rng(seed).spawn(2)
        self.timings_: dict[str, float] = {}
        stages = self._stages = getattr(self, "_stages", None) or self._kept_stages()
        near = fingerprint(X, n_neighbors, repr(self.neighbors), self.preparation, self.device)
        fixed = seed if isinstance(self.random_state, Integral) else None
        kernel = (self.bandwidth, self.density_correction, self.n_functions, n_functions, self.solver, fixed)
        self._keys = {"neighbours": near, "spectrum": fingerprint(near, *kernel)}

        def make() -> tuple:
            preparation, graph = stages("neighbours", near, lambda: self._neighbours(X, n_neighbors))
            prepared = X if preparation is None else preparation(X)
            graph = graph.with_search(prepared, self.n_jobs)
            return preparation, *self._spectra(prepared, graph, n_neighbors, n_functions, rng)

        self.preparation_, graph, walk, parts, spectrum = stages("spectrum", self._keys["spectrum"], make)
        X = X if self.preparation_ is None else self.preparation_(X)
        graph = graph.with_search(X, self.n_jobs)
        self._graph, self._affinity, self._parts, self._samples = graph, walk, parts, X
        self.spectrum_ = spectrum.with_copies(graph)
        self.bandwidth_ = walk.bandwidth.value
        self.bandwidth_curve_ = walk.bandwidth
        self.dimension_ = max(1, round(walk.bandwidth.dimension))
        self.n_neighbors_ = "all" if n_neighbors == "all" else graph.n_neighbors
        self.n_functions_ = self._base_functions = len(spectrum.eigenvalues)
        self.neighbors_, self.recall_, self.solver_ = graph.method, graph.recall, spectrum.solver
        self.components_, self.outliers_ = graph.components, graph.outliers
        return spectrum, later

    def forecast(self, X) -> Forecast:
        """Memory and time that fitting these samples will take, without fitting them."""
        X = clone(self)._validated(X, reset=True)
        return self._forecast(X, *self._sizes(X.shape[0]))

    def _forecast(self, X, n_neighbors: int | str, n_functions: int) -> Forecast:
        """What the fit will cost; an error where it cannot fit into memory."""
        search = self.neighbors if isinstance(self.neighbors, str) else "custom"
        n_features = 0 if sp.issparse(X) else X.shape[1]
        cost = forecast(X.shape[0], n_features, n_neighbors=n_neighbors, n_functions=n_functions, search=search)
        log.info("forecast: %s%s", cost, "" if self.device == "cpu" else ", if it were on the CPU")
        if self.device == "cpu":
            require_memory(cost, X.shape[0])
        return cost

    def _neighbours(self, X, n_neighbors: int | str) -> tuple[Preparation | None, NeighborGraph]:
        with self._stage("preparation"):
            preparation = self._preparation(X)
            X = X if preparation is None else preparation(X)
        with self._stage("neighbours"):
            return preparation, self._search(n_neighbors)(X)

    def _spectra(
        self, X, graph: NeighborGraph, n_neighbors: int | str, n_functions: int, rng: np.random.Generator
    ) -> tuple[NeighborGraph, Affinity, tuple[Part, ...], Spectrum]:
        """Graph without outliers, walk, parts where there are many samples, and spectrum on the distinct samples."""
        dense, known = n_neighbors == "all", not sp.issparse(X)
        graph = graph.on_device(self.device)
        n_functions = self._resolvable(n_functions, len(graph.distinct))
        settings: dict[str, Any] = {"bandwidth": self.bandwidth, "density_correction": self.density_correction}
        with self._stage("affinity"):
            walk = dense_affinity(X, graph, **settings) if dense else affinity(graph, **settings)
            if not dense and known:
                graph, walk = without_outliers(X, graph, walk, **settings)
            warn_of_weak_links(walk)
        parts: tuple[Part, ...] = ()
        if len(graph.distinct) > PARTED and not dense and known:
            with self._stage("parts"):
                search, correction = self._search(n_neighbors), self.density_correction
                samples = chosen(X, graph.distinct)
                parts = draw_parts(samples, n_functions, search=search, density_correction=correction, rng=rng)
        with self._stage("spectrum"):
            start = (parts[0].rows, parts[0].spectrum) if parts else None
            progress = partial(self._tell, "spectrum")
            spectrum = laplacian_spectrum(
                walk, n_functions, solver=self.solver, start=start, progress=progress, rng=rng
            )
        self._require_resolved(spectrum, n_functions, walk)
        return graph, walk, parts, spectrum

    def _settle(self) -> None:
        """Bring what is on a device to this machine's side."""
        if self.device != "cpu":  # whose memory is not for keeping
            self._graph, self._affinity = self._graph.settled(), self._affinity.settled()
            self._parts = tuple(part.settled() for part in self._parts)
            self._stages = self._kept_stages()

    def _kept_stages(self) -> Stages:
        """The stages of this fit, to start another from; neighbours only where no outliers were left out of them."""
        if not hasattr(self, "_keys") or not hasattr(self, "spectrum_"):
            return Stages()
        kept = getattr(self, "_stages", None)
        if kept and "spectrum" in kept.kept:
            spectrum = kept.kept["spectrum"][1][-1].settled()
        else:
            spectrum = self.spectrum_.without_copies(self._graph).lowest(self._base_functions)
        found = {
            "neighbours": (self.preparation_, self._graph),
            "spectrum": (self.preparation_, self._graph, self._affinity, self._parts, spectrum),
        }
        names = ["spectrum"] if self._graph.outliers.any() else list(found)
        return Stages({name: (self._keys[name], found[name]) for name in names})

    def _search(self, n_neighbors: int | str) -> Callable[[Any], NeighborGraph]:
        """What makes a neighbour graph of samples."""
        count = AUTO_NEIGHBORS if n_neighbors == "all" else int(n_neighbors)

        def search(X) -> NeighborGraph:
            k = min(count, X.shape[0] - 1)
            return neighbor_graph(X, k, method=self.neighbors, n_jobs=self.n_jobs, device=self.device)

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

    def _require_resolved(self, spectrum: Spectrum, n_functions: int, walk: Affinity) -> None:
        found = len(spectrum.eigenvalues)
        if found < 2:
            raise ValueError(
                "the kernel must resolve more than the constant function; with bandwidth "
                f"{walk.bandwidth.value:.3g} it does not. Lower `bandwidth`."
            )
        unresolved = np.exp(-walk.step * spectrum.eigenvalues[-1]) < UNRESOLVED  # else the solver stopped, and said so
        if found < n_functions and self.n_functions != "auto" and unresolved:
            raise ValueError(
                f"the kernel resolves {found} functions of these samples; got `n_functions`={n_functions}. "
                "Lower it, or lower `bandwidth`."
            )

    def _preparation(self, X):
        """What takes noise off the samples, None where nothing does or where the caller's own distances count."""
        require_choice("preparation", self.preparation, PREPARATIONS)
        own = not isinstance(self.neighbors, str) or self.neighbors == "precomputed"
        return None if own or self.preparation == "none" else prepare(X)

    def _functions_at(self, X) -> np.ndarray:
        """The spectrum's functions at new samples."""
        return extend(self._prepared(X), self.spectrum_, self._affinity, self._graph, self._samples)

    def _prepared(self, X):
        """New samples, checked and prepared as those of the fit were."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        return X if self.preparation_ is None else self.preparation_(X)

    def _validated(self, X, *, reset: bool):
        """Finite floats of the right shape."""
        X = from_tensor(X)
        precomputed = isinstance(self.neighbors, str) and self.neighbors == "precomputed"
        if precomputed and not sp.issparse(X):
            raise ValueError(
                "with `neighbors='precomputed'`, `X` must be a sparse matrix of distances; got "
                f"{type(X).__name__}. Make one with sklearn.neighbors.kneighbors_graph(X, 64, mode='distance')."
            )
        many = len(getattr(X, "shape", ())) == 2 and X.shape[0] > MANY  # which are not copied for a few digits
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
            raise ValueError(f"a precomputed distance graph must be square; got shape {X.shape}.")
        return X

    def _sizes(self, n_samples: int) -> tuple[int | str, int]:
        """Number of neighbours and of functions, chosen or checked; the other parameters are checked on the way."""
        require_choice("solver", self.solver, ["auto", *SOLVERS])
        if self.device != "cpu":
            require_device(self.device)
            require_choice("solver", self.solver, ["auto", "chebyshev"], "on a device")
        if isinstance(self.neighbors, str):
            require_choice("neighbors", self.neighbors, ["auto", "precomputed", *SEARCHES])
        elif not (hasattr(self.neighbors, "fit") and hasattr(self.neighbors, "transform")):
            raise ValueError(
                "`neighbors` must be a name or an object with fit and transform, like "
                f"sklearn.neighbors.KNeighborsTransformer; got {self.neighbors!r}."
            )
        if isinstance(self.bandwidth, str):
            require_choice("bandwidth", self.bandwidth, ["auto", "local"], "or a positive number")
            if self.bandwidth == "local" and self.n_neighbors == "all":
                raise ValueError("`bandwidth='local'` needs a neighbour graph; set `n_neighbors` to a number.")
        else:
            require_number("bandwidth", self.bandwidth, above=0)
        require_number("density_correction", self.density_correction, low=0, high=1)
        n_neighbors: int | str = min(AUTO_NEIGHBORS, n_samples - 1)
        if isinstance(self.n_neighbors, str):
            require_choice("n_neighbors", self.n_neighbors, ["auto", "all"], "or a number")
            n_neighbors = "all" if self.n_neighbors == "all" else n_neighbors
            if n_neighbors == "all" and (not isinstance(self.neighbors, str) or self.neighbors == "precomputed"):
                raise ValueError("`n_neighbors='all'` measures Euclidean distances; leave `neighbors` at 'auto'.")
        else:
            n_neighbors = require_count("n_neighbors", self.n_neighbors, 1, n_samples - 1, n_samples)
        if isinstance(self.n_functions, str):
            require_choice("n_functions", self.n_functions, ["auto"], "or a number")
            return n_neighbors, _auto_functions(n_samples)
        return n_neighbors, require_count("n_functions", self.n_functions, 2, n_samples - 1, n_samples)

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
        precomputed = isinstance(self.neighbors, str) and self.neighbors == "precomputed"
        tags.input_tags.sparse = tags.input_tags.pairwise = precomputed
        return tags


class DiffusionMap(_Spectral):
    """Eigenfunctions of the Laplacian of the manifold that samples were drawn from.

    Parameters
    ----------
    n_functions : int or "auto"
        Eigenpairs to compute, the constant function included; "auto" takes an eighth of the samples, 100 at most.
    n_neighbors : int, "auto" or "all"
        Neighbours of each sample; "all" keeps the full kernel between all pairs, as in the paper.
    bandwidth : float, "auto" or "local"
        eps of the kernel exp(-d^2/eps); "local" scales distances by those to the samples' 8th neighbours.
    density_correction : float in [0, 1]
        1 gives the Laplacian whatever the sampling density, 0 the random walk that the density drives.
    neighbors : "auto", "kd_tree", "brute", "faiss", "precomputed" or an object like KNeighborsTransformer
        "auto" is exact up to 50,000 samples or 5 dimensions, and uses faiss beyond, if it is installed. With
        "precomputed", `X` is a sparse matrix of distances, and rows given to `transform` are distances to the
        training samples; a row that belongs to a training sample must hold its own zero.
    preparation : "auto" or "none"
        What is done against noise before neighbours are sought: "auto" drops principal components that the data show
        to be isotropic Gaussian noise. Distances or a search of the caller's own are left alone.
    solver : "auto", "dense", "arpack" or "chebyshev"
    device : str
        "cpu", or a device that torch knows, such as "cuda": neighbours, affinity and spectrum are then computed there
        in single precision, and "torch:cpu" has torch do the same on the CPU. Torch tensors may be given anywhere,
        and give tensors back.
    n_jobs : int or None
        Threads of the neighbour search; None for all cores.
    random_state : int, RandomState or None
    callback : callable or None
        Called as ``callback(stage, fraction)``.

    Attributes
    ----------
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
        Samples without company, which were left out and lie where their nearest neighbour lies.
    preparation_ : Preparation or None
        What was done to the samples against noise, and why.
    n_neighbors_, n_functions_, neighbors_, solver_
        What was used; `n_neighbors_` is None where the caller's own search or distances decided.
    recall_ : float
        Share of the nearest neighbours that the search found; 1 if it is exact, nan if it is the caller's own.
    forecast_ : Forecast
        Memory and time that were expected.
    timings_ : dict
        Seconds by stage; stages that were kept from the fit before are missing.

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
        solver="auto",
        device="cpu",
        n_jobs=None,
        random_state=None,
        callback=None,
    ):
        self.n_functions = n_functions
        self.n_neighbors = n_neighbors
        self.bandwidth = bandwidth
        self.density_correction = density_correction
        self.neighbors = neighbors
        self.preparation = preparation
        self.solver = solver
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback

    def fit(self, X, y=None):
        """Compute the spectrum of the samples."""
        with device_memory():
            self._fit_spectrum(X)
        self._settle()
        return self

    def fit_transform(self, X, y=None):
        """Fit, and return the functions at the samples."""
        return like(X, self.fit(X).spectrum_.functions[:, 1:].copy())

    def transform(self, X):
        """The functions, without the constant one, at new samples, (n_new, n_functions - 1)."""
        return like(X, self._functions_at(X)[:, 1:])

    def get_feature_names_out(self, input_features=None):
        """Names of the columns that `transform` returns."""
        check_is_fitted(self)
        return np.array([f"function{k}" for k in range(1, self.n_functions_)], dtype=object)


class ManifoldFactorizer(_Spectral):
    """Independent factors of the manifold that samples were drawn from.

    Parameters
    ----------
    n_factors : int or "auto"
        How many factors there are; "auto" finds out. More than the data show are refused; when fewer are asked for
        than there are, the smallest ones count as one.
    method : "gradients", "triplets" or "deflation"
        "gradients" peels off blocks of functions whose gradients are orthogonal to all others'. "triplets" is the
        algorithm of *Product Manifold Learning*: find eigenfunctions that are products of two lower ones, then cut the
        graph of such pairs. "deflation" is a second opinion for images of two independently moving parts, where the
        data are a sum of a function of one factor and a function of the other; it places no new samples.
    n_functions : int or "auto"
        Eigenpairs to compute, the constant function included; "auto" takes an eighth of the samples, 100 at most, and
        more (up to 400) where the factors found have fewer dimensions than the data.
    n_neighbors, bandwidth, density_correction, neighbors, preparation, solver, device, n_jobs
        As in `DiffusionMap`.
    eigenvalue_tolerance : float or "auto"
        For "triplets": how far the eigenvalue of a product may lie from the sum of its parts' (the paper's delta,
        times 4: the paper measures in a quarter of the eigenvalue). "auto" is a tenth of the product's eigenvalue.
    similarity_threshold : float in [0, 1]
        For "triplets": least absolute cosine between a function and a product of others (the paper's gamma).
    exclude : sequence of int
        For "triplets": indices of functions that are not to be put into a factor: peel off a factor that was found,
        and fit again.
    random_state : int, RandomState or None
    callback : callable or None
        Called as ``callback(stage, fraction)``.

    Attributes
    ----------
    verdict_ : "product", "partial" or "none"
    n_factors_ : int
        1 when the verdict is "none".
    factors_ : tuple of Factor
        The one with the smallest eigenvalue first; by deflation, the one that explains most of the data.
    evidence_ : Evidence
        The numbers behind the verdict; ``str()`` reads as prose.
    splits_ : tuple of Split
        How the functions fell into blocks, step by step, with the noise of each step.
    triplets_, cut_
        What the triplet method found on the way; None where it found nothing.
    spectrum_, bandwidth_, bandwidth_curve_, dimension_, components_, outliers_, preparation_, recall_
        As in `DiffusionMap`.
    forecast_, timings_
        As in `DiffusionMap`.

    Examples
    --------
    >>> from manifactor import ManifoldFactorizer, datasets
    >>> X, truth = datasets.sample("torus", 3000, random_state=0)
    >>> fit = ManifoldFactorizer(random_state=0).fit(X)
    >>> fit.verdict_, [factor.topology for factor in fit.factors_]
    ('product', ['circle', 'circle'])
    """

    def __init__(
        self,
        n_factors="auto",
        *,
        method="gradients",
        n_functions="auto",
        n_neighbors="auto",
        bandwidth="auto",
        density_correction=1.0,
        eigenvalue_tolerance="auto",
        similarity_threshold=0.7,
        exclude=(),
        neighbors="auto",
        preparation="auto",
        solver="auto",
        device="cpu",
        n_jobs=None,
        random_state=None,
        callback=None,
    ):
        self.n_factors = n_factors
        self.method = method
        self.n_functions = n_functions
        self.n_neighbors = n_neighbors
        self.bandwidth = bandwidth
        self.density_correction = density_correction
        self.eigenvalue_tolerance = eigenvalue_tolerance
        self.similarity_threshold = similarity_threshold
        self.exclude = exclude
        self.neighbors = neighbors
        self.preparation = preparation
        self.solver = solver
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback

    def fit(self, X, y=None):
        """Factor the manifold of the samples."""
        self._require_settings()
        with device_memory():
            return self._factorized(X)

    def _factorized(self, X):
        spectrum, rng = self._fit_spectrum(X)
        require_indices("exclude", self.exclude, self.n_functions_)
        if len(self.exclude) and self.method != "triplets":
            raise ValueError(
                f"`exclude` is for `method='triplets'`; got {tuple(self.exclude)} with {self.method!r}. Leave it empty."
            )
        with self._stage("factors"), _threads(len(self._graph.distinct)):
            result = METHODS[self.method](
                self._diffusion(spectrum),
                self.n_factors,
                eigenvalue_tolerance=self.eigenvalue_tolerance,
                similarity_threshold=self.similarity_threshold,
                exclude=tuple(self.exclude),
                rng=rng,
            )
        self.spectrum_, self.n_functions_ = result.spectrum, len(result.spectrum.eigenvalues)
        self.solver_ = result.spectrum.solver
        self.factors_, self.evidence_ = self._with_outliers(result.factors), result.evidence
        self.splits_, self.triplets_, self.cut_ = result.splits, result.triplets, result.cut
        self.verdict_, self.n_factors_ = result.evidence.verdict, len(result.factors)
        self._settle()
        return self

    def _diffusion(self, spectrum: Spectrum) -> Diffusion:
        return Diffusion(
            samples=None if sp.issparse(self._samples) else self._samples,
            graph=self._graph,
            affinity=self._affinity,
            spectrum=self.spectrum_,
            distinct=spectrum,
            parts=self._parts,
            solver=self.solver,
            growing=self.n_functions == "auto",
        )

    def _with_outliers(self, factors):
        """Factors whose confidence is 0 for outliers: they lie where their nearest neighbour lies."""
        return tuple(replace(f, confidence=np.where(self.outliers_, 0.0, f.confidence)) for f in factors)

    def fit_transform(self, X, y=None):
        """Fit, and return the embeddings of all factors side by side."""
        return like(X, np.hstack([factor.embedding for factor in self.fit(X).factors_]))

    def transform(self, X):
        """Embeddings of new samples in all factors side by side, (n_new, sum of embedding widths)."""
        functions = self._functions_at(X)
        return like(X, np.hstack([factor.place(functions)[0] for factor in self.factors_]))

    def coordinates(self, X=None):
        """One number for each sample and 1-D factor, (n, n_factors); nan columns for other factors.

        Parameters
        ----------
        X : ndarray of shape (n_new, n_features) or None
            New samples; None for the training samples.
        """
        check_is_fitted(self)
        if X is None:
            columns = [factor.coordinate for factor in self.factors_]
            nothing = np.full(len(self.spectrum_.weights), np.nan)
        else:
            functions = self._functions_at(X)
            columns = [factor.place(functions)[1] for factor in self.factors_]
            nothing = np.full(len(functions), np.nan)
        return like(X, np.column_stack([nothing if column is None else column for column in columns]))

    def locate(self, X):
        """Embedding, coordinate (None for other shapes) and confidence of new samples on each factor.

        The confidence of a new sample is that of the nearest training sample. A sample far from all of them lies where
        the nearest one lies, with confidence 0. Samples are placed a block at a time.
        """
        tree = KDTree(self._samples)
        blocks = [self._located(block, tree) for block in np.array_split(X, max(1, -(-len(X) // BLOCK)))]
        return [tuple(_joined(parts) for parts in zip(*found, strict=True)) for found in zip(*blocks, strict=True)]

    def _located(self, X, tree: KDTree) -> list[tuple]:
        prepared = self._prepared(X)
        distance, nearest = tree.query(prepared, workers=-1)
        far = distance > REACH * np.sqrt(self.bandwidth_)  # beyond, the kernel is nothing but rounding
        prepared = np.where(far[:, None], self._samples[nearest], prepared)
        functions = extend(prepared, self.spectrum_, self._affinity, self._graph, self._samples)
        return [(*f.place(functions), np.where(far, 0.0, f.confidence[nearest])) for f in self.factors_]

    def get_feature_names_out(self, input_features=None):
        """Names of the columns that `transform` returns: factor1_0, ..."""
        check_is_fitted(self)
        widths = [factor.embedding.shape[1] for factor in self.factors_]
        return np.array([f"factor{f + 1}_{j}" for f, w in enumerate(widths) for j in range(w)], dtype=object)

    def _require_settings(self) -> None:
        require_choice("method", self.method, sorted(METHODS))
        if self.n_factors != "auto":
            require_count("n_factors", self.n_factors, 1, MAX_FACTORS)
        if self.eigenvalue_tolerance != "auto":
            require_number("eigenvalue_tolerance", self.eigenvalue_tolerance, above=0)
        require_number("similarity_threshold", self.similarity_threshold, low=0, high=1)


def _joined(parts):
    """Blocks of an array end to end; None where there is none."""
    return None if parts[0] is None else np.concatenate(parts)


def _threads(n_samples: int):
    """Linear algebra on one thread for samples whose matrices are small."""
    return one_blas_thread() if n_samples <= SMALL else nullcontext()


def _auto_functions(n_samples: int) -> int:
    return min(AUTO_FUNCTIONS, max(3, n_samples // SAMPLES_PER_FUNCTION), n_samples - 1)
