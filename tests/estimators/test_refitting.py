import logging
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsTransformer

from manifactor import DiffusionMap, ManifoldFactorizer, datasets
from manifactor._support.stages import Stages

from ..conftest import read_only


@pytest.fixture(scope="module")
def samples():
    """Few enough samples of a torus that a fit takes no time."""
    return read_only(datasets.sample("torus", 500, random_state=0)[0])


ALL = ["preparation", "neighbours", "affinity", "spectrum", "factors"]


@pytest.mark.slow
def test_what_did_not_change_is_kept_in_stages(samples):
    stages = Stages()
    fit = ManifoldFactorizer(random_state=0)

    def timed(X=samples, **parameters):
        return list(fit.set_params(**parameters).fit(X, stages=stages).timings_)

    assert timed() == ALL
    first = fit.coordinates()
    assert timed(n_factors=2) == ["factors"]
    assert timed(bandwidth=0.8) == ["affinity", "spectrum", "factors"]
    assert "neighbours" in timed(n_neighbors=40)
    timed(n_factors="auto", bandwidth="auto", n_neighbors="auto")
    np.testing.assert_array_equal(fit.coordinates(), first)
    # Other samples are never taken for those before.
    moved = samples.copy()
    moved[7, 0] += 1e-9
    assert "neighbours" in timed(moved)


@pytest.mark.medium
def test_a_plain_fit_keeps_and_hashes_nothing(samples, monkeypatch):
    monkeypatch.setattr("manifactor.operators.pipeline.fingerprint", None)
    fit = ManifoldFactorizer(random_state=0)
    assert [list(fit.fit(samples).timings_) for _ in range(2)] == [ALL, ALL]
    assert fit.diffusion_.keys == {}


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(0)])
def test_a_fit_without_a_seed_draws_anew(samples, random_state):
    fit = DiffusionMap(10, solver="chebyshev", random_state=random_state).fit(samples)
    first = fit.spectrum_.functions
    fit.fit(samples)
    assert not np.array_equal(fit.spectrum_.functions, first)


def test_stages_that_are_shared_serve_fits_without_a_seed(samples):
    stages = Stages()
    one, two = (DiffusionMap(10).fit(samples, stages=stages) for _ in range(2))
    assert two.timings_ == {}
    np.testing.assert_array_equal(one.spectrum_.functions, two.spectrum_.functions)


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


def test_a_search_of_the_caller_s_own_is_not_given_kept_principal_components(rng):
    X, _ = datasets.sample("rectangle", 600, ambient_dimension=20, random_state=0)
    X, stages = X + 0.02 * rng.normal(size=X.shape), Stages()
    fit = DiffusionMap(10, random_state=0).fit(X, stages=stages)
    assert fit.preparation_ is not None
    own = KNeighborsTransformer(n_neighbors=30)
    assert fit.set_params(neighbors=own).fit(X, stages=stages).preparation_ is None


@pytest.mark.slow
def test_a_search_that_cannot_be_compared_is_never_taken_for_the_one_before(samples):
    inner = KNeighborsTransformer(n_neighbors=20)
    # It has no parameters that can be read.
    search = SimpleNamespace(fit=inner.fit, transform=inner.transform)
    fit, stages = DiffusionMap(10, neighbors=search, random_state=0), Stages()
    before = fit.fit(samples, stages=stages).spectrum_.eigenvalues
    inner.n_neighbors = 60
    assert not np.allclose(fit.fit(samples, stages=stages).spectrum_.eigenvalues, before)


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
