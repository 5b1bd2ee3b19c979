"""The same pieces of work on the workers of a Dask cluster.

connecting
    `cluster_workers`: a cluster from its address, its file, a client, or none yet
local
    A cluster of processes on this machine
versions
    Whether the workers run what this process runs
workers
    `ClusterWorkers`: pieces of work as tasks of Dask, and how they fail
"""

from manifactor.cluster.connecting import cluster_workers
from manifactor.cluster.workers import ClusterSettings, ClusterWorkers

__all__ = ["ClusterSettings", "ClusterWorkers", "cluster_workers"]
