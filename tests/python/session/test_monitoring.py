"""The dashboard and the alerts of deploy/monitoring use metrics that an engine exports, with labels that it sets."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest
import yaml

from tests.conftest import IN_PROCESS, ROOT, await_listener, client_environment
from tests.python.session.test_http import FAKE_NVML
from tests.python.session.test_metrics import get, values
from tests.python.session.test_principals import Engine, user
from tests.python.session.test_tls import free_port

pytestmark = pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")
MONITORING = ROOT / "deploy/monitoring"
# Prometheus adds these labels to every sample.
TARGET = {"job", "instance"}


def expressions() -> dict[str, str]:
    """The PromQL expressions of the dashboard and of the alerts, by where they are used."""
    dashboard = json.loads((MONITORING / "grafana.json").read_text())
    found = {f"{panel['title']} {target['refId']}": target["expr"] for panel in dashboard["panels"] for target in panel["targets"]}
    found |= {f"variable {each['name']}": each["query"]["query"] for each in dashboard["templating"]["list"] if each["type"] == "query"}
    rules = yaml.safe_load((MONITORING / "alerts.yml").read_text())
    found |= {rule["alert"]: rule["expr"] for group in rules["groups"] for rule in group["rules"]}
    return found


@pytest.fixture
def exported(tmp_path, monkeypatch) -> dict[str, set[str]]:
    """The names of all samples that an engine exports, with the names of their labels."""
    monkeypatch.setenv("LD_LIBRARY_PATH", os.pathsep.join(filter(None, [str(FAKE_NVML), os.environ.get("LD_LIBRARY_PATH")])))
    place = f"127.0.0.1:{free_port()}"
    engine = Engine(tmp_path, "--http", place)
    watcher, alice = user(engine.file, "add", "watcher", "--role", "observer"), user(engine.file, "add", "alice", "--memory", "1GB")
    engine.start()
    try:
        await_listener(place)
        script = "import teletensor as torch; torch.connect(); print(torch.ones(3).sum().item())"
        client = client_environment(TELETENSOR_ADDRESS=engine.address, TELETENSOR_TOKEN=alice)
        subprocess.run([sys.executable, "-c", script], env=client, check=True, timeout=60)
        samples = values(get(f"http://{place}/metrics", watcher)[1].replace('\\"', "'"))
    finally:
        engine.stop()
    names: dict[str, set[str]] = {}
    for sample in samples:
        name, _, labels = sample.partition("{")
        names.setdefault(name, set()).update(re.findall(r"(\w+)=\"", labels))
    return names


def test_expressions_use_exported_metrics(exported):
    used = set()
    for where, expression in expressions().items():
        for name, labels in re.findall(r"\b(teletensor_\w+|up\b)(\{[^}]*\})?", expression):
            used.add(name)
            if name == "up":
                continue
            assert name in exported, (where, name)
            assert set(re.findall(r"(\w+)=~?\"", labels)) <= exported[name] | TARGET, (where, expression)
        for labels in re.findall(r"\b(?:by|on) \(([\w, ]+)\)", expression):
            assert set(labels.split(", ")) <= TARGET.union(*exported.values()), (where, labels)
    # Every family is shown, except the sums and counts of histograms.
    families = {name for name in exported if not name.endswith(("_sum", "_count"))}
    assert families - used == {"teletensor_handles"}


def test_the_dashboard_is_complete():
    dashboard = json.loads((MONITORING / "grafana.json").read_text())
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) > 10
    cells = set()
    for panel in panels:
        assert panel["title"] and panel["description"] and panel["fieldConfig"]["defaults"]["unit"]
        assert panel["fieldConfig"]["defaults"]["min"] == 0  # a scale that does not start at 0 misleads
        at = panel["gridPos"]
        taken = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24 and not taken & cells
        cells |= taken
        for target in panel["targets"]:
            assert "$instance" in target["expr"] and target["datasource"]["uid"] == "${datasource}"
