import numpy as np
import pytest

from manifactor import datasets
from manifactor._support.stages import Stages
from manifactor.spectral.laplacian import laplacian_spectrum
from manifactor.spectral.neighbors import neighbor_graph
from manifactor.spectral.parts import PartSettings, draw_parts, part_size, with_spare
from manifactor.spectral.pipeline import diffuse
from manifactor.spectral.settings import DiffusionSettings

# Few samples treated as many.
SMALL_PARTS = DiffusionSettings(parts=PartSettings(parted_above=2000, smallest=1000))


@pytest.mark.parametrize(
    ("n_samples", "size"), [(60_001, 10_000), (400_000, 50_000), (10_000_000, 100_000)]
)
def test_a_part_is_an_eighth_of_the_samples_within_limits(n_samples, size):
    assert part_size(n_samples) == size


@pytest.mark.slow
def test_parts_are_disjoint_and_see_the_spectrum_of_the_whole():
    X, _ = datasets.sample("torus", 50_000, random_state=0)
    found = draw_parts(
        X, 12, search=lambda some: neighbor_graph(some, 64), rng=np.random.default_rng(0)
    )
    assert [len(part.rows) for part in found] == [10_000, 10_000]
    assert not np.intersect1d(found[0].rows, found[1].rows).size
    exact = datasets.exact_eigenvalues("torus", 12)
    for part in found:
        np.testing.assert_allclose(part.spectrum.eigenvalues[1:12], exact[1:], rtol=0.05)


@pytest.mark.slow
def test_a_large_part_starts_from_a_part_of_its_own():
    X, _ = datasets.sample("torus", 12_000, random_state=0)
    searched = []

    def search(some):
        searched.append(len(some))
        return neighbor_graph(some, 64)

    settings = PartSettings(smallest=2000, divisor=2, nested_above=4000)
    found = draw_parts(X, 12, search=search, rng=np.random.default_rng(0), settings=settings)
    assert searched == [6000, 3000, 6000, 3000]
    for part in found:
        assert len(part.spectrum.functions) == len(part.rows) == 6000
        alone = laplacian_spectrum(part.affinity, 12, rng=np.random.default_rng(1))
        np.testing.assert_allclose(
            part.spectrum.eigenvalues[1:12], alone.eigenvalues[1:], rtol=1e-3
        )


def test_a_start_has_functions_beyond_those_wanted():
    assert with_spare(100, 10_000) == 140
    assert with_spare(10, 10) == 10


@pytest.mark.slow
def test_many_samples_are_solved_with_the_help_of_parts():
    X, _ = datasets.sample("torus", 3000, random_state=0)
    stages = Stages()
    helped = diffuse(X, SMALL_PARTS, stages=stages, rng=np.random.default_rng(0))
    assert "parts" in stages.timings
    assert [len(part.rows) for part in helped.parts] == [1000, 1000]
    plain = diffuse(X, rng=np.random.default_rng(0))
    assert plain.parts == ()
    np.testing.assert_allclose(
        helped.spectrum.eigenvalues[:20], plain.spectrum.eigenvalues[:20], rtol=1e-3
    )
