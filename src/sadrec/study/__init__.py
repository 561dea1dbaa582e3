"""What is left of the studies in the package: the demo."""
