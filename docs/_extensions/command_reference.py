"""The reference of the command line, made from the parser of the program."""

import argparse
import re

from manifactor.command.arguments import command_parser

PAGE = "command-reference"
# Stands on the page where the commands follow; GitHub shows nothing there.
MARK = "<!-- commands -->"
# Columns of a usage, which fit beside the contents of the page.
WIDTH = 88
# Characters that mean something in Markdown.
SPECIAL = re.compile(r"([\\`*_\[\]<>$|~#])")
FLAG = re.compile(r"(?<![\w-])(--[a-z][a-z-]*)")


def reference(parser: argparse.ArgumentParser) -> str:
    """Return a section of Markdown for each command of a parser.

    Parameters
    ----------
    parser : ArgumentParser
        With one subparser for each command.

    Examples
    --------
    >>> parser = argparse.ArgumentParser(prog="tool")
    >>> command = parser.add_subparsers().add_parser("count", description="Count.")
    >>> _ = command.add_argument("--by", metavar="N", help="step (default: 1)")
    >>> print(reference(parser))
    ## count
    <BLANKLINE>
    Count.
    <BLANKLINE>
    ```text
    tool count [-h] [--by N]
    ```
    <BLANKLINE>
    **Options**
    <BLANKLINE>
    `--by N`
    : step (default: 1)
    """
    # argparse has no public way to list what a parser knows.
    (subparsers,) = (
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    )
    sections = [section(name, each) for name, each in subparsers.choices.items()]
    return "\n\n".join(sections)


def section(name: str, command: argparse.ArgumentParser) -> str:
    """Return the section of one command: what it does, its usage, its options."""
    description = " ".join((command.description or "").split())
    parts = [f"## {name}", prose(description), _code(usage(command))]
    for group in command._action_groups:
        actions = [each for each in group._group_actions if each.dest != "help"]
        if actions:
            title = group.title or ""
            parts.append(f"**{title[:1].upper()}{title[1:]}**")
            parts += [_entry(command, action) for action in actions]
    if command.epilog:
        parts.append(_code(command.epilog))
    return "\n\n".join(parts)


def usage(command: argparse.ArgumentParser) -> str:
    """Return the usage of a command, in as many columns on every machine."""
    formatter = argparse.HelpFormatter(command.prog, width=WIDTH)
    formatter.add_usage(command.usage, command._actions, [], prefix="")
    return formatter.format_help().strip()


def _entry(command: argparse.ArgumentParser, action: argparse.Action) -> str:
    """Return an argument and its help, as an entry of a definition list."""
    formatter = argparse.HelpFormatter(command.prog)
    shown = formatter._format_action_invocation(action)
    return f"`{shown}`\n: {prose(formatter._expand_help(action))}"


def prose(text: str) -> str:
    """Return plain text as Markdown, with the options in it as code.

    Examples
    --------
    >>> prose("the file_name of --out")
    'the file\\\\_name of `--out`'
    """
    return FLAG.sub(r"`\1`", SPECIAL.sub(r"\\\1", text))


def _code(text: str) -> str:
    return f"```text\n{text}\n```"


def fill_page(app, docname: str, source: list[str]) -> None:
    """Put the commands into their page."""
    if docname == PAGE:
        commands = reference(command_parser())
        source[0] = source[0].replace(MARK, commands)


def setup(app) -> dict:
    """Connect with Sphinx."""
    app.connect("source-read", fill_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
