"""The Kubernetes manifests and the Helm chart. The chart's templates are rendered by a function that supports the
expressions in them, because helm is not a dependency of the tests."""

import contextlib
import functools
import json
import re
import shutil
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request

import jsonschema
import pytest
import trustme
import yaml

from tests.conftest import BUILD, IN_PROCESS, ROOT

MANIFESTS = ROOT / "deploy/kubernetes"
CHART = ROOT / "deploy/helm/teletensor"


def render(text: str, values: dict, release: str) -> str:
    parts = re.split(r"\{\{(.*?)\}\}", text)  # text and expressions in turn
    for at in range(1, len(parts), 2):
        if parts[at].startswith("-"):
            parts[at - 1] = parts[at - 1].rstrip()
        if parts[at].endswith("-"):
            parts[at + 1] = parts[at + 1].lstrip()

    def value(name: str):
        if name == ".Release.Name":
            return release
        assert name.startswith(".Values."), name
        return functools.reduce(dict.__getitem__, name.split(".")[2:], values)

    def holds(condition: str) -> bool:
        if match := re.fullmatch(r"not \(or (.*)\)", condition):
            return not any(value(name) for name in match[1].split())
        return bool(value(condition))

    output, active, taken = [], [True], [True]  # of each open block: whether it is rendered, whether a branch was
    for at, part in enumerate(parts):
        words = part.strip("- ").split() if at % 2 else []
        if words[:1] == ["if"]:
            active.append(active[-1] and holds(" ".join(words[1:])))
            taken.append(active[-1])
        elif words[:1] == ["else"]:
            assert words[1:2] in ([], ["if"]), part
            active[-1] = active[-2] and not taken[-1] and (not words[1:] or holds(" ".join(words[2:])))
            taken[-1] |= active[-1]
        elif words == ["end"]:
            active.pop()
            taken.pop()
        elif active[-1]:
            if not at % 2:
                output.append(part)
            elif words[0] == "toJson":
                output.append(json.dumps(value(*words[1:])))
            else:
                (name,) = words
                assert not isinstance(value(name), dict), part
                output.append(str(value(name)))
    assert active == [True]
    return "".join(output)


def merged(values: dict, changes: dict) -> dict:
    """`values` with changes of keys such as `tls.secret`."""
    values = json.loads(json.dumps(values))
    for name, change in changes.items():
        *path, last = name.split(".")
        inner = functools.reduce(dict.__getitem__, path, values)
        assert last in inner, name
        inner[last] = change
    return values


DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text())
# Changes with which each part of the chart is rendered.
SECURED = {"tls.secret": "cert", "tls.clientCa": True, "tls.peerCa": True, "principalsSecret": "people",
           "metrics.tokenSecret": "observer", "metrics.certificateSecret": "prometheus"}  # fmt: skip


def chart(release="teletensor", changes=None) -> list[dict]:
    values = merged(DEFAULTS, changes or {})
    texts = [render(path.read_text(), values, release) for path in sorted((CHART / "templates").iterdir())]
    return [thing for text in texts for thing in yaml.safe_load_all(text) if thing]


def only(kind: str, objects: list[dict]) -> dict:
    (found,) = (thing for thing in objects if thing["kind"] == kind)
    return found


def test_chart_with_its_defaults_is_the_manifest():
    assert chart() == list(yaml.safe_load_all((MANIFESTS / "engines.yaml").read_text()))


def test_values_of_the_chart():
    changes = {
        "engines": 5,
        "port": 9,
        "httpPort": 8,
        "tokenSecret": "other",
        "image": "registry/x:1",
        "maxUnavailable": 2,
    }
    objects = chart("mine", changes)
    assert {thing["metadata"]["name"] for thing in objects} == {"mine"}
    engines, service = only("StatefulSet", objects), only("Service", objects)
    assert engines["spec"]["replicas"] == 5 and engines["spec"]["serviceName"] == "mine"
    pod = engines["spec"]["template"]["spec"]
    assert {c["image"] for c in pod["containers"] + pod["initContainers"]} == {"registry/x:1"}
    assert (
        "--listen=0.0.0.0:9" in pod["containers"][0]["command"]
        and "--http=0.0.0.0:8" in pod["containers"][0]["command"]
    )
    assert [port["port"] for port in service["spec"]["ports"]] == [9, 8]
    assert pod["volumes"][0]["secret"]["secretName"] == "other"
    assert only("PodDisruptionBudget", objects)["spec"]["maxUnavailable"] == 2


