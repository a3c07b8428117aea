"""Algorithm 1, step by step against the paper's loop written out naively."""

from __future__ import annotations

import numpy as np
import pytest

from vicinal.solvers import projected_gradient


class HingePairs:
    """Σ_p max(0, 1 + ⟨M, A_p⟩) + 0.05 tr M over M ⪰ 0: kinks and a boundary, as in the paper."""

    n_rows = 30

    def __init__(self, seed, d=4):
        rng = np.random.default_rng(seed)
        near, far = rng.normal(size=(30, d)), rng.normal(size=(30, d)) * [2.0, 1.0, 0.3, 0.1]
        self.A = np.einsum("pi,pj->pij", near, near) - np.einsum("pi,pj->pij", far, far)

    def value_and_gradient(self, M, rows=None):
        z = 1 + np.einsum("ij,pij->p", M, self.A)
        gradient = self.A[z > 0].sum(axis=0) + 0.05 * np.eye(len(M))
        return np.maximum(z, 0).sum() + 0.05 * np.trace(M), gradient

    def project(self, M):
        w, V = np.linalg.eigh((M + M.T) / 2)
        return (V * np.maximum(w, 0)) @ V.T


def naive_algorithm_1(problem, M, n_trials):
    """The paper's loop: J and its gradient anew in every pass, eigenvalues clipped one by one."""

    def psi(A):
        w, V = np.linalg.eigh((A + A.T) / 2)
        return sum(max(w[k], 0.0) * np.outer(V[:, k], V[:, k]) for k in range(len(w)))

    gradient = problem.value_and_gradient(M)[1]
    eta = 0.1 * np.sqrt((M**2).sum()) / np.sqrt((gradient**2).sum())
    J = problem.value_and_gradient(M)[0]
    path, accepted = [], []
    for _ in range(n_trials):
        M_hat = psi(M - eta * problem.value_and_gradient(M)[1])
        J_hat = problem.value_and_gradient(M_hat)[0]
        if J_hat < J:
            M, J, eta = M_hat, J_hat, 1.05 * eta
            accepted.append(True)
        else:
            eta = 0.5 * eta
            accepted.append(False)
        path.append((M, J))
    return path, accepted


@pytest.mark.parametrize("seed", range(4))
def test_every_step_is_the_paper_s(seed):
    problem = HingePairs(seed)
    start = np.eye(4) / np.sqrt(30)
    seen = []
    solution = projected_gradient(problem, start, max_iter=60, tol=0.0, callback=seen.append)
    path, accepted = naive_algorithm_1(problem, start, solution.n_iter)
    assert solution.n_iter >= 30
    assert 0 < sum(accepted) < len(accepted)  # both branches are taken
    for progress, (M, J) in zip(seen, path, strict=True):
        np.testing.assert_allclose(progress.params, M, atol=1e-12)
        np.testing.assert_allclose(progress.value, J, rtol=1e-11)
    J_start = problem.value_and_gradient(start)[0]
    kept = [J for (_, J), yes in zip(path, accepted, strict=True) if yes]
    np.testing.assert_allclose(solution.history, [J_start, *kept], rtol=1e-11)


def test_one_evaluation_a_trial():
    """A rejected trial does not cost the gradient of the point it returns to."""

    class Counting(HingePairs):
        count = 0

        def value_and_gradient(self, M, rows=None):
            self.count += 1
            return super().value_and_gradient(M, rows)

    problem = Counting(0)
    solution = projected_gradient(problem, np.eye(4), max_iter=50, tol=0.0)
    assert solution.n_iter == 50 > len(solution.history)
    assert problem.count == 51


def test_first_step_moves_a_tenth_of_the_norm():
    class Line(HingePairs):
        def value_and_gradient(self, M, rows=None):
            return 100 - np.trace(M), -np.eye(4)

    steps = []
    projected_gradient(
        Line(0), 3 * np.eye(4), max_iter=3, tol=0.0, callback=lambda p: steps.append(p.step)
    )
    np.testing.assert_allclose(steps, 0.1 * 6 * np.array([1, 1.05, 1.05**2]))


def test_ends_with_step_where_the_subgradient_does_not_descend():
    """J = |x₁ − 1| + 0.001|x₂| off the kink: the slope promises what no step keeps."""

    class Ridge:
        n_rows = 1

        def value_and_gradient(self, x, rows=None):
            return abs(x[0] - 1) + 1 - 1e-3 * min(x[1], 1), np.array([1.0, -1e-3])

        def project(self, x):
            return x

    solution = projected_gradient(Ridge(), np.array([1.0, 0.5]), max_iter=1000, tol=1e-9)
    assert (solution.stop_reason, len(solution.history)) == ("step", 1)
    assert 30 < solution.n_iter < 45  # 0.1·2⁻³⁷ < 10⁻¹²
