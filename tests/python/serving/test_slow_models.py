"""Models whose warm-up takes long: they delay nobody, end with their caller, and leave nothing unfinished."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from tritonclient.utils import InferenceServerException

from tests.conftest import IN_PROCESS, client_environment, eventually
from tests.python.distributed.ranks import free_port
from tests.python.session.test_principals import Engine, user

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]

# A minute of products and more; the description is small, because they have no weights. It is traced with smaller sizes,
# because a trace computes.
SLOW = r"""
import teletensor as torch
from teletensor.serving import _publish
def slow(x):
    for _ in range(4000):
        x = x @ x
    return x
def larger(*arguments, traced=_publish.description_of):
    sizes = b"\x1a\x04\xc8\x01\xc8\x01"  # Port.sizes: 200, 200
    description = traced(*arguments)
    assert description.count(sizes) == 2
    return description.replace(sizes, b"\x1a\x04\xdc\x0b\xdc\x0b")  # 1500, 1500
_publish.description_of = larger
torch.serve(slow, "aaa", torch.ones(200, 200), dynamic_batch=False)
"""


class Models(Engine):
    """An engine with models, an HTTP listener, and the principals alice and bob."""

    def __init__(self, folder, *options: str):
        (folder / "models").mkdir()
        self.models, self.http = folder / "models", f"127.0.0.1:{free_port()}"
        super().__init__(folder, "--models", str(self.models), "--model-poll", "0.1", "--http", self.http, *options)
        self.tokens = {name: user(self.file, "add", name) for name in ("alice", "bob")}
        self.tokens["root"] = user(self.file, "add", "root", "--role", "operator")

    def client(self, name: str, program: str) -> subprocess.Popen:
        environment = client_environment(TELETENSOR_ADDRESS=self.address, TELETENSOR_TOKEN=self.tokens[name])
        return subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], env=environment, stderr=subprocess.PIPE, text=True)

    def run(self, name: str, program: str) -> None:
        client = self.client(name, program)
        assert client.wait(120) == 0, client.stderr.read()

    def parts(self) -> list[str]:
        return [path.name for path in self.models.iterdir() if path.name.startswith(".")]

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self.http}/v2/health/ready", timeout=10) as answer:
                return answer.status == 200
        except OSError:
            return False

    def load(self) -> float:
        """Processors that the engine uses now."""
        def seconds() -> float:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

        before = seconds()
        time.sleep(0.5)
        return (seconds() - before) / 0.5

    def loads(self) -> list[dict]:
        return [each for each in self.records("model.load") if each["reason"].startswith("aaa/")]


@pytest.fixture
def engine(tmp_path):
    made = Models(tmp_path).start()
    yield made
    if made.process.poll() is None:
        made.stop()


def publish_slowly(engine, name: str = "alice") -> subprocess.Popen:
    client = engine.client(name, SLOW)
    def is_written() -> bool:
        return any(path.stat().st_size for path in engine.models.glob(".new-*/*/program.pb"))

    eventually(lambda: is_written() or client.poll() is not None, 60)
    assert client.poll() is None, client.stderr.read()
    return client


def test_others_publish_call_and_withdraw_meanwhile(engine):
    client = publish_slowly(engine)
    engine.run("bob", """
        import teletensor as torch
        from teletensor import serving
        for factor in (2, 3):
            torch.serve(lambda x: x * factor, "bbb", torch.ones(2))
            assert torch.models("bbb")(torch.ones(1)).tolist() == [factor]
        serving.withdraw("bbb", 1)
        serving.withdraw("bbb")
    """)  # fmt: skip
    assert client.poll() is None and not engine.loads()
    client.kill()
    eventually(lambda: not engine.parts(), 20)  # the work ended with its caller, and left nothing
    assert engine.loads()[-1]["outcome"] == "cancelled" and not list(engine.models.iterdir())


@pytest.mark.parametrize("way", ["revoked", "stopped"])
def test_work_ends(engine, way):
    client = publish_slowly(engine)
    if way == "revoked":
        user(engine.file, "revoke", "alice")
        eventually(lambda: not engine.parts(), 20)
    else:
        engine.stop()
        assert not engine.parts()
    assert client.wait(60) != 0
    assert not list(engine.models.iterdir())


def test_an_unfinished_version_is_not_loaded_after_a_restart(engine):
    engine.run("bob", "import teletensor as torch; torch.serve(lambda x: x + 1, 'bbb', torch.ones(2))")
    client = publish_slowly(engine)
    engine.process.send_signal(signal.SIGKILL)
    engine.process.wait(20)
    client.kill()
    assert engine.parts()
    engine.socket.unlink()
    engine.start()
    eventually(engine.is_ready, 20)
    engine.run("bob", "import teletensor as torch; assert torch.models('bbb')(torch.ones(1)).tolist() == [2]")
    assert [path.name for path in engine.models.iterdir()] == ["bbb"]


@pytest.mark.parametrize("owner", ["alice", None])
def test_a_slow_model_of_the_folder_delays_no_other(engine, owner):
    """One that a principal has published does not keep the server from being ready, and unloading ends its load."""
    engine.run("bob", "import teletensor as torch; torch.serve(lambda x: x + 1, 'bbb', torch.ones(2))")
    client = publish_slowly(engine)
    part = engine.models / engine.parts()[0]
    engine.process.send_signal(signal.SIGKILL)
    engine.process.wait(20)
    client.kill()
    if owner is None:
        (part / ".owner").unlink()
    part.rename(engine.models / "aaa")
    engine.socket.unlink()
    engine.start()
    engine.run("bob", "import teletensor as torch; assert torch.models('bbb')(torch.ones(1)).tolist() == [2]")
    if owner is not None:
        assert engine.is_ready()
    request = urllib.request.Request(
        f"http://{engine.http}/v2/repository/models/aaa/unload", data=json.dumps({}).encode(), method="POST",
        headers={"Authorization": f"Bearer {engine.tokens['root']}", "Content-Type": "application/json"},
    )  # fmt: skip
    with urllib.request.urlopen(request, timeout=20) as answer:
        assert answer.status == 200
    eventually(engine.is_ready, 20)
    eventually(engine.loads, 20)
    assert engine.loads()[-1]["outcome"] == "cancelled"


def test_the_time_limit(tmp_path):
    engine = Models(tmp_path, "--model-load-timeout", "1").start()
    client = engine.client("alice", SLOW)
    assert client.wait(120) != 0 and "within 1 s (--model-load-timeout)" in client.stderr.read()
    assert not list(engine.models.iterdir())
    engine.stop()


# Minutes of products; not warmed up, because its sizes are dynamic.
LONG = """
    import teletensor as torch
    def slow(x):
        for _ in range(4000):
            x = x @ x
        return x
    n = torch.export.Dim("n", max=2000)
    torch.serve(slow, "long", torch.ones(4, 4), dynamic_batch=False, dynamic_shapes=({0: n, 1: n},))
