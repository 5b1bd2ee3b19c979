"""Memory and time of a fit on a GPU."""

from types import SimpleNamespace

import pytest

from manifactor import ManifoldFactorizer
from manifactor.spectral.forecast import (
    Forecast,
    available_on,
    forecast_on_device,
    is_gpu,
    require_device_memory,
)


def cost(n_samples, **counts):
    counts = {"n_neighbors": 64, "n_functions": 100, **counts}
    return forecast_on_device(n_samples, 4, **counts)


# Samples of a torus and seconds on an H200.
@pytest.mark.parametrize(("n_samples", "seconds"), [(10**5, 0.9), (10**6, 4.5), (10**7, 56)])
def test_seconds_are_near_those_that_were_measured(n_samples, seconds):
    assert 0.67 < cost(n_samples).seconds / seconds < 1.5


def test_memory_is_near_that_which_was_measured():
    assert 0.8 < cost(10**7).device_memory / 75e9 < 1.25


def test_memory_grows_with_samples_neighbours_and_functions():
    usual = cost(10**6).device_memory
    assert cost(2 * 10**6).device_memory == pytest.approx(2 * usual)
    assert cost(10**6, n_neighbors=128).device_memory > 1.5 * usual
    assert cost(10**6, n_functions=400).device_memory > 1.5 * usual


def test_a_fit_beyond_the_device_is_refused_with_what_would_fit():
    needed = cost(10**7)
    require_device_memory(needed, 10**7, 2 * needed.device_memory)
    with pytest.raises(MemoryError, match=r"device; .* Fit at most 2000000 samples"):
        require_device_memory(needed, 10**7, 0.2 * needed.device_memory)


@pytest.mark.parametrize(
    ("device", "expected"),
    [("cuda", True), ("cuda:1", True), ("torch:cuda", True), ("torch:cpu", False)],
)
def test_only_gpus_have_a_cost_of_their_own(device, expected):
    assert is_gpu(device) == expected


def test_both_memories_are_named():
    text = str(Forecast(4e9, 7, device_memory=7.5e9))
    assert text == "about 4.0 GB, 7.5 GB on the device, and 7 s"


@pytest.fixture
def gpu(monkeypatch):
    """A GPU of 8 GB that can only be asked for its memory.

    Torch holds 6 GB, of which tensors use 1.
    """
    cuda = SimpleNamespace(
        mem_get_info=lambda device: (3e9, 8e9),
        memory_reserved=lambda device: 6e9,
        memory_allocated=lambda device: 1e9,
    )
    torch = SimpleNamespace(cuda=cuda)
    monkeypatch.setattr("manifactor.spectral.forecast.extra", lambda _: torch)
    monkeypatch.setattr("manifactor.spectral.settings.require_device", str)


def test_a_factorizer_refuses_what_exceeds_its_gpu(gpu):
    assert available_on("cuda") == pytest.approx(7.2e9)
    fit = ManifoldFactorizer(device="cuda")
    assert fit.forecast_shape(100_000, 4).device_memory < 7.2e9
    with pytest.raises(MemoryError, match="the memory of the device; 2000000 samples"):
        fit.forecast_shape(2_000_000, 4)
