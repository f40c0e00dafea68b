"""Compressed requests and responses: those of tritonclient over REST and gRPC, and hostile ones."""

from __future__ import annotations

import gzip
import http.client
import json
import queue
import socket
import threading
import zlib

import numpy as np
import pytest

import teletensor as torch
from teletensor import serving
from tests.conftest import IN_PROCESS
from tests.python.serving.served import TIMEOUT, Served, grpc_inputs

grpc = pytest.importorskip("grpc")
grpcclient = pytest.importorskip("tritonclient.grpc")
httpclient = pytest.importorskip("tritonclient.http")
service_pb2, service_pb2_grpc = grpcclient.service_pb2, grpcclient.service_pb2_grpc
pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]

LIMIT = 1 << 20  # bytes of a request
INFLIGHT = 16 * LIMIT  # of all


@pytest.fixture(scope="module")
def served(_engine, tmp_path_factory):
    folder = tmp_path_factory.mktemp("compression")
    serving.save(lambda x: x * 2, folder / "models/double/1", torch.ones(2, 4), output_names=["y"])

    def count(x, calls):
        calls.add_(x)
        return calls.repeat((INFLIGHT - 8192) // 4)  # there is room for the answer, but not for a compressed one beside it

    serving.save(count, folder / "models/count/1", torch.ones(1), states={"calls": torch.zeros(1)}, output_names=["y"])

    def several(x, calls):
        calls.add_(1)
        return calls + 0, calls.repeat(LIMIT // 2), calls / (x - 1)

    names = {"output_names": ["y", "large", "quotient"]}
    serving.save(several, folder / "models/several/1", torch.zeros(1), states={"calls": torch.zeros(1)}, **names)
    server = Served(folder, folder / "models", "--model-request-limit", str(LIMIT), "--model-inflight-limit", str(INFLIGHT))
    yield server
    server.stop()


def send(served, method: str, path: str, body: bytes, *headers: tuple[str, str]):
    connection = http.client.HTTPConnection(served.http_address, timeout=30)
    connection.putrequest(method, path, skip_accept_encoding=True)
    for name, value in (*headers, *([("Content-Length", str(len(body)))] if body or method == "POST" else [])):
        connection.putheader(name, value)
    connection.endheaders(body)
    response = connection.getresponse()
    return response.status, dict(response.getheaders()), response.read()


def post(served, body: bytes, path="/v2/models/double/infer", **headers):
    return send(served, "POST", path, body, *((name.replace("_", "-"), value) for name, value in headers.items()))


def request_of(x: np.ndarray) -> bytes:
    return json.dumps({"inputs": [{"name": "x", "shape": list(x.shape), "datatype": "FP32", "data": x.tolist()}]}).encode()


@pytest.mark.parametrize("request_algorithm", [None, "gzip", "deflate"])
@pytest.mark.parametrize("response_algorithm", [None, "gzip", "deflate"])
@pytest.mark.parametrize("is_binary", [True, False])
def test_tritonclient(served, request_algorithm, response_algorithm, is_binary):
    x = np.tile(np.arange(4, dtype="float32"), (500, 1))
    inputs = grpc_inputs(httpclient, x=x)
    inputs[0].set_data_from_numpy(x, binary_data=is_binary)
    outputs = [httpclient.InferRequestedOutput("y", binary_data=is_binary)]
    found = served.http.infer(
        "double", inputs, outputs=outputs, request_compression_algorithm=request_algorithm,
        response_compression_algorithm=response_algorithm,
    )  # fmt: skip
    np.testing.assert_array_equal(found.as_numpy("y"), 2 * x)


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_headers(served, coding):
    x = np.ones((300, 4), "float32")
    text = json.dumps({
        "inputs": [{"name": "x", "shape": [300, 4], "datatype": "FP32", "parameters": {"binary_data_size": x.nbytes}}],
        "outputs": [{"name": "y", "parameters": {"binary_data": True}}],
    }).encode()  # fmt: skip
    body = {"gzip": gzip, "deflate": zlib}[coding].compress(text + x.tobytes())
    status, headers, answer = post(
        served, body, Content_Encoding=coding, Inference_Header_Content_Length=str(len(text)), Accept_Encoding=coding
    )
    assert status == 200 and headers["Content-Encoding"] == coding and int(headers["Content-Length"]) == len(answer) < 500
    plain = {"gzip": gzip, "deflate": zlib}[coding].decompress(answer)
    size = int(headers["Inference-Header-Content-Length"])  # of the JSON before it was compressed
    assert json.loads(plain[:size])["outputs"][0]["shape"] == [300, 4]
    np.testing.assert_array_equal(np.frombuffer(plain[size:], "float32"), 2 * np.ones(1200, "float32"))


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip, deflate", "gzip"), ("deflate;q=1, gzip;q=0.5", "deflate"), ("br, *", None), ("gzip;q=0", None), ("gzip;q=x", None),
        ("identity;q=1, gzip;q=0.1", None), ("identity, gzip;q=0.9", None), ("gzip, identity;q=0.5", "gzip"),
        ("gzip;q=0.1, identity;q=0", "gzip"), ("gzip;q=0.5, ,", "gzip"),
    ],
)  # fmt: skip
def test_accepted_codings(served, accepted, coding):
    status, headers, _ = post(served, request_of(np.ones((2, 4), "float32")), Accept_Encoding=accepted)
    assert status == 200 and headers.get("Content-Encoding") == coding


