"""The HTTP listener's page and its data, who may read it, slow and hostile peers, and a replaced certificate."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.conftest import BUILD, IN_PROCESS, Daemon, await_listener, client_environment, eventually
from tests.python.session.test_metrics import get, values
from tests.python.session.test_principals import Engine, user
from tests.python.session.test_tls import Files, free_port

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]
FAKE_NVML = BUILD / "tests/fake_nvml"
PAGE = ("/", "/page.css", "/page.js", "/charts.js")


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    """A daemon without authentication, with the library in place of NVML."""
    place = f"127.0.0.1:{free_port()}"
    libraries = os.pathsep.join(filter(None, [str(FAKE_NVML), os.environ.get("LD_LIBRARY_PATH")]))
    daemon = Daemon(tmp_path_factory.mktemp("engine"), "--http", place, LD_LIBRARY_PATH=libraries)
    await_listener(place)
    daemon.place = place
    yield daemon
    assert daemon.process.poll() is None
    assert daemon.stop() == 0


def fetch(place: str, path: str, **headers: str):
    """The answer to a request, whatever its status."""
    request = urllib.request.Request(f"http://{place}{path}", headers=headers)
    try:
        return urllib.request.urlopen(request, timeout=20)
    except urllib.error.HTTPError as error:
        return error


def exchange(place: str, sent: bytes, end: bool = False) -> bytes:
    """What the engine sends until it closes the connection."""
    received = b""
    with socket.create_connection(("127.0.0.1", int(place.rpartition(":")[2])), 20) as connection:
        with contextlib.suppress(OSError):  # the engine may close the connection earlier
            connection.sendall(sent)
            if end:
                connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(1 << 16):
                received += part
    return received


def test_page_is_served_with_a_strict_policy(engine):
    for path in PAGE:
        answer = fetch(engine.place, path)
        assert answer.status == 200 and answer.read()
        policy = dict(part.strip().split(" ", 1) for part in answer.headers["Content-Security-Policy"].split(";"))
        assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'" and len(policy) == 7
        assert answer.headers["X-Content-Type-Options"] == "nosniff" and answer.headers["Cache-Control"] == "no-cache"
        etag = answer.headers["ETag"]
        assert fetch(engine.place, path, **{"If-None-Match": etag}).status == 304
        assert fetch(engine.place, path, **{"If-None-Match": '"other"'}).status == 200
    page = fetch(engine.place, "/").read().decode()
    assert "<style" not in page and not re.search(r"<script(?![^>]* src=)|\son\w+=|style=|https?://", page)
    scripts = "".join(fetch(engine.place, path).read().decode() for path in PAGE[2:])
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|localStorage", scripts)


def test_status_and_profile_are_what_admin_reports(engine):
    script = """
import teletensor as torch
x = torch.ones(1 << 18)
for _ in range(100):
    y = x + 1
