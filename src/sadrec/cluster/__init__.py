"""Training on a Ray cluster, by the schedule of one machine (``pip install 'sadrec[ray]'``; docs/cluster.md)."""

from sadrec.cluster.engine import Ray

__all__ = ["Ray"]
