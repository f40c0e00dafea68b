"""Debian's Prometheus scrapes a real engine with the configuration of deploy/monitoring. `make service-test` runs these."""

from __future__ import annotations

import contextlib
import functools
import json
import shutil
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT, await_listener, client_environment
from tests.python.session.test_principals import Engine, user
from tests.python.session.test_tls import Files, free_port

MONITORING = ROOT / "deploy/monitoring"
CLIENT = """
import sys, teletensor as torch
held = torch.ones(1 << 20)
for _ in range(1000):
    x = held[:4] + 1
print(x.sum().item(), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("check", [("rules", "alerts.yml"), ("config", "--syntax-only", "prometheus.yml")])
def test_files_are_valid(check):
    done = subprocess.run(["promtool", "check", *check], cwd=MONITORING, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_alerts_fire_in_their_examples():
    done = subprocess.run(["promtool", "test", "rules", "alerts_test.yml"], cwd=MONITORING, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    alerts = {rule["alert"] for group in yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"] for rule in group["rules"]}
    examples = yaml.safe_load((MONITORING / "alerts_test.yml").read_text())["tests"]
    fired = {case["alertname"] for test in examples for case in test["alert_rule_test"] if case["exp_alerts"]}
    assert fired == alerts


def dashboard_queries() -> list[str]:
    """The queries of the dashboard, with values for its variables."""
    dashboard = json.loads((MONITORING / "grafana.json").read_text())
    values = {"$__rate_interval": "1m", "$job": "teletensor", "$instance": ".+"}
    return [
        functools.reduce(lambda text, pair: text.replace(*pair), values.items(), target["expr"])
        for panel in dashboard["panels"]
        for target in panel["targets"]
    ]


class Prometheus:
    """A Prometheus that scrapes every second, with the project's rules."""

    def __init__(self, folder: Path, **job):
        folder.mkdir()
        configuration = yaml.safe_load((MONITORING / "prometheus.yml").read_text())
        configuration["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        (template,) = configuration["scrape_configs"]
        configuration["scrape_configs"] = [{**template, **job}]
        shutil.copy(MONITORING / "alerts.yml", folder)
        (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration))
        self.place = f"127.0.0.1:{free_port()}"
        self.log = folder / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                 f"--web.listen-address={self.place}"], stdout=log, stderr=log
            )  # fmt: skip

    def get(self, path: str, **parameters: str):
        url = f"http://{self.place}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=20) as answer:
            return json.load(answer)["data"]

    def await_value(self, query: str, condition) -> float:
        """Waits until a query has one result that meets a condition, and returns it."""
        deadline, found = time.monotonic() + 60, None
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.log.read_text()
            with contextlib.suppress(OSError):
                found = self.get("query", query=query)["result"]
                if len(found) == 1 and condition(float(found[0]["value"][1])):
                    return float(found[0]["value"][1])
            time.sleep(0.2)
        raise AssertionError(f"{query}: got {found}; targets: {self.get('targets')['activeTargets']}")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
def test_prometheus_scrapes_an_engine(tmp_path, tls):
    """With an observer's token: values of PromQL queries are those of a session. With another token: the target is down."""
    port = free_port()
    files = Files(tmp_path / "tls", "127.0.0.1")
    address, options = (f"0.0.0.0:{port}", files.options) if tls else (f"127.0.0.1:{port}", ())
    engine = Engine(tmp_path, "--http", address, *options)
    token = tmp_path / "prometheus-token"
    token.write_text(user(engine.file, "add", "prometheus", "--role", "observer") + "\n")
    alice = user(engine.file, "add", "alice")
    engine.start()
    await_listener(address)
    target = {"static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
    if tls:
        target |= {"scheme": "https", "tls_config": {"ca_file": files.ca}}
    wrong = tmp_path / "wrong-token"
    wrong.write_text(alice + "\n")
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=client_environment(TELETENSOR_ADDRESS=engine.address, TELETENSOR_TOKEN=alice),
    )  # fmt: skip
    servers = []
    try:
        assert client.stdout.readline() == "8.0\n"
        servers.append(Prometheus(tmp_path / "right", authorization={"credentials_file": str(token)}, **target))
        servers.append(Prometheus(tmp_path / "wrong", authorization={"credentials_file": str(wrong)}, **target))
        right, refused = servers
        right.await_value('up{job="teletensor"}', lambda value: value == 1)
        right.await_value('teletensor_sessions{principal="alice"}', lambda value: value == 1)
        right.await_value('teletensor_tensor_bytes{principal="alice"}', lambda value: 4 << 20 <= value < 5 << 20)
        assert right.await_value('teletensor_instructions_total{principal="alice"}', lambda value: value > 1000) < 100_000
        right.await_value('sum(teletensor_device_memory_bytes{kind="allocated"})', lambda value: value >= 4 << 20)
        right.await_value("histogram_quantile(0.99, sum by (le) (teletensor_frame_seconds_bucket))", lambda value: 0 < value < 60)
        refused.await_value('up{job="teletensor"}', lambda value: value == 0)
        (down,) = refused.get("targets")["activeTargets"]
        assert "403" in down["lastError"]
        rules = [rule for group in right.get("rules")["groups"] for rule in group["rules"]]
        assert len(rules) == 7 and all(rule["health"] in ("ok", "unknown") for rule in rules), rules
        for expression in dashboard_queries():
            right.get("query", query=expression)  # raises if it is no PromQL
        client.communicate(timeout=60)
        right.await_value('teletensor_sessions{principal="alice"}', lambda value: value == 0)
    finally:
        client.kill()
        for server in servers:
            server.stop()
        engine.stop()
