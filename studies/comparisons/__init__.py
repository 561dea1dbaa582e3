"""Predict held-out comparisons of every set there is, and say whether rival factors pay."""
