"""Learn the order inside ratings: what it gains and what it costs."""
