"""vicinal learns the distance that a nearest-neighbor model needs."""

from vicinal.classifiers.class_mean import ClassMeanKNN
from vicinal.learners.ann import ANN
from vicinal.learners.nca import NCA
from vicinal.learners.pnca import PNCA
from vicinal.objective.soft_average import gamma_for_k, k_for_gamma, soft_average

__version__ = "0.1.0"

__all__ = [
    "ANN",
    "NCA",
    "PNCA",
    "ClassMeanKNN",
    "gamma_for_k",
    "k_for_gamma",
    "soft_average",
]
