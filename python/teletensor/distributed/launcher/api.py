"""LaunchConfig, elastic_launch and launch_agent: torchrun's interface for programs."""

from __future__ import annotations

import dataclasses
import os
import sys
import uuid
from collections.abc import Callable
from typing import Any

from ..elastic import metrics
from ..elastic.agent.server.api import WorkerSpec
from ..elastic.agent.server.local_elastic_agent import LocalElasticAgent
from ..elastic.multiprocessing import DefaultLogsSpecs, LogsSpecs
from ..elastic.multiprocessing.errors import ChildFailedError
from ..elastic.rendezvous import RendezvousParameters
from ..elastic.rendezvous.registry import get_rendezvous_handler

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]


@dataclasses.dataclass
class LaunchConfig:
    """How ranks are started.

    Args:
        min_nodes, max_nodes: how many nodes take part.
        nproc_per_node: ranks on this node.
        logs_specs: where their output goes, by default only to this process's streams.
        run_id: the run's name, by default random.
        role: the name of this node's ranks.
        rdzv_endpoint: HOST:PORT at which the nodes meet; not used by "c10d" with one node.
        rdzv_backend: "c10d" or "static". PyTorch's default, "etcd", is not supported.
        rdzv_configs: further parameters: "rank" of "static", and those of --rdzv-conf.
        rdzv_timeout: deprecated: ``rdzv_configs["timeout"]``, the seconds within which the nodes must join (900).
        max_restarts: restarts of all ranks after a failure.
        monitor_interval: interval of checks, in seconds.
        start_method: of functions: "spawn" or "fork".
        log_line_prefix_template: prefix of each line that is shown, with ${rank}, ${local_rank}, ${role_name}, ${hostname}.
        metrics_cfg: parameters for initialize_metrics().
        local_addr: this node's address for the others.
        event_log_handler: the handler of events; see torch.distributed.elastic.events.
        numa_options: not supported.
        signals_to_handle: signals that end the run and are passed on to the ranks.
        duplicate_stdout_filters, duplicate_stderr_filters: texts of lines that are also written to a file.
        virtual_local_rank: each rank is local rank 0 and sees its own GPU only.
        shutdown_timeout: seconds from SIGTERM to SIGKILL, by default TORCH_ELASTIC_SHUTDOWN_TIMEOUT, or 30.
    """

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: LogsSpecs | None = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "etcd"
    rdzv_configs: dict[str, Any] = dataclasses.field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict[str, str] = dataclasses.field(default_factory=dict)
    local_addr: str | None = None
    event_log_handler: str = "null"
    numa_options: Any = None
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    duplicate_stdout_filters: list[str] | None = None
    duplicate_stderr_filters: list[str] | None = None
    virtual_local_rank: bool = False
    shutdown_timeout: int | None = None

    def __post_init__(self):
        if self.rdzv_timeout != -1:
            self.rdzv_configs["timeout"] = self.rdzv_timeout
        elif "timeout" not in self.rdzv_configs:
            self.rdzv_configs["timeout"] = 900
        if self.logs_specs is None:
            self.logs_specs = DefaultLogsSpecs()
        if self.shutdown_timeout is None:
            self.shutdown_timeout = int(os.environ.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "30"))
        elif self.shutdown_timeout < 0:
            raise ValueError(f"shutdown_timeout must be non-negative, got {self.shutdown_timeout}")


class elastic_launch:  # noqa: N801 - PyTorch's name
    """``elastic_launch(config, entrypoint)(*args)``: see launch_agent()."""

    def __init__(self, config: LaunchConfig, entrypoint: Callable | str | None):
        self._config, self._entrypoint = config, entrypoint

    def __call__(self, *args) -> dict[int, Any]:
        return launch_agent(self._config, self._entrypoint, list(args))


def launch_agent(config: LaunchConfig, entrypoint: Callable | str | None, args: list[Any]) -> dict[int, Any]:
    """Runs a function, or a program, in the ranks of this node, and waits for their end.

    Returns:
        what the function returned in this node's ranks, by rank; None for programs.

    Raises:
        ChildFailedError: a rank failed, after the restarts. It has the failure that came first.
        SignalException: a signal ended the run.
        RendezvousError: the nodes did not find each other, or lost each other.
        ValueError: a setting is wrong.
        NotImplementedError: the backend is etcd, or a setting is not supported.
    """
    config.run_id = config.run_id or str(uuid.uuid4().int)
    os.environ["TORCHELASTIC_SIGNALS_TO_HANDLE"] = config.signals_to_handle
    parameters = RendezvousParameters(
        config.rdzv_backend, config.rdzv_endpoint, config.run_id, config.min_nodes, config.max_nodes, config.local_addr,
        **config.rdzv_configs,
    )  # fmt: skip
    spec = WorkerSpec(
        role=config.role, local_world_size=config.nproc_per_node, entrypoint=entrypoint, args=tuple(args),
        rdzv_handler=get_rendezvous_handler(parameters), max_restarts=config.max_restarts,
        monitor_interval=config.monitor_interval, local_addr=config.local_addr, event_log_handler=config.event_log_handler,
        numa_options=config.numa_options, duplicate_stdout_filters=config.duplicate_stdout_filters,
        duplicate_stderr_filters=config.duplicate_stderr_filters, virtual_local_rank=config.virtual_local_rank,
    )  # fmt: skip
    agent = LocalElasticAgent(
        spec, config.logs_specs, config.start_method, log_line_prefix_template=config.log_line_prefix_template,
        shutdown_timeout=config.shutdown_timeout,
    )  # fmt: skip
    metrics.initialize_metrics(metrics.MetricsConfig(config.metrics_cfg))
    result = agent.run()
    if result.is_failed():
        raise ChildFailedError(_get_entrypoint_name(entrypoint, args), result.failures)
    return result.return_values


def _get_entrypoint_name(entrypoint: Callable | str | None, args: list[Any]) -> str:
    """Returns a function's name, a program's name, or that of the script if the program is this Python."""
    if callable(entrypoint):
        return entrypoint.__name__
    if entrypoint == sys.executable:
        return next((arg for arg in args if not arg.startswith("-")), "")
    return entrypoint or ""
