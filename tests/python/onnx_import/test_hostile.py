"""Models that are invalid or hostile are refused with an error that names the reason, before much memory is used."""

from __future__ import annotations

import resource

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import teletensor as torch

from .graphs import model


def with_initializer(tensor: TensorProto) -> onnx.ModelProto:
    info = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Identity", [tensor.name], ["y"])], "g", [], [info], [tensor])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def of_nodes(*nodes: onnx.NodeProto, output: str = "y", functions=()) -> onnx.ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N"])],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
    )
    return helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("own", 1)],
        functions=list(functions),
        ir_version=9,
    )


def function(name: str, *calls: str) -> onnx.FunctionProto:
    nodes, last = [], "a"
    for i, call in enumerate(calls):
        nodes.append(helper.make_node(call, [last], [f"t{i}"], domain="own" if call.startswith("f") else ""))
        last = f"t{i}"
    return helper.make_function(
        "own", name, ["a"], [last], nodes, [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    )


def raw(dims: list[int], data: bytes, kind: int = TensorProto.FLOAT) -> TensorProto:
    return TensorProto(name="w", dims=dims, data_type=kind, raw_data=data)


INVALID = {
    "a cycle": (lambda: of_nodes(helper.make_node("Abs", ["b"], ["a"]), helper.make_node("Abs", ["a"], ["b"]), output="a"), "cycle"),
    "a node that reads its own output": (lambda: of_nodes(helper.make_node("Abs", ["y"], ["y"])), "cycle"),
    "an unknown name": (lambda: of_nodes(helper.make_node("Abs", ["nothing"], ["y"])), "'nothing'"),
    "a value computed twice": (lambda: of_nodes(helper.make_node("Abs", ["x"], ["y"]), helper.make_node("Neg", ["x"], ["y"])), "once"),
    "an output that nothing computes": (lambda: of_nodes(helper.make_node("Abs", ["x"], ["z"])), "computes the output 'y'"),
    "too little data": (lambda: with_initializer(raw([4], b"\0" * 12)), "expected 16 bytes"),
    "huge sizes without data": (lambda: with_initializer(raw([1 << 20, 1 << 20], b"")), "expected 4398046511104 bytes"),
    "sizes whose product overflows": (lambda: with_initializer(raw([1 << 62, 1 << 62], b"")), "fits memory"),
    "a negative size": (lambda: with_initializer(raw([-4], b"\0" * 16)), "sizes of at least 0"),
    "many dimensions": (lambda: with_initializer(raw([1] * 1000, b"\0" * 4)), "at most 64 sizes"),
    "an unknown element type": (lambda: with_initializer(raw([1], b"\0" * 4, 99)), "element type"),
    "an attribute of another type": (
        lambda: of_nodes(helper.make_node("Loop", ["", "", "x"], ["y"], body=[1, 2])),
        "'body' of type GRAPH, got INTS",
    ),
    "a missing input": (lambda: of_nodes(helper.make_node("Conv", ["x", ""], ["y"])), "expected the input 'W'"),
    "too few inputs": (lambda: of_nodes(helper.make_node("Conv", ["x"], ["y"])), "expected 2 to 3 inputs, the node has 1"),
    "no operator set": (lambda: onnx.ModelProto(graph=onnx.GraphProto(name="g"), ir_version=9), "opset_import"),
    "a function that calls itself": (lambda: of_nodes(helper.make_node("f", ["x"], ["y"], domain="own"), functions=[function("f", "f")]),
                                     "nested at most"),
    "functions that grow exponentially": (
        lambda: of_nodes(
            helper.make_node("f0", ["x"], ["y"], domain="own"),
            functions=[*(function(f"f{i}", f"f{i + 1}", f"f{i + 1}") for i in range(18)), function("f18", "Abs")],
        ),
        "nodes, with functions expanded",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", INVALID)
def test_an_invalid_model_is_refused(name):
    make, text = INVALID[name]
    with pytest.raises((ValueError, TypeError), match=text):
        torch.onnx.load(make())


@pytest.mark.parametrize("data", [b"", b"text", b"\x08\x09" * 50, b"\xff" * 100])
def test_bytes_that_are_no_model(data):
    with pytest.raises(ValueError, match=r"\[onnx.load\]"):
        torch.onnx.load(data)


def test_deeply_nested_graphs_are_refused():
    info = helper.make_tensor_value_info("r", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["r"])], "g", [], [info])
    for _ in range(28):
        graph = helper.make_graph([helper.make_node("If", ["c"], ["r"], then_branch=graph)], "g", [], [info])
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [1]),
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
    ]
    top = helper.make_graph(graph.node, "g", inputs, [info])
    with pytest.raises(ValueError, match="nested at most"):
        torch.onnx.load(helper.make_model(top, opset_imports=[helper.make_opsetid("", 18)]))


