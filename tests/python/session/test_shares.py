"""Principals share the processors: by weight, interactive ones first, and none waits for ever."""

from __future__ import annotations

import json
import os

import pytest

from tests.conftest import IN_PROCESS, SIMULATED, eventually
from tests.python.session.test_principals import Engine, engine, run, user  # noqa: F401 - a fixture
from tests.python.session.test_quotas import clients  # noqa: F401 - a fixture

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]

# Many kernels in one frame, which last about a second on one core.
START = """x = torch.ones(512, 512); y = [x @ x for _ in range(300)]; z = torch.stack([v.sum() for v in y]);
torch._connection.connection().flush()""".replace("\n", " ")


def status(of: Engine, token: str) -> dict:
    done = run("--address", of.address, "--token", token, "status", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_small_work_precedes_batches(engine, clients):  # noqa: F811
    night = user(engine.file, "add", "night", "--priority", "batch", "--weight", "5")
    alice = user(engine.file, "add", "alice")
    engine.options = ("--threads", "1")  # one turn
    engine.start()
    heavy, small = clients(engine, night), clients(engine, alice)
    assert small("torch.ones(3).sum().item()") == 3
    heavy(START)
    # The batch is running: alice's calls do not wait for its end.
    assert small("[(torch.ones(3) + i).sum().item() for i in range(20)][-1]") == 60
    of = {each["name"]: each for each in status(engine, alice)["principals"]}
    assert set(of) == {"alice"} and of["alice"]["weight"] == 1 and of["alice"]["priority"] == "interactive"
    assert heavy("z.sum().item()") == 300 * 512.0**3
    of = {each["name"]: each for each in status(engine, night)["principals"]}
    assert of["night"]["weight"] == 5 and of["night"]["priority"] == "batch" and of["night"]["cpu_seconds"] > 0.01
    user(engine.file, "set", "night", "--priority", "interactive", "--weight", "7")
    eventually(lambda: status(engine, night)["principals"][0]["weight"] == 7)


def test_waiting_sessions_are_shown(engine, clients):  # noqa: F811
    alice = user(engine.file, "add", "alice")
    root = user(engine.file, "add", "root", "--role", "operator")
    engine.options = ("--threads", "1")
    engine.start()
    sessions = [clients(engine, alice) for _ in range(3)]
    for each in sessions:
        each(START)
    seen: set[tuple[str, int]] = set()

    def is_queue() -> bool:
        for each in status(engine, root)["sessions"]:
            seen.add((each["state"], each["queue_position"]))
        return any(state == "queued" and position >= 1 for state, position in seen)

    eventually(is_queue)
    assert all(each("z.sum().item()") == 300 * 512.0**3 for each in sessions)
    eventually(lambda: all(each["state"] == "idle" for each in status(engine, root)["sessions"]))
    assert max(each["waited_seconds"] for each in status(engine, root)["sessions"]) > 0


@pytest.mark.skipif(not SIMULATED, reason="the work lasts long enough on a simulated GPU only")
def test_a_gpu_is_divided(engine, clients):  # noqa: F811
    night = user(engine.file, "add", "night", "--priority", "batch")
    alice = user(engine.file, "add", "alice")
    root = user(engine.file, "add", "root", "--role", "operator")
    engine.options = ("--threads", "8")  # nobody waits for a processor
    engine.start(env={**os.environ, "TELETENSOR_CUDA_PLUGIN": SIMULATED})
    heavy, small = clients(engine, night), clients(engine, alice)
    assert small("x = torch.ones(3, device='cuda'); x.sum().item()") is None
    heavy(START.replace("512, 512", "64, 64, device='cuda'"))
    assert small("[(x + i).sum().item() for i in range(20)][-1]") == 60
    of = {each["principal"]: each for each in status(engine, root)["sessions"]}
    assert of["night"]["waited_seconds"] > 0  # for Alice's turns
    assert heavy("z.sum().item()") == 300 * 64.0**3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--weight", "0"), "expected a weight from 1 to 1000, got 0"),
        (("--weight", "1001"), "expected a weight from 1 to 1000, got 1001"),
    ],
)
def test_invalid_weights(tmp_path, words, message):
    done = run("user", "--file", tmp_path / "p.json", "add", "alice", *words)
    assert done.returncode == 1 and message in done.stderr
