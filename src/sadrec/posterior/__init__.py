"""How sure we are: the Gibbs sampler and what is read off its draws."""

from sadrec.posterior.cycles import CredibleCycle
from sadrec.posterior.diagnostics import Diagnosis
from sadrec.posterior.gibbs import GibbsSAD
from sadrec.posterior.sampling import SamplerError

__all__ = ["CredibleCycle", "Diagnosis", "GibbsSAD", "SamplerError"]
