"""Sparse, nested and quantized tensors in checkpoints: load_into, two references to one tensor, torch.distributed.checkpoint."""

from __future__ import annotations

import json

import pytest

from .scripts import run

pytestmark = pytest.mark.slow

SETUP = """
import teletensor.distributed.checkpoint as dcp
m = torch.tensor([[0, 1.0, 0, 2], [2, 0, 3, 0]])
rows = [torch.tensor([[1.0, 2], [3, 4], [5, 6]]), torch.tensor([[7.0, 8]])]
def states(m, rows):
    return {
        "coo": m.to_sparse(), "csr": m.to_sparse_csr(), "csc": m.to_sparse_csc(), "bsr": m.to_sparse_bsr((1, 2)),
        "bsc": m.to_sparse_bsc((1, 2)), "jagged": torch.nested.nested_tensor(rows, layout=torch.jagged),
        "nested": torch.nested.nested_tensor(rows), "weight": m + 1,
    }
def parts(t):
    return t.unbind() if t.is_nested else [t.to_dense()]
def same(a, b):
    return a.layout == b.layout and a.is_nested == b.is_nested and all(map(torch.equal, parts(a), parts(b)))
def refuses(call, kind, *words):
    try:
        call()
    except dcp.CheckpointException as failed:
        error = failed.failures[0][0]
    except Exception as failed:
        error = failed
    else:
        raise AssertionError("raises nothing")
    assert type(error) is kind and all(word in str(error) for word in words), repr(error)
state, target = states(m, rows), states(m * 10, [r * 10 for r in rows])
"""


@pytest.mark.parametrize("path", ["a", "a.safetensors"])
def test_load_into_sparse_and_nested_tensors(root, path):
    code = f"path = {path!r}" + """
ck.save(state, path)
objects = dict(target)
target["coo"] = objects["coo"] = (m[:, :3] * 5).to_sparse().sparse_resize_([2, 4], 2, 0)  # of fewer elements
target["csr"].requires_grad_()
target["nested"] = objects["nested"] = target["nested"].double()
assert ck.load_into(target, path) == ([], [])
assert all(target[k] is objects[k] for k in state) and target["csr"].requires_grad and target["csr"].grad_fn is None
assert target["nested"].dtype is torch.float64
target["nested"] = target["nested"].float()
assert all(same(target[k], state[k]) for k in state)
assert target["coo"].is_coalesced() and target["coo"]._nnz() == 4
some = {"csc": (m * 3).to_sparse_csc(), "new": torch.ones(1)}
missing, unexpected = ck.load_into(some, path, strict=False)
assert missing == ["new"] and set(unexpected) == set(state) - {"csc"} and same(some["csc"], state["csc"])
refuses(lambda: ck.load_into(some, path), RuntimeError, "missing", "new")
ck.save(state, "many", max_shard_size=64)  # several files
for name, tensor in states(m * 7, [r * 7 for r in rows]).items():
    ck.load_into({name: tensor}, "many", strict=False)
    assert same(tensor, state[name]), name
component = next(name for name in ck.names(path) if name.startswith("tensor."))
alone = {component: torch.zeros(ck.names(path)[component][1], dtype=ck.names(path)[component][0])}
assert ck.load_into(alone, path, strict=False)[0] == [] and torch.equal(alone[component], state["coo"].indices())
print("ok")
"""
    assert run(root, SETUP + code) == "ok\n"


def test_load_into_names_the_entry_that_differs(root):
    code = """
ck.save(state, "a")
def refused(name, tensor, *words):
    weight = torch.zeros(2, 4)
    refuses(lambda: ck.load_into({name: tensor, "weight": weight}, "a", strict=False), RuntimeError, name, *words)
refused("coo", m.to_sparse_csr(), "layout mismatch", "torch.sparse_coo", "torch.sparse_csr")
refused("csr", torch.zeros(2, 4), "layout mismatch", "torch.strided", "torch.sparse_csr")
refused("weight", m.to_sparse(), "layout mismatch", "torch.sparse_coo", "strided")
refused("coo", torch.eye(3).to_sparse(), "size mismatch", "[2, 4]", "[3, 3]")
refused("csr", torch.ones(2, 4).to_sparse_csr(), "cannot receive", "same number of specified elements")
refused("jagged", torch.nested.nested_tensor(rows[::-1], layout=torch.jagged), "cannot receive", "same sizes", "(3, 2) instead of (1, 2)")
refused("jagged", torch.nested.nested_tensor(rows), "layout mismatch", "torch.jagged")
refused("nested", torch.nested.nested_tensor(rows[::-1]), "cannot receive", "same sizes")
print("ok")
""".replace('{name: tensor, "weight": weight}', '{"weight": weight, name: tensor}')
    assert run(root, SETUP + code) == "ok\n"


