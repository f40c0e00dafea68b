"""Programs of the container image, without a container. `make container-test` runs the image."""

import runpy
import socket
import subprocess
import sys
import threading

import pytest
import yaml

from tests.conftest import IN_PROCESS, ROOT, Daemon

FOLDER = ROOT / "deploy/container"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def health(address: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, FOLDER / "health.py", address], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("options", [(), ("--tls-self-signed",)], ids=["plain", "tls"])
@pytest.mark.skipif(IN_PROCESS, reason="checks a daemon")
def test_health_of_an_engine(options, tmp_path):
    address = f"127.0.0.1:{free_port()}"
    engine = Daemon(tmp_path, "--listen", address, *options, *(["--tls-dir", str(tmp_path / "tls")] if options else []))
    try:
        done = health(address)
    finally:
        engine.stop()
    assert done.returncode == 0, done.stdout + done.stderr
    done = health(address)
    assert done.returncode == 1 and "refused" in done.stdout


def test_health_of_another_server(tmp_path):
    """A server that closes the connection, or that answers something else, is not healthy."""
    is_serving = runpy.run_path(str(FOLDER / "health.py"))["is_serving"]
    for answer in (b"", b"\0\0\0\7\0\0\0\0\0"):  # the second is a GOAWAY frame
        with socket.create_server(("127.0.0.1", 0)) as server:

            def serve():
                connection, _ = server.accept()
                with connection:
                    connection.recv(1 << 16)
                    connection.sendall(answer)

            thread = threading.Thread(target=serve)
            thread.start()
            with pytest.raises(ConnectionError, match="closed"):
                is_serving("127.0.0.1", server.getsockname()[1], timeout=60)
            thread.join()


def test_pod_for_podman(tmp_path):
    token = tmp_path / "token"
    token.write_text("abc\n")
    command = [sys.executable, FOLDER / "podman_manifest.py", ROOT / "deploy/kubernetes/engines.yaml",
               "--token-file", token, "--image", "i", "--name", "n", "--secret", "s", "--host-port", "9"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    secret, pod = yaml.safe_load_all(done.stdout)
    assert (secret["kind"], pod["kind"]) == ("Secret", "Pod") and secret["data"] == {"token": "YWJj"}
    (engine,) = pod["spec"]["containers"]
    assert engine["image"] == "i" and engine["ports"][0]["hostPort"] == 9
    assert {v["name"]: v["value"] for v in engine["env"]} == {
        "TELETENSOR_THREADS": "2",
        "TELETENSOR_GROUP_TOKEN": "abc",
        "TELETENSOR_PEER_NETWORKS": "10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,fc00::/7",
    }
    assert not [key for key in engine if key.endswith("Probe")]
    (state,) = (mount["name"] for mount in engine["volumeMounts"] if mount["mountPath"] == "/var/lib/teletensor")
    assert {"name": state, "persistentVolumeClaim": {"claimName": state}} in pod["spec"]["volumes"]
