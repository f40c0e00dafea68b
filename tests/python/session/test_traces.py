"""Spans of sessions, frames and administrative calls, as a collector of OpenTelemetry receives them."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import grpc
import pytest
from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, duration_pb2
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

import teletensor as torch
from tests.conftest import BUILD, IN_PROCESS, ROOT, Daemon, await_listener, client_environment, eventually
from tests.python.session.otlp import Collector, accept, attributes
from tests.python.session.test_metrics import get, values
from tests.python.session.test_principals import COMMAND, Engine, user
from tests.python.session.test_tls import Files, free_port

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]

TRACE, SPAN, OTHER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "00f067aa0ba902b7"
EXPORTED, DROPPED = "teletensor_spans_exported_total", "teletensor_spans_dropped_total"


def traceparent(span: str = SPAN, flags: str = "01") -> str:
    return f"00-{TRACE}-{span}-{flags}"


def run(script: str, address: str, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=60,
        env=client_environment(TELETENSOR_ADDRESS=address, **environment),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def dropped(metrics: dict[str, float]) -> dict[str, float]:
    return {name.split('"')[1]: value for name, value in metrics.items() if name.startswith(DROPPED)}


CLIENT = """
import sys, teletensor as torch
torch.set_trace_context(sys.argv[1])
x = torch.ones(1000)
x.sum().item()
with torch.trace_context(sys.argv[2]):
    for _ in range(3):
        x.add_(1)
    x.sum().item()
torch.set_trace_context(None)
try:
    torch.linalg.cholesky(-torch.eye(2)).sum().item()
except RuntimeError:
    pass
with torch.trace_context(sys.argv[3]):
    x.sum().item()
