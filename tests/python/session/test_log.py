"""The engine's log as lines of JSON, with hostile clients and tokens that must not be in it."""

from __future__ import annotations

import json
import subprocess
import sys

import grpc
import pytest

from tests.conftest import BUILD, IN_PROCESS, client_environment, eventually
from tests.python.session.test_principals import Engine, user
from tests.python.session.test_tls import free_port

pytestmark = pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")

NAME = 'a"}\n{"level":"forged"} \x1b[2J\u2028\x85 é'
CLIENT = """
import os, sys, teletensor as torch
from teletensor import _C
def connect(token):
    return _C.connect(address=sys.argv[1], token=token, client_name=sys.argv[2], memory_limit=0, compression="none",
                      content_addressed=False)
try:
    connect(sys.argv[3])
except ConnectionError as error:
    print(error)
session = connect(os.environ["ALICE"])
_C.set_session(session)
print(torch.ones(3).sum().item())
session.close()
"""


def lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.split("\n") if line]


def test_lines_are_objects_without_secrets(tmp_path):
    place = f"127.0.0.1:{free_port()}"
    config = tmp_path / "engine.conf"
    config.write_text("log-format = json\nlog-level = trace\n")
    engine = Engine(tmp_path, "--listen", place, "--config", str(config))
    alice, planted = user(engine.file, "add", "alice"), "planted-" + "7" * 56
    engine.start()
    client = subprocess.run(
        [sys.executable, "-c", CLIENT, place, NAME, planted], capture_output=True, text=True, timeout=60,
        env=client_environment(ALICE=alice),
    )  # fmt: skip
    assert client.returncode == 0 and client.stdout.endswith("3.0\n") and "token" in client.stdout, client.stdout + client.stderr
    with grpc.insecure_channel(place) as channel:
        for text in (planted, f"Bearer {planted}"):
            with pytest.raises(grpc.RpcError):
                channel.unary_unary("/teletensor.v1.Admin/Status")(b"", metadata=[("authorization", text)])
    eventually(lambda: "session 1 ended" in engine.text())
    found = lines(engine.text())
    opened = next(line for line in found if "opened by" in line["message"])
    assert (opened["session"], opened["principal"], opened["peer"], opened["level"]) == (1, "alice", "127.0.0.1", "info")
    assert opened["message"].startswith("session 1 opened by a\"}\\n{") and opened["time"].endswith("Z")
    assert next(line for line in found if line["message"] == "session 1 ended")["principal"] == "alice"
    refused = [line for line in found if line["message"].startswith("refused ")]
    assert len(refused) == 3 and all(line["peer"].startswith("ipv4:127.0.0.1:") and line["level"] == "warning" for line in refused)
    assert all(set(line) <= {"time", "level", "message", "session", "principal", "peer", "left_out_bytes"} for line in found)
    secrets = (alice, planted, engine.token("token"), engine.token("admin-token"))
    assert not any(secret in engine.text() for secret in secrets) and "forged" not in {line["level"] for line in found}
    assert engine.text().isascii()
    engine.stop()
    assert lines(engine.text())[-1]["message"] == "shutting down: a signal"


def test_text_is_the_default_and_the_variable_selects(tmp_path):
    for name, environment in (("text", {}), ("json", {"TELETENSOR_LOG_FORMAT": "json"})):
        done = subprocess.run(
            [BUILD / "bin/teletensord", "--private", "--log-level", "debug"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=60, env=client_environment(**environment),
        )  # fmt: skip
        assert done.returncode == 0 and done.stdout.startswith("READY unix:")
        *_, last = done.stderr.splitlines()
        if name == "json":
            assert json.loads(last)["message"] == "shutting down: the client exited"
        else:
            assert last[10] == "T" and last.endswith(" info shutting down: the client exited")
    refused = subprocess.run([BUILD / "bin/teletensord", "--log-format", "xml"], capture_output=True, text=True, timeout=60)
    assert refused.returncode != 0 and "--log-format" in refused.stderr
