"""Rank and world size of processes that Slurm or MPI has started, without ``teletensor launch``."""

from __future__ import annotations

from ..distributed._cluster import ClusterError, Environment, cluster_environment, expand_hosts

__all__ = ["ClusterError", "Environment", "cluster_environment", "expand_hosts"]
