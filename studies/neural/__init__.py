"""Anti-symmetric networks whose linear part is SAD, against SAD."""
