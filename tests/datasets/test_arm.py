import numpy as np

from manifactor.datasets.arm import ArmImages


def test_the_hand_is_the_bright_pixel_farthest_along_the_forearm():
    arm = ArmImages(width=0.03, n_pixels=101, noise=0.0)
    X, (upper, fore) = arm(20, np.random.RandomState(0))
    grid = np.linspace(-1, 1, arm.n_pixels)
    pixels = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    hand = arm.lengths[0] * upper + arm.lengths[1] * fore
    at_hand = ((pixels - hand[:, None]) ** 2).sum(axis=2).argmin(axis=1)
    assert (X[np.arange(20), at_hand] > 0.85).all()
    beyond = hand + 0.15 * fore
    past_hand = ((pixels - beyond[:, None]) ** 2).sum(axis=2).argmin(axis=1)
    along_fore = (upper * fore).sum(axis=1)
    # Unless the forearm is folded back onto the upper arm.
    assert (X[np.arange(20), past_hand][along_fore > -0.5] < 0.01).all()


def test_images_are_at_most_as_bright_as_one_link():
    X, truth = ArmImages(noise=0.0)(100, np.random.RandomState(0))
    assert X.max() <= 1
    assert [true.shape for true in truth] == [(100, 2), (100, 2)]
