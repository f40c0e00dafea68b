"""Fuzzes teletensor.onnx.load: damaged models load or raise a documented error, within limits of time and memory.

    python -m tests.fuzz.onnx_fuzz --seconds 20 --seed 1

Half of the inputs have bytes changed, the others have fields of the message changed: names, sizes, attributes, versions,
repeated and removed nodes. Models that load are run once, if their inputs are small. Prints the number of inputs; exits
with 1 if an input failed otherwise, and keeps each such input in the folder --findings. If the process crashes, the input
is in `running.onnx` there.
"""

from __future__ import annotations

import random
import sys
import time
from typing import Any

from .load_fuzz import NUMBERS, SECONDS, with_mutated_bytes
from .mutated_files import run

# What a run may raise: errors of the engine and of operators with wrong arguments. load() raises less.
ALLOWED = ("ValueError", "TypeError", "NotImplementedError", "RuntimeError", "IndexError", "OverflowError", "MemoryError",
           "ZeroDivisionError", "UnicodeDecodeError", "OutOfMemoryError", "AxisError")  # fmt: skip


def seeds() -> list[bytes]:
    """Models with many kinds of nodes, control flow, functions, sparse and external data."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    from tests.conformance.onnx import random_graphs

    found = [random_graphs.make(seed, 12)[0].SerializeToString() for seed in range(20)]
    found.append(onnx.parser.parse_model("""
        <ir_version: 9, opset_import: ["" : 18, "own" : 1]>
        g (float[N] x) => (float[N] y) { t = own.scaled <factor = 3.0> (x)  y = own.scaled(t) }
        <domain: "own", opset_import: ["" : 18]>
        scaled <factor: float = 2.0> (a) => (b) { c = Constant <value_float: float = @factor> ()  b = Mul(a, c) }
    """).SerializeToString())  # fmt: skip
    tensor = TensorProto(name="w", dims=[4], data_type=1, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="w.bin")
    info = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Identity", ["w"], ["y"])], "g", [], [info], [tensor])
    import numpy as np

    graph.sparse_initializer.append(
        helper.make_sparse_tensor(
            numpy_helper.from_array(np.ones(1, np.float32), "s"),
            numpy_helper.from_array(np.zeros(1, np.int64), "i"),
            [5],
        )
    )
    found.append(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString())
    return found


def with_mutated_fields(data: bytes, rng: random.Random) -> bytes:
    """The model with some fields of its message changed."""
    import onnx

    try:
        model = onnx.ModelProto.FromString(data)
    except Exception:  # noqa: BLE001 - it was mutated before
        return data
    graph = model.graph
    for _ in range(rng.choice((1, 1, 2, 5))):
        action = rng.randrange(10)
        node = rng.choice(graph.node) if graph.node else None
        tensor = rng.choice(graph.initializer) if graph.initializer else None
        names = [n for x in graph.node for n in (*x.input, *x.output)] or ["x"]
        if action == 0 and node is not None and node.input:
            node.input[rng.randrange(len(node.input))] = rng.choice(names)
        elif action == 1 and node is not None and node.output:
            node.output[rng.randrange(len(node.output))] = rng.choice(names)
        elif action == 2 and node is not None:
            node.op_type = rng.choice(
                [x.op_type for x in graph.node] + ["Loop", "If", "Resize", "Conv", "TreeEnsemble", "NonZero"]
            )
        elif action == 3 and node is not None and node.attribute:
            attribute = rng.choice(node.attribute)
            if attribute.type == onnx.AttributeProto.INT:
                attribute.i = rng.choice((-1, -(2**63), *(n for n in NUMBERS if n < 2**63)))
            elif attribute.ints:
                attribute.ints[0] = rng.choice((-1, *(n for n in NUMBERS if n < 2**63)))
            else:
                attribute.type = rng.randrange(0, 15)
        elif action == 4 and tensor is not None and tensor.dims:
            tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice((-1, *(n for n in NUMBERS if n < 2**63)))
        elif action == 5 and tensor is not None:
            tensor.data_type = rng.randrange(0, 30)
        elif action == 6 and graph.node:
            graph.node.append(graph.node[0])
        elif action == 7 and graph.node:
            del graph.node[rng.randrange(len(graph.node))]
        elif action == 8 and model.opset_import:
            model.opset_import[0].version = rng.choice((0, 1, 5, 6, 7, 9, 10, 11, 12, 13, 18, 24, 28, 99))
        elif action == 9 and tensor is not None and tensor.raw_data:
            array = bytearray(tensor.raw_data)
            place = rng.randrange(len(array))
            array[place : place + 8] = rng.choice(NUMBERS).to_bytes(8, "little")[: len(array) - place]
            tensor.raw_data = bytes(array)
    return model.SerializeToString()


def mutations(originals: list[bytes], seed: int):
    """An endless stream of damaged models, determined by the seed."""
    rng = random.Random(seed)
    while True:
        data = rng.choice(originals)
        yield with_mutated_fields(data, rng) if rng.random() < 0.6 else with_mutated_bytes(data, rng)


def _is_large(data: bytes) -> bool:
    """Whether a model may make large results: it has large numbers among its constants and attributes.

    Constants that only Slice reads do not count: the ends of slices are limited to the size.
    """
    import onnx

    graph = onnx.ModelProto.FromString(data).graph
    numbers = [n for node in graph.node for a in node.attribute for n in (a.i, *a.ints)]
    read = {name for node in graph.node if node.op_type != "Slice" for name in node.input}
    for tensor in graph.initializer:
        if tensor.data_type in (onnx.TensorProto.INT64, onnx.TensorProto.INT32) and tensor.name in read:
            numbers += [int(n) for n in onnx.numpy_helper.to_array(tensor).reshape(-1)[:64]]
    return any(abs(n) > 50 for n in numbers)


def fault_of(torch, data: bytes) -> str | None:
    """The fault in how load or a run handles the model; None if there is none."""
    import numpy as np

    start = time.monotonic()
    allowed = ("ValueError", "TypeError", "NotImplementedError")
    try:
        loaded = torch.onnx.load(data)
        allowed = ALLOWED
        given = {}
        if _is_large(data):
            return None
        for name, (kind, dims) in loaded.inputs.items():
            shape = [d if isinstance(d, int) else 3 for d in dims or ()]
            if kind != 1 or int(np.prod(shape, dtype=object)) > 10_000:
                return None
            given[name] = np.ones(shape, np.float32)
        with torch.no_grad():
            for value in torch.utils._pytree.tree_leaves(loaded(given)):
                if isinstance(value, torch.Tensor):
                    value.sum().item() if value.dtype != torch.bool else value.numpy()
    except BaseException as e:  # noqa: BLE001 - what is not allowed is a finding
        if isinstance(e, KeyboardInterrupt):
            raise
        if type(e).__name__ not in allowed:
            return f"{type(e).__name__}: {e}"
    seconds = time.monotonic() - start
    return f"took {seconds:.1f} s" if seconds > SECONDS else None


def main() -> int:
    def loaded(torch: Any) -> list[bytes]:
        from teletensor.onnx.importer import _run

        originals = seeds()
        torch.onnx.load(originals[0])
        _run.MOST_NODES >>= 4  # a loop that never ends meets the limit after 2 s instead of 32
        return originals

    return run("onnx", ".onnx", __doc__.splitlines()[0], loaded, mutations, fault_of)


if __name__ == "__main__":
    sys.exit(main())
