"""serve() and models(): models that a session publishes, and clients without their code."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from tests.conftest import IN_PROCESS, client_environment
from tests.python.serving.served import Served, grpc_inputs

grpcclient = pytest.importorskip("tritonclient.grpc")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("publish")
    (folder / "models").mkdir()
    server = Served(folder, folder / "models")
    yield server
    server.stop()


def run(served, program):
    imports = "import json\nimport numpy as np\nimport teletensor as torch\nfrom teletensor import nn, serving\n"
    return served.run(imports + textwrap.dedent(program))


PUBLISH = """
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).eval()
x = torch.arange(8.0).reshape(2, 4)
model = torch.serve(net, "net", x, max_batch_size=16)
"""


def test_publishes_and_calls(served):
    found = json.loads(run(served, PUBLISH + """
with torch.no_grad():
    expected = torch.compiler.trace(net, x)(x).tolist()
    net[0].weight.zero_()  # the served weights are copies
again = torch.serve(lambda t: t + 1, "add", torch.ones(2, 3), input_names=["t"], output_names=["more"])
print(json.dumps({
    "expected": expected, "served": model(x).tolist(), "version": model.version, "inputs": model.inputs,
    "left": torch.published(), "names": sorted(m["name"] for m in torch.models()),
}))
"""))  # fmt: skip
    assert found["served"] == found["expected"]
    assert found["version"] == "1" and found["left"] == [] and found["names"] == ["add", "net"]
    assert found["inputs"] == [{"name": "input", "datatype": "FP32", "shape": [-1, 4]}]
    # Other clients, with arrays and without a session.
    out = json.loads(run(served, """
        from teletensor import _connection
        net = torch.models("net")
        y = net(np.arange(8, dtype="float32").reshape(2, 4))
        assert isinstance(y, np.ndarray)
        more = torch.models("add")(t=[[1, 2, 3]])
        assert not _connection.has_connected()
        print(json.dumps({"y": y.tolist(), "more": more.tolist(), "repr": repr(net), "count": net.statistics()[0]["inference_count"]}))
    """))  # fmt: skip
    assert out["y"] == found["expected"] and out["more"] == [[2, 3, 4]]
    assert out["repr"] == "ServedModel('net', (input: FP32[-1, 4]) -> (output: FP32[-1, 3]))"
    x = np.arange(8, dtype="float32").reshape(2, 4)
    triton = served.grpc.infer("net", grpc_inputs(grpcclient, input=x)).as_numpy("output")
    assert triton.tolist() == found["expected"]


def test_sizes_named_by_dim(served):
    """PyTorch's forms of dynamic_shapes: Dim, Dim.DYNAMIC, lists with None. Dimensions of one Dim have one size in a request."""
    found = json.loads(run(served, """
n, examples = torch.export.Dim("n"), [torch.ones(2, 3), torch.ones(2, 3)]
add = lambda a, b: (a + b).sum(1)
shapes = {"Dim": {"a": {1: n}, "b": {1: n}}, "lists": [[None, n], [None, n]], "DYNAMIC": {"a": {1: torch.export.Dim.DYNAMIC}}}
results = {}
for name, given in shapes.items():
    function = add if name != "DYNAMIC" else lambda a, b: a.sum(1) + b.sum(1)
    model = torch.serve(function, name, examples, input_names=["a", "b"], dynamic_batch=False, dynamic_shapes=given)
    outcomes = []
    for sizes in ((5, 5), (5, 3)):
        try:
            outcomes.append(model(*(torch.ones(2, size) for size in sizes)).tolist())
        except (ValueError, RuntimeError) as error:
            outcomes.append(type(error).__name__)
    results[name] = [[i["shape"] for i in model.inputs], outcomes]
try:
    torch.serve(add, "wrong", examples, input_names=["a", "b"], dynamic_shapes={"c": {0: n}})
except ValueError as error:
    results["wrong"] = str(error)
print(json.dumps(results))
"""))  # fmt: skip
    assert found["Dim"] == found["lists"]
    assert found["Dim"][0] == [[2, -1], [2, -1]] and found["Dim"][1] == [[10, 10], "ValueError"]
    assert found["DYNAMIC"] == [[[2, -1], [2, 3]], ["ValueError", [8, 8]]]
    assert "expected dynamic_shapes of the inputs a, b, got 'c'" in found["wrong"]