def external(location: str, *, size: int = 16, **entries: str) -> onnx.ModelProto:
    tensor = TensorProto(name="w", dims=[size // 4], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=value)
    return with_initializer(tensor)


@pytest.mark.parametrize(
    ("location", "text"),
    [
        ("../secret", "in the model's folder"),
        ("/etc/passwd", "in the model's folder"),
        ("sub/../../secret", "in the model's folder"),
        ("..\\secret", "in the model's folder"),
        ("C:/secret", "in the model's folder"),
        ("link", "symbolic link"),
        ("linked/secret", "symbolic link"),
        ("missing", "there is none"),
        ("", "in the model's folder"),
        ("folder", "there is none"),
    ],
)
def test_external_data_outside_the_folder(tmp_path, location, text):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "folder").mkdir()
    (tmp_path / "secret").write_bytes(b"\0" * 16)
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "linked").symlink_to(tmp_path)
    (folder / "m.onnx").write_bytes(external(location).SerializeToString())
    with pytest.raises(ValueError, match=text):
        torch.onnx.load(folder / "m.onnx")


@pytest.mark.parametrize(
    "entries", [{"offset": "8"}, {"offset": "-4"}, {"length": "4"}, {"offset": "x"}, {"length": "1000000000000"}]
)
def test_external_data_beyond_the_file(tmp_path, entries):
    (tmp_path / "w").write_bytes(b"\0" * 16)
    (tmp_path / "m.onnx").write_bytes(external("w", **entries).SerializeToString())
    with pytest.raises(ValueError, match="offset"):
        torch.onnx.load(tmp_path / "m.onnx")