torch.synchronize()
print("ready", flush=True)
input()
"""
    client = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=client_environment(TELETENSOR_ADDRESS=engine.address),
    )  # fmt: skip
    try:
        assert client.stdout.readline() == "ready\n"
        from teletensor import _C

        reported = json.loads(_C.Admin(engine.address).status())
        answer = json.loads(fetch(engine.place, "/api/status").read())
        status, gpus = answer["status"], answer["gpus"]
        (session,) = status["sessions"]
        assert session["client"] == reported["sessions"][0]["client"] and int(session["held_bytes"]) >= 2 << 20
        for one, other in (
            (status, reported),
            (session, reported["sessions"][0]),
            (status["principals"][0], reported["principals"][0]),
        ):
            assert one.keys() == other.keys()
        assert int(status["principals"][0]["instructions"]) >= 100 and int(status["principals"][0]["frames"]) >= 1
        assert [gpu["index"] for gpu in gpus] == [0, 1] and gpus[0]["utilization"] == 0.73 and "utilization" not in gpus[1]
        profile = json.loads(fetch(engine.place, "/api/profile").read())
        assert profile["rate"] == 100 and {"seconds", "samples", "entries"} <= profile.keys()
    finally:
        client.communicate("\n", timeout=60)
    # Counts of sessions that have ended remain.
    eventually(lambda: not json.loads(fetch(engine.place, "/api/status").read())["status"]["sessions"])
    after = json.loads(fetch(engine.place, "/api/status").read())["status"]["principals"][0]
    assert int(after["instructions"]) >= 100


def test_metrics_of_gpus(engine):
    found = values(get(f"http://{engine.place}/metrics")[1].replace('\\"', "'"))
    gpu = '{{gpu="{0}",name="Simulated \'GPU\'",uuid="GPU-00000000-0000-0000-0000-00000000000{0}"'
    assert found["teletensor_gpu_utilization_ratio" + gpu.format(0) + "}"] == 0.73
    assert "teletensor_gpu_utilization_ratio" + gpu.format(1) + "}" not in found
    assert found["teletensor_gpu_memory_bytes" + gpu.format(1) + ',kind="used"}'] == 13 << 30


def test_without_a_driver_there_are_no_metrics_of_gpus(tmp_path):
    place = f"127.0.0.1:{free_port()}"
    libraries = os.pathsep.join(filter(None, [str(FAKE_NVML), os.environ.get("LD_LIBRARY_PATH")]))
    daemon = Daemon(tmp_path, "--http", place, LD_LIBRARY_PATH=libraries, FAKE_NVML_WITHOUT_DRIVER="1")
    try:
        await_listener(place)
        text = get(f"http://{place}/metrics")[1]
        assert "teletensor_uptime_seconds" in text and "teletensor_gpu_" not in text
        assert json.loads(fetch(place, "/api/status").read())["gpus"] == []
    finally:
        daemon.stop()


def test_other_hosts_are_refused_without_authentication(engine):
    """A web site whose name resolves to 127.0.0.1 cannot read the engine's data through a browser."""
    port = engine.place.rpartition(":")[2]
    for path in ("/metrics", "/api/status", "/api/profile"):
        assert fetch(engine.place, path, Host="attacker.example").status == 403
        assert fetch(engine.place, path, Host=f"127.0.0.1.attacker.example:{port}").status == 403
        assert fetch(engine.place, path, Host=f"localhost:{port}").status == 200
        assert fetch(engine.place, path, Host=f"[::1]:{port}").status == 200
    assert fetch(engine.place, "/healthz", Host="attacker.example").status == 200


def test_roles(tmp_path):
    place = f"127.0.0.1:{free_port()}"
    engine = Engine(tmp_path, "--http", place)
    watcher, alice = user(engine.file, "add", "watcher", "--role", "observer"), user(engine.file, "add", "alice")
    engine.start()
    try:
        await_listener(place)
        for path in ("/api/status", "/api/profile"):
            url = f"http://{place}{path}"
            assert get(url)[0] == get(url, "0" * 64)[0] == 401
            assert get(url, alice)[0] == get(url, engine.token("token"))[0] == 403
            assert get(url, watcher)[0] == get(url, engine.token("admin-token"))[0] == 200
            assert get(f"{url}?token={watcher}")[0] == 401
        assert {get(f"http://{place}{path}")[0] for path in PAGE} == {200}  # no data, no token
        refused = engine.records("call.refused")
        assert {each["outcome"] for each in refused} == {"unauthenticated", "permission_denied"}
        assert all(each["peer"].startswith("ipv4:127.0.0.1:") for each in refused)
    finally:
        engine.stop()


def test_replaced_certificate(tmp_path):
    """New connections get a new certificate; a pair that does not fit keeps the previous one in use."""
    files = Files(tmp_path / "a", "127.0.0.1", "0.0.0.0")
    place = f"0.0.0.0:{free_port()}"
    port = int(place.rpartition(":")[2])
    daemon = Daemon(tmp_path, "--http", place, *files.options)
    try:
        await_listener(place)

        def presented() -> str:
            return ssl.get_server_certificate(("127.0.0.1", port))

        before = presented()
        context = ssl.create_default_context(cafile=files.ca)
        assert get(f"https://127.0.0.1:{port}/metrics", context=context)[0] == 200
        with open(files.key) as file:
            key = file.read()
        with open(files.key, "w") as file:
            file.write("no key")
        eventually(lambda: presented() == before and "HTTP keeps its previous certificate" in (tmp_path / "engine.log").read_text())
        with open(files.key, "w") as file:
            file.write(key)
        files.issue("127.0.0.1")
        eventually(lambda: presented() != before)
        assert get(f"https://127.0.0.1:{port}/healthz", context=context) == (200, "ok\n")
        assert exchange(place, b"GET /healthz HTTP/1.1\r\n\r\n", end=True).count(b"HTTP/1.1 200") == 0  # TLS only
        with contextlib.ExitStack() as silent:  # peers that stop within the handshake
            for i in range(40):
                connection = silent.enter_context(socket.create_connection(("127.0.0.1", port)))
                with contextlib.suppress(OSError):
                    connection.sendall(b"\x16\x03\x01\x02\x00\x01"[: i % 7])
            assert get(f"https://127.0.0.1:{port}/metrics", context=context)[0] == 200
    finally:
        daemon.stop()


