"""Peak memory of a fit, above the imported library; in a process of its own."""

from __future__ import annotations

import subprocess
import sys

from common import ROOT, print_header, verdict

CODE = """
import resource, sys, warnings
sys.path.insert(0, {benchmarks!r})
from common import letter
import vicinal as vc
warnings.simplefilter("ignore")
X, y = letter()
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before = peak()
vc.{learner}.fit(X, y)
print(peak() - before)
"""


def peak_above_import(learner: str) -> float:
    code = CODE.format(benchmarks=str(ROOT / "benchmarks"), learner=learner)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


if __name__ == "__main__":
    print_header("Peak memory of a fit, letter, 20,000 rows")
    for learner in ("NCA(max_iter=3)", "ANN(max_iter=3)", "ANN(alpha=-1, max_iter=3)"):
        megabytes = peak_above_import(learner)
        verdict(f"{learner}, above the import", megabytes, " MB", "<= 300 MB", megabytes <= 300)
    n = 20_000
    print(f"scikit-learn's NCA holds 4.6 arrays of n x n: {4.6 * 8 * n * n / 2**20:.0f} MB")
