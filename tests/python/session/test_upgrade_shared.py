"""`teletensor upgrade` with what sessions share: published and shared tensors, process groups, served models."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import IN_PROCESS, eventually
from tests.python.distributed.ranks import free_port
from tests.python.session.replaced_engine import ENGINE, ReplacedEngine, replaced_engine, result_of
from tests.python.session.test_principals import engine as engine_with_principals  # noqa: F401 - a fixture
from tests.python.session.test_principals import run, user
from tests.python.session.test_quotas import MIB, clients  # noqa: F401 - a fixture
from tests.python.session.test_upgrade import LIBRARIES

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]

BEGIN = """
import json, sys, warnings
import teletensor as torch

warnings.simplefilter("ignore")  # of the interruption
torch.connect(sys.argv[1])

def step(value):
    print(json.dumps(value), flush=True)
    return sys.stdin.readline().strip()
"""

PUBLISHER = (
    BEGIN
    + """
import teletensor.multiprocessing
from multiprocessing.reduction import ForkingPickler
weights = torch.arange(300000.0)
torch.publish("weights", {"w": weights, "row": weights.view(3, 100000)[:, :1].clone()})
board = torch.zeros(3)
torch.publish("board", board, read_only=False, persist=True)
exported = torch.ones(4)
step(bytes(ForkingPickler.dumps(exported)).hex())  # not imported yet
exported.add_(1)
board[0] = 7
step(torch.published())
torch.unpublish("weights")
step(board.tolist())
"""
)
READER = (
    BEGIN
    + """
import pickle
opened, board = torch.open("weights"), torch.open("board")
total = opened["w"].double().sum().item()
received = step(total)
try:
    opened["w"].add_(1)
    opened["w"].sum().item()
    raise SystemExit("published tensors are read-only")
except RuntimeError as error:
    assert "read-only" in str(error), error
imported = pickle.loads(bytes.fromhex(received))
board[1] = 8
step([opened["w"].double().sum().item() == total, board.tolist(), imported.tolist()])
assert torch.open("board").tolist() == board.tolist()
step(opened["w"].double().sum().item() == total)
"""
)


class Client:
    """A client that prints a line of JSON, and continues when it gets one."""

    def __init__(self, engine: ReplacedEngine, code: str, *arguments: str):
        self.process: subprocess.Popen = engine.client(code, *arguments)

    def printed(self):
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        return json.loads(line)

    def proceed(self, text: str = "") -> None:
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def end(self) -> None:
        _, errors = self.process.communicate("\n", timeout=60)
        assert self.process.returncode == 0, errors


def test_published_and_shared_tensors_are_passed_on(tmp_path):
    with replaced_engine(tmp_path) as engine:
        publisher = Client(engine, PUBLISHER)
        exported = publisher.printed()
        reader = Client(engine, READER)
        reader.printed()
        held = status(engine)["sessions"]
        for _ in range(2):
            assert engine.upgrade()["lost"] == []
        after = status(engine)["sessions"]
        for new, old in zip(after, held, strict=True):  # a release of a number that was read may come in between
            assert abs(int(new["held_bytes"]) - int(old["held_bytes"])) <= 64
        publisher.proceed()
        listed = {each["name"]: each for each in publisher.printed()}
        assert {name: (each["sessions"], each["read_only"], each["persist"]) for name, each in listed.items()} == {
            "weights": (2, True, False), "board": (2, False, True),
        }  # fmt: skip
        assert listed["weights"]["bytes"] == 4 * 300_003
        reader.proceed(exported)  # it was exported before the upgrade, and is changed after it
        assert reader.printed() == [True, [7, 8, 0], [2, 2, 2, 2]]
        publisher.proceed()
        assert publisher.printed() == [7, 8, 0], "the sessions share memory after the upgrade too"
        publisher.end()
        assert engine.upgrade()["lost"] == []  # a publication that persists, without its session
        reader.proceed()
        assert reader.printed() is True
        reader.end()


def status(engine: ReplacedEngine) -> dict:
    return json.loads(engine._admin().status())


GROUP = (
    BEGIN
    + """
