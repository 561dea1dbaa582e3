"""How sure we are: the Gibbs sampler and what is read off its draws."""
