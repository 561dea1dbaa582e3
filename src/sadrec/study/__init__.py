"""The paper: its simulation study, tables and figures, written to a report."""

from sadrec.study.alignment import Alignment, align

__all__ = ["Alignment", "align"]
