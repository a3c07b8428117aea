"""The public names of metric-learn 0.7.0, with its signatures, over vicinal's learners.

``import vicinal.compat.metric_learn as metric_learn`` is the whole migration. The classes here
hold no algorithms: they turn arguments and tuples into those of ``vc.ITML``, ``vc.LMNN``, … and
ask these. docs/from-metric-learn.md says what is different.
"""

from vicinal.compat.metric_learn.constraints import Constraints
from vicinal.compat.metric_learn.covariance import Covariance
from vicinal.compat.metric_learn.exceptions import NonPSDError, PreprocessorError
from vicinal.compat.metric_learn.itml import ITML, ITML_Supervised
from vicinal.compat.metric_learn.lfda import LFDA
from vicinal.compat.metric_learn.lmnn import LMNN
from vicinal.compat.metric_learn.lsml import LSML, LSML_Supervised
from vicinal.compat.metric_learn.mlkr import MLKR
from vicinal.compat.metric_learn.mmc import MMC, MMC_Supervised
from vicinal.compat.metric_learn.nca import NCA
from vicinal.compat.metric_learn.rca import RCA, RCA_Supervised
from vicinal.compat.metric_learn.scml import SCML, SCML_Supervised
from vicinal.compat.metric_learn.sdml import SDML, SDML_Supervised

__version__ = "0.7.0"

__all__ = [
    "ITML",
    "LFDA",
    "LMNN",
    "LSML",
    "MLKR",
    "MMC",
    "NCA",
    "RCA",
    "SCML",
    "SDML",
    "Constraints",
    "Covariance",
    "ITML_Supervised",
    "LSML_Supervised",
    "MMC_Supervised",
    "NonPSDError",
    "PreprocessorError",
    "RCA_Supervised",
    "SCML_Supervised",
    "SDML_Supervised",
    "__version__",
]
