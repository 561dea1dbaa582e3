"""Training: schedule, samplers, kernels, trainer, checkpoints."""
