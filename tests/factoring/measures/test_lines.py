import numpy as np
import pytest

from manifactor.factoring.measures.placed_samples import along_line


@pytest.mark.parametrize("direction", [[1], [1, 2, 3], [0, 1], [-2, 1e-9]])
@pytest.mark.parametrize("dtype", [float, np.float32])
def test_multiples_of_one_column_lie_on_a_line(rng, direction, dtype):
    t = rng.normal(size=1000)
    X = (t[:, None] * direction + np.arange(len(direction))).astype(dtype)
    along = along_line(X.astype(float), np.arange(1000))
    assert abs(np.corrcoef(along, t)[0, 1]) > 1 - 1e-9


@pytest.mark.parametrize("row", [0, 1, 500, 999])
def test_one_sample_beside_a_line_is_seen(rng, row):
    X = rng.uniform(size=(1000, 1)) * [1.0, 2.0, 3.0]
    X[row, 0] += 1e-3
    assert along_line(X, np.arange(1000)) is None


def test_samples_that_do_not_count_may_lie_anywhere(rng):
    X = rng.uniform(size=(300, 1)) * [1.0, 2.0]
    X[7] = 5.0
    rows = np.delete(np.arange(300), 7)
    np.testing.assert_allclose(np.abs(along_line(X, rows)), np.linalg.norm(X[rows] - X[0], axis=1))
