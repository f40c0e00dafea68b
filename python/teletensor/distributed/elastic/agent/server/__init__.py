"""torch.distributed.elastic.agent.server: starts and restarts the ranks of a node."""

from .api import ElasticAgent, RunResult, SimpleElasticAgent, Worker, WorkerGroup, WorkerSpec, WorkerState
from .local_elastic_agent import LocalElasticAgent

__all__ = [
    "ElasticAgent", "LocalElasticAgent", "RunResult", "SimpleElasticAgent", "Worker", "WorkerGroup", "WorkerSpec", "WorkerState",
]
