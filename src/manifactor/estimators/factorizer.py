"""ManifoldFactorizer: samples to factors, as a scikit-learn transformer."""

from dataclasses import replace
from numbers import Integral

import numpy as np

from manifactor.estimators.base import blas_threads, given_precision, precision_of, without_weights
from manifactor.estimators.columns import column_labels
from manifactor.estimators.drawing import drawn_samples
from manifactor.estimators.finding import find_factors
from manifactor.estimators.inverting import InvertingEstimator
from manifactor.estimators.locating import DisplayedEstimator
from manifactor.factoring.placement import checked_noise
from manifactor.factoring.settings import SUM_NAMES, FactoringSettings, require_factoring
from manifactor.spectral.gpu import device_memory
from manifactor.spectral.settings import DiffusionSettings, FunctionCounts


class ManifoldFactorizer(InvertingEstimator, DisplayedEstimator):
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
    sense : "auto", "geometry", "sum", "volume" or "density"
        For "gradients": the sense in which the data are to be a product. "geometry":
        the metric is a product, whatever the density of the samples. "sum": samples
        are a sum of one function of each factor, such as images of independent
        objects. "volume": the metric is a product up to a common stretch, which the
        density of the samples shows. "density": metric and density are products, as
        for independent Gaussians. "auto" looks at the geometry, and in the other senses
        if that is no product; `evidence_.sense` is the sense of the result.
    n_functions : int or "auto"
        Eigenpairs to compute, the constant function included. "auto" takes one for
        every 8 samples, 100 at most, and more (up to 400) where the factors found have
        fewer dimensions than the data. A sum needs none and takes no number.
    n_neighbors, bandwidth, density_correction, neighbors, preparation, solver
    device, n_jobs
        As in `DiffusionMap`.
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
        Called as ``callback(stage, fraction)``.
    verbose : bool or int
        Whether to show the stages of `fit` and `locate`, as in `DiffusionMap`.

    Attributes
    ----------
    verdict_ : "product", "partial" or "none"
    n_factors_ : int
        1 when the verdict is "none".
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
        self.solver = solver
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    @without_weights
    def fit(self, X, y=None, *, noise=None, stages=None, column_names=None, fit_samples="auto"):
        """Factor the manifold of the samples.

        Of an array that is not in memory (Dask, Zarr, HDF5), a random part is read and
        fitted. Everything that the fit knows of samples belongs to this part: `rows_`
        says which samples these are, and `locate` places all others.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : ignored
        noise : array of shape (n_features,) or None
            Standard deviation of the noise in every column, if it is known. The
            verdict "product" then also requires that it hardly moves the places.
        stages : Stages or None
            Where finished stages are kept and looked up; None for the estimator's own
            memory of its last fit.
        column_names : sequence of str or None
            For warnings and errors, one for each column. None takes the names of a
            DataFrame, or numbers from 0.
        fit_samples : int, "auto" or "all"
            How many samples to draw and fit. "auto" takes all that are in memory; of
            an array that is not, 20,000.

        Returns
        -------
        self
        """
        factoring = self._checked_settings()
        X, rows = drawn_samples(self, X, fit_samples)
        with self._progress(self.callback) as callback:
            known = {"noise": noise, "column_names": column_names}
            self._find(X, factoring, stages=stages, callback=callback, **known)
        self.rows_ = rows
        self._precision = precision_of(X)
        return self

    def _find(self, X, factoring, *, noise, stages, column_names, callback) -> None:
        """Find the factors of samples in memory, and remember them."""
        X, cost, stages, rng = self._begin(X, stages, callback, column_names)
        noise = None if noise is None else checked_noise(noise, X)
        with device_memory(), blas_threads(X):
            found = find_factors(
                X,
                self._diffusion_settings(),
                factoring,
                noise=noise,
                names=column_labels(self, column_names),
                stages=stages,
                rng=rng,
            )
            self.factorization_ = found.settled()
        self._remember(self.diffusion_, cost, stages)

    def _checked_settings(self) -> FactoringSettings:
        """Return the parameters of the factorization; refuse wrong ones."""
        factoring = self._factoring_settings()
        known = isinstance(self.n_functions, Integral)
        require_factoring(factoring, n_functions=self.n_functions if known else None)
        self._require_used()
        return factoring

    def _factoring_settings(self) -> FactoringSettings:
        """Return the parameters of the factorization as one record."""
        return FactoringSettings(
            n_factors=self.n_factors,
            method=self.method,
            sense=self.sense,
            eigenvalue_tolerance=self.eigenvalue_tolerance,
            similarity_threshold=self.similarity_threshold,
            exclude=self.exclude,
        )

    def _diffusion_settings(self) -> DiffusionSettings:
        """Return the parameters of the diffusion; a sum needs no functions."""
        settings = super()._diffusion_settings()
        if self.method not in SUM_NAMES:
            return settings
        # A sum needs no functions of the samples; reports show them.
        few = 9
        why = "a sum is found in the samples, not in their functions"
        counts = FunctionCounts(usual=few, largest=few, samples_per_function=1, why=why)
        return replace(settings, counts=counts)

    def _require_used(self) -> None:
        """Raise ValueError for a parameter that the method does not use."""
        if self.method in SUM_NAMES and self.n_functions != "auto":
            raise ValueError(
                f"`n_functions` must be 'auto' with `method={self.method!r}`, which "
                f"does not use functions; got {self.n_functions!r}. Leave it out."
            )

    @property
    def diffusion_(self):
        """Diffusion that the factors were found in."""
        return self.factorization_.diffusion

    @diffusion_.setter
    def diffusion_(self, diffusion) -> None:
        self.factorization_ = replace(self.factorization_, diffusion=diffusion)

    @property
    def evidence_(self):
        """Evidence: the tests behind the verdict."""
        return self.factorization_.evidence

    @property
    def verdict_(self) -> str:
        """Verdict: "product", "partial" or "none"."""
        return self.evidence_.verdict

    @property
    def splits_(self):
        """How the functions fell into blocks, step by step."""
        return self.factorization_.splits

    @property
    def triplets_(self):
        """Triplets of the triplet method, or None."""
        return self.factorization_.triplets

    @property
    def cut_(self):
        """Cut of the triplet method, or None."""
        return self.factorization_.cut

    @property
    def choices_(self) -> dict:
        """What was chosen automatically, and why: a Choice for each."""
        return {**self.diffusion_.choices, **self.factorization_.choices}

    def fit_transform(self, X, y=None, **fit_params):
        """Fit, and return the embeddings of all factors side by side.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : ignored
        **fit_params
            As in `fit`.

        Returns
        -------
        array of shape (n_samples, sum of widths)
            Of all samples, also where only some of them were drawn and fitted.
        """
        factors = self.fit(X, **fit_params).factors_
        if self.rows_ is not None:
            return self.transform(X)
        embeddings = np.hstack([factor.embedding for factor in factors])
        return given_precision(X, embeddings)

    def restore(self) -> None:
        """Make an estimator that was read from an archive ready for use."""
        self._checked_settings()
        super().restore()
        self.factorization_ = self.factorization_.searchable(self.n_jobs)
