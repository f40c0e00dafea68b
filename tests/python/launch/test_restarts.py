"""Restarts, and runs whose number of nodes changes."""

import os
import signal

import pytest

from tests.sockets import port_below_the_ephemeral_ones

from .conftest import all_ended, environments

pytestmark = pytest.mark.slow
TOKEN = {"TELETENSOR_GROUP_TOKEN": "t", "OMP_NUM_THREADS": "1"}
FAST = "keep_alive_interval=0.2,keep_alive_max_attempt=50,last_call_timeout=0"


@pytest.fixture
def port() -> int:
    """A port for the ranks' store or the launchers'; with known masters the launchers' store has the next one."""
    return port_below_the_ephemeral_ones(2)


def nodes(port: int, count: str, *more: str) -> tuple[str, ...]:
    endpoint = f"127.0.0.1:{port}"
    return ("--nnodes", count, "--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint, "--rdzv-id", "run", *more)


def test_restart_until_success(launch, tmp_path):
    script = "record_environment(f'{restart}{rank}'); rank == 1 and restart < 2 and sys.exit(9)"
    code, _, err = launch("-n", "2", "--max-restarts", "3", "--rdzv-id", "r", "script.py", script=script).finish()
    assert code == 0
    assert err.count("rank 1 failed first") == 2 and "restart 2 of 3" in err
    found = environments(tmp_path)
    assert {found[n]["TELETENSOR_GROUP_RUN"] for n in (1, 11, 21)} == {"r/0", "r/1", "r/2"}
    assert [found[n]["TORCHELASTIC_RESTART_COUNT"] for n in (1, 11, 21)] == ["0", "1", "2"]
    assert 31 not in found


def test_restarts_are_limited(launch, tmp_path):
    code, _, err = launch(
        "--max-restarts", "2", "script.py", script="record_pid(restart); sys.exit(10 + restart)"
    ).finish()
    assert code == 12
    assert len(list(tmp_path.glob("pid.*"))) == 3
    assert "exit code 12, in round 2" in err


def test_all_ranks_are_new_after_a_restart(launch):
    script = (
        "record_pid(f'{restart}{rank}'); wait_for(f'pid.{restart}?', 2); rank == 0 and restart == 0 and sys.exit(1)"
    )
    run = launch("-n", "2", "--max-restarts", "1", "script.py", script=script)
    assert run.finish()[0] == 0
    assert len(set(run.pids(4))) == 4


def test_logs_of_each_attempt(launch, tmp_path):
    script = "print(restart); restart or sys.exit(1)"
    arguments = ("--max-restarts", "1", "--log-dir", "logs", "--rdzv-id", "r")
    assert launch(*arguments, "script.py", script=script).finish()[0] == 0
    assert [(tmp_path / f"logs/r/attempt_{k}/0/stdout.log").read_text() for k in range(2)] == ["0\n", "1\n"]


@pytest.mark.parametrize("backend", ["c10d", "static"])
def test_failure_on_another_node(launch, tmp_path, port, backend):
    script = """
record_environment(f"{restart}{rank}")
wait_for(f"environment.{restart}?", 2)
if rank == 1:
    sys.exit(7)
time.sleep(1000)
"""
    common = ("--max-restarts", "1")
    if backend == "c10d":
        common += nodes(port, "2")
    else:
        common += ("--nnodes", "2", "--master-addr", "127.0.0.1", "--master-port", str(port), "--rdzv-id", "run")
    one = launch("--node-rank", "0", *common, "script.py", script=script, environment=TOKEN)
    two = launch("--node-rank", "1", *common, "script.py", environment=TOKEN)
    for run in (one, two):
        code, _, err = run.finish()
        assert code == 7 and "rank 1 failed first" in err and "restart 1 of 1" in err
    found = environments(tmp_path)
    assert sorted(found) == [0, 1, 10, 11]
    assert {found[n]["TELETENSOR_GROUP_RUN"] for n in (0, 1)} == {"run/0"}
    assert {found[n]["TELETENSOR_GROUP_RUN"] for n in (10, 11)} == {"run/1"}
    ports = {e["MASTER_PORT"] for e in found.values()}
    assert ports == {str(port)} if backend == "static" else str(port) not in ports


def test_node_that_joins_and_leaves(launch, tmp_path, port):
    """One node starts alone; a second one joins, and is then killed. The name of the run changes each time."""
    script = """
run = os.environ["TELETENSOR_GROUP_RUN"].partition("/")[2]
record(f"world.{run}.{rank}", world)
record(f"launcher.{run}.{rank}", os.getppid())
if run == "2":
    sys.exit(0)
time.sleep(1000)
"""
    more = ("--rdzv-conf", FAST.replace("attempt=50", "attempt=10"), "--max-restarts", "1")
    one = launch(*nodes(port, "1:2", *more, "--node-rank", "0"), "script.py", script=script, environment=TOKEN)
    one.wait_for("launcher.0.*")
    two = launch(*nodes(port, "1:2", *more, "--node-rank", "1"), "script.py", environment=TOKEN)
    one.wait_for("launcher.1.*", 2)
    two.send(signal.SIGKILL)
    code, _, err = one.finish()
    assert code == 0, err
    worlds = {p.name: p.read_text().strip() for p in tmp_path.glob("world.*")}
    assert worlds == {"world.0.0": "1", "world.1.0": "2", "world.1.1": "2", "world.2.0": "1"}
    assert "a node has joined" in err and "has been silent" in err


def test_node_that_is_stopped_leaves_an_elastic_run(launch, tmp_path, port):
    script = "record_pid(f'{world}.{rank}'); world == 2 and time.sleep(1000)"
    arguments = nodes(port, "1:2", "--rdzv-conf", FAST.replace("timeout=0", "timeout=1000"))
    one = launch(*arguments, "--node-rank", "0", "script.py", script=script, environment=TOKEN)
    eventually_listening(one, port)  # so that this launcher has the store
    two = launch(*arguments, "--node-rank", "1", "script.py", environment=TOKEN)
    pids = one.pids(2)
    two.send(signal.SIGTERM)
    assert two.finish()[0] == 143
    code, _, err = one.finish()
    assert code == 0 and "has left" in err
    all_ended(pids)


def test_node_that_is_stopped_ends_a_run_of_fixed_size(launch, port):
    script = "record_pid(); time.sleep(1000)"
    one = launch(*nodes(port, "2"), "--node-rank", "0", "script.py", script=script, environment=TOKEN)
    two = launch(*nodes(port, "2"), "--node-rank", "1", "script.py", environment=TOKEN)
    one.pids(2)
    two.send(signal.SIGTERM)
    assert two.finish()[0] == 143
    assert one.finish()[0] == 143


def test_end_of_the_launcher_with_the_store(launch, port):
    script = "record_pid(); time.sleep(1000)"
    one = launch(*nodes(port, "2"), "--node-rank", "0", "script.py", script=script, environment=TOKEN)
    with_store = eventually_listening(one, port)
    two = launch(*nodes(port, "2"), "--node-rank", "1", "script.py", environment=TOKEN)
    pids = one.pids(2)
    os.kill(with_store, signal.SIGKILL)
    code, _, err = two.finish()
    assert code == 1 and "the launcher with the store is gone" in err
    all_ended(pids)


def eventually_listening(run, port: int) -> int:
    import socket

    from .conftest import eventually

    def answers():
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    eventually(answers, "a store")
    return run.process.pid


def test_other_token(launch, port):
    one = launch(*nodes(port, "2", "--rdzv-conf", "join_timeout=1000"), "script.py", script="", environment=TOKEN)
    eventually_listening(one, port)
    two = launch(*nodes(port, "2"), "script.py", environment={"TELETENSOR_GROUP_TOKEN": "other"})
    code, _, err = two.finish()
    assert code == 1 and "a different TELETENSOR_GROUP_TOKEN" in err
    one.send()
    assert one.finish()[0] == 143


def test_nodes_that_do_not_join(launch, port):
    code, _, err = launch(
        *nodes(port, "2", "--rdzv-conf", "join_timeout=0.3"), "script.py", script="", environment=TOKEN
    ).finish()
    assert code == 1 and "1 of at least 2 nodes joined" in err
