"""What is learnt: SAD and BPR, their verbs and their files."""
