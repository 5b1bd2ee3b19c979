"""Samples to factors: diffuse, factorize, and warn of what matters to the result."""

from contextlib import AbstractContextManager, nullcontext
from functools import partial

import numpy as np

from manifactor._support.errors import NothingFoundError, held_warnings, issue, parted
from manifactor._support.stages import Stages
from manifactor._support.threads import one_blas_thread
from manifactor.estimators.columns import Labels, warn_of_no_measurements, with_data_known
from manifactor.factoring.factorize import Factorization, factorize
from manifactor.factoring.settings import FactoringSettings
from manifactor.spectral.diffusion import Diffusion
from manifactor.spectral.neighbors import DisconnectedGraphWarning
from manifactor.spectral.pipeline import diffuse
from manifactor.spectral.preparation import MOST_COMPONENTS
from manifactor.spectral.settings import DiffusionSettings


def find_factors(
    X,
    spectral: DiffusionSettings,
    factoring: FactoringSettings,
    *,
    noise: np.ndarray | None,
    names: Labels | None,
    stages: Stages,
    rng: np.random.Generator,
) -> Factorization:
    """Return the factors of samples, and warn of suspicious columns.

    Shapes: X (n_samples, n_features), noise (n_features,).
    """
    find = partial(_find, X, spectral, factoring=factoring, noise=noise, stages=stages, rng=rng)
    # Whoever asks for one factor expects no product, and needs no reasons.
    if factoring.n_asked == 1:
        return find()
    warned = warn_of_no_measurements(X, names)
    found = find()
    return with_data_known(found, X, warned=warned, noise=noise, names=names)


def _find(
    X,
    spectral: DiffusionSettings,
    *,
    factoring: FactoringSettings,
    noise: np.ndarray | None,
    stages: Stages,
    rng: np.random.Generator,
) -> Factorization:
    """Return the factors; warn of a disconnected graph only if they rest on it."""
    with held_warnings() as held:
        diffusion = diffuse(X, spectral, stages=stages, rng=rng)
    of_graph, others = parted(held, DisconnectedGraphWarning)
    issue(others)
    with stages.timed("factors"), _blas_threads(diffusion):
        # The halves that tell structure from noise are always the same, so that `random_state` does
        # not decide a verdict.
        fixed = np.random.default_rng(0)
        try:
            found = factorize(diffusion, factoring, noise=noise, rng=fixed)
        except NothingFoundError:
            # The graph may be the reason.
            issue(of_graph)
            raise
    # A sum needs no graph; the other senses have graphs of their own, and have warned of them.
    if found.evidence.sense == "geometry":
        issue(of_graph)
    return found


def _blas_threads(diffusion: Diffusion) -> AbstractContextManager[None]:
    """Limit BLAS to one thread: matrices are small, and our threads use all cores.

    Samples of many columns, such as images that were left as they are, are large.
    """
    points = diffusion.points
    narrow = points is None or points.shape[1] <= MOST_COMPONENTS
    return one_blas_thread() if narrow else nullcontext()