def engine_of(objects: list[dict]) -> tuple[dict, list[str], dict]:
    """The engine's container, its options, and the secrets of its pod by the folder in which they are mounted."""
    pod = only("StatefulSet", objects)["spec"]["template"]["spec"]
    (engine,) = pod["containers"]
    secrets = {volume["name"]: volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume}
    mounts = {mount["mountPath"]: secrets.get(mount["name"]) for mount in engine["volumeMounts"]}
    return engine, engine["command"][1:], mounts


def schemes(engine: dict) -> set[str]:
    return {engine[probe]["httpGet"]["scheme"] for probe in ("startupProbe", "readinessProbe", "livenessProbe")}


def claims(objects: list[dict]) -> list[dict]:
    return only("StatefulSet", objects)["spec"].get("volumeClaimTemplates", [])


def test_engines_create_certificates_by_default():
    objects = chart()
    engine, options, mounts = engine_of(objects)
    assert {"--tls-self-signed", "--tls-dir=/var/lib/teletensor"} <= set(options) and "--insecure" not in options
    assert schemes(engine) == {"HTTPS"} and "/var/lib/teletensor" in mounts
    (claim,) = claims(objects)
    assert {"name": claim["metadata"]["name"], "mountPath": "/var/lib/teletensor"} in engine["volumeMounts"]
    (claim,) = claims(chart(changes={"tls.storageClass": "fast"}))
    assert claim["spec"]["storageClassName"] == "fast"


def test_certificates_of_a_secret():
    objects = chart(changes={"tls.secret": "cert"})
    engine, options, mounts = engine_of(objects)
    assert "--insecure" not in options and "--tls-self-signed" not in options
    assert {"--tls-cert=/tls/tls.crt", "--tls-key=/tls/tls.key"} <= set(options) and mounts["/tls"] == "cert"
    assert schemes(engine) == {"HTTPS"} and not claims(objects) and "/var/lib/teletensor" not in mounts


def test_insecure_has_to_be_given():
    objects = chart(changes={"tls.insecure": True, "metrics.tokenSecret": "observer"})
    engine, options, mounts = engine_of(objects)
    assert "--insecure" in options and not [option for option in options if option.startswith("--tls")]
    assert schemes(engine) == {"HTTP"} and not claims(objects) and "/var/lib/teletensor" not in mounts
    assert only("ServiceMonitor", objects)["spec"]["endpoints"][0]["scheme"] == "http"


def test_authorities_principals_and_metrics():
    objects = chart("mine", SECURED)
    _, options, mounts = engine_of(objects)
    assert {"--tls-client-ca=/tls/ca.crt", "--tls-peer-ca=/tls/ca.crt"} <= set(options)
    assert "--principals=/principals/principals.json" in options and mounts["/principals"] == "people"
    (endpoint,) = only("ServiceMonitor", objects)["spec"]["endpoints"]
    assert endpoint["authorization"]["credentials"] == {"name": "observer", "key": "token"}
    assert endpoint["scheme"] == "https" and endpoint["tlsConfig"]["serverName"] == "mine"
    certificate = endpoint["tlsConfig"]["cert"]["secret"], endpoint["tlsConfig"]["keySecret"]
    assert certificate == ({"name": "prometheus", "key": "tls.crt"}, {"name": "prometheus", "key": "tls.key"})
    assert [port["name"] for port in only("Service", objects)["spec"]["ports"]] == ["grpc", endpoint["port"]]
    *_, prometheus = only("NetworkPolicy", objects)["spec"]["ingress"]
    assert prometheus["ports"] == [{"port": "http"}] and "namespaceSelector" in prometheus["from"][0]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.parametrize("changes", [{}, SECURED, {"tls.insecure": True}], ids=["default", "secured", "insecure"])
