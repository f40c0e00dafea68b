"""The leader's decisions, with a store in this process and a clock that the test sets."""

from teletensor.launch.membership import Leader, Member, Node
from teletensor.launch.rendezvous import LocalStore

FAILURE = {"rank": 1, "host": "h", "pid": 1, "code": 5, "error": ""}


class Run:
    def __init__(self, smallest, largest, restarts=0, **keywords):
        self.now, self.store, self.limits = 0.0, LocalStore(), (smallest, largest, restarts)
        settings = {"join_timeout": 100, "last_call": 10, "silence": 5, **keywords}
        self.leader = Leader(
            self.store,
            run_id="r",
            min_nodes=smallest,
            max_nodes=largest,
            max_restarts=restarts,
            clock=lambda: self.now,
            **settings,
        )

    @property
    def state(self):
        return self.leader.state

    def join(self, rank=None, limits=None) -> Member:
        smallest, largest, restarts = limits or self.limits
        node = Node(0, f"host{rank}", "address", 1000, 1, "default", rank, smallest, largest, restarts)
        member = Member(self.store, node)
        node.round = member.state().round
        member.publish()
        return member

    def step(self, *living: Member, seconds: float = 0) -> str:
        self.now += seconds
        for member in living:
            member.publish()
        self.leader.step()
        return self.state.phase

    def be_silent(self, *others: Member) -> str:
        """Lets time pass in which only the other nodes give signs of life."""
        for _ in range(4):
            phase = self.step(*others, seconds=2)
        return phase

    def set(self, status: str, *members: Member, failure=None) -> None:
        for member in members:
            member.node.round, member.node.status, member.node.failure = self.state.round, status, failure
            member.publish()

    def group(self) -> list:
        return [node["node_rank"] for node in self.state.group]


def test_group_begins_when_all_have_joined():
    run = Run(2, 2)
    first = run.join(1)
    assert run.step(first) == "joining"
    second = run.join(0)
    assert run.step(first, second) == "running" and run.group() == [0, 1]
    run.set("finished", first)
    assert run.step() == "running"
    run.set("finished", second)
    assert run.step() == "closed" and run.state.code == 0


def test_nodes_without_rank_are_in_the_order_of_joining():
    run = Run(3, 3)
    members = [run.join(), run.join(0), run.join()]
    run.step(*members)
    assert [node["number"] for node in run.state.group] == [1, 0, 2]


def test_last_call():
    run = Run(1, 3)
    members = [run.join(0)]
    assert run.step(*members) == "joining"
    members.append(run.join(1))
    assert run.step(*members, seconds=4) == "joining"
    assert run.step(*members, seconds=6) == "running" and run.group() == [0, 1]


def test_more_nodes_than_the_maximum_wait():
    run = Run(1, 2, restarts=1)
    members = [run.join(k) for k in range(3)]
    assert run.step(*members) == "running" and run.group() == [0, 1]
    run.set("running", *members[:2])
    assert run.step(*members) == "running"
    run.set("left", members[0])
    assert run.step(*members[1:]) == "joining" and run.state.round == 1
    run.set("ready", *members[1:])
    assert run.step(*members[1:]) == "running" and run.group() == [1, 2]


def test_failure_restarts_and_then_closes():
    run = Run(2, 2, restarts=1)
    members = [run.join(0), run.join(1)]
    run.step(*members)
    run.set("running", members[0])
    run.set("failed", members[1], failure=FAILURE)
    assert run.step(*members) == "joining"
    assert (run.state.round, run.state.restarts, run.state.failure) == (1, 1, FAILURE)
    run.set("ready", members[1])
    assert run.step(*members) == "joining"  # the other node still ends its ranks
    run.set("ready", members[0])
    assert run.step(*members) == "running"
    run.set("failed", members[0], failure=FAILURE)
    assert run.step(*members) == "closed" and run.state.code == 5


def test_first_failure_among_nodes():
    run = Run(3, 3)
    members = [run.join(rank) for rank in range(3)]
    run.step(*members)
    run.set("running", *members)
    consequence = {**FAILURE, "rank": 0, "code": 1, "time": 10.0, "caused_by_peer": True}
    run.set("failed", members[0], failure=consequence)
    assert run.step(*members) == "running"  # the cause may be on a node whose failure is still to be published
    run.set("failed", members[1], failure={**FAILURE, "code": 9, "time": 12.0})
    run.set("failed", members[2], failure={**FAILURE, "code": 7, "time": 11.0})
    assert run.step(*members) == "closed" and run.state.code == 7