"""


def test_spans_have_the_parents_that_the_client_sets(tmp_path):
    collector, place = Collector(), f"127.0.0.1:{free_port()}"
    engine = Engine(tmp_path, "--otlp", collector.place, "--otlp-ratio", "1", "--http", place)
    token = user(engine.file, "add", "alice")
    engine.start()
    await_listener(place)
    run(CLIENT, engine.address, traceparent(SPAN), traceparent(OTHER), traceparent(OTHER, "00"), TELETENSOR_TOKEN=token)
    channel = grpc.insecure_channel(engine.address)
    admin = engine.token("admin-token")
    hostile = [traceparent()[:-1], "x" * 8000, "00-" + "0" * 32 + "-" + "0" * 16 + "-01", traceparent() + "-01", "", traceparent("é")]
    for text in (traceparent(), *hostile):
        metadata = [("authorization", f"Bearer {admin}"), ("traceparent", text.encode("ascii", "replace").decode())]
        channel.unary_unary("/teletensor.v1.Admin/Status")(b"", metadata=metadata)
    with pytest.raises(grpc.RpcError):
        channel.unary_unary("/teletensor.v1.Admin/EndSession")(b"\x08\x63", metadata=[("authorization", f"Bearer {admin}")])
    channel.close()
    eventually(lambda: collector.named("session") and collector.named("admin.end_session"))
    metrics = values(get(f"http://{place}/metrics", admin)[1])
    assert metrics[EXPORTED] == len(collector.spans) and dropped(metrics) == {"rate": 0, "queue": 0, "failed": 0, "rejected": 0}
    engine.stop()
    collector.stop()

    (session,) = collector.named("session")
    assert session.trace_id.hex() == TRACE and session.parent_span_id.hex() == SPAN and len(session.span_id) == 8
    assert session.start_time_unix_nano < session.end_time_unix_nano and session.kind == session.SPAN_KIND_SERVER
    found = attributes(session)
    assert found["teletensor.principal"] == "alice" and found["teletensor.session"] == 1 and found["client.address"] == "unix"
    assert found["teletensor.instructions"] >= 8 and found["teletensor.failed_instructions"] == 1
    frames = sorted(collector.named("frame"), key=lambda frame: attributes(frame)["teletensor.frame"])
    parents = [frame.parent_span_id.hex() for frame in frames]
    own = session.span_id.hex()
    order = [parents[0]] + [b for a, b in zip(parents, parents[1:], strict=False) if a != b]
    assert order == [SPAN, OTHER, own]
    assert {frame.trace_id.hex() for frame in frames} == {TRACE} and len({frame.span_id for frame in frames}) == len(frames)
    inside = [frame for frame in frames if frame.parent_span_id.hex() == OTHER]
    assert sum(attributes(frame)["teletensor.instructions"] for frame in inside) >= 4  # not those with the unsampled context
    assert all(frame.links[0].span_id.hex() == own and frame.kind == frame.SPAN_KIND_SERVER for frame in inside)
    assert all(attributes(f)["teletensor.bytes"] > 0 and attributes(f)["teletensor.wait_seconds"] >= 0 for f in frames)
    assert [frame.status.code for frame in frames].count(session.status.STATUS_CODE_ERROR) == 1
    # Of the frame with the error in its reply, which may be a later one.
    assert [found["error.type"] for found in map(attributes, frames) if "error.type" in found] == ["LINALG"]
    statuses = collector.named("admin.status")
    assert [span.parent_span_id.hex() for span in statuses] == [SPAN] + [""] * len(hostile)
    assert len({span.trace_id for span in statuses}) == len(statuses)
    (ended,) = collector.named("admin.end_session")
    assert attributes(ended) == {"teletensor.principal": "admin", "client.address": "unix", "rpc.grpc.status_code": 5}
    resource = collector.resources[0]
    assert resource["service.name"] == "teletensord" and resource["process.pid"] == engine.process.pid
    assert not any(secret in str(collector.spans) for secret in (token, admin))


@pytest.mark.parametrize(("slow", "exported"), [("0", True), ("3600", False)])
def test_slow_frames_are_exported_with_ratio_0(tmp_path, slow, exported):
    collector = Collector()
    engine = Daemon(tmp_path, "--otlp", f"http://{collector.place}", "--otlp-ratio", "0", "--otlp-slow", slow)
    run("import teletensor as torch\nfor _ in range(20):\n    torch.ones(3).sum().item()", engine.address)
    eventually(lambda: collector.named("session"))
    engine.stop()
    collector.stop()
    frames = collector.named("frame")
    assert (len(frames) >= 20) == exported and bool(frames) == exported
    assert {frame.parent_span_id for frame in frames} <= {collector.named("session")[0].span_id}


WORK = """
import sys, teletensor as torch
for _ in range(300):
    torch.ones(3).sum().item()
