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
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from vicinal._typing import Json, Table
from vicinal.atomic_write import atomic_write
from vicinal.reporting.examine import examine
from vicinal.reporting.findings import Findings
from vicinal.reporting.provenance import Lines

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
    "numbers.js",
    "histograms.js",
    "provenance.js",
    "main.js",
)
DIGITS = 5
"""Significant digits of every number on the page."""


def report(
    model: BaseEstimator,
    X: Table,
    y: ArrayLike,
    path: str | os.PathLike[str],
    *,
    X_test: Table | None = None,
    y_test: ArrayLike | None = None,
    feature_names: Sequence[object] | None = None,
    ids: Sequence[object] | None = None,
    title: str | None = None,
    provenance: Lines | None = None,
    reasons: Mapping[str, str] | None = None,
) -> Path:
    """Write a page that shows what learning the metric did to the data.

    One HTML file that needs no network: accuracy or errors against plain K-NN, two linked maps with
    the neighbors of every point, the metric, the tuning surface, the errors, how many neighbors
    count, and where all of it comes from.

    Parameters
    ----------
    model : ANNClassifier, ANNRegressor, ANNSearchCV, a learner, or a Pipeline
        Fitted. A pipeline may end in one of these or in a learner and K-NN; a learner alone is
        shown with the vote of 5 neighbors.
    X : array-like or data frame of shape (n_samples, n_features)
        The training data, as given to the model's ``fit``.
    y : array-like of shape (n_samples,)
        Their labels, or of an ANNRegressor its one target.
    path : str or path
        Where to write. An existing file is replaced, at once and only by a complete one.
    X_test, y_test : array-like, optional
        Held-out data, which the accuracy is then measured on. Without them it is the model's own
        out-of-fold accuracy, or that of a 5-fold cross-validation; the page says which.
    feature_names : sequence of str, optional
        Default: those of the model, or of the columns of X. Where the model has an encoder of
        tables, names of its columns: what is made of one column is shown as one.
    ids : sequence, optional
        What to call the rows of X, or those of X and then of X_test.
    title : str, optional
    provenance : dict of str to str or list of str, optional
        What else to say about where data and model come from. Shape, settings, versions and date
        are always there.
    reasons : dict of str to str, optional
        Why a setting that the model was given is what it is, by its name on the page:
        ``{"K": "The best of 9 by cross-validation."}``. Default: "Given, not tuned".

    Returns
    -------
    path : Path

    Notes
    -----
    Beyond 2,000 rows the maps show a stratified sample of 2,000. Texts from the data are escaped.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> import vicinal as vc
    >>> from vicinal.reporting import report
    >>> iris = load_iris()
    >>> model = vc.NCA(max_iter=20, tol=1e-2).fit(iris.data, iris.target)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = report(
    ...         model,
    ...         iris.data,
    ...         iris.target,
    ...         f"{folder}/iris.html",
    ...         feature_names=iris.feature_names,
    ...     )
    ...     path.stat().st_size < 1_000_000
    True
    """
    findings = examine(
        model,
        X,
        y,
        X_test=X_test,
        y_test=y_test,
        feature_names=feature_names,
        ids=ids,
        title=title,
        provenance=provenance,
        reasons=reasons,
    )
    target = Path(path)
    with atomic_write(target) as unfinished:
        unfinished.write_text(page(findings), encoding="utf-8", newline="\n")
    return target


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


def safe_json(value: object) -> str:
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


def jsonable(value: Any) -> Json:
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
    """The digest that a browser computes of the text of an element."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
