import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import eigh

from manifactor import datasets
from manifactor.spectral.filter_plan import DensitySettings, spectral_density
from manifactor.spectral.kernel import affinity
from manifactor.spectral.neighbors import neighbor_graph
from manifactor.spectral.operators import HostOperator


@pytest.fixture(scope="module", params=["torus", "sphere_sphere"])
def matrix(request):
    X, _ = datasets.sample(request.param, 1500, random_state=0)
    return affinity(neighbor_graph(X, 40)).normalized()


@pytest.mark.slow
def test_the_density_of_a_spectrum_counts_its_eigenvalues(matrix):
    exact = eigh(matrix.toarray(), eigvals_only=True)[::-1]
    with HostOperator(matrix) as operator:
        values, counts = spectral_density(operator, 60, rng=np.random.default_rng(0))
    for count in (20, 60):
        level = np.interp(count, counts, values)
        assert abs((exact > level).sum() - count) < 5 * np.sqrt(2 * count / 8)


def test_more_steps_are_taken_until_the_level_is_resolved(matrix):
    settings = DensitySettings(probes=4, steps=10, most_steps=60, resolved_nodes=5)
    nodes = []
    with HostOperator(matrix) as operator:
        for count in (np.inf, 0.0):
            rng = np.random.default_rng(0)
            values, _ = spectral_density(operator, count, rng=rng, settings=settings)
            nodes.append(len(values))
    assert nodes == [4 * 10, 4 * 60]


def test_vectors_that_span_an_invariant_subspace_end_the_process():
    with HostOperator(sp.csr_array(sp.diags_array([1.0, 0.5, 0.5, 0.0]))) as operator:
        values, counts = spectral_density(operator, 2.0, rng=np.random.default_rng(0))
    assert np.isfinite(values).all()
    assert np.isfinite(counts).all()
