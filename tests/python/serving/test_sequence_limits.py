"""Sequences of hostile or failing clients: starts that wait, requests that fail, streams that are not read."""

from __future__ import annotations

import http.client
import json
import select
import threading
import time

import numpy as np
import pytest

import teletensor as torch
from teletensor import serving
from tests.conftest import IN_PROCESS
from tests.python.serving.served import TIMEOUT, Served, grpc_inputs

grpcclient = pytest.importorskip("tritonclient.grpc")
httpclient = pytest.importorskip("tritonclient.http")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]

MAX_WAITING = 16  # starts of one caller (server/serving/model_version.h)
STATE = {"input_name": "total", "output_name": "total_out", "data_type": "TYPE_FP32", "dims": [2]}
LIMITS = {"--model-inflight-limit": "200MB", "--model-send-timeout": "1"}


def config(**strategy) -> str:
    batching = {"max_sequence_idle_microseconds": 3_600_000_000, "state": [STATE], **strategy}
    return json.dumps({"max_batch_size": 4, "output": [{"name": "y"}], "sequence_batching": batching})


def serve(folder) -> Served:
    models = folder / "models"

    def total(x, total):
        whole = total + x
        return whole, whole + 0

    for name, strategy in {"one": {"oldest": {"max_candidate_sequences": 1}}, "other": {"oldest": {"max_candidate_sequences": 1}},
                           "many": {"oldest": {}}, "plain": {}}.items():  # fmt: skip
        names = {"input_names": ["x", "total"], "output_names": ["y", "total_out"]}
        serving.save(total, models / name / "1", [torch.ones(2, 2)] * 2, **names)
        (models / name / "config.json").write_text(config(**strategy))
    serving.save(lambda x: x.reshape(-1, 1) + torch.zeros(1, 4_000_000), models / "large/1", torch.ones(1), output_names=["y"])
    return Served(folder, models, *(part for option in LIMITS.items() for part in option))


@pytest.fixture(scope="module")
def served(_engine, tmp_path_factory):
    server = serve(tmp_path_factory.mktemp("limits"))
    yield server
    server.stop()


def ask(client, model, sequence, x, module=grpcclient, **parameters):
    inputs = grpc_inputs(module, x=np.asarray(x, "float32").reshape(-1, 2))
    return client.infer(model, inputs, sequence_id=sequence, **parameters).as_numpy("y").tolist()


def post(served, model, sequence) -> http.client.HTTPConnection:
    """Sends a request with sequence_start and does not wait for its answer."""
    connection = http.client.HTTPConnection(served.http_address, timeout=TIMEOUT)
    body = {"parameters": {"sequence_id": sequence, "sequence_start": True}}
    body["inputs"] = [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]
    connection.request("POST", f"/v2/models/{model}/infer", json.dumps(body))
    return connection


def refusal(served, model, sequence, seconds=0.3) -> str:
    """The error of a start that waits for at most some time."""
    with pytest.raises(Exception) as error:
        ask(served.grpc, model, sequence, [1, 1], sequence_start=True, client_timeout=seconds)
    return str(error.value)


def until(condition) -> None:
    end = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < end, "the condition does not become true"
        time.sleep(0.01)


def test_starts_that_wait_are_limited_and_leave_with_their_connections(served):
    assert ask(served.grpc, "one", 1, [1, 1], sequence_start=True) == [[1, 1]]
    waiting = {c.sock: c for c in (post(served, "one", 100 + i) for i in range(MAX_WAITING + 1))}
    (refused,), _, _ = select.select(list(waiting), [], [], TIMEOUT)  # all others wait by then
    response = waiting.pop(refused).getresponse()
    assert response.status == 429 and b"try again later" in response.read()
    assert "at most 16 requests of one caller that wait" in refusal(served, "one", 2, TIMEOUT)
    assert ask(served.http, "plain", 1, [1, 1], httpclient, sequence_start=True, sequence_end=True) == [[1, 1]]
    for connection in waiting.values():
        connection.close()
    until(lambda: "eadline" in refusal(served, "one", 2))  # it waits again
    late = post(served, "one", 4)
    time.sleep(0.2)
    assert ask(served.grpc, "one", 1, [1, 1], sequence_end=True) == [[2, 2]]
    response = late.getresponse()
    assert response.status == 200 and json.loads(response.read())["outputs"][0]["data"] == [1, 2]
    assert ask(served.grpc, "one", 4, [1, 1], sequence_end=True) == [[2, 3]]


def test_a_start_waits_for_its_timeout_at_most(served):
    assert ask(served.grpc, "one", 1, [1, 1], sequence_start=True) == [[1, 1]]
    with pytest.raises(Exception, match="time has passed while it waited for its sequence"):
        ask(served.grpc, "one", 2, [1, 1], sequence_start=True, timeout=200_000)
    assert ask(served.grpc, "one", 1, [1, 1], sequence_end=True) == [[2, 2]]


