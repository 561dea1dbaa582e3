"""The share of unequally rated pairs that the model orders rightly."""

import numpy as np

from sadrec.evaluation.metrics.pairs import Floats, Pairs


def unequal_accuracy(pairs: Pairs) -> Floats:
    r"""Accuracy over the pairs whose ratings differ, per case; a case without one has none (NaN).

    .. math:: \frac{1}{|\{j: r_{uj} \ne r_{uo}\}|} \sum_{j: r_{uj} \ne r_{uo}}
        1(s_{oj} x_{uoj} > 0) + \tfrac12 1(x_{uoj} = 0), \qquad s_{oj} = \mathrm{sign}(r_{uo} - r_{uj})

    A margin of exactly 0 counts half, so a model that says nothing has 0.5. It is what ``match`` would be if pairs
    without a known order were left out; averaged per user it is the area under the ROC curve of one held-out item.

    Examples
    --------
    >>> import numpy as np
    >>> unequal_accuracy(Pairs(np.array([2.0, -1.0, 0.0, 5.0]), np.array([1, 1, -1, 0]), np.zeros(4, int), 1))
    array([0.5])
    """
    oriented = pairs.oriented
    return pairs.mean((oriented > 0) + 0.5 * np.equal(oriented, 0), where=pairs.unequal)
