"""What is known of the data beside the tests, and remarks on suspicious columns."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from manifactor._support.warning import warn_caller
from manifactor.estimators.column_words import Labels, in_words, remedy
from manifactor.estimators.columns import (
    ColumnSettings,
    ColumnWarning,
    Suspicion,
    label_columns,
    numbering_columns,
    suspicious_columns,
)
from manifactor.factoring.factorize import Factorization
from manifactor.factoring.judging.advice import DataKnown
from manifactor.factoring.judging.one_factor import density_of
from manifactor.factoring.measures.evenness import EvennessSettings
from manifactor.spectral.preparation import Preparation


def warn_of_no_measurements(X, names: Labels | None = None) -> tuple[Suspicion, ...]:
    """Warn of columns that number the rows or hold labels, and return them.

    Such a column may be independent of the others, so that even a product may be one of row numbers
    or labels. Precomputed distances have no columns.
    """
    if sp.issparse(X):
        return ()
    kinds = {"index": numbering_columns(X), "label": label_columns(X)}
    found = tuple(Suspicion(kind, columns) for kind, columns in kinds.items() if columns)
    _warn(found, names)
    return found


def with_data_known(
    found: Factorization,
    X,
    *,
    warned: Sequence[Suspicion] = (),
    noise: np.ndarray | None = None,
    names: Labels | None = None,
    settings: EvennessSettings = EvennessSettings(),
) -> Factorization:
    """Return a factorization whose evidence knows the data; warn of columns.

    Shapes: X (n_samples, n_features), noise (n_features,).
    """
    evidence = found.evidence
    columns = tuple(warned)
    if not (evidence.verdict == "product" or sp.issparse(X)):
        columns = suspicious_columns(X)
        _warn([each for each in columns if each not in warned], names)
    known = _known(found, X, noise=noise, settings=settings)
    known = replace(known, columns=remedy(columns, names))
    details = evidence.details
    if columns:
        # Before other remarks, which may not hold without these columns.
        after = f"{details[:1].upper()}{details[1:]}"
        details = f"{in_words(columns, names)} {after}".strip()
    return replace(found, evidence=replace(evidence, known=known, details=details))


def _warn(found: Sequence[Suspicion], names: Labels | None) -> None:
    """Warn of columns, unless they are harmless."""
    what_to_do = remedy(found, names)
    if what_to_do:
        warn_caller(f"{in_words(found, names)} {what_to_do}", ColumnWarning)


def _known(
    found: Factorization, X, *, noise: np.ndarray | None, settings: EvennessSettings
) -> DataKnown:
    """What is known of the data but their columns."""
    limit = found.evidence.settings.evenness
    density = density_of(found.diffusion, settings=settings)
    return DataKnown(
        n_samples=len(found.diffusion.graph.distinct),
        n_columns=0 if sp.issparse(X) else X.shape[1],
        noise=_noise_share(found, X, noise),
        uneven=density is not None and density.spread > limit,
        circles=any(factor.topology == "circle" for factor in found.factors),
    )


def _noise_share(
    found: Factorization,
    X,
    noise: np.ndarray | None,
    *,
    settings: ColumnSettings = ColumnSettings(),
) -> float:
    """Share of the variance of prepared samples that is noise; nan if not known.

    Noise whose size is not given has the same variance in the components that were kept as in those
    dropped.
    """
    preparation, samples = found.diffusion.preparation, found.diffusion.points
    if samples is None:
        return np.nan
    some = slice(None, None, max(1, len(X) // settings.checked))
    kept = float(np.var(np.asarray(samples[some]), axis=0).sum())
    if not kept:
        return np.nan
    if noise is not None:
        return _kept_noise(np.asarray(noise), preparation) / kept
    if preparation is None:
        return np.nan
    n_columns, n_kept = preparation.components.shape
    if n_kept == n_columns:
        return np.nan
    given = float(np.var(np.asarray(X[some], dtype=float), axis=0).sum())
    return n_kept * max(0.0, given - kept) / (n_columns - n_kept) / kept


def _kept_noise(noise: np.ndarray, preparation: Preparation | None) -> float:
    """Variance in prepared samples of independent noise of known size in columns."""
    variance = noise**2
    if preparation is not None:
        variance = variance @ preparation.components**2
    return float(variance.sum())
