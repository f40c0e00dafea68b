"""Compressed requests and responses: those of tritonclient over REST and gRPC, and hostile ones."""

from __future__ import annotations

import gzip
import http.client
import json
import queue
import threading
import zlib

import numpy as np
import pytest

import teletensor as torch
from teletensor import serving
from tests.conftest import IN_PROCESS
from tests.python.serving.served import TIMEOUT, Served, grpc_inputs

grpcclient = pytest.importorskip("tritonclient.grpc")
httpclient = pytest.importorskip("tritonclient.http")
pytestmark = pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")

LIMIT = 1 << 20  # bytes of a request


@pytest.fixture(scope="module")
def served(_engine, tmp_path_factory):
    folder = tmp_path_factory.mktemp("compression")
    serving.save(lambda x: x * 2, folder / "models/double/1", torch.ones(2, 4), output_names=["y"])
    server = Served(folder, folder / "models", "--model-request-limit", str(LIMIT), "--model-inflight-limit", str(4 * LIMIT))
    yield server
    server.stop()


def post(served, body: bytes, path="/v2/models/double/infer", **headers):
    connection = http.client.HTTPConnection(served.http_address, timeout=30)
    connection.request("POST", path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    response = connection.getresponse()
    return response.status, dict(response.getheaders()), response.read()


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
    [("gzip, deflate", "gzip"), ("deflate;q=1, gzip;q=0.5", "deflate"), ("br, *", None), ("gzip;q=0", None), ("gzip;q=x", None)],
)
def test_accepted_codings(served, accepted, coding):
    status, headers, _ = post(served, request_of(np.ones((2, 4), "float32")), Accept_Encoding=accepted)
    assert status == 200 and headers.get("Content-Encoding") == coding


def test_errors_and_other_calls_accept_codings(served):
    status, headers, body = post(served, b"{}", Accept_Encoding="gzip")
    assert status == 400 and "Content-Encoding" not in headers and b"error" in body
    status, _, body = post(served, gzip.compress(b'{"ready": true}'), "/v2/repository/index", Content_Encoding="gzip")
    assert status == 200 and json.loads(body)[0]["name"] == "double"


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
    body = gzip.compress(b" " * (LIMIT - 10) + b"{}")
    found = []

    def send():
        for _ in range(3):
            found.append(post(served, body, Content_Encoding="gzip")[0])

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found) <= {400, 429} and 429 in found  # a JSON text of this size counts 25 times
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
