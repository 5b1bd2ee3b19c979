import pickle
from io import BytesIO
from types import SimpleNamespace

import numpy as np
import pytest

from manifactor.runs.bins import bin_labels
from manifactor.runs.bridges import BRIDGES, PointSettings, export, steady_samples
from manifactor.runs.places import Place

N = 900


@pytest.fixture
def places(rng):
    return [Place(each, "interval") for each in rng.uniform(size=(2, N))]


@pytest.fixture
def run(tmp_path, places):
    """A run that was fitted to the places themselves."""
    latents = np.column_stack([place.coordinate for place in places])
    np.save(tmp_path / "z.npy", latents)
    return SimpleNamespace(
        place=lambda factor: places[factor - 1],
        places=tuple(places),
        rows=np.arange(N),
        record={"input": str(tmp_path / "z.npy")},
        folder=tmp_path,
    )


def test_points_go_along_the_factor_and_hold_the_other_still(places):
    along, other = places
    labels, centres = bin_labels(along.coordinate, "interval", n_bins=6)
    rows = steady_samples(along, [other], labels, centres)
    assert labels[rows].tolist() == list(range(6))
    assert np.abs(along.coordinate[rows] - centres).max() < 1 / 12
    assert np.ptp(other.coordinate[rows]) < 0.1


def test_without_other_factors_points_are_nearest_to_the_centres(places):
    along = places[0]
    labels, centres = bin_labels(along.coordinate, "interval", n_bins=6)
    rows = steady_samples(along, [], labels, centres)
    nearest = np.abs(along.coordinate - centres[:, None]).argmin(axis=1)
    assert rows.tolist() == nearest.tolist()


def test_a_bin_without_samples_has_no_point():
    along = Place(np.array([0.05, 0.15, 0.9]), "interval")
    labels, centres = bin_labels(along.coordinate, "interval", n_bins=4)
    assert steady_samples(along, [], labels, centres).tolist() == [1, 2]


def test_more_samples_near_the_common_place_give_points_nearer_the_centres(places):
    along, other = places
    labels, centres = bin_labels(along.coordinate, "interval", n_bins=3)

    def off(n_near):
        settings = PointSettings(n_near=n_near)
        rows = steady_samples(along, [other], labels, centres, settings=settings)
        return np.abs(along.coordinate[rows] - centres).max()

    assert off(100) < off(1)


def test_points_and_embedding_are_in_the_coordinates_that_were_fitted(run):
    files = export(run, 1, "recovar", n_bins=4)
    latents = np.load(run.record["input"])
    embedding = pickle.loads(files["embedding.pkl"])
    assert np.array_equal(embedding, latents.astype(np.float32))
    points = np.loadtxt(files["points.txt"].decode().splitlines())
    apart = np.abs(latents[:, None] - points).max(axis=2).min(axis=0)
    assert apart.max() < 1e-7
    assert files["points.txt"] == export(run, 1, "cryodrgn", n_bins=4)["z_values.txt"]


def test_weights_are_one_on_average_in_every_bin(run):
    files = export(run, 1, "aspire", n_bins=3)
    weights = np.lib.format.read_array(BytesIO(files["weights.npy"]))
    assert weights.shape == (N, 3)
    assert ((weights > 0).sum(axis=1) <= 1).all()
    labels, _ = bin_labels(run.places[0].coordinate, "interval", n_bins=3)
    assert weights.sum(axis=0) == pytest.approx(np.bincount(labels), rel=1e-5)


def test_another_program_is_refused_with_those_there_are(run):
    with pytest.raises(ValueError, match=f"one of {', '.join(BRIDGES)}; got eman"):
        export(run, 1, "eman", n_bins=3)


def test_a_factor_of_more_dimensions_has_no_points(run, rng):
    run.place = lambda factor: Place(rng.normal(size=(N, 2)), "other")
    with pytest.raises(ValueError, match="factor 2 has more dimensions"):
        export(run, 2, "cryodrgn", n_bins=3)


def test_a_file_that_has_changed_since_is_refused(run):
    np.save(run.record["input"], np.zeros((N + 1, 2)))
    with pytest.raises(ValueError, match="901 rows now and had 900 when fitted"):
        export(run, 1, "cryodrgn", n_bins=3)


def test_aspire_needs_a_star_file(run):
    run.record["particles"] = "particles.cs"
    with pytest.raises(ValueError, match=r"ASPIRE reads .* particles.cs. Convert"):
        export(run, 1, "aspire", n_bins=3)
