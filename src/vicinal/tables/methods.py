"""The methods by name, and the fit of a learner until a deadline."""

from __future__ import annotations

from vicinal.learners.ann import ANN
from vicinal.learners.base import MetricLearner
from vicinal.learners.boostmetric import BoostMetric
from vicinal.learners.covariance import Covariance
from vicinal.learners.gmml import GMML
from vicinal.learners.itml import ITML
from vicinal.learners.ldml import LDML
from vicinal.learners.lfda import LFDA
from vicinal.learners.lmnn import LMNN
from vicinal.learners.lsml import LSML
from vicinal.learners.mcml import MCML
from vicinal.learners.mmc import MMC
from vicinal.learners.nca import NCA
from vicinal.learners.neighbor_learner import NeighborLearner
from vicinal.learners.pnca import PNCA
from vicinal.learners.rca import RCA
from vicinal.learners.rvml import RVML
from vicinal.learners.scml import SCML
from vicinal.learners.sdml import SDML
from vicinal.validation.out_of_fold import Rows
from vicinal.validation.schedule import FitStage

LEARNERS: dict[str, type[MetricLearner]] = {
    learner.__name__.lower(): learner
    for learner in (
        *(ANN, NCA, PNCA, LMNN, MCML, LDML, ITML, GMML, RVML, SCML, BoostMetric),
        *(LFDA, MMC, LSML, SDML, RCA, Covariance),
    )
}
METHODS = ("auto", "single", *LEARNERS, "plain")
"""What can be asked for: ANNClassifier with a committee or one metric, learners, and K-NN alone."""


def make_learner(method: str, seed: int) -> MetricLearner:
    """A learner with its defaults and the seed, if it has use for one."""
    learner = LEARNERS[method]()
    if "random_state" in learner.get_params():
        learner.set_params(random_state=seed)
    return learner


def fit_learner(learner: MetricLearner, rows: Rows, stage: FitStage) -> MetricLearner:
    """Fit until it is done or the time is up; the callback does not stay in the learner."""
    parameters = learner.get_params()
    watched = "callback" in parameters  # the others have closed forms and take no time
    if watched:
        learner.set_params(callback=stage.callback(parameters.get("max_iter")))
    metadata = rows.metadata if isinstance(learner, NeighborLearner) else {}
    try:
        return learner.fit(rows.X, rows.y, **metadata)
    finally:
        if watched:
            learner.set_params(callback=None)
