"""What people did: interactions, comparisons, readers, splits, named data sets, simulation."""
