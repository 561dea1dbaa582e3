"""Compare the best N of the whole catalogue with EASE, ALS and others."""
