import numpy as np

from manifactor.factoring.prediction import EdgeSettings, has_edge

from .places import ring


def test_an_interval_has_an_edge_and_a_circle_a_hole_and_noise_has_neither(rng):
    noise = rng.normal(size=(1000, 3))
    assert not has_edge(noise)
    assert has_edge(np.c_[noise, rng.uniform(size=1000)])
    assert has_edge(np.c_[noise, ring(rng.uniform(0, 2 * np.pi, 1000))])


def test_noise_in_many_directions_has_no_edge():
    draws = np.random.default_rng(1).normal(size=(10, 500, 20))
    assert not any(has_edge(noise) for noise in draws)


def test_edges_are_looked_for_in_main_directions_only(rng):
    noise, strip = rng.normal(size=(1000, 3)), rng.uniform(size=1000)
    both = np.c_[noise, 0.5 * strip]
    assert has_edge(both)
    assert not has_edge(both, settings=EdgeSettings(thick=0.1))
    assert not has_edge(both, settings=EdgeSettings(most_directions=3))


def test_nothing_has_no_edge():
    assert not has_edge(np.ones((100, 3)))
