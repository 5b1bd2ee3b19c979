import numpy as np
import pytest

from manifactor.cryoem.simulate.poses import NoiseSettings, add_noise


def images_with_variances(*variances, n=400):
    """Images whose principal components have these variances."""
    rng = np.random.default_rng(0)
    scores = np.linalg.qr(rng.normal(size=(n, len(variances) + 1)))[0][:, 1:]
    scores -= scores.mean(axis=0)
    scores = np.linalg.qr(scores)[0] * np.sqrt(n * np.array(variances))
    pixels = np.linalg.qr(rng.normal(size=(64, len(variances))))[0]
    return (scores @ pixels.T).reshape(n, 8, 8).astype(np.float32)


@pytest.mark.parametrize(("component", "variance"), [(1, 90.0), (3, 10.0), (4, 2.0)])
def test_the_chosen_component_is_the_signal(rng, component, variance):
    clean = images_with_variances(90.0, 40.0, 10.0, 2.0)
    settings = NoiseSettings(component=component)
    noisy = clean.copy()
    noise = add_noise(noisy, 5.0, signal=clean, rng=rng, settings=settings)
    assert noise**2 == pytest.approx(variance / 5, rel=1e-3)
    assert (noisy - clean).std() == pytest.approx(noise, rel=0.02)


@pytest.mark.parametrize("ratio", [None, np.inf])
def test_no_ratio_or_an_infinite_one_leaves_the_images(rng, ratio):
    clean = images_with_variances(3.0, 2.0)
    images = clean.copy()
    assert add_noise(images, ratio, signal=clean, rng=rng) == 0
    np.testing.assert_array_equal(images, clean)
