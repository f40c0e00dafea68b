"""The HTTP listener: probes, metrics that Prometheus accepts, and who may read them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from tests.conftest import BUILD, IN_PROCESS, Daemon, await_listener, client_environment, eventually
from tests.python.session.test_principals import Engine, user
from tests.python.session.test_tls import Files, free_port

pytestmark = pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")


def get(url: str, token: str = "", **options) -> tuple[int, str]:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=20, **options) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def values(text: str) -> dict[str, float]:
    """The samples by name and labels. Fails for a line that is neither a sample nor a comment."""
    label = r'[a-z_]+="[^"]*"'
    sample = re.compile(rf"([a-z_]+(?:\{{{label}(?:,{label})*\}})?) ([-+.\deE]+|\+?Inf|NaN)")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (sample.fullmatch(line).groups() for line in lines)}


def test_metrics_count_what_sessions_do(tmp_path):
    place = f"127.0.0.1:{free_port()}"
    engine = Daemon(tmp_path, "--http", place)
    try:
        await_listener(place)
        assert get(f"http://{place}/healthz") == get(f"http://{place}/readyz") == (200, "ok\n")
        before = values(get(f"http://{place}/metrics")[1])
        assert before['teletensor_device_memory_bytes{device="cpu",kind="limit"}'] > 0
        script = """
import sys, urllib.request, teletensor as torch
x = torch.ones(1 << 20)
for i in range(50):
    x.add_(1)
try:
    torch.ones(2) @ torch.ones(3)
except RuntimeError:
    pass
x.sum().item()
for failing in ("torch.ones(2)[torch.tensor([5])].tolist()", "torch.linalg.cholesky(-torch.eye(3)).sum().item()"):
    try:
        eval(failing)
    except (IndexError, RuntimeError):
        pass
torch.from_numpy(x.numpy()).sum().item()
sys.stdout.write(urllib.request.urlopen(sys.argv[1]).read().decode())
"""
        client = subprocess.run(
            [sys.executable, "-c", script, f"http://{place}/metrics"], capture_output=True, text=True, timeout=60,
            env=client_environment(TELETENSOR_ADDRESS=engine.address),
        )  # fmt: skip
        during = values(client.stdout)
        of_admin = '{principal="admin"}'
        assert during["teletensor_sessions" + of_admin] == 1
        assert 4 << 20 <= during["teletensor_tensor_bytes" + of_admin] < 5 << 20
        for direction in ("upload", "download"):
            assert during[f'teletensor_transfers_total{{direction="{direction}",outcome="complete"}}'] >= 1
            assert 4 << 20 <= during[f'teletensor_transfer_bytes_total{{direction="{direction}"}}'] < 5 << 20
        codes = {name.split('"')[1]: count for name, count in during.items() if name.startswith("teletensor_errors_total")}
        assert {code for code, count in codes.items() if count} == {"index", "linalg"} and "out_of_memory" in codes
        eventually(lambda: values(get(f"http://{place}/metrics")[1])["teletensor_sessions" + of_admin] == 0)
        after = values(get(f"http://{place}/metrics")[1])
        assert after["teletensor_instructions_total" + of_admin] >= 52
        assert after["teletensor_sessions_opened_total" + of_admin] == 1 and after["teletensor_tensor_bytes" + of_admin] == 0
        frames = after["teletensor_frames_total" + of_admin]
        assert frames > 0 and after["teletensor_frame_seconds_count"] == after['teletensor_frame_seconds_bucket{le="+Inf"}'] >= frames
        assert 0 < after["teletensor_frame_seconds_sum"] < 60
        assert get(f"http://{place}/other")[0] == 404
        assert get(f"http://{place}/healthz")[0] == 200
    finally:
        engine.stop()


def test_roles_and_tls(tmp_path):
    files = Files(tmp_path / "a", "localhost", "127.0.0.1")
    place = f"127.0.0.1:{free_port()}"
    engine = Engine(tmp_path, "--http", place, *files.options)
    watcher, alice = user(engine.file, "add", "watcher", "--role", "observer"), user(engine.file, "add", "alice")
    engine.start()
    await_listener(place)
    metrics = f"http://{place}/metrics"
    assert get(metrics)[0] == get(metrics, "0" * 64)[0] == 401
    assert get(metrics, alice)[0] == get(metrics, engine.token("token"))[0] == 403
    assert get(metrics, watcher)[0] == get(metrics, engine.token("admin-token"))[0] == 200
    assert get(f"http://{place}/healthz")[0] == 200
    assert not any(token in engine.text() for token in (watcher, alice))
    engine.stop()
    refused = subprocess.run(
        [BUILD / "bin/teletensord", "--check-config", "--no-auth", "--http", "0.0.0.0:9000"], capture_output=True, text=True, timeout=60
    )
    assert refused.returncode == 2 and "requires TLS" in refused.stderr


@pytest.mark.skipif(not shutil.which("promtool"), reason="requires Debian's package prometheus")
def test_format_is_prometheus(tmp_path):
    place = f"127.0.0.1:{free_port()}"
    engine = Daemon(tmp_path, "--http", place)
    try:
        await_listener(place)
        checked = subprocess.run(["promtool", "check", "metrics"], input=get(f"http://{place}/metrics")[1], text=True, capture_output=True)
    finally:
        engine.stop()
    assert checked.returncode == 0, checked.stdout + checked.stderr
