"""Strings as inputs and outputs, padded batches, and configuration that is refused, with PyPI's tritonclient."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

import teletensor as torch
from teletensor import serving
from tests.conftest import IN_PROCESS
from tests.python.serving.served import TIMEOUT, Served, grpc_inputs

grpcclient = pytest.importorskip("tritonclient.grpc")
httpclient = pytest.importorskip("tritonclient.http")
pytestmark = pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")

WIDTH = 8
TEXTS = np.array([b"abc", b"", b"x\0yz", "\u00e4".encode()], object)
STRINGS = {
    "input": [{"name": "x", "data_type": "TYPE_STRING", "dims": []}],
    "output": [{"name": "y", "data_type": "TYPE_STRING", "dims": []}],
}
REFUSED = {
    "limiter": ({"instance_group": [{"count": 1, "rate_limiter": {"resources": []}}]}, "rate_limiter"),
    "host": ({"instance_group": [{"count": 1, "host_policy": "a"}]}, "host_policy"),
    "ensemble": ({"ensemble_scheduling": {"step": []}}, "ensemble_scheduling"),
    "padding": ({"max_batch_size": 4, "parameters": {"batch_padding": {"string_value": "always"}}}, "batch_padding"),
    "number": ({"input": [{"name": "x", "data_type": "TYPE_STRING"}]}, "UINT8"),
}


def upper(x):
    """ASCII letters in upper case."""
    return torch.where((x >= 97) & (x <= 122), x - 32, x)


@pytest.fixture(scope="module")
def served(_engine, tmp_path_factory):
    folder = tmp_path_factory.mktemp("strings")
    models = folder / "models"

    def write(name, function, example, dynamic_shapes=(), **config):
        (models / name).mkdir(parents=True)
        serving.save(function, models / name / "1", example, output_names=["y"], dynamic_shapes=dynamic_shapes)
        (models / name / "config.json").write_text(json.dumps(config))

    bytes_ = torch.zeros(2, WIDTH, dtype=torch.uint8)
    write("upper", upper, bytes_, max_batch_size=8, dynamic_batching={}, **STRINGS)
    lengths = {"max_batch_size": 8192, "dynamic_shapes": {"x": {1: "w"}}, "input": STRINGS["input"]}
    write("lengths", lambda x: (x != 0).to(torch.float32), bytes_, **lengths)
    write("pixels", upper, bytes_, max_batch_size=8)
    padding = {"batch_padding": {"string_value": "powers_of_two"}}
    write("centred", lambda x: x - x.mean(0, keepdim=True), torch.ones(2, 3), max_batch_size=8, parameters=padding)
    for name, (config, _) in REFUSED.items():
        write(name, lambda x: x + 1, torch.ones(2, 3), **config)
    started = Served(folder, models, "--no-auth")
    yield started
    started.stop()


def text_input(client, texts):
    tensor = client.InferInput("x", list(texts.shape), "BYTES")
    tensor.set_data_from_numpy(texts)
    return [tensor]


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_strings_in_tritons_encoding(served, protocol):
    client, module = (served.grpc, grpcclient) if protocol == "grpc" else (served.http, httpclient)
    found = client.infer("upper", text_input(module, TEXTS)).as_numpy("y")
    assert list(found) == [text.upper() for text in TEXTS]  # bytes.upper() leaves the others, too
    described = served.grpc.get_model_metadata("upper", as_json=True)
    assert described["inputs"][0]["datatype"] == "BYTES" and described["inputs"][0]["shape"] == ["-1"]
    config = served.grpc.get_model_config("upper", as_json=True)["config"]
    assert config["input"][0]["data_type"] == "TYPE_STRING" and "dims" not in config["input"][0]


def test_strings_as_json(served):
    module = httpclient
    tensor = module.InferInput("x", [2], "BYTES")
    tensor.set_data_from_numpy(np.array(["h\u00e9", "b"], object), binary_data=False)
    answer = served.http.infer("upper", [tensor], outputs=[module.InferRequestedOutput("y", binary_data=False)])
    assert answer.get_response()["outputs"][0]["data"] == ["H\u00e9", "B"]


def test_strings_of_thin_clients(served):
    model = torch.models("upper", address=served.address)
    assert list(model(np.array(["abc", "d"], object))) == [b"ABC", b"D"]
    assert list(model(["abc", b"d"])) == [b"ABC", b"D"]
    with pytest.raises(TypeError, match="strings"):
        model([1, 2])


@pytest.mark.parametrize(
    ("texts", "change", "message"),
    [
        (np.array([b"123456789"], object), None, "at most 8 bytes"),
        (TEXTS, lambda tensor: tensor.set_shape([3]), "expected 3 strings, got 4"),
        (TEXTS, lambda tensor: tensor.set_shape([1 << 40]), "a string per element"),
        (TEXTS, lambda tensor: setattr(tensor, "_raw_content", tensor._raw_content[:-1]), "bytes left"),
        (TEXTS, lambda tensor: setattr(tensor, "_raw_content", b"\xff\xff\xff\xff" * 4), "bytes left"),
    ],
)
def test_invalid_strings_are_refused(served, texts, change, message):
    inputs = text_input(grpcclient, texts)
    if change:
        change(inputs[0])
    with pytest.raises(grpcclient.InferenceServerException, match=message):
        served.grpc.infer("upper", inputs)


def test_one_long_string_does_not_make_a_large_table(served):
    few = served.grpc.infer("lengths", text_input(grpcclient, np.array([b"a" * 5000, b"bc"], object))).as_numpy("y")
    assert few.shape == (2, 5000) and few.sum(1).tolist() == [5000, 2]
    many = np.array([b"a" * 5000] + [b""] * 8000, object)
    with pytest.raises(grpcclient.InferenceServerException, match="expected at most 16777216 bytes of strings"):
        served.grpc.infer("lengths", text_input(grpcclient, many))


def test_datatypes_are_not_converted(served):
    numbers = grpc_inputs(grpcclient, x=np.zeros((2, WIDTH), "uint8"))
    with pytest.raises(grpcclient.InferenceServerException, match="expected the datatype BYTES"):
        served.grpc.infer("upper", numbers)
    with pytest.raises(grpcclient.InferenceServerException, match="expected the datatype UINT8"):
        served.grpc.infer("pixels", text_input(grpcclient, TEXTS))


@pytest.mark.parametrize(("rows", "padded"), [(1, 1), (3, 4), (5, 8), (8, 8)])
def test_batches_are_padded_with_zeros(served, rows, padded):
    x = np.random.default_rng(rows).standard_normal((rows, 3)).astype("float32")
    found = served.grpc.infer("centred", grpc_inputs(grpcclient, x=x)).as_numpy("y")
    np.testing.assert_allclose(found, x - x.sum(0) / padded, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", REFUSED)
def test_configuration_is_refused_by_name(served, name):
    until = time.monotonic() + TIMEOUT
    while time.monotonic() < until:
        models = {m["name"]: m for m in served.grpc.get_model_repository_index(as_json=True)["models"]}
        if models.get(name, {}).get("reason"):
            break
        time.sleep(0.02)
    assert models[name]["state"] == "UNAVAILABLE" and REFUSED[name][1] in models[name]["reason"]
