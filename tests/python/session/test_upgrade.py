"""`teletensor upgrade` and SIGUSR2: a new process takes over the listeners and every session."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import time
from pathlib import Path

import pytest

from tests.conftest import IN_PROCESS
from tests.python.session.replaced_engine import ENGINE, replaced_engine, result_of

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]
# Of a copy of the program.
LIBRARIES = os.pathsep.join([str(ENGINE.parent), str(ENGINE.parent.parent / "lib")])


def test_training_continues_bit_identical(tmp_path):
    steps = 600
    with replaced_engine(tmp_path) as engine:
        expected = result_of(engine.training(steps))
        client = engine.training(steps, "0.01")  # seconds of a pause after 5 steps each
        client.stdout.readline()
        processes = set()
        for _ in range(3):
            upgraded = engine.upgrade()
            assert upgraded["sessions"] == "1"
            processes.add(upgraded["pid"])
        assert len(processes) == 3
        assert client.poll() is None, "the training ended before the upgrades"
        assert result_of(client) == expected


# The engine's process is replaced at each call of `upgrade`.
EVERYTHING = """
import json, sys, warnings
import teletensor as torch

warnings.simplefilter("ignore")  # of the interruption
torch.connect(sys.argv[1])

def upgrade():
    reply = json.loads(torch._C.Admin(sys.argv[1], deadline_seconds=60).upgrade(10, False))
    assert reply["sessions"] == "1", reply

class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x * x

def close(tensor, expected):
    got = tensor.tolist()
    assert got == expected, (got, expected)

# Views share their base's memory, also in the tape.
base = torch.arange(6.0)
row = base.view(2, 3)[1]
x = torch.ones(3, requires_grad=True)
whole = (x * 2).repeat(2)
part = whole[3:]
part.mul_(3)
seen = []
whole.register_hook(lambda g: seen.append(g.sum().item()))
cube = Cube.apply(x * 2)
poisoned = torch.ones(3)[torch.tensor([7])]
kept = torch.ones(3, requires_grad=True)
product = kept * kept
loss = product.sum()
stale = torch.ones(3, requires_grad=True)
square = (stale * 2).exp()
number = base.sum().item_async()
torch.manual_seed(5)
first = torch.rand(4)
large = torch.arange(300000.0)
large_sum = large.double().sum().item()
half = torch.zeros(2, dtype=torch.bfloat16) + 1.5
meta = torch.empty(3, 4, device="meta")
upgrade()

row.fill_(9)
close(base, [0.0, 1.0, 2.0, 9.0, 9.0, 9.0])
(whole.sum() + cube.sum()).backward()
close(x.grad, [2.0 + 6.0 + 24.0] * 3)
assert seen == [6.0], seen
try:
    poisoned.tolist()
    raise SystemExit("the error was lost")
except IndexError as error:
    assert "7" in str(error), error
loss.backward(retain_graph=True)
upgrade()
loss.backward()
close(kept.grad, [4.0] * 3)
try:
    loss.backward()
    kept.grad.tolist()
    raise SystemExit("a second pass over a freed graph must fail")
except RuntimeError as error:
    assert "second time" in str(error), error
with torch.no_grad():
    square.add_(1)
upgrade()
try:
    square.sum().backward()
    stale.grad.tolist()
    raise SystemExit("a saved tensor was modified")
except RuntimeError as error:
    assert "modified by an inplace operation" in str(error), error
assert number.wait() == 15.0
second = torch.rand(4)
torch.manual_seed(5)
close(torch.cat([first, second]), torch.cat([torch.rand(4), torch.rand(4)]).tolist())
assert large.double().sum().item() == large_sum
close(half, [1.5, 1.5])
assert meta.shape == (3, 4)

# A Program, which the session continues to have.
program = torch.compiler.trace(lambda t: (t * 2).relu() + base, base)
close(program(base), (base * 3).tolist())
upgrade()
close(program(base), (base * 3).tolist())

