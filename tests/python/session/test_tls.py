"""TLS: certificates of authorities, of their own signature and of clients; replaced, expired and wrong ones."""

from __future__ import annotations

import contextlib
import datetime
import json
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from tests.conftest import BUILD, IN_PROCESS, Daemon, await_listener, client_environment, eventually

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]

# Prints the result of a computation, or the error of connect().
CLIENT = """
import sys, teletensor as torch
for line in sys.stdin:
    try:
        with_options = eval(line)
        torch.connect(**with_options)
        print(torch.ones(3).sum().item(), flush=True)
        torch.disconnect()
    except (ConnectionError, ValueError) as error:
        print(error, flush=True)
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def revocation_list(authority: trustme.CA, *revoked: bytes, days: int = 1, signer: trustme.CA | None = None) -> bytes:
    """An authority's list (PEM) of revoked certificates, which ends in `days`."""
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateRevocationListBuilder().issuer_name(x509.load_pem_x509_certificate(authority.cert_pem.bytes()).subject)
    builder = builder.last_update(now - datetime.timedelta(days=9)).next_update(now + datetime.timedelta(days=days))
    for pem in revoked:
        serial = x509.load_pem_x509_certificate(pem).serial_number
        builder = builder.add_revoked_certificate(x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now).build())
    key = serialization.load_pem_private_key((signer or authority).private_key_pem.bytes(), None)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


class Files:
    """An authority, and files with a certificate that it signed."""

    def __init__(self, folder, *names: str, authority: trustme.CA | None = None, **options):
        folder.mkdir(exist_ok=True)
        self.authority = authority or trustme.CA()
        self.ca, self.certificate, self.key = (str(folder / name) for name in ("ca.pem", "cert.pem", "key.pem"))
        self.authority.cert_pem.write_to_path(self.ca)
        self.issue(*names, **options)

    def issue(self, *names: str, **options) -> None:
        issued = self.authority.issue_cert(*names, **options)
        issued.private_key_pem.write_to_path(self.key)
        with open(self.certificate, "wb") as file:
            for part in issued.cert_chain_pems:
                file.write(part.bytes())

    def write_revocations(self, file: Path, *revoked: Files, days: int = 1, authority: trustme.CA | None = None) -> None:
        """Writes the authority's list of the certificates that it has revoked, which ends in `days`."""
        draft = file.with_suffix(".draft")
        pems = [Path(each.certificate).read_bytes() for each in revoked]
        draft.write_bytes(revocation_list(self.authority, *pems, days=days, signer=authority))
        draft.replace(file)

    @property
    def options(self) -> tuple[str, ...]:
        return "--tls-cert", self.certificate, "--tls-key", self.key


class TlsDaemon(Daemon):
    def __init__(self, folder, *options: str, **environment: str):
        self.place = f"127.0.0.1:{free_port()}"
        super().__init__(folder, "--listen", self.place, *options, **environment)
        self.url = f"teletensors://{self.place}"


@pytest.fixture
def start(tmp_path):
    engines = []

    def start_engine(*options: str) -> TlsDaemon:
        folder = tmp_path / f"engine{len(engines)}"
        folder.mkdir()
        engines.append(TlsDaemon(folder, *options))
        return engines[-1]

    yield start_engine
    for engine in engines:
        engine.stop()


