"""The Open Inference Protocol with PyPI's tritonclient, over gRPC and REST."""

from __future__ import annotations

import json
import queue
import subprocess
import threading

import numpy as np
import pytest

import teletensor as torch
from teletensor import nn, serving
from tests.conftest import BUILD, IN_PROCESS
from tests.python.serving.served import TIMEOUT, Served, grpc_inputs

grpcclient = pytest.importorskip("tritonclient.grpc")
httpclient = pytest.importorskip("tritonclient.http")
pytestmark = pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")

SLOW = 600  # size of matrices that take a while to multiply
WEIGHT = np.random.default_rng(0).standard_normal((4, 3)).astype("float32")


def write_linear(folder, scale=1.0):
    """x [batch, 4] -> y = x @ WEIGHT * scale, [batch, 3]."""
    weight = torch.tensor(WEIGHT)
    serving.save(lambda x: x @ weight * scale, folder, torch.ones(2, 4), output_names=["y"])


def write_config(folder, **config):
    (folder / "config.json").write_text(json.dumps(config))


@pytest.fixture(scope="module")
def served(_engine, tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    models = folder / "models"
    for name in ("linear", "versions", "batched", "queued", "net", "two"):
        (models / name).mkdir(parents=True)
    write_linear(models / "linear/1")
    write_linear(models / "versions/1", 1.0)
    write_linear(models / "versions/3", 3.0)
    write_config(models / "versions", version_policy={"all": {}})
    write_linear(models / "batched/1")
    write_config(models / "batched", max_batch_size=32, dynamic_batching={"max_queue_delay_microseconds": 20000})
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 10)).eval()
    serving.save(net, models / "net/1", torch.randn(2, 1, 8, 8))
    serving.save(
        lambda a, b: {"sum": a + b, "product": a * b}, models / "two/1", (torch.ones(2, 3), torch.ones(2, 3)),
        output_names=["sum", "product"],
    )  # fmt: skip
    matrix = torch.ones(SLOW, SLOW)

    def slow(x):
        for _ in range(300):
            x = x @ matrix / SLOW
        return x[:, :1]

    serving.save(slow, models / "queued/1", torch.ones(2, SLOW), output_names=["y"])
    queue_policy = {"default_queue_policy": {"max_queue_size": 2}}
    write_config(models / "queued", max_batch_size=1, dynamic_batching=queue_policy)
    x = np.random.default_rng(1).standard_normal((5, 1, 8, 8)).astype("float32")
    with torch.no_grad():
        expected = torch.compiler.trace(net, torch.tensor(x))(torch.tensor(x)).numpy()
    server = Served(folder, models)
    server.net = (x, expected)
    yield server
    server.stop()


@pytest.fixture(params=["grpc", "http"])
def protocol(served, request):
    """A client and its module."""
    return (served.grpc, grpcclient) if request.param == "grpc" else (served.http, httpclient)


def infer(protocol, model, version="", **arrays):
    client, module = protocol
    return client.infer(model, grpc_inputs(module, **arrays), model_version=version)


def test_serves_equal_bits(served, protocol):
    x, expected = served.net
    np.testing.assert_array_equal(infer(protocol, "net", input=x).as_numpy("output"), expected)


def test_liveness_and_metadata(protocol):
    client, _ = protocol
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("linear")
    assert not client.is_model_ready("missing")
    is_grpc = hasattr(client, "start_stream")
    described = client.get_model_metadata("linear", **({"as_json": True} if is_grpc else {}))
    assert described["name"] == "linear" and described["versions"] == ["1"]
    assert [(p["name"], p["datatype"], [int(n) for n in p["shape"]]) for p in described["inputs"]] == [("x", "FP32", [-1, 4])]
    assert [(p["name"], p["datatype"], [int(n) for n in p["shape"]]) for p in described["outputs"]] == [("y", "FP32", [-1, 3])]
    config = client.get_model_config("batched", **({"as_json": True} if is_grpc else {}))
    config = config.get("config", config)
    assert config["max_batch_size"] == 32
    server = client.get_server_metadata(**({"as_json": True} if is_grpc else {}))
    assert server["name"] == "teletensor" and "model_repository" in server["extensions"]