import hashlib
import teletensor.distributed as dist
from teletensor import nn
rank, size = int(sys.argv[3]), int(sys.argv[4])
dist.init_process_group(rank=rank, world_size=size, init_method="tcp://127.0.0.1:" + sys.argv[2])
half = dist.new_group([0])
torch.manual_seed(3)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
model = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
digest = hashlib.sha256()
for number in range(int(sys.argv[5])):
    torch.manual_seed(100 * number + rank)
    optimizer.zero_grad()
    loss = model(torch.randn(6, 8)).pow(2).mean()
    loss.backward()
    optimizer.step()
    total = loss.detach().clone()
    dist.all_reduce(total)
    if rank == 0:
        dist.send(total + 1, 1)
    else:
        received = torch.zeros(())
        dist.recv(received, 0)
        assert received.item() == (total + 1).item()
    digest.update(total.item().hex().encode())
    if number == 4:
        print("running", flush=True)
for parameter in model.parameters():
    digest.update(repr(parameter.tolist()).encode())
print(digest.hexdigest(), flush=True)
"""
)


def ranks(engine: ReplacedEngine, steps: int) -> list[subprocess.Popen]:
    port = str(free_port())
    return [engine.client(GROUP, port, str(rank), "2", str(steps)) for rank in range(2)]


def test_training_of_a_group_continues_bit_identical(tmp_path):
    steps = 150
    with replaced_engine(tmp_path, "--peer-networks", "127.0.0.0/8") as engine:
        expected = [result_of(each) for each in ranks(engine, steps)]
        clients = ranks(engine, steps)
        for each in clients:
            assert each.stdout.readline() == "running\n", each.stderr.read()
        for _ in range(2):
            assert engine.upgrade(wait=30)["lost"] == []
        assert all(each.poll() is None for each in clients), "the training ended before the upgrades"
        assert [result_of(each) for each in clients] == expected


WAITING = (
    BEGIN
    + """
import teletensor.distributed as dist
rank = int(sys.argv[3])
dist.init_process_group(rank=rank, world_size=2, init_method="tcp://127.0.0.1:" + sys.argv[2])
total = torch.ones(2)
if rank == 0:
    dist.send(torch.full((2,), 5.0), 1)
    torch.synchronize()
step("ready")
if rank == 1:
    dist.recv(total, 0)
dist.all_reduce(total)
step(total.tolist())
print(total.tolist())
"""
)


def test_messages_in_progress_are_named(tmp_path):
    with replaced_engine(tmp_path, "--peer-networks", "127.0.0.0/8") as engine:
        port = str(free_port())
        clients = [Client(engine, WAITING, port, str(rank)) for rank in range(2)]
        for each in clients:
            assert each.printed() == "ready"
        with pytest.raises(ValueError, match="rank 1 of its process group .* has not received a message of rank 0"):
            engine.upgrade(wait=0.1)
        clients[0].proceed()  # waits in the collective, which the other rank has not entered
        with pytest.raises(ValueError, match="in progress|a frame runs"):
            engine.upgrade(wait=0.3)
        clients[1].proceed()
        for each in clients:
            assert each.printed() == [6, 6]
        assert engine.upgrade()["lost"] == []
        for each in clients:
            each.end()


def has_ended(pid: int) -> bool:
    """Whether the process has ended, also if its parent has not asked for its status."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def test_a_group_with_other_engines_is_named(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    peers = ("--peer-networks", "127.0.0.0/8")
    with replaced_engine(tmp_path / "a", *peers) as here, replaced_engine(tmp_path / "b", *peers) as there:
        port = str(free_port())
        code = WAITING.replace("rank == 0:", "rank == 2:").replace("rank == 1:", "rank == 3:")
        code = code.replace("print(total.tolist())", "print((total * 2).tolist())")  # not the value that was read before
        clients = [Client(engine, code, port, str(rank))
                   for rank, engine in enumerate((here, there))]  # fmt: skip
        for each in clients:
            assert each.printed() == "ready"
        pid = here.pid
        for engine in (here, there):
            with pytest.raises(
                ValueError, match=r"cannot pass on session 1 of python.*: its process group .* has other ranks that are not passed on"
            ):
                engine.upgrade(wait=0.1)
        assert here.pid == pid
        for each in clients:
            each.proceed()
        for each in clients:
            assert each.printed() == [2, 2], "the group does not continue after a refused upgrade"
        forced = here.call("upgrade", "--wait", "0.2", "--force")
        assert forced.returncode == 0, forced.stderr
        assert "lost: session 1" in forced.stdout
        wait_for(lambda: has_ended(pid))  # until then it answers
        assert "the session has ended" in clients[0].process.communicate("\n", timeout=60)[1]
        clients[1].process.communicate("\n", timeout=60)