def connect(tmp_path, *options: dict, **environment: str) -> list[str]:
    """What a client prints for each connect(), in one process."""
    done = subprocess.run(
        [sys.executable, "-c", CLIENT], input="".join(f"{each!r}\n" for each in options), text=True, capture_output=True,
        env=client_environment(TELETENSOR_KNOWN_ENGINES=str(tmp_path / "known_engines"), **environment), timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_known_engines_are_not_connected_without_tls(tmp_path):
    place = "192.0.2.1:7070"  # no such host: refused before a connection
    known = {"TELETENSOR_TLS_FINGERPRINT": "sha256:" + "0" * 64}
    (refused,) = connect(tmp_path, {"address": place, "token": "0" * 64}, **known)
    assert "expected TLS" in refused and f"use teletensors://{place}" in refused
    known_engines = f"# of the laboratory\n{place} sha256:{'0' * 64}\n{place}\nGPU-box:7070 sha256:{'1' * 64}\n"
    (tmp_path / "known_engines").write_text(known_engines)
    refused, named = connect(tmp_path, *({"address": each, "token": "0" * 64} for each in (place, "gpu-box")))
    assert f"use teletensors://{place}" in refused and "use teletensors://gpu-box:7070" in named


def fingerprint_of(engine: TlsDaemon) -> str:
    """The fingerprint in the engine's log, which is written after the socket exists."""
    deadline = time.monotonic() + 20
    while True:
        if found := re.search(r"sha256:[0-9a-f]{64}", Path(engine.log.name).read_text()):
            return found[0]
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_certificate_of_an_authority(tmp_path, start):
    files, other = Files(tmp_path / "a", "127.0.0.1", "localhost"), Files(tmp_path / "b", "127.0.0.1")
    Path(files.key).chmod(0o644)
    engine = start(*files.options)
    name = engine.url.replace("127.0.0.1", "localhost")
    accepted, by_name, unknown, of_other, plain, misplaced = connect(
        tmp_path,
        {"address": engine.url, "ca": files.ca},
        {"address": name, "ca": files.ca},
        {"address": engine.url},
        {"address": engine.url, "ca": other.ca},
        {"address": engine.place},
        {"address": engine.place, "ca": files.ca},
    )
    assert accepted == by_name == "3.0"
    exposed = f"the private key {files.key} is accessible to all users"
    assert exposed in Path(engine.log.name).read_text()
    Path(files.key).chmod(0o640)
    engine_with_group = start(*files.options)
    assert fingerprint_of(engine_with_group) and exposed not in Path(engine_with_group.log.name).read_text()
    assert fingerprint_of(engine) in unknown and "could not be verified by this machine's authorities" in unknown
    assert f"could not be verified by {other.ca}" in of_other
    assert f"requires TLS; connect to {engine.url}" in plain
    assert "require TLS: expected an address like teletensors://" in misplaced
    # The command, too.
    shown = subprocess.run(
        [str(BUILD / "../.venv/bin/teletensor"), "--address", engine.url, "--ca", files.ca, "status"], capture_output=True, text=True,
        env=client_environment(), timeout=60,
    )  # fmt: skip
    assert shown.returncode == 0, shown.stderr


def test_wrong_name_and_expired_certificate(tmp_path, start):
    files = Files(tmp_path / "a", "another.host")
    engine = start(*files.options)
    (refused,) = connect(tmp_path, {"address": engine.url, "ca": files.ca})
    assert "could not be verified" in refused
    past = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=1)
    files.issue("127.0.0.1", not_after=past)
    done = subprocess.run(
        [str(BUILD / "bin/teletensord"), "--listen", "127.0.0.1:0", "--no-auth", *files.options], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1 and f"{files.certificate}: the certificate expired on {past:%Y-%m-%d}" in done.stderr


def test_replaced_certificate(tmp_path, start):
    """New connections get a new certificate without a restart; a session goes on."""
    files = Files(tmp_path / "a", "127.0.0.1")
    engine = start(*files.options)
    script = f"""
import teletensor as torch
torch.connect({engine.url!r}, ca={files.ca!r})
w = torch.zeros(3, requires_grad=True)
print("ready", flush=True)
for step in iter(input, "end"):
    ((w - 1) ** 2).sum().backward()
    with torch.no_grad():
        w -= 0.25 * w.grad; w.grad = None
    print(w.sum().item(), flush=True)
"""
    client = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=client_environment()
    )

    def step() -> str:
        client.stdin.write("step\n")
        client.stdin.flush()
        return client.stdout.readline().strip()

    def presented() -> str:
        return ssl.get_server_certificate(("127.0.0.1", int(engine.place.rpartition(":")[2])))

    assert client.stdout.readline() == "ready\n" and step() == "1.5"
    before = presented()
    files.issue("127.0.0.1")
    deadline = time.monotonic() + 60
    while presented() == before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert presented() != before and step() == "2.25"
    assert connect(tmp_path, {"address": engine.url, "ca": files.ca}) == ["3.0"]
    client.communicate("end\n", timeout=60)


