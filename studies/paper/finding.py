"""Run a method on a draw of a data set, and compare what it finds with the truth."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from manifactor._support.threads import one_blas_thread
from manifactor.cryoem.components import image_components
from manifactor.cryoem.files.stacks import ImageArray
from manifactor.cryoem.one_view import View
from manifactor.cryoem.source import ParticleInput
from manifactor.estimators import ManifoldFactorizer
from manifactor.factors.factor import Factor
from manifactor.judging.evidence import Evidence
from manifactor.models.triplets import Cut, Triplets
from manifactor.operators.laplacian import Spectrum
from manifactor.runs.options import FitOptions
from manifactor.runs.task import fit_input, plan_fit
from manifactor.scores import Score, function_accuracy, score
from studies.paper.cases import BEYOND, CASES, Case, Data


@dataclass(frozen=True)
class Job:
    """A method to run on a draw of a data set."""

    case: str
    method: str
    n: int
    seed: int


@dataclass(frozen=True)
class Found:
    """What a method found."""

    truth: tuple[np.ndarray, ...]  # of all samples
    rows: np.ndarray  # (n_fitted,): the samples that were fitted
    places: tuple[np.ndarray, ...]  # positions of all samples on each factor found
    spectrum: Spectrum  # of the fit
    factors: tuple[Factor, ...]  # of the fit
    evidence: Evidence  # of the fit
    triplets: Triplets | None  # of the fit
    cut: Cut | None  # of the fit
    samples: np.ndarray  # (n, d)
    # (n_images, size, size): A few images to show; None for shapes
    images: np.ndarray | None = None

    @cached_property
    def score(self) -> Score:
        """Comparison with the truth."""
        return score(self.places, self.truth)

    @cached_property
    def fitted_truth(self) -> tuple[np.ndarray, ...]:
        """Truth of the samples that were fitted."""
        return tuple(true[self.rows] for true in self.truth)

    def matching(self, true: int) -> int | None:
        """Return the index of the factor found for a true one; None without one."""
        # `score` matches one to one: a true factor has one partner at most.
        found = dict(self.score.match.tolist())
        return found.get(true)

    @cached_property
    def numbers(self) -> dict:
        """The row of the table: solved, R^2 own and leaked, completeness, functions."""
        matched = self.score.r2[tuple(self.score.match.T)]
        functions = [factor.functions for factor in self.factors]
        return {
            "verdict": self.evidence.verdict,
            "n_factors": len(self.factors),
            "solved": self.score.solved,
            # Divided by all true factors, so that one not found counts as 0.
            "own": float(matched.sum() / len(self.truth)),
            "worst": self.score.worst,
            "leak": self.score.leak,
            "completeness": self.evidence.completeness,
            "functions": [len(factor.eigenvalues) for factor in self.factors],
            "pure_functions": function_accuracy(functions, self.fitted_truth),
        }


def published(
    case: Case, data: Data, seed: int, *, n_factors: int | None = None, exclude: Sequence[int] = ()
) -> ManifoldFactorizer:
    """Fit the paper's algorithm with the paper's dense kernel and settings."""
    # The paper uses all pairs of samples, without a neighbour graph.
    return ManifoldFactorizer(
        n_factors or case.n_factors,
        method="triplets",
        n_neighbors="all",
        bandwidth=case.bandwidth,
        density_correction=case.density_correction,
        eigenvalue_tolerance=case.tolerance,
        similarity_threshold=case.gamma,
        # The published bandwidths are in the units of the samples as they are.
        preparation="none",
        exclude=tuple(exclude),
        random_state=seed,
    ).fit(data.samples)


def by_triplets(case: Case, data: Data, seed: int) -> ManifoldFactorizer:
    """Fit the paper's algorithm, delta and gamma on this package's kernel."""
    return ManifoldFactorizer(
        case.n_factors,
        method="triplets",
        eigenvalue_tolerance=case.tolerance,
        similarity_threshold=case.gamma,
        random_state=seed,
    ).fit(data.samples)


def by_default(case: Case, data: Data, seed: int) -> ManifoldFactorizer:
    """Fit with nothing set by hand; for images see `find`."""
    # The figures show functions of the manifold, which other senses do not have.
    return ManifoldFactorizer(sense="geometry", random_state=seed).fit(data.samples)


WAYS: dict[str, Callable[[Case, Data, int], ManifoldFactorizer]] = {
    "published": published,
    "triplets": by_triplets,
    "default": by_default,
}


def find(job: Job) -> Found:
    """Draw the samples and run the method.

    The default method gets images prepared as `manifactor fit` prepares them.
    """
    # A job holds names only, so that it can be a key and travel between processes.
    case = {**CASES, **BEYOND}[job.case]
    # Sums of several BLAS threads differ in the last bits, and with them the numbers.
    with one_blas_thread(), warnings.catch_warnings(action="ignore"):
        data = drawn(case, job.n, job.seed)
        if data.simulation is not None and job.method == "default":
            return found_in_images(data, job.seed)
        fit = WAYS[job.method](case, data, job.seed)
        return found_by(fit, data)


# Simulating images takes longer than fitting them, so methods that follow each other on a draw
# share it. One draw only: 10,000 images need half a gigabyte.
@lru_cache(maxsize=1)
def drawn(case: Case, n: int, seed: int) -> Data:
    """Return a draw of a data set; the last one is kept until `drawn.cache_clear`."""
    return case.draw(n, seed)


def found_by(fit: ManifoldFactorizer, data: Data, *, n_images: int = 3) -> Found:
    """Return what a fit of all samples found.

    Parts of the fit that only the transformation of new samples needs are left out: results travel
    between processes.
    """
    images = None
    if data.simulation is not None:
        # A copy, as a view would keep all images alive.
        images = data.simulation.images[:n_images].copy()
    return Found(
        truth=data.truth_for(len(fit.factors_)),
        rows=np.arange(len(data.samples)),
        places=tuple(factor.embedding for factor in fit.factors_),
        spectrum=fit.spectrum_,
        factors=fit.factors_,
        evidence=fit.evidence_,
        triplets=fit.triplets_,
        cut=fit.cut_,
        samples=data.samples,
        images=images,
    )


def found_in_images(data: Data, seed: int, *, n_fitted: int | str = "auto") -> Found:
    """Return what the default method finds in images prepared as by `fit`."""
    assert data.simulation is not None
    view = View(ImageArray(data.simulation.images, data.simulation.pixel_size))
    components = image_components(view, rng=np.random.default_rng(seed))
    rows = np.arange(len(components.samples))
    given = ParticleInput(components.samples, rows, components=components)
    plan = plan_fit(given, FitOptions(seed=seed, fit_samples=n_fitted))
    fit, places = fit_input(given, plan)
    prepared = Data(components.samples, data.truth, data.simulation)
    # Only some of many images are fitted; the others are placed afterwards.
    return replace(
        found_by(fit, prepared), rows=plan.rows, places=tuple(place.features for place in places)
    )
