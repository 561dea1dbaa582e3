"""Faults on purpose: programs that kill, interrupt, damage and starve the library, and count what it does."""
