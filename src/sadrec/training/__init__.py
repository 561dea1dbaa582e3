"""How it is learnt: schedule, samplers, kernels, trainer, checkpoints."""
