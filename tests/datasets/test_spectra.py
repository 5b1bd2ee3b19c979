import numpy as np

from manifactor.datasets.spectra import Peak, Spectra


def test_a_peak_stands_where_its_place_says():
    peak = Peak(0.2, 0.6, 0.05, height=3.0)
    X, (place,) = Spectra((peak,), n_channels=1001, noise=0.0)(30, np.random.RandomState(0))
    np.testing.assert_allclose(X.argmax(axis=1) / 1000, 0.2 + 0.4 * place[:, 0], atol=0.0006)
    np.testing.assert_allclose(X.max(axis=1), 3.0, rtol=1e-3)


def test_spectra_are_the_sum_of_their_peaks_and_noise():
    peaks = (Peak(0.1, 0.4, 0.05), Peak(0.3, 0.9, 0.05))
    both, (first, second) = Spectra(peaks, noise=0.0)(100, np.random.RandomState(0))
    channels = np.linspace(0, 1, both.shape[1])
    shifted = [channels - (0.1 + 0.3 * first), channels - (0.3 + 0.6 * second)]
    expected = sum(np.exp(-(offset**2) / (2 * 0.05**2)) for offset in shifted)
    np.testing.assert_allclose(both, expected)
    noisy, _ = Spectra(peaks, noise=0.2)(100, np.random.RandomState(0))
    assert 0.19 < np.std(noisy - both) < 0.21
