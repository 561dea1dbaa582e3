"""``python -m sadrec``: the command line."""

from sadrec.cli import main

main()
