import numpy as np
import pytest

from manifactor import datasets
from manifactor.factoring.gradients import looks
from manifactor.factoring.gradients.looks import take_looks
from manifactor.spectral.pipeline import diffuse


@pytest.fixture(scope="module")
def diffusion():
    X, _ = datasets.sample("torus", 200, random_state=0)
    return diffuse(X, rng=np.random.default_rng(0))


def test_all_samples_and_two_halves_are_looked_at(diffusion, rng):
    whole, *halves = take_looks(diffusion, rng=rng)
    assert len(whole.part) == 200
    assert sorted(np.concatenate([half.part for half in halves])) == list(range(200))


def test_a_half_with_one_function_is_left_out(diffusion, rng, monkeypatch):
    spectrum = looks.laplacian_spectrum

    def constant_only(*args, **kwargs):
        return spectrum(*args, **kwargs).lowest(1)

    monkeypatch.setattr(looks, "laplacian_spectrum", constant_only)
    (whole,) = take_looks(diffusion, rng=rng)
    assert len(whole.part) == 200
