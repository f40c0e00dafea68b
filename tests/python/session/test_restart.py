"""persist(): sessions that continue from their image after the engine was killed or restarted."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest

from tests.conftest import IN_PROCESS
from tests.python.session.replaced_engine import ReplacedEngine, replaced_engine, result_of

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]


@pytest.fixture
def engine(tmp_path):
    with replaced_engine(tmp_path, "--state-dir", str(tmp_path / "state"), "--lease", "30") as engine:
        yield engine


def images(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "state").rglob("*.session"))


def test_training_killed_at_random_moments_is_bit_identical(engine, tmp_path):
    steps = 500
    expected = result_of(engine.training(steps))
    client = engine.training(steps, "0.01", "0.3")  # seconds of a pause after 5 steps each, and between images
    client.stdout.readline()
    for _ in range(3):
        time.sleep(random.uniform(0.05, 0.4))
        engine.kill()
        engine.start()
    assert client.poll() is None, "the training ended before the engine was killed"
    assert result_of(client) == expected
    assert engine.log.read_text().count("continues from its image") >= 1
    assert images(tmp_path) == [], "the image of an ended session must be removed"


def test_a_restart_keeps_everything(engine):
    steps = 300
    expected = result_of(engine.training(steps))
    client = engine.training(steps, "0.02", "600")
    client.stdout.readline()
    engine.stop()  # SIGTERM: the engine writes an image before it ends
    engine.start()
    assert result_of(client) == expected
    assert re.search("continues from its image of frame [1-9]", engine.log.read_text())


# Waits for a line of its input between the steps, while the test kills the engine.
STEPWISE = """
import sys, warnings
import numpy as np
import teletensor as torch
warnings.simplefilter("ignore")
torch.connect(sys.argv[1])
def pause(name):
    torch.synchronize()
    print(name, flush=True)
    sys.stdin.readline()
"""

REPEATED = (
    STEPWISE
    + """
big = np.random.default_rng(0).standard_normal(1 << 20).astype(np.float32)
kept = torch.ones(3) * 5
torch.persist(3600)
after = kept + 1
uploaded = torch.from_numpy(big)
twice = uploaded * 2
read = after.sum().item()
pending = torch.from_numpy(big[:300000])  # used only after the engine was killed
pause("first")
assert after.tolist() == [6.0] * 3
assert np.array_equal(twice.numpy(), big * 2)
assert (pending + 1).double().sum().item() == float((big[:300000] + 1).astype(np.float64).sum())
assert read == 18.0
pause("second")
assert kept.tolist() == [5.0] * 3
print("done", flush=True)
"""
)


def killed_between(engine: ReplacedEngine, code: str, *names: str) -> tuple[str, str]:
    """Runs a client, kills the engine when it prints a name, and returns what it prints at its end."""
    client = engine.client(code)
    for name in names:
        assert client.stdout.readline().strip() == name, client.stderr.read()
        engine.kill()
        engine.start()
        client.stdin.write("\n")
        client.stdin.flush()
    return client.communicate(timeout=60)


def test_calls_and_uploads_since_the_image_are_repeated(engine):
    output, errors = killed_between(engine, REPEATED, "first", "second")
    assert output == "done\n", errors


CHECKPOINTED = (
    STEPWISE
    + """
from teletensor.utils.checkpoint import checkpoint

class Exponential(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]

layer, x = torch.nn.Linear(3, 3), torch.linspace(0, 1, 6).reshape(2, 3).requires_grad_()
function = lambda t: Exponential.apply(layer(t).sin()).mean()
(want,) = torch.autograd.grad(function(x), [x], create_graph=True)
want = [want.detach(), *torch.autograd.grad(want.square().sum(), [x, layer.weight])]
y = checkpoint(function, x, use_reentrant=False)
torch.persist(3600)
pause("recorded")
(first,) = torch.autograd.grad(y, [x], create_graph=True)
second = torch.autograd.grad(first.square().sum(), [x, layer.weight])
torch.testing.assert_close([first.detach(), *second], want)
print("done", flush=True)
"""
)


def test_graphs_of_checkpoints_are_stored(engine):
    output, errors = killed_between(engine, CHECKPOINTED, "recorded")
    assert output == "done\n", errors


def test_what_cannot_be_repeated_is_an_error(engine, tmp_path):
    code = (
        STEPWISE
        + """
