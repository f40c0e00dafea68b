"""Answers that clients do not read: they keep memory and a place among the calls for a limited time, and only of their own share."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

import teletensor as torch
from teletensor import serving
from tests.conftest import IN_PROCESS, client_environment
from tests.python.distributed.ranks import free_port
from tests.python.serving.served import TIMEOUT, grpc_inputs
from tests.python.session.test_principals import Engine, user

grpc = pytest.importorskip("grpc")
grpcclient = pytest.importorskip("tritonclient.grpc")
h2_config = pytest.importorskip("h2.config")
h2_connection = pytest.importorskip("h2.connection")
h2_events = pytest.importorskip("h2.events")
h2_settings = pytest.importorskip("h2.settings")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]

COLUMNS = 2_000_000  # 8 MB of an answer, and as much of its message
LIMIT = 160_000_000
CALLS = 16


SEND_RATE = 256 << 10  # server/rpc/call_admission.h
PLACES = 256  # of one caller (server/serving/inference_server.h)


def serve(folder, send_timeout: int, limit: int = LIMIT, over_tcp: bool = False) -> Engine:
    """The engine's `address` is a unix socket, or with `over_tcp` a port."""
    (folder / "models").mkdir(exist_ok=True)
    large = lambda x: x.reshape(-1, 1) + torch.zeros(1, COLUMNS)  # noqa: E731
    serving.save(large, folder / "models/large/1", torch.ones(1), output_names=["y"])
    serving.save(lambda x: x + 1, folder / "models/small/1", torch.ones(2), output_names=["y"])
    http_address = f"127.0.0.1:{free_port()}"
    engine = Engine(
        folder, "--models", str(folder / "models"), "--model-poll", "0", "--http", http_address,
        "--model-inflight-limit", str(limit), "--model-send-timeout", str(send_timeout),
    )  # fmt: skip
    if over_tcp:
        tcp = f"127.0.0.1:{free_port()}"
        engine.options += ("--listen", tcp)
    engine.http = http_address
    engine.tokens = {name: user(engine.file, "add", name, "--role", "user") for name in ("hostile", "other")}
    engine.start()
    if over_tcp:
        engine.address = tcp
    until(lambda: grpcclient.InferenceServerClient(engine.address).is_server_ready(), engine)
    return engine


def until(condition, engine, limit: float = TIMEOUT) -> None:
    end = time.monotonic() + limit
    while True:
        with contextlib.suppress(grpcclient.InferenceServerException):
            if condition():
                return
        assert time.monotonic() < end, f"the condition does not become true\n{engine.text()}"
        time.sleep(0.05)


def resident_bytes(engine) -> int:
    with open(f"/proc/{engine.process.pid}/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmRSS"))


def headers(engine, name: str) -> dict:
    return {"authorization": f"Bearer {engine.tokens[name]}"}


def infer(engine, name: str, model: str, **arrays):
    with grpcclient.InferenceServerClient(engine.address) as client:
        return client.infer(model, grpc_inputs(grpcclient, **arrays), headers=headers(engine, name), client_timeout=TIMEOUT).as_numpy("y")


class Unread:
    """Calls of ModelInfer whose answers gRPC's client is not asked for, so that it opens no window for them."""

    def __init__(self, engine, connections: int):
        from tritonclient.grpc import service_pb2

        request = service_pb2.ModelInferRequest(model_name="large")
        request.inputs.add(name="x", datatype="FP32", shape=[1])
        request.raw_input_contents.append(np.ones(1, "float32").tobytes())
        self.request, self.metadata = request.SerializeToString(), list(headers(engine, "hostile").items())
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1), ("grpc.http2.bdp_probe", 0)]
        self.channels = [grpc.insecure_channel(engine.address, options=options) for _ in range(connections)]
        self.stubs = [each.unary_stream("/inference.GRPCInferenceService/ModelInfer") for each in self.channels]
        self.calls = []

    def call(self, count: int):
        for i in range(count):
            self.calls.append(self.stubs[i % len(self.stubs)](self.request, metadata=self.metadata))

    def codes(self) -> set:
        """Of the calls that have failed; those whose answers are read now have none."""
        found = set()
        for call in self.calls:
            try:
                assert sum(len(each) for each in call) > 4 * COLUMNS
            except grpc.RpcError as error:
                found.add(error.code())
        return found

    def close(self):
        for channel in self.channels:
            channel.close()


