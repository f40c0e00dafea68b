"""Random ONNX graphs, run by onnxruntime and teletensor: single calls and a Program.

    python -m tests.conformance.onnx.random_graphs --graphs 500 --seed 1

Prints each graph whose outputs differ, and exits with 1 if there is one.
"""

from __future__ import annotations

import argparse
import random
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSETS = (11, 12, 13, 15, 17, 18, 21, 22)
UNARY = ("Abs", "Neg", "Relu", "Sigmoid", "Tanh", "Exp", "Erf", "Softplus", "Softsign", "Ceil", "Floor", "Round", "Sign", "Sin", "Cos",
         "Elu", "Selu", "LeakyRelu", "HardSigmoid", "HardSwish", "Celu", "ThresholdedRelu", "Sqrt", "Reciprocal", "Identity")  # fmt: skip
REDUCTIONS = (
    "ReduceSum",
    "ReduceMean",
    "ReduceMax",
    "ReduceMin",
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSumExp",
    "ReduceSumSquare",
    "ReduceProd",
)


class Graph:
    """A graph under construction: values of float32, with their sizes for a batch of 3."""

    def __init__(self, seed: int) -> None:
        self.rng, self.numbers = random.Random(seed), np.random.default_rng(seed)
        self.opset = self.rng.choice(OPSETS)
        self.nodes, self.initializers, self.values, self.count = [], [], [], 0
        rank = self.rng.choice((2, 3, 4))
        self.shape = (3, *(self.rng.choice((1, 2, 4, 5, 6)) for _ in range(rank - 1)))
        self.values.append(("x", self.shape))

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def constant(self, array: np.ndarray) -> str:
        name = self.name()
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def ints(self, *numbers: int) -> str:
        return self.constant(np.asarray(numbers, np.int64))

    def floats(self, *shape: int) -> str:
        return self.constant(self.numbers.standard_normal(shape).astype(np.float32))

    def node(self, op: str, inputs: list[str], outputs: int = 1, **attributes) -> list[str]:
        names = [self.name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names

    def add(self, op: str, inputs: list[str], shape: tuple, **attributes) -> None:
        self.values.append((self.node(op, inputs, **attributes)[0], tuple(shape)))

    def pick(self, least: int = 1) -> tuple[str, tuple] | None:
        fitting = [v for v in self.values[-6:] if len(v[1]) >= least and 0 < int(np.prod(v[1])) <= 4000]
        return self.rng.choice(fitting) if fitting else None

    # One method per kind of node.
    def unary(self) -> None:
        name, shape = self.pick(0) or self.values[0]
        op = self.rng.choice(UNARY)
        if op == "Sqrt":
            name = self.node("Abs", [name])[0]
        if op == "Reciprocal":
            name = self.node("Add", [self.node("Abs", [name])[0], self.constant(np.float32(1.0))])[0]
        if op == "Exp":
            name = self.node("Tanh", [name])[0]
        if op == "HardSwish" and self.opset < 14 or op == "Celu" and self.opset < 12:
            return
        self.add(op, [name], shape)

    def binary(self) -> None:
        name, shape = self.pick(0) or self.values[0]
        other = tuple(self.rng.choice((1, n)) for n in shape)[self.rng.randrange(len(shape) + 1) if shape else 0 :]
        op = self.rng.choice(("Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu"))
        right = self.floats(*other)
        if op == "Div":
            right = self.node("Add", [self.node("Abs", [right])[0], self.constant(np.float32(0.5))])[0]
        self.add(op, [name, right], shape)

    def compare(self) -> None:
        name, shape = self.pick(0) or self.values[0]
        op = self.rng.choice(
            ("Greater", "Less", "Equal", *(("GreaterOrEqual", "LessOrEqual") if self.opset >= 12 else ()))
        )
        condition = self.node(op, [name, self.constant(np.float32(0.1))])[0]
        if self.rng.random() < 0.3:
            condition = self.node("Not", [condition])[0]
        self.add("Where", [condition, name, self.floats(1)], shape or (1,))

    def matmul(self) -> None:
        name, shape = self.pick(1) or self.values[0]
        n = self.rng.choice((1, 3, 4))
        self.add("MatMul", [name, self.floats(shape[-1], n)], (*shape[:-1], n))

    def gemm(self) -> None:
        name, shape = self.pick(2) or self.values[0]
        if len(shape) != 2:
            return
        n, turned = self.rng.choice((2, 5)), self.rng.randrange(2)
        weight = self.floats(n, shape[1]) if turned else self.floats(shape[1], n)
        self.add(
            "Gemm",
            [name, weight, self.floats(n)],
            (shape[0], n),
            transB=turned,
            alpha=self.rng.choice((1.0, 0.5)),
            beta=self.rng.choice((1.0, 2.0)),
        )

    def transpose(self) -> None:
        name, shape = self.pick(2) or self.values[0]
        order = list(range(len(shape)))
        self.rng.shuffle(order)
        self.add("Transpose", [name], [shape[i] for i in order], perm=order)

    def reshape(self) -> None:
        """By sizes that the graph computes: Shape, Gather, Concat."""
        name, shape = self.pick(2) or self.values[0]
        sizes = self.node("Shape", [name])[0]
        first = self.node("Gather", [sizes, self.ints(0)], axis=0)[0]
        target = self.node("Concat", [first, self.ints(-1)], axis=0)[0]
        self.add("Reshape", [name, target], (shape[0], int(np.prod(shape[1:]))))

    def flatten(self) -> None:
        name, shape = self.pick(1) or self.values[0]
        axis = self.rng.randrange(len(shape) + 1)
        self.add("Flatten", [name], (int(np.prod(shape[:axis])), int(np.prod(shape[axis:]))), axis=axis)

    def squeeze(self) -> None:
        name, shape = self.pick(0) or self.values[0]
        axis = self.rng.randrange(len(shape) + 1)
        old = self.opset < 13  # the axes are attributes
        wide = (
            self.node("Unsqueeze", [name], axes=[axis])[0]
            if old
            else self.node("Unsqueeze", [name, self.ints(axis)])[0]
        )
        shape = (*shape[:axis], 1, *shape[axis:])
        if self.rng.random() < 0.5:
            found = (*shape[:axis], *shape[axis + 1 :])
            if old:
                self.add("Squeeze", [wide], found, axes=[axis])
            else:
                self.add("Squeeze", [wide, self.ints(axis)], found)
        elif len(shape) < 5:
            self.values.append((wide, shape))

    def slices(self) -> None:
        name, shape = self.pick(1) or self.values[0]
        axis = self.rng.randrange(len(shape))
        start, end, step = self.rng.randrange(-3, 3), self.rng.choice((-1, 2, 5, 2**31)), self.rng.choice((1, 1, 2))
        size = len(range(shape[axis])[start:end:step])
        if size == 0 or axis == 0:
            return
        self.add(
            "Slice",
            [name, self.ints(start), self.ints(end), self.ints(axis), self.ints(step)],
            (*shape[:axis], size, *shape[axis + 1 :]),
        )

    def gather(self) -> None:
        name, shape = self.pick(2) or self.values[0]
        axis = self.rng.randrange(1, len(shape))
        places = [self.rng.randrange(-shape[axis], shape[axis]) for _ in range(3)]
        self.add("Gather", [name, self.ints(*places)], (*shape[:axis], 3, *shape[axis + 1 :]), axis=axis)

    def concat(self) -> None:
        name, shape = self.pick(2) or self.values[0]
        axis = self.rng.randrange(1, len(shape))
        other = self.node("Mul", [name, self.constant(np.float32(2.0))])[0]
        self.add("Concat", [name, other], (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :]), axis=axis)

    def split(self) -> None:
        name, shape = self.pick(2) or self.values[0]
        axis = self.rng.randrange(1, len(shape))
        if shape[axis] < 2:
            return
        if self.opset < 13:
            parts = self.node("Split", [name], 2, axis=axis, split=[1, shape[axis] - 1])
        else:
            parts = self.node("Split", [name, self.ints(1, shape[axis] - 1)], 2, axis=axis)
        self.values += [
            (parts[0], (*shape[:axis], 1, *shape[axis + 1 :])),
            (parts[1], (*shape[:axis], shape[axis] - 1, *shape[axis + 1 :])),
        ]

    def reduce(self) -> None:
        name, shape = self.pick(2) or self.values[0]
        op, axis, keep = self.rng.choice(REDUCTIONS), self.rng.randrange(1, len(shape)), self.rng.randrange(2)
        found = (*shape[:axis], *((1,) if keep else ()), *shape[axis + 1 :])
        if op == "ReduceSum" and self.opset >= 13 or self.opset >= 18:
            self.add(op, [name, self.ints(axis)], found, keepdims=keep)
        else:
            self.add(op, [name], found, axes=[axis], keepdims=keep)

    def softmax(self) -> None:
        name, shape = self.pick(1) or self.values[0]
        self.add(self.rng.choice(("Softmax", "LogSoftmax")), [name], shape, axis=self.rng.randrange(len(shape)))

    def arg(self) -> None:
        name, shape = self.pick(2) or self.values[0]
        axis = self.rng.randrange(1, len(shape))
        op = self.rng.choice(("ArgMax", "ArgMin"))
        last = {"select_last_index": self.rng.randrange(2)} if self.opset >= 12 else {}
        found = self.node(op, [name], axis=axis, keepdims=0, **last)[0]
        self.add("Cast", [found], (*shape[:axis], *shape[axis + 1 :]), to=TensorProto.FLOAT)

    def topk(self) -> None:
        name, shape = self.pick(2) or self.values[0]
        k = self.rng.randrange(1, shape[-1] + 1)
        found = self.node("TopK", [name, self.ints(k)], 2, axis=-1, largest=self.rng.randrange(2))
        self.values.append((found[0], (*shape[:-1], k)))

    def cumsum(self) -> None:
        name, shape = self.pick(1) or self.values[0]
        axis = self.constant(np.asarray(self.rng.randrange(len(shape)), np.int64))
        self.add("CumSum", [name, axis], shape, exclusive=self.rng.randrange(2), reverse=self.rng.randrange(2))

    def expand(self) -> None:
        name, shape = self.pick(1) or self.values[0]
        if len(shape) < 4:
            self.add("Expand", [name, self.ints(2, *[1] * len(shape))], (2, *shape))

    def tile(self) -> None:
        name, shape = self.pick(2) or self.values[0]
        times = [1] + [self.rng.choice((1, 2)) for _ in shape[1:]]
        self.add("Tile", [name, self.ints(*times)], [n * t for n, t in zip(shape, times)])

    def pad(self) -> None:
        name, shape = self.pick(2) or self.values[0]
        mode = self.rng.choice(("constant", "edge", "reflect"))
        before, after = (
            [0] + [self.rng.randrange(2) if n > 1 or mode != "reflect" else 0 for n in shape[1:]] for _ in range(2)
        )
        self.add(
            "Pad", [name, self.ints(*before, *after)], [n + a + b for n, a, b in zip(shape, before, after)], mode=mode
        )

    def clip(self) -> None:
        name, shape = self.pick(0) or self.values[0]
        self.add("Clip", [name, self.constant(np.float32(-0.5)), self.constant(np.float32(0.8))], shape)

    def cast(self) -> None:
        name, shape = self.pick(0) or self.values[0]
        small = self.node("Mul", [self.node("Tanh", [name])[0], self.constant(np.float32(20.37))])[0]
        kind = self.rng.choice(
            (TensorProto.INT32, TensorProto.INT64, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BOOL)
        )
        self.add("Cast", [self.node("Cast", [small], to=kind)[0]], shape, to=TensorProto.FLOAT)

    def norm(self) -> None:
        name, shape = self.pick(2) or self.values[0]
        if self.opset >= 17:
            self.add("LayerNormalization", [name, self.floats(shape[-1]), self.floats(shape[-1])], shape, axis=-1)
        elif len(shape) >= 3:
            self.add("InstanceNormalization", [name, self.floats(shape[1]), self.floats(shape[1])], shape)

    def convolution(self) -> None:
        name, shape = self.pick(4) or self.values[0]
        if len(shape) != 4 or min(shape[2:]) < 2:
            return
        stride, pad, out = self.rng.choice((1, 2)), self.rng.choice((0, 1)), self.rng.choice((2, 4))
        sizes = [(n + 2 * pad - 2) // stride + 1 for n in shape[2:]]
        self.add(
            "Conv",
            [name, self.floats(out, shape[1], 2, 2), self.floats(out)],
            (shape[0], out, *sizes),
            strides=[stride] * 2,
            pads=[pad] * 4,
        )

    def pool(self) -> None:
        name, shape = self.pick(4) or self.values[0]
        if len(shape) != 4 or min(shape[2:]) < 2:
            return
        op, ceil = self.rng.choice(("MaxPool", "AveragePool")), self.rng.randrange(2)
        pads = self.rng.choice(([0, 0, 0, 0], [1, 0, 0, 1], [1, 1, 1, 1]))
        sizes = []
        for i, n in enumerate(shape[2:]):
            whole = n + pads[i] + pads[2 + i] - 2
            size = -(-whole // 2) + 1 if ceil else whole // 2 + 1
            if ceil and (size - 1) * 2 >= n + pads[i]:
                size -= 1
            sizes.append(size)
        self.add(op, [name], (*shape[:2], *sizes), kernel_shape=[2, 2], strides=[2, 2], pads=pads, ceil_mode=ceil)

    def resize(self) -> None:
        name, shape = self.pick(4) or self.values[0]
        if len(shape) != 4:
            return
        mode, way = self.rng.choice(
            (("nearest", "asymmetric"), ("linear", "half_pixel"), ("linear", "align_corners"), ("cubic", "half_pixel"))
        )
        scales = self.constant(np.asarray([1, 1, 2, 2], np.float32))
        self.add(
            "Resize",
            [name, "", scales],
            (*shape[:2], 2 * shape[2], 2 * shape[3]),
            mode=mode,
            coordinate_transformation_mode=way,
            nearest_mode="floor",
        )

    def quantize(self) -> None:
        name, shape = self.pick(0) or self.values[0]
        kind = self.rng.choice((np.uint8, np.int8))
        scale, zero = self.constant(np.float32(0.05)), self.constant(np.asarray(3, kind))
        small = self.node("Tanh", [name])[0]
        self.add("DequantizeLinear", [self.node("QuantizeLinear", [small, scale, zero])[0], scale, zero], shape)

    def one_hot(self) -> None:
        name, shape = self.pick(2) or self.values[0]
        if len(shape) > 3:
            return
        found = self.node("ArgMax", [name], axis=-1, keepdims=0)[0]
        values = self.constant(np.asarray([0.0, 1.5], np.float32))
        self.add("OneHot", [found, self.constant(np.asarray(5, np.int64)), values], (*shape[:-1], 5))

    def scatter(self) -> None:
        name, shape = self.pick(2) or self.values[0]
        axis = self.rng.randrange(1, len(shape))
        index = self.constant(np.zeros((1,) * len(shape), np.int64))
        attributes = {"reduction": self.rng.choice(("none", "add"))} if self.opset >= 16 else {}
        self.add("ScatterElements", [name, index, self.floats(*[1] * len(shape))], shape, axis=axis, **attributes)

    def branch(self) -> None:
        """An If by a constant, whose graphs read values from outside."""
        name, shape = self.pick(0) or self.values[0]
        graphs = []
        for op in ("Abs", "Neg"):
            out = self.name()
            info = helper.make_tensor_value_info(out, TensorProto.FLOAT, None)
            graphs.append(helper.make_graph([helper.make_node(op, [name], [out])], "g", [], [info]))
        self.add(
            "If",
            [self.constant(np.asarray(bool(self.rng.randrange(2))))],
            shape,
            then_branch=graphs[0],
            else_branch=graphs[1],
        )

    def loop(self) -> None:
        name, shape = self.pick(0) or self.values[0]
        i, condition, state, going, new = (self.name() for _ in range(5))
        body = helper.make_graph(
            [helper.make_node("Identity", [condition], [going]),
             helper.make_node("Mul", [state, self.constant(np.float32(0.5))], [new])], "b",
            [helper.make_tensor_value_info(i, TensorProto.INT64, []), helper.make_tensor_value_info(condition, TensorProto.BOOL, []),
             helper.make_tensor_value_info(state, TensorProto.FLOAT, None)],
            [helper.make_tensor_value_info(going, TensorProto.BOOL, []), helper.make_tensor_value_info(new, TensorProto.FLOAT, None)],
        )  # fmt: skip
        self.add("Loop", [self.constant(np.asarray(3, np.int64)), "", name], shape, body=body)


KINDS = [name for name, f in vars(Graph).items() if callable(f) and name not in
         ("__init__", "name", "constant", "ints", "floats", "node", "add", "pick")]  # fmt: skip


def make(seed: int, nodes: int = 10) -> tuple[onnx.ModelProto, np.ndarray]:
    """A model with one input, whose first size is open, and an input."""
    graph = Graph(seed)
    for _ in range(nodes):
        getattr(graph, graph.rng.choice(KINDS))()
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n, _ in graph.values[-3:] if n != "x"]
    if not outputs:
        graph.unary()
        outputs = [helper.make_tensor_value_info(graph.values[-1][0], TensorProto.FLOAT, None)]
    first = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", *graph.shape[1:]])
    proto = helper.make_graph(graph.nodes, "random", [first], outputs, graph.initializers)
    model = helper.make_model(proto, opset_imports=[helper.make_opsetid("", graph.opset)], ir_version=9)
    return model, graph.numbers.standard_normal(graph.shape).astype(np.float32)


def differences(seed: int, nodes: int = 10) -> str:
    """What differs between onnxruntime and teletensor for a graph, or "". Graphs that onnxruntime refuses count as equal."""
    import onnxruntime

    import teletensor as torch

    model, x = make(seed, nodes)
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        expected = session.run(None, {"x": x})
    except Exception as error:  # noqa: BLE001 - the peer's own errors
        return f"refused: {str(error)[:200]}"
    loaded = torch.onnx.load(model)
    found = _listed(loaded(torch.from_numpy(x)))
    text = _compare("single calls", found, expected)
    try:
        program = loaded.program(torch.from_numpy(x))
    except (RuntimeError, NotImplementedError) as error:
        return text or f"the Program: {error}"
    text = text or _compare("the Program", _listed(program(torch.from_numpy(x))), expected)
    larger = np.concatenate([x, x[:2]])
    try:
        expected = session.run(None, {"x": larger})
        found = _listed(program(torch.from_numpy(larger)))
    except Exception:  # noqa: BLE001 - the graph has made the batch a constant
        return text
    return text or _compare("the Program with another batch", found, expected)


def _listed(found) -> list:
    return list(found) if isinstance(found, (tuple, list)) else [found]


def _compare(what: str, found: list, expected: list) -> str:
    for number, (ours, theirs) in enumerate(zip(found, expected)):
        ours = ours.detach().numpy()
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            return f"{what}: output {number} is {ours.dtype}{ours.shape}, expected {theirs.dtype}{theirs.shape}"
        if not np.allclose(
            ours,
            theirs,
            rtol=2e-3,
            atol=2e-4 * max(1.0, float(np.abs(theirs[np.isfinite(theirs)]).max(initial=0))),
            equal_nan=True,
        ):
            return f"{what}: output {number} differs by {np.nanmax(np.abs(ours - theirs))}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--nodes", type=int, default=10)
    args = parser.parse_args()
    failures = refused = 0
    for seed in range(args.seed, args.seed + args.graphs):
        text = differences(seed, args.nodes)
        if text.startswith("refused"):
            refused += 1
        elif text:
            failures += 1
            print(f"seed {seed}: {text}")
            print(onnx.printer.to_text(make(seed, args.nodes)[0])[:3000])
    print(f"{args.graphs} graphs, {refused} refused by onnxruntime, {failures} differ")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
