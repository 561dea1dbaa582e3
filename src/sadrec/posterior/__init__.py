"""How sure we are: the Gibbs sampler and what is read off its draws."""

from typing import TYPE_CHECKING

from sadrec._lazy import lazily

if TYPE_CHECKING:
    from sadrec.posterior.cycles import CredibleCycle
    from sadrec.posterior.diagnostics import Diagnosis
    from sadrec.posterior.gibbs import GibbsSAD
    from sadrec.posterior.sampling import SamplerError

__all__ = ["CredibleCycle", "Diagnosis", "GibbsSAD", "SamplerError"]

if not TYPE_CHECKING:
    __getattr__ = lazily(
        __name__,
        {"cycles": "CredibleCycle", "diagnostics": "Diagnosis", "gibbs": "GibbsSAD", "sampling": "SamplerError"},
    )