def test_a_client_keeps_only_its_share(tmp_path):
    """Answers that are not read for long leave memory for others, of a principal in both protocols."""
    engine = serve(tmp_path, send_timeout=600)
    infer(engine, "other", "large", x=np.ones(1, "float32"))
    before = resident_bytes(engine)
    unread = Unread(engine, 4)
    try:
        def is_full():
            unread.call(1)
            try:
                return infer(engine, "hostile", "large", x=np.ones(1, "float32")) is None
            except grpcclient.InferenceServerException as error:
                return "in progress or not read" in str(error)

        until(is_full, engine)
        unread.call(CALLS)
        for _ in range(5):
            assert infer(engine, "other", "large", x=np.ones(1, "float32")).shape == (1, COLUMNS)
        assert resident_bytes(engine) - before < 2 * LIMIT
        assert infer(engine, "hostile", "small", x=np.ones(2, "float32")).tolist() == [2, 2]
        assert unread.codes() == {grpc.StatusCode.RESOURCE_EXHAUSTED}  # the others' answers are complete
        until(lambda: infer(engine, "hostile", "large", x=np.ones(1, "float32")).shape == (1, COLUMNS), engine)
    finally:
        unread.close()
        engine.stop()


def test_answers_that_are_not_read_end(tmp_path):
    engine = serve(tmp_path, send_timeout=2)
    infer(engine, "other", "large", x=np.ones(1, "float32"))
    unread = Unread(engine, 2)
    try:
        unread.call(2 * CALLS)
        time.sleep(2 + 4 * COLUMNS / SEND_RATE + 3)  # more than the time for which they may be unread
        until(lambda: infer(engine, "hostile", "large", x=np.ones(1, "float32")).shape == (1, COLUMNS), engine, 30)
        codes = unread.codes()
        assert grpc.StatusCode.DEADLINE_EXCEEDED in codes
        assert codes <= {grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.RESOURCE_EXHAUSTED}
        for _ in range(3):  # nothing is left of them
            again = Unread(engine, 1)
            again.call(4)
            time.sleep(0.2)
            again.close()
        until(lambda: infer(engine, "hostile", "large", x=np.ones(1, "float32")).shape == (1, COLUMNS), engine, 30)
    finally:
        unread.close()
        engine.stop()


def test_answers_over_rest_that_are_not_read_leave_room(tmp_path):
    """They count as those of gRPC; a connection ends 20 s after its answer began."""
    engine = serve(tmp_path, send_timeout=2)
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1]}], "parameters": {"binary_data_output": True}}
    text = json.dumps(body).encode()
    head = f"POST /v2/models/large/infer HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {engine.tokens['hostile']}\r\n"
    head += f"Content-Length: {len(text)}\r\n\r\n"
    sockets = []
    host, port = engine.http.split(":")
    before = resident_bytes(engine)
    try:
        for _ in range(40):
            each = socket.create_connection((host, int(port)), timeout=TIMEOUT)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            each.sendall(head.encode() + text)
            sockets.append(each)
            time.sleep(0.02)
        time.sleep(1)
        assert resident_bytes(engine) - before < 2 * LIMIT
        assert infer(engine, "other", "small", x=np.ones(2, "float32")).tolist() == [2, 2]
        connection = http.client.HTTPConnection(host, int(port), timeout=TIMEOUT)
        connection.request("GET", "/v2/health/live")
        assert connection.getresponse().status == 200
        late = socket.create_connection((host, int(port)), timeout=TIMEOUT)
        late.sendall(head.encode() + text)
        answer = late.recv(1 << 12)
        assert b" 429 " in answer and b"Retry-After: 1" in answer
        late.close()
    finally:
        for each in sockets:
            each.close()
        engine.stop()


