"""The paper and the evidence: one folder per study, run as ``python -m studies.NAME``. Not in the wheel."""
