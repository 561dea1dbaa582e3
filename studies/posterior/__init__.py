"""Evidence for the Gibbs sampler."""
