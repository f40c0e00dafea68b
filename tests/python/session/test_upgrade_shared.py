"""`teletensor upgrade` with what sessions share: published and shared tensors, process groups, served models."""

from __future__ import annotations

import json
import subprocess
import threading
import time

import numpy as np
import pytest

from tests.conftest import IN_PROCESS
from tests.python.distributed.ranks import free_port
from tests.python.session.replaced_engine import ReplacedEngine, replaced_engine, result_of

pytestmark = pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")

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
        assert [each["held_bytes"] for each in after] == [each["held_bytes"] for each in held]
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


def test_a_group_with_other_engines_is_named(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    peers = ("--peer-networks", "127.0.0.0/8")
    with replaced_engine(tmp_path / "a", *peers) as here, replaced_engine(tmp_path / "b", *peers) as there:
        port = str(free_port())
        clients = [Client(engine, WAITING.replace("rank == 0:", "rank == 2:").replace("rank == 1:", "rank == 3:"), port, str(rank))
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
        assert "the session has ended" in clients[0].process.communicate("\n", timeout=60)[1]
        clients[1].process.communicate("\n", timeout=60)


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


def test_no_inference_request_is_lost(tmp_path):
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
                callers.append(Caller(module.InferenceServerClient(address), module, model, width))
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
        assert [each.failures for each in callers] == [[]] * 4
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