def test_an_unload_ends_starts_that_wait(served):
    assert ask(served.grpc, "other", 1, [1, 1], sequence_start=True) == [[1, 1]]
    errors = []

    def start(client):
        try:
            ask(client, "other", 2, [1, 1], sequence_start=True)
        except Exception as error:  # noqa: BLE001
            errors.append(str(error))

    threads = [threading.Thread(target=start, args=(served.new_grpc(),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    waiting = post(served, "other", 3)
    time.sleep(0.3)
    served.grpc.unload_model("other")
    assert waiting.getresponse().status == 503
    for thread in threads:
        thread.join(TIMEOUT)
    assert len(errors) == 2 and all("the model is being unloaded" in error for error in errors)
    served.grpc.load_model("other")


def test_the_daemon_stops_while_starts_wait(tmp_path):
    server = serve(tmp_path)
    assert ask(server.grpc, "one", 1, [1, 1], sequence_start=True) == [[1, 1]]
    waiting = [post(server, "one", 2 + i) for i in range(3)]
    time.sleep(0.3)
    began = time.monotonic()
    server.stop()
    assert time.monotonic() - began < 15
    for connection in waiting:
        try:
            assert connection.getresponse().status == 503
        except (http.client.HTTPException, OSError):
            pass  # the connection ended with the daemon


@pytest.mark.parametrize("model", ["many", "plain"])
@pytest.mark.parametrize("parameters", [{}, {"sequence_end": True}, {"sequence_start": True}])
def test_requests_that_fail_change_no_sequence(served, model, parameters):
    def go_on(total):
        assert ask(served.grpc, model, 7, [1, 1]) == [[total, total]]

    assert ask(served.grpc, model, 7, [1, 1], sequence_start=True) == [[1, 1]]
    json_output = [httpclient.InferRequestedOutput("y", binary_data=False)]
    with pytest.raises(Exception, match="infinity, which JSON lacks"):
        ask(served.http, model, 7, [np.inf, 1], httpclient, outputs=json_output, **parameters)
    go_on(2)
    if "sequence_start" not in parameters:  # others may have another number of rows
        with pytest.raises(Exception, match="expected 1 rows, as the sequence has, got 2"):
            ask(served.grpc, model, 7, [[1, 1], [1, 1]], **parameters)
    go_on(3)
    inputs = grpc_inputs(grpcclient, x=np.ones((1, 3), "float32"))
    with pytest.raises(Exception, match="INVALID_ARGUMENT"):
        served.grpc.infer(model, inputs, sequence_id=7, **parameters)
    go_on(4)
    assert ask(served.grpc, model, 7, [5, 5], sequence_start=True) == [[5, 5]]
    assert ask(served.grpc, model, 7, [1, 1], sequence_end=True) == [[6, 6]]
    with pytest.raises(Exception, match="expected a request with sequence_start"):
        ask(served.grpc, model, 7, [1, 1])


@pytest.mark.parametrize("module", [grpcclient, httpclient])
def test_names_of_sequences_are_limited(served, module):
    client = served.grpc if module is grpcclient else served.http
    for name in ("a" * 1024, "ä" * 512):
        assert ask(client, "many", name, [1, 1], module, sequence_start=True, sequence_end=True) == [[1, 1]]
    with pytest.raises(Exception, match="sequence_id of at most 1024 bytes, got 1025"):
        ask(client, "many", "a" * 1025, [1, 1], module, sequence_start=True)


def test_streams_that_are_not_read_end(served):
    """Each would keep a part of --model-inflight-limit: 16 MB of an answer and its message."""
    grpc = pytest.importorskip("grpc")
    from tritonclient.grpc import service_pb2, service_pb2_grpc

    request = service_pb2.ModelInferRequest(model_name="large")
    request.inputs.add(name="x", datatype="FP32", shape=[1])
    request.raw_input_contents.append(np.ones(1, "float32").tobytes())
    done = threading.Event()

    def requests():
        yield from [request] * 4
        done.wait()

    channels, calls = [], []
    for _ in range(8):
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
        channels.append(grpc.insecure_channel(served.address, options=options))
        calls.append(service_pb2_grpc.GRPCInferenceServiceStub(channels[-1]).ModelStreamInfer(requests()))
    x = np.ones(1, "float32")

    def answered():
        try:
            return served.grpc.infer("large", grpc_inputs(grpcclient, x=x)).as_numpy("y").shape == (1, 4_000_000)
        except Exception as error:  # noqa: BLE001
            assert "RESOURCE_EXHAUSTED" in str(error)
            return False

    before = None  # the requests of all streams have been computed or refused once their number stays the same
    while before != (before := served.http.get_inference_statistics("large")):
        time.sleep(5)
    time.sleep(1 + 16e6 / (256 << 10) + 2)  # the send timeout, and a second for each 256 KiB
    until(answered)
    try:
        done.set()
        for call in calls:  # those for which there was no room have got errors, and end
            try:
                list(call)
            except grpc.RpcError as error:
                assert "a response was not read" in error.details()
        codes = {call.code() for call in calls}
        assert grpc.StatusCode.DEADLINE_EXCEEDED in codes <= {grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.OK}
    finally:
        done.set()
        for channel in channels:
            channel.close()
