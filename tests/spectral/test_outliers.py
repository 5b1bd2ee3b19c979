import numpy as np
import pytest

from manifactor import DisconnectedGraphWarning, datasets
from manifactor.spectral.kernel import affinity
from manifactor.spectral.laplacian import (
    OutlierSettings,
    isolated,
    outlier_choice,
    warn_of_weak_links,
    without_outliers,
)
from manifactor.spectral.neighbors import neighbor_graph

FAR = np.array([[40.0, 0, 0, 0], [0, 40.0, 0, 0]])


@pytest.fixture(scope="module")
def samples():
    X, _ = datasets.sample("torus", 800, random_state=0)
    return np.vstack([X, FAR])


@pytest.fixture(scope="module")
def graph(samples):
    return neighbor_graph(samples, 30)


def test_samples_far_from_all_others_are_isolated(graph):
    alone = isolated(affinity(graph))
    assert np.flatnonzero(alone).tolist() == [800, 801]


def test_outliers_leave_graph_and_walk(samples, graph):
    left, walk = without_outliers(samples, graph, affinity(graph))
    assert np.flatnonzero(left.outliers).tolist() == [800, 801]
    assert len(walk.degree) == 800
    assert not isolated(walk).any()


def test_the_walk_is_made_anew_as_it_was_made_before(samples, graph):
    def walk_of(graph):
        return affinity(graph, bandwidth=0.3, density_correction=0.5)

    left, walk = without_outliers(samples, graph, walk_of(graph), walk_of=walk_of)
    np.testing.assert_array_equal(walk.degree, walk_of(left).degree)
    assert walk.bandwidth.value == 0.3


def test_many_samples_far_off_are_a_part_of_the_data(samples, graph):
    walk = affinity(graph)
    few = OutlierSettings(most_outliers=1 / 802)
    assert without_outliers(samples, graph, walk, settings=few) == (graph, walk)


def test_the_number_of_outliers_comes_with_the_rule(samples, graph):
    choice = outlier_choice(graph)
    assert (choice.value, choice.why) == (0, "no sample is isolated")
    left, _ = without_outliers(samples, graph, affinity(graph))
    choice = outlier_choice(left, settings=OutlierSettings(least_company=1.25))
    assert choice.value == 2
    assert choice.why == (
        "left out: all their neighbours together weigh less than 1.25 in the kernel"
    )


def test_weak_links_are_warned_of(graph):
    with pytest.warns(
        DisconnectedGraphWarning,
        match="fall into 3 components, the largest of 800 .* raise `bandwidth`",
    ):
        warn_of_weak_links(affinity(graph, bandwidth=0.3))
    warn_of_weak_links(affinity(graph, bandwidth=1e4))
