"""Weights of samples: why there are none, and what to do instead."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

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
