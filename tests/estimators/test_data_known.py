import numpy as np
import pytest

from manifactor import ManifoldFactorizer, NoProductStructureWarning

N_COLUMNS = 40


@pytest.fixture(scope="module")
def noisy_disk():
    """A disk with noise of deviation 0.1 in many columns."""
    rng = np.random.default_rng(0)
    angle, radius = rng.uniform(0, 2 * np.pi, 300), np.sqrt(rng.uniform(size=300))
    X = 0.1 * rng.normal(size=(300, N_COLUMNS))
    X[:, :2] += radius[:, None] * np.c_[np.cos(angle), np.sin(angle)]
    return X


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::manifactor.SampleWarning")
def test_known_noise_is_a_share_of_the_samples_after_preparation(noisy_disk):
    fit = ManifoldFactorizer(random_state=0)
    with pytest.warns(NoProductStructureWarning):
        fit.fit(noisy_disk, noise=np.full(N_COLUMNS, 0.1))
    n_kept = fit.preparation_.components.shape[1]
    # A disk of radius 1 has the variance 1/2.
    expected = n_kept * 0.01 / (0.5 + n_kept * 0.01)
    assert fit.evidence_.known.noise == pytest.approx(expected, rel=0.1)


@pytest.mark.slow
def test_the_data_of_a_product_are_known_too(torus):
    fit = ManifoldFactorizer(random_state=0).fit(torus[0][:1000])
    known = fit.evidence_.known
    assert fit.verdict_ == "product"
    assert (known.n_samples, known.n_columns, known.circles) == (1000, 4, True)
    assert fit.evidence_.advice == ""
