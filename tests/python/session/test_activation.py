"""Sockets and reports of a service manager: systemd's tool opens the sockets, the engine serves them and reports."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import trustme

from tests.conftest import BUILD, IN_PROCESS, client_environment

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]

ENGINE = str(BUILD / "bin/teletensord")
CLIENT = """
import sys, teletensor as torch
for address in sys.argv[1:]:
    torch.connect(address, **({"ca": sys.argv[1]} if address.startswith("teletensors") else {}))
    print(address, torch.ones(3).sum().item())
    torch.disconnect()
"""
# Starts the engine as a service manager does: file descriptors from 3 on, and variables that name the process.
LAUNCHER = """
import os, sys
descriptors, variables, command = eval(sys.argv[1]), eval(sys.argv[2]), sys.argv[3:]
for place, descriptor in enumerate(descriptors):
    os.dup2(descriptor, 100 + place)
for place in range(len(descriptors)):
    os.dup2(100 + place, 3 + place)
    os.close(100 + place)
os.environ.update({name: value.replace("PID", str(os.getpid())) for name, value in variables.items()})
os.execv(command[0], command)
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(condition) -> None:
    """The limit only prevents a test that hangs."""
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("the condition did not become true within 20 s")


@contextlib.contextmanager
def running(command: list[str], log: Path, **options):
    """Runs a process; at the end stops it and checks that it exits with 0."""
    environment = {**os.environ, "TELETENSOR_CUDA_PLUGIN": "", **options.pop("env", {})}
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment, **options)
    try:
        yield process
        process.terminate()
        assert process.wait(30) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()


def launch(sockets: list, *options: str, count: object = None, variables: dict | None = None) -> list[str]:
    """The command of an engine that inherits `sockets`; pass their descriptors to it."""
    announced = {"LISTEN_PID": "PID", "LISTEN_FDS": str(len(sockets) if count is None else count), **(variables or {})}
    descriptors = [each.fileno() for each in sockets]
    return [sys.executable, "-c", LAUNCHER, repr(descriptors), repr(announced), ENGINE, "--no-auth", *options]


def refused(sockets: list, *options: str, **more) -> tuple[int, str]:
    """The exit status and the message of an engine that does not accept what it inherits."""
    done = subprocess.run(launch(sockets, *options, **more), pass_fds=[each.fileno() for each in sockets],
                          capture_output=True, text=True, timeout=60)  # fmt: skip
    return done.returncode, done.stderr


def compute(*arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", CLIENT, *arguments], env=client_environment(), capture_output=True,
                          text=True, timeout=60)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_systemd_opens_the_sockets(tmp_path):
    """The engine starts at the first connection; its sockets are closed on exec and remain when it stops."""
    if shutil.which("systemd-socket-activate") is None:
        pytest.skip("systemd is not installed")
    path, port = tmp_path / "engine.sock", free_port()
    command = ["systemd-socket-activate", "-l", str(path), "-l", f"127.0.0.1:{port}", "--fdname=local:network",
               *(f"--setenv={name}" for name in ("ASAN_OPTIONS", "TSAN_OPTIONS") if name in os.environ), ENGINE, "--no-auth"]  # fmt: skip
    log = tmp_path / "log"
    with running(command, log) as process:
        wait_for(path.exists)
        program = Path(f"/proc/{process.pid}/exe")
        assert program.resolve().name == "systemd-socket-activate"
        assert compute(f"unix:{path}", f"127.0.0.1:{port}") == f"unix:{path} 3.0\n127.0.0.1:{port} 3.0\n"
        assert program.resolve() == Path(ENGINE).resolve()
        for descriptor in (3, 4):
            flags = Path(f"/proc/{process.pid}/fdinfo/{descriptor}").read_text().split("flags:")[1].split()[0]
            assert int(flags, 8) & os.O_CLOEXEC and int(flags, 8) & os.O_NONBLOCK
    assert path.exists()  # the file belongs to the service manager
    assert f"listening on unix:{path} and 127.0.0.1:{port}" in log.read_text()


def test_connections_wait_while_the_engine_restarts(listener, tmp_path):
    address = f"127.0.0.1:{listener.getsockname()[1]}"
    for log in (tmp_path / "first", tmp_path / "second"):
        with running(launch([listener]), log, pass_fds=[listener.fileno()]):
            assert compute(address) == f"{address} 3.0\n"
    client = subprocess.Popen([sys.executable, "-c", CLIENT, address], env=client_environment(), stdout=subprocess.PIPE)
    try:
        established = re.compile(rf":{listener.getsockname()[1]:04X} \w+:\w+ 01")
        wait_for(lambda: established.search(Path("/proc/net/tcp").read_text()))
        with running(launch([listener]), tmp_path / "third", pass_fds=[listener.fileno()]):
            assert client.communicate(timeout=60)[0] == f"{address} 3.0\n".encode()
    finally:
        client.kill()
        client.wait()


def test_addresses_are_served_besides_inherited_sockets(listener, tmp_path):
    path = tmp_path / "engine.sock"
    command = launch([listener], "--listen", f"unix:{path}")
    address = f"127.0.0.1:{listener.getsockname()[1]}"
    with running(command, tmp_path / "log", pass_fds=[listener.fileno()]):
        wait_for(path.exists)
        assert compute(f"unix:{path}", address) == f"unix:{path} 3.0\n{address} 3.0\n"
    assert not path.exists()  # the engine's own


