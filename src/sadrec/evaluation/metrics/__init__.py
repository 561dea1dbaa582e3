"""One measure per file: its formula, its source, and a function from arrays to one value per user."""
