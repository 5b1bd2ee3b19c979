"""Options of a command, each written once: a field of a dataclass with its help and its type.

The parser of a command is made from its dataclass, what was typed becomes an object of it, and
`typed` returns the arguments that give such an object back. Cheap to import.
"""

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from dataclasses import Field, field, fields
from math import inf, isfinite, isinf
from typing import Any, Literal, get_args, get_origin


def option(
    text: str | Callable[[], str], default: Any = None, *, group: str = "", flag: str = "", **how
) -> Any:
    """Return a field that is an option: a flag if its default is False, repeated if it is ().

    `how` are arguments of argparse's `add_argument`, and `group` is the heading of its help.
    """
    if default is False:
        how["action"] = "store_true"
    elif default == ():
        how["action"] = "append"
    about = {"text": text, "group": group, "flag": flag, "how": how, "reads": False}
    return field(default=default, metadata=about)


def argument(text: str | Callable[[], str], *, reads: bool = False, **how) -> Any:
    """Return a field that is an argument without a flag; one that is read must exist."""
    about = {"text": text, "group": "", "flag": None, "how": how, "reads": reads}
    return field(default=None, metadata=about)


def seed_option() -> Any:
    """Return the random seed."""
    text = "random seed; the same seed gives the same result"
    return option(text, 0, type=number(int, low=0, high=2**32 - 1))


def out_option(text: str, default: str | None = None, **how) -> Any:
    """Return the file or folder to write."""
    return option(text, default, type=output_name, **how)


def width_option(**how) -> Any:
    """Return the angle around a view within which particles count as seen from it."""
    # None where it is not given: without a view it is refused.
    text = "largest angle to the direction of --view, in degrees (default: 10)"
    return option(text, metavar="DEGREES", **how)


def cluster_option(pieces: str, **how) -> Any:
    """Return the Dask cluster that does the pieces of a command's work."""
    text = (
        f"do the {pieces} on the workers of a Dask cluster: local (one worker a core, "
        "or a GPU), local:N (N workers), the address of a scheduler, such as "
        "tcp://node1:8786, or its scheduler file (.json). All workers must see the "
        "same files"
    )
    return option(text, metavar="WHERE", **how)


def flag_of(each: Field) -> str | None:
    """Return the flag of an option; None for an argument without one."""
    flag = each.metadata["flag"]
    return f"--{each.name.replace('_', '-')}" if flag == "" else flag


def add_options(parser: ArgumentParser, options: type) -> None:
    """Add the fields of a dataclass to a parser; their help ends with their default."""
    groups: dict[str, Any] = {"": parser}
    for each in fields(options):
        title, how = each.metadata["group"], _read_as(each.type) | each.metadata["how"]
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        flag, text = flag_of(each), each.metadata["text"]
        text = text() if callable(text) else text
        if flag is not None:
            # What may be repeated is added to a list.
            how |= {"dest": each.name, "default": [] if each.default == () else each.default}
        if not (each.default is None or each.default is False or each.default == ()):
            text += f" (default: {each.default})"
        # argparse formats help texts with the % operator.
        groups[title].add_argument(flag or each.name, help=text.replace("%", "%%"), **how)


def _read_as(kind: Any) -> dict[str, Any]:
    """Return what an annotation says of a value: a number, one of some words, or any text.

    >>> list(_read_as(Literal["no", "yes"]).values()), list(_read_as(tuple[int, ...]))
    ([['no', 'yes']], ['type'])
    """
    parts, words = [kind], []
    for part in parts:  # which grows
        inner = get_args(part)
        if get_origin(part) is Literal:
            words += inner
        else:
            parts += inner
    for each in (int, float):
        if each in parts:
            return {"type": number(each, *words)}
    return {"choices": words} if words else {}


def given(options: type, parsed: object) -> Any:
    """Return what was parsed as an object of the dataclass of a command."""
    values = {each.name: getattr(parsed, each.name) for each in fields(options)}
    return options(**{k: tuple(v) if isinstance(v, list) else v for k, v in values.items()})


def typed(options: Any) -> list[str]:
    """Return the options that are not the usual ones as arguments, those of groups first."""
    out: list[str] = []
    for each in sorted(fields(options), key=lambda each: not each.metadata["group"]):
        value, flag = getattr(options, each.name), flag_of(each)
        if flag is None or value == each.default:
            continue
        if value is True:
            out.append(flag)
            continue
        for one in value if each.default == () else [value]:
            # A view may start with a minus, which looks like a flag.
            out += [f"{flag}={_word(one)}"] if isinstance(one, tuple) else [flag, _word(one)]
    return out


def _word(value: Any) -> str:
    """Return a value as it is typed, a number with the fewest digits that give it back."""
    if isinstance(value, tuple):
        return ",".join(map(_word, value))
    if not isinstance(value, float):
        return str(value)
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


# Types of values, for argparse; it puts the name of a type into its error message.


def number(
    kind: type = float,
    *words: str,
    low: float = -inf,
    high: float = inf,
    above: float = -inf,
    infinite: bool = False,
) -> Callable[[str], Any]:
    """Return a type for argparse: a number within limits, which NaN never is, or a word.

    >>> number(float, "auto", low=0, high=1)(".5")
    0.5
    """

    def parse(text: str) -> Any:
        if text in words:
            return text
        value = kind(text)
        known = kind is int or isfinite(value) or (infinite and isinf(value))
        if known and low <= value <= high and value > above:
            return value
        what = "whole " if kind is int else "" if infinite else "finite "
        raise ArgumentTypeError(f"must be a {what}number{limits}; got {text!r}")

    limits = "" if low == -inf else f" of at least {low:.10g}"
    if isfinite(low) and isfinite(high):
        limits = f" in [{low:.10g}, {high:.10g}]"
    elif isfinite(above):
        limits = f" above {above:g}"
    parse.__name__ = " or ".join(["whole number" if kind is int else "number", *words])
    return parse


def output_name(text: str) -> str:
    """Parse the name of an output; an unset variable of a shell gives an empty one."""
    if not text:
        raise ArgumentTypeError("must be the name of a file or folder; got ''")
    return text


def view(text: str) -> tuple[float, float]:
    """Parse a viewing direction, RELION's angles rot and tilt in degrees."""
    try:
        rot, tilt = (float(part) for part in text.split(","))
    except ValueError:
        raise ArgumentTypeError(
            f"a view must be two angles in degrees, ROT,TILT; got {text!r}"
        ) from None
    if not (isfinite(rot) and -180 <= tilt <= 180):
        raise ArgumentTypeError(
            f"the tilt of a view must lie between -180 and 180 degrees; got {text!r}"
        )
    return rot, tilt
