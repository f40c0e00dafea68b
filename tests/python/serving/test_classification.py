"""The classification extension: the largest values of an output as strings, of tritonclient's `class_count`."""

from __future__ import annotations

import http.client
import json

import numpy as np
import pytest

import teletensor as torch
from teletensor import serving
from tests.conftest import IN_PROCESS
from tests.python.serving.served import Served, grpc_inputs

grpcclient = pytest.importorskip("tritonclient.grpc")
httpclient = pytest.importorskip("tritonclient.http")
pytestmark = pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")

LABELS = ["cat", "dog", "great auk", "", "fünf"]


@pytest.fixture(scope="module")
def served(_engine, tmp_path_factory):
    folder = tmp_path_factory.mktemp("classification")
    models = folder / "models"
    serving.save(lambda x: (x, x * 2), models / "batched/1", torch.ones(2, 6), output_names=["y", "z"])
    serving.save(lambda x: x + 0, models / "whole/1", torch.ones(2, 3), output_names=["y"], dynamic_batch=False)
    serving.save(lambda x: x + 0, models / "integers/1", torch.ones(4, dtype=torch.int64), output_names=["y"])
    serving.save(lambda x: x > 0, models / "flags/1", torch.ones(4), output_names=["y"])
    serving.save(lambda x: x * 1, models / "double/1", torch.ones(3, dtype=torch.float64), output_names=["y"], dynamic_batch=False)
    (models / "batched/labels.txt").write_text("\n".join(LABELS) + "\n", encoding="utf-8")
    config = {"max_batch_size": 8, "dynamic_batching": {}, "output": [{"name": "y", "label_filename": "labels.txt"}, {"name": "z"}]}
    (models / "batched/config.json").write_text(json.dumps(config))
    server = Served(folder, models)
    yield server
    server.stop()


@pytest.fixture(params=["grpc", "http", "http as JSON"])
def protocol(served, request):
    return (served.grpc if request.param == "grpc" else served.http), (grpcclient if request.param == "grpc" else httpclient), request.param


def classify(protocol, model, count, *names, **arrays):
    client, module, kind = protocol
    more = {} if kind == "grpc" else {"binary_data": kind == "http"}
    outputs = [module.InferRequestedOutput(name, class_count=count, **more) for name in names or ["y"]]
    result = client.infer(model, grpc_inputs(module, **arrays), outputs=outputs)
    return [np.vectorize(lambda text: text if isinstance(text, str) else text.decode())(result.as_numpy(name)) for name in names or ["y"]]


def expected(row, count, labels=()):
    order = sorted(range(len(row)), key=lambda i: (-row[i], i))[:count]
    return [f"{row[i]:f}:{i}" + (f":{labels[i]}" if i < len(labels) else "") for i in order]


def test_rows_of_a_batch_with_labels(protocol):
    x = np.random.default_rng(1).standard_normal((3, 6)).astype("float32")
    x[1] = [2, 2, 2, 3, 3, 0.5]  # equal ones are in order
    y, z = classify(protocol, "batched", 4, "y", "z", x=x)
    assert y.tolist() == [expected(row, 4, LABELS) for row in x]
    assert z.tolist() == [expected(2 * row, 4) for row in x]


def test_more_classes_than_values(protocol):
    x = np.arange(6, dtype="float32").reshape(1, 6)
    (y,) = classify(protocol, "batched", 2**40, x=x)
    assert y.tolist() == [expected(x[0], 6, LABELS)]
    assert y[0, 0] == "5.000000:5" and y[0, 3] == "2.000000:2:great auk" and y[0, 2] == "3.000000:3:"


def test_without_batches_the_whole_output_is_one_list(protocol):
    x = np.array([[3, 1, 2], [9, -1, 4]], "float32")
    (y,) = classify(protocol, "whole", 3, x=x)
    assert y.tolist() == ["9.000000:3", "4.000000:5", "3.000000:0"]


def test_integers_and_large_numbers(protocol):
    x = np.array([-(2**63), 2**63 - 1, 2**53 + 1, 0])
    assert classify(protocol, "integers", 3, x=x)[0].tolist() == [f"{2**63 - 1}:1", f"{2**53 + 1}:2", "0:3"]
    x = np.array([1e308, float("nan"), -float("inf")])
    (y,) = classify(protocol, "double", 3, x=x)
    assert y.tolist() == [f"{1e308:f}:0", "-inf:2", "nan:1"]