DESTROYED = (
    BEGIN
    + """
import teletensor.distributed as dist
from teletensor import nn
rank = int(sys.argv[3])
dist.init_process_group(rank=rank, world_size=2, init_method="tcp://127.0.0.1:" + sys.argv[2])
model = nn.parallel.DistributedDataParallel(nn.Linear(2, 2))
model(torch.ones(2)).sum().backward()
dist.barrier()
dist.destroy_process_group()
torch.synchronize()
step("destroyed")
"""
)


def test_a_reducer_of_a_destroyed_group_is_named(tmp_path):
    with replaced_engine(tmp_path, "--peer-networks", "127.0.0.0/8") as engine:
        port = str(free_port())
        clients = [Client(engine, DESTROYED, port, str(rank)) for rank in range(2)]
        assert [each.printed() for each in clients] == ["destroyed"] * 2
        with pytest.raises(ValueError, match="session 1 .*DistributedDataParallel whose process group was destroyed"):
            engine.upgrade(wait=0.1)
        for each in clients:
            each.end()
        assert engine.upgrade()["lost"] == []


PERSISTING = """
import sys
import teletensor as torch
torch.connect(sys.argv[1])
torch.publish("left", {"w": torch.full((4_000_000,), 2.0), "empty": torch.empty(0, 3)}, persist=True)
torch.publish("board", {"b": torch.zeros(2), "empty": torch.empty(2, 0)}, read_only=False, persist=True)
torch.synchronize()
"""
MEMBER = (
    BEGIN
    + """
import teletensor.distributed as dist
rank = int(sys.argv[3])
dist.init_process_group(rank=rank, world_size=2, init_method="tcp://127.0.0.1:" + sys.argv[2])
while True:
    total = torch.ones(2)
    try:
        dist.all_reduce(total)
        step([total.tolist(), torch.open("left")["w"].sum().item(), [list(torch.open(n)["empty"].shape) for n in ("left", "board")]])
    except RuntimeError as error:
        step(str(error))
"""
)
CONTINUED = [[2, 2], 8_000_000, [[0, 3], [2, 0]]]


def test_groups_and_publications_continue_in_the_old_process_if_the_new_one_fails(tmp_path):
    program = tmp_path / "teletensord"
    shutil.copy(ENGINE, program)
    options = ("--peer-networks", "127.0.0.0/8")
    with replaced_engine(tmp_path, *options, program=program, LD_LIBRARY_PATH=LIBRARIES) as engine:
        persisting = engine.client(PERSISTING)
        assert persisting.wait(60) == 0, persisting.stderr.read()
        port = str(free_port())
        members = [Client(engine, MEMBER, port, str(rank)) for rank in range(2)]
        assert [each.printed() for each in members] == [CONTINUED] * 2
        pid, held = engine.pid, [each["held_bytes"] for each in status(engine)["sessions"]]
        # The new process reads the images of the sessions, and has no memory for the publication without a session.
        intact = program.with_suffix(".intact")
        program.rename(intact)
        program.write_text(f'#!/bin/sh\nTELETENSOR_MEMORY_LIMIT=4MB exec {intact} "$@"\n')
        program.chmod(0o755)
        for _ in range(2):
            with pytest.raises(ValueError, match="the new process has failed: .*out of memory"):
                engine.upgrade()
            for each in members:
                each.proceed()
            assert [each.printed() for each in members] == [CONTINUED] * 2
        assert engine.pid == pid
        assert [each["held_bytes"] for each in status(engine)["sessions"]] == held
        descriptors = len(os.listdir(f"/proc/{pid}/fd"))
        with pytest.raises(ValueError, match="out of memory"):
            engine.upgrade()
        # At most as many, once the connections of the commands have been closed.
        eventually(lambda: len(os.listdir(f"/proc/{pid}/fd")) <= descriptors)
        program.unlink()
        intact.rename(program)
        for _ in range(2):
            assert engine.upgrade()["lost"] == []
            for each in members:
                each.proceed()
            assert [each.printed() for each in members] == [CONTINUED] * 2
        # Errors have the group's name as before the upgrades.
        members[1].process.kill()
        members[1].process.wait()
        members[0].proceed()
        error = members[0].printed()
        assert 'group "' in error and "~" not in error, error
        members[0].process.kill()
        members[0].process.communicate()


