import sys

import pytest

from manifactor._support.errors import extra


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """A folder on the path, for packages that are imported once."""
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("probe")]:
        del sys.modules[name]


def test_a_module_is_imported():
    assert extra("json.decoder").__name__ == "json.decoder"


@pytest.mark.parametrize(
    ("name", "install"), [("faiss", "ann"), ("matplotlib.pyplot", "plots"), ("mrcfile", "cryoem")]
)
def test_a_missing_package_names_the_extra_that_brings_it(monkeypatch, name, install):
    package = name.partition(".")[0]
    for module in [m for m in sys.modules if m.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    match = rf"^this needs the package {package}: pip install 'manifactor\[{install}\]'.$"
    with pytest.raises(ValueError, match=match):
        extra(name)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise OSError('no library\\nmore')", "no library"),
        ("raise RuntimeError", "RuntimeError"),
        ("import probe_missing", "No module named 'probe_missing'"),
    ],
)
def test_a_package_that_does_not_load_says_why_in_one_line(modules, source, reason):
    (modules / "probe.py").write_text(source)
    match = rf"^the package probe does not load: {reason}. Install it anew: pip .*\.$"
    with pytest.raises(ValueError, match=match):
        extra("probe")