def test_other_datatypes_and_counts_are_refused(protocol):
    client, module, _ = protocol
    with pytest.raises(Exception, match="expected integers, FP32 or FP64 as the output 'y'"):
        classify(protocol, "flags", 2, x=np.ones(4, "float32"))
    output = module.InferRequestedOutput("y", class_count=-3)
    with pytest.raises(Exception, match="at least 1 as 'classification'"):
        client.infer("whole", grpc_inputs(module, x=np.ones((2, 3), "float32")), outputs=[output])


@pytest.mark.parametrize("value", ["2", 2.5, True, 0])
def test_values_of_the_wrong_kind_are_refused(served, value):
    body = {"inputs": [{"name": "x", "shape": [2, 3], "datatype": "FP32", "data": [0] * 6}]}
    body["outputs"] = [{"name": "y", "parameters": {"classification": value}}]
    connection = http.client.HTTPConnection(served.http_address, timeout=30)
    connection.request("POST", "/v2/models/whole/infer", json.dumps(body))
    response = connection.getresponse()
    assert response.status == 400 and b"at least 1 as 'classification'" in response.read()


def test_shared_memory_is_refused(served):
    output = grpcclient.InferRequestedOutput("y")
    output.set_shared_memory("region", 64)
    output._get_tensor().parameters["classification"].int64_param = 2  # tritonclient refuses it by itself
    with pytest.raises(Exception, match="got both"):
        served.grpc.infer("whole", grpc_inputs(grpcclient, x=np.ones((2, 3), "float32")), outputs=[output])


def test_the_extension_and_the_labels_are_described(served):
    assert "classification" in served.grpc.get_server_metadata().extensions
    config = served.grpc.get_model_config("batched").config
    assert [each.label_filename for each in config.output] == ["labels.txt", ""]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.txt", None, "cannot open missing.txt"),
        ("../batched/labels.txt", None, "the name of a file in the model's folder"),
        ("..", None, "the name of a file in the model's folder"),
        ("1", None, "expected a file: 1"),
        ("bad.txt", b"\xff\xfe\n", "expected UTF-8 in bad.txt"),
        ("long.txt", b"x" * 1025, "labels of at most 1024 bytes in long.txt, got 1025"),
        ("link.txt", "link", "cannot open link.txt"),
    ],
)
def test_bad_files_of_labels_are_refused(served, name, content, message):
    if isinstance(content, bytes):
        (served.models / "batched" / name).write_bytes(content)
    elif content == "link" and not (served.models / "batched" / name).exists():
        (served.models / "batched" / name).symlink_to(served.models / "batched/labels.txt")
    config = {"max_batch_size": 8, "output": [{"name": "y", "label_filename": name}]}
    with pytest.raises(Exception, match=message):
        served.grpc.load_model("batched", config=json.dumps(config))
    x = np.arange(6, dtype="float32").reshape(1, 6)
    assert classify((served.grpc, grpcclient, "grpc"), "batched", 1, x=x)[0].tolist() == [["5.000000:5"]]  # the old version serves
    served.grpc.load_model("batched")


def test_classes_that_fit_into_an_answer_are_sent(tmp_path):
    """Their encoded size counts, not 72 bytes for each, which is more than a value can have."""
    models = tmp_path / "models"
    serving.save(lambda x: x + 0, models / "many/1", torch.ones(2, 1000), output_names=["y"])
    (models / "many/config.json").write_text('{"max_batch_size": 100}')
    server = Served(tmp_path, models, "--model-request-limit", "1MB", "--model-inflight-limit", "16MB")
    try:
        x = np.zeros((40, 1000), "float32")
        for protocol in ((server.grpc, grpcclient, "grpc"), (server.http, httpclient, "http")):
            (y,) = classify(protocol, "many", 1000, x=x)
            assert y.shape == (40, 1000) and y[39, 999] == "0.000000:999"
        (y,) = classify((server.http, httpclient, "JSON"), "many", 1000, x=x)
        assert y.shape == (40, 1000) and y[39, 999] == "0.000000:999"
        for _ in range(2):  # no memory of a refused answer stays reserved
            with pytest.raises(Exception, match="expected classes of at most 1048576 bytes in an answer, got more"):
                classify((server.grpc, grpcclient, "grpc"), "many", 1000, x=np.zeros((90, 1000), "float32"))
        assert server.grpc.infer("many", grpc_inputs(grpcclient, x=x)).as_numpy("y").shape == (40, 1000)
    finally:
        server.stop()
