"""Completion: what bash offers where the tab key is pressed."""

import re
import shutil
import subprocess

import pytest

from manifactor.command.arguments import GRAMMAR

from .conftest import manifactor, refusal


def script(shell, capsys):
    assert manifactor(f"completion {shell}") == 0
    return capsys.readouterr().out


def offered(line, source):
    """Words that bash completes the last word of a line to."""
    *before, last = line.split(" ")
    words = " ".join(f"'{word}'" for word in [*before, last])
    typed = (
        f"COMP_WORDS=({words}); COMP_CWORD={len(before)}; _manifactor; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    found = subprocess.run(
        ["bash", "--norc", "-c", f"{source}\n{typed}"], capture_output=True, text=True, check=True
    )
    assert found.stderr == ""
    return found.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_commands_options_and_values(capsys):
    source = script("bash", capsys)
    assert offered("manifactor ", source) == list(GRAMMAR)
    assert offered("manifactor re", source) == ["report"]
    assert "--all-views" in offered("manifactor fit data.npz --a", source)
    assert offered("manifactor fit --sense g", source) == ["geometry"]
    assert offered("manifactor export run --to re", source) == ["recovar", "relion"]
    assert offered("manifactor completion f", source) == ["fish"]
    # Bash then offers files.
    assert offered("manifactor fit da", source) == []


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_offers_files_where_the_grammar_knows_no_word(capsys):
    source = script("bash", capsys)
    registered = subprocess.run(
        ["bash", "--norc", "-c", f"{source}\ncomplete -p manifactor"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert registered.stdout == "complete -o default -F _manifactor manifactor\n"


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_told_every_command_and_option_with_its_help(shell, capsys):
    text = script(shell, capsys)
    for name, grammar in GRAMMAR.items():
        assert f"{name}:{grammar.summary}" in text or (f"-a {name} -d '{grammar.summary}'" in text)
    assert "continue an interrupted fit" in text


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_quotes_and_cases_of_the_script_for_zsh_are_closed(capsys, folder):
    # Bash has the same syntax for all that is used there.
    (folder / "script").write_text(script("zsh", capsys))
    checked = subprocess.run(["bash", "-n", "script"], capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_fish_gets_one_command_a_line_with_closed_quotes(capsys):
    for line in script("fish", capsys).splitlines():
        assert line.startswith("complete -c manifactor -n ")
        assert re.fullmatch(r"(?:[^'\\]|'(?:[^'\\]|\\.)*')*", line)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_scripts_are_accepted_by_their_shells(shell, capsys, folder):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (folder / "script").write_text(script(shell, capsys))
    checked = subprocess.run([shell, "-n", "script"], capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_unknown_shells_are_refused(folder, capsys):
    line = refusal("completion tcsh", folder, capsys)
    assert "choose from" in line
