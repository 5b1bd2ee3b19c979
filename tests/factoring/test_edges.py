import numpy as np

from manifactor.factoring.edges import has_edge

from .places import ring


def white(samples):
    """Samples of mean 0 and unit covariance."""
    left = np.linalg.svd(samples - samples.mean(axis=0), full_matrices=False)[0]
    return left * np.sqrt(len(left))


def test_an_interval_has_an_edge_and_a_circle_a_hole_and_noise_has_neither(rng):
    noise = rng.normal(size=(1000, 3))
    assert not has_edge(white(noise), 0.4)
    assert has_edge(white(np.c_[noise, rng.uniform(size=1000)]), 0.4)
    assert has_edge(white(np.c_[noise, ring(rng.uniform(0, 2 * np.pi, 1000))]), 0.4)


def test_noise_in_many_directions_has_no_edge():
    draws = np.random.default_rng(1).normal(size=(10, 500, 20))
    assert not any(has_edge(white(noise), 0.4) for noise in draws)