def sparse(count: int) -> onnx.ModelProto:
    values = numpy_helper.from_array(np.ones(1, np.float32), "w")
    proto = helper.make_sparse_tensor(values, numpy_helper.from_array(np.zeros(1, np.int64), "i"), [count])
    info = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Identity", ["w"], ["y"])], "g", [], [info])
    graph.sparse_initializer.append(proto)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def test_little_data_does_not_become_much_memory():
    """A sparse tensor, and a function whose constant is repeated by each of its calls."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match="mostly empty"):
        torch.onnx.load(sparse(1 << 34))
    constant = numpy_helper.from_array(np.zeros(1 << 18, np.float32), "c")
    body = helper.make_function(
        "own", "f", ["a"], ["b"],
        [helper.make_node("Constant", [], ["c"], value=constant), helper.make_node("Add", ["a", "c"], ["b"])],
        [helper.make_opsetid("", 18)],
    )  # fmt: skip
    nodes = [helper.make_node("f", ["x" if i == 0 else f"v{i}"], [f"v{i + 1}"], domain="own") for i in range(2000)]
    with pytest.raises(ValueError, match="times the model's size"):
        torch.onnx.load(of_nodes(*nodes, output="v2000", functions=[body]))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20  # KiB


@pytest.mark.parametrize(
    "text",
    [
        "g () => (float[N] y) { s = Constant <value_ints = [1000000000000]> ()  o = Constant <value_ints = [1]> ()  y = Expand(o, s) }",
        "g () => (float[N] y) { s = Constant <value_int = 1000000000000> ()  y = HannWindow(s) }",
        "g () => (int64[N] y) { o = Constant <value_ints = [1]> ()  s = Constant <value_ints = [1000000000000]> ()  y = Tile(o, s) }",
        "g () => (int64[N] y) { a = Constant <value_int = 0> ()  b = Constant <value_int = 1000000000000> ()\n"
        "c = Constant <value_int = 1> ()  y = Range(a, b, c) }",
    ],
)
def test_huge_results_are_refused_by_the_client(text):
    loaded = torch.onnx.load(model(text))
    with pytest.raises(ValueError, match="elements in the client"):
        loaded()


def test_a_huge_tensor_is_refused_by_the_engine():
    loaded = torch.onnx.load(
        model("g () => (float[N] y) { s = Constant <value_ints = [100000000, 100000000]> ()  y = ConstantOfShape(s) }")
    )
    with pytest.raises((RuntimeError, MemoryError)):
        loaded().sum().item()


LOOP = (
    "g (float[1] x) => (float[1] y) { c = Constant <value_int = COUNT> ()\n"
    "y = Loop (c, , x) <body = b (int64 i, bool k, float[1] v) => (bool ko, float[1] vo) { ko = Identity(k)  INNER }> }"
)
NESTED = (
    "n = Constant <value_int = 1000000> ()  vo = Loop (n, , v) <body = b2 (int64 i2, bool k2, float[1] u) => "
    "(bool k3, float[1] uo) { k3 = Identity(k2)  uo = Identity(u) }>"
)


@pytest.mark.parametrize(
    ("count", "inner"),
    [(1 << 40, "vo = Identity(v)"), ((1 << 24) - 1, "vo = Identity(v)"), (1000, NESTED)],
    ids=["iterations", "nodes", "nested"],
)
def test_loops_that_would_not_end_are_refused(count, inner, monkeypatch):
    monkeypatch.setattr("teletensor.onnx.importer._run.MOST_NODES", 1000)
    loaded = torch.onnx.load(model(LOOP.replace("COUNT", str(count)).replace("INNER", inner)))
    with pytest.raises(ValueError, match="at most"), torch.no_grad():
        loaded(torch.ones(1))


def test_a_loop_without_a_count_is_refused(monkeypatch):
    monkeypatch.setattr("teletensor.onnx.importer._run.MOST_NODES", 1000)
    text = LOOP.replace("Loop (c, , x)", "Loop ( , , x)").replace("COUNT", "1").replace("INNER", "vo = Identity(v)")
    with pytest.raises(ValueError, match="executes at most"), torch.no_grad():
        torch.onnx.load(model(text))(torch.ones(1))


def constants(text: str, **shapes: list[int]) -> onnx.ModelProto:
    """A model with initializers of ones."""
    proto = model(text)
    proto.graph.initializer.extend(numpy_helper.from_array(np.ones(s, np.int64), n) for n, s in shapes.items())
    return proto


GROWING = {
    "broadcasting": ("g () => (int64[N] y) { c = Mul(a, b)  y = Shape(c) }", {"a": [60000, 1], "b": [1, 60000]}),
    "three inputs": ("g () => (int64[N] y) { c = Max(a, b, d)  y = Shape(c) }",
                     {"a": [2000, 1, 1], "b": [1, 2000, 1], "d": [1, 1, 2000]}),
    "gathering": ("g () => (int64[N] y) { c = Gather(a, b)  y = Shape(c) }", {"a": [1, 60000], "b": [60000]}),
}  # fmt: skip


@pytest.mark.parametrize("name", GROWING)
def test_constants_do_not_grow_in_the_client(name, monkeypatch):
    """The client would need gigabytes; the engine may refuse."""
    text, shapes = GROWING[name]
    seen = []
    from teletensor.onnx.importer.ops.client import CLIENT

    for op in ("Mul", "Max", "Gather"):
        monkeypatch.setitem(CLIENT, op, lambda call, *inputs: seen.append(call.name))
    from teletensor.onnx.importer.ops.client import is_small

    loaded = torch.onnx.load(constants(text, **shapes))
    step = loaded._plan.steps[0]
    assert not is_small(step.op, [np.ones(s, np.int64) for s in shapes.values()])
    assert not step._is_for_client([np.ones(s, np.int64) for s in shapes.values()]) and not seen


@pytest.mark.parametrize(
    "text",
    [
        "g (float[1,1,1,1] x) => (float[N,M,K,L] y) { s = Constant <value_ints = [1, 1, 1, 1000000000000]> ()\n"
        "y = Resize <mode = \"nearest\"> (x, , , s) }",
        "g (float[1,1,1,1] x) => (float[N,M,K,L] y) { p = Constant <value_ints = [0, 0, 0, 0, 0, 0, 0, 1000000000000]> ()\n"
        "y = Pad <mode = \"edge\"> (x, p) }",
        "g (float[1,1,1,1] x) => (float[N,M,K,L] y) {\n"
        "y = AveragePool <kernel_shape = [1, 2], pads = [0, 0, 0, 1000000000000]> (x) }",
    ],
    ids=["Resize", "Pad", "AveragePool"],
)
def test_huge_attributes_are_refused(text):
    with pytest.raises((ValueError, RuntimeError), match="elements|memory|bytes|limit"):
        torch.onnx.load(model(text))(torch.ones(1, 1, 1, 1))


def doubling(op: str, times: int) -> str:
    """A string, or an array of one, that each node doubles."""
    join = "Concat <axis = 0>" if op == "Concat" else op
    nodes = "\n".join(f"t{i + 1} = {join} (t{i}, t{i})" for i in range(times))
    return f'g () => (int64[N] y) {{ t0 = Constant <value_strings = ["0123456789"]> ()\n{nodes}\ny = Shape(t{times}) }}'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (doubling("StringConcat", 60), "characters"),
        (doubling("Concat", 60), "strings"),
        (
            'g () => (int64[N] y) { a = Constant <value_strings = ["a b c"]> ()  s = Constant <value_ints = [60000]> ()\n'
            "b = Expand(a, s)  c, d = StringSplit(b)  e, f = StringSplit(b)\n"
            "p = Constant <value_ints = [60000, 1]> ()  h = Reshape(b, p)  z = StringConcat(b, h)  y = Shape(z) }",
            "characters|elements",
        ),
        (
            "g () => (float[N] y) { a = Constant <value_ints = [1, 2, 3]> ()\n"
            'y = TfIdfVectorizer <min_gram_length = 1, max_gram_length = 1000000000000000, max_skip_count = 1000000000000,\n'
            'mode = "TF", ngram_counts = [0], ngram_indexes = [0, 1, 2], pool_int64s = [1, 2, 3]> (a) }',
            None,
        ),
        (
            "g (float[1,1,4,4] x, float[1,4] r) => (float[N,M,K,L] y) { b = Constant <value_ints = [0]> ()\n"
            "y = RoiAlign <output_height = 1, output_width = 1> (x, r, b) }",
            "RoiAlign",
        ),
        (
            "g (float[1] x) => (float[N] y) { s = Constant <value_ints = [100000000]> ()  e = Expand(x, s)\n"
            "q = SplitToSequence(e)  y = ConcatFromSequence <axis = 0> (q) }",
            "executes at most",
        ),
    ],
    ids=["StringConcat", "Concat", "StringSplit", "TfIdfVectorizer", "RoiAlign", "SplitToSequence"],
)
def test_little_becomes_neither_much_text_nor_much_time(text, expected):
    loaded = torch.onnx.load(model(text, 20))
    inputs = {"x": torch.ones([1, 1, 4, 4] if "RoiAlign" in text else [1]), "r": torch.tensor([[0.0, 0.0, 1e12, 1e12]])}
    given = {n: v for n, v in inputs.items() if n in loaded.input_names}
    if expected is None:
        assert loaded(given).tolist() == [1.0, 1.0, 1.0]
        return
    with pytest.raises(ValueError, match=expected):
        loaded(given)


def test_scanned_inputs_of_different_lengths_are_refused():
    text = (
        "g (float[N] a, float[M] b) => (float[K] y) { y = Scan <num_scan_inputs = 2, body = s (float u, float v) => (float w) "
        "{ w = Add(u, v) }> (a, b) }"
    )
    loaded = torch.onnx.load(model(text))
    assert loaded(torch.ones(3), torch.ones(3)).tolist() == [2.0] * 3
    with pytest.raises(ValueError, match="equal lengths"):
        loaded(torch.ones(2), torch.ones(3))


def test_names_that_differ_in_punctuation_only_take_little_time():
    """Names of weights become attributes; 5,000 of them become one identifier."""
    count = 5000
    names = ["w" + "".join(".-+/"[(i >> 2 * b) & 3] for b in range(7)) for i in range(count)]
    nodes = [helper.make_node("Mul", [f"t{i}" if i else "x", n], [f"t{i + 1}"]) for i, n in enumerate(names)]
    proto = of_nodes(*nodes, output=f"t{count}")
    proto.graph.initializer.extend(numpy_helper.from_array(np.ones(1, np.float32), n) for n in names)
    found = torch.onnx.load(proto).weight_names()
    assert list(found) == names and len(set(found.values())) == count
    assert all(len(key) < 16 for key in found.values())
