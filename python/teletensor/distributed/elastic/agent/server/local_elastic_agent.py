"""LocalElasticAgent: the launcher of this node, as an object of a program."""

from __future__ import annotations

import dataclasses
import os
import pickle
import signal
import sys
from pathlib import Path
from typing import Any

from .....launch import parser
from .....launch.execution import execute
from .....launch.function import START_METHODS, Call
from .....launch.launcher import Outcome
from .....launch.options import Options, check
from ...metrics import prof, put_metric
from ...multiprocessing import DefaultLogsSpecs, LogsSpecs, SignalException, Std
from ...multiprocessing.errors import ProcessFailure
from ...rendezvous import RendezvousConnectionError, RendezvousError, RendezvousTimeoutError
from ...rendezvous.registry import _LaunchersRendezvous
from ...rendezvous.static_tcp_rendezvous import StaticTCPRendezvous
from .api import DEFAULT_ROLE, RunResult, SimpleElasticAgent, WorkerSpec, WorkerState

__all__ = ["LocalElasticAgent"]

_EXIT_BARRIER = 300
_SIGNALS = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"


class LocalElasticAgent(SimpleElasticAgent):
    """Starts, monitors and restarts the ranks of this node with the launcher (docs/launch.md).

    Args:
        spec: the ranks. Its rendezvous handler is one of "c10d" or "static"; with several nodes each has an agent, and the
            variable TELETENSOR_GROUP_TOKEN the same secret.
        logs_specs: where their output goes; a DefaultLogsSpecs.
        start_method: of functions: "spawn" or "fork". A program is always a new process.
        exit_barrier_timeout: the launcher waits for other nodes until they end or are lost: only the default is accepted.
        log_line_prefix_template: prefix of each line that is shown, by default the rank.
        shutdown_timeout: seconds from SIGTERM to SIGKILL.
        health_check_server, uninterruptible_state_timeout: not supported.
    """

    def __init__(
        self,
        spec: WorkerSpec,
        logs_specs: LogsSpecs,
        start_method: str = "spawn",
        exit_barrier_timeout: float = _EXIT_BARRIER,
        log_line_prefix_template: str | None = None,
        shutdown_timeout: int = 30,
        health_check_server: None = None,
        uninterruptible_state_timeout: None = None,
    ):
        super().__init__(spec, exit_barrier_timeout, shutdown_timeout)
        if start_method not in START_METHODS:
            raise ValueError(f"[LocalElasticAgent] expected a start_method of {START_METHODS}, got {start_method!r}")
        if not isinstance(logs_specs, DefaultLogsSpecs):
            raise TypeError(f"[LocalElasticAgent] expected logs_specs of the class DefaultLogsSpecs, got {type(logs_specs).__name__}")
        unsupported = {
            "exit_barrier_timeout": exit_barrier_timeout != _EXIT_BARRIER, "health_check_server": health_check_server is not None,
            "uninterruptible_state_timeout": uninterruptible_state_timeout is not None, "numa_options": spec.numa_options is not None,
        }  # fmt: skip
        for name in [name for name, given in unsupported.items() if given]:
            raise NotImplementedError(f"[LocalElasticAgent] {name} is not supported: the launcher has no such setting")
        self._options = _options(spec, logs_specs, log_line_prefix_template, shutdown_timeout)
        self._kept = None if self._options.log_dir is None else Path(self._options.log_dir, self._options.run_id or "none")
        self._call = None if isinstance(spec.entrypoint, str) else Call(spec.entrypoint, tuple(spec.args), start_method)

    @prof
    def run(self, role: str = DEFAULT_ROLE) -> RunResult:
        """Runs the ranks to their end, with restarts. `role` is not used: an agent has the ranks of one role.

        Raises:
            SignalException: a signal ended the run.
            RendezvousTimeoutError: too few nodes joined in time.
            RendezvousConnectionError: the launchers' store does not answer.
            RendezvousError: nodes were lost or stopped.
        """
        group = self._worker_group
        group.state = WorkerState.HEALTHY
        outcome = execute(self._options, self._call, self._kept)
        for worker in group.workers if outcome.first_rank >= 0 else ():
            worker.global_rank = outcome.first_rank + worker.local_rank
        if found := outcome.environment:
            group.group_rank, group.group_world_size = int(found["GROUP_RANK"]), int(found["GROUP_WORLD_SIZE"])
            group.master_addr, group.master_port = found["MASTER_ADDR"], int(found["MASTER_PORT"])
        if outcome.signal is not None:
            group.state = WorkerState.STOPPED
            number = signal.Signals(outcome.signal)
            raise SignalException(f"Process {os.getpid()} got signal: {outcome.signal}", number)
        group.state = WorkerState.SUCCEEDED if outcome.code == 0 else WorkerState.FAILED
        self._put_metrics(outcome)
        if outcome.code == 0:
            return RunResult(group.state, {rank: _restored(result) for rank, result in outcome.results.items()})
        if outcome.failure is None:
            raise _rendezvous_error(outcome)
        return RunResult(group.state, failures={outcome.failure.rank: _process_failure(outcome)})

    def _put_metrics(self, outcome: Outcome) -> None:
        role, succeeded = self._worker_group.spec.role, outcome.code == 0
        put_metric(f"workers.{role}.run_total", 1)
        for has_succeeded, end in ((True, "success"), (False, "failed")):
            for restarted, how in ((True, "with_retries"), (False, "no_retries")):
                met = has_succeeded == succeeded and restarted == bool(outcome.restarts)
                put_metric(f"workers.{role}.run_{end}_{how}", int(met))