class Peer:
    """A connection whose streams have a window of `window` bytes for answers, so that with 0 it reads none, however small."""

    def __init__(self, engine, name: str | None, window: int = 0):
        host, port = engine.address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=TIMEOUT)
        self.h2 = h2_connection.H2Connection(h2_config.H2Configuration(client_side=True, header_encoding="utf-8"))
        self.h2.local_settings = h2_settings.Settings(
            client=True, initial_values={h2_settings.SettingCodes.INITIAL_WINDOW_SIZE: window, h2_settings.SettingCodes.ENABLE_PUSH: 0}
        )
        self.h2.initiate_connection()
        self.headers = [(":method", "POST"), (":scheme", "http"), (":authority", engine.address), ("te", "trailers")]
        self.headers += [("content-type", "application/grpc"), *(headers(engine, name).items() if name else ())]
        self.send()
        self.events(0.2)

    def send(self):
        self.socket.sendall(self.h2.data_to_send())

    def call(self, method: str, message: bytes | None = b"", end: bool = True) -> int:
        stream = self.h2.get_next_available_stream_id()
        self.h2.send_headers(stream, [(":path", method), *self.headers])
        if message is not None:
            self.h2.send_data(stream, len(message).to_bytes(5, "big") + message, end_stream=end)
        self.send()
        return stream

    def events(self, seconds: float) -> list:
        """What arrives in this time."""
        found, end = [], time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                received = self.socket.recv(1 << 16)
            except TimeoutError:
                break
            if not received:
                break
            found += self.h2.receive_data(received)
            self.send()
        return found


def model_request(model: str, array) -> bytes:
    from tritonclient.grpc import service_pb2

    request = service_pb2.ModelInferRequest(model_name=model)
    request.inputs.add(name="x", datatype="FP32", shape=list(array.shape))
    request.raw_input_contents.append(array.tobytes())
    return request.SerializeToString()


def test_small_answers_that_are_not_read_keep_slots_for_seconds(tmp_path):
    """Probes, which need no token, and calls of sessions: `--model-send-timeout` is not for them."""
    engine = serve(tmp_path, 600, over_tcp=True)
    try:
        probes, hello = Peer(engine, None), Peer(engine, "hostile")
        for _ in range(4):
            probes.call("/inference.GRPCInferenceService/ServerLive")
        for _ in range(16):
            hello.call("/teletensor.v1.Engine/Hello")
        time.sleep(0.5)
        with grpcclient.InferenceServerClient(engine.address) as client:
            assert client.is_server_live()  # the oldest call that waits for its peer gives way
        session = subprocess.run(
            [sys.executable, "-c", "import teletensor; print(teletensor.ones(2).sum().item())"], capture_output=True, text=True, timeout=30,
            env=client_environment(TELETENSOR_ADDRESS=engine.address, TELETENSOR_TOKEN=engine.tokens["other"]), check=False,
        )  # fmt: skip
        assert session.stdout == "2.0\n", session.stderr
        codes = {dict(each.headers).get("grpc-status") for each in probes.events(1) if isinstance(each, h2_events.TrailersReceived)}
        assert codes == {"4"}  # one gave way, and is not repeated: it has run
    finally:
        engine.stop()


