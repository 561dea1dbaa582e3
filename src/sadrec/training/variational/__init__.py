"""The variational solver of comparisons: bounds, updates, priors that are learnt, ties and own scores."""
