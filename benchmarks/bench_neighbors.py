"""K-NN at scale: time and peak memory of ClassMeanKNN beside scikit-learn's brute-force K-NN.

    python benchmarks/bench_neighbors.py                    # 50,000 x 200,000 x 16
    python benchmarks/bench_neighbors.py --queries 5000 --references 50000

Every contender runs in processes of its own, in turns; "memory" is its peak above the process
with the libraries imported and the inputs made, so it includes compiling and fitting. CPU time is
printed too: it stands when other work on the machine spoils the clock.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

from common import print_header, verdict

CONTENDERS = {
    "scikit-learn": "KNeighborsClassifier({k}, algorithm='brute')",
    "vote": "ClassMeanKNN({k}, rule='vote')",
    "class mean": "ClassMeanKNN({k})",
}

CODE = """
import json, resource, time
import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from vicinal.voting.class_mean import ClassMeanKNN
rng = np.random.default_rng(0)
y = rng.integers(0, {c}, size={m})
centers = 1.5 * rng.normal(size=({c}, {d}))
X = rng.normal(size=({m}, {d}))
X += centers[y]
queries = rng.normal(size=({n}, {d}))
queries += centers[rng.integers(0, {c}, size={n})]
pages = int(open("/proc/self/statm").read().split()[1])
before = pages * resource.getpagesize() / 2**20
model = {model}.fit(X, y)
model.predict(queries[:5])  # compiles, or loads what was compiled
start, cpu = time.perf_counter(), time.process_time()
predicted = model.predict(queries)
seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before
print(json.dumps(dict(seconds=seconds, cpu=cpu, memory=memory, predicted=predicted.tolist())))
"""


def run(model: str, options: argparse.Namespace) -> dict:
    code = CODE.format(
        model=model.format(k=options.neighbors),
        n=options.queries,
        m=options.references,
        d=options.features,
        c=options.classes,
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=50_000)
    parser.add_argument("--references", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=16)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--neighbors", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    options = parse()
    n, m, d = options.queries, options.references, options.features
    print_header(f"K-NN, {n:,} queries x {m:,} references x {d} features, K={options.neighbors}")
    runs: dict[str, list[dict]] = {name: [] for name in CONTENDERS}
    for _ in range(options.repeats):
        for name, model in CONTENDERS.items():
            runs[name].append(run(model, options))
    best = {name: min(taken, key=lambda x: x["seconds"]) for name, taken in runs.items()}
    peer = best["scikit-learn"]
    for name, result in best.items():
        print(
            f"{name:14s} {result['seconds']:7.2f} s  (CPU {result['cpu']:7.2f} s)  "
            f"{result['memory']:6.0f} MB above the inputs"
        )
    print(f"a full distance matrix would take {8 * n * m / 2**20:,.0f} MB")
    pairs = zip(best["vote"]["predicted"], peer["predicted"], strict=True)
    differ = sum(a != b for a, b in pairs)
    print(f"votes that differ from scikit-learn's (it settles ties otherwise): {differ} of {n:,}")
    for name in ("vote", "class mean"):
        ratio, cpu = best[name]["seconds"] / peer["seconds"], best[name]["cpu"] / peer["cpu"]
        verdict(f"{name}, time to scikit-learn's", ratio, "", "<= 1", ratio <= 1)
        verdict(f"{name}, CPU time to scikit-learn's", cpu, "", "<= 1", cpu <= 1)
        memory = max(x["memory"] for x in runs[name])
        verdict(f"{name}, memory", memory, " MB", "<= 500 MB", memory <= 500)
