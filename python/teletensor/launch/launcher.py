"""The launcher of one node: takes part in rounds, starts the node's ranks, and ends them when the round ends."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import secrets
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from .failure import Failure
from .function import Call
from .logs import Output
from .membership import Leader, Member, Node, State
from .options import STDERR, Options, is_this_host
from .ranks import Guard, Ranks, environments
from .rendezvous import LocalStore, StoreClient, StoreError, StoreServer

_FLUSH_SECONDS = 5.0


def free_port() -> int:
    """Returns a TCP port that is free on all interfaces at the moment."""
    with socket.create_server(("", 0)) as probe:
        return probe.getsockname()[1]


def new_leader(store: LocalStore, options: Options, run_id: str, replaceable: bool) -> Leader:
    return Leader(
        store, run_id=run_id, min_nodes=options.min_nodes, max_nodes=options.max_nodes, max_restarts=options.max_restarts,
        join_timeout=options.join_timeout, last_call=options.last_call_timeout, replaceable=replaceable,
        silence=options.keep_alive_interval * options.keep_alive_attempts,
    )  # fmt: skip


class Signals:
    """Signals that end the run, and the exits of children, as events of the loop."""

    def __init__(self, numbers: tuple[int, ...]):
        self.changed = asyncio.Event()
        self.received: list[int] = []
        if threading.current_thread() is not threading.main_thread():
            return  # only the main thread can handle signals; the exits of children are seen at the next check
        loop = asyncio.get_running_loop()
        for number in numbers:
            # A launcher started by nohup, or in the background by a shell, keeps ignoring the signals that they set to
            # ignored.
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self.receive, number)
        loop.add_signal_handler(signal.SIGCHLD, self.changed.set)

    def receive(self, number: int) -> None:
        self.received.append(number)
        self.changed.set()

    async def wait(self, seconds: float) -> None:
        """Waits for a signal or the exit of a child, at most for the time given."""
        try:
            await asyncio.wait_for(self.changed.wait(), seconds)
        except asyncio.TimeoutError:
            pass
        self.changed.clear()


def report(state: State, output: Output) -> None:
    """Writes the summary of a run that did not succeed."""
    if state.failure:
        failure = Failure(**state.failure)
        output.message(f"{failure.describe()}, in round {state.round}")
        if failure.error:
            output.message("the last lines of its standard error:")
            output.write(STDERR, "".join(f"  {line}\n" for line in failure.error.splitlines()).encode())
    if state.message:
        output.message(state.message)


@dataclasses.dataclass
class Outcome:
    """How a run ended on this node."""

    code: int = 0  # the launcher's exit code
    restarts: int = 0  # after failures
    first_rank: int = -1  # rank of this node's first rank; -1 if none has started
    environment: dict[str, str] = dataclasses.field(default_factory=dict)  # of that rank, in the last round
    signal: int | None = None  # that ended this launcher
    message: str = ""  # the reason if neither a rank nor a signal ended the run
    timed_out: bool = False  # too few nodes joined in time
    disconnected: bool = False  # the launchers' store did not answer
    failure: Failure | None = None  # of the rank that failed first, on whichever node
    local_rank: int = -1  # of that rank on its node
    failure_file: str = ""  # a copy of its failure file; it need not exist
    results: dict[int, bytes | None] = dataclasses.field(default_factory=dict)  # pickled return values by rank


class Launcher:
    """One launcher. run() is called once.

    Args:
        options: the checked command line.
        output: the streams on which the ranks' lines are shown.
        host: this node's name in messages.
        summarize: whether to write the summary of a failed run; false if the launcher that started this one does.
        call: what the ranks call, instead of executing the command.
        kept_failures: a folder in which the first failed rank's failure file is kept.
    """

    def __init__(
        self, options: Options, output: Output, host: str = "", summarize: bool = True, call: Call | None = None,
        kept_failures: Path | None = None,
    ):  # fmt: skip
        self.outcome = Outcome()
        self._options, self._output = options, output
        self._call, self._kept_failures = call, kept_failures
        self._host, self._summarize = host or socket.gethostname(), summarize
        self._token = options.token or secrets.token_hex(32)
        self._server: StoreServer | None = None
        self._leader: Leader | None = None
        self._member: Member | None = None
        self._ranks: Ranks | None = None
        self._beat_at = 0.0
        self._folder: Path | None = None
        self._failures = tempfile.TemporaryDirectory(prefix="teletensor-failures-", ignore_cleanup_errors=True)
        self._round_failures: Path | None = None
        self._described_round = 0

    async def run(self, on_start: Callable[[Signals], None] | None = None) -> int:
        """Runs all rounds and returns the exit code. `on_start` receives the object that can end the run."""
        self._signals = Signals(self._options.signals)
        if on_start:
            on_start(self._signals)
        self._guard = Guard(self._failures.name)
        try:
            self.outcome.code = await self._run()
            return self.outcome.code
        except StoreError as e:
            await self._stop_ranks(signal.SIGTERM)
            self.outcome.code, self.outcome.disconnected = 1, True
            self.outcome.message = f"the launcher with the store is gone: {e}"
            self._output.message(self.outcome.message)
            return 1
        finally:
            await self._stop_ranks(signal.SIGTERM)
            self._guard.close()
            if self._server:
                await self._server.stop()
            await self._output.flush(_FLUSH_SECONDS)
            self._failures.cleanup()

    async def _run(self) -> int:
        options = self._options
        if not await self._join():
            self.outcome.signal = self._signals.received[0]
            return 128 + self._signals.received[0]
        node = self._member.node
        while True:
            if self._signals.received:
                return await self._leave(self._signals.received[0])
            self._check_ranks()
            self._publish_heartbeat()
            if self._leader:
                self._leader.step()
            state = self._member.state()
            if state is None:
                pass
            elif options.run_id is not None and state.run_id != options.run_id:
                self.outcome.message = (
                    f"--rdzv-id: expected {state.run_id!r}, that of the node with the store, got {options.run_id!r}"
                )
                self._output.message(self.outcome.message)
                return 1
            elif state.phase == "closed":
                return await self._close(state)
            elif state.round != node.round:
                await self._next_round(state)
                continue
            elif state.phase == "running" and node.status == "ready":
                await self._start(state)
            await self._signals.wait(options.monitor_interval)

    async def _join(self) -> bool:
        """Opens the store and enters the run. Returns False if a signal arrived meanwhile."""
        options = self._options
        store, address = await self._open_store()
        if store is None:
            return False
        if self._leader is None and (self._server is not None or options.rendezvous == "local"):
            self._leader = new_leader(
                store, options, options.run_id or "none", replaceable=options.rendezvous != "local"
            )
        self._member = Member(
            store,
            Node(
                number=0, host=self._host, address=options.local_address or address, port=free_port(), ranks=options.ranks,
                role=options.role, node_rank=options.node_rank, min_nodes=options.min_nodes, max_nodes=options.max_nodes,
                max_restarts=options.max_restarts,
            ),
        )  # fmt: skip
        state = self._member.state()
        if state is not None and state.phase != "closed":
            self._member.node.round = self._described_round = state.round
            self._member.publish()
        return True

    async def _open_store(self) -> tuple[LocalStore | StoreClient | None, str]:
        """Returns the store and this node's address; no store if a signal arrived."""
        options = self._options
        if options.rendezvous == "local":
            return LocalStore(), "127.0.0.1"
        host, port = options.endpoint
        end = time.monotonic() + options.join_timeout
        while True:
            if await self._serve_store(host, port):
                return self._server.store, host
            try:
                store = StoreClient(host, port, self._token, options.read_timeout)
                local = store.local_address
                loopback = local.startswith("127.") or local == "::1"
                return store, host if loopback else local
            except StoreError as e:
                if "TELETENSOR_GROUP_TOKEN" in str(e) or time.monotonic() > end:
                    raise
            if self._signals.received:
                return None, ""
            await self._signals.wait(0.2)

    async def _serve_store(self, host: str, port: int) -> bool:
        """Serves the store if this launcher has to, or if the endpoint is this machine and no other launcher serves it.

        The host's name is looked up at each call, because it may become known after the launcher has started.
        """
        required = self._options.hosts_store
        if not (is_this_host(host) if required is None else required):
            return False
        server = StoreServer(self._token)
        try:
            await server.start(host, port)
        except OSError as e:
            if required:
                raise StoreError(f"[store] cannot listen on port {port}: {e}") from e
            return False
        self._server = server
        return True

    def _publish_heartbeat(self) -> None:
        """Publishes a heartbeat when one is due."""
        now = time.monotonic()
        if now - self._beat_at >= self._options.keep_alive_interval:
            self._beat_at = now
            self._member.publish()

    def _publish(self, status: str, failure: dict | None = None) -> None:
        node = self._member.node
        node.status, node.failure = status, failure
        self._member.publish()

    def _check_ranks(self) -> None:
        """Publishes that a rank has failed, or that all have finished."""
        if self._member.node.status != "running":
            return
        failure = self._ranks.failed(self._host)
        if failure:
            self._copy_failure_file(failure.rank)
            self._publish("failed", dataclasses.asdict(failure))
        elif self._ranks.finished():
            self.outcome.results = self._ranks.results()
            self._publish("finished")

    def _copy_failure_file(self, rank: int) -> None:
        """Keeps a rank's failure file, and makes it that of this launcher, if another launcher started it."""
        own = os.environ.get("TORCHELASTIC_ERROR_FILE")
        if self._round_failures is None:
            return
        with contextlib.suppress(OSError):  # the rank has written none
            if own:
                shutil.copyfile(self._round_failures / f"{rank}.json", own)
            if self._kept_failures is not None:
                kept = self._kept_failures / f"attempt_{self._member.node.round}" / str(rank) / "error.json"
                kept.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self._round_failures / f"{rank}.json", kept)
                self.outcome.failure_file = str(kept)

    async def _start(self, state: State) -> None:
        """Starts the ranks if this node is in the group."""
        number = self._member.node.number
        group_rank = next((i for i, node in enumerate(state.group) if node["number"] == number), None)
        if group_rank is None:
            return  # the group is complete; this node waits for the next round
        options = self._options
        shown = self._summarize or group_rank == 0
        if shown and state.round == 0 and options.ranks > 1 and "OMP_NUM_THREADS" not in os.environ:
            self._output.message(
                "OMP_NUM_THREADS is 1 for each rank, because several run on this host; set it to use more threads"
            )
        per_rank = environments(options, state, group_rank, self._token, os.environ)
        self.outcome.first_rank, self.outcome.environment = int(per_rank[0]["RANK"]), per_rank[0]
        try:
            failures = self._round_failures = Path(tempfile.mkdtemp(dir=self._failures.name))
            self._ranks = Ranks(options, per_rank, self._output, self._log_folder(state), failures, self._guard, self._call)
            self._publish("running")
        except OSError as e:
            code = 127 if isinstance(e, FileNotFoundError) else 126
            failure = Failure(int(per_rank[0]["RANK"]), self._host, 0, code, f"cannot start {options.command[0]}: {e}")
            self._publish("failed", dataclasses.asdict(failure))

    def _log_folder(self, state: State) -> Path | None:
        options = self._options
        if not any(options.redirects.values()) and not any(options.tee.values()) and not options.filters:
            return None
        if self._folder is None:
            self._folder = Path(options.log_dir or tempfile.mkdtemp(prefix="teletensor-launch-"))
            if not options.log_dir:
                self._output.message(f"the ranks' output is in {self._folder}")
        return self._folder / state.run_id / f"attempt_{state.round}"

    async def _stop_ranks(self, number: int) -> None:
        if self._ranks is None:
            return
        ranks, self._ranks = self._ranks, None
        signals = self._signals
        before = len(signals.received)
        # After the first Ctrl-C the ranks have the grace period to end; a second one kills them.
        await ranks.stop(
            number,
            self._options.grace,
            signals.changed,
            lambda: len(signals.received) > max(before, 1),
            self._beat_safely,
        )

    def _beat_safely(self) -> None:
        try:
            self._publish_heartbeat()
            if self._leader:
                self._leader.observe()
        except StoreError:
            pass  # the caller notices at its next call

    async def _next_round(self, state: State) -> None:
        """Ends the ranks of the previous round, and makes this node ready for the next one."""
        await self._stop_ranks(signal.SIGTERM)
        if self._summarize and state.round != self._described_round:
            self._described_round = state.round
            why = Failure(**state.failure).describe() if state.failure else state.message
            count = f"restart {state.restarts} of {self._options.max_restarts}" if state.restarts else "restart"
            self._output.message(f"{why}; all ranks restart ({count})")
        node = self._member.node
        node.round, node.port = state.round, free_port()
        self._publish("ready")

    async def _close(self, state: State) -> int:
        """Ends after the run was closed."""
        await self._stop_ranks(signal.SIGTERM)
        if self._summarize:
            report(state, self._output)
        self.outcome.message, self.outcome.timed_out, self.outcome.restarts = state.message, state.timed_out, state.restarts
        if state.failure:
            failure = self.outcome.failure = Failure(**state.failure)
            first = 0  # rank of the node's first rank
            for node in state.group:
                if failure.rank < first + node["ranks"]:
                    self.outcome.local_rank = failure.rank - first
                    break
                first += node["ranks"]
        await self._leave_run()
        return state.code

    async def _leave(self, number: int) -> int:
        """Ends because of a signal."""
        self.outcome.signal = number
        code = 128 + number
        message = f"stopped by {signal.Signals(number).name}"
        if self._leader:
            self._leader.close(code, f"the launcher on {self._host} was {message}")
        await self._stop_ranks(number)
        if self._summarize:
            self._output.message(message)
        self._member.node.failure = {"code": code}
        await self._leave_run()
        return code

    async def _leave_run(self) -> None:
        """Leaves the run. The launcher with the store stays until all others have left, unless they are silent."""
        self._publish("left", self._member.node.failure)
        while self._server and self._leader and self._leader.present():
            if len(self._signals.received) > 1:
                return
            await self._signals.wait(self._options.monitor_interval)
            self._leader.observe()
