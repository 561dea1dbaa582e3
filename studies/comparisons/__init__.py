"""Predict held-out comparisons: SAD, T = 1 and Bradley-Terry."""
