import numpy as np
import pytest

from manifactor import ManifoldFactorizer, datasets
from manifactor.spectral.neighbors import neighbor_graph
from manifactor.spectral.parts import PartSettings, draw_parts, part_size


@pytest.fixture
def small_parts(monkeypatch):
    """Parts as of many samples, of few; estimators have no parameter for them."""
    few = PartSettings(parted_above=4000, smallest=2000)
    monkeypatch.setattr("manifactor.spectral.pipeline.PartSettings", lambda: few)


@pytest.mark.parametrize(
    ("n_samples", "size"),
    [(60_001, 10_000), (400_000, 50_000), (10_000_000, 100_000)],
)
def test_a_part_is_an_eighth_of_the_samples_within_limits(n_samples, size):
    assert part_size(n_samples) == size


@pytest.mark.slow
def test_parts_are_disjoint_and_see_the_spectrum_of_the_whole():
    X, _ = datasets.sample("torus", 50_000, random_state=0)
    found = draw_parts(
        X,
        12,
        search=lambda some: neighbor_graph(some, 64),
        density_correction=1.0,
        rng=np.random.default_rng(0),
    )
    assert [len(part.rows) for part in found] == [10_000, 10_000]
    assert not np.intersect1d(found[0].rows, found[1].rows).size
    exact = datasets.exact_eigenvalues("torus", 12)
    for part in found:
        np.testing.assert_allclose(
            part.spectrum.eigenvalues[1:12], exact[1:], rtol=0.05
        )


@pytest.mark.slow
def test_many_samples_are_factored_with_the_help_of_parts(small_parts):
    X, _ = datasets.sample("torus", 6000, random_state=0)
    heard = []
    fit = ManifoldFactorizer(
        random_state=0, callback=lambda stage, _: heard.append(stage)
    ).fit(X)
    assert "parts" in heard
    assert fit.verdict_ == "product"
    assert [factor.topology for factor in fit.factors_] == ["circle", "circle"]
    plain = ManifoldFactorizer(random_state=0)
    np.testing.assert_allclose(
        fit.spectrum_.eigenvalues[:20],
        plain.fit(X).spectrum_.eigenvalues[:20],
        rtol=1e-3,
    )


@pytest.mark.slow
def test_a_sphere_of_many_samples_is_no_product(small_parts):
    X, _ = datasets.sample("sphere", 6000, random_state=0)
    with pytest.warns(UserWarning, match="No product structure"):
        assert ManifoldFactorizer(random_state=0).fit(X).verdict_ == "none"


@pytest.mark.slow
def test_parts_outlive_the_archive(small_parts, tmp_path):
    from manifactor import load, save

    X, _ = datasets.sample("torus", 5000, random_state=0)
    fit = ManifoldFactorizer(random_state=0).fit(X)
    save(fit, tmp_path / "fit.npz")
    again = load(tmp_path / "fit.npz").fit(X)
    assert list(again.timings_) == ["factors"]  # all else was kept
    np.testing.assert_array_equal(again.coordinates(), fit.coordinates())
