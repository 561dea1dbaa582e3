"""The paper's simulation study: whether SAD recovers the truth that data was simulated from."""
