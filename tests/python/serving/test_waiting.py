"""Requests that wait, for a sequence or in a queue, leave places for those of other models."""

from __future__ import annotations

import contextlib
import http.client
import json
import select
import time

import numpy as np
import pytest

import teletensor as torch
from teletensor import serving
from tests.conftest import IN_PROCESS
from tests.python.serving.served import TIMEOUT, Served, grpc_inputs

grpcclient = pytest.importorskip("tritonclient.grpc")
pytestmark = pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")

MODELS = ("a", "b", "c", "d")  # with sequences
WAITING = 16  # starts per model and caller (server/serving/model_version.h)
PLACES = 512  # of one address over REST (server/serving/inference_server.h)
MINUTE = 60_000_000


@pytest.fixture(scope="module")
def served(_engine, tmp_path_factory):
    folder = tmp_path_factory.mktemp("waiting")
    models = folder / "models"
    state = {"input_name": "total", "output_name": "total_out", "data_type": "TYPE_FP32", "dims": [2]}
    batching = {"max_sequence_idle_microseconds": 60 * MINUTE, "state": [state], "oldest": {"max_candidate_sequences": 1}}
    names = {"input_names": ["x", "total"], "output_names": ["y", "total_out"]}
    for name in MODELS:
        serving.save(lambda x, total: (total + x, total + x + 0), models / name / "1", [torch.ones(2, 2)] * 2, **names)
        (models / name / "config.json").write_text(
            json.dumps({"max_batch_size": 4, "output": [{"name": "y"}], "sequence_batching": batching})
        )
    for name, delay in (("plain", 0), ("delayed", MINUTE)):
        serving.save(lambda x: x + 1, models / name / "1", torch.ones(2, 2), input_names=["x"], output_names=["y"])
        config = {"max_batch_size": 1024, "dynamic_batching": {"max_queue_delay_microseconds": delay}}
        (models / name / "config.json").write_text(json.dumps(config))
    server = Served(folder, models)
    yield server
    server.stop()


def post(served, model, parameters=None) -> http.client.HTTPConnection:
    """Sends a request and does not wait for its answer."""
    connection = http.client.HTTPConnection(served.http_address, timeout=TIMEOUT)
    body = {"parameters": parameters or {}, "inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}
    connection.request("POST", f"/v2/models/{model}/infer", json.dumps(body))
    return connection


def others_answer(served) -> None:
    """Another model, over both protocols, and probes, in less than the time for which requests wait."""
    start = time.monotonic()
    for _ in range(8):
        response = post(served, "plain").getresponse()
        assert response.status == 200 and json.loads(response.read())["outputs"][0]["data"] == [2, 3]
        x = np.ones((1, 2), "float32")
        assert served.grpc.infer("plain", grpc_inputs(grpcclient, x=x), client_timeout=TIMEOUT).as_numpy("y").tolist() == [[2, 2]]
        connection = http.client.HTTPConnection(served.http_address, timeout=TIMEOUT)
        connection.request("GET", "/v2/health/ready")
        assert connection.getresponse().status == 200
        assert served.grpc.is_server_live()
    assert time.monotonic() - start < 20


def test_starts_on_four_models_leave_workers_to_others(served):
    for name in MODELS:
        assert post(served, name, {"sequence_id": 1, "sequence_start": True}).getresponse().status == 200
    waiting = [post(served, name, {"sequence_id": 2 + i, "sequence_start": True}) for i in range(WAITING) for name in MODELS]
    try:
        time.sleep(0.5)
        others_answer(served)
        for name in MODELS:  # they do wait: the place of each model is for one of them
            assert post(served, name, {"sequence_id": 1, "sequence_end": True}).getresponse().status == 200
        ready, _, _ = select.select([each.sock for each in waiting], [], [], 10)
        assert ready and next(each for each in waiting if each.sock is ready[0]).getresponse().status == 200
    finally:
        for connection in waiting:
            connection.close()


def test_the_queue_of_a_model_has_its_share(served):
    """The share is three quarters of the places of one address. Others are refused at once, and may try again."""
    waiting = [post(served, "delayed") for _ in range(PLACES * 3 // 4)]
    try:
        deadline = time.monotonic() + TIMEOUT
        response = None
        while response is None:  # the first ones may come before all of those above have their places, and wait too
            assert time.monotonic() < deadline
            late = post(served, "delayed")
            late.sock.settimeout(1)
            with contextlib.suppress(TimeoutError):
                response = late.getresponse()
            waiting.append(late)
        assert response.status == 503
        assert int(response.headers["Retry-After"]) > 0
        others_answer(served)
    finally:
        for connection in waiting:
            connection.close()
    deadline = time.monotonic() + TIMEOUT  # those that have gone leave their places
    while True:
        assert time.monotonic() < deadline
        late = post(served, "delayed")
        late.sock.settimeout(1)
        with contextlib.suppress(TimeoutError):
            assert late.getresponse().status == 503
            late.close()
            continue
        late.close()
        return
