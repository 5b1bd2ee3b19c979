import numpy as np
import pytest

from manifactor.datasets.objects import Scene, Shifting, Turning

LEFT, RIGHT = (-0.5, 0.0), (0.5, 0.0)


def drawn(scene, n_samples=300):
    return scene(n_samples, np.random.RandomState(0))


def variances(X):
    """Variance of the left and of the right half of 24 x 24 images."""
    by_pixel = X.reshape(-1, 24, 24).var(axis=0)
    return by_pixel[:, :12].sum(), by_pixel[:, 12:].sum()


@pytest.mark.parametrize("ratio", [1, 30])
def test_variances_of_objects_apart_have_the_ratio(ratio):
    # Small enough that none of the bright object reaches into the other half.
    objects = (Turning(LEFT, 0.4), Shifting(RIGHT, 0.4))
    X, truth = drawn(Scene(objects, ratio))
    assert X.shape == (300, 576)
    assert [t.shape[1] for t in truth] == [2, 1]
    bright, dim = variances(X)
    assert bright / dim == pytest.approx(ratio, rel=0.05)


def test_variances_between_the_first_and_the_last_object_are_evenly_spaced():
    places = [(-0.5, -0.5), (0.5, -0.5), (0.0, 0.5)]
    scene = Scene(tuple(Turning(place, 0.4) for place in places), 100)
    X, _ = drawn(scene)
    rows = X.reshape(-1, 24, 24).var(axis=0)
    thirds = [rows[:12, :12].sum(), rows[:12, 12:].sum(), rows[12:].sum()]
    np.testing.assert_allclose(thirds, [1, 0.1, 0.01], rtol=0.2)


def test_an_image_depends_on_both_objects_and_on_nothing_else():
    scene = Scene((Turning(LEFT, 0.7), Turning(RIGHT, 0.7)), 1.0)
    X, truth = drawn(scene)
    again, same = drawn(scene)
    np.testing.assert_array_equal(X, again)
    np.testing.assert_array_equal(truth[0], same[0])
    assert len(np.unique(X.round(9), axis=0)) == len(X)


def test_what_lies_behind_the_first_object_is_not_seen():
    behind = Shifting((0.0, 0.0), 0.3)
    alone, _ = drawn(Scene((Turning((0.0, 0.0), 0.7), behind), 1.0))
    covered, _ = drawn(Scene((Turning((0.0, 0.0), 0.7), behind), 1.0, occluding=True))
    assert (covered <= alone + 1e-12).all()
    assert (covered < 0.5 * alone).any()


def test_noise_is_relative_to_the_deviation_of_the_pixels():
    objects = (Turning(LEFT, 0.7), Turning(RIGHT, 0.7))
    clean, _ = drawn(Scene(objects, 1.0))
    noisy, _ = drawn(Scene(objects, 1.0, noise=0.5))
    deviation = np.sqrt(clean.var(axis=0).mean())
    assert np.std(noisy - clean) == pytest.approx(0.5 * deviation, rel=0.02)
