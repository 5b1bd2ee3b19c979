"""What each method finds in the paper's data sets: jobs, run side by side, and their scores."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np
from joblib import Parallel, delayed

from manifactor._support.threads import interrupts_held, one_blas_thread
from manifactor.cryoem.images import image_components
from manifactor.cryoem.stacks import ImageArray
from manifactor.cryoem.views import View
from manifactor.estimators import ManifoldFactorizer
from manifactor.factoring.evidence import Evidence
from manifactor.factoring.factor import Factor
from manifactor.factoring.maxcut import Cut
from manifactor.factoring.triplets import Triplets
from manifactor.inputs.reading import Input
from manifactor.runs.task import drawn_rows, fit_input
from manifactor.scores import Score, function_accuracy, score
from manifactor.spectral.spectrum import Spectrum
from manifactor.studies.paper.cases import BEYOND, CASES, Case, Data
from manifactor.studies.paper.section import Settings

SHOWN_IMAGES = 3


@dataclass(frozen=True)
class Job:
    """A method on a draw of a data set."""

    case: str
    method: str
    n: int
    seed: int


@dataclass(frozen=True)
class Found:
    """What a method found.

    Attributes
    ----------
    truth : tuple of ndarray
        Of all samples.
    rows : ndarray
        The samples that were fitted.
    places : tuple of ndarray
        Where all samples lie on each factor found.
    spectrum, factors, evidence, triplets, cut
        Of the fit.
    samples : ndarray of shape (n, d)
    images : ndarray of shape (SHOWN_IMAGES, size, size) or None
    """

    truth: tuple[np.ndarray, ...]
    rows: np.ndarray
    places: tuple[np.ndarray, ...]
    spectrum: Spectrum
    factors: tuple[Factor, ...]
    evidence: Evidence
    triplets: Triplets | None
    cut: Cut | None
    samples: np.ndarray
    images: np.ndarray | None = None

    @cached_property
    def score(self) -> Score:
        """Comparison with the truth."""
        return score(self.places, self.truth)

    @cached_property
    def fitted_truth(self) -> tuple[np.ndarray, ...]:
        """The truth of the samples that were fitted."""
        return tuple(true[self.rows] for true in self.truth)

    def matching(self, true: int) -> int | None:
        """The factor found that stands for a true one; None if there is none."""
        return next((int(found) for t, found in self.score.match if t == true), None)

    @cached_property
    def numbers(self) -> dict:
        """The row of the table: solved, R^2 own and leaked, completeness, functions."""
        return {
            "verdict": self.evidence.verdict,
            "n_factors": len(self.factors),
            "solved": self.score.solved,
            "own": float(
                self.score.r2[tuple(self.score.match.T)].sum() / len(self.truth)
            ),  # 0 for one not found
            "worst": self.score.worst,
            "leak": self.score.leak,
            "completeness": self.evidence.completeness,
            "functions": [len(factor.eigenvalues) for factor in self.factors],
            "pure_functions": function_accuracy(
                [factor.functions for factor in self.factors], self.fitted_truth
            ),
        }


def published(
    case: Case,
    data: Data,
    seed: int,
    *,
    n_factors: int | None = None,
    exclude: Sequence[int] = (),
):
    """The paper's algorithm with the paper's dense kernel and settings."""
    return ManifoldFactorizer(
        n_factors or case.n_factors,
        method="triplets",
        n_neighbors="all",
        bandwidth=case.bandwidth,
        density_correction=case.density_correction,
        eigenvalue_tolerance=case.tolerance,
        similarity_threshold=case.gamma,
        preparation="none",
        exclude=tuple(exclude),
        random_state=seed,
    ).fit(data.samples)


def triplets(case: Case, data: Data, seed: int):
    """The paper's algorithm, delta and gamma, on this package's kernel."""
    return ManifoldFactorizer(
        case.n_factors,
        method="triplets",
        eigenvalue_tolerance=case.tolerance,
        similarity_threshold=case.gamma,
        random_state=seed,
    ).fit(data.samples)


def by_default(case: Case, data: Data, seed: int):
    """Nothing set by hand; images are prepared as `manifactor fit` does."""
    return ManifoldFactorizer(random_state=seed).fit(data.samples)


METHODS: dict[str, Callable] = {
    "published": published,
    "triplets": triplets,
    "default": by_default,
}
COMPARED = ("published", "default")


def find(job: Job) -> Found:
    """Draw the samples and run the method."""
    case = {**CASES, **BEYOND}[job.case]
    with (
        one_blas_thread(),
        warnings.catch_warnings(action="ignore"),
    ):  # the same bits in any process
        data = _drawn(case, job.n, job.seed)
        if data.simulation is not None and job.method == "default":
            return _found_in_images(data, job.seed)
        return found_by(METHODS[job.method](case, data, job.seed), data)


@lru_cache(maxsize=1)
def _drawn(case: Case, n: int, seed: int) -> Data:
    """A draw, which the methods that follow each other on it share: images take longer than fits."""
    return case.draw(n, seed)


def found_by(fit: ManifoldFactorizer, data: Data) -> Found:
    """What a fit of all samples found, without what only placing new samples needs."""
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
        images=None
        if data.simulation is None
        else data.simulation.images[:SHOWN_IMAGES].copy(),
    )


def _found_in_images(data: Data, seed: int) -> Found:
    assert data.simulation is not None
    view = View(ImageArray(data.simulation.images, data.simulation.pixel_size))
    components = image_components(view, rng=np.random.default_rng(seed))
    given = Input(
        components.samples, np.arange(len(components.samples)), components=components
    )
    fit, places = fit_input(given, settings={}, seed=seed)
    found = found_by(fit, Data(components.samples, data.truth, data.simulation))
    return replace(
        found,
        rows=drawn_rows(given, seed=seed),
        places=tuple(place.features for place in places),
    )


@dataclass
class Lab:
    """Runs jobs side by side, and remembers what they found for the figures that share it.

    Attributes
    ----------
    n_jobs : int or None
        Processes; None for as many as there are cores.
    callback : callable or None
        Called with the share of the work that is done.
    known : dict
        What was found so far.
    """

    n_jobs: int | None = None
    callback: Callable[[float], None] | None = None
    known: dict[Job, Found] = field(default_factory=dict)

    def find(self, jobs: Sequence[Job]) -> list[Found]:
        """What each job found."""
        self.known.update(
            self._run(find, [job for job in jobs if job not in self.known])
        )
        return [self.known[job] for job in jobs]

    def compare(
        self, cases: Sequence[str], settings: Settings
    ) -> dict[str, dict[str, Found]]:
        """What the published and the default method found in each data set, at the settings' first seed."""
        jobs = [
            Job(case, method, settings.n, settings.seed)
            for case in cases
            for method in COMPARED
        ]
        found = iter(self.find(jobs))
        return {case: {method: next(found) for method in COMPARED} for case in cases}

    def measure(self, jobs: Sequence[Job]) -> list[dict]:
        """The numbers of each job."""
        numbers = {job: self.known[job].numbers for job in jobs if job in self.known}
        numbers |= self._run(measure, [job for job in jobs if job not in self.known])
        return [numbers[job] for job in jobs]

    def _run(self, function: Callable, jobs: Sequence[Job]) -> dict:
        """Results by job; jobs on the same draw follow each other in one process."""
        draws: dict[tuple, list[Job]] = {}
        for job in jobs:
            draws.setdefault((job.case, job.n, job.seed), []).append(job)
        side_by_side = Parallel(n_jobs=self.n_jobs or -1, return_as="generator")
        with interrupts_held():
            coming = side_by_side(
                delayed(_in_turn)(function, group) for group in draws.values()
            )
        done: dict = {}
        for results in coming:
            done |= results
            if self.callback is not None:
                self.callback(len(done) / (len(jobs) + 1))  # drawing is left to do
        return done


def _in_turn(function: Callable, jobs: Sequence[Job]) -> dict:
    results = {job: function(job) for job in jobs}
    _drawn.cache_clear()  # images need half a gigabyte
    return results


def measure(job: Job) -> dict:
    """The numbers of a job."""
    return find(job).numbers
