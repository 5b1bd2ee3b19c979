"""A result answers the same questions with and without an estimator."""

import numpy as np
import pytest

from manifactor import ManifoldFactorizer, datasets
from manifactor.factorize import factorize
from manifactor.samples import Samples

pytestmark = pytest.mark.medium


def test_a_factorization_of_samples_answers_as_a_fit_does():
    X, _ = datasets.sample("cylinder", 400, random_state=0)
    fit, result = ManifoldFactorizer(random_state=0).fit(X), factorize(Samples(X))
    assert result.evidence.verdict == fit.verdict_
    for one, other in zip(result.locate(X[:9]), fit.locate(X[:9]), strict=True):
        np.testing.assert_allclose(one.embedding, other.embedding, atol=1e-6)
    assert result.names == list(fit.get_feature_names_out())
    np.testing.assert_allclose(result.along(1, 5), fit.along(1, 5), atol=1e-4)
    places = np.hstack([factor.embedding for factor in result.factors])
    assert np.abs(result.samples_at(places) - X).max() < 0.2
