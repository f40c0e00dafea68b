"""torch.export.save and load: round trips, and files of and for PyTorch."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import client_environment
from tests.python.export.modules import NAMES, cases
from tests.python.export.test_export import check_equal

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize("functional", [False, True], ids=["training", "functional"])
@pytest.mark.parametrize("name", NAMES)
def test_round_trip(torch, tmp_path, name, functional):
    case = cases(torch)[name]
    program = torch.export.export(case.module, case.arguments(4), dynamic_shapes=None if functional else case.dynamic)
    program = program.run_decompositions() if functional else program
    path = tmp_path / "program.pt2"
    torch.export.save(program, path, extra_files={"note.txt": "text"})
    extra = {"note.txt": ""}
    loaded = torch.export.load(path, extra_files=extra)
    assert extra["note.txt"] == "text"
    loaded.validate()
    assert str(loaded.graph_signature) == str(program.graph_signature)
    assert str(loaded.range_constraints) == str(program.range_constraints)
    assert loaded.state_dict.keys() == program.state_dict.keys()
    nodes = [[(n.name, n.op == "call_function" and str(n.target)) for n in p.graph.nodes if n.op != "get_attr"] for p in (loaded, program)]
    assert nodes[0] == nodes[1]
    check_equal(torch, loaded.example_inputs, program.example_inputs)
    for n in (4,) if functional else (4, 7):
        args = case.arguments(n)
        found, expected = loaded.module()(*args), program.module()(*args)
        check_equal(torch, found, expected)
    for (key, a), (_, b) in zip(loaded.named_buffers(), program.named_buffers()):
        torch.testing.assert_close(a, b, msg=key)
    if not functional:
        with pytest.raises(AssertionError, match="Guard failed"):
            loaded.module()(*case.arguments(65))


@pytest.mark.parametrize(("name", "stored"), [
    ("unk__214", "s_unk__214"), ("User", "s_User"), ("zf", "s_zf"), ("s_units", "s_s_units"), ("s_u0", "s_s_u0"),
    ("batch", "batch"), ("s_batch", "s_batch"), ("s0", "s0"),
])  # fmt: skip
def test_names_of_sizes_that_pytorch_takes_for_others(torch, name, stored):
    """PyTorch cannot read a file with a size "unk", because "u" begins its numbers that depend on values."""
    module = torch.nn.Linear(3, 2)
    program = torch.export.export(module, (torch.ones(4, 3),), dynamic_shapes=({0: torch.export.Dim(name, max=8)},))
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    with zipfile.ZipFile(buffer) as archive:
        (model,) = [json.loads(archive.read(n)) for n in archive.namelist() if n.endswith("models/model.json")]
    assert list(model["range_constraints"]) == [stored]
    tensors = model["graph_module"]["graph"]["tensor_values"].values()
    texts = [n["as_expr"]["expr_str"] for t in tensors for n in t["sizes"] if "as_expr" in n]
    assert len(texts) > 1 and all(f"Symbol('{stored}'," in text for text in texts)
    buffer.seek(0)
    loaded = torch.export.load(buffer)
    assert list(loaded.range_constraints) == [name]
    assert loaded.module()(torch.ones(7, 3)).shape == (7, 2)
    with pytest.raises(AssertionError, match=name):
        loaded.module()(torch.ones(9, 3))


@pytest.mark.parametrize("name", ["attention", "written"])
def test_files_of_pytorch(torch, name):
    """data/ contains programs of modules.py and their results, as PyTorch 2.15 wrote them, without stack traces."""
    program = torch.export.load(DATA / f"{name}.pt2")
    args, kwargs = program.example_inputs
    expected = torch.load(DATA / f"{name}.pt")
    found = [x.detach() for x in torch.utils._pytree.tree_leaves(program.module()(*args, **kwargs))]
    check_equal(torch, found, expected)
    (symbol,) = program.range_constraints
    case = cases(torch)[name]
    program.module()(*case.arguments(9))
    with pytest.raises(AssertionError, match=f"{symbol} of"):
        program.module()(*case.arguments(65))


def test_control_flow_and_dtypes(torch):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.randn(3, 2).bfloat16().t())
            self.register_buffer("flags", torch.tensor([True, False, True]))

        def forward(self, x, n):
            y = torch.where(self.flags, x, (x * self.scale.sum(0)).to(torch.float32)) + n
            return torch.cond(y.sum() > 0, lambda y: y.cos(), lambda y: y - 1, (y,))

    net = Net()
    buffer = io.BytesIO()
    torch.export.save(torch.export.export(net, (torch.randn(3), 2)), buffer)
    buffer.seek(0)
    loaded = torch.export.load(buffer)
    for x in (torch.ones(3), -torch.ones(3) * 9):
        check_equal(torch, loaded.module()(x, 2), net(x, 2))
    assert torch.equal(loaded.state_dict["scale"], net.scale)


@pytest.mark.parametrize("name", ["linear", "var", "interpolate"])
def test_dynamic_sizes_after_decompositions(torch, name):
    class Function(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 2)

        def forward(self, x):
            if name == "linear":
                return self.linear(x)
            return x.var(0) if name == "var" else torch.nn.functional.interpolate(x[None], scale_factor=2.0)

    module, batch = Function(), torch.export.Dim("batch", min=2, max=64)
    program = torch.export.export(module, (torch.randn(4, 3),), dynamic_shapes=({0: batch},)).run_decompositions()
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    buffer.seek(0)
    loaded = torch.export.load(buffer).module()
    for n in (2, 9, 64):
        x = torch.randn(n, 3)
        torch.testing.assert_close(loaded(x), module(x))


def test_shared_memory(torch):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            values = torch.arange(100.0)
            for name, tensor in {
                "a": values[50:56], "c": values[53:60], "t": values[50:56].view(2, 3).t(), "same": values[51:53],
                "alone": torch.arange(9.0)[2:4], "wide": torch.ones(1).expand(5),
            }.items():  # fmt: skip
                self.register_buffer(name, tensor)
            self.register_buffer("again", self.a)

        def forward(self, x):
            self.a.add_(x)
            return self.c + 1, self.t + 1, self.same + 1, self.alone + 1, self.wide + 1, self.again + 1

    buffer = io.BytesIO()
    torch.export.save(torch.export.export(Net(), (torch.ones(6),)), buffer)
    sizes = {i.filename: i.file_size for i in zipfile.ZipFile(buffer).infolist() if "weights/weight_" in i.filename}
    assert sorted(sizes.values()) == [8, 20, (60 - 48) * 4]
    buffer.seek(0)
    loaded, net = torch.export.load(buffer).module(), Net()
    for _ in range(2):
        check_equal(torch, loaded(torch.ones(6)), net(torch.ones(6)))
    assert loaded.a.untyped_storage().data_ptr() == loaded.c.untyped_storage().data_ptr()
    net.other = torch.nn.Buffer(net.a.view(torch.int32))
    with pytest.raises(NotImplementedError, match="different dtypes"):
        torch.export.save(torch.export.export(net, (torch.ones(6),)), buffer)


def changed(path, member, change):
    """The archive with one JSON member changed."""
    result = io.BytesIO()
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(result, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if name.endswith(member):
                data = json.loads(content)
                change(data)
                content = json.dumps(data)
            target.writestr(name, content)
    result.seek(0)
    return result


def test_what_is_refused(torch, tmp_path):
    path = tmp_path / "a.pt2"
    torch.export.save(torch.export.export(torch.nn.Linear(2, 2), (torch.randn(1, 2),)), path)

    def unknown(data):
        data["graph_module"]["graph"]["nodes"][0]["target"] = "torch.ops.other.linear.default"

    def outside(data):
        data["graph_module"]["graph"]["nodes"][0]["target"] = "os.system"

    for change in (unknown, outside):
        with pytest.raises(NotImplementedError, match="does not exist here"):
            torch.export.load(changed(path, "models/model.json", change))
    with pytest.raises(RuntimeError, match="schema version"):
        torch.export.load(changed(path, "models/model.json", lambda d: d["schema_version"].update(major=7)))
    with pytest.raises(NotImplementedError, match="pickled"):
        torch.export.load(changed(path, "weights_config.json", lambda d: d["config"]["weight"].update(use_pickle=True)))
    with pytest.raises(RuntimeError, match=r"expected a \.pt2 archive"):
        torch.export.load(io.BytesIO(b"nothing"))
    with pytest.raises(TypeError, match="ExportedProgram"):
        torch.export.save(torch.nn.Linear(2, 2), path)


def test_names_in_the_graph_are_unique_and_operators_pytorchs(torch):
    """A call of several results has another name than each of them, which PyTorch requires."""

    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.nn.functional.adaptive_max_pool2d(torch.nn.functional.pad(x, (1, 1, 2, 0), mode="reflect"), (2, 2))

    buffer = io.BytesIO()
    torch.export.save(torch.export.export(Model(), (torch.ones(1, 2, 6, 6),)), buffer)
    archive = zipfile.ZipFile(buffer)
    text = next(archive.read(n) for n in archive.namelist() if n.endswith("models/model.json"))
    nodes = json.loads(text)["graph_module"]["graph"]["nodes"]
    assert [n["target"] for n in nodes] == ["torch.ops.aten.pad.default", "torch.ops.aten.adaptive_max_pool2d.default"]
    several = nodes[1]
    results = [o["as_tensor"]["name"] for o in several["outputs"]]
    assert len({several["name"], *results}) == 3


def test_loading_needs_no_export_before(torch, tmp_path):
    """The operators of higher order exist in a process that has only loaded a program."""
    def forward(x):
        y = x * 2
        with torch.no_grad():
            y = y + 1
        return y * 3

    module = torch.nn.Module()
    module.forward = forward
    torch.export.save(torch.export.export(module, (torch.ones(2),)), tmp_path / "program.pt2")
    script = "import sys, teletensor as torch; print(torch.export.load(sys.argv[1]).module()(torch.ones(2)).tolist())"
    command = [sys.executable, "-c", script, tmp_path / "program.pt2"]
    done = subprocess.run(command, env=client_environment(), capture_output=True, text=True)
    assert done.stdout.strip() == "[9.0, 9.0]", done.stderr