def test_certificates_of_clients(tmp_path):
    """With --tls-client-ca, all but the probes require a certificate; one of another authority or a revoked one ends the handshake."""
    files, clients, other = Files(tmp_path / "a", "127.0.0.1"), Files(tmp_path / "b", "alice"), Files(tmp_path / "c", "alice")
    place, records, lists = f"0.0.0.0:{free_port()}", tmp_path / "audit.jsonl", tmp_path / "revoked.pem"
    clients.write_revocations(lists)
    authorities = ("--tls-client-ca", clients.ca, "--tls-client-crl", str(lists))
    options = ("--http", place, *files.options, *authorities, "--audit-log", str(records))
    daemon = Daemon(tmp_path, *options)

    def context(*identities: Files) -> ssl.SSLContext:
        made = ssl.create_default_context(cafile=files.ca)
        for each in identities:
            made.load_cert_chain(each.certificate, each.key)
        return made

    def answer(path: str, *identities: Files) -> tuple[int, str]:
        return get(f"https://127.0.0.1:{place.rpartition(':')[2]}{path}", context=context(*identities))

    def is_accepted(identity: Files) -> bool:
        with contextlib.suppress(OSError):
            return answer("/metrics", identity)[0] == 200
        return False

    try:
        await_listener(place)
        for path in ("/healthz", "/readyz"):
            assert answer(path) == answer(path, clients) == (200, "ok\n")
            head = urllib.request.Request(f"https://127.0.0.1:{place.rpartition(':')[2]}{path}", method="HEAD")
            assert urllib.request.urlopen(head, timeout=30, context=context()).status == 200
        for path in ("/", "/page.js", "/metrics", "/api/status", "/healthz?x", "/none"):
            status, text = answer(path)
            assert status == 403 and "requires a certificate of the client" in text, path
        for path in ("/", "/metrics", "/api/status"):
            assert answer(path, clients)[0] == 200, path
        for path in ("/healthz", "/metrics"):
            with pytest.raises((urllib.error.URLError, ConnectionError, ssl.SSLError)):
                answer(path, other)
        refused = [json.loads(line) for line in records.read_text().splitlines()]
        assert refused and all(each["event"] == "call.refused" and "certificate" in each["reason"] for each in refused)
        # Revoked certificates are refused, and lists of them read again.
        for revoked in (True, False):
            clients.write_revocations(lists, *[clients] * revoked)
            eventually(lambda revoked=revoked: is_accepted(clients) != revoked)
        # Other authorities are used without a restart.
        Path(clients.ca).write_bytes(Path(other.ca).read_bytes())

        other.write_revocations(lists)
        eventually(lambda: is_accepted(other))
        with pytest.raises((urllib.error.URLError, ConnectionError, ssl.SSLError)):
            answer("/metrics", clients)
    finally:
        daemon.stop()


def test_slow_peers_do_not_delay_others(engine):
    """Peers that send nothing, or a part of a request, in larger number than the engine's threads for HTTP."""
    address = ("127.0.0.1", int(engine.place.rpartition(":")[2]))
    slow = [socket.create_connection(address) for _ in range(60)]
    try:
        for i, connection in enumerate(slow):
            with contextlib.suppress(OSError):  # those beyond the limit per address have been closed
                connection.sendall(b"GET /metrics HTTP/1.1\r\nX: "[: i % 30])
        for path in ("/healthz", "/metrics", "/api/status"):
            assert fetch(engine.place, path).status == 200
    finally:
        for connection in slow:
            connection.close()