def test_a_load_that_fails_changes_no_tensor(root):
    code = """
ck.save(state, "a")
for name, tensor in (
    ("csr", torch.ones(2, 4).to_sparse_csr()), ("bsr", m.to_sparse_bsr((2, 1))), ("nested", torch.nested.nested_tensor(rows[::-1])),
    ("jagged", torch.nested.nested_tensor(rows[:1], layout=torch.jagged)),
):
    before = states(m * 10, [r * 10 for r in rows])
    into = {k: v.clone() for k, v in before.items()}
    into[name] = tensor
    refuses(lambda: ck.load_into(into, "a"), RuntimeError, name, "cannot receive")
    assert all(same(into[k], before[k]) for k in before if k != name), name
q = torch.quantize_per_tensor(m, 0.5, 0, torch.quint8)
ck.save({"weight": m, "q": q}, "q")
into = {"weight": m * 2, "q": torch.quantize_per_tensor(m, 0.5, 0, torch.qint8)}
refuses(lambda: ck.load_into(into, "q"), RuntimeError, "q cannot receive", "torch.qint8")
assert torch.equal(into["weight"], m * 2)
# Of a distributed checkpoint: no sparse, nested or quantized tensor.
dcp.save(state, checkpoint_id="d")
into = states(m * 10, [r * 10 for r in rows])
into["nested"] = torch.nested.nested_tensor(rows[::-1])
refuses(lambda: dcp.load(into, checkpoint_id="d"), RuntimeError, "nested cannot receive")
assert same(into["coo"], (m * 10).to_sparse()) and same(into["csr"], (m * 10).to_sparse_csr())
print("ok")
"""
    assert run(root, SETUP + code) == "ok\n"


def test_two_references_to_one_tensor(root):
    code = """
s, j = m.to_sparse(), torch.nested.nested_tensor(rows, layout=torch.jagged)
shared = {"a": s, "b": [s, m.to_sparse_csr()], "c": s.clone(), "j": (j, j)}
shared["same indices"] = torch.sparse_coo_tensor(s.indices(), s.values())
for path in ("a", "a.safetensors", "a.pt"):
    ck.save(shared, path)
    back = ck.load(path)
    assert back["a"] is back["b"][0] and back["j"][0] is back["j"][1] and same(back["a"], s), path
    assert back["c"] is not back["a"] and back["same indices"] is not back["a"] and same(back["c"], s), path
    back["a"].mul_(2)
    assert same(back["b"][0], s * 2) and same(back["c"], s)
# Components are stored once.
ck.save({"a": s, "b": s}, "twice")
assert len(ck.names("twice")) == 2
print("ok")
"""
    assert run(root, SETUP + code) == "ok\n"


def test_damaged_structures(root):
    """A structure that names tensors that the file does not contain, or components that do not fit."""
    code = """
s = m.to_sparse()
ck.save({"a": s}, "a.safetensors")
"""
    assert run(root, SETUP + code) == ""
    file = root / "a.safetensors"
    whole = file.read_bytes()
    for old, new in ((b'\\"tensor.1\\"', b'\\"tensor.7\\"'), (b'\\"tensor.1\\"', b'\\"tensor.0\\"'), (b"rebuild_sparse", b"rebuild_spaxse"),
                     (b'[[\\"a\\",', b'[{\\"a\\":')):  # fmt: skip
        damaged = whole.replace(old, new)
        assert damaged != whole
        # Without its checksum, a header is not compared with one.
        file.write_bytes(damaged.replace(b"teletensor.header_crc32", b"teletensor.header_crc33"))
        error = run(root, SETUP + "ck.load_into({'a': m.to_sparse()}, 'a.safetensors')")
        assert "Error: [checkpoint]" in error and any(w in error for w in ("damaged", "malformed", "cannot receive", "missing")), error


