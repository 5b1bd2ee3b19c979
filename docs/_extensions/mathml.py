"""Formulas as MathML, which browsers show without a script from the network."""

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def visit_math(translator, node) -> None:
    """Write a formula inside a line."""
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def visit_displayed_math(translator, node) -> None:
    """Write a formula on lines of its own."""
    opening = translator.starttag(node, "div", CLASS="displayed-math")
    formula = tex2mathml(node.astext(), as_block=True)
    translator.body.append(f"{opening}{formula}</div>\n")
    raise nodes.SkipNode


def setup(app) -> dict:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displayed_math, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