@pytest.mark.parametrize("first", ["certificate", "key"])
def test_certificate_and_key_are_replaced_one_after_the_other(tmp_path, start, first):
    """Until both files fit each other, new connections get the previous certificate, over gRPC and HTTP."""
    files = Files(tmp_path / "a", "127.0.0.1")
    new = Files(tmp_path / "b", "127.0.0.1", authority=files.authority)
    http = free_port()
    engine = start(*files.options, "--http", f"0.0.0.0:{http}", "--tls-client-ca", files.ca)
    ports = int(engine.place.rpartition(":")[2]), http
    await_listener(f":{http}")
    log = Path(engine.log.name)

    def presented() -> list[str]:
        return [ssl.get_server_certificate(("127.0.0.1", port)) for port in ports]

    before = presented()
    second = "key" if first == "certificate" else "certificate"
    Path(getattr(new, first)).replace(getattr(files, first))
    messages = "the previous certificates stay in use: ", "HTTP keeps its previous certificate: "
    eventually(lambda: presented() == before and all(message in log.read_text() for message in messages))
    Path(getattr(new, second)).replace(getattr(files, second))
    eventually(lambda: not set(presented()) & set(before))
    # A file of authorities that cannot be used is not used either.
    authorities = Path(files.ca).read_bytes()
    Path(files.ca).write_text("nothing")
    eventually(lambda: f"stay in use: cannot use {files.ca}" in log.read_text())
    Path(tmp_path / "ca.pem").write_bytes(authorities)
    options = {"address": engine.url, "ca": str(tmp_path / "ca.pem"), "certificate": files.certificate, "key": files.key}
    assert connect(tmp_path, options) == ["3.0"]


def test_fingerprint_is_remembered(tmp_path, start):
    tokens = tmp_path / "engine"
    engine = start("--tls-self-signed", "--token-file", str(tokens / "token"))
    fingerprint = fingerprint_of(engine)
    assert (tokens / "tls-key.pem").stat().st_mode & 0o777 == 0o600
    wrong, malformed, first, second = connect(
        tmp_path,
        {"address": engine.url, "fingerprint": "0" * 64},
        {"address": engine.url, "fingerprint": "12:34"},
        {"address": engine.url, "fingerprint": fingerprint},
        {"address": engine.url},
    )
    assert f"HAS CHANGED, or another server answers in its place: expected sha256:{'0' * 64}, got {fingerprint}" in wrong
    assert "expected a fingerprint" in malformed
    assert first == second == "3.0"
    assert (tmp_path / "known_engines").read_text() == f"{engine.place} {fingerprint}\n"
    # Another engine takes its place.
    engine.stop()
    other = Files(tmp_path / "b", "127.0.0.1")
    folder = tmp_path / "other"
    folder.mkdir()
    impostor = Daemon(folder, "--listen", engine.place, *other.options)
    (changed,) = connect(tmp_path, {"address": engine.url})
    impostor.stop()
    assert f"expected {fingerprint} by {tmp_path}/known_engines" in changed and "Nothing was sent" in changed


def test_certificates_of_clients(tmp_path, start):
    server, clients, other = Files(tmp_path / "a", "127.0.0.1"), Files(tmp_path / "b", "alice"), Files(tmp_path / "c", "alice")
    engine = start(*server.options, "--tls-client-ca", clients.ca)
    known = {"address": engine.url, "ca": server.ca}
    without, accepted, of_other, half = connect(
        tmp_path,
        known,
        {**known, "certificate": clients.certificate, "key": clients.key},
        {**known, "certificate": other.certificate, "key": other.key},
        {**known, "certificate": clients.certificate},
    )
    assert accepted == "3.0"
    assert "requires a certificate of the client" in without and "requires a certificate of the client" in of_other
    assert "expected both certificate and key" in half