def test_rights_and_quotas_are_those_of_before(engine_with_principals, clients):  # noqa: F811
    engine = engine_with_principals
    options = {"alice": ("--memory", "256MB"), "bob": ("--memory", "32MB"), "root": ("--role", "operator")}
    tokens = {who: user(engine.file, "add", who, *options.get(who, ())) for who in ("alice", "bob", "carol", "root")}
    engine.start()
    alice, second, bob, carol = (clients(engine, tokens[who]) for who in ("alice", "alice", "bob", "carol"))
    alice(f"torch.publish('large', torch.ones({100 * MIB}, dtype=torch.uint8), to='*', persist=True)")
    alice("torch.publish('net', {'w': torch.ones(1000), 'empty': torch.empty(0, 3)}, to=['bob'])")
    second("w = torch.open('large')")
    attempts = {
        bob: ("torch.open('alice/net')['w'].sum().item()", "w = torch.open('alice/large')", "torch.open('alice/net')['w'].add_(1)"),
        carol: ("torch.open('alice/net')", "torch.unpublish('alice/large')", "torch.published()[0]['name']"),
        second: (f"x = torch.ones({160 * MIB}, dtype=torch.uint8); torch.synchronize(); x[0].item()",),
    }  # fmt: skip

    def outcomes() -> list:
        seen = [each(code) for each, codes in attempts.items() for code in codes]
        return [each.split(": ")[0] if isinstance(each, str) else each for each in seen]  # of an error, its type

    before = outcomes()
    assert before[0] == 1000 and "OutOfMemoryError" in before[1] and "OutOfMemoryError" in before[-1], before
    pid = None
    try:
        for _ in range(2):
            arguments = ("--address", engine.address, "--token", tokens["root"], "--admin-token", tokens["root"])
            upgraded = run(*arguments, "upgrade")
            assert upgraded.returncode == 0, upgraded.stderr
            pid = json.loads(run(*arguments, "status", "--json").stdout)["pid"]
            assert outcomes() == before
        alice("torch.unpublish('large')")
        assert "has published nothing" in bob("torch.open('alice/large')")
        alice.process.kill()  # its publication ends with its session, whose number the new process has to know
        eventually(lambda: "has published nothing" in str(bob("torch.open('alice/net')")))
    finally:
        if pid is not None:
            os.kill(int(pid), signal.SIGTERM)


def test_exports_of_ended_sessions_stay_charged(engine_with_principals, clients):  # noqa: F811
    engine = engine_with_principals
    alice, root = user(engine.file, "add", "alice", "--memory", "96MB"), user(engine.file, "add", "root", "--role", "operator")
    engine.start()
    exporting, other = clients(engine, alice), clients(engine, alice)
    exporting("import teletensor.multiprocessing; from multiprocessing.reduction import ForkingPickler")
    exported = exporting(f"bytes(ForkingPickler.dumps(torch.ones({64 * MIB}, dtype=torch.uint8))).hex()")
    exporting("torch.synchronize()")
    exporting.end()
    other("import pickle, teletensor.multiprocessing")
    allocate = f"x = torch.ones({48 * MIB}, dtype=torch.uint8); torch.synchronize(); x[0].item(); del x"
    eventually(lambda: "session 1 ended" in engine.text())
    assert "OutOfMemoryError" in str(other(allocate))
    pid = None
    try:
        for _ in range(2):
            upgraded = run("--address", engine.address, "--token", root, "--admin-token", root, "upgrade")
            assert upgraded.returncode == 0, upgraded.stderr
            pid = upgraded.stdout.split()[1]
            assert "OutOfMemoryError" in str(other(allocate))
        assert other(f"pickle.loads(bytes.fromhex('{exported}')).sum().item()") == 64 * MIB
        assert other(allocate) is None  # received, and released since
    finally:
        if pid is not None:
            os.kill(int(pid), signal.SIGTERM)


SAVE = (
    BEGIN
    + """
from teletensor import serving
weight = torch.arange(12.0).reshape(4, 3)
serving.save(lambda x: x @ weight, sys.argv[2], torch.ones(2, 4), output_names=["y"])
matrix = torch.ones(300, 300)
def slow(x):
    for _ in range(60):
        x = x @ matrix / 300
    return x[:, :1]
serving.save(slow, sys.argv[3], torch.ones(2, 300), output_names=["y"])
"""
)