"""


@pytest.mark.parametrize("way", ["killed", "late", "closed", "revoked"])
def test_a_run_ends_with_its_caller(engine, way):
    engine.run("alice", LONG)
    x = np.zeros((1500, 1500), "float32")
    if way == "closed":
        body = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1500, 1500], "data": x.ravel().tolist()}]}).encode()
        host, port = engine.http.split(":")
        caller = socket.create_connection((host, int(port)))
        caller.sendall((f"POST /v2/models/long/infer HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {engine.tokens['alice']}\r\n"
                        f"Content-Length: {len(body)}\r\n\r\n").encode() + body)  # fmt: skip
    elif way == "late":
        caller = grpcclient.InferenceServerClient(engine.address)
        inputs = [grpcclient.InferInput("x", x.shape, "FP32")]
        inputs[0].set_data_from_numpy(x)
        late = pytest.raises(InferenceServerException, match="Deadline Exceeded")
        with late:
            caller.infer("long", inputs, client_timeout=3, headers={"authorization": f"Bearer {engine.tokens['alice']}"})
    else:
        caller = engine.client("alice", "import teletensor as torch; torch.models('long')(torch.zeros(1500, 1500)).sum().item()")
    if way != "late":
        eventually(lambda: engine.load() > 0.5, 60)
    if way == "killed":
        caller.kill()
    elif way == "closed":
        caller.close()
    elif way == "revoked":
        user(engine.file, "revoke", "alice")
    eventually(lambda: engine.load() < 0.2, 20)
    if way == "revoked":
        assert caller.wait(60) != 0
