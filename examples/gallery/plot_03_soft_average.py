"""
The soft average, and the K that it stands for
==============================================

The soft average of n numbers runs from their largest (γ = −∞) over their mean (γ = 0)
to their smallest (γ = ∞). For every K there is one γ at which it is the mean of the K
smallest (Lemma 3): a number of neighbors that need not be whole.
"""

import matplotlib.pyplot as plt
import numpy as np

import vicinal as vc

distances = np.array([0.4, 0.7, 0.9, 1.6, 2.4, 3.1, 4.2, 5.0])
gammas = np.linspace(-6, 22, 401)

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
left.plot(gammas, [vc.soft_average(distances, gamma) for gamma in gammas])
left.hlines(distances, -6.6, -6, color="C6")
for k in (1.5, 2, 3, 5):
    gamma = vc.gamma_for_k(distances, k)
    left.plot(gamma, vc.soft_average(distances, gamma), "o", color="C1")
    left.annotate(f" K = {k}", (gamma, vc.soft_average(distances, gamma)))
left.set(xlabel="γ", ylabel="soft average", title="The values are the ticks at the left")

for gamma in (0, 0.5, 2, 8):
    weights = np.exp(-gamma * distances)
    weights /= weights.sum()  # the derivative of the soft average
    k = vc.k_for_gamma(distances, gamma)
    right.plot(range(1, 9), weights, "o-", label=f"γ = {gamma}: like K = {k:.1f}")
right.set(xlabel="neighbor", ylabel="weight in the soft average")
right.legend()
plt.show()