def test_several_headers_of_accepted_codings_are_one_list(served):
    def coding(*values):
        headers = [("Accept-Encoding", value) for value in values]
        found = send(served, "POST", "/v2/models/double/infer", request_of(np.ones((2, 4), "float32")), *headers)
        assert found[0] == 200
        return found[1].get("Content-Encoding")

    assert coding("deflate", "br") == "deflate"
    assert coding("gzip;q=0.5", "deflate;q=0.8") == coding("deflate;q=0.8", "gzip;q=0.5") == "deflate"
    assert coding("identity", "gzip;q=0.1") is None


def test_requests_without_a_body_may_name_a_coding(served):
    for path in ("/v2/health/live", "/v2/models/double", "/v2"):
        for coding in ("gzip", "deflate", "br"):
            assert send(served, "GET", path, b"", ("Content-Encoding", coding))[0] == 200


def test_an_answer_that_is_too_large_to_be_compressed_is_sent_as_it_is(served):
    """The inference has been done: a client that is refused would send it again, and a sequence would count it twice."""
    for i in range(3):
        body = {"parameters": {"sequence_id": 9, "sequence_start": i == 0, "binary_data_output": True}}
        body["inputs"] = [{"name": "x", "shape": [1], "datatype": "FP32", "data": [1]}]
        status, headers, answer = post(served, json.dumps(body).encode(), "/v2/models/count/infer", Accept_Encoding="gzip")
        assert status == 200 and "Content-Encoding" not in headers
        values = np.frombuffer(answer[int(headers["Inference-Header-Content-Length"]) :], "float32")
        assert values.nbytes == INFLIGHT - 8192 and (values == i + 1).all()


def test_errors_and_other_calls_accept_codings(served):
    status, headers, body = post(served, b"{}", Accept_Encoding="gzip")
    assert status == 400 and "Content-Encoding" not in headers and b"error" in body
    status, _, body = post(served, gzip.compress(b'{"ready": true}'), "/v2/repository/index", Content_Encoding="gzip")
    assert status == 200 and {"name": "double", "version": "1", "state": "READY"} in json.loads(body)


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        (lambda body: body[:-9], 400, "an incomplete one"),
        (lambda body: body + b"more", 400, "further bytes after its end"),
        (lambda body: body[:12] + bytes([body[12] ^ 255]) + body[13:], 400, "damaged bytes"),
        (lambda body: b"", 400, "an incomplete one"),
        (lambda body: gzip.decompress(body), 400, "damaged bytes"),
        (lambda body: gzip.compress(body), 400, "JSON"),  # compressed twice
        (lambda body: gzip.compress(gzip.decompress(body) + b" " * LIMIT), 413, "at most 1048576 bytes once it is decompressed"),
        (lambda body: gzip.compress(b"\0" * (300 << 20)), 413, "at most 1048576 bytes once it is decompressed"),
    ],
)  # fmt: skip
def test_hostile_bodies_are_refused(served, change, status, message):
    body = change(gzip.compress(request_of(np.ones((2, 4), "float32"))))
    found, _, answer = post(served, body, Content_Encoding="gzip")
    assert found == status and message in json.loads(answer)["error"]


@pytest.mark.parametrize("coding", ["br", "gzip, gzip", "compress"])
def test_other_codings_are_refused(served, coding):
    status, _, answer = post(served, b"x", Content_Encoding=coding)
    assert status == 415 and "gzip, deflate or identity" in json.loads(answer)["error"]


