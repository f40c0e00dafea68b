"""Rounds of a run: which nodes take part, their ranks, and restarts after failures.

Each launcher writes one key of the store, its node, and reads one key, the state of the run. One launcher, the one that
serves the store, is also the leader: it reads all nodes and alone writes the state. No key has two writers, so nothing
is written under a lock.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable

from .failure import Failure
from .rendezvous import Store

_UNSURE_SECONDS = 3.0  # how long the failures of other nodes are waited for
_MIN_CHECKS = 3  # checks without a heartbeat before a node is lost


@dataclasses.dataclass
class Node:
    """The state of one launcher, written by itself. `status` refers to `round`."""

    number: int  # in the order of joining
    host: str
    address: str  # at which other nodes reach it
    port: int  # free when the node became ready; the master port if the node is the first of the group
    ranks: int
    role: str
    node_rank: int | None
    min_nodes: int
    max_nodes: int
    max_restarts: int
    round: int = 0
    status: str = "ready"  # ready, running, finished, failed, left
    beat: int = 0  # heartbeat counter of the launcher
    failure: dict | None = None  # the failed rank, or the signal that ended the launcher; see failure.Failure


@dataclasses.dataclass
class State:
    """The state of the run, written by the leader."""

    run_id: str
    round: int = 0  # increases with each restart, for whatever reason
    restarts: int = 0  # after failures
    phase: str = "joining"  # joining, running, closed
    group: list[dict] = dataclasses.field(default_factory=list)  # the nodes of this round, by group rank
    code: int = 0  # exit code of a closed run
    failure: dict | None = None  # the first one, of a closed run or of the previous round
    message: str = ""  # the reason why the run was closed or restarted without a failed rank
    timed_out: bool = False  # whether the run was closed because too few nodes had joined in time


def _dump(value: Node | State) -> str:
    return json.dumps(dataclasses.asdict(value))


class Member:
    """A launcher's access to the run."""

    def __init__(self, store: Store, node: Node):
        self._store = store
        node.number = store.add("nodes", 1) - 1
        self.node = node
        self.publish()

    def publish(self) -> None:
        """Writes the node's entry, which is also a heartbeat."""
        self.node.beat += 1
        self._store.set(f"node/{self.node.number}", _dump(self.node))

    def state(self) -> State | None:
        """Returns the state; None before the leader has written it."""
        return State(**json.loads(self._store.get("state"))) if self._store.check(["state"]) else None


@dataclasses.dataclass
class _Beat:
    """The latest heartbeat of a node."""

    count: int
    at: float  # when it was first seen
    checks: int = 0  # since then


