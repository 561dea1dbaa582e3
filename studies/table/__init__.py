"""The paper's evaluation table: SAD, BPR and baselines on leave-one-out sets."""
