"""How good it is: protocols, metrics, comparisons of models, search over settings."""
