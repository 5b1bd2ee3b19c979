import numpy as np
import pytest
from scipy.stats import norm

from manifactor.runs.places import Place, bin_labels, match


def dependent(rng, n_samples=4000, correlation=0.58):
    """Two uniform latents with a Gaussian copula."""
    a, noise = rng.normal(size=(2, n_samples))
    return norm.cdf(a), norm.cdf(correlation * a + np.sqrt(1 - correlation**2) * noise)


def bin_means(values, labels, weights):
    return np.bincount(labels, weights * values) / np.bincount(labels, weights)


def matched(a, *others, n_bins):
    """Bins along an interval, matched over other factors, and their labels."""
    labels, _ = bin_labels(a, "interval", n_bins=n_bins)
    places = [each if isinstance(each, Place) else Place(each, "interval") for each in others]
    return match(labels, places, n_bins=n_bins), labels


def test_matched_bins_have_the_same_mean_of_a_dependent_factor(rng):
    a, b = dependent(rng)
    matching, labels = matched(a, b, n_bins=10)
    assert np.ptp(bin_means(b, labels, np.ones(len(b)))) > 0.5
    assert np.ptp(bin_means(b, labels, matching.weights)) < 0.03
    for quantile in (0.25, 0.5, 0.75):
        below = b < np.quantile(b, quantile)
        assert np.ptp(bin_means(below, labels, matching.weights)) < 0.07
    assert matching.unevenness[0] > 1.7
    assert matching.unevenness[1] < 0.1
    assert 0 <= matching.dropped < 0.2
    for k in range(10):
        own = matching.weights[labels == k]
        assert own.sum() == pytest.approx(1)
        assert matching.effective_sizes[k] == pytest.approx(1 / (own**2).sum())
        assert matching.counts[k] == len(own)
    assert (matching.effective_sizes < matching.counts).all()
    assert matching.effective_sizes.min() > matching.counts.min() / 5


def test_independent_factors_lose_little_by_matching(rng):
    a, b = rng.uniform(size=(2, 4000))
    matching, _ = matched(a, Place(2 * np.pi * b, "circle"), n_bins=8)
    assert (matching.effective_sizes > 0.85 * matching.counts).all()
    assert matching.n_cells == 12
    assert matching.dropped == 0


def test_neither_the_start_of_a_circle_nor_the_order_of_samples_matters(rng):
    a = rng.uniform(size=2000)
    angle = 120 * a + 40 * rng.normal(size=2000)
    first, *others = (
        matched(a, Place(np.radians((angle + start) % 360), "circle"), n_bins=4)[0]
        for start in (0, 77, 200)
    )
    assert all(other.weights == pytest.approx(first.weights) for other in others)
    assert first.unevenness[0] > 1.3
    assert first.unevenness[1] < 0.1
    order = rng.permutation(2000)
    turned = Place(np.radians(angle[order] % 360), "circle")
    again, _ = matched(a[order], turned, n_bins=4)
    assert again.weights == pytest.approx(first.weights[order])


def test_bins_that_cannot_be_matched_are_refused():
    b = np.linspace(0, 1, 200)
    with pytest.raises(ValueError, match=r"none of the 6 cells .* bin \d lacks [45] of them"):
        matched(b, b, n_bins=4)
    with pytest.raises(ValueError, match=r"at least 16 samples .* fullest of 5 bins has 3"):
        match(np.array([0, 0, 0, 1]), [Place(np.zeros(4), "interval")], n_bins=5)
