"""Compare the defaults of SAD with alternatives, on validation data."""
