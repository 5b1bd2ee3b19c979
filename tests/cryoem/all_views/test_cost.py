import pytest

from manifactor.cryoem.all_views.fitting import forecast_all_views


@pytest.fixture
def on_cores(monkeypatch):
    """Set the number of cores; at first one."""

    def change(count):
        monkeypatch.setattr("manifactor.runs.cost.cores", lambda: count)

    change(1)
    return change


# Images, pixels, seconds of the CPU and gigabytes of fits of the simulated channel.
MEASURED = [(4_000, 48, 75, 0.98), (20_000, 48, 185, 1.28), (100_000, 256, 336, 1.58)]


@pytest.mark.parametrize(("n_images", "size", "seconds", "gigabytes"), MEASURED)
def test_the_forecast_is_near_what_was_measured(n_images, size, seconds, gigabytes, on_cores):
    cost = forecast_all_views(n_images, size)
    assert 0.67 < cost.seconds / seconds < 1.5
    assert 0.8 < cost.memory / (1e9 * gigabytes) < 1.25


def test_the_forecast_counts_reading_placing_and_cores(on_cores):
    # Beyond those that volumes are learned from, images are read, placed and written.
    def seconds(n_images, size):
        return forecast_all_views(n_images, size).seconds

    many, more, large = seconds(10**5, 64), seconds(2 * 10**5, 64), seconds(10**5, 256)
    assert more > many + 20
    assert large > many + 60
    on_cores(4)
    assert seconds(10**5, 64) < 0.6 * many