def test_revoked_certificates_of_clients(tmp_path, start):
    """Lists of revoked certificates are read again when they change; one that cannot be used keeps the previous one."""
    server = Files(tmp_path / "a", "127.0.0.1")
    alice, lists, records = Files(tmp_path / "b", "alice"), tmp_path / "revoked.pem", tmp_path / "audit.jsonl"
    bob, other = Files(tmp_path / "c", "bob", authority=alice.authority), Files(tmp_path / "d", "mallory")
    alice.write_revocations(lists, bob)
    options = (*server.options, "--tls-client-ca", alice.ca, "--tls-client-crl", str(lists), "--audit-log", str(records))
    engine = start(*options)
    known = {"address": engine.url, "ca": server.ca}
    as_alice, as_bob = ({**known, "certificate": each.certificate, "key": each.key} for each in (alice, bob))
    accepted, refused = connect(tmp_path, as_alice, as_bob)
    assert accepted == "3.0" and "requires a certificate of the client" in refused
    (line,) = {json.loads(each)["reason"] for each in records.read_text().splitlines() if "certificate" in each}
    assert line.endswith("certificate revoked") and "Testing cert" in line and "serial number" in line

    def answers(*expected: bool) -> bool:
        return [each == "3.0" for each in connect(tmp_path, as_alice, as_bob)] == list(expected)

    alice.write_revocations(lists, alice)
    eventually(lambda: answers(False, True))
    # Not usable: no list, and one that another authority signed; the latter is used, and refuses all.
    lists.write_text("-----BEGIN X509 CRL-----\n")
    time.sleep(1.5)  # longer than the interval of the checks
    assert answers(False, True)
    assert "expected revocation lists" in (tmp_path / "engine0/engine.log").read_text()
    alice.write_revocations(lists, authority=other.authority)
    eventually(lambda: answers(False, False))
    alice.write_revocations(lists)
    eventually(lambda: answers(True, True))
    alice.write_revocations(lists, days=-1)  # a newer list is missing
    eventually(lambda: answers(False, False))


def test_revocation_with_intermediate_authorities(tmp_path, start):
    root = trustme.CA()
    middle = root.create_child_ca()
    server, client = Files(tmp_path / "a", "127.0.0.1"), Files(tmp_path / "b", "alice", authority=middle)
    anchors, lists = tmp_path / "anchors.pem", tmp_path / "lists.pem"
    anchors.write_bytes(root.cert_pem.bytes())
    leaf = Path(client.certificate).read_bytes()
    lists.write_bytes(revocation_list(root) + revocation_list(middle))
    engine = start(*server.options, "--tls-client-ca", str(anchors), "--tls-client-crl", str(lists))
    options = {"address": engine.url, "ca": server.ca, "certificate": client.certificate, "key": client.key}

    def is_accepted() -> bool:
        return connect(tmp_path, options) == ["3.0"]

    def settings(session: ssl.SSLSession | None) -> tuple[bytes, ssl.SSLSession, bool]:
        """What the engine sends after the beginning of HTTP/2, the TLS session, and whether it was resumed."""
        context = ssl.create_default_context(cafile=server.ca)
        context.maximum_version = ssl.TLSVersion.TLSv1_2  # a session can be resumed as soon as the handshake is done
        context.load_cert_chain(client.certificate, client.key)
        context.set_alpn_protocols(["h2"])
        contexts.append(context)
        used = contexts[0] if session else context
        place, port = engine.place.split(":")
        with used.wrap_socket(socket.create_connection((place, int(port))), server_hostname=place, session=session) as connection:
            connection.settimeout(20)
            connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
            with contextlib.suppress(ConnectionError):
                return connection.recv(100), connection.session, connection.session_reused
            return b"", connection.session, connection.session_reused

    contexts: list[ssl.SSLContext] = []
    assert is_accepted()
    answer, session, resumed = settings(None)
    assert answer and not resumed
    answer, _, resumed = settings(session)  # a client that resumes a session does not send the intermediate certificate again
    assert answer and resumed
    for revoked in (
        revocation_list(root) + revocation_list(middle, leaf),
        revocation_list(root, middle.cert_pem.bytes()) + revocation_list(middle),
        revocation_list(root),  # the list of an authority on the way is missing
    ):
        lists.write_bytes(revoked)
        eventually(lambda: not is_accepted())
        assert settings(session)[0] == b""
        lists.write_bytes(revocation_list(root) + revocation_list(middle))
        eventually(is_accepted)
    # An authority that has not signed itself.
    anchors.write_bytes(middle.cert_pem.bytes())
    lists.write_bytes(revocation_list(middle))
    eventually(is_accepted)
    lists.write_bytes(revocation_list(middle, leaf))
    eventually(lambda: not is_accepted())