def _restored(result: bytes | None) -> Any:
    """Returns the value of a rank of this run, which has pickled it."""
    return None if result is None else pickle.loads(result)  # noqa: S301


def _rendezvous_error(outcome: Outcome) -> RendezvousError:
    kind = RendezvousTimeoutError if outcome.timed_out else RendezvousConnectionError if outcome.disconnected else RendezvousError
    return kind(outcome.message)


def _process_failure(outcome: Outcome) -> ProcessFailure:
    failure = outcome.failure
    by_signal = 128 < failure.code < 128 + signal.NSIG  # the launcher shows the end by signal N as 128 + N
    return ProcessFailure(
        outcome.local_rank, failure.pid, 128 - failure.code if by_signal else failure.code, outcome.failure_file
    )


def _options(spec: WorkerSpec, logs: DefaultLogsSpecs, prefix: str | None, shutdown_timeout: float) -> Options:
    """Returns the launcher's options. Raises OptionError, a ValueError."""
    args = parser({}).parse_args([spec.entrypoint if isinstance(spec.entrypoint, str) else "function"])
    handler = spec.rdzv_handler
    conf: dict[str, object] = {}
    if isinstance(handler, _LaunchersRendezvous):
        params = handler.params
        args.nnodes, args.rdzv_endpoint = f"{params.min_nodes}:{params.max_nodes}", params.endpoint or None
        single, conf = params.max_nodes == 1, params.config
        local_address = spec.local_addr or params.local_addr
    elif isinstance(handler, StaticTCPRendezvous):
        args.nnodes, args.node_rank = str(handler.world_size), handler.rank
        bracketed = f"[{handler.master_addr}]" if ":" in handler.master_addr else handler.master_addr
        args.rdzv_endpoint = f"{bracketed}:{handler.master_port}"
        single, conf = handler.world_size == 1, {"timeout": handler.timeout.total_seconds()}
        local_address = spec.local_addr
    else:
        raise NotImplementedError(
            f"[LocalElasticAgent] the rendezvous backend {handler.get_backend()!r} is not supported: the launcher has c10d and static"
        )
    args.rdzv_backend, args.rdzv_id = handler.get_backend(), handler.get_run_id()
    if not single:  # one node waits for no other
        args.rdzv_conf = ",".join(f"{key}={value}" for key, value in conf.items())
        args.local_addr = local_address
    args.nproc_per_node, args.role = str(spec.local_world_size), spec.role
    args.max_restarts, args.monitor_interval, args.grace = spec.max_restarts, spec.monitor_interval, shutdown_timeout
    args.event_log_handler, args.virtual_local_rank = spec.event_log_handler, spec.virtual_local_rank
    args.duplicate_stdout_filters, args.duplicate_stderr_filters = spec.duplicate_stdout_filters, spec.duplicate_stderr_filters
    args.log_line_prefix_template = prefix or None
    args.signals_to_handle = os.environ.get("TORCHELASTIC_SIGNALS_TO_HANDLE", _SIGNALS)
    options = check(args, sys.executable, dict(os.environ))
    if spec.master_addr is not None and spec.master_port is not None:
        options = dataclasses.replace(options, master=(spec.master_addr, spec.master_port))
    return dataclasses.replace(
        options, command=(spec.entrypoint, *map(str, spec.args)) if isinstance(spec.entrypoint, str) else (),
        local_address=local_address, log_dir=None if logs.root_log_dir == os.devnull else logs.root_log_dir,
        redirects=_bits(logs._redirects, logs), tee=_bits(logs._tee, logs),
        ranks_shown=frozenset(logs._local_ranks_filter) if logs._local_ranks_filter else None,
    )  # fmt: skip


def _bits(streams: Std | dict[int, Std], logs: DefaultLogsSpecs) -> dict[int, int]:
    """Returns the launcher's form of redirected or shown streams; -1 stands for all local ranks."""
    if logs.root_log_dir == os.devnull:
        return {}
    return {-1: int(streams)} if isinstance(streams, Std) else {rank: int(bits) for rank, bits in streams.items()}