def test_distributed_checkpoint_in_one_process(root):
    code = """
from teletensor.distributed.checkpoint.format_utils import dcp_to_torch_save, torch_save_to_dcp
nested_state = {"model": state, "list": [state["csr"], 3], "step": 7}
metadata = dcp.save(nested_state, checkpoint_id="d")
def zeros():
    made = states(m * 10, [r * 10 for r in rows])
    made["coo"] = torch.sparse_coo_tensor(size=(2, 4))
    return {"model": made, "list": [(m * 10).to_sparse_csr(), 0], "step": 0}
def check(loaded):
    assert all(same(loaded["model"][k], state[k]) for k in state)
    assert same(loaded["list"][0], state["csr"]) and loaded["list"][1] == 3 and loaded["step"] == 7
for name in ("d", "e"):
    loaded = zeros()
    objects = dict(loaded["model"])
    dcp.load(loaded, checkpoint_id=name)
    check(loaded)
    assert all(loaded["model"][k] is objects[k] for k in objects)
    if name == "d":
        future = dcp.async_save(nested_state, checkpoint_id="e")
        state["coo"].mul_(3), state["csr"].mul_(3)  # the checkpoint has the values of the call
        future.result()
        state["coo"].div_(3), state["csr"].div_(3)
dcp_to_torch_save("d", "whole.pt")
check(torch.load("whole.pt", weights_only=False))
torch_save_to_dcp("whole.pt", "f")
loaded = zeros()
dcp.load(loaded, checkpoint_id="f")
check(loaded)
partial = {"model": {"csc": (m * 3).to_sparse_csc(), "more": m.to_sparse()}}
dcp.load(partial, checkpoint_id="d", planner=dcp.DefaultLoadPlanner(allow_partial_load=True))
assert same(partial["model"]["csc"], state["csc"]) and same(partial["model"]["more"], m.to_sparse())
component = {"model.csr/2": torch.zeros(4)}
dcp.load(component, checkpoint_id="d")
assert torch.equal(component["model.csr/2"], state["csr"].values())
def loads(name, tensor):
    return lambda: dcp.load({"model": {name: tensor}}, checkpoint_id="d")
refuses(loads("csr", torch.zeros(2, 4)), ValueError, "model.csr", "sparse")
refuses(loads("weight", m.to_sparse()), ValueError, "model.weight", "sparse_coo")
refuses(loads("csr", m.to_sparse()), RuntimeError, "layout mismatch", "model.csr")
refuses(loads("csr", torch.ones(2, 4).to_sparse_csr()), RuntimeError, "cannot receive", "model.csr")
refuses(loads("coo", torch.eye(3).to_sparse()), RuntimeError, "size mismatch", "model.coo")
refuses(loads("nested", torch.nested.nested_tensor(rows[::-1])), RuntimeError, "cannot receive", "model.nested")
unread = {"model": {"weight": torch.zeros_like(m), "csr": torch.ones(2, 4).to_sparse_csr()}}
refuses(lambda: dcp.load(unread, checkpoint_id="d"), RuntimeError, "cannot receive", "model.csr")
assert not unread["model"]["weight"].any()
refuses(lambda: dcp.save({"a": m.to_sparse(), "a/0": m}, checkpoint_id="g"), ValueError, "a/0")
refuses(lambda: dcp.save({"a": m.to_sparse()}, storage_writer=dcp.HuggingFaceStorageWriter("h")), TypeError, "strided", "'a'")
print("ok")
"""
    assert run(root, SETUP + code) == "ok\n"


def test_state_dict_helpers_copy_sparse_buffers(root):
    code = """
from teletensor.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict, StateDictOptions
class Net(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.register_buffer("graph", (m * scale).to_sparse_csr())
        self.register_buffer("rows", torch.nested.nested_tensor([r * scale for r in rows], layout=torch.jagged))
        self.layer = torch.nn.Linear(4, 2)
net, other = Net(1), Net(2)
values = get_model_state_dict(net, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
dcp.save({"model": values}, checkpoint_id="n")
into = get_model_state_dict(other)
dcp.load({"model": into}, checkpoint_id="n")
set_model_state_dict(other, into)
assert same(other.graph, net.graph) and same(other.rows, net.rows) and torch.equal(other.layer.weight, net.layer.weight)
for layout in (torch.jagged, torch.strided):
    for model, scale in ((net, 1), (other, 2)):
        model.rows = torch.nested.nested_tensor([r * scale for r in rows], layout=layout)
    other.load_state_dict({k: v.clone() for k, v in net.state_dict().items()})
    assert same(other.rows, net.rows)
    net.rows = torch.nested.nested_tensor(rows[::-1], layout=layout)
    refuses(lambda: other.load_state_dict(net.state_dict()), RuntimeError, "rows", "(3, 2)")
    net.rows = torch.zeros(2, 3, 2)
    refuses(lambda: other.load_state_dict(net.state_dict()), RuntimeError, "size mismatch for rows")
print("ok")
"""
    assert run(root, SETUP + code) == "ok\n"


