"""The cost of a fit of all views."""

import pytest

from manifactor.runs import all_views_cost
from manifactor.runs.all_views_cost import forecast_all_views

# Images, pixels, seconds of the CPU and gigabytes of fits of the simulated channel.
MEASURED = [
    (4_000, 48, 75, 0.98),
    (20_000, 48, 185, 1.28),
    (100_000, 256, 336, 1.58),
]


@pytest.mark.parametrize(("n_images", "size", "seconds", "gigabytes"), MEASURED)
def test_the_forecast_is_near_what_was_measured(
    monkeypatch, n_images, size, seconds, gigabytes
):
    monkeypatch.setattr(all_views_cost, "cores", lambda: 1)
    cost = forecast_all_views(n_images, size)
    assert 0.67 < cost.seconds / seconds < 1.5
    assert 0.8 < cost.memory / (1e9 * gigabytes) < 1.25


def test_the_forecast_counts_reading_placing_and_cores(monkeypatch):
    monkeypatch.setattr(all_views_cost, "cores", lambda: 1)
    # Beyond those that volumes are learned from, images are read, placed and written.
    many, more = (forecast_all_views(n, 64).seconds for n in (10**5, 2 * 10**5))
    large = forecast_all_views(10**5, 256).seconds
    assert more > many + 20
    assert large > many + 60
    monkeypatch.setattr(all_views_cost, "cores", lambda: 4)
    assert forecast_all_views(10**5, 64).seconds < 0.6 * many