def test_versions_withdrawal_and_errors(served):
    run(served, """
        import pytest
        one = torch.serve(lambda x: x * 1, "scale", torch.ones(2))
        two = torch.serve(lambda x: x * 2, "scale", torch.ones(2))
        assert (one.version, two.version) == ("1", "2")
        assert torch.models("scale")(torch.ones(3)).tolist() == [2, 2, 2]
        with pytest.raises(ValueError, match="version 2 of the model exists"):
            torch.serve(lambda x: x * 3, "scale", torch.ones(2), version=2)
        with pytest.raises(ValueError, match="max_batch_size"):
            torch.serve(lambda x: x * 3, "scale", torch.ones(2), dynamic_batch=False, max_batch_size=4)
        assert torch.models("scale")(torch.ones(3)).tolist() == [2, 2, 2]  # as before
        serving.withdraw("scale", 2)
        assert torch.models("scale")(torch.ones(3)).tolist() == [1, 1, 1]
        serving.withdraw("scale")
        with pytest.raises((RuntimeError, ValueError)):
            torch.models("scale")
        with pytest.raises(ValueError):
            serving.withdraw("scale")
        for name in ("", "../up", "a/b", ".hidden", "x" * 200):
            with pytest.raises(ValueError):
                torch.serve(lambda x: x * 3, name, torch.ones(2))
        assert torch.published() == []
    """)  # fmt: skip
    assert not (served.models / "scale").exists()


def test_calls_check_their_inputs(served):
    run(served, """
        import pytest
        torch.serve(lambda a, b: (a + b, a - b), "pair", (torch.ones(2, 3), torch.ones(2, 3)), output_names=["sum", "difference"])
        pair = torch.models("pair", timeout=30)
        found = pair(torch.ones(1, 3), b=torch.ones(1, 3))
        assert sorted(found) == ["difference", "sum"] and found["sum"].tolist() == [[2, 2, 2]]
        with pytest.raises(TypeError, match="input 'b'"):
            pair(torch.ones(1, 3))
        with pytest.raises(TypeError, match="at most 2"):
            pair(1, 2, 3)
        with pytest.raises(TypeError, match="got 'c'"):
            pair(torch.ones(1, 3), c=torch.ones(1, 3))
        with pytest.raises(TypeError, match="dtype"):
            pair(torch.ones(1, 3), torch.ones(1, 3, dtype=torch.int64))
        with pytest.raises(TypeError, match="dtype float32"):
            pair(np.ones((1, 3)), np.ones((1, 3)))
        with pytest.raises(ValueError):
            pair(torch.ones(1, 4), torch.ones(1, 4))
        with pytest.raises(ValueError):
            torch.models("missing")
    """)  # fmt: skip


def test_decoder_from_a_session(served):
    run(served, """
        from examples.serve_llama import Llama
        model = Llama(11, 32, width=16, layers=1).eval()
        torch.serve(serving.Decoder(model.prefill, model.step, model.cache(2), 2, 32), "llama")
        assert {m["name"]: m["state"] for m in torch.models()}["llama"] == "READY"
    """)  # fmt: skip


WITHOUT = """
import teletensor as torch
try:
    torch.serve(lambda x: x, "x", torch.ones(2))
except NotImplementedError as error:
    print(error)
"""


def test_without_models(own_daemon):
    environment = client_environment(TELETENSOR_ADDRESS=own_daemon().address)
    made = subprocess.run([sys.executable, "-c", WITHOUT], env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert "--models" in made.stdout
