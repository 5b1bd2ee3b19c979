import numpy as np

from manifactor import DiffusionMap, datasets
from manifactor._support.parameters import given
from manifactor.spectral.spectrum import Spectrum


def test_clusters_hold_the_repeated_eigenvalues():
    X, _ = datasets.sample("equal_torus", 2000, random_state=0)
    clusters = DiffusionMap(9, random_state=0).fit(X).spectrum_.clusters
    assert [len(c) for c in clusters] == [1, 4, 4]


def test_well_separated_eigenvalues_are_clusters_of_one():
    n = 10000
    s = Spectrum(
        np.array([0, 1.0, 2.0, 3.0]),
        np.ones((n, 4)),
        np.full(n, 1 / n),
        np.zeros(4),
        0.01,
        given("exact"),
    )
    assert [c.tolist() for c in s.clusters] == [[0], [1], [2], [3]]
