"""Answers that clients do not read: they keep memory and a place among the calls for a limited time, and only of their own share."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import time

import numpy as np
import pytest

import teletensor as torch
from teletensor import serving
from tests.conftest import IN_PROCESS
from tests.python.distributed.ranks import free_port
from tests.python.serving.served import TIMEOUT, grpc_inputs
from tests.python.session.test_principals import Engine, user

grpc = pytest.importorskip("grpc")
grpcclient = pytest.importorskip("tritonclient.grpc")
pytestmark = pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")

COLUMNS = 2_000_000  # 8 MB of an answer, and as much of its message
LIMIT = 160_000_000
CALLS = 16


def serve(folder, send_timeout: int) -> Engine:
    (folder / "models").mkdir()
    large = lambda x: x.reshape(-1, 1) + torch.zeros(1, COLUMNS)  # noqa: E731
    serving.save(large, folder / "models/large/1", torch.ones(1), output_names=["y"])
    serving.save(lambda x: x + 1, folder / "models/small/1", torch.ones(2), output_names=["y"])
    http_address = f"127.0.0.1:{free_port()}"
    engine = Engine(
        folder, "--models", str(folder / "models"), "--model-poll", "0", "--http", http_address,
        "--model-inflight-limit", str(LIMIT), "--model-send-timeout", str(send_timeout),
    )  # fmt: skip
    engine.http = http_address
    engine.tokens = {name: user(engine.file, "add", name, "--role", "user") for name in ("hostile", "other")}
    engine.start()
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
                return "that one caller has not read" in str(error)

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
        time.sleep(5)  # more than the time for which they may be unread
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
