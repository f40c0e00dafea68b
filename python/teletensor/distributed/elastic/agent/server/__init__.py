"""torch.distributed.elastic.agent.server: starts and restarts the ranks of a node."""

from ....._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "api": "ElasticAgent RunResult SimpleElasticAgent Worker WorkerGroup WorkerSpec WorkerState",
    "local_elastic_agent": "LocalElasticAgent",
}

__all__ = [  # noqa: F822 - imported at their first use
    "ElasticAgent", "LocalElasticAgent", "RunResult", "SimpleElasticAgent", "Worker", "WorkerGroup", "WorkerSpec", "WorkerState",
]

__getattr__, __dir__ = lazy_attributes(globals(), None, _NAMES)