def test_damaged_indices_of_distributed_checkpoints(root):
    assert run(root, SETUP + "dcp.save({'a': m.to_sparse()}, checkpoint_id='d')") == ""
    file = root / "d/index.json"
    whole = json.loads(file.read_bytes())
    whole.pop("crc32")
    name, arguments = whole["values"]["a"]["composed"]
    values = [
        {"composed": ["os.system", arguments]},
        {"composed": [name, {"tuple": [{"tensor": "b/0"}]}]},
        {"composed": [name, {"tuple": [{"layout": "sparse_coo"}, {"tuple": [{"tensor": "a/1"}, {"tensor": "a/0"}, {"size": [2, 4]}]}]}]},
        {"composed": 3},
    ]
    for value in values:
        file.write_text(json.dumps({**whole, "values": {"a": value}}))
        error = run(root, SETUP + "dcp.load({'a': m.to_sparse()}, checkpoint_id='d')")
        assert "ValueError: [checkpoint] " in error and any(w in error for w in ("damaged", "malformed")), error


def test_deep_indices_of_distributed_checkpoints(root):
    code = """
import json
dcp.save({'a': m.to_sparse()}, checkpoint_id='d')
whole = json.load(open("ROOT/d/index.json"))
whole.pop("crc32")
arguments = whole["values"]["a"]["composed"][1]["tuple"]
for levels in (*range(300, 1000, 40), 100_000):
    text = json.dumps({**whole, "values": {"a": {"composed": ["x", [*arguments, "deep"]]}}})
    open("ROOT/d/index.json", "w").write(text.replace('"deep"', "[" * levels + "]" * levels))
    refuses(lambda: dcp.load({"a": m.to_sparse()}, checkpoint_id="d"), ValueError, "[checkpoint]")
print("ok")
"""
    assert run(root, SETUP + code.replace("ROOT", str(root))) == "ok\n"


def test_hostile_structures_take_linear_time_and_memory(root):
    code = """
import tracemalloc
from teletensor._checkpoint import tree
from teletensor.distributed.checkpoint.default_planner import create_default_local_load_plan
from teletensor.distributed.checkpoint.metadata import ChunkStorageMetadata, ComposedStorageMetadata, Metadata, TensorProperties
from teletensor.distributed.checkpoint.metadata import TensorStorageMetadata
# Many values that name one component of many boxes: it is read once.
count, size = 300, torch.Size
boxes = [ChunkStorageMetadata(size([i]), size([1])) for i in range(count)]
contents = {f"v{i}": ComposedStorageMetadata(["x"]) for i in range(count)}
contents["x"] = TensorStorageMetadata(TensorProperties(torch.float32), size([count]), boxes)
plan = create_default_local_load_plan({f"v{i}": None for i in range(count)}, Metadata(contents))
assert len(plan.items) == 2 * count
# Encodings within encodings: refused before their texts are made.
nested = "x" * 10**6
for _ in range(150):
    nested = {"composed": ["quantized", [nested]]}
tracemalloc.start()
refuses(lambda: tree.decode(nested, lambda name: None), ValueError, "contain another")
assert tracemalloc.get_traced_memory()[1] < 10**7
# The names in nested lists are collected in one set.
names = [{"tensor": f"tensor.{i}"} for i in range(20_000)]
for _ in range(300):
    names = [names]
tracemalloc.reset_peak()
before = tracemalloc.get_traced_memory()[0]
assert len(tree.composed_entries({"dict": [["a", {"composed": ["quantized", names]}]]})[1]) == 20_000
assert tracemalloc.get_traced_memory()[1] - before < 10**7
print("ok")
"""
    assert run(root, SETUP + code) == "ok\n"


