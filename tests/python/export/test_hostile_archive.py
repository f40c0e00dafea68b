"""torch.export.load of files that were made to run code, to reach outside the session or to exhaust memory."""

from __future__ import annotations

import importlib
import io
import json
import random
import zipfile

import pytest

WEIGHTS = "archive/data/weights/model_weights_config.json"
WEIGHT = "archive/data/weights/weight_0"
MODEL = "archive/models/model.json"
EXAMPLES = "archive/data/sample_inputs/model.pt"


_saved: dict[str, bytes] = {}


@pytest.fixture
def members(torch):
    """The members of a saved program."""
    if _saved:
        return dict(_saved)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.arange(4.0))
            self.register_buffer("b", torch.ones(4))

        def forward(self, x):
            return x * self.w + self.b

    buffer = io.BytesIO()
    batch = torch.export.Dim("batch", min=2, max=64)
    example = (torch.ones(3, 4),)
    torch.export.save(torch.export.export(Net(), example, dynamic_shapes=({0: batch},)), buffer)
    with zipfile.ZipFile(buffer) as archive:
        _saved.update((name, archive.read(name)) for name in archive.namelist())
    return dict(_saved)


def packed(members, compression=zipfile.ZIP_STORED):
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    result.seek(0)
    return result


def edited(members, member, change):
    """The members with one JSON member changed: change(data) may return another one."""
    data = json.loads(members[member])
    found = change(data)
    return {**members, member: json.dumps(data if found is None else found)}


def graph_edited(members, change):
    return edited(members, MODEL, lambda data: change(data["graph_module"]["graph"]))


def refused(torch, members, match=None, compression=zipfile.ZIP_STORED):
    with pytest.raises(RuntimeError, match=match) as raised:
        torch.export.load(packed(members, compression))
    assert not isinstance(raised.value, RecursionError)
    assert str(raised.value)


def renamed(old, new):
    """Replaces a name everywhere in a program."""

    def change(data):
        return json.loads(json.dumps(data).replace(json.dumps(old), json.dumps(new)))

    return change


NAMES = (
    'x=print("RUN")', 'x=open(PATH,"w")', 'x):\n    open(PATH,"w")\n    return 0\ndef q(self, x', "lambda", "x y", "", "1x", "é",
    "x" * 2000, "self", "torch", "*x", "x: open(PATH)",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_names_of_values(torch, members, tmp_path, name):
    path = tmp_path / "made"
    name = name.replace("PATH", repr(str(path)))
    for old in ("x", "mul"):
        refused(torch, edited(members, MODEL, renamed(old, name)))
    refused(torch, graph_edited(members, lambda g: g["nodes"][0].update(name=name, outputs=[])))

    def argument_names(data):
        data["graph_module"]["module_call_graph"][0]["signature"]["forward_arg_names"] = [name]

    refused(torch, edited(members, MODEL, argument_names))
    assert not path.exists()


@pytest.mark.parametrize("name", ['out=open(PATH,"w") ,z', "lambda", "foo", "self=1,z", "__class__"])
def test_keywords(torch, members, tmp_path, name):
    path = tmp_path / "made"
    added = {"name": name.replace("PATH", repr(str(path))), "arg": {"as_int": 1}, "kind": 2}
    refused(torch, graph_edited(members, lambda g: g["nodes"][0]["inputs"].append(added)), "keyword")
    assert not path.exists()


PATHS = (
    'w") if [print("RUN")] else (self,"w', "_parameters.x", "forward.__globals__.x", "__class__.x", "__class__", "forward", "training",
    "_modules.a.w", "a..w", ".w", "", "w\n", "a b", "a" + ".a" * 3000, "a" + ".a" * 100, "w'", 'a.w"', "a\\b", "_forward_pre_hooks.y",
)  # fmt: skip


@pytest.mark.parametrize("name", PATHS, ids=range(len(PATHS)))
def test_paths_of_tensors(torch, members, name):
    def weights(data):
        data["config"][name] = data["config"]["w"]

    def parameter(data):
        data["graph_module"]["signature"]["input_specs"][0]["parameter"]["parameter_name"] = name

    refused(torch, edited(members, WEIGHTS, weights), "name")
    refused(torch, edited(members, MODEL, parameter), "name")


def test_keys_of_a_module_dict(torch, tmp_path):
    net = torch.nn.Sequential(torch.nn.ModuleDict({"a-b": torch.nn.Linear(2, 2), "0": torch.nn.Linear(2, 2)}))

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, x):
            return self.net[0]["0"](self.net[0]["a-b"](x))

    x = torch.randn(3, 2)
    torch.export.save(torch.export.export(Net(), (x,)), tmp_path / "a.pt2")
    torch.testing.assert_close(torch.export.load(tmp_path / "a.pt2").module()(x), Net()(x))