x = torch.ones(3)
torch.persist(3600)
torch._C.ops.share_export(x, capability="a-capability-of-forty-characters-in-length", timeout=60.0)
pause("exported")
try:
    print(x.tolist())
except ConnectionError as error:
    print(error, flush=True)
"""
    )
    output, errors = killed_between(engine, code, "exported")
    assert "it has lost a part of the session" in output, errors
    assert "share_export" in output


def test_a_session_without_images_ends_as_before(engine):
    output, errors = killed_between(engine, STEPWISE + """
x = torch.ones(3)
pause("ready")
try:
    print(x.tolist())
except ConnectionError as error:
    print(error, flush=True)
""", "ready")  # fmt: skip
    assert "is gone" in output, errors


def test_a_damaged_image_is_named(engine, tmp_path):
    code = (
        STEPWISE
        + """
x = torch.ones(300000)
torch.persist(3600)
pause("stored")
try:
    print(x.sum().item())
except ConnectionError as error:
    print(error, flush=True)
"""
    )
    client = engine.client(code)
    assert client.stdout.readline() == "stored\n", client.stderr.read()
    engine.kill()
    (image,) = images(tmp_path)
    assert image.stat().st_mode & 0o077 == 0, "other users can read the image"
    content = bytearray(image.read_bytes())
    content[len(content) // 2] ^= 1
    image.write_bytes(content)
    engine.start()
    output, errors = client.communicate("\n", timeout=60)
    assert "cannot be restored" in output, errors
    assert image.name in output
    assert "damaged" in output


def test_reasons_against_images(tmp_path):
    code = (
        STEPWISE
        + """
x = torch.ones(3)
for interval in (60.0, -1.0):
    try:
        torch.persist(interval)
    except (RuntimeError, ValueError) as error:
        print(type(error).__name__, error, flush=True)
"""
    )
    with replaced_engine(tmp_path) as engine:
        output, errors = engine.client(code).communicate(timeout=60)
        assert "RuntimeError [persist] the engine stores no sessions; start it with --state-dir" in output, errors
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "open").chmod(0o755)
    with pytest.raises(AssertionError, match="no other one can access"):
        ReplacedEngine(tmp_path, "--state-dir", str(tmp_path / "open"))


def test_storing_ends(engine, tmp_path):
    code = (
        STEPWISE
        + """
torch.persist(3600)
pause("stored")
torch.persist(0)
pause("removed")
"""
    )
    client = engine.client(code)
    assert client.stdout.readline() == "stored\n", client.stderr.read()
    assert len(images(tmp_path)) == 1
    client.stdin.write("\n")
    client.stdin.flush()
    assert client.stdout.readline() == "removed\n", client.stderr.read()
    assert images(tmp_path) == []
    client.communicate("\n", timeout=60)


def test_no_secret_is_in_the_image(engine, tmp_path):
    code = (
        STEPWISE
        + """
x = torch.ones(3)
torch.persist(3600)
pause("stored")
"""
    )
    client = engine.client(code)
    assert client.stdout.readline() == "stored\n", client.stderr.read()
    (image,) = images(tmp_path)
    # The key has 64 hexadecimal digits; the image contains no such text, and its name is a digest of the key.
    assert re.search(rb"[0-9a-f]{64}", image.read_bytes()) is None
    client.communicate("\n", timeout=60)


def test_two_engines_do_not_share_the_folder(engine, tmp_path):
    (tmp_path / "other").mkdir()
    with pytest.raises(AssertionError, match="another engine uses the folder"):
        ReplacedEngine(tmp_path / "other", "--state-dir", str(tmp_path / "state"))


def test_upgrade_of_a_persistent_session(engine):
    steps = 300
    expected = result_of(engine.training(steps))
    client = engine.training(steps, "0.02", "0.2")
    client.stdout.readline()
    assert engine.upgrade()["sessions"] == "1"
    time.sleep(0.3)
    engine.kill()
    engine.start()
    assert result_of(client) == expected