def test_small_answers_that_are_not_read_and_idle_streams_have_a_share(tmp_path):
    engine = serve(tmp_path, 600, over_tcp=True)
    answers, streams = Peer(engine, "hostile"), [Peer(engine, "hostile") for _ in range(4)]
    request = model_request("small", np.ones(2, "float32"))
    one = np.ones(1, "float32")
    try:
        for peer in streams:
            # The last ones exceed their share, and are not so many that the connection is closed.
            for _ in range(16 if peer is streams[3] else PLACES // 4):
                peer.call("/inference.GRPCInferenceService/ModelStreamInfer", None)
            peer.events(0.2)
        assert infer(engine, "other", "small", x=np.ones(2, "float32")).tolist() == [2, 2]
        for _ in range(PLACES // 4 - 8):
            answers.call("/inference.GRPCInferenceService/ModelInfer", request)
        answers.events(1)
        assert infer(engine, "other", "small", x=np.ones(2, "float32")).tolist() == [2, 2]  # its first request
        assert infer(engine, "other", "large", x=one).shape == (1, COLUMNS)  # another model
        for peer in (answers, *streams):
            peer.socket.close()
        until(lambda: infer(engine, "other", "small", x=np.ones(2, "float32")).tolist() == [2, 2], engine)
    finally:
        engine.stop()


def test_a_client_that_reads_steadily_has_time(tmp_path):
    """8 MB in about 4 s, of which the send timeout alone is 1."""
    engine = serve(tmp_path, 1, over_tcp=True)
    try:
        peer = Peer(engine, "other", 65_535)
        stream = peer.call("/inference.GRPCInferenceService/ModelInfer", model_request("large", np.ones(1, "float32")))
        received, began, status = 0, time.monotonic(), None
        while status is None and time.monotonic() - began < TIMEOUT:
            for event in peer.events(0.01):
                if isinstance(event, h2_events.DataReceived):
                    received += len(event.data)
                    peer.h2.acknowledge_received_data(event.flow_controlled_length, stream)
                    time.sleep(max(0.0, received / 2e6 - (time.monotonic() - began)))
                elif isinstance(event, h2_events.TrailersReceived):
                    status = dict(event.headers)["grpc-status"]
            peer.send()
        assert status == "0" and received > 4 * COLUMNS
        assert time.monotonic() - began > 2
    finally:
        engine.stop()


def test_requests_of_one_caller_that_wait_have_a_share(tmp_path):
    """Not the memory of all."""
    delayed = tmp_path / "models/delayed"
    serving.save(lambda x: x.sum(1, keepdim=True), delayed / "1", torch.ones(2, 2000), input_names=["x"], output_names=["y"])
    config = {"max_batch_size": 65536, "dynamic_batching": {"max_queue_delay_microseconds": 60_000_000}}
    (delayed / "config.json").write_text(json.dumps(config))
    engine = serve(tmp_path, 60)
    inputs = grpc_inputs(grpcclient, x=np.ones((LIMIT // 10 // 8000, 2000), "float32"))  # a tenth of the limit
    errors = []

    def ended(result, error):
        errors.append(str(error))

    try:
        with grpcclient.InferenceServerClient(engine.address) as client:
            calls = [client.async_infer("delayed", inputs, ended, headers=headers(engine, "hostile")) for _ in range(12)]
            until(lambda: len(errors) >= 12 - 5, engine)
            assert all("requests of one caller that are in progress or not read" in each for each in errors), errors
            for _ in range(3):
                assert infer(engine, "other", "large", x=np.ones(1, "float32")).shape == (1, COLUMNS)
            assert len(errors) <= 12 - 4  # a request has a few bytes more than its values
            for call in calls:
                call.cancel()
    finally:
        engine.stop()


def test_a_watch_that_does_not_end_its_stream_is_told_so(tmp_path):
    engine = serve(tmp_path, 60, over_tcp=True)
    try:
        peer = Peer(engine, None, 65_535)
        peer.call("/grpc.health.v1.Health/Watch", b"", end=False)
        trailers = [dict(each.headers) for each in peer.events(8) if isinstance(each, h2_events.TrailersReceived)]
        assert trailers[0]["grpc-status"] == "4" and "the end of its stream" in trailers[0]["grpc-message"]
    finally:
        engine.stop()


def test_what_never_succeeds_is_not_to_be_tried_again(tmp_path):
    engine = serve(tmp_path, 60)
    try:
        values = LIMIT // 25 // 2 + 10_000  # "1," in JSON counts 25 times
        body = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [values], "data": [1] * values}]}, separators=(",", ":"))
        connection = http.client.HTTPConnection(engine.http, timeout=TIMEOUT)
        connection.request("POST", "/v2/models/small/infer", body, {"Authorization": f"Bearer {engine.tokens['other']}"})
        response = connection.getresponse()
        assert response.status == 413 and response.getheader("Retry-After") is None
        assert "try again" not in response.read().decode()
    finally:
        engine.stop()


@pytest.mark.parametrize("limit", [2**63, 2**64 - 1])
def test_huge_limits_are_none(tmp_path, limit):
    engine = serve(tmp_path, 60, limit)
    try:
        connection = http.client.HTTPConnection(engine.http, timeout=TIMEOUT)
        body = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "data": [1, 2]}]})
        connection.request("POST", "/v2/models/small/infer", body, {"Authorization": f"Bearer {engine.tokens['other']}"})
        assert connection.getresponse().status == 200
    finally:
        engine.stop()