TARGETS = (
    "torch.ops.__loader__.get_data", "torch.ops.__builtins__.eval", "torch.ops.__dict__.get", "torch.ops.aten.__getattr__",
    "torch.ops.aten.__getattribute__", "torch.ops.aten.mul.overloads", "torch.ops.aten.mul.__class__", "torch.ops.aten.mul._select",
    "torch.ops.aten.mul.__getattr__", "torch.ops._operator.OPERATORS", "torch.ops._dispatch.engine_packet", 
    "torch.ops.load_library.__call__",
    "torch.ops.registry.define", "torch.ops.higher_order.__class__", "torch.ops.aten.name.Tensor", 
    "torch.ops.profiler._record_function_enter",
    "torch.ops..", "torch.ops.aten", "os.system", "_operator.attrgetter", "_operator.__class__", "builtins.eval", "", None, ["a"], 3,
)  # fmt: skip
OUTSIDE = (
    "aten.from_file", "aten.from_file.default", "teletensor.checkpoint_read", "teletensor.checkpoint_write", "teletensor.group_all_reduce",
    "teletensor.group_create", "teletensor.store_serve", "teletensor.share_import", "teletensor.share_export", "teletensor.pull",
    "teletensor.pull_serve", "teletensor.publish", "teletensor.open_publication", "teletensor.opened_storage", "teletensor.run_program",
    "teletensor.define_program", "teletensor.hook", "teletensor.set_rng_state", "teletensor.backward", "teletensor.set_num_threads",
    "teletensor.memory_snapshot", "teletensor.profiler_start", "teletensor.uploaded",
)  # fmt: skip


@pytest.mark.parametrize("target", TARGETS, ids=range(len(TARGETS)))
def test_targets(torch, members, target):
    refused(torch, graph_edited(members, lambda g: g["nodes"][0].update(target=target)))


@pytest.mark.parametrize("target", OUTSIDE)
def test_operators_that_do_not_only_compute(torch, members, target):
    refused(torch, graph_edited(members, lambda g: g["nodes"][0].update(target=f"torch.ops.{target}")), "reaches outside|only compute")


def test_own_operators(torch, members):
    library = torch.library.Library("hostile_test", "DEF")
    library.define("twice(Tensor x, Tensor y) -> Tensor")
    library.impl("twice", lambda x, y: x * y * 2, "CompositeExplicitAutograd")
    program = graph_edited(members, lambda g: g["nodes"][0].update(target="torch.ops.hostile_test.twice.default"))
    found = torch.export.load(packed(program)).module()(torch.ones(3, 4))
    torch.testing.assert_close(found, torch.arange(4.0).expand(3, 4) * 2 + 1)


def ints(*values):
    return [{"as_int": v} for v in values]


LAYOUTS = (
    {"sizes": ints(400)}, {"strides": ints(1000)}, {"sizes": ints(2**40), "strides": ints(0)}, {"strides": ints(-1)},
    {"storage_offset": {"as_int": -4}}, {"storage_offset": {"as_int": 1}}, {"sizes": ints(2**62, 4), "strides": ints(4, 1)},
    {"sizes": ints(5), "strides": ints(2**62 + 1)}, {"sizes": ints(2**70)}, {"sizes": ints("4")}, {"sizes": ints(4.0)},
    {"sizes": ints(True)},
    {"strides": []}, {"dtype": 8}, {"dtype": 99}, {"dtype": "x"}, {"dtype": None}, {"device": {"type": "../x", "index": None}},
    {"device": {"type": "cuda", "index": "0:0"}}, {"sizes": 4}, {"sizes": None}, {"requires_grad": "yes"}, {"sizes": [{}]},
    {"sizes": ints(*[1] * 100), "strides": ints(*[1] * 100)}, {"sizes": ints(2**20, 2**20), "strides": ints(0, 0)},
)  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS, ids=range(len(LAYOUTS)))
def test_layouts(torch, members, layout):
    refused(torch, edited(members, WEIGHTS, lambda data: data["config"]["w"]["tensor_meta"].update(layout)))


@pytest.mark.parametrize("name", ["../../models/model.json", "/etc/passwd", "nothing", "", None, 3])
def test_members_of_weights(torch, members, name):
    refused(torch, edited(members, WEIGHTS, lambda data: data["config"]["w"].update(path_name=name)))


