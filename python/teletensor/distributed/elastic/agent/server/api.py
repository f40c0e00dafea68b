"""The description of a node's ranks, their state, and the interface of agents."""

from __future__ import annotations

import abc
import dataclasses
import enum
import os
import socket
import time
import warnings
from collections.abc import Callable
from typing import Any

from ...events import Event, EventSource
from ...multiprocessing.errors import ProcessFailure
from ...rendezvous import RendezvousHandler
from ...utils.logging import get_logger

__all__ = ["ElasticAgent", "RunResult", "SimpleElasticAgent", "Worker", "WorkerGroup", "WorkerSpec", "WorkerState"]

DEFAULT_ROLE = "default"
logger = get_logger(__name__)


@dataclasses.dataclass
class WorkerSpec:
    """The ranks of a node.

    Args:
        role: their role's name.
        local_world_size: their number.
        rdzv_handler: of the run's nodes.
        fn: deprecated; `entrypoint`.
        entrypoint: a function, or a program's name.
        args: its arguments.
        max_restarts: restarts of all ranks after a failure.
        monitor_interval: interval of checks, in seconds.
        master_port, master_addr: where ranks form groups; by default found by the rendezvous.
        local_addr: this node's address for the others.
        event_log_handler: the handler of events; see torch.distributed.elastic.events.
        numa_options: not supported.
        duplicate_stdout_filters, duplicate_stderr_filters: texts of lines that are also written to a file.
        virtual_local_rank: each rank is local rank 0 and sees its own GPU only.
    """

    role: str
    local_world_size: int
    rdzv_handler: RendezvousHandler
    fn: Callable | None = None
    entrypoint: Callable | str | None = None
    args: tuple = ()
    max_restarts: int = 3
    monitor_interval: float = 0.1
    master_port: int | None = None
    master_addr: str | None = None
    local_addr: str | None = None
    event_log_handler: str = "null"
    numa_options: Any = None
    duplicate_stdout_filters: list[str] | None = None
    duplicate_stderr_filters: list[str] | None = None
    virtual_local_rank: bool = False

    def __post_init__(self):
        if self.local_world_size <= 0 or self.monitor_interval <= 0:
            raise AssertionError(
                "[WorkerSpec] expected a positive local_world_size and monitor_interval, got "
                f"{self.local_world_size} and {self.monitor_interval}"
            )
        if self.fn:
            warnings.warn(
                "WorkerSpec.fn will be deprecated, please use WorkerSpec.entrypoint instead", DeprecationWarning, stacklevel=2
            )
            self.entrypoint = self.fn
        if not self.entrypoint:
            raise AssertionError("[WorkerSpec] expected an entrypoint")

    def get_entrypoint_name(self) -> str:
        """Returns the function's qualified name, or the program's without its folder."""
        return os.path.basename(self.entrypoint) if isinstance(self.entrypoint, str) else self.entrypoint.__qualname__


@dataclasses.dataclass(repr=False, eq=False, slots=True)
class Worker:
    """A rank. Numbers that are not known are -1."""

    local_rank: int
    global_rank: int = -1
    role_rank: int = -1
    world_size: int = -1
    role_world_size: int = -1
    id: Any = dataclasses.field(default=None, init=False)

    def __str__(self) -> str:
        names = ("local_rank", "global_rank", "role_rank", "world_size", "role_world_size")
        return ",".join(f"{name}={getattr(self, name)}" for name in names)

    __repr__ = __str__


class WorkerState(str, enum.Enum):
    """The state of a node's ranks."""

    UNKNOWN = "UNKNOWN"
    INIT = "INIT"
    HEALTHY = "HEALTHY"
    UNHEALTHY = "UNHEALTHY"
    STOPPED = "STOPPED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"

    @staticmethod
    def is_running(state: WorkerState) -> bool:
        """Whether the ranks run."""
        return state in (WorkerState.HEALTHY, WorkerState.UNHEALTHY)


class WorkerGroup:
    """The ranks of a node, and their state.

    Attributes:
        group_rank, group_world_size: number of the node and of nodes, and
        master_addr, master_port: of the ranks' store, in the last round; None until ranks have started.
        store: None, because the launchers' own store is not the program's.
    """

    def __init__(self, spec: WorkerSpec):
        self.spec, self.state = spec, WorkerState.INIT
        self.workers = [Worker(rank) for rank in range(spec.local_world_size)]
        self.store = None
        self.group_rank: int | None = None
        self.group_world_size: int | None = None
        self.master_addr: str | None = None
        self.master_port: int | None = None


@dataclasses.dataclass
class RunResult:
    """How a run ended on a node.

    Attributes:
        state: SUCCEEDED or FAILED.
        return_values: of functions, by global rank; None for programs.
        failures: the failure that came first, by global rank. Its rank may belong to another node.
    """

    state: WorkerState
    return_values: dict[int, Any] = dataclasses.field(default_factory=dict)
    failures: dict[int, ProcessFailure] = dataclasses.field(default_factory=dict)

    def is_failed(self) -> bool:
        """Whether the run failed."""
        return self.state == WorkerState.FAILED


def _get_fq_hostname() -> str:
    return socket.getfqdn(socket.gethostname())


class ElasticAgent(abc.ABC):
    """Runs the ranks of a node."""

    @abc.abstractmethod
    def run(self, role: str = DEFAULT_ROLE) -> RunResult:
        """Runs them to their end, with restarts."""

    @abc.abstractmethod
    def get_worker_group(self, role: str = DEFAULT_ROLE) -> WorkerGroup:
        """Returns the ranks and their state."""


class SimpleElasticAgent(ElasticAgent):
    """An agent for the ranks of one specification.

    The launcher starts, monitors and ends the ranks. PyTorch's methods for that, such as ``_start_workers``, are not called;
    a subclass that defines one raises TypeError.
    """

    def __init__(self, spec: WorkerSpec, exit_barrier_timeout: float = 300, shutdown_timeout: int = 30):
        self._worker_group = WorkerGroup(spec)
        self._exit_barrier_timeout, self._shutdown_timeout = exit_barrier_timeout, shutdown_timeout
        self._started_at: float | None = None
        self._total_execution_time = 0

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        replaced = sorted({
            "_assign_worker_ranks", "_exit_barrier", "_initialize_workers", "_invoke_run", "_monitor_workers", "_rendezvous",
            "_restart_workers", "_shutdown", "_start_workers", "_stop_workers",
        } & vars(cls).keys())  # fmt: skip
        if replaced:
            raise TypeError(
                f"{cls.__name__} defines {', '.join(replaced)}, which no agent calls: the launcher starts, monitors and ends the ranks"
            )

    def get_worker_group(self, role: str = DEFAULT_ROLE) -> WorkerGroup:
        return self._worker_group

    def get_event_succeeded(self) -> Event:
        """Returns an event: the run has ended."""
        return self._event("SUCCEEDED")

    def get_event_failed(self) -> Event:
        """Returns an event: an exception ended the run."""
        return self._event("FAILED")

    def _event(self, state: str) -> Event:
        spec = self._worker_group.spec
        metadata = {
            "run_id": spec.rdzv_handler.get_run_id(), "global_rank": None, "group_rank": None, "worker_id": None, "role": spec.role,
            "hostname": _get_fq_hostname(), "state": state, "total_run_time": self._total_execution_time,
            "rdzv_backend": spec.rdzv_handler.get_backend(), "raw_error": None, "agent_restarts": None,
            "metadata": "{}",
        }  # fmt: skip
        return Event(f"torchelastic.worker.status.{state}", EventSource.AGENT, int(time.time() * 1000), metadata)
