"""What the pages of the public classes and functions show.

Members without use to a reader are left out, entries that refer to another class are filled in from
there, and names stand without the modules that nobody imports from.
"""

import inspect
import re
from pkgutil import resolve_name

# Public for the other rooms of the package, of no use to a reader of the site.
FOR_OTHER_ROOMS = frozenset(
    {
        "combined",
        "is_of_term",
        "local_products",
        "locator",
        "lowest",
        "of_term",
        "require_room",
        "restore",
        "triple_products",
        "with_copies",
    }
)


def is_published(name: str, member: object) -> bool:
    """Return whether a member of a class is described on its page.

    Members that scikit-learn defines are described in its documentation. Attributes of
    a fit, such as `spectrum_`, are listed in the docstring of the class.
    """
    if name in FOR_OTHER_ROOMS or name.startswith("_"):
        return False
    fitted = isinstance(member, property) and name.endswith("_")
    described = getattr(member, "fget", None) or getattr(member, "func", member)
    home = getattr(described, "__module__", None) or ""
    return home.startswith("manifactor") and not fitted


def skip_member(app, what: str, name: str, member: object, skip: bool, options) -> bool:
    """Return whether autodoc leaves a member out."""
    return skip or not is_published(name, member)


# Entries of a docstring whose description is that of another class: names on some lines, and it.
BORROWED = re.compile(r"^((?:\w[\w, ]*\n)+) +As in `([A-Z]\w+)`\.$\n?", re.M)
# Modules that names are imported from.
MODULES = frozenset(
    {
        "manifactor",
        "manifactor.cluster",
        "manifactor.datasets",
        "manifactor.plots",
        "manifactor.scores",
        "manifactor.runs.run",
    }
)


def filled(text: str) -> str:
    """Return a docstring with entries of another class in place of "As in `Class`.".

    Examples
    --------
    >>> print(filled("dimension_, spectrum_\\n    As in `DiffusionMap`."))
    dimension_ : int
        Intrinsic dimension.
    spectrum_ : Spectrum
        Eigenvalues, functions, weights, residuals.
    <BLANKLINE>
    """

    def described(match: re.Match) -> str:
        names, owner = re.findall(r"\w+", match[1]), match[2]
        return "".join(entry(owner, name) for name in names)

    return BORROWED.sub(described, text)


def entry(owner: str, name: str) -> str:
    """Return what the docstring of a public class says of a parameter or an attribute."""
    text = inspect.getdoc(resolve_name(f"manifactor.{owner}")) or ""
    found = re.search(rf"^(?:\w+, )*{name}(?:, \w+)*( : .*)?\n((?: .*\n)*)", text, re.M)
    if found is None:
        raise ValueError(f"{owner} must describe {name!r}; its docstring has no such entry.")
    return f"{name}{found[1] or ''}\n{found[2]}"


def fill_entries(app, what: str, name: str, member: object, options, lines: list[str]) -> None:
    """Fill in the entries of a docstring, before numpydoc reads it."""
    lines[:] = filled("\n".join(lines)).splitlines()


def hide_modules(app, domain: str, kind: str, content) -> None:
    """Take modules that nobody imports from away from the title of an object."""
    from sphinx import addnodes

    for title in content.parent.findall(addnodes.desc_addname):
        module = title.astext().removesuffix(".")
        is_class = module.rpartition(".")[2][:1].isupper()
        if module.startswith("manifactor") and module not in MODULES and not is_class:
            title.parent.remove(title)


def setup(app) -> dict:
    """Connect with autodoc."""
    app.connect("autodoc-skip-member", skip_member)
    app.connect("autodoc-process-docstring", fill_entries, priority=400)
    app.connect("object-description-transform", hide_modules)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