def test_compressed_members(torch, members):
    refused(torch, {**members, WEIGHT: bytes(8 << 20)}, "expected 16 bytes", zipfile.ZIP_DEFLATED)
    refused(torch, {**members, MODEL: b" " * (70 << 20)}, "at most", zipfile.ZIP_DEFLATED)
    refused(torch, members, "stored or deflated", zipfile.ZIP_BZIP2)
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(1 << 20))
    refused(torch, {**members, EXAMPLES: inner.getvalue()}, "without compression")
    found = torch.export.load(packed(members, zipfile.ZIP_STORED)).module()(torch.ones(3, 4))
    torch.testing.assert_close(found, torch.arange(1.0, 5.0).expand(3, 4))


def test_all_members_together(torch, members, monkeypatch):
    reader = importlib.import_module("teletensor.export._archive_reader")
    assert torch.export.load(packed(members, zipfile.ZIP_DEFLATED)) is not None
    monkeypatch.setattr(reader, "_UNPACKED", 1000)
    monkeypatch.setattr(reader, "_RATIO", 1)
    refused(torch, members, "fit into memory", zipfile.ZIP_DEFLATED)
    monkeypatch.setattr(reader, "_ENTRIES", 3)
    refused(torch, members, "at most 3 members")


def test_a_member_with_a_wrong_size(torch, members):
    raw = packed({**members, WEIGHT: bytes(1 << 20)}, zipfile.ZIP_DEFLATED).getvalue()
    refused_raw(torch, raw.replace((1 << 20).to_bytes(4, "little"), (16).to_bytes(4, "little")))


def refused_raw(torch, raw):
    with pytest.raises(RuntimeError):
        torch.export.load(io.BytesIO(raw))


@pytest.mark.parametrize("content", [
    b"[" * 200000 + b"]" * 200000, b"3", b"[]", b'{"a":', b"\xff\xfe{", b"1" * 10000, b"", b"{}", b"null",
], ids=range(9))  # fmt: skip
def test_json(torch, members, content):
    refused(torch, {**members, MODEL: content})
    refused(torch, {**members, WEIGHTS: content})