def test_outputs_can_be_selected(protocol):
    client, module = protocol
    a = np.arange(6, dtype="float32").reshape(2, 3)
    wanted = [module.InferRequestedOutput("product")]
    result = client.infer("two", grpc_inputs(module, a=a, b=a), outputs=wanted, request_id="seven")
    np.testing.assert_array_equal(result.as_numpy("product"), a * a)
    assert result.as_numpy("sum") is None
    response = result.get_response()
    assert (response["id"] if isinstance(response, dict) else response.id) == "seven"


def test_client_in_cpp(served):
    """examples/cpp/served_model.cc, for a model and for one that does not exist."""

    def call(model):
        command = [BUILD / "tests/served_model", served.address, model, "x", "1", "-2", "0.5", "3"]
        return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)

    done = call("linear")
    assert done.returncode == 0, done.stderr
    name, *numbers = done.stdout.split()
    assert name == "y:"
    np.testing.assert_allclose([float(n) for n in numbers], np.float32([1, -2, 0.5, 3]) @ WEIGHT, rtol=1e-4)
    refused = call("missing")
    assert refused.returncode == 1 and "missing" in refused.stderr and not refused.stdout


def test_versions_side_by_side(protocol):
    x = np.ones((1, 4), "float32")
    one, three, newest = (infer(protocol, "versions", version, x=x).as_numpy("y") for version in ("1", "3", ""))
    np.testing.assert_allclose(three, one * 3, rtol=1e-6)
    np.testing.assert_array_equal(newest, three)


def test_rest_in_json_without_binary_data(served):
    x = np.arange(8, dtype="float32").reshape(2, 4)
    inputs = [httpclient.InferInput("x", [2, 4], "FP32")]
    inputs[0].set_data_from_numpy(x, binary_data=False)
    outputs = [httpclient.InferRequestedOutput("y", binary_data=False)]
    result = served.http.infer("linear", inputs, outputs=outputs)
    np.testing.assert_allclose(result.as_numpy("y"), x @ WEIGHT, rtol=1e-5, atol=1e-5)


def test_async_calls(served):
    x = np.arange(4, dtype="float32").reshape(1, 4)
    answers: queue.Queue = queue.Queue()
    for i in range(10):
        served.grpc.async_infer(
            "linear", grpc_inputs(grpcclient, x=x * i), lambda result, error, i=i: answers.put((i, result, error))
        )
    for _ in range(10):
        i, result, error = answers.get(timeout=TIMEOUT)
        assert error is None
        np.testing.assert_allclose(result.as_numpy("y"), x * i @ WEIGHT, rtol=1e-5, atol=1e-5)
    pending = [served.http.async_infer("linear", grpc_inputs(httpclient, x=x * i)) for i in range(10)]
    for i, each in enumerate(pending):
        np.testing.assert_allclose(each.get_result().as_numpy("y"), x * i @ WEIGHT, rtol=1e-5, atol=1e-5)


def test_streams_of_requests(served):
    client = served.new_grpc()
    answers: queue.Queue = queue.Queue()
    client.start_stream(lambda result, error: answers.put((result, error)))
    x = np.arange(4, dtype="float32").reshape(1, 4)
    for i in range(5):
        client.async_stream_infer("linear", grpc_inputs(grpcclient, x=x * i), request_id=str(i))
    client.async_stream_infer("missing", grpc_inputs(grpcclient, x=x))
    for i in range(5):
        result, error = answers.get(timeout=TIMEOUT)
        assert error is None and result.get_response().id == str(i)
        np.testing.assert_allclose(result.as_numpy("y"), x * i @ WEIGHT, rtol=1e-5, atol=1e-5)
    result, error = answers.get(timeout=TIMEOUT)
    assert "missing" in str(error)
    client.stop_stream()
    client.close()


