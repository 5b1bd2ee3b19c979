import numpy as np
import pytest

from manifactor.cryoem import components as volumes
from manifactor.cryoem.components import volume_components
from manifactor.cryoem.files.mrc import write_volume
from manifactor.cryoem.files.stacks import volume_series

N, SIDE = 60, 12


@pytest.fixture
def turn(rng):
    return rng.uniform(0, 2 * np.pi, size=N)


@pytest.fixture
def source(tmp_path, turn, rng):
    return spots(tmp_path, turn, rng, side=SIDE)


def spots(tmp_path, turn, rng, *, side):
    """Volumes in which a spot goes round a circle, with a little noise."""
    axis = np.linspace(-1, 1, side)
    z, y, x = axis[:, None, None], axis[:, None], axis
    for i, angle in enumerate(turn):
        centre = 0.4 * np.cos(angle), 0.4 * np.sin(angle)
        spot = np.exp(-8 * (x - centre[0]) ** 2 - 8 * (y - centre[1]) ** 2 - 8 * z**2)
        noise = 0.02 * rng.normal(size=spot.shape)
        write_volume(tmp_path / f"v{i}.mrc", spot + noise, pixel_size=2)
    return volume_series(tmp_path)


def explained(samples, target):
    """Share of the target's variance that a linear map of the samples explains."""
    columns = np.column_stack([np.ones(len(samples)), samples])
    left = target - columns @ np.linalg.lstsq(columns, target, rcond=None)[0]
    return 1 - left.var() / target.var()


def test_components_tell_where_the_spot_is(source, turn):
    found = volume_components(source)
    for target in (np.cos(turn), np.sin(turn)):
        assert explained(found.samples, target) > 0.99
    assert found.variance > 0.9
    assert (np.diff(found.signal_to_noise) < 0).all()
    assert found.files == tuple(f"v{i}.mrc" for i in range(N))


@pytest.mark.parametrize("max_side", [32, 8])
def test_odd_boxes_have_components_too(tmp_path, turn, rng, max_side, monkeypatch):
    monkeypatch.setattr(volumes, "MAX_SIDE", max_side)
    found = volume_components(spots(tmp_path, turn, rng, side=13))
    for target in (np.cos(turn), np.sin(turn)):
        assert explained(found.samples, target) > 0.99


def test_downsampled_volumes_give_the_same_components(source, monkeypatch):
    whole = volume_components(source)
    monkeypatch.setattr(volumes, "MAX_SIDE", 8)
    coarse = volume_components(source)
    for j in range(2):
        own = np.corrcoef(whole.samples[:, j], coarse.samples[:, j])[0, 1]
        assert abs(own) > 0.95


def test_the_number_of_components_is_bounded(source, monkeypatch):
    monkeypatch.setattr("manifactor.cryoem.components.MAX_COMPONENTS", 2)
    assert volume_components(source).samples.shape == (N, 2)


def test_components_that_hold_little_of_the_variance_are_called_doubtful(
    tmp_path, rng, monkeypatch
):
    monkeypatch.setattr("manifactor.cryoem.components.MAX_COMPONENTS", 3)
    for i in range(N):
        volume = rng.normal(size=(SIDE, SIDE, SIDE))
        write_volume(tmp_path / f"v{i}.mrc", volume, pixel_size=2)
    found = volume_components(volume_series(tmp_path))
    assert found.variance < 0.5
    assert str(found).endswith("so the result may be doubtful")


def test_volumes_that_are_all_the_same_are_refused(tmp_path):
    for i in range(3):
        write_volume(tmp_path / f"v{i}.mrc", np.ones((8, 8, 8)), pixel_size=1)
    with pytest.raises(ValueError, match="the volumes must differ"):
        volume_components(volume_series(tmp_path))
