"""The cost of a fit of all views."""

import pytest

from manifactor.runs.cost import forecast_all_views

# Images, pixels, seconds of the CPU and gigabytes of fits of the simulated channel.
MEASURED = [(4_000, 48, 75, 0.98), (20_000, 48, 185, 1.28), (100_000, 256, 336, 1.58)]


@pytest.mark.parametrize(("n_images", "size", "seconds", "gigabytes"), MEASURED)
def test_the_forecast_is_near_what_was_measured(n_images, size, seconds, gigabytes):
    cost = forecast_all_views(n_images, size, n_cores=1)
    assert 0.67 < cost.seconds / seconds < 1.5
    assert 0.8 < cost.memory / (1e9 * gigabytes) < 1.25


def test_the_forecast_counts_reading_placing_and_cores():
    # Beyond those that volumes are learned from, images are read, placed and written.
    def seconds(n_images, size, n_cores=1):
        return forecast_all_views(n_images, size, n_cores=n_cores).seconds

    many, more, large = seconds(10**5, 64), seconds(2 * 10**5, 64), seconds(10**5, 256)
    assert more > many + 20
    assert large > many + 60
    assert seconds(10**5, 64, n_cores=4) < 0.6 * many


def test_images_are_divided_over_workers_and_volumes_are_not():
    one, four = (forecast_all_views(10**6, 128, n_workers=n, n_cores=1) for n in (1, 4))
    before, after = ({part.name: part for part in cost.parts} for cost in (one, four))
    assert after["reading"].seconds == pytest.approx(before["reading"].seconds / 4)
    assert before["placing"].seconds / 4 < after["placing"].seconds
    assert after["factors"].seconds == before["factors"].seconds
    assert four.worker_memory < one.memory / 2
