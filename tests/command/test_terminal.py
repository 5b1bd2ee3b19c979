"""What is printed, and how."""

import io
import sys
import warnings

import pytest

from manifactor.command import terminal
from manifactor.runs.options import in_options

from .conftest import Screen


def test_results_go_to_standard_output_and_all_else_to_standard_error(capsys):
    terminal.show("found")
    terminal.note("slow")
    terminal.error("wrong\n  input")
    terminal.report("interrupted; ", "nothing is left.")
    captured = capsys.readouterr()
    assert captured.out == "found\n"
    assert captured.err.splitlines() == [
        "manifactor: note: slow",
        "manifactor: error: wrong input",
        "manifactor: interrupted; nothing is left.",
    ]


def test_what_the_output_has_no_character_for_is_escaped(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    terminal.show("5 \N{DEGREE SIGN}, caf\N{LATIN SMALL LETTER E WITH ACUTE}")
    assert sys.stdout.buffer.getvalue() == b"5 \\xb0, caf\\xe9\n"


@pytest.mark.parametrize(
    ("verdict", "code"), [("product, 99 %.", "1;32"), ("partial.", "1;33"), ("none.", "1")]
)
def test_a_verdict_is_coloured_on_a_terminal_unless_it_is_not_wanted(monkeypatch, verdict, code):
    def shown(screen):
        monkeypatch.setattr(sys, "stdout", screen)
        terminal.show(f"Verdict: {verdict}\nFactor 1: a circle.")
        return screen.getvalue()

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    plain = f"Verdict: {verdict}\nFactor 1: a circle.\n"
    assert shown(Screen()) == plain.replace(verdict, f"\x1b[{code}m{verdict}\x1b[m")
    assert shown(io.StringIO()) == plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert shown(Screen()) == plain


@pytest.mark.parametrize(("number", "said"), [(28, True), (32, False)])
def test_an_output_that_takes_no_text_stops_no_command(monkeypatch, capsys, number, said):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(number, "No more")

    monkeypatch.setattr(sys, "stdout", Full())
    terminal.show("found")
    expected = "manifactor: note: standard output takes no more text: No more.\n"
    assert capsys.readouterr().err == (expected if said else "")
    with pytest.raises(OSError, match="No more"):
        terminal.show("found", alone=True)


def test_text_from_files_steers_no_terminal(capsys):
    terminal.show("name\x1b[2J\x9b\u202e\rof\udcff\ntwo lines")
    terminal.error("\x1b]0;title\x07")
    captured = capsys.readouterr()
    assert captured.out == "name\\x1b[2J\\x9b\\u202e\\rof\\udcff\ntwo lines\n"
    assert captured.err == "manifactor: error: \\x1b]0;title\\x07\n"


def test_every_warning_is_one_line_and_the_old_way_comes_back(capsys):
    before = warnings.showwarning
    with terminal.one_line_warnings():
        warnings.warn("far\n apart", UserWarning, stacklevel=1)
    assert capsys.readouterr().err == "manifactor: warning: far apart\n"
    assert warnings.showwarning is before


def test_messages_name_options_in_place_of_parameters_that_they_set():
    options = {"n_factors": "--n-factors", "method": "--method"}
    message = "`n_factors` must be 2 with `method='sum'`, not `X`."
    said = in_options(message, options)
    assert said == "--n-factors must be 2 with --method sum, not `X`."