print(torch.ones(3).sum().item())
"""


@pytest.mark.parametrize("fault", ["down", "hangs", "refuses"])
def test_sessions_do_not_notice_a_faulty_collector(tmp_path, fault):
    release = threading.Event()

    def answer(request, context):
        if fault == "hangs":
            release.wait(60)
        context.abort(grpc.StatusCode.PERMISSION_DENIED, "no\nline \x1b[2J")

    collector, place = Collector(answer), f"127.0.0.1:{free_port()}"
    if fault == "down":
        collector.stop()
    engine = Daemon(tmp_path, "--otlp", collector.place, "--otlp-ratio", "1", "--http", place, "--grace", "4")
    await_listener(place)
    for _ in range(2):
        assert run(WORK, engine.address) == "3.0\n"
    metrics = values(get(f"http://{place}/metrics")[1])
    assert metrics['teletensor_sessions_opened_total{principal="admin"}'] == 2 and metrics[EXPORTED] == 0
    assert dropped(metrics)["rate"] >= 200  # 300 frames per session, of which about 100 are within the rate
    if fault == "refuses":  # for good: not tried again
        eventually(lambda: dropped(values(get(f"http://{place}/metrics")[1]))["failed"] >= 100)
    engine.process.send_signal(signal.SIGTERM)
    assert engine.process.wait(20) == 0  # within the grace period, whose end is another log line
    engine.log.seek(0)
    log = engine.log.read()
    engine.log.close()
    release.set()
    collector.stop()
    assert "grace period" not in log and "\x1b" not in log
    assert fault == "hangs" or "cannot export spans" in log or "could not be exported" in log


def test_exports_are_repeated_as_otlp_says(tmp_path):
    answers = iter(["unavailable", "full", "partial"])

    def answer(request, context):
        kind = next(answers, "ok")
        if kind == "unavailable":
            context.abort(grpc.StatusCode.UNAVAILABLE, "starting")
        if kind == "full":
            delay = duration_pb2.Duration(nanos=100_000_000).SerializeToString()
            info = any_pb2.Any(type_url="type.googleapis.com/google.rpc.RetryInfo", value=b"\x0a" + bytes([len(delay)]) + delay)
            detail = info.SerializeToString()
            context.set_trailing_metadata([("grpc-status-details-bin", b"\x08\x08\x1a" + bytes([len(detail)]) + detail)])
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "full")
        if kind == "partial":
            return trace_service_pb2.ExportTraceServiceResponse(partial_success={"rejected_spans": 1, "error_message": "one"})
        return accept(request, context)

    collector, place = Collector(answer), f"127.0.0.1:{free_port()}"
    engine = Daemon(tmp_path, "--otlp", collector.place, "--otlp-ratio", "0", "--http", place)
    await_listener(place)
    run(WORK, engine.address)
    eventually(lambda: collector.named("session"))
    eventually(lambda: dropped(values(get(f"http://{place}/metrics")[1]))["rejected"] == 1)
    assert values(get(f"http://{place}/metrics")[1])[EXPORTED] == 0 and collector.calls == 3 and len(collector.spans) == 1
    engine.stop()
    collector.stop()


def test_spans_of_the_end_are_sent_with_tls(tmp_path):
    files = Files(tmp_path / "a", "localhost")
    collector = Collector(tls=files)
    folder = tmp_path / "engine"
    folder.mkdir()
    engine = Daemon(folder, "--otlp", f"https://localhost:{collector.port}", "--otlp-ca", files.ca)
    client = subprocess.Popen(
        [sys.executable, "-c", "import teletensor as torch; torch.ones(3).sum().item(); print(1, flush=True); input()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=client_environment(TELETENSOR_ADDRESS=engine.address),
    )  # fmt: skip
    assert client.stdout.readline() == b"1\n"
    assert engine.stop() == 0  # with an open session
    client.communicate(b"\n", 20)
    collector.stop()
    assert len(collector.named("session")) == 1


@pytest.mark.parametrize("end", ["pass", "os._exit(0)"])
def test_a_private_engine_sends_its_spans_after_its_client(end):
    collector = Collector()
    script = f"import os, teletensor as torch; torch.ones(3).sum().item(); input(); {end}"
    environment = client_environment(TELETENSOR_OTLP=collector.place, TELETENSOR_OTLP_SLOW="0")
    environment.pop("TELETENSOR_ADDRESS", None)
    for _ in range(10):  # the engine gives up after a second, in which a busy machine may not run the collector
        client = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        # Frames are exported while the client lives, so that the connection exists when the last second begins.
        eventually(lambda: collector.named("frame") or client.poll() is not None)
        assert not collector.named("session")
        _, errors = client.communicate("\n", 60)
        assert client.returncode == 0, errors
        deadline = time.monotonic() + 3
        while not (sent := collector.named("session")) and time.monotonic() < deadline:
            time.sleep(0.05)
        if sent:
            break
    assert sent
    collector.stop()


def test_options_are_checked():
    def check(*options: str) -> str:
        command = [BUILD / "bin/teletensord", "--check-config", "--no-auth", *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        return done.stdout + done.stderr if done.returncode == 0 else f"{done.returncode} {done.stdout}{done.stderr}"

    assert 'otlp="a:1"' in check("--otlp", "a:1", "--otlp-ratio", "0.5")
    assert "require --otlp" in check("--otlp-ratio", "0.5") and "require --otlp" in check("--otlp-slow", "5")
    assert "expected HOST:PORT" in check("--otlp", "http://a:1/v1/traces")
    assert "requires --otlp https" in check("--otlp", "a:1", "--otlp-ca", "/etc/passwd")


def test_contexts_are_validated_and_restored():
    with pytest.raises(ValueError, match=r"\[set_trace_context\] expected a W3C traceparent"):
        torch.set_trace_context("00-xyz")
    with torch.trace_context(traceparent()):
        with pytest.raises(ValueError, match="expected a W3C traceparent"), torch.trace_context(traceparent("B7AD6B7169203331")):
            pass
        with torch.trace_context(""):
            assert torch._connection.traceparent() == ""
        assert torch._connection.traceparent() == traceparent()
        assert torch.ones(2).sum().item() == 2
    assert torch._connection.traceparent() == ""
    span = trace.SpanContext(int(TRACE, 16), int(SPAN, 16), is_remote=False, trace_flags=trace.TraceFlags(1))
    with trace.use_span(trace.NonRecordingSpan(span)), torch.trace_context():
        assert torch._connection.traceparent() == traceparent()
    with torch.trace_context():
        assert torch._connection.traceparent() == ""  # no span is current


def test_many_changes_of_the_context_wait_for_room():
    x = torch.zeros(1)
    for i in range(2000):
        torch.set_trace_context(traceparent(f"{i + 1:016x}"))
        x.add_(1)
    torch.set_trace_context(None)
    assert x.item() == 2000


@pytest.mark.skipif(not shutil.which("protoc"), reason="requires Debian's package protobuf-compiler")
def test_messages_are_those_of_the_published_package(tmp_path):
    folder = ROOT / "proto/opentelemetry"
    files = [str(path.relative_to(ROOT / "proto")) for path in sorted(folder.rglob("*.proto"))]
    output = tmp_path / "descriptors"
    subprocess.run(["protoc", "-I", ROOT / "proto", f"--descriptor_set_out={output}", *files], check=True, timeout=60)
    ours = descriptor_pb2.FileDescriptorSet.FromString(Path(output).read_bytes())
    pool = descriptor_pool.Default()  # with the package's files

    def compare(message: descriptor_pb2.DescriptorProto, name: str) -> int:
        published = descriptor_pb2.DescriptorProto()
        pool.FindMessageTypeByName(name).CopyToProto(published)
        fields = {field.name: field for field in published.field}
        for field in message.field:
            other = fields[field.name]
            assert (field.number, field.type, field.label, field.type_name) == (other.number, other.type, other.label, other.type_name)
        enums = {each.name: {value.name: value.number for value in each.value} for each in published.enum_type}
        for each in message.enum_type:
            assert {value.name: value.number for value in each.value} == enums[each.name]
        return len(message.field) + sum(compare(each, f"{name}.{each.name}") for each in message.nested_type)

    assert sum(compare(message, f"{file.package}.{message.name}") for file in ours.file for message in file.message_type) > 30
    (service,) = (service for file in ours.file for service in file.service)
    published = pool.FindServiceByName(f"opentelemetry.proto.collector.trace.v1.{service.name}")
    assert [method.name for method in service.method] == ["Export"] and published.methods_by_name["Export"].input_type.name


def test_the_command_line_needs_no_trace_package():
    script = "import sys; sys.modules['opentelemetry'] = None; import teletensor as torch; torch.set_trace_context(None)\n"
    script += "try:\n    torch.trace_context().__enter__()\nexcept RuntimeError as error:\n    print(error)"
    assert "opentelemetry-api" in run(script, "unix:/nonexistent")
    assert subprocess.run([COMMAND, "--version"], capture_output=True, timeout=60).returncode == 0
