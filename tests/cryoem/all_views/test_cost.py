import pytest

from manifactor.cryoem.all_views.fitting import forecast_all_views


@pytest.fixture(autouse=True)
def one_core(monkeypatch):
    monkeypatch.setattr("manifactor.cryoem.all_views.fitting.cores", lambda: 1)


# Images and gigabytes of fits of the simulated channel.
@pytest.mark.parametrize(("n_images", "gigabytes"), [(4000, 0.98), (20_000, 1.28), (10**5, 1.58)])
def test_the_forecast_is_near_what_was_measured(n_images, gigabytes):
    assert 0.8 < forecast_all_views(n_images).memory / (1e9 * gigabytes) < 1.25


def test_workers_hold_their_share_of_the_images():
    alone, divided = forecast_all_views(10**6), forecast_all_views(10**6, n_workers=4)
    assert divided.memory < alone.memory
    assert divided.worker_memory < alone.memory / 2