def test_variables_of_another_process_are_ignored(listener, tmp_path):
    path = tmp_path / "engine.sock"
    command = launch([listener], "--listen", f"unix:{path}", variables={"LISTEN_PID": str(os.getpid())})
    log = tmp_path / "log"
    with running(command, log, pass_fds=[listener.fileno()]):
        wait_for(lambda: "listening on" in log.read_text())
    assert "127.0.0.1" not in log.read_text()


def test_rules_of_addresses_apply(tmp_path):
    """A socket that other hosts reach requires TLS or --insecure, whatever opened it."""
    with socket.create_server(("0.0.0.0", 0)) as server:
        port = server.getsockname()[1]
        status, message = refused([server])
        assert status == 2 and f"socket 0.0.0.0:{port}: an address that other hosts can reach requires TLS" in message
        log = tmp_path / "insecure"
        with running(launch([server], "--insecure"), log, pass_fds=[server.fileno()]):
            assert compute(f"127.0.0.1:{port}") == f"127.0.0.1:{port} 3.0\n"
        assert "is reachable from the network" in log.read_text()
        authority = trustme.CA()
        issued = authority.issue_cert("localhost")
        ca, certificate, key = (str(tmp_path / name) for name in ("ca.pem", "cert.pem", "key.pem"))
        authority.cert_pem.write_to_path(ca)
        issued.cert_chain_pems[0].write_to_path(certificate)
        issued.private_key_pem.write_to_path(key)
        command = launch([server], "--tls-cert", certificate, "--tls-key", key)
        url = f"teletensors://localhost:{port}"
        program = CLIENT.replace("sys.argv[1:]", "sys.argv[2:]")
        with running(command, tmp_path / "tls", pass_fds=[server.fileno()]):
            done = subprocess.run([sys.executable, "-c", program, ca, url], env=client_environment(), timeout=60,
                                  capture_output=True, text=True)  # fmt: skip
        assert done.stdout == f"{url} 3.0\n", done.stderr


def test_other_descriptors_are_refused(listener, tmp_path):
    expected = "expected a listening stream socket, of TCP or with a path, as descriptor 3"
    with open(tmp_path / "file", "w") as file:
        assert (
            f"{expected} (data): got another kind of file" in refused([file], variables={"LISTEN_FDNAMES": "data"})[1]
        )
    with socket.socket(type=socket.SOCK_DGRAM) as datagram:
        assert f"{expected}: got a socket of another type" in refused([datagram])[1]
    client = socket.create_connection(listener.getsockname())
    server, _ = listener.accept()
    with client, server:
        assert f"{expected}: got a socket that does not listen" in refused([server])[1]
    with socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind("\0teletensor-test-" + str(os.getpid()))
        abstract.listen()
        assert f"{expected}: got a unix socket without an absolute path" in refused([abstract])[1]
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with socket.socket(socket.AF_UNIX) as replaceable:
        replaceable.bind(str(shared / "engine.sock"))
        replaceable.listen()
        assert f"{expected}: {shared} is writable by other users" in refused([replaceable])[1]
    status, message = refused([listener], count=2)
    assert status == 1 and "as descriptor 4: it is not open" in message
    for count in ("-1", "x", "100000"):
        assert f"expected a number from 0 to 64 in LISTEN_FDS, got '{count}'" in refused([listener], count=count)[1]
    status, message = refused([listener], "--private")
    assert status == 2 and "--private has no effect with sockets of a service manager" in message


@pytest.mark.parametrize("is_abstract", [False, True])
def test_states_are_reported(tmp_path, is_abstract):
    """systemd's Type=notify: READY when clients can connect, STOPPING at shutdown; SIGHUP does not end a service."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(60)
        name = f"teletensor-notify-{os.getpid()}" if is_abstract else str(tmp_path / "notify")
        manager.bind("\0" + name if is_abstract else name)
        path = tmp_path / "engine.sock"
        command = [ENGINE, "--listen", f"unix:{path}", "--no-auth"]
        variables = {"NOTIFY_SOCKET": "@" + name if is_abstract else name}
        with running(command, tmp_path / "log", env=variables) as process:
            assert manager.recv(4096).decode() == f"READY=1\nSTATUS=listening on unix:{path}"
            assert path.exists()
            process.send_signal(signal.SIGHUP)
            assert compute(f"unix:{path}") == f"unix:{path} 3.0\n"
            process.terminate()
            assert manager.recv(4096) == b"STOPPING=1\nSTATUS=a signal"
            process.wait(30)  # a second signal would end it at once


def test_an_unreachable_manager_is_logged(tmp_path):
    log = tmp_path / "log"
    for address, reason in ((str(tmp_path / "none"), "No such file or directory"), ("vsock:2:1", "not supported")):
        command = [ENGINE, "--listen", f"unix:{tmp_path}/engine.sock", "--no-auth"]
        with running(command, log, env={"NOTIFY_SOCKET": address}):
            wait_for(lambda: "cannot report to the service manager" in log.read_text())
        assert reason in log.read_text()
