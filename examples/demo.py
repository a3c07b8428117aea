"""Learn a metric on the handwritten digits and leave a page that shows what it did.

    python examples/demo.py [folder]

The data ships with scikit-learn. The page is ``build/demo/report.html``, the picture beside it
``build/demo/report.png``.
"""

from __future__ import annotations

import base64
import html
import sys
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import vicinal as vc

K = 5
METHODS = {
    "Euclidean": "passthrough",
    "NCA": vc.NCA(max_iter=60),
    "PNCA, α = 2": vc.PNCA(alpha=2.0, max_iter=60),
    "ANN⁺, α = 1": vc.ANN(alpha=1.0, loss="logistic", max_iter=60),
    "ANN⁻, α = −1": vc.ANN(alpha=-1.0, max_iter=60),
}


def main(folder: Path) -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)  # it stops early on purpose
    folder.mkdir(parents=True, exist_ok=True)
    X, y = load_digits(return_X_y=True)
    parts = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
    scores = compare(*parts)
    picture = folder / "report.png"
    draw(*parts, picture)
    page = folder / "report.html"
    page.write_text(render(scores, picture, len(parts[0]), len(parts[1])), encoding="utf-8")
    print(f"\nThe page: {page}")


def compare(X_train, X_test, y_train, y_test):
    """Test accuracy of the class-mean rule and of the vote after each method."""
    scores = {}
    print(f"{'metric':<14} {'class mean':>10} {'vote':>8}   (test accuracy, K = {K})")
    for name, learner in METHODS.items():
        model = make_pipeline(StandardScaler(), learner).fit(X_train, y_train)
        Z_train, Z_test = model.transform(X_train), model.transform(X_test)
        scores[name] = [
            vc.ClassMeanKNN(K, rule=rule).fit(Z_train, y_train).score(Z_test, y_test)
            for rule in ("class_mean", "vote")
        ]
        print(f"{name:<14} {scores[name][0]:>10.1%} {scores[name][1]:>8.1%}", flush=True)
    return scores


def draw(X_train, X_test, y_train, y_test, path):
    """Before and after in two dimensions, how the fit went, and how many neighbors count."""
    before = make_pipeline(StandardScaler(), PCA(2)).fit(X_train)
    after = make_pipeline(StandardScaler(), vc.ANN(loss="logistic", n_components=2, max_iter=100))
    after.fit(X_train, y_train)
    figure, ((left, right), (curve, bars)) = plt.subplots(2, 2, figsize=(11, 9))
    for axes, model, title in (
        (left, before, "before: two principal components"),
        (right, after, "after: two components learned by ANN"),
    ):
        Z = model.transform(X_test)
        accuracy = vc.ClassMeanKNN(K).fit(model.transform(X_train), y_train).score(Z, y_test)
        points = axes.scatter(*Z.T, c=y_test, cmap="tab10", s=8)
        axes.set(title=f"{title}\n{accuracy:.0%} of the test digits right", xticks=[], yticks=[])
    figure.colorbar(points, ax=right, ticks=range(10), label="digit")
    learner = after[-1]
    curve.plot(learner.history_, color="tab:blue")
    curve.set(title="convergence", xlabel="iteration", ylabel="objective J", yscale="log")
    bars.hist(effective_neighbors(after.transform(X_train), y_train), bins=30, color="tab:blue")
    bars.set(title="effective number of similar neighbors", xlabel="K", ylabel="samples")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def effective_neighbors(Z, y, size=300):
    """Lemma 3 read backwards: the K whose mean of K smallest distances is the soft average."""
    K = []
    for i in np.random.RandomState(0).choice(len(Z), size, replace=False):
        same = np.flatnonzero((y == y[i]) & (np.arange(len(y)) != i))
        K.append(vc.k_for_gamma(((Z[same] - Z[i]) ** 2).sum(axis=1), 1.0))
    return K


def render(scores, picture, n_train, n_test):
    """One self-contained page: no network, no script."""
    rows = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{mean:.1%}</td><td>{vote:.1%}</td></tr>"
        for name, (mean, vote) in scores.items()
    )
    image = base64.b64encode(picture.read_bytes()).decode()
    return f"""<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>vicinal: the digits</title>
<style>
 body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
         color: #222; background: #fff }}
 table {{ border-collapse: collapse; margin: 1rem 0 }}
 th, td {{ padding: .3rem 1rem; border-bottom: 1px solid #ddd; text-align: right }}
 th:first-child {{ text-align: left }}
 img {{ max-width: 100%; height: auto }}
</style>
<h1>What learning the metric did to the digits</h1>
<p>{n_train} training and {n_test} test digits of 8 × 8 pixels, standardized. Share of the test
digits that the {K} nearest neighbors get right, by the paper's class-mean rule and by majority
vote; every metric was learned on the training part alone.</p>
<table><tr><th>metric</th><th>class mean</th><th>vote</th></tr>{rows}</table>
<img alt="Maps before and after, convergence, effective neighbors"
     src="data:image/png;base64,{image}">
<p>Made by vicinal {vc.__version__}.</p>
</html>
"""


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("build/demo"))