# Second derivatives, lists, and a model in the middle of autocast.
y = torch.tensor([2.0, 3.0], requires_grad=True)
(g,) = torch.autograd.grad((y ** 3).sum(), y, create_graph=True)
upgrade()
g.sum().backward()
close(y.grad, [12.0, 18.0])
parts = [torch.ones(2, requires_grad=True) for _ in range(3)]
joined = torch.stack(parts)
layer = torch.nn.Linear(8, 8)
def run(between):
    layer.zero_grad()
    torch.manual_seed(1)
    inputs = torch.randn(4, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = layer(inputs)
        between()
        out = layer(out)
    out.float().sum().backward()
    return layer.weight.grad.flatten().tolist()
assert run(upgrade) == run(lambda: None)
joined.sum().backward()
close(parts[2].grad, [1.0, 1.0])

# A backward pass that waits for a hook of the client: the engine waits for its end.
z = torch.ones(2, requires_grad=True)
doubled = z * 2
calls = []
doubled.register_hook(lambda g: calls.append(1) or g + 1)
doubled.sum().backward()
close(z.grad, [4.0, 4.0])
print("done")
"""


def test_everything_of_a_session_is_passed_on(tmp_path):
    with replaced_engine(tmp_path) as engine:
        assert result_of(engine.client(EVERYTHING)) == "done"


def test_the_old_process_continues_if_the_new_one_fails(tmp_path):
    program = tmp_path / "teletensord"
    shutil.copy(ENGINE, program)
    with replaced_engine(tmp_path, program=program, LD_LIBRARY_PATH=LIBRARIES) as engine:
        expected = result_of(engine.training(100))
        client = engine.training(400, "0.01")
        client.stdout.readline()
        pid = engine.pid
        intact = program.with_suffix(".intact")
        program.rename(intact)
        for text, message in (("#!/bin/sh\nexit 3\n", "has ended"), ("not a program", "cannot start the new process")):
            program.write_text(text)
            program.chmod(0o755)
            with pytest.raises(ValueError, match=message):
                engine.upgrade()
            program.unlink()
        assert engine.pid == pid
        intact.rename(program)
        assert engine.upgrade()["pid"] != str(pid)
        result_of(client)
        assert result_of(engine.training(100)) == expected


LARGE = """
import sys
import teletensor as torch
torch.connect(sys.argv[1])
x = torch.arange(4_000_000.0)
expected = x.tolist()
print("ready", flush=True)
sys.stdin.readline()
x.add_(1)
assert x.tolist() == [each + 1 for each in expected]
print("done")
"""


def test_the_old_process_continues_if_the_new_one_cannot_hold_the_sessions(tmp_path):
    program = tmp_path / "teletensord"
    shutil.copy(ENGINE, program)
    with replaced_engine(tmp_path, program=program, LD_LIBRARY_PATH=LIBRARIES) as engine:
        client = engine.client(LARGE)
        assert client.stdout.readline() == "ready\n", client.stderr.read()
        pid = engine.pid
        intact = program.with_suffix(".intact")
        program.rename(intact)
        program.write_text(f'#!/bin/sh\nTELETENSOR_MEMORY_LIMIT=4MB exec {intact} "$@"\n')
        program.chmod(0o755)
        with pytest.raises(ValueError, match="the new process has failed: .*out of memory"):
            engine.upgrade()
        assert engine.pid == pid, "the old process must keep its socket's file"
        program.unlink()
        intact.rename(program)
        assert engine.upgrade()["sessions"] == "1"
        assert client.communicate("\n", timeout=60)[0] == "done\n"


def test_signal_and_service_manager(tmp_path):
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(str(tmp_path / "notify"))
    manager.settimeout(20)
    with replaced_engine(tmp_path, NOTIFY_SOCKET=str(tmp_path / "notify")) as engine:
        assert b"READY=1" in manager.recv(4096)
        pid = engine.pid
        os.kill(pid, signal.SIGUSR2)
        reports = [manager.recv(4096), manager.recv(4096)]
        (main,) = [each for each in reports if each.startswith(b"MAINPID=")]
        for _ in range(500):
            if (new := engine.pid) != pid:
                break
            time.sleep(0.02)
        assert main == b"MAINPID=%d" % new
        assert any(b"READY=1" in each for each in reports)
    assert not Path(engine.address.removeprefix("unix:")).exists(), "the new process must remove the socket's file"


def test_only_operators_upgrade(tmp_path):
    tokens = ["--token-file", str(tmp_path / "token"), "--admin-token-file", str(tmp_path / "admin")]
    with replaced_engine(tmp_path, *tokens) as engine:
        user = (tmp_path / "token").read_text().strip()
        refused = engine.call("--token", user, "upgrade", TELETENSOR_ADMIN_TOKEN=user)
        assert refused.returncode == 1
        assert "admin token" in refused.stderr
        admin = (tmp_path / "admin").read_text().strip()
        os.environ["TELETENSOR_ADMIN_TOKEN"] = admin  # for engine.stop()
        try:
            assert engine.call("upgrade", TELETENSOR_ADMIN_TOKEN=admin).returncode == 0
        finally:
            engine.stop()
            del os.environ["TELETENSOR_ADMIN_TOKEN"]


NAMED = """
import sys
import teletensor as torch
from teletensor.profiler import profile

torch.connect(sys.argv[1])
x = torch.ones(3)
x.tolist()

def profiled():
    with profile():
        (x + 1).tolist()
        yield

def recorded():
    torch.cuda.memory._record_memory_history(max_entries=100)
    (x + 1).tolist()
    yield
    torch.cuda.memory._record_memory_history(enabled=None)

for each in profiled, recorded:
    states = each()
    next(states)
    torch.synchronize()
    print(each.__name__, flush=True)
    sys.stdin.readline()
    assert next(states, None) is None
    assert x.tolist() == [1, 1, 1]
    print("ended", flush=True)
    sys.stdin.readline()
"""
REASONS = {"profiled": "a profile is being recorded", "recorded": "it records a memory history"}


def test_what_cannot_be_passed_on_is_named_and_goes_on(tmp_path):
    """The operator gets the session and the reason; when the reason has gone, the same session is passed on."""
    with replaced_engine(tmp_path) as engine:
        client = engine.client(NAMED)
        for state, reason in REASONS.items():
            assert client.stdout.readline().strip() == state, client.stderr.read()
            pid = engine.pid
            refused = engine.call("upgrade", "--wait", "0.1")
            assert "cannot pass on session 1 of python" in refused.stderr, (state, refused.stdout, refused.stderr)
            assert reason in " ".join(refused.stderr.split()) and engine.pid == pid
            client.stdin.write("\n")
            client.stdin.flush()
            assert client.stdout.readline() == "ended\n", client.stderr.read()
            assert engine.upgrade()["lost"] == []
            assert engine.pid != pid
            client.stdin.write("\n")
            client.stdin.flush()
        assert client.wait(60) == 0, client.stderr.read()
