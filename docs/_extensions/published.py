"""Which members of the public classes have their docstrings on the site."""

# Public for the other rooms of the package, of no use to a reader of the site.
FOR_OTHER_ROOMS = frozenset(
    {
        "combinations",
        "combined",
        "effective",
        "is_of_term",
        "local_products",
        "locator",
        "lowest",
        "of_term",
        "place",
        "place_by",
        "require_room",
        "restore",
        "triple_products",
        "with_copies",
        "with_test",
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


def setup(app) -> dict:
    """Connect with autodoc."""
    app.connect("autodoc-skip-member", skip_member)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
