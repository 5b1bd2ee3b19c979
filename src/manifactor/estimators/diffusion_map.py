"""DiffusionMap: the spectrum alone, as a scikit-learn transformer."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manifactor.estimators.base import (
    SpectralEstimator,
    blas_threads,
    given_precision,
    without_weights,
)
from manifactor.spectral.gpu import device_memory
from manifactor.spectral.pipeline import diffuse


class DiffusionMap(SpectralEstimator):
    """Eigenfunctions of the Laplacian of the manifold that samples were drawn from.

    Parameters
    ----------
    n_functions : int or "auto"
        Eigenpairs to compute, the constant function included. "auto" takes one for
        every 8 samples, 100 at most.
    n_neighbors : int, "auto" or "all"
        Neighbours of each sample. "all" keeps the full kernel between all pairs, as in
        the paper.
    bandwidth : float, "auto" or "local"
        eps of the kernel exp(-d^2/eps). "local" scales distances by those to the 8th
        neighbours.
    density_correction : float in [0, 1]
        1 gives the Laplacian whatever the sampling density, 0 the random walk that the
        density drives.
    neighbors : str or an object like KNeighborsTransformer
        "auto", "kd_tree", "brute", "faiss" or "precomputed". "auto" is exact up to
        50,000 samples or 5 dimensions, and uses faiss beyond, if it is installed. With
        "precomputed", `X` is a sparse matrix of distances, and rows given to
        `transform` are distances to the training samples; a row that belongs to a
        training sample must hold its own zero.
    preparation : "auto" or "none"
        "auto" drops principal components that the data show to be noise, and in more
        than 64 columns those that distances between neighbours do not depend on, before
        neighbours are searched; `choices_["preparation"].why` says what was done and
        why. Precomputed distances and a search of the caller's own are left alone.
    solver : "auto", "dense", "arpack" or "chebyshev"
    device : str
        "cpu", or a device that torch knows, such as "cuda": neighbours, affinity and
        spectrum are then computed there in single precision. "torch:cpu" has torch do
        the same on the CPU. Torch tensors may be given anywhere; `transform`,
        `fit_transform` and `coordinates` then return tensors.
    n_jobs : int or None
        Threads of the neighbour search: -1 for all cores, None for 1, or for what
        `joblib.parallel_config` says. Results do not depend on it.
    random_state : int, RandomState or None
    callback : callable or None
        Called as ``callback(stage, fraction)``.
    verbose : bool or int
        Whether to show the stages of a fit: a progress bar for each on a terminal and
        in a notebook (with ipywidgets), elsewhere a line with its seconds.

    Attributes
    ----------
    diffusion_ : Diffusion
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
        What was used; `n_neighbors_` is None where the caller's own search or
        distances decided.
    choices_ : dict of str to Choice
        What was chosen automatically, and why.
    recall_ : float
        Share of the nearest neighbours that the search found; 1 if it is exact, nan if
        it is the caller's own.
    forecast_ : Forecast
        Memory and time that were expected.
    timings_ : dict
        Seconds by stage. Stages kept from the fit before are missing.

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
        self.solver = solver
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    @without_weights
    def fit(self, X, y=None, *, stages=None):
        """Compute the spectrum of the samples.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : ignored
        stages : Stages or None
            Where finished stages are kept and looked up; None for the estimator's own
            memory of its last fit.

        Returns
        -------
        self
        """
        with self._progress(self.callback) as callback:
            X, cost, stages, rng = self._begin(X, stages, callback)
            settings = self._diffusion_settings()
            with device_memory(), blas_threads(X):
                diffusion = diffuse(X, settings, stages=stages, rng=rng)
                self.diffusion_ = diffusion.settled()
        self._remember(self.diffusion_, cost, stages)
        return self

    def fit_transform(self, X, y=None, **fit_params):
        """Fit, and return the functions at the samples.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : ignored
        **fit_params
            As in `fit`.

        Returns
        -------
        array of shape (n_samples, n_functions - 1)
            As `transform` returns it.
        """
        spectrum = self.fit(X, **fit_params).spectrum_
        return given_precision(X, spectrum.functions[:, 1:].copy())

    def transform(self, X):
        """Return the functions at new samples, (n_new, n_functions - 1).

        Parameters
        ----------
        X : array of shape (n_new, n_features)

        Returns
        -------
        array of shape (n_new, n_functions - 1)
            Without the constant function, in the precision of the samples.
        """
        return given_precision(X, self._functions_at(X)[:, 1:])

    def get_feature_names_out(self, input_features=None):
        """Return the names of the columns that `transform` returns: function1, ...

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        ndarray of str of shape (n_functions - 1,)
        """
        check_is_fitted(self)
        names = [f"function{k}" for k in range(1, self.n_functions_)]
        return np.array(names, dtype=object)
