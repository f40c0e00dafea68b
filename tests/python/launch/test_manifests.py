"""The Kubernetes manifests and the Helm chart. The chart's templates are rendered by a function that supports the
expressions in them, because helm is not a dependency of the tests."""

import json
import re
import shutil
import subprocess

import pytest
import yaml

from tests.conftest import ROOT

MANIFESTS = ROOT / "deploy/kubernetes"
CHART = ROOT / "deploy/helm/teletensor"


def render(text: str, values: dict, release: str) -> str:
    def expression(match):
        words = match[1].split()
        name = words[-1]
        value = release if name == ".Release.Name" else values[name.removeprefix(".Values.")]
        assert words == ["toJson", name] or (words == [name] and not isinstance(value, dict)), match[0]
        return json.dumps(value) if words[0] == "toJson" else str(value)

    return re.sub(r"\{\{(.*?)\}\}", expression, text)


def chart(release="teletensor", **changes) -> list[dict]:
    values = {**yaml.safe_load((CHART / "values.yaml").read_text()), **changes}
    return list(yaml.safe_load_all(render((CHART / "templates/engines.yaml").read_text(), values, release)))


def test_chart_with_its_defaults_is_the_manifest():
    assert chart() == list(yaml.safe_load_all((MANIFESTS / "engines.yaml").read_text()))


def test_values_of_the_chart():
    service, policy, engines = chart("mine", engines=5, port=9, tokenSecret="other", image="registry/x:1")
    assert {thing["metadata"]["name"] for thing in (service, policy, engines)} == {"mine"}
    assert engines["spec"]["replicas"] == 5 and engines["spec"]["serviceName"] == "mine"
    pod = engines["spec"]["template"]["spec"]
    assert {c["image"] for c in pod["containers"] + pod["initContainers"]} == {"registry/x:1"}
    assert "0.0.0.0:9" in pod["containers"][0]["command"] and service["spec"]["ports"][0]["port"] == 9
    assert pod["volumes"][0]["secret"]["secretName"] == "other"


@pytest.mark.parametrize("name", ["engines.yaml", "launch.yaml"])
def test_kubectl_reads_the_manifest(name):
    """Without a server kubectl decodes objects with its own types."""
    if not shutil.which("kubectl"):
        pytest.skip("kubectl is not installed")
    command = ["kubectl", "label", "--local", "--dry-run=client", "-f", str(MANIFESTS / name), "a=b", "-o", "name"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == len(list(yaml.safe_load_all((MANIFESTS / name).read_text())))


def test_launch_options_of_the_job():
    """The job's command is a valid command line."""
    import argparse

    from teletensor.launch.options import add_arguments, check

    _, job = yaml.safe_load_all((MANIFESTS / "launch.yaml").read_text())
    container = job["spec"]["template"]["spec"]["containers"][0]
    assert container["command"][:2] == ["teletensor", "launch"]
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    arguments = [a.replace("$(JOB_COMPLETION_INDEX)", "1") for a in container["command"][2:]]
    options = check(parser.parse_args(arguments), "python", {"TELETENSOR_GROUP_TOKEN": "t"})
    assert options.max_nodes == job["spec"]["completions"] == job["spec"]["parallelism"]
    assert options.endpoint[0] == f"{job['metadata']['name']}-0.{job['spec']['template']['spec']['subdomain']}"
