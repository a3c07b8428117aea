"""Findings → one self-contained HTML page.

Texts of the data reach the page as JSON inside a ``<script type="application/json">``, in which
``<``, ``>`` and ``&`` are escaped, and from there the document only as text nodes. The content
security policy allows the page's own script and style, by their hash, and nothing else: no
network, no inline handlers, no other script.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from dataclasses import fields, is_dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from vicinal.reporting.findings import Findings

STYLES = ("base.css", "charts.css", "responsive.css")
SCRIPTS = (
    "dom.js",
    "glyphs.js",
    "theme.js",
    "headline.js",
    "maps.js",
    "neighbors.js",
    "bars.js",
    "heatmap.js",
    "curves.js",
    "classes.js",
    "histograms.js",
    "provenance.js",
    "main.js",
)
DIGITS = 5
"""Significant digits of every number on the page."""


def page(findings: Findings) -> str:
    """The whole page as text."""
    style = "\n".join(_asset(name) for name in STYLES)
    script = "(() => {\n'use strict';\n" + "\n".join(_asset(name) for name in SCRIPTS) + "\n})();"
    parts = {
        "title": html.escape(findings.title),
        "policy": html.escape(content_policy(style, script)),
        "style": style,
        "script": script,
        "data": safe_json(findings),
    }
    # One pass: what is put in is not looked at again, whatever it contains.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _asset("page.html"))


def content_policy(style: str, script: str) -> str:
    """Nothing but this style and this script."""
    return "; ".join(
        [
            "default-src 'none'",
            f"style-src '{_digest(style)}'",
            f"script-src '{_digest(script)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def safe_json(value: Any) -> str:
    r"""JSON that can stand inside a script element, whatever texts it holds.

    Parameters
    ----------
    value : dataclass, array, mapping, sequence, text, number or None

    Examples
    --------
    >>> safe_json(("</script>", 1 / 3, float("nan")))
    '["\\u003c/script\\u003e",0.33333,null]'
    """
    text = json.dumps(jsonable(value), allow_nan=False, separators=(",", ":"))  # ASCII only
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def jsonable(value: Any) -> Any:
    """Dataclasses as objects, arrays as lists, numbers rounded; NaN and infinity as null."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray):
        return jsonable(value.tolist())
    if isinstance(value, np.generic):
        return jsonable(value.item())
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    if isinstance(value, float):
        return _rounded(value)
    return value


def _rounded(value: float) -> float | int | None:
    if not np.isfinite(value):
        return None
    rounded = float(f"{value:.{DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e9 else rounded


def _asset(name: str) -> str:
    return files("vicinal.reporting").joinpath("assets", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """What a browser computes of the text of an element."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
