"""The paper: its simulation study, tables and figures, written to a report."""
