import logging

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from manifactor import DiffusionMap, ManifoldFactorizer, datasets

from ..conftest import read_only


@pytest.fixture(scope="module")
def samples():
    """Few enough samples of a torus that a fit takes no time."""
    return read_only(datasets.sample("torus", 500, random_state=0)[0])


ALL = ["preparation", "neighbours", "affinity", "spectrum", "factors"]


@pytest.mark.medium
def test_a_fit_keeps_nothing_of_the_fit_before(samples):
    fit = ManifoldFactorizer(sense="geometry", random_state=0)
    assert [list(fit.fit(samples).timings_) for _ in range(2)] == [ALL, ALL]


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(0)])
def test_a_fit_without_a_seed_draws_anew(samples, random_state):
    fit = DiffusionMap(10, solver="chebyshev", random_state=random_state).fit(samples)
    first = fit.spectrum_.functions
    fit.fit(samples)
    assert not np.array_equal(fit.spectrum_.functions, first)


def test_the_forecast_is_logged_and_kept_and_leaves_the_estimator_unfitted(samples, caplog):
    with caplog.at_level(logging.INFO, "manifactor"):
        fit = DiffusionMap(random_state=0).fit(samples)
    assert f"forecast: {fit.forecast_}" in caplog.text
    unfitted = DiffusionMap()
    assert unfitted.forecast(samples) == fit.forecast_
    with pytest.raises(NotFittedError):
        unfitted.transform(samples)


@pytest.mark.slow
def test_functions_that_do_not_fit_into_memory_are_not_computed_and_that_is_said(
    torus, monkeypatch, caplog
):
    fit = DiffusionMap(random_state=0).fit(torus[0][:900])
    diffusion = fit.diffusion_
    assert len(diffusion.grown(np.random.default_rng(0)).spectrum.eigenvalues) > fit.n_functions_
    for name in ("available_memory", "held_memory"):
        monkeypatch.setattr(f"manifactor.operators.operator.{name}", lambda: 1e6)
    assert diffusion.grown(np.random.default_rng(0)) is None
    assert "functions would help and were not computed" in caplog.text


@pytest.mark.medium
@pytest.mark.parametrize("estimator", [DiffusionMap, ManifoldFactorizer])
def test_a_fit_that_fails_leaves_the_estimator_as_it_was(samples, estimator):
    fit = estimator(random_state=0)
    with pytest.raises(ValueError, match="at least"):
        fit.fit(samples[:2])
    with pytest.raises(NotFittedError):
        fit.transform(samples)
    before = dict(vars(fit.fit(samples)))
    with pytest.raises(ValueError, match=r"infinite|nan|finite"):
        fit.fit(np.full((300, 5), np.nan))
    assert vars(fit) == before
    assert fit.transform(samples[:3]).shape[0] == 3
