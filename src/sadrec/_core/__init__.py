"""Shared by several folders: checks, files, kernels, random numbers, records. Nothing here is public."""
