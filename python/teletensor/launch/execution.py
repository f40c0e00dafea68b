"""Runs the launcher of one node within a program, as torch.distributed.launcher does, and records the run's events."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from ..distributed.elastic.events import Event, EventSource, record
from .function import Call
from .launcher import Launcher, Outcome, Signals
from .logs import Output
from .options import Options


def execute(options: Options, call: Call | None = None, kept_failures: Path | None = None) -> Outcome:
    """Runs the ranks of this node to their end. Arguments: see Launcher.

    If an event loop runs in the calling thread, as in a notebook, another thread runs the launcher; of the signals that end
    a run it receives only that of Ctrl-C. Signal handlers of the program are restored afterwards.
    """
    launcher = Launcher(options, Output.standard(), call=call, kept_failures=kept_failures)
    begin = time.monotonic()
    if _a_loop_runs():
        _run_in_thread(launcher)
    else:
        with _handlers_restored([*options.signals, signal.SIGCHLD]):
            asyncio.run(launcher.run())
    _record_events(launcher.outcome, options, time.monotonic() - begin)
    return launcher.outcome


def _a_loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@contextlib.contextmanager
def _handlers_restored(numbers: list[int]) -> Iterator[None]:
    """Restores the handlers of signals after the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:  # None: it was not installed by Python
                signal.signal(number, handler)


def _run_in_thread(launcher: Launcher) -> None:
    errors: list[BaseException] = []
    started: list[tuple[asyncio.AbstractEventLoop, Signals]] = []

    def run() -> None:
        try:
            asyncio.run(launcher.run(lambda signals: started.append((asyncio.get_running_loop(), signals))))
        except BaseException as error:  # noqa: BLE001 - raised by the caller
            errors.append(error)

    thread = threading.Thread(target=run, name="teletensor-launcher")
    thread.start()
    while thread.is_alive():
        try:
            thread.join()
        except KeyboardInterrupt:
            for loop, signals in started:
                loop.call_soon_threadsafe(signals.receive, signal.SIGINT)
    if errors:
        raise errors[0]


def _record_events(outcome: Outcome, options: Options, seconds: float) -> None:
    """Records how this node's ranks ended, and that its launcher has."""
    shared = {
        "run_id": options.run_id, "group_rank": options.node_rank, "role": options.role, "hostname": socket.getfqdn(),
        "total_run_time": int(seconds), "rdzv_backend": options.rendezvous, "agent_restarts": outcome.restarts,
    }  # fmt: skip
    now = int(time.time() * 1000)

    def event(state: str, source: EventSource, **metadata) -> None:
        values = {"global_rank": None, "worker_id": None, "raw_error": None, "metadata": "{}", **shared, "state": state, **metadata}
        record(Event(f"torchelastic.worker.status.{state}", source, now, values), options.event_log_handler)

    for local in range(options.ranks if outcome.first_rank >= 0 else 0):
        rank = outcome.first_rank + local
        failure = outcome.failure if outcome.failure is not None and outcome.failure.rank == rank else None
        state = "FAILED" if failure else "TERMINATED" if outcome.code else "SUCCEEDED"
        extra = json.dumps({"local_rank": [local], "exit_code": failure.code} if failure else {"local_rank": [local]})
        error, worker = (failure.error, str(failure.pid)) if failure else (None, None)
        event(state, EventSource.WORKER, global_rank=rank, worker_id=worker, raw_error=error, metadata=extra)
    completed = outcome.code == 0 or outcome.failure is not None  # as in PyTorch: the launcher did, whether or not the ranks did
    event("SUCCEEDED" if completed else "FAILED", EventSource.AGENT, raw_error=outcome.message or None)
