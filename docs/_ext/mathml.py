"""Formulas as MathML: every browser draws it, and no page needs a script from another host."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import pick_math_environment
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

SYMBOLS = {
    "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "∈": r"\in ", "·": r"\cdot ", "×": r"\times ",
    "−": "-", "∞": r"\infty ", "…": r"\ldots ", "→": r"\to ", "‖": r"\| ",
}  # fmt: skip
"""What formulas of docstrings write as it looks, and the converter knows by name only."""


def mathml(tex: str, as_block: bool) -> str:
    """Convert a formula; several lines are aligned at ``&``."""
    for symbol, name in SYMBOLS.items():
        tex = tex.replace(symbol, name)
    environment = pick_math_environment(tex) if as_block else ""
    if environment.startswith("align"):
        tex = rf"\begin{{{environment}}}{tex}\end{{{environment}}}"
    try:
        return tex2mathml(tex, as_block=as_block)
    except Exception as error:
        raise ValueError(f"this formula cannot be shown: {tex!r}") from error


def visit_inline(self: Any, node: nodes.math) -> None:
    """Write a formula inside a line."""
    self.body.append(mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def visit_block(self: Any, node: nodes.math_block) -> None:
    """Write a displayed formula."""
    self.body.append(f'<div class="math">{mathml(node.astext().strip(), as_block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Offer it as a renderer of formulas."""
    app.add_html_math_renderer(
        "mathml", inline_renderers=(visit_inline, None), block_renderers=(visit_block, None)
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