class Leader:
    """Starts and ends rounds. Owned by the launcher that serves the store, which calls step() at short intervals."""

    def __init__(
        self,
        store: Store,
        *,
        run_id: str,
        min_nodes: int,
        max_nodes: int,
        max_restarts: int,
        join_timeout: float,
        last_call: float,
        silence: float,
        replaceable: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ):
        """`silence`: a node without heartbeats for this time is lost. If not `replaceable`, only the nodes 0 to
        max_nodes - 1 join, each once.
        """
        self._store, self._clock = store, clock
        self._min, self._max, self._max_restarts = min_nodes, max_nodes, max_restarts
        self._join_timeout, self._last_call, self._silence = join_timeout, last_call, silence
        self._replaceable = replaceable
        self.state = State(run_id)
        self._joining_since = clock()
        self._enough_since: float | None = None
        self._expected: set[int] = set()  # nodes that were present at a restart; the next round waits for them only
        self._beats: dict[int, _Beat] = {}
        self._failed_since: float | None = None  # of the present round
        self._gone: dict[int, str] = {}  # the reason by --node-rank
        self._write()

    def _write(self) -> None:
        self._store.set("state", _dump(self.state))

    def lose(self, node_rank: int, reason: str) -> None:
        """Records that the node with this --node-rank will not return."""
        self._gone.setdefault(node_rank, reason)

    def close(self, code: int, message: str = "", failure: dict | None = None) -> None:
        """Ends the run. The first call counts."""
        if self.state.phase == "closed":
            return
        self.state.phase, self.state.code, self.state.message, self.state.failure = "closed", code, message, failure
        self._write()

    def _nodes(self) -> list[Node]:
        nodes = []
        for number in range(self._store.add("nodes", 0)):
            if self._store.check([f"node/{number}"]):
                nodes.append(Node(**json.loads(self._store.get(f"node/{number}"))))
        return nodes

    def observe(self) -> None:
        """Reads the heartbeats of all nodes."""
        now = self._clock()
        for node in self._nodes():
            beat = self._beats.get(node.number)
            if beat is None or beat.count != node.beat:
                self._beats[node.number] = _Beat(node.beat, now)
            else:
                beat.checks += 1

    def present(self) -> list[Node]:
        """Returns the nodes that have neither left nor been lost."""
        return [n for n in self._nodes() if n.status != "left" and self._lost(n) is None]

    def _lost(self, node: Node) -> str | None:
        """Returns why a node is lost; None if it is not."""
        if node.node_rank in self._gone:
            return self._gone[node.node_rank]
        beat = self._beats.get(node.number)
        # The number of checks matters if this process was suspended: heartbeats sent during the suspension are read
        # only after the first check.
        if beat is None or beat.checks < _MIN_CHECKS or self._clock() - beat.at <= self._silence:
            return None
        return f"node {node.host} has been silent for {self._silence:g} s"

    def _num_candidates(self) -> int:
        """Returns the number of nodes that can take part."""
        return self._max - (0 if self._replaceable else len(self._gone))

    def step(self) -> None:
        """Reads the nodes and advances the state."""
        self.observe()
        if self.state.phase == "joining":
            self._join(self.present())
        elif self.state.phase == "running":
            self._watch(self.present())

    def _join(self, present: list[Node]) -> None:
        now = self._clock()
        settings = (self._min, self._max, self._max_restarts)
        for node in present:
            if (node.min_nodes, node.max_nodes, node.max_restarts) != settings:
                self.close(
                    1, f"node {node.host} has other values of --nnodes or --max-restarts than the node with the store"
                )
                return
        ready = [n for n in present if n.round == self.state.round and n.status == "ready"]
        enough = len(ready) >= self._min
        if not enough:
            self._enough_since = None
        elif self._enough_since is None:
            self._enough_since = now
        complete = enough and len(ready) >= self._num_candidates()
        if enough and not complete:
            absent = self._expected & {n.number for n in present} - {n.number for n in ready}
            complete = not absent if self._expected else now - self._enough_since >= self._last_call
        if complete:
            self._begin(ready)
        elif self._num_candidates() < self._min:
            self.close(1, "; ".join(self._gone.values()))
        elif now - self._joining_since > self._join_timeout:
            self.state.timed_out = True
            self.close(1, f"{len(ready)} of at least {self._min} nodes joined within {self._join_timeout:g} s")

    def _begin(self, ready: list[Node]) -> None:
        ready.sort(key=lambda n: (n.node_rank is None, n.node_rank or 0, n.number))
        self.state.group = [dataclasses.asdict(n) for n in ready[: self._max]]
        self.state.phase = "running"
        self._write()

    def _watch(self, present: list[Node]) -> None:
        nodes = {n.number: n for n in present if n.round == self.state.round}
        group = [g["number"] for g in self.state.group]
        failed = [nodes[k] for k in group if k in nodes and nodes[k].status == "failed"]
        missing = [n for n in self._nodes() if n.number in group and n.number not in nodes]
        if failed:
            self._fail_with_first(failed, running=any(nodes[k].status == "running" for k in group if k in nodes))
        elif missing:
            self._handle_missing(missing)
        elif all(nodes[k].status == "finished" for k in group):
            self.close(0)
        elif len(group) < self._max and any(n.status == "ready" and n.number not in group for n in present):
            if not any(nodes[k].status == "finished" for k in group):
                self._restart(None, "a node has joined")

    def _fail_with_first(self, failed: list[Node], running: bool) -> None:
        """Ends the round with the first of the nodes' failures. If it reports a lost rank, that rank may be on a node
        whose failure is still to be published.
        """
        if self._failed_since is None:
            self._failed_since = self._clock()
        failures = sorted((node.failure for node in failed), key=lambda failure: Failure(**failure).order)
        unsure = running and failures[0].get("caused_by_peer", False)
        if not unsure or self._clock() - self._failed_since >= _UNSURE_SECONDS:
            self._fail(failures[0], "")

    def _handle_missing(self, missing: list[Node]) -> None:
        """Handles nodes of the group that are lost, or have left because of a signal."""
        lost = next((n for n in missing if n.status != "left"), None)
        if lost:
            self._fail(None, self._lost(lost) or f"node {lost.host} is lost")
        elif self._min == self._max:
            self.close((missing[0].failure or {}).get("code", 1), f"the launcher on {missing[0].host} was stopped")
        else:
            self._restart(None, f"node {missing[0].host} has left")

    def _fail(self, failure: dict | None, message: str) -> None:
        if self.state.restarts >= self._max_restarts or self._num_candidates() < self._min:
            self.close(failure["code"] if failure else 1, message, failure)
            return
        self.state.restarts += 1
        self._restart(failure, message)

    def _restart(self, failure: dict | None, message: str) -> None:
        self._expected = {n.number for n in self.present()}
        self._joining_since, self._enough_since = self._clock(), None
        self._failed_since = None
        self.state.round += 1
        self.state.phase, self.state.group = "joining", []
        self.state.failure, self.state.message = failure, message
        self._write()