def test_lists_of_revoked_certificates_at_start(tmp_path, start):
    server, lists = Files(tmp_path / "a", "127.0.0.1"), tmp_path / "revoked.pem"
    lists.write_bytes(Path(server.ca).read_bytes())  # a certificate is no list
    for options, expected in (
        ((*server.options, "--tls-client-ca", server.ca), "expected revocation lists (CRLs) in PEM format"),
        (server.options, "--tls-client-crl requires --tls-client-ca"),
    ):
        command = [BUILD / "bin/teletensord", "--listen", f"127.0.0.1:{free_port()}", *options, "--tls-client-crl", str(lists)]
        run = subprocess.run([*command, "--token-file", str(tmp_path / "token")], capture_output=True, text=True, timeout=60)
        assert run.returncode != 0 and expected in run.stderr


def test_network_addresses_require_tls(tmp_path):
    daemon = [str(BUILD / "bin/teletensord"), "--no-auth", "--check-config", "--listen"]

    def check(address: str, *options: str) -> subprocess.CompletedProcess:
        return subprocess.run([*daemon, address, *options], capture_output=True, text=True, timeout=60)

    refused = check("0.0.0.0:7070")
    assert refused.returncode == 2 and "requires TLS" in refused.stderr
    assert check("0.0.0.0:7070", "--insecure").returncode == 0
    assert check("0.0.0.0:7070", "--tls-self-signed").returncode == 0
    assert check("127.0.0.1:7070").returncode == 0
    refused = check("127.0.0.1:7070", "--tls-dir", str(tmp_path))
    assert refused.returncode == 2 and "--tls-dir requires --tls-self-signed" in refused.stderr
    assert check("0.0.0.0:7070", "--tls-self-signed", "--tls-dir", str(tmp_path / "new")).returncode == 0


@pytest.mark.parametrize("listener", ["--listen", "--http"])
def test_versions_before_1_2_are_refused(tmp_path, start, listener):
    files = Files(tmp_path / "a", "127.0.0.1")
    place = f"127.0.0.1:{free_port()}" if listener == "--listen" else f"0.0.0.0:{free_port()}"
    start(*files.options, listener, place)
    address = ("127.0.0.1", int(place.rpartition(":")[2]))

    def handshake(version: ssl.TLSVersion) -> str:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(files.ca)
        context.set_alpn_protocols(["h2"])
        context.set_ciphers("ALL:@SECLEVEL=0")  # at the usual level the client itself would not offer them
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = context.maximum_version = version
        with socket.create_connection(address, 20) as plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as encrypted:
            return encrypted.version()

    deadline = time.monotonic() + 60  # the HTTP listener starts after the socket for which the fixture waits
    while socket.socket().connect_ex(address) != 0 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert handshake(ssl.TLSVersion.TLSv1_2) == "TLSv1.2" and handshake(ssl.TLSVersion.TLSv1_3) == "TLSv1.3"
    for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
        # gRPC's listener closes the connection. An error of the client's own has another message.
        with pytest.raises(OSError, match="protocol version|EOF occurred|reset by peer"):
            handshake(version)