def test_damaged_archives(torch, members):
    raw = packed(members).getvalue()
    for content in (b"", b"PK\x03\x04", b"x" * 100, raw[: len(raw) // 2], raw[len(raw) // 2 :], raw[-200:]):
        refused_raw(torch, content)
    refused(torch, {**members, EXAMPLES: b"junk"}, "example inputs")
    with pytest.raises(RuntimeError, match="no member"):
        torch.export.load(packed(members), extra_files={"absent": ""})
    with pytest.raises(FileNotFoundError):
        torch.export.load("/nothing/a.pt2")


def spec(kind, context="null", children=()):
    return {"type": kind, "context": context, "children_spec": list(children)}


LEAF = spec(None, None)
FACTORY = {"default_factory_module": "os", "default_factory_name": "abort", "dict_context": ["a"]}
STRUCTURES = (
    "xx", "[1,", json.dumps([1, spec("os.system")]), json.dumps([1, spec("collections.namedtuple", '"os.system"')]), json.dumps([1, LEAF]),
    json.dumps([1, spec("collections.defaultdict", FACTORY, [LEAF])]),
    "[1," + '{"type":"builtins.list","context":"null","children_spec":[' * 9000 + "]}" * 9000 + "]",
    json.dumps([1, spec("builtins.tuple", "null", [spec("builtins.tuple"), spec("builtins.dict", '["x,print(3)"]', [LEAF])])]),
    3, None,
)  # fmt: skip


@pytest.mark.parametrize("structure", STRUCTURES, ids=range(len(STRUCTURES)))
def test_structures_of_arguments(torch, members, structure):
    def change(data):
        data["graph_module"]["module_call_graph"][0]["signature"]["in_spec"] = structure

    refused(torch, edited(members, MODEL, change))


@pytest.mark.parametrize("ranges", [
    {"s0": {"min_val": "x", "max_val": None}}, {"s0": {"min_val": 5, "max_val": 2}}, {"s 0": {"min_val": 1, "max_val": 2}}, {"s0": 3},
    [], 3,
    {"s0": {"min_val": 2**70, "max_val": None}}, {"s0": {}},
], ids=range(8))  # fmt: skip
def test_ranges(torch, members, ranges):
    refused(torch, edited(members, MODEL, lambda data: data.update(range_constraints=ranges)))


COMPARISONS = (
    "batch", "batch < 1 < 2", "batch <", "sym_min == 3", "sym_min(batch) == 3", "batch == other", "batch < 2.0", f"batch < {2**70}",
    "batch < __import__('os').getpid()", "batch < 1" + "*batch" * 100, "batch < " + "(" * 300 + "1" + ")" * 300,
    "batch < " + "-" * 4090 + "1", "[batch] == batch", "batch if batch else batch", "batch == 3 and batch == 3", 3, None, ["batch < 3"],
    "batch << 100 == 1", "batch ** batch == 1",
)  # fmt: skip


@pytest.mark.parametrize("text", COMPARISONS, ids=range(len(COMPARISONS)))
def test_comparisons(torch, members, text):
    name = MODEL.rpartition("models/")[0] + "extra/teletensor_comparisons.json"
    refused(torch, {**members, name: json.dumps({"comparisons": [text]})})
    program = torch.export.load(packed({**members, name: json.dumps({"comparisons": ["2*sym_min(batch, 7) <= batch"]})}))
    program.module()(torch.ones(15, 4))
    with pytest.raises(AssertionError, match="sym_min"):
        program.module()(torch.ones(13, 4))


TEXTS = ("(" * 300 + "a" + ")" * 300, "a" * 5000, "Symbol('a b')", "Integer(10**100)", "Add()", "Mul()", "-" * 4000, 3, None)


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_expressions(torch, members, text):
    def change(graph):
        graph["tensor_values"]["x"]["sizes"][0]["as_expr"]["expr_str"] = text

    try:  # what is no expression is an unknown size
        torch.export.load(packed(graph_edited(members, change)))
    except RuntimeError as e:
        assert not isinstance(e, RecursionError)


def test_a_subgraph_that_replaces_a_method(torch, members):
    def change(graph):
        inner = {**json.loads(json.dumps(graph))}
        call = {"name": "", "arg": {"as_graph": {"name": "forward", "graph": inner}}, "kind": 1}
        graph["nodes"].append({"target": "torch.ops.higher_order.cond", "inputs": [call], "outputs": [{"as_tensor": {"name": "zz"}}]})

    refused(torch, graph_edited(members, change), "subgraph")


def accepted(torch, raw):
    """Whether a file is loaded; then its program may only raise ordinary errors."""
    try:
        program = torch.export.load(io.BytesIO(raw))
    except RuntimeError as e:
        assert not isinstance(e, RecursionError)
        assert str(e)
        return False
    try:
        program.module()(torch.ones(3, 4))
    except Exception as e:
        assert str(e)
    return True


def test_changed_bytes(torch, members):
    generator, raw = random.Random(1), packed(members).getvalue()
    loaded = 0
    for _ in range(150):
        changed = bytearray(raw)
        changed[generator.randrange(len(raw))] = generator.randrange(256)
        loaded += accepted(torch, bytes(changed))
    assert loaded < 75


def _places(data, found):
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        found.append((data, key))
        if isinstance(value, (dict, list)):
            _places(value, found)
    return found


def test_changed_values(torch, members):
    generator = random.Random(2)
    values = (None, True, -1, 0, 2**63, 2**80, 1.5, "", "x", "__class__", 'x=print("RUN")', [], {}, [[]], {"as_int": 1}, {"as_name": "x"})
    loaded = 0
    for _ in range(150):
        member = generator.choice((MODEL, MODEL, WEIGHTS))
        data = json.loads(members[member])
        owner, key = generator.choice(_places(data, []))
        owner[key] = generator.choice(values)
        loaded += accepted(torch, packed({**members, member: json.dumps(data)}).getvalue())
    assert 0 < loaded < 150


@pytest.mark.parametrize("change", ["name", "count", "stack"])
def test_signatures_and_modules_of_a_file(torch, change):
    """Signatures of submodules and the names of modules are checked."""
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
    program = torch.export.export(module, (torch.randn(1, 3),), preserve_module_call_signature=("0",))
    content = io.BytesIO()
    torch.export.save(program, content)
    changed = io.BytesIO()
    with zipfile.ZipFile(content) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            text = old.read(name)
            if name.endswith("model.json"):
                data = json.loads(text)
                entry = next(e for e in data["graph_module"]["module_call_graph"] if e["fqn"] == "0")
                if change == "name":
                    entry["signature"]["inputs"][0]["as_tensor"]["name"] = "absent"
                elif change == "count":
                    entry["signature"]["outputs"] *= 2
                else:
                    data["graph_module"]["graph"]["nodes"][0]["metadata"]["nn_module_stack"] = "k,__class__.x,T"
                text = json.dumps(data).encode()
            new.writestr(name, text)
    changed.seek(0)
    with pytest.raises(RuntimeError, match={"name": "absent", "count": "structures", "stack": "path of names"}[change]):
        torch.export.unflatten(torch.export.load(changed))
