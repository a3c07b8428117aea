"""vicinal learns the distance that a nearest-neighbor model needs."""

import vicinal.interrupted_import  # noqa: F401  Ctrl-C from here on

# isort: split
from vicinal import plot, supervision
from vicinal.automatic.classifier import ANNClassifier
from vicinal.automatic.regressor import ANNRegressor
from vicinal.features.table_encoder import TableEncoder
from vicinal.learners.ann import ANN
from vicinal.learners.boostmetric import BoostMetric
from vicinal.learners.covariance import Covariance
from vicinal.learners.gmml import GMML
from vicinal.learners.itml import ITML
from vicinal.learners.ldml import LDML
from vicinal.learners.lfda import LFDA
from vicinal.learners.lmnn import LMNN
from vicinal.learners.lsml import LSML
from vicinal.learners.mcml import MCML
from vicinal.learners.mlkr import MLKR
from vicinal.learners.mmc import MMC
from vicinal.learners.nca import NCA
from vicinal.learners.pnca import PNCA
from vicinal.learners.rca import RCA
from vicinal.learners.rvml import RVML
from vicinal.learners.scml import SCML
from vicinal.learners.sdml import SDML
from vicinal.model_file import load, save
from vicinal.objective.soft_average import gamma_for_k, k_for_gamma, soft_average
from vicinal.reporting import report
from vicinal.search.search_cv import ANNSearchCV
from vicinal.tables import read_table
from vicinal.version import __version__
from vicinal.voting.class_mean import ClassMeanKNN
from vicinal.voting.neighbor_regressor import NeighborRegressor

__all__ = [
    "ANN",
    "GMML",
    "ITML",
    "LDML",
    "LFDA",
    "LMNN",
    "LSML",
    "MCML",
    "MLKR",
    "MMC",
    "NCA",
    "PNCA",
    "RCA",
    "RVML",
    "SCML",
    "SDML",
    "ANNClassifier",
    "ANNRegressor",
    "ANNSearchCV",
    "BoostMetric",
    "ClassMeanKNN",
    "Covariance",
    "NeighborRegressor",
    "TableEncoder",
    "__version__",
    "gamma_for_k",
    "k_for_gamma",
    "load",
    "plot",
    "read_table",
    "report",
    "save",
    "soft_average",
    "supervision",
]
