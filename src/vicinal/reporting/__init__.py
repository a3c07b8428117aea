"""A fitted model and its data → what there is to say (``examine``) → one HTML page (``report``).

.. code-block:: text

    inputs       rows, labels and names, checked
    evaluation   held-out or out-of-fold predictions, and those of plain K-NN
    headline, maps, metric, tuning_surfaces, errors, provenance: the sections of the page, each as
                 a frozen value of findings
    page         findings → HTML, with the files in assets/
    row_figures, metric_figures: findings → matplotlib, as vicinal.plot
"""

from vicinal.reporting.examine import examine
from vicinal.reporting.findings import Findings
from vicinal.reporting.page import report

__all__ = ["Findings", "examine", "report"]
