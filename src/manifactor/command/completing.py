"""The command `completion`: what shells need to complete commands and options.

Scripts are made from the grammar and need nothing of this program when a key is pressed: its
imports take a second.
"""

import argparse
import shlex
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from manifactor.command.options import Options, add
from manifactor.command.terminal import show

COMPLETION_FILES = """files in which the shells look for the script:
  bash  ~/.local/share/bash-completion/completions/manifactor
  zsh   _manifactor in a folder of $fpath
  fish  ~/.config/fish/completions/manifactor.fish

examples:
  manifactor completion fish > ~/.config/fish/completions/manifactor.fish
  eval "$(manifactor completion bash)"     (for this shell alone)"""


@dataclass(frozen=True)
class Option:
    """One option of a command."""

    flags: tuple[str, ...]  # such as ("-h", "--help")
    text: str  # the first words of its help
    choices: tuple[str, ...]  # values that it takes; () for any
    takes_value: bool


@dataclass(frozen=True)
class Command:
    """One command: its help, its options, and the words that may follow it."""

    text: str
    options: tuple[Option, ...]
    words: tuple[str, ...]


def completion_options(command: Options) -> None:
    """Add the options of `completion`."""
    text = f"shell to write the script for: {', '.join(SHELLS)}"
    add(command, "shell", text, metavar="SHELL", choices=list(SHELLS))


def completion(arguments: Namespace) -> None:
    """Print the script that completes commands in a shell."""
    show(completion_script(arguments.parser, arguments.shell), alone=True)


def completion_script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the script with which a shell completes the commands of a parser."""
    return SHELLS[shell](_commands(parser))


def _commands(parser: argparse.ArgumentParser) -> dict[str, Command]:
    """Return the commands of a parser by their names."""
    # argparse has no public way to list what a parser knows.
    (subparsers,) = (
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    )
    texts = {each.dest: each.help or "" for each in subparsers._choices_actions}
    return {name: _command(texts[name], command) for name, command in subparsers.choices.items()}


def _command(text: str, parser: argparse.ArgumentParser) -> Command:
    options: list[Option] = []
    words: list[str] = []
    for action in parser._actions:
        choices = tuple(str(choice) for choice in action.choices or ())
        if not action.option_strings:
            words += choices
            continue
        flags = tuple(action.option_strings)
        shown = _first_words(action.help or "")
        options.append(Option(flags, shown, choices, action.nargs != 0))
    return Command(text, tuple(options), tuple(words))


def _first_words(text: str) -> str:
    """Return the part of a help text that fits beside an option."""
    for end in (" (", ";", ". "):
        text = text.partition(end)[0]
    return text.replace("%%", "%")


def _bash(commands: Mapping[str, Command]) -> str:
    """Return the script for bash; where nothing is known, it completes file names."""
    flags, values, words = [], [], []
    for name, command in commands.items():
        flags.append(f"    {name}) list={_listed(_all_flags(command))} ;;")
        values += [
            f"    {pattern}) list={_listed(choices)} ;;"
            for pattern, choices in _values(name, command)
        ]
        words.append(f"    {name}) list={_listed(command.words)} ;;")
    return "\n".join(
        [
            "_manifactor() {",
            "  local word=${COMP_WORDS[COMP_CWORD]} list=",
            "  if ((COMP_CWORD == 1)); then",
            f"    list={_listed(commands)}",
            '  elif [[ $word == -* ]]; then case "${COMP_WORDS[1]}" in',
            *flags,
            '  esac; else case "${COMP_WORDS[1]} ${COMP_WORDS[COMP_CWORD - 1]}" in',
            *values,
            '  *) case "${COMP_WORDS[1]}" in',
            *words,
            "  esac ;; esac; fi",
            '  COMPREPLY=($(compgen -W "$list" -- "$word"))',
            "}",
            # Where the function finds nothing, bash completes file names.
            "complete -o default -F _manifactor manifactor",
        ]
    )


def _all_flags(command: Command) -> list[str]:
    return [flag for option in command.options for flag in option.flags]


def _values(name: str, command: Command) -> list[tuple[str, tuple[str, ...]]]:
    """Return what may follow options, by patterns of "COMMAND OPTION"."""
    patterns: dict[tuple[str, ...], list[str]] = {}
    for option in command.options:
        if option.takes_value:
            typed = [f'"{name} {flag}"' for flag in option.flags]
            patterns.setdefault(option.choices, []).extend(typed)
    return [("|".join(typed), choices) for choices, typed in patterns.items()]


def _listed(words: Iterable[str]) -> str:
    """Return words as one word of a shell."""
    return shlex.quote(" ".join(words))


def _zsh(commands: Mapping[str, Command]) -> str:
    """Return the script for zsh, which shows the help beside each word."""
    flags, values, words = [], [], []
    for name, command in commands.items():
        described = [
            _described(flag, option.text) for option in command.options for flag in option.flags
        ]
        flags.append(f"    {name}) list=({' '.join(described)}) ;;")
        values += [
            f"    {pattern}) list=({shlex.join(choices)}) ;;"
            for pattern, choices in _values(name, command)
        ]
        words.append(f"    {name}) list=({shlex.join(command.words)}) ;;")
    named = [_described(name, command.text) for name, command in commands.items()]
    return "\n".join(
        [
            "#compdef manifactor",
            "_manifactor() {",
            "  local -a list",
            "  if ((CURRENT == 2)); then",
            f"    list=({' '.join(named)})",
            '  elif [[ $words[CURRENT] == -* ]]; then case "$words[2]" in',
            *flags,
            '  esac; else case "$words[2] $words[CURRENT-1]" in',
            *values,
            '  *) case "$words[2]" in',
            *words,
            "  esac ;; esac; fi",
            "  if (($#list)); then _describe manifactor list; else _files; fi",
            "}",
            # A file of $fpath is the body of the function when it is first called.
            'if [[ $funcstack[1] == _manifactor ]]; then _manifactor "$@"',
            "else compdef _manifactor manifactor; fi",
        ]
    )


def _described(word: str, text: str) -> str:
    """Return a word with its help, as `_describe` of zsh takes them."""
    return shlex.quote(f"{word}:{text}")


def _fish(commands: Mapping[str, Command]) -> str:
    """Return the script for fish, which shows the help beside each word."""
    lines = []
    start = "complete -c manifactor"
    for name, command in commands.items():
        text = _fish_quoted(command.text)
        lines.append(f"{start} -n __fish_use_subcommand -f -a {name} -d {text}")
        here = f"{start} -n '__fish_seen_subcommand_from {name}'"
        if command.words:
            lines.append(f"{here} -f -a {_fish_quoted(' '.join(command.words))}")
        lines += [f"{here} {_fish_option(option)}" for option in command.options]
    return "\n".join(lines)


def _fish_option(option: Option) -> str:
    """Return an option as arguments of fish's `complete`."""
    parts = [
        f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags
    ]
    if option.choices:
        # Exclusive: no file names beside the choices.
        parts.append(f"-x -a {_fish_quoted(' '.join(option.choices))}")
    elif option.takes_value:
        parts.append("-r")
    return " ".join([*parts, f"-d {_fish_quoted(option.text)}"])


def _fish_quoted(text: str) -> str:
    """Return text in single quotes; fish has its own rules for what is inside."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


SHELLS: dict[str, Callable[[Mapping[str, Command]], str]] = {
    "bash": _bash,
    "zsh": _zsh,
    "fish": _fish,
}
