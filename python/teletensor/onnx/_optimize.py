"""Simplifies a converted graph: constants are computed, equal nodes shared, nodes without effect and unused ones removed.

Weights are not computed with: their names and values stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ._builder import Graph as InnerGraph
from ._builder import NodeRecord
from ._dtypes import dtype_of, has_numpy, numpy_dtype
from ._model import all_records

_LARGEST = 1024  # elements of a computed constant
_RANDOM = frozenset(
    "RandomUniform RandomNormal RandomUniformLike RandomNormalLike Bernoulli Multinomial Dropout".split()
)


def _reshape(x: np.ndarray, sizes: np.ndarray, allowzero: int = 0) -> np.ndarray:
    wanted = [x.shape[i] if n == 0 and not allowzero else int(n) for i, n in enumerate(sizes)]
    return x.reshape(wanted)


def _slice(x: np.ndarray, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> np.ndarray:
    places = [slice(None)] * x.ndim
    axes = range(len(starts)) if axes is None else axes
    for i, axis in enumerate(axes):
        step = 1 if steps is None else int(steps[i])
        end: Any = int(ends[i])
        places[int(axis)] = slice(int(starts[i]), None if step < 0 and end <= -(2**60) else end, step)
    return x[tuple(places)]


def _unsqueeze(x: np.ndarray, axes: np.ndarray) -> np.ndarray:
    return np.expand_dims(x, tuple(int(a) for a in axes))


def _squeeze(x: np.ndarray, axes: np.ndarray | None = None) -> np.ndarray:
    return np.squeeze(x, None if axes is None else tuple(int(a) for a in axes))


def _div(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind == "f":
        return a / b
    if np.any(b == 0):
        raise ZeroDivisionError
    quotient = a // b  # ONNX rounds towards 0
    return quotient + ((quotient < 0) & (quotient * b != a)).astype(a.dtype)


def _cast(x: np.ndarray, to: Any) -> np.ndarray:
    dtype = dtype_of(to) if isinstance(to, int) else to
    if dtype is None or not has_numpy(dtype):
        raise TypeError
    return x.astype(numpy_dtype(dtype))


def _mod(a: np.ndarray, b: np.ndarray, fmod: int = 0) -> np.ndarray:
    if np.any(b == 0):
        raise ZeroDivisionError
    return np.fmod(a, b) if fmod else np.mod(a, b)


# How constants are computed; a function that cannot raises an error, and the node stays.
_FOLDED: dict[str, Callable] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": _div, "Mod": _mod, "Neg": np.negative, "Abs": np.abs, "Sqrt": np.sqrt,
    "Exp": np.exp, "Log": np.log, "Floor": np.floor, "Ceil": np.ceil, "Reciprocal": lambda x: np.asarray(1, x.dtype) / x,
    "Max": lambda *v: np.maximum.reduce(np.broadcast_arrays(*v)), "Min": lambda *v: np.minimum.reduce(np.broadcast_arrays(*v)),
    "Equal": np.equal, "Less": np.less, "LessOrEqual": np.less_equal, "Greater": np.greater, "GreaterOrEqual": np.greater_equal,
    "And": np.logical_and, "Or": np.logical_or, "Not": np.logical_not, "Where": np.where, "Cast": _cast, "Identity": lambda x: x,
    "Concat": lambda *v, axis: np.concatenate(v, axis), "Gather": lambda x, i, axis=0: np.take(x, i, axis), "Reshape": _reshape,
    "Unsqueeze": _unsqueeze, "Squeeze": _squeeze, "Slice": _slice, "Transpose": lambda x, perm: np.transpose(x, perm),
    "Range": lambda a, b, c: np.arange(a, b, c, dtype=a.dtype), "Expand": lambda x, n: x * np.ones([int(v) for v in n], x.dtype),
    "Trilu": lambda x, k=0, upper=1: (np.triu if upper else np.tril)(x, int(k)),
}  # fmt: skip


class Optimizer:
    """Simplifies the nodes of one builder.

    Args:
        kept: names of values that must stay: the results.
    """

    def __init__(self, shared: Any, nodes: list[NodeRecord], kept: set[str], fixed: set[str] | None = None) -> None:
        self.shared, self.nodes, self.kept = shared, nodes, kept
        self.fixed = fixed or set()  # names of the graph's inputs and weights
        self.replaced: dict[str, str] = {}

    def run(self) -> list[NodeRecord]:
        """The remaining nodes."""
        self._forward()
        return remaining(self.nodes, self.kept)

    def _forward(self) -> None:
        seen: dict[Any, list[str]] = {}
        result = []
        producers: dict[str, NodeRecord] = {}
        for record in self.nodes:
            self._redirect(record)
            if self._folded(record) or self._without_effect(record, producers):
                continue
            key = self._key(record)
            if key is not None and key in seen and not any(n in self.kept for n in record.outputs):
                self.replaced |= dict(zip(record.outputs, seen[key]))
                continue
            if key is not None:
                seen.setdefault(key, record.outputs)
            for name in record.outputs:
                producers[name] = record
            result.append(record)
        self.nodes = result

    def _redirect(self, record: NodeRecord) -> None:
        if not self.replaced:
            return
        for inner in all_records([record]):
            inner.inputs[:] = [self.replaced.get(n, n) for n in inner.inputs]
        for graph in (v for r in all_records([record]) for v in r.attributes.values() if isinstance(v, InnerGraph)):
            for v in graph.outputs:
                v.name = self.replaced.get(v.name, v.name)

    def _folded(self, record: NodeRecord) -> bool:
        """Replaces a node whose inputs are constants by a constant."""
        if record.op_type not in _FOLDED or record.domain or len(record.outputs) != 1 or record.outputs[0] in self.kept:
            return False
        constants = self.shared.initializers
        if not record.inputs or any(n and n not in constants for n in record.inputs):
            return False
        inputs = [constants[n] if n else None for n in record.inputs]
        try:
            with np.errstate(all="ignore"):
                value = np.asarray(_FOLDED[record.op_type](*inputs, **record.attributes))
        except Exception:  # noqa: BLE001 - the runtime computes it, or reports the error
            return False
        if value.size > _LARGEST:
            return False
        if record.op_type not in ("Cast", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Where"):
            value = value.astype(inputs[0].dtype, copy=False)
        key = (value.dtype.str, value.shape, value.tobytes())
        found = self.shared.constants.get(key)
        if found is not None and found.name in constants:
            self.replaced[record.outputs[0]] = found.name
        else:
            constants[record.outputs[0]] = np.ascontiguousarray(value).reshape(value.shape)
        return True

    def _without_effect(self, record: NodeRecord, producers: dict[str, NodeRecord]) -> bool:
        if record.domain or len(record.outputs) != 1:
            return False
        output, source = record.outputs[0], record.inputs[0] if record.inputs else ""
        if record.op_type == "Transpose" and source in producers and producers[source].op_type == "Transpose":
            first, second = producers[source].attributes["perm"], record.attributes["perm"]
            order = [first[d] for d in second]
            record.inputs[0], record.attributes["perm"] = producers[source].inputs[0], order
            if order == sorted(order) and output not in self.kept:
                self.replaced[output] = record.inputs[0]
                return True
        if (
            record.op_type == "Reshape"
            and source in producers
            and producers[source].op_type in ("Reshape", "Unsqueeze", "Squeeze")
        ):
            sizes = self.shared.initializers.get(record.inputs[1])
            if sizes is not None and (sizes > 0).sum() + (sizes == -1).sum() == sizes.size:
                record.inputs[0] = producers[source].inputs[0]
        if (
            record.op_type == "Unsqueeze"
            and source in producers
            and producers[source].op_type == "Squeeze"
            and output not in self.kept
        ):
            if (
                len(producers[source].inputs) == 2
                and producers[source].inputs[1] == record.inputs[1]
                and self._single(record.inputs[1])
            ):
                self.replaced[output] = producers[source].inputs[0]
                return True
        if record.op_type == "Identity" and output not in self.kept:
            self.replaced[output] = source
            return True
        return False

    def _single(self, name: str) -> bool:
        """Whether a constant has one element, so that inserting and removing these dimensions are inverse."""
        value = self.shared.initializers.get(name)
        return value is not None and value.size == 1

    @staticmethod
    def _key(record: NodeRecord) -> Any:
        if record.op_type in _RANDOM or any(isinstance(v, InnerGraph) for v in record.attributes.values()):
            return None
        attributes = tuple((k, repr(v)) for k, v in sorted(record.attributes.items()))
        return record.domain, record.op_type, tuple(record.inputs), attributes, len(record.outputs)


def remaining(nodes: list[NodeRecord], kept: set[str]) -> list[NodeRecord]:
    """The nodes whose results are used."""
    needed = set(kept)
    found = []
    for record in reversed(nodes):
        if not any(n in needed for n in record.outputs):
            continue
        found.append(record)
        for inner in all_records([record]):
            needed.update(n for n in inner.inputs if n)
    return found[::-1]


def optimize(graph: Any) -> None:
    """Simplifies a converted graph, and removes the weights that it does not use."""
    builder = graph.builder
    kept = {v.name for v in graph.outputs}
    while True:
        before = len(builder.nodes)
        builder.nodes[:] = Optimizer(builder.shared, builder.nodes, kept).run()
        if len(builder.nodes) == before:
            break
    for record in all_records(builder.nodes):
        for value in record.attributes.values():
            if isinstance(value, InnerGraph):
                names = {v.name for v in value.outputs}
                value.builder.nodes[:] = remaining(value.builder.nodes, names)
    used = {n for r in all_records(builder.nodes) for n in r.inputs} | kept
    for name in [n for n in graph.weights if n not in used]:
        del graph.weights[name]
    made = {n for r in builder.nodes for n in r.outputs}
    graph.infos = {n: v for n, v in graph.infos.items() if n in made}
