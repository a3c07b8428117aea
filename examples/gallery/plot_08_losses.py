"""
Losses: what a wrong row may cost
=================================

z = (s − t)/γ is negative where a row is nearer to its own class. The hinge forgets rows
beyond the margin, the logistic loss never quite does, the sigmoid counts errors and
gives up on hopeless rows. The slope is the force by which a row pulls at the metric.
"""

import matplotlib.pyplot as plt
import numpy as np

from vicinal.objective.losses import LOSSES

z = np.linspace(-4, 4, 401)
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4), sharex=True)
for name, loss in LOSSES.items():
    left.plot(z, loss.value(z), label=name)
    right.plot(z, loss.slope(z))
left.set(ylim=(-1, 6), xlabel="z, wrong from 0 on", ylabel="loss")
right.set(ylim=(-0.1, 3), xlabel="z", ylabel="slope")
left.legend()
plt.show()