QUANTIZED = """
def quantized(scale):
    x, scales = torch.arange(6.0).reshape(2, 3) * scale, torch.tensor([0.5, 0.25]) * scale
    return {
        "tensor": torch.quantize_per_tensor(x, 0.1 * scale, 10, torch.quint8),
        "channel": torch.quantize_per_channel(x, scales, torch.tensor([1, 2]), 0, torch.qint8),
        "floats": torch.quantize_per_channel(x, scales, torch.tensor([0.5, 1.5]), 0, torch.quint8),
        "qint32": torch.quantize_per_tensor(x, 0.001 * scale, 0, torch.qint32),
    }
def equals(a, b):
    same = a.dtype is b.dtype and a.qscheme() == b.qscheme() and torch.equal(a.int_repr(), b.int_repr())
    return same and torch.equal(a.dequantize(), b.dequantize())
few = {"bits": torch.quantize_per_tensor(torch.arange(5.0), 1.0, 0, torch.quint4x2)}
state, target = quantized(1.0), quantized(2.0)
"""


def test_quantized_tensors(root):
    code = """
whole = {**state, **few, "weight": m}
for path in ("a", "a.safetensors", "a.pt"):
    ck.save(whole, path)
    back = ck.load(path)
    assert all(equals(back[k], whole[k]) for k in (*state, *few)) and torch.equal(back["weight"], m), path
ck.save(state, "b")
into = quantized(2.0)
assert ck.load_into(into, "b") == ([], []) and all(equals(into[k], state[k]) for k in state)
dcp.save({"model": whole}, checkpoint_id="d")
into = quantized(2.0)
dcp.load({"model": into}, checkpoint_id="d")
assert all(equals(into[k], state[k]) for k in state)
def refused(name, tensor, *words):
    refuses(lambda: ck.load_into({name: tensor}, "b", strict=False), RuntimeError, name, *words)
    kind = RuntimeError if tensor.is_quantized else ValueError
    refuses(lambda: dcp.load({"model": {name: tensor}}, checkpoint_id="d"), kind, name)
refused("tensor", torch.zeros(2, 3), "quantized")
refused("tensor", state["channel"], "same dtype")
refused("tensor", torch.quantize_per_tensor(torch.zeros(4), 0.1, 10, torch.quint8), "size mismatch")
# Tensors of less than 8 bits cannot be written to.
refuses(lambda: dcp.load({"model": dict(few)}, checkpoint_id="d"), RuntimeError, "bits", "cannot receive")
print("ok")
"""
    assert run(root, SETUP + QUANTIZED + code) == "ok\n"


def test_masked_tensors_are_refused_by_name(root):
    code = """
import warnings
warnings.simplefilter("ignore")
masked = torch.masked.masked_tensor(m, m > 1)
for tensor in (masked, masked.to_sparse()):
    for path in ("a", "a.safetensors"):
        refuses(lambda: ck.save({"x": tensor}, path), NotImplementedError, "MaskedTensor")
    ck.save({"x": m}, "b")
    refuses(lambda: ck.load_into({"x": tensor}, "b"), NotImplementedError, "MaskedTensor")
    refuses(lambda: dcp.save({"x": tensor}, checkpoint_id="d"), NotImplementedError, "MaskedTensor")
    dcp.save({"x": m}, checkpoint_id="e")
    refuses(lambda: dcp.load({"x": tensor}, checkpoint_id="e"), NotImplementedError, "MaskedTensor")
# Files in PyTorch's format can contain those with strided data.
refuses(lambda: ck.save({"x": masked.to_sparse()}, "a.pt"), NotImplementedError, "MaskedTensor", "sparse_coo")
trained = torch.masked.masked_tensor(m, m > 1, requires_grad=True)
ck.save({"x": masked, "y": [masked, trained]}, "a.pt")
back = ck.load("a.pt")
assert back["x"] is back["y"][0] and [t.requires_grad for t in back["y"]] == [False, True]
assert all(torch.equal(t.to_tensor(0), masked.to_tensor(0)) and torch.equal(t.get_mask(), m > 1) for t in back["y"])
# Data and masks can be stored.
ck.save({"data": masked.get_data(), "mask": masked.get_mask()}, "c")
back = ck.load("c")
assert torch.equal(torch.masked.masked_tensor(back["data"], back["mask"]).to_tensor(0), masked.to_tensor(0))
print("ok")
"""
    assert run(root, SETUP + code) == "ok\n"
