"""Beyond one machine: the same schedule on Ray (``pip install 'sadrec[ray]'``; docs/cluster.md)."""

from sadrec.cluster.engine import Ray

__all__ = ["Ray"]
