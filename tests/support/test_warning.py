import warnings
from pathlib import Path

import pytest

from manifactor import (
    DisconnectedGraphWarning,
    ManifoldFactorizer,
    SampleWarning,
    datasets,
)
from manifactor._support.warning import held_warnings, issue, parted, warn_caller


def test_a_warning_names_the_line_that_called_the_package():
    X, _ = datasets.sample("torus", 150, random_state=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ManifoldFactorizer(random_state=0).fit(X)
    named = {Path(warning.filename).name for warning in caught}
    assert named == {"test_warning.py"}
    assert SampleWarning in {warning.category for warning in caught}


def test_a_warning_of_no_package_names_the_line_itself():
    with pytest.warns(UserWarning, match="so") as caught:
        warn_caller("so", UserWarning)
    assert Path(caught[0].filename).name == "test_warning.py"


def test_held_warnings_are_issued_once_and_can_be_parted():
    with held_warnings() as held:
        for _ in range(2):
            warn_caller("few", SampleWarning)
        warn_caller("apart", DisconnectedGraphWarning)
    of_graph, others = parted(held, DisconnectedGraphWarning)
    with warnings.catch_warnings(record=True, action="always") as caught:
        issue(others)
    assert [str(each.message) for each in caught] == ["few"]
    assert [str(each.message) for each in of_graph] == ["apart"]
