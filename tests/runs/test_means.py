import numpy as np
import pytest

from manifactor.cryoem.averages.means import weighted_means
from manifactor.cryoem.files.stacks import ImageArray


def blocks_of(images, size):
    return ImageArray(images, block_bytes=size * images[0].nbytes)


@pytest.fixture
def stack(rng):
    images = rng.normal(100, 1, size=(50, 6, 5)).astype(np.float32)
    return images, rng.integers(-1, 4, size=50), rng.uniform(size=50)


@pytest.mark.parametrize("size", [1, 7, 50, 1000])
def test_any_block_size_gives_the_direct_means(stack, size):
    images, labels, weights = stack
    means = weighted_means(blocks_of(images, size), labels, weights=weights, n_bins=4)
    direct = [
        np.average(images[labels == k], axis=0, weights=weights[labels == k]) for k in range(4)
    ]
    assert means.shape == (4, 6, 5)
    assert means.dtype == np.float32
    assert np.allclose(means, direct, rtol=1e-6)


def test_volumes_and_whole_numbers_are_averaged_too(rng):
    volumes = rng.integers(0, 200, size=(9, 3, 4, 5), dtype=np.uint8)
    means = weighted_means(
        blocks_of(volumes, 4), np.zeros(9, dtype=int), weights=np.ones(9), n_bins=1
    )
    assert np.allclose(means[0], volumes.mean(axis=0))


def test_a_bin_without_weight_is_zero(stack):
    images, labels, weights = stack
    means = weighted_means(
        blocks_of(images, 8), labels, weights=np.where(labels == 2, 0, weights), n_bins=6
    )
    assert (means[[2, 4, 5]] == 0).all()
    assert (means[[0, 1, 3]] > 90).all()


def test_a_sample_without_weight_or_bin_cannot_spoil_a_mean(stack):
    images, labels, weights = stack
    spoilt = np.where((labels == -1)[:, None, None], np.nan, images)
    means = weighted_means(blocks_of(spoilt, 8), labels, weights=weights, n_bins=4)
    assert np.isfinite(means).all()


def test_small_changes_on_a_large_offset_survive_many_samples():
    images = 1e4 + np.tile([0.0, 0.01], 5000).astype(np.float64)[:, None]
    means = weighted_means(
        blocks_of(images, 100), np.tile([0, 1], 5000), weights=np.ones(10_000), n_bins=2
    )
    assert means[1, 0] - means[0, 0] == pytest.approx(0.01, abs=1e-3)


def test_the_order_of_the_samples_does_not_matter(stack, rng):
    images, labels, weights = stack
    order = rng.permutation(50)
    shuffled = weighted_means(
        blocks_of(images[order], 9), labels[order], weights=weights[order], n_bins=4
    )
    np.testing.assert_allclose(
        shuffled, weighted_means(blocks_of(images, 9), labels, weights=weights, n_bins=4), rtol=1e-6
    )


def test_no_samples_are_refused(stack):
    images, labels, weights = stack
    with pytest.raises(ValueError, match="must hold samples"):
        weighted_means(ImageArray(images[:0]), labels[:0], weights=weights[:0], n_bins=4)


def test_weights_of_other_samples_are_refused(stack):
    images, labels, weights = stack
    with pytest.raises(ValueError, match="one entry for each sample"):
        weighted_means(blocks_of(images, 10), labels, weights=weights[:3], n_bins=4)


@pytest.mark.parametrize("n_blocks", [1, 2, 100])
def test_any_piece_of_a_worker_gives_the_same_means(stack, n_blocks):
    images, labels, weights = stack
    how = {"weights": weights, "n_bins": 4}
    means = weighted_means(blocks_of(images, 7), labels, n_blocks=n_blocks, **how)
    expected = weighted_means(blocks_of(images, 50), labels, **how)
    np.testing.assert_allclose(means, expected, rtol=1e-6)
