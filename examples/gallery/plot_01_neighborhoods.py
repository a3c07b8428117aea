"""
What the metric did to the neighborhoods
========================================

One.
"""

import matplotlib.pyplot as plt

import vicinal as vc

plt.plot(vc.soft_average([1.0, 2.0], 1.0), "o")