# As in docs/serving.md.
RETRIES = json.dumps({
    "methodConfig": [{
        "name": [{"service": "inference.GRPCInferenceService"}],
        "retryPolicy": {
            "maxAttempts": 4, "initialBackoff": "0.05s", "maxBackoff": "1s", "backoffMultiplier": 2,
            "retryableStatusCodes": ["CANCELLED", "UNAVAILABLE"],
        },
    }]
})  # fmt: skip


class Caller(threading.Thread):
    """Sends inference requests, one after the other, until it is stopped; keeps errors and wrong results."""

    def __init__(self, client, module, model: str, width: int):
        super().__init__(daemon=True)
        self.client, self.module, self.model, self.width = client, module, model, width
        self.stopped, self.calls, self.failures = threading.Event(), 0, []

    def run(self):
        while not self.stopped.is_set():
            x = np.full((2, self.width), self.calls % 7, "float32")
            sent = self.module.InferInput("x", list(x.shape), "FP32")
            sent.set_data_from_numpy(x)
            expected = x @ np.arange(12, dtype="float32").reshape(4, 3) if self.model == "linear" else x[:, :1]
            try:
                got = self.client.infer(self.model, [sent]).as_numpy("y")
                if not np.allclose(got, expected, rtol=1e-4):
                    self.failures.append((got, expected))
            except Exception as error:
                self.failures.append(error)
            self.calls += 1


def test_inference_requests_are_answered_during_upgrades(tmp_path):
    grpc = pytest.importorskip("tritonclient.grpc")
    http = pytest.importorskip("tritonclient.http")
    models = tmp_path / "models"
    for name in ("linear", "slow"):
        (models / name).mkdir(parents=True)
    port = free_port()
    options = ("--models", str(models), "--http", f"127.0.0.1:{port}", "--model-poll", "0")
    (tmp_path / "first").mkdir()
    with replaced_engine(tmp_path / "first") as engine:
        saving = engine.client(SAVE, str(models / "linear/1"), str(models / "slow/1"))
        assert saving.wait(60) == 0, saving.stderr.read()
    with replaced_engine(tmp_path, *options) as engine:
        with grpc.InferenceServerClient(engine.address) as probe:
            wait_for(probe.is_server_ready)
        callers = []
        for module, address in ((grpc, engine.address), (http, f"127.0.0.1:{port}")):
            for model, width in (("linear", 4), ("slow", 300)):
                options = {"channel_args": [("grpc.service_config", RETRIES)]} if module is grpc and model == "linear" else {}
                callers.append(Caller(module.InferenceServerClient(address, **options), module, model, width))
        training = engine.training(200, "0.01")
        training.stdout.readline()
        for each in callers:
            each.start()
        for started in (2, 3):
            before = [each.calls for each in callers]
            assert engine.upgrade(wait=30)["lost"] == []
            wait_for(lambda started=started: engine.log.read_text().count("listening on") == started)
            wait_for(lambda before=before: all(each.calls > calls + 3 for each, calls in zip(callers, before, strict=True)))
        for each in callers:
            each.stopped.set()
            each.join(60)
        # A call that is on its way while its connection is told to end may be refused; it has not run, and the first
        # client's gRPC sends it again.
        refused = [str(failure) for failure in callers[1].failures]
        assert all("CANCELLED" in each for each in refused) and len(refused) <= 2, refused
        assert [each.failures for each in (callers[0], *callers[2:])] == [[], [], []]
        result_of(training)


def test_an_engine_that_cannot_load_its_models_is_not_replaced(tmp_path):
    grpc = pytest.importorskip("tritonclient.grpc")
    models = tmp_path / "models"
    (models / "linear").mkdir(parents=True)
    (models / "slow").mkdir()
    (tmp_path / "first").mkdir()
    with replaced_engine(tmp_path / "first") as engine:
        assert engine.client(SAVE, str(models / "linear/1"), str(models / "slow/1")).wait(60) == 0
    with replaced_engine(tmp_path, "--models", str(models), "--model-poll", "0") as engine:
        with grpc.InferenceServerClient(engine.address) as probe:
            wait_for(probe.is_server_ready)
            pid = engine.pid
            (models / "linear/1/program.pb").write_bytes(b"damaged")
            with pytest.raises(ValueError, match="the new process has failed: .*linear"):
                engine.upgrade()
            assert engine.pid == pid
            assert probe.is_model_ready("linear")


def wait_for(condition) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, "timed out"
        time.sleep(0.02)
