"""Memory of a fit, on the CPU and on a GPU."""

from types import SimpleNamespace

import pytest

from manifactor import ManifoldFactorizer
from manifactor.operators.forecast import (
    Forecast,
    available_memory,
    available_on,
    forecast,
    forecast_on_device,
    require_device_memory,
    require_memory,
)


def cost(n_samples, n_neighbors=64):
    return forecast(n_samples, 9, n_neighbors=n_neighbors, n_functions=100)


def test_a_forecast_grows_with_the_samples_and_the_neighbours():
    small, large = cost(10_000), cost(1_000_000)
    assert 50 < large.memory / small.memory < 200
    small, large = cost(1000, n_neighbors="all"), cost(2000, n_neighbors="all")
    assert large.memory == pytest.approx(4 * small.memory)


def test_a_forecast_reads_as_prose():
    assert str(Forecast(5.8e9)) == "about 5.8 GB"
    assert str(Forecast(2.4e6, 2e9)) == "about 2 MB and 2.0 GB on the device"


def test_what_does_not_fit_into_memory_is_refused_with_what_would():
    with pytest.raises(MemoryError, match=r"must fit into memory; .* Fit at most \d+ samples"):
        require_memory(cost(10**9), 10**9)
    require_memory(Forecast(0.5 * available_memory()), 10)


def gpu_cost(n_samples):
    return forecast_on_device(n_samples, 4, n_neighbors=64, n_functions=100)


def test_a_fit_beyond_the_device_is_refused_with_what_would_fit():
    needed = gpu_cost(10**7)
    assert 0.8 < needed.device_memory / 75e9 < 1.25  # as measured
    require_device_memory(needed, 10**7, 2 * needed.device_memory)
    with pytest.raises(MemoryError, match=r"device; .* Fit at most 2000000 samples"):
        require_device_memory(needed, 10**7, 0.2 * needed.device_memory)


def test_a_factorizer_refuses_what_exceeds_its_gpu(monkeypatch):
    # A GPU of 8 GB: torch holds 6, of which tensors use 1.
    cuda = SimpleNamespace(
        mem_get_info=lambda device: (3e9, 8e9),
        memory_reserved=lambda device: 6e9,
        memory_allocated=lambda device: 1e9,
    )
    torch = SimpleNamespace(cuda=cuda)
    monkeypatch.setattr("manifactor.operators.forecast.extra", lambda _: torch)
    monkeypatch.setattr("manifactor.operators.operator.require_device", str)
    assert available_on("cuda") == pytest.approx(7.2e9)
    fit = ManifoldFactorizer(device="cuda")
    assert fit.forecast_shape(100_000, 4).device_memory < 7.2e9
    with pytest.raises(MemoryError, match="the memory of the device; 2000000 samples"):
        fit.forecast_shape(2_000_000, 4)