def test_consequence_of_a_failure_that_nobody_publishes():
    run = Run(2, 2)
    members = [run.join(0), run.join(1)]
    run.step(*members)
    run.set("running", *members)
    run.set("failed", members[0], failure={**FAILURE, "code": 3, "caused_by_peer": True})
    assert run.step(*members) == "running"
    assert run.step(*members, seconds=4) == "closed" and run.state.code == 3


def test_restart_does_not_wait_for_further_nodes():
    run = Run(1, 4, restarts=1)
    members = [run.join(0), run.join(1)]
    run.step(*members)
    run.step(*members, seconds=10)
    run.set("failed", members[0], failure=FAILURE)
    run.step(*members)
    run.set("ready", *members)
    assert run.step(*members) == "running" and run.group() == [0, 1]


def test_restart_waits_for_all_present_nodes():
    """Even without a last call, nodes do not join one after the other, with a restart for each."""
    run = Run(1, 3, restarts=1, last_call=0)
    first = run.join(0)
    assert run.step(first) == "running"
    run.set("running", first)
    second = run.join(1)
    assert run.step(first, second) == "joining"
    run.set("ready", second)
    assert run.step(first, second, seconds=1) == "joining"
    run.set("ready", first)
    assert run.step(first, second) == "running" and run.group() == [0, 1]


def test_joining_does_not_count_as_a_restart():
    run = Run(1, 2)
    first = run.join(0)
    run.step(first)
    run.step(first, seconds=10)
    run.set("running", first)
    second = run.join(1)
    assert run.step(first, second) == "joining" and (run.state.round, run.state.restarts) == (1, 0)


def test_node_that_joins_while_another_has_finished_waits():
    run = Run(1, 3)
    first, second = run.join(0), run.join(1)
    run.step(first, second)
    run.step(first, second, seconds=10)
    run.set("finished", first)
    run.set("running", second)
    third = run.join(2)
    assert run.step(first, second, third) == "running"


def test_silent_node():
    run = Run(1, 2, restarts=1)
    members = [run.join(0), run.join(1)]
    run.step(*members)
    run.set("running", *members)
    assert run.step(members[0], seconds=4) == "running"
    assert run.be_silent(members[0]) == "joining" and "silent" in run.state.message
    run.set("ready", members[0])
    assert run.step(members[0]) == "running" and run.group() == [0]


def test_silent_node_without_restarts_closes_the_run():
    run = Run(2, 2)
    members = [run.join(0), run.join(1)]
    run.step(*members)
    assert run.be_silent(members[0]) == "closed" and run.state.code == 1


def test_silent_node_that_returns():
    run = Run(2, 2, restarts=1)
    members = [run.join(0), run.join(1)]
    run.step(*members)
    assert run.be_silent(members[0]) == "joining"
    run.set("ready", *members)
    assert run.step(*members) == "running" and run.group() == [0, 1]


def test_suspended_leader():
    """The nodes' signs of life of a long pause are read only after it."""
    run = Run(2, 2)
    members = [run.join(0), run.join(1)]
    run.step(*members)
    assert run.step(seconds=1000) == "running"
    assert run.step(*members, seconds=1) == "running"


def test_lost_node_that_cannot_be_replaced():
    run = Run(2, 2, restarts=3, replaceable=False)
    members = [run.join(0), run.join(1)]
    run.step(*members)
    run.leader.lose(1, "connection closed")
    assert run.step(*members) == "closed" and run.state.message == "connection closed"


def test_group_begins_without_nodes_that_never_joined():
    run = Run(1, 2, replaceable=False)
    first = run.join(0)
    assert run.step(first) == "joining"
    run.leader.lose(1, "no route to host")
    assert run.step(first) == "running" and run.group() == [0]


def test_different_settings_are_rejected():
    run = Run(2, 2)
    run.join(0)
    run.join(1, limits=(2, 2, 7))
    assert run.step() == "closed" and "--max-restarts" in run.state.message


def test_join_timeout():
    run = Run(2, 2)
    first = run.join(0)
    assert run.step(first, seconds=101) == "closed" and "1 of at least 2" in run.state.message


def test_a_closed_run_stays_closed():
    run = Run(1, 1)
    run.leader.close(3, "first")
    run.leader.close(4, "second")
    assert (run.step(), run.state.code, run.state.message) == ("closed", 3, "first")