@pytest.mark.parametrize("kind", ["grpc", "http"])
def test_shared_memory(served, kind):
    shm = pytest.importorskip("tritonclient.utils.shared_memory")
    client, module = (served.grpc, grpcclient) if kind == "grpc" else (served.http, httpclient)
    x = np.random.default_rng(2).standard_normal((3, 4)).astype("float32")
    source = shm.create_shared_memory_region("source", f"/serving_py_in_{kind}", x.nbytes)
    target = shm.create_shared_memory_region("target", f"/serving_py_out_{kind}", 36)
    try:
        shm.set_shared_memory_region(source, [x])
        client.register_system_shared_memory("source", f"/serving_py_in_{kind}", x.nbytes)
        client.register_system_shared_memory("target", f"/serving_py_out_{kind}", 36)
        status = client.get_system_shared_memory_status()
        assert len(status if isinstance(status, list) else status.regions) == 2
        inputs = [module.InferInput("x", [3, 4], "FP32")]
        inputs[0].set_shared_memory("source", x.nbytes)
        outputs = [module.InferRequestedOutput("y")]
        outputs[0].set_shared_memory("target", 36)
        client.infer("linear", inputs, outputs=outputs)
        np.testing.assert_allclose(shm.get_contents_as_numpy(target, np.float32, [3, 3]), x @ WEIGHT, rtol=1e-5, atol=1e-5)
    finally:
        client.unregister_system_shared_memory()
        shm.destroy_shared_memory_region(source)
        shm.destroy_shared_memory_region(target)


