"""Leaderboards: whether intervals hold the truth, what to compare next, and other packages on the same rows."""