def test_what_bodies_expand_to_is_charged_while_they_are_in_progress(served):
    """Many bombs at a time meet the limit of all requests in progress, and other requests work afterwards."""
    assert post(served, gzip.compress(b" " * (LIMIT - 10) + b"{}"), Content_Encoding="gzip")[0] == 413  # JSON counts 25 times
    body = gzip.compress(b" " * (LIMIT // 2) + b"{}")
    found = []

    def send():
        for _ in range(3):
            found.append(post(served, body, Content_Encoding="gzip")[0])

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 24 and set(found) <= {400, 429}  # there is room for one of them at a time
    assert post(served, request_of(np.ones((2, 4), "float32")))[0] == 200


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_grpc(served, algorithm):
    x = np.tile(np.arange(4, dtype="float32"), (3000, 1))
    found = served.grpc.infer("double", grpc_inputs(grpcclient, x=x), compression_algorithm=algorithm)
    np.testing.assert_array_equal(found.as_numpy("y"), 2 * x)
    answers: queue.Queue = queue.Queue()
    with served.new_grpc() as client:
        client.start_stream(lambda result, error: answers.put((result, error)), compression_algorithm=algorithm)
        for _ in range(2):
            client.async_stream_infer("double", grpc_inputs(grpcclient, x=x))
        for _ in range(2):
            result, error = answers.get(timeout=TIMEOUT)
            assert error is None
            np.testing.assert_array_equal(result.as_numpy("y"), 2 * x)
        client.stop_stream()


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_large_contents_of_small_grpc_requests_are_refused(served, algorithm):
    zeros = np.zeros((5_000_000, 4), "float32")
    with pytest.raises(grpcclient.InferenceServerException, match="at most 1048576 bytes once it is decompressed"):
        served.grpc.infer("double", grpc_inputs(grpcclient, x=zeros), compression_algorithm=algorithm)
    x = np.ones((2, 4), "float32")
    np.testing.assert_array_equal(served.grpc.infer("double", grpc_inputs(grpcclient, x=x)).as_numpy("y"), 2 * x)


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_other_grpc_calls(served, compression):
    """Channels with compression compress the requests of all calls."""
    with grpc.insecure_channel(served.address, compression=compression) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        assert stub.ServerLive(service_pb2.ServerLiveRequest()).live
        assert stub.ModelMetadata(service_pb2.ModelMetadataRequest(name="double")).name == "double"
        with pytest.raises(grpc.RpcError, match="expected the name of a model, got 'ddd") as error:
            stub.ModelMetadata(service_pb2.ModelMetadataRequest(name="d" * 500))
        assert error.value.code() == grpc.StatusCode.NOT_FOUND
        load = service_pb2.RepositoryModelLoadRequest(model_name="double")
        load.parameters["config"].string_param = '{"max_batch_size": 7' + " " * 5000 + "}"
        stub.RepositoryModelLoad(load)
        assert stub.ModelConfig(service_pb2.ModelConfigRequest(name="double")).config.max_batch_size == 7
        with pytest.raises(grpc.RpcError, match="at most 65536 bytes once it is decompressed"):
            stub.ModelMetadata(service_pb2.ModelMetadataRequest(name="d" * 1_000_000))
        stub.RepositoryModelLoad(service_pb2.RepositoryModelLoadRequest(model_name="double"))


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_a_compressed_grpc_request_of_many_packets(served, algorithm):
    x = np.random.default_rng(0).integers(0, 255, (40_000, 4)).astype("float32")
    found = served.grpc.infer("double", grpc_inputs(grpcclient, x=x), compression_algorithm=algorithm)
    np.testing.assert_array_equal(found.as_numpy("y"), 2 * x)


class Counting:
    """A proxy of one address that counts the bytes that its server sends."""

    def __init__(self, address: str):
        self.to = address.removeprefix("unix:")
        self.received = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.to)
            threading.Thread(target=self.copy, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self.copy, args=(server, client, True), daemon=True).start()

    def copy(self, source, target, counts):
        while True:
            try:
                data = source.recv(1 << 16)
                self.received += len(data) if counts else 0
                target.sendall(data)
            except OSError:
                data = b""
            if not data:
                target.close()
                return


@pytest.fixture
def counting(served):
    proxy = Counting(served.address)
    yield proxy
    proxy.listener.close()


@pytest.mark.parametrize("algorithm", [None, "gzip", "deflate"])
@pytest.mark.parametrize("streams", [False, True])
def test_grpc_answers_are_compressed_as_the_requests_are(counting, algorithm, streams):
    x = np.tile(np.arange(4, dtype="float32"), (10_000, 1))
    answers: queue.Queue = queue.Queue()
    with grpcclient.InferenceServerClient(counting.address) as client:
        if streams:
            client.start_stream(lambda result, error: answers.put((result, error)), compression_algorithm=algorithm)
        for _ in range(3):
            if streams:
                client.async_stream_infer("double", grpc_inputs(grpcclient, x=x))
                found, error = answers.get(timeout=TIMEOUT)
                assert error is None
            else:
                found = client.infer("double", grpc_inputs(grpcclient, x=x), compression_algorithm=algorithm)
            np.testing.assert_array_equal(found.as_numpy("y"), 2 * x)
    assert counting.received >= 3 * x.nbytes if algorithm is None else 0 < counting.received < x.nbytes


@pytest.mark.parametrize("accepted", ["gzip", "deflate;q=0.5, identity;q=0.1", "br", "identity, gzip;q=0.5"])
def test_metadata_can_accept_codings(counting, accepted):
    """Requests that are not compressed: small ones, for example."""
    x = np.ones((10_000, 4), "float32")
    with grpcclient.InferenceServerClient(counting.address) as client:
        found = client.infer("double", grpc_inputs(grpcclient, x=x), headers={"accept-encoding": accepted})
    np.testing.assert_array_equal(found.as_numpy("y"), 2 * x)
    assert counting.received >= x.nbytes if accepted in {"br", "identity, gzip;q=0.5"} else counting.received < 10_000


def test_grpc_answers_that_compression_does_not_make_smaller_are_sent_as_they_are(counting):
    x = np.random.default_rng(0).standard_normal((10_000, 4)).astype("float32")
    with grpcclient.InferenceServerClient(counting.address) as client:
        for headers in ({"accept-encoding": "gzip"}, None):
            found = client.infer("double", grpc_inputs(grpcclient, x=x), headers=headers, compression_algorithm=None if headers else "gzip")
            np.testing.assert_array_equal(found.as_numpy("y"), 2 * x)
    with grpcclient.InferenceServerClient(counting.address) as client, pytest.raises(Exception, match="expected the name of a model"):
        client.infer("missing", grpc_inputs(grpcclient, x=x), compression_algorithm="gzip")


def test_other_grpc_answers_are_compressed_as_the_requests_are(counting):
    with grpc.insecure_channel(counting.address) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        plain = stub.ModelConfig(service_pb2.ModelConfigRequest(name="double"))
        load = service_pb2.RepositoryModelLoadRequest(model_name="double")
        load.parameters["config"].string_param = json.dumps({"parameters": {"principals": {"string_value": "anybody" + "," * 50_000}}})
        stub.RepositoryModelLoad(load)
        counting.received = 0
        large = stub.ModelConfig(service_pb2.ModelConfigRequest(name="double"), metadata=[("accept-encoding", "gzip")])
        assert large.config.parameters["principals"].string_value.count(",") == 50_000 and counting.received < 10_000
        stub.RepositoryModelLoad(service_pb2.RepositoryModelLoadRequest(model_name="double"))
        assert stub.ModelConfig(service_pb2.ModelConfigRequest(name="double")) == plain


def sequence_body(start: bool, value: float, *outputs: dict) -> bytes:
    body = {"parameters": {"sequence_id": 31, "sequence_start": start}, "outputs": list(outputs)}
    body["inputs"] = [{"name": "x", "shape": [1], "datatype": "FP32", "data": [value]}]
    return json.dumps(body).encode()


def test_an_answer_that_does_not_fit_leaves_the_state_as_it_was(served):
    """The number of calls of a sequence is its state: a request that is refused has not been counted."""

    def calls(start: bool, value: float = 0.0, *outputs: dict):
        status, _, answer = post(served, sequence_body(start, value, *(outputs or [{"name": "y"}])), "/v2/models/several/infer")
        return status, json.loads(answer)["outputs"][0]["data"][0] if status == 200 else json.loads(answer)["error"]

    assert calls(True) == (200, 1)
    # As JSON, 2 MB take 25 MB: more than the limit of all requests, so that nobody should try again.
    status, message = calls(False, 0.0, {"name": "large"})
    assert status == 413 and "expected an answer that takes at most 16777216 bytes" in message
    status, message = calls(False, 1.0, {"name": "quotient"})  # infinity, which is known after the run
    assert status == 400 and "JSON lacks" in message
    assert calls(False) == (200, 2)

    def grpc_calls(*outputs: str, value: float = 0.0):
        wanted = [grpcclient.InferRequestedOutput(name) for name in outputs]
        return served.grpc.infer("several", grpc_inputs(grpcclient, x=np.full(1, value, "float32")), outputs=wanted, sequence_id=31)

    with pytest.raises(grpcclient.InferenceServerException, match="an answer of at most 1048576 bytes, got one of 2097152") as error:
        grpc_calls("large")
    assert error.value.status() == "StatusCode.OUT_OF_RANGE"
    assert grpc_calls("y", "quotient", value=1.0).as_numpy("y") == 3
    assert calls(False) == (200, 4)