def test_every_client_of_a_batch_gets_its_own_rows(served):
    before = served.grpc.get_inference_statistics("batched", as_json=True)["model_stats"][0]
    rng = np.random.default_rng(3)
    inputs = [rng.standard_normal((1 + i % 3, 4)).astype("float32") for i in range(32)]
    results: list = [None] * 32
    barrier = threading.Barrier(32)

    def call(i):
        with served.new_grpc() as client:
            barrier.wait(TIMEOUT)
            for _ in range(3):
                results[i] = client.infer("batched", grpc_inputs(grpcclient, x=inputs[i])).as_numpy("y")

    threads = [threading.Thread(target=call, args=(i,)) for i in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    for x, y in zip(inputs, results):
        alone = served.grpc.infer("linear", grpc_inputs(grpcclient, x=x)).as_numpy("y")
        np.testing.assert_allclose(y, alone, rtol=1e-5, atol=1e-6)
    after = served.grpc.get_inference_statistics("batched", as_json=True)["model_stats"][0]
    assert int(after["inference_count"]) - int(before.get("inference_count", 0)) == 3 * sum(len(x) for x in inputs)
    assert int(after["execution_count"]) - int(before.get("execution_count", 0)) < 3 * 32  # some were joined


def test_a_full_queue_refuses_and_deadlines_end_waits(served):
    """The model takes long enough that requests of eight clients wait; two may."""
    x = np.ones((1, SLOW), "float32")
    outcomes: list = []
    barrier = threading.Barrier(8)

    def call(**options):
        with served.new_grpc() as client:
            barrier.wait(TIMEOUT)
            try:
                outcomes.append(client.infer("queued", grpc_inputs(grpcclient, x=x), **options).as_numpy("y"))
            except grpcclient.InferenceServerException as error:
                outcomes.append(error.status())

    threads = [threading.Thread(target=call, kwargs={"client_timeout": TIMEOUT}) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    refused = [each for each in outcomes if isinstance(each, str)]
    assert 1 <= len(refused) <= 5 and set(refused) == {"StatusCode.RESOURCE_EXHAUSTED"}
    answered = [each for each in outcomes if not isinstance(each, str)]
    assert all(np.array_equal(each, answered[0]) for each in answered)
    with pytest.raises(grpcclient.InferenceServerException, match="(?i)deadline"):
        served.grpc.infer("queued", grpc_inputs(grpcclient, x=x), client_timeout=1e-4)
    assert served.grpc.infer("queued", grpc_inputs(grpcclient, x=x)).as_numpy("y").shape == (1, 1)


INVALID = [
    ("shape", {"x": np.ones((2, 5), "float32")}),
    ("rank", {"x": np.ones(4, "float32")}),
    ("dtype", {"x": np.ones((2, 4), "int64")}),
    ("name", {"z": np.ones((2, 4), "float32")}),
    ("missing", {}),
    ("two", {"x": np.ones((2, 4), "float32"), "z": np.ones((2, 4), "float32")}),
    ("large batch", {"x": np.ones((33, 4), "float32")}),
]


@pytest.mark.parametrize("what", [what for what, _ in INVALID])
def test_invalid_requests_are_refused(served, protocol, what):
    arrays = dict(INVALID)[what]
    with pytest.raises((grpcclient.InferenceServerException, httpclient.InferenceServerException)):
        infer(protocol, "batched", **arrays)
    x = np.ones((1, 4), "float32")
    assert infer(protocol, "batched", x=x).as_numpy("y").shape == (1, 3)  # the server goes on


def test_unknown_models_and_versions(protocol):
    x = np.ones((1, 4), "float32")
    for model, version in (("missing", ""), ("linear", "9"), ("linear", "x"), ("../linear", ""), ("", "")):
        with pytest.raises((grpcclient.InferenceServerException, httpclient.InferenceServerException, Exception)):
            infer(protocol, model, version, x=x)


def test_replacing_a_model_under_load_loses_and_falsifies_nothing(served):
    folder = served.models / "linear2"
    folder.mkdir()
    write_linear(folder / "1", 1.0)
    served.grpc.load_model("linear2")
    x = np.ones((1, 4), "float32")
    one = x @ WEIGHT
    stopped = threading.Event()
    failures: list = []
    factors: set = set()

    def call():
        with served.new_grpc() as client:
            while not stopped.is_set():
                try:
                    y = client.infer("linear2", grpc_inputs(grpcclient, x=x)).as_numpy("y")
                except Exception as error:  # noqa: BLE001 - any is a failure
                    failures.append(error)
                    return
                factor = y / one
                if not np.allclose(factor, round(float(factor[0, 0])), rtol=1e-4):
                    failures.append(y)
                factors.add(round(float(factor[0, 0])))

    threads = [threading.Thread(target=call) for _ in range(6)]
    for thread in threads:
        thread.start()
    for version in (2, 3, 4):
        write_linear(folder / str(version), float(version))
        served.grpc.load_model("linear2")
    newest = served.grpc.infer("linear2", grpc_inputs(grpcclient, x=x)).as_numpy("y")
    np.testing.assert_allclose(newest, one * 4, rtol=1e-5, atol=1e-5)
    stopped.set()
    for thread in threads:
        thread.join(TIMEOUT)
    assert not failures
    assert factors >= {4} and factors <= {1, 2, 3, 4}


def test_a_model_that_fails_to_load_leaves_the_old_version(served):
    folder = served.models / "fragile"
    folder.mkdir()
    write_linear(folder / "1")
    served.grpc.load_model("fragile")
    (folder / "2").mkdir()
    for content in (b"", b"garbage", (folder / "1/program.pb").read_bytes()[:-10], b"\x08\x63" + (folder / "1/program.pb").read_bytes()):
        (folder / "2/program.pb").write_bytes(content)
        with pytest.raises(grpcclient.InferenceServerException):
            served.grpc.load_model("fragile")
        x = np.ones((1, 4), "float32")
        y = served.grpc.infer("fragile", grpc_inputs(grpcclient, x=x)).as_numpy("y")
        np.testing.assert_allclose(y, x @ WEIGHT, rtol=1e-5, atol=1e-5)
    index = {(m.name, m.version): m for m in served.grpc.get_model_repository_index().models}
    assert index["fragile", "1"].state == "READY"


def test_load_and_unload(protocol, served, tmp_path):
    client, _ = protocol
    client.unload_model("two")
    assert not client.is_model_ready("two")
    client.load_model("two")
    assert client.is_model_ready("two")
