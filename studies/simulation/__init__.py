"""The paper's simulation study: SAD finds the truth that data was simulated from."""