@pytest.mark.skipif(IN_PROCESS, reason="starts a daemon")
def test_engine_runs_with_the_options(changes, tmp_path):
    """The command of the chart, with files in place of the mounted secrets, answers the chart's probes."""
    engine, options, _ = engine_of(chart(changes={**changes, "port": free_port(), "httpPort": free_port()}))
    authority = trustme.CA()
    issued = authority.issue_cert("localhost")
    for folder in ("tls", "principals", "run/teletensor"):
        (tmp_path / folder).mkdir(parents=True)
    issued.cert_chain_pems[0].write_to_path(str(tmp_path / "tls/tls.crt"))
    issued.private_key_pem.write_to_path(str(tmp_path / "tls/tls.key"))
    authority.cert_pem.write_to_path(str(tmp_path / "tls/ca.crt"))
    (tmp_path / "principals/principals.json").write_text('{"principals": []}')
    options = [re.sub(r"=/(tls|principals|run|var)/", rf"={tmp_path}/\1/", option) for option in options]
    probe = engine["readinessProbe"]["httpGet"]
    port = next(each["containerPort"] for each in engine["ports"] if each["name"] == probe["port"])
    context = ssl.create_default_context(cafile=str(tmp_path / "tls/ca.crt"))
    if "--tls-self-signed" in options:  # as Kubernetes, which verifies no certificate of a probe
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with open(tmp_path / "log", "w+") as log:
        process = subprocess.Popen([str(BUILD / "bin/teletensord"), *options], stderr=log)
        try:
            for _ in range(500):  # the limit only prevents a test that hangs
                assert process.poll() is None, (tmp_path / "log").read_text()
                with contextlib.suppress(ConnectionError, urllib.error.URLError):
                    url = f"{probe['scheme'].lower()}://localhost:{port}{probe['path']}"
                    with urllib.request.urlopen(url, timeout=60, context=context) as answer:
                        assert answer.status == 200
                    break
                time.sleep(0.02)
            else:
                raise AssertionError((tmp_path / "log").read_text())
        finally:
            process.terminate()
            process.wait(60)
    log = (tmp_path / "log").read_text()
    assert (
        ("teletensors://" in log)
        == ("the certificate's fingerprint is sha256:" in log)
        == ("--insecure" not in options)
    )
    assert (tmp_path / "var/lib/teletensor/tls-key.pem").exists() == ("--tls-self-signed" in options)


def helm(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(["helm", *arguments], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("changes", [{}, SECURED, {"tls.insecure": True}], ids=["default", "secured", "insecure"])
def test_helm_renders_the_same(changes):
    if not shutil.which("helm"):
        pytest.skip("helm is not installed")
    settings = ",".join(f"{name}={json.dumps(change).strip(chr(34))}" for name, change in changes.items())
    done = helm("template", "mine", str(CHART), "--kube-version=1.28.0", *(["--set", settings] if settings else []))
    assert done.returncode == 0, done.stderr
    rendered = [thing for thing in yaml.safe_load_all(done.stdout) if thing]

    def by_kind(thing):
        return thing["kind"]

    assert sorted(rendered, key=by_kind) == sorted(chart("mine", changes), key=by_kind)


WRONG = [({"tls.clientCa": True}, "secret"), ({"tls.peerCa": True}, "secret"), ({"engines": 0}, "engines"),
         ({"port": "x"}, "port"), ({"tsl": {}}, "tsl"), ({"tls.insecure": True, "tls.secret": "cert"}, "secret"),
         ({"metrics.tokenSecret": "observer"}, "tls"),
         ({"metrics.tokenSecret": "observer", "tls.secret": "cert", "tls.clientCa": True}, "certificateSecret")]  # fmt: skip


@pytest.mark.parametrize("changes, named", WRONG)
def test_schema_of_the_values(changes, named):
    """helm validates the values with this schema."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    jsonschema.validate(DEFAULTS, schema)
    jsonschema.validate(merged(DEFAULTS, SECURED), schema)
    values = {**DEFAULTS, **changes} if "tsl" in changes else merged(DEFAULTS, changes)
    with pytest.raises(jsonschema.ValidationError) as error:
        jsonschema.validate(values, schema)
    assert named in str(error.value.message) + str(list(error.value.absolute_path))


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
