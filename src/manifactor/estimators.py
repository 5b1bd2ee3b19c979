"""DiffusionMap and ManifoldFactorizer: thin scikit-learn faces of the spectral and factoring wings."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from scipy.spatial import KDTree
from sklearn.utils.validation import check_is_fitted

from manifactor._support.parameters import (
    require_choice,
    require_count,
    require_indices,
    require_number,
)
from manifactor._support.threads import one_blas_thread
from manifactor.factoring.factorize import METHODS
from manifactor.factoring.peeling import MAX_FACTORS
from manifactor.spectral.diffusion import Diffusion
from manifactor.spectral.pipeline import SpectralEstimator
from manifactor.spectral.resident import device_memory, like
from manifactor.spectral.spectrum import Spectrum, extend

BLOCK = 20_000  # new samples that are placed at a time
REACH = 4.0  # bandwidths, as lengths, beyond which a new sample has no neighbours: the kernel is 1e-7 there
SMALL = 200_000  # samples up to which linear algebra is faster on one thread


class DiffusionMap(SpectralEstimator):
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
        return np.array(
            [f"function{k}" for k in range(1, self.n_functions_)], dtype=object
        )


class ManifoldFactorizer(SpectralEstimator):
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
        require_indices(
            "exclude", self.exclude, 1, self.n_functions_ - 1, of="functions"
        )
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
        self.spectrum_, self.n_functions_ = (
            result.spectrum,
            len(result.spectrum.eigenvalues),
        )
        self.solver_ = result.spectrum.solver
        self.factors_, self.evidence_ = (
            self._with_outliers(result.factors),
            result.evidence,
        )
        self.splits_, self.triplets_, self.cut_ = (
            result.splits,
            result.triplets,
            result.cut,
        )
        self.verdict_, self.n_factors_ = result.evidence.verdict, len(result.factors)
        self._settle()
        return self

    def _diffusion(self, spectrum: Spectrum) -> Diffusion:
        return Diffusion(
            samples=None if sp.issparse(self._samples) else self._samples,
            graph=self._graph,
            affinity=self._affinity,
            spectrum=self.spectrum_.on_device_of(spectrum, self._graph),
            distinct=spectrum,
            parts=self._parts,
            solver=self.solver,
            growing=self.n_functions == "auto",
        )

    def _with_outliers(self, factors):
        """Factors whose confidence is 0 for outliers: they lie where their nearest neighbour lies."""
        return tuple(
            replace(f, confidence=np.where(self.outliers_, 0.0, f.confidence))
            for f in factors
        )

    def fit_transform(self, X, y=None):
        """Fit, and return the embeddings of all factors side by side."""
        return like(X, np.hstack([factor.embedding for factor in self.fit(X).factors_]))

    def transform(self, X):
        """Embeddings of new samples in all factors side by side, (n_new, sum of embedding widths)."""
        functions = self._functions_at(X)
        return like(
            X, np.hstack([factor.place(functions)[0] for factor in self.factors_])
        )

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
        return like(
            X,
            np.column_stack(
                [nothing if column is None else column for column in columns]
            ),
        )

    def locate(self, X):
        """Embedding, coordinate (None for other shapes) and confidence of new samples on each factor.

        The confidence of a new sample is that of the nearest training sample. A sample far from all of them lies where
        the nearest one lies, with confidence 0. Samples are placed a block at a time.
        """
        tree = KDTree(self._samples)
        blocks = [
            self._located(block, tree)
            for block in np.array_split(X, max(1, -(-len(X) // BLOCK)))
        ]
        return [
            tuple(_joined(parts) for parts in zip(*found, strict=True))
            for found in zip(*blocks, strict=True)
        ]

    def _located(self, X, tree: KDTree) -> list[tuple]:
        prepared = self._prepared(X)
        distance, nearest = tree.query(prepared, workers=-1)
        far = distance > REACH * np.sqrt(
            self.bandwidth_
        )  # beyond, the kernel is nothing but rounding
        prepared = np.where(far[:, None], self._samples[nearest], prepared)
        functions = extend(
            prepared, self.spectrum_, self._affinity, self._graph, self._samples
        )
        return [
            (*f.place(functions), np.where(far, 0.0, f.confidence[nearest]))
            for f in self.factors_
        ]

    def get_feature_names_out(self, input_features=None):
        """Names of the columns that `transform` returns: factor1_0, ..."""
        check_is_fitted(self)
        widths = [factor.embedding.shape[1] for factor in self.factors_]
        return np.array(
            [f"factor{f + 1}_{j}" for f, w in enumerate(widths) for j in range(w)],
            dtype=object,
        )

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