def test_silent_handshakes_take_no_places(tmp_path, start):
    """Connections that complete the handshake, and those that stop within it, do not keep a client out."""
    files = Files(tmp_path / "a", "127.0.0.1")
    engine = start(*files.options)
    place = ("127.0.0.1", int(engine.place.rpartition(":")[2]))
    context = ssl.create_default_context(cafile=files.ca)
    context.set_alpn_protocols(["h2"])
    silent = []
    try:
        for i in range(100):
            connection = socket.create_connection(place)
            silent.append(connection)
            if i % 2:
                connection.sendall(b"\x16\x03\x01\x02\x00\x01")
            else:
                connection.settimeout(10)
                try:
                    silent[-1] = context.wrap_socket(connection, server_hostname="127.0.0.1")
                except OSError:  # closed for another one
                    pass
        assert connect(tmp_path, {"address": engine.url, "ca": files.ca}) == ["3.0"]
    finally:
        for connection in silent:
            connection.close()


def test_flood_of_begun_handshakes(tmp_path, start):
    """Connections that stop after the first bytes of a handshake, at a high rate, do not keep a client out."""
    files = Files(tmp_path / "a", "127.0.0.1")
    engine = start(*files.options)
    place = ("127.0.0.1", int(engine.place.rpartition(":")[2]))
    ended, begun = threading.Event(), threading.Event()

    def flood() -> None:
        peers: list[socket.socket] = []
        while not ended.wait(0.002):
            with contextlib.suppress(OSError):
                peers.append(socket.create_connection(place, 1))
                peers[-1].sendall(b"\x16\x03\x01\x02\x00\x01")
            if len(peers) > 100:
                begun.set()
                peers.pop(0).close()
        for peer in peers:
            peer.close()

    flooding = threading.Thread(target=flood)
    flooding.start()
    try:
        assert begun.wait(60)
        assert connect(tmp_path, {"address": engine.url, "ca": files.ca}) == ["3.0"]
    finally:
        ended.set()
        flooding.join()


def test_engines_among_themselves(tmp_path, start):
    """Groups of engines with --tls-peer-ca form and compute; their stores refuse peers without a certificate."""
    files = Files(tmp_path / "a", "127.0.0.1")
    options = (*files.options, "--tls-peer-ca", files.ca)
    first, second = start(*options), start(*options)
    script = """
import socket, ssl, sys, teletensor as torch
from teletensor.distributed import _rendezvous
from teletensor.distributed.tensor import Replicate, Shard, distribute_tensor
engines = torch.connect_all(sys.argv[1:3])
mesh = torch.distributed.init_device_mesh("cpu", (2,))
x = distribute_tensor(torch.arange(4.0), mesh, [Shard(0)])
print(x.redistribute(mesh, [Replicate()]).full_tensor().tolist(), x.sum().full_tensor().item())
port, token = _rendezvous.serve_published("127.0.0.1")

def answer(*identity):
    context = ssl.create_default_context(cafile=sys.argv[3])
    context.set_alpn_protocols(["h2"])
    if identity:
        context.load_cert_chain(*identity)
    try:
        with context.wrap_socket(socket.create_connection(("127.0.0.1", port), 10), server_hostname="127.0.0.1") as peer:
            peer.sendall(b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)))
            return len(peer.recv(9)) == 9
    except OSError:
        return False

with socket.create_connection(("127.0.0.1", port), 10) as plain:
    plain.sendall(b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n")
    try:
        print(plain.recv(9))
    except OSError:
        print(b"")
print(answer(), answer(*sys.argv[4:6]))
"""
    command = [sys.executable, "-c", script, first.address, second.address, files.ca, files.certificate, files.key]
    done = subprocess.run(command, capture_output=True, text=True, env=client_environment(), timeout=120)
    assert done.stdout.splitlines() == ["[0.0, 1.0, 2.0, 3.0] 6.0", "b''", "False True"], done.stderr
