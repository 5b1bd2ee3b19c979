"""Errors and warnings: missing packages, text that steers no terminal, the caller's line."""

import os
import shutil
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from manifactor import ManifoldFactorizer, SampleWarning, datasets
from manifactor._support.errors import extra, first_sentence, is_unsafe, printable, shell_line


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


def test_what_is_printed_has_no_control_characters():
    # All letters of western scripts, signs, surrogates and what lies beyond the first plane.
    text = "".join(
        map(chr, (*range(0x3000), *range(0xD7F0, 0xE010), 0xFEFF, *range(0xE0000, 0xE0080)))
    )
    assert not any(map(is_unsafe, printable(text)))
    assert printable(printable(text)) == printable(text)


def test_plain_text_of_any_language_is_left_alone():
    text = "Größe 10 Å, 名前, naïve\\path"
    assert printable(text) == text
    assert printable("two\nlines\t", but="\n") == "two\nlines\\t"


@pytest.mark.skipif(not shutil.which("bash"), reason="bash reads the line")
def test_a_shell_reads_every_word_as_it_was():
    words = ["a b", "c;d", "$e", "", "it's", "\x1b[2J\n'\\", "\udcff%s", "-n", "é\x7f"]
    line = shell_line(*words)
    assert not any(map(is_unsafe, line))
    line.encode()
    read = subprocess.run(["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True)
    assert read.stdout.split(b"\0")[:-1] == [os.fsencode(word) for word in words]


def test_a_warning_names_the_line_that_called_the_package():
    X, _ = datasets.sample("torus", 150, random_state=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ManifoldFactorizer(random_state=0).fit(X)
    named = {Path(warning.filename).name for warning in caught}
    assert named == {"test_errors.py"}
    assert SampleWarning in {warning.category for warning in caught}


def test_fits_that_overlap_in_threads_leave_the_filters_of_warnings_alone():
    X, _ = datasets.sample("torus", 150, random_state=1)
    second_began, first_ended = Event(), Event()

    def first(*_):
        assert second_began.wait(60)

    def second(*_):
        second_began.set()
        assert first_ended.wait(60)

    def fit(callback):
        # Asking for one factor warns of nothing.
        return ManifoldFactorizer(1, random_state=0, callback=callback).fit(X)

    before = list(warnings.filters)
    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(fit, first), pool.submit(fit, second)
        running[0].add_done_callback(lambda _: first_ended.set())
        assert [len(each.result(120).factors_) for each in running] == [1, 1]
    assert warnings.filters == before


def test_of_the_advice_of_other_libraries_the_first_sentence_is_kept():
    error = RuntimeError("CUDA out of memory. Tried to allocate 2 MiB.")
    assert first_sentence(error) == "CUDA out of memory"
    assert first_sentence(KeyError()) == "KeyError"
