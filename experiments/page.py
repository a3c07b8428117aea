"""Table 2 as one self-contained page, in the style of the reports."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from experiments.summary import Comparison, Summary
from experiments.table_lines import (
    EXPLAINED,
    TITLES,
    Line,
    friedman_sentence,
    lines_of,
    method_label,
    rank_lines,
    remarks,
)

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}
body {{ max-width: 100rem; }}
.wide {{ overflow-x: auto; margin-top: 1.5rem; }}
th.method, td {{ text-align: right; white-space: nowrap; }}
td.best {{ font-weight: 620; color: var(--after); }}
td small {{ color: var(--muted); font-weight: 400; display: block; }}
tr.below td, tr.below th {{ border-bottom-style: dotted; }}
figure img {{ max-width: 100%; background: white; }}
</style>
</head>
<body>
<section class="top">
<p class="overline">vicinal</p>
<h1>{title}</h1>
<p class="lede prose">{explained}</p>
<div class="wide"><table>
<thead><tr><th>data set (splits)</th>{header}</tr></thead>
<tbody>
{rows}
</tbody>
<tfoot>
{ranks}
</tfoot>
</table></div>
<p class="note">{test}</p>
{figures}
{remarks}
</section>
</body>
</html>
"""


def page(summary: Summary, comparison: Comparison, figures: Sequence[Path]) -> str:
    """The HTML text, pictures included.

    Parameters
    ----------
    summary : of one protocol
    comparison : of its methods
    figures : files of the rank diagram; its SVG is taken
    """
    pictures = [path for path in figures if path.suffix == ".svg"]
    return _PAGE.format(
        title=escape(TITLES[summary.protocol]),
        style=files("vicinal").joinpath("reporting", "assets", "base.css").read_text("utf-8"),
        explained=escape(EXPLAINED[summary.protocol].replace("*", "")),
        header="".join(
            f'<th class="method">{escape(method_label(m))}</th>' for m in summary.methods
        ),
        rows=_rows(lines_of(summary)),
        ranks=_rows(rank_lines(comparison)),
        test=escape(friedman_sentence(comparison)),
        figures="\n".join(map(_picture, pictures)),
        remarks="".join(f'<p class="note">{escape(remark)}</p>' for remark in remarks(summary)),
    )


def _rows(lines: Sequence[Line]) -> str:
    return "\n".join(
        f"<tr><th>{escape(line.name)}</th>{''.join(map(_cell, line.cells))}</tr>" for line in lines
    )


def _cell(cell: tuple[str, bool]) -> str:
    """The paper's value goes below ours, smaller."""
    text, best = cell
    ours, _, paper = text.partition(" (")
    below = f"<small>({escape(paper)}</small>" if paper else ""
    start = '<td class="best">' if best else "<td>"
    return f"{start}{escape(ours)}{below}</td>"


def _picture(path: Path) -> str:
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    source = f"data:image/svg+xml;base64,{data}"
    return f'<figure><img alt="critical-difference diagram" src="{source}"></figure>'
