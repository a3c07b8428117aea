"""A fitted model and its data → what there is to say (``examine``) → one HTML page (``report``).

.. code-block:: text

    inputs       rows, labels and names, checked
    evaluation   held-out or out-of-fold predictions          plain_knn    the line to beat
    headline, choices, maps (+ neighborhoods), metric, tuning, errors, neighbors_used
    (+ soft_margins), provenance: one section of the page each, as a frozen value of findings
    page         findings → HTML, with the files in assets/
"""

from vicinal.reporting.examine import examine
from vicinal.reporting.findings import Findings
from vicinal.reporting.write import report

__all__ = ["Findings", "examine", "report"]
