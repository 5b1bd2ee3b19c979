import numpy as np
import pytest

from manifactor import datasets
from manifactor.datasets.near_products import CutCorner, Hole, LatticeTorus, Stadium


@pytest.mark.parametrize(
    ("shape", "area"),
    [
        (CutCorner((2.0, 1.0), 0.5), 2 - 0.125),
        (Hole((2.0, 1.0), 0.3), 2 - np.pi * 0.09),
        (Stadium((2.0, 1.0)), 1 + np.pi / 4),
    ],
)
def test_carved_rectangles_lack_as_much_area_as_they_say(shape, area):
    grid = np.stack(np.meshgrid(*[(np.arange(400) + 0.5) / 400] * 2), axis=-1)
    inside = shape.contains(grid.reshape(-1, 2) * shape.sides)
    assert 2 * inside.mean() == pytest.approx(area, rel=0.003)
    X, (first, second) = shape(500, np.random.RandomState(0))
    assert shape.contains(X).all()
    np.testing.assert_allclose(X, np.hstack([first, second]) * shape.sides)


@pytest.mark.parametrize("degrees", [65.0, 80.0, 90.0, 110.0])
def test_the_lattice_torus_is_isometric(degrees):
    torus = LatticeTorus(degrees, length=1.3)
    X, places = torus(200, np.random.RandomState(0))
    turns = np.array([np.arctan2(p[:, 1], p[:, 0]) for p in places]).T / (2 * np.pi)
    # Nearby on the torus: the shortest of the differences by lattice vectors.
    step = turns[:, None] - turns
    flat = np.linalg.norm((step - step.round()) @ torus.lattice, axis=2)
    straight = np.linalg.norm(X[:, None] - X, axis=2)
    near = (flat > 0) & (flat < 0.05)
    assert near.sum() > 50
    np.testing.assert_allclose(straight[near], flat[near], rtol=0.01)


def test_near_products_have_two_true_factors():
    for name in datasets.FIELD["near products"]:
        _, truth = datasets.sample(name, 20, random_state=0)
        assert len(truth) == 2
