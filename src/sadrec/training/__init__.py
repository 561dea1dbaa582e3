"""Training: the loop of every fit, its checkpoints, and the settings; ``sgd`` and ``variational`` are the solvers."""
