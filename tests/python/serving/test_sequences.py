"""Models with states: sequences of requests of tritonclient, from saved, published and converted models."""

from __future__ import annotations

import json
import queue
import textwrap

import numpy as np
import pytest

import teletensor as torch
from teletensor import nn, serving
from tests.conftest import IN_PROCESS
from tests.python.serving.served import TIMEOUT, Served, converter, grpc_inputs

grpcclient = pytest.importorskip("tritonclient.grpc")
httpclient = pytest.importorskip("tritonclient.http")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]


class Recurrent(nn.Module):
    """A cell whose hidden state is a buffer that forward replaces, with a counter of calls that it changes in place."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.cell = nn.GRUCell(4, 8)
        self.register_buffer("hidden", torch.zeros(1, 8))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("scale", torch.full((1,), 2.0))

    def forward(self, x):
        """(1, 4) to the hidden state and the number of calls."""
        self.hidden = self.cell(x, self.hidden)
        self.calls.add_(1)
        return self.hidden * self.scale, self.calls


def write_onnx(folder) -> None:
    """total, count = total + x, count + 1: with the state as inputs and outputs, and a control that empties it."""
    onnx = pytest.importorskip("onnx")
    folder.mkdir(parents=True)
    model = onnx.parser.parse_model("""
        <ir_version: 9, opset_import: ["" : 18]>
        g (float[N, 2] x, float[N, 2] total, int64[N, 1] count, float[N, 1] start, int64[N, 1] who)
            => (float[N, 2] y, float[N, 2] total_out, int64[N, 1] count_out, int64[N, 1] seen) {
            one = Constant <value = int64[1] {1}> ()
            count_out = Add(count, one)
            whole = Add(total, x)
            total_out = Identity(whole)
            y = Add(whole, start)
            seen = Identity(who)
        }
    """)
    onnx.save(model, folder / "model.onnx")


STATES = {
    "max_batch_size": 4,
    "output": [{"name": "y"}, {"name": "count_out"}, {"name": "seen"}],
    "sequence_batching": {
        "oldest": {"max_candidate_sequences": 8},
        "control_input": [
            {"name": "start", "control": [{"kind": "CONTROL_SEQUENCE_START", "fp32_false_true": [0, 100]}]},
            {"name": "who", "control": [{"kind": "CONTROL_SEQUENCE_CORRID", "data_type": "TYPE_INT64"}]},
        ],
        "state": [
            {"input_name": "total", "output_name": "total_out", "data_type": "TYPE_FP32", "dims": [2]},
            {"input_name": "count", "output_name": "count_out", "data_type": "TYPE_INT64", "dims": [1]},
        ],
    },
}


INVERSE = {
    "output": [{"name": "y"}],
    "sequence_batching": {
        "control_input": [{"name": "start", "control": [{"kind": "CONTROL_SEQUENCE_START", "fp32_false_true": [0, 1]}]}],
        "state": [{"input_name": "before", "output_name": "after", "data_type": "TYPE_FP32", "dims": [1]}],
    },
}


@pytest.fixture(scope="module", params=["KIND_CPU", "KIND_GPU"])
def served(_engine, tmp_path_factory, request):
    folder = tmp_path_factory.mktemp("sequences")
    models = folder / "models"
    serving.save(Recurrent().eval(), models / "cell/1", torch.zeros(1, 4), states=["hidden", "calls"], output_names=["y", "calls"])

    def total(x, total):
        return total.add_(x)

    serving.save(total, models / "total/1", torch.zeros(2), states={"total": torch.zeros(2)})

    def inverse(x, start, before):
        after = torch.where(start > 0, torch.full((1,), 100.0), before) + x
        return after, after + 0 * torch.linalg.inv(x.reshape(1, 1) - 13).reshape(1)

    names = {"input_names": ["x", "start", "before"], "output_names": ["after", "y"]}
    serving.save(inverse, models / "inverse/1", [torch.ones(1)] * 3, dynamic_batch=False, **names)
    write_onnx(models / "converted/1")
    for name, config in {"cell": {}, "total": {}, "inverse": INVERSE, "converted": STATES}.items():
        (models / name / "config.json").write_text(json.dumps({**config, "instance_group": [{"kind": request.param}]}))
    server = Served(folder, models, *converter(folder))
    yield server
    server.stop()


@pytest.fixture(params=["grpc", "http"])
def protocol(served, request):
    return (served.grpc, grpcclient) if request.param == "grpc" else (served.http, httpclient)


def ask(protocol, model, sequence, start=False, end=False, **arrays):
    client, module = protocol
    inputs = grpc_inputs(module, **arrays)
    return client.infer(model, inputs, sequence_id=sequence, sequence_start=start, sequence_end=end)


def test_buffers_of_a_module_are_states(served, protocol):
    rng = np.random.default_rng(0)
    steps = rng.standard_normal((5, 1, 4)).astype("float32")
    net = Recurrent().eval()
    for i, x in enumerate(steps):
        with torch.no_grad():
            y, calls = net(torch.tensor(x))
        found = ask(protocol, "cell", 7, start=i == 0, end=i == 4, x=x)
        np.testing.assert_allclose(found.as_numpy("y"), y.numpy(), atol=1e-6)
        assert found.as_numpy("calls") == calls.item() == i + 1
    with pytest.raises(Exception, match="has ended"):
        ask(protocol, "cell", 7, x=steps[0])
    assert {"name", "weights"} <= set(serving.read(served.models / "cell/1")["entries"][0])
    described = serving.read(served.models / "cell/1")["entries"][0]
    assert [s["name"] for s in described["states"]] == ["hidden", "calls"]
    assert "scale" in described["weights"] and "hidden" not in described["weights"]


def test_sequences_do_not_share_states(protocol):
    for k, (sequence, start) in enumerate([(1, True), ("two", True), (1, False), ("two", False), (1, True)]):
        found = ask(protocol, "total", sequence, start=start, x=np.full(2, k + 1, "float32")).as_numpy("output")
        assert found.tolist() == [[1, 1], [2, 2], [4, 4], [6, 6], [5, 5]][k]
    with pytest.raises(Exception, match="sequence_id other than 0"):
        protocol[0].infer("total", grpc_inputs(protocol[1], x=np.zeros(2, "float32")))


def test_the_example_of_tritonclient(served):
    """Two sequences over one stream, as in simple_grpc_sequence_stream_infer_client.py."""
    done: queue.Queue = queue.Queue()
    values = [11, 7, 5, 3, 2, 0, 1]
    with served.new_grpc() as client:
        client.start_stream(callback=lambda result, error: done.put((result, error)))
        for sequence, sign in ((1000, 1), (1001, -1)):
            for i, value in enumerate(values):
                client.async_stream_infer(
                    "total", grpc_inputs(grpcclient, x=np.full(2, sign * value, "float32")), request_id=f"{sequence}_{i}",
                    sequence_id=sequence, sequence_start=i == 0, sequence_end=i == len(values) - 1,
                )  # fmt: skip
        found = {}
        for _ in range(2 * len(values)):
            result, error = done.get(timeout=TIMEOUT)
            assert error is None
            found[result.get_response().id] = result.as_numpy("output")[0]
        client.stop_stream()
    sums = np.cumsum(values)
    assert [found[f"1000_{i}"] for i in range(7)] == sums.tolist()
    assert [found[f"1001_{i}"] for i in range(7)] == (-sums).tolist()


def test_states_and_controls_of_a_converted_model(protocol):
    client, _ = protocol
    rows = np.array([[1, 2], [3, 4], [5, 6]], "float32")
    first = ask(protocol, "converted", 31, start=True, x=rows)
    second = ask(protocol, "converted", 31, x=rows)
    assert first.as_numpy("y").tolist() == (rows + 100).tolist() and second.as_numpy("y").tolist() == (2 * rows).tolist()
    assert second.as_numpy("count_out").tolist() == [[2]] * 3 and second.as_numpy("seen").tolist() == [[31]] * 3
    assert second.as_numpy("total_out") is None
    with pytest.raises(Exception, match="3 rows, as the sequence has, got 2"):
        ask(protocol, "converted", 31, x=rows[:2])
    with pytest.raises(Exception, match="expected a sequence_id of INT64"):
        ask(protocol, "converted", "name", start=True, x=rows)
    metadata = client.get_model_metadata("converted")
    names = [p["name"] if isinstance(p, dict) else p.name for p in (metadata["inputs"] if isinstance(metadata, dict) else metadata.inputs)]
    assert names == ["x"]


def test_a_sequence_whose_first_request_fails_has_not_begun(protocol):
    """Else the next request would begin from zeros, and the model would not be told that it is the first."""

    def inverse(value, **parameters):
        return ask(protocol, "inverse", 5, x=np.full(1, value, "float32"), **parameters).as_numpy("y").tolist()

    for i in range(2):  # the second time, a sequence that exists would begin again
        with pytest.raises(Exception, match="singular"):
            inverse(13, start=True)  # x - 13 has no inverse
        if i == 0:
            with pytest.raises(Exception, match="expected a request with sequence_start"):
                inverse(1)
        else:
            assert inverse(1) == [104]  # it goes on
        assert inverse(1, start=True) == [101]
        with pytest.raises(Exception, match="singular"):
            inverse(13)
        assert inverse(2) == [103]  # the failed request has changed nothing
    inverse(1, end=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"state": [{"input_name": "other", "output_name": "total_out", "dims": [2]}]}, "got 'other'"),
        ({"state": [{"input_name": "total", "output_name": "count_out", "dims": [2]}]}, "one data type of the state 'total'"),
        ({"state": [{"input_name": "total", "output_name": "total_out", "dims": [3]}]}, "dims of the state 'total'"),
        ({"state": [{"input_name": "total", "output_name": "total_out", "dims": [2]}] * 2}, "twice"),
        ({"control_input": [{"name": "start", "control": []}]}, "one control of the input 'start'"),
        ({"control_input": [{"name": "start", "control": [{"int32_false_true": [0, 1]}]}]}, "the field of its data type"),
        ({"control_input": [{"name": "start", "control": [{"kind": "CONTROL_SEQUENCE_CORRID"}]}]}, "32 or 64-bit integers"),
    ],
)
def test_invalid_configurations_are_refused(served, change, message):
    config = {**STATES, "sequence_batching": {**STATES["sequence_batching"], **change}}
    with pytest.raises(Exception, match=message):
        served.grpc.load_model("converted", config=json.dumps(config))
    served.grpc.load_model("converted")


def test_published_from_a_session(served):
    found = json.loads(served.run(textwrap.dedent("""
        import json
        import teletensor as torch
        from teletensor import nn

        class Mean(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("total", torch.ones(2))
                self.register_buffer("count", torch.zeros(1))
            def forward(self, x):
                self.total += x
                self.count = self.count + 1
                return self.total / self.count

        net = Mean()
        model = torch.serve(net, "mean", torch.zeros(2), states=["total", "count"])
        call = lambda value, **parameters: model(torch.full((2,), value), parameters={"sequence_id": 5, **parameters}).tolist()
        results = [call(3.0, sequence_start=True), call(5.0), call(10.0, sequence_end=True)]
        print(json.dumps({"results": results, "left": net.total.tolist(), "config": model.config()}))
    """)))  # fmt: skip
    assert found["results"] == [[3, 3], [4, 4], [6, 6]]
    assert found["left"] == [1, 1]  # the module's own buffers are as they were
    assert "sequence_batching" in found["config"]


def test_what_is_refused(tmp_path):
    net = Recurrent().eval()
    with pytest.raises(ValueError, match=r"different names of the module's buffers \(hidden, calls, scale\)"):
        serving.save(net, tmp_path / "m/1", torch.zeros(1, 4), states=["hidden", "missing"])
    with pytest.raises(TypeError, match="expected a module, or a method of one"):
        serving.save(lambda x: x, tmp_path / "m/1", torch.zeros(1, 4), states=["hidden"])
    with pytest.raises(TypeError, match="expected a tensor as an example of the state 'h', got int"):
        serving.save(lambda x, h: x, tmp_path / "m/1", torch.zeros(1, 4), states={"h": 3})
    with pytest.raises(ValueError, match="changes its 1 states in place"):
        serving.save(lambda x, h: x + h, tmp_path / "m/1", torch.zeros(1, 4), states={"h": torch.zeros(1, 4)})
    with pytest.raises(ValueError, match="no example_inputs, entries or states of a Decoder"):
        serving.save(serving.Decoder(len, len, torch.zeros(1), 2, 2), tmp_path / "m/1", states=["hidden"])
