"""A fit of a torus and empty axes."""

import pytest

from manifactor import ManifoldFactorizer, datasets
from manifactor.views import plots

pytest.importorskip("matplotlib")


@pytest.fixture(scope="package")
def torus():
    X, _ = datasets.sample("torus", 1500, random_state=0)
    return ManifoldFactorizer(random_state=0).fit(X)


@pytest.fixture
def ax():
    return plots.new_figure(3, 3).subplots()
