"""Text that steers neither a terminal nor a shell."""

import os
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifactor._support.errors import is_unsafe, printable, shell_line

# File names are bytes without 0.
NAMES = st.binary(min_size=1, max_size=30).filter(lambda name: b"\0" not in name)


@given(st.text())
def test_what_is_printed_has_no_control_characters(text):
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
    read = subprocess.run(["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True)
    assert read.stdout.split(b"\0")[:-1] == [os.fsencode(word) for word in words]


@given(NAMES)
def test_a_line_for_a_shell_is_one_line(name):
    line = shell_line("cd", os.fsdecode(name))
    assert not any(map(is_unsafe, line))
    line.encode()
