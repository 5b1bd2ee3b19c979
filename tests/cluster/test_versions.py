import pkgutil
import sys

import pytest

from manifactor._support import __version__
from manifactor.cluster import check_versions, check_workers

HERE = {"python": "3.11.7.final.0", "numpy": "2.4.1", "scipy": "1.17.0"}


class Answering:
    """A client whose workers say what they have."""

    def __init__(self, answer):
        self.answer = answer

    def get_versions(self, packages):
        return {"client": {"packages": HERE}, "workers": {"w": {"packages": HERE}}}

    def run(self, function, name, on_error):
        return {"w": self.answer}


def test_other_patches_of_the_same_releases_are_fine():
    check_versions(HERE, [HERE | {"python": "3.11.9.final.0", "numpy": "2.4.6"}])


def test_another_python_is_refused():
    with pytest.raises(ValueError, match=r"have python 3.12, this process has 3.11"):
        check_versions(HERE, [HERE, HERE | {"python": "3.12.1.final.0"}])


def test_another_numpy_is_told():
    with pytest.warns(UserWarning, match=r"have numpy 1.26, .* in the last digits"):
        check_versions(HERE, [HERE | {"numpy": "1.26.4"}])


def test_another_manifactor_is_refused():
    with pytest.raises(ValueError, match=r"as this process; got 99.0. Install one"):
        check_workers(Answering("99.0"))


def test_a_worker_without_manifactor_is_refused_with_advice():
    missing = ModuleNotFoundError("No module named 'manifactor'")
    with pytest.raises(ValueError, match=r"\(No module named 'manifactor'\). Install"):
        check_workers(Answering(missing))


def test_a_cluster_without_workers_is_told():
    empty = Answering("")
    empty.get_versions = lambda packages: {"client": {"packages": HERE}, "workers": {}}
    empty.run = lambda *_, **__: {}
    with pytest.warns(UserWarning, match="no workers yet; pieces wait"):
        check_workers(empty)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="a bug of Python 3.11")
def test_a_profiler_that_may_stop_workers_is_told():
    profiled = Answering(__version__)
    profiled.run = lambda work, *_, **__: {
        "worker": __version__ if work is pkgutil.resolve_name else True
    }
    with pytest.warns(UserWarning, match="WORKER__PROFILE__ENABLED=False, or use"):
        check_workers(profiled)
