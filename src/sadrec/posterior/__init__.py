"""The posterior: the Gibbs sampler, and quantities computed from its draws."""

from typing import TYPE_CHECKING

from sadrec._core.lazy import lazily

if TYPE_CHECKING:
    from sadrec.posterior.belief import LOGIT_PER_PROBIT
    from sadrec.posterior.cycles import MOST_ITEMS, CredibleCycle
    from sadrec.posterior.diagnostics import Diagnosis
    from sadrec.posterior.draws import SCALES
    from sadrec.posterior.gibbs import GibbsSAD
    from sadrec.posterior.settings import SamplerSettings

__all__ = ["CredibleCycle", "Diagnosis", "GibbsSAD"]

if not TYPE_CHECKING:
    __getattr__ = lazily(__name__, __file__)