INVALID = (
    b"",
    b"\r\n\r\n",
    b"GET",
    b"GET / HTTP/1.1",
    b"GET / HTTP/1.1\r\nHost: x\r\n",
    b"\x00" * 64 + b"\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",  # a TLS handshake
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET  /  HTTP/1.1\r\n\r\n",
    b"GET http://127.0.0.1/metrics HTTP/1.1\r\n\r\n",
    b"GET * HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\n\n",
    b"GET / HTTP/1.1\r\nHost x\r\n\r\n",
    b"GET / HTTP/1.1\r\n: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nAuthorization\r\n\r\n",
    b"GET / HTTP/1.1\r\n folded: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: " + b"\xff\xfe" * 50 + b"\r\n\r\n",
    b"POST /metrics HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    b"POST /metrics HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\nx",
    b"POST /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx",
    b"GET /metrics HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nExpect: 100-continue\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
    b"GET / HTTP/1.1\r\nRange: bytes=" + b"0-1," * 1500 + b"0-1\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nAuthorization: Bearer " + b"x" * 7000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"Authorization: Bearer x\r\n" * 300 + b"\r\n",
    b"GET / HTTP/1.1\r\n" + b"".join(b"H%d: x\r\n" % i for i in range(700)) + b"\r\n",
    *(
        b"GET " + path + b" HTTP/1.1\r\n\r\n"
        for path in (
            b"/../../../../etc/passwd", b"//etc/passwd", b"/..%2f..%2fetc/passwd", b"/%2e%2e/%2e%2e/etc/passwd", b"/page.css/../../x",
            b"/page.css%00.html", b"/%", b"/%zz", b"/%c0%af", b"/\\..\\..\\x", b"/api/status/", b"/api/..;/status", b"/?" + b"a=b&" * 1500,
            b"/" + b"a" * 7000, b"/#" + b"%41" * 2000, b"/page.css;x", b"/PAGE.CSS",
        )
    ),
)  # fmt: skip
TOO_LONG = (
    b"G" * 100_000,
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20_000,
)


def test_malformed_requests_are_answered_or_closed(engine):
    for request in INVALID:
        answer = exchange(engine.place, request, end=True)
        assert answer == b"" or re.match(rb"HTTP/1\.1 (200|400|404|405|414|431) ", answer), (request[:100], answer[:100])
        assert answer.count(b"HTTP/1.1 ") <= 1 and b"root:" not in answer, request[:100]
    for request in TOO_LONG:
        answer = exchange(engine.place, request)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 431 "), (request[:100], answer[:100])
    assert fetch(engine.place, "/healthz").status == 200 and engine.process.poll() is None


def test_random_requests_do_not_stop_the_engine(engine):
    """Valid requests with bytes that are changed, removed, repeated or inserted, also from a peer that leaves early."""
    draw = random.Random(20)
    seeds = [
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer 0123\r\nIf-None-Match: \"x\"\r\n\r\n",
        b"HEAD /page.js HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: keep-alive\r\n\r\n",
        b"POST /api/status?x=%41 HTTP/1.0\r\nContent-Length: 4\r\n\r\nbody",
    ]
    for _ in range(400):
        request = bytearray(draw.choice(seeds))
        for _ in range(draw.randint(1, 6)):
            at = draw.randrange(len(request) + 1)
            change = draw.randrange(4)
            if change == 0:
                request[at : at + 1] = bytes([draw.randrange(256)])
            elif change == 1:
                del request[at : at + draw.randint(1, 20)]
            elif change == 2:
                request[at:at] = request[at : at + 30] * draw.randint(1, 40)
            else:
                request[at:at] = draw.choice([b"\r\n", b"\0", b"%00", b"%", b":", b" ", b"\xff", b"..", b"HTTP/1.1"])
        if draw.random() < 0.2:
            with socket.create_connection(("127.0.0.1", int(engine.place.rpartition(":")[2])), 20) as connection:
                connection.sendall(request[: draw.randrange(len(request) + 1)])
            continue
        answer = exchange(engine.place, bytes(request), end=True)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 "), bytes(request)
    assert engine.process.poll() is None and fetch(engine.place, "/healthz").status == 200
