import pytest

from manifactor.spectral.forecast import Forecast, available_memory, forecast, require_memory


def cost(n_samples, n_features, search="auto"):
    return forecast(n_samples, n_features, n_neighbors=64, n_functions=100, search=search)


def test_comparing_all_pairs_takes_longer():
    assert cost(10**6, 9, "brute").seconds > 2 * cost(10**6, 9).seconds


def test_all_neighbours_take_memory_that_grows_with_the_square():
    small, large = (forecast(n, 3, n_neighbors="all", n_functions=50) for n in (1000, 2000))
    assert large.memory == pytest.approx(4 * small.memory)
    assert small.memory == 2.5 * 8 * 1000**2


def test_a_fit_may_take_the_memory_that_is_available(monkeypatch):
    monkeypatch.setattr("manifactor.spectral.forecast.available_memory", lambda: 5e8)
    with pytest.raises(MemoryError, match=r"10 samples need about 1\.0 GB and 5 s"):
        require_memory(Forecast(1e9, 5.0), 10)
    require_memory(Forecast(4e8, 5.0), 10)


def test_less_than_a_tenth_of_a_gigabyte_is_given_in_megabytes():
    sizes = [str(Forecast(memory, 1.0)) for memory in (2e5, 2.4e6, 99e6, 1e8)]
    assert [size.partition(" and ")[0] for size in sizes] == [
        "about 1 MB",
        "about 2 MB",
        "about 99 MB",
        "about 0.1 GB",
    ]


def test_a_forecast_reads_in_seconds_minutes_or_hours():
    texts = [str(Forecast(1e9, seconds)) for seconds in (0.1, 89, 91, 5399, 5401)]
    assert [text.partition(" and ")[2] for text in texts] == [
        "1 s",
        "89 s",
        "2 minutes",
        "90 minutes",
        "1.5 hours",
    ]


def test_a_forecast_grows_with_the_samples_and_reads_as_prose():
    small, large = (forecast(n, 4, n_neighbors=64, n_functions=100) for n in (10_000, 1_000_000))
    assert 50 < large.memory / small.memory < 200
    assert 100 < large.seconds / small.seconds < 1000
    assert str(Forecast(5.8e9, 540)) == "about 5.8 GB and 9 minutes"
    assert str(Forecast(1e8, 8000)) == "about 0.1 GB and 2.2 hours"


def test_what_does_not_fit_into_memory_is_refused_with_what_would():
    huge = forecast(10**9, 4, n_neighbors=64, n_functions=100)
    with pytest.raises(
        MemoryError, match=r"the fit must fit into memory; .* Fit at most \d+ samples"
    ):
        require_memory(huge, 10**9)
    require_memory(Forecast(0.5 * available_memory(), 1), 10)
