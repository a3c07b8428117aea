"""The public function: a model and its data to one HTML file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vicinal.atomic_write import whole_file
from vicinal.reporting.examine import examine
from vicinal.reporting.page import page
from vicinal.reporting.provenance import Lines


def report(
    model: Any,
    X: Any,
    y: Any,
    path: str | os.PathLike[str],
    *,
    X_test: Any = None,
    y_test: Any = None,
    feature_names: Any = None,
    ids: Any = None,
    title: str | None = None,
    provenance: Lines | None = None,
    reasons: Mapping[str, str] | None = None,
) -> Path:
    """Write a page that shows what learning the metric did to the data.

    One HTML file that needs no network: accuracy against plain K-NN, two linked maps with the
    neighbors of every point, the metric, the tuning surface, the errors, how many neighbors
    count, and where all of it comes from.

    Parameters
    ----------
    model : ANNClassifier, ANNSearchCV, a learner, or a Pipeline
        Fitted. A pipeline may end in one of these or in a learner and K-NN; a learner alone is
        shown with the vote of 5 neighbors.
    X : array-like or data frame of shape (n_samples, n_features)
        The training data, as given to the model's ``fit``.
    y : array-like of shape (n_samples,)
        Their labels.
    path : str or path
        Where to write. An existing file is replaced, at once and only by a complete one.
    X_test, y_test : array-like, optional
        Held-out data, which the accuracy is then measured on. Without them it is the model's own
        out-of-fold accuracy, or that of a 5-fold cross-validation; the page says which.
    feature_names : sequence of str, optional
        Default: those of the model, or of the columns of X.
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
    with whole_file(target) as unfinished:
        unfinished.write_text(page(findings), encoding="utf-8", newline="\n")
    return target
