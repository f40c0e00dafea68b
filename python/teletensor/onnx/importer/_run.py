"""Executes a Plan, node after node."""

from __future__ import annotations

from typing import Any

import numpy as np

import teletensor as torch

from ... import _C
from . import _values
from ._call import Call, kept
from ._values import Narrow, Sizes
from .ops.client import CLIENT, LARGEST, is_small

_MAKE_SIZES = frozenset({"Range", "Expand", "Tile"})  # whose result has the sizes that an input gives
MOST_NODES = 1 << 22  # executed by one call, with every iteration of loops
MOST_TRACED = 1 << 18  # of them, in a trace, which keeps each
MOST_ROWS = 1 << 30  # bytes that loops collect in the client


class Allowance:
    """What one call of a model may still do, with all graphs and functions within it. Belongs to the call's thread."""

    __slots__ = ("bytes", "nodes")

    def __init__(self) -> None:
        self.nodes = MOST_TRACED if _C.is_tracing() else MOST_NODES
        self.bytes = MOST_ROWS

    def use(self, nodes: int, size: int = 0) -> None:
        """Counts nodes that are executed, and bytes that a loop keeps.

        Raises:
            ValueError: there are too many.
        """
        self.nodes -= nodes
        self.bytes -= size
        if self.nodes < 0 or self.bytes < 0:
            raise ValueError(
                f"[onnx] expected a call that executes at most {MOST_NODES} nodes ({MOST_TRACED} in a trace) and whose loops "
                f"collect at most {MOST_ROWS} bytes in the client"
            )


class Run:
    """The values of one execution of a Plan, and those of the graph around it.

    Args:
        plan: what is executed.
        store: the model's weights by key.
        device: where results without tensor inputs are made.
        outer: the run of the graph that contains this one, whose values the graph may read.
        allowance: of the call that this run belongs to; None: a new one.
    """

    __slots__ = ("allowance", "device", "outer", "plan", "store", "values")

    def __init__(self, plan: Any, store: Any, device: Any, outer: Run | None = None, allowance: Allowance | None = None) -> None:
        self.plan, self.store, self.device, self.outer = plan, store, device, outer
        self.values: dict[str, Any] = {}
        self.allowance = allowance or (Allowance() if outer is None else outer.allowance)

    def nested(self) -> Run:
        """A run between this one and that of a graph within, which may receive values that differ from those of this run."""
        return Run(self.plan, self.store, self.device, self)

    def value(self, name: str) -> Any:
        """The value of a name, of this graph or of one around it."""
        run: Run | None = self
        while run is not None:
            if name in run.values:
                return run.values[name]
            key = run.plan.weights.get(name)
            found = run.plan.constants.get(name)
            if found is not None and key is not None:
                found = run.store.host(key, found)
            if found is not None:
                return found
            if key is not None:
                return run.store.weight(key)
            run = run.outer
        raise ValueError(f"[onnx] expected a value for {name!r}, which is not computed yet")

    def as_tensor(self, name: str, value: Any) -> Any:
        """A host value as a tensor: the uploaded constant, if the name is one."""
        run: Run | None = self
        while run is not None:
            if name in run.values:
                break
            if name in run.plan.weights:
                return run.store.weight(run.plan.weights[name])
            if name in run.plan.constants:
                break
            run = run.outer
        return _values.tensor(value, self.device)

    def __call__(self, inputs: dict[str, Any]) -> list[Any]:
        """Executes the steps, and returns the values of the Plan's outputs."""
        values = self.values
        values.update(inputs)
        self.allowance.use(len(self.plan.steps) + 1)
        if self.plan.variables:
            with torch.enable_grad():
                return self._differentiated()
        for step in self.plan.steps:
            found = step.execute(self)
            for name, value in zip(step.outputs, found):
                if name:
                    values[name] = value
            for name in step.last_uses:
                values.pop(name, None)
        return [self.value(name) for name in self.plan.outputs]

    def _differentiated(self) -> list[Any]:
        """Executes the steps with gradients of the Plan's variables."""
        for name in self.plan.variables:
            if name in self.values or name in self.plan.constants or name in self.plan.weights:
                self._make_variable(name)
        for step in self.plan.steps:
            for name, value in zip(step.outputs, step.execute(self)):
                self.values[name] = value
                if name in self.plan.variables:
                    self._make_variable(name)
        return [self.value(name) for name in self.plan.outputs]

    def _make_variable(self, name: str) -> None:
        value = _values.tensor(self.value(name), self.device)
        self.values[name] = value if value.requires_grad else value.detach().requires_grad_()


class Step:
    """A node of a graph with the function that computes it."""

    __slots__ = ("attributes", "captured", "client", "function", "inputs", "last_uses", "moves", "narrow", "op", "outputs",
                 "version", "where")  # fmt: skip

    def __init__(self, op: str, version: int, function: Any, attributes: dict[str, Any], inputs: list[str],
                 outputs: list[str], where: str, is_standard: bool) -> None:  # fmt: skip
        self.op, self.version, self.function, self.attributes = op, version, function, attributes
        self.inputs, self.outputs, self.where = inputs, outputs, where
        self.last_uses: list[str] = []
        self.captured: list[str] = []  # names that graphs in the attributes read
        self.client = CLIENT.get(op) if is_standard else None
        self.moves = getattr(function, "moves", False)
        self.narrow = getattr(function, "narrow", False)

    def execute(self, run: Run) -> list[Any]:
        """The results of the node, one for each of its outputs."""
        values = [run.value(name) if name else None for name in self.inputs]
        call = Call(self.op, self.version, self.attributes, self.outputs, run)
        try:
            results = self._apply(call, run, values)
        except (ArithmeticError, AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError,
                RuntimeError, NotImplementedError, AssertionError) as error:  # fmt: skip
            if not getattr(error, "_onnx_node", False):
                try:
                    error.add_note(f"in the ONNX node {self.where}")
                    error._onnx_node = True
                except (AttributeError, TypeError):
                    pass
            raise
        if not isinstance(results, (tuple, _Results)):
            results = (results,)
        if len(results) < sum(1 for i in range(len(self.outputs)) if self.outputs[i]) and len(results) < len(
            self.outputs
        ):
            raise ValueError(f"[{self.op}] expected at most {len(results)} outputs, the node names {len(self.outputs)}")
        return list(results)

    def _apply(self, call: Call, run: Run, values: list[Any]) -> Any:
        moved = None
        if not self.narrow and any(isinstance(v, Narrow) for v in values):
            call.types = {i: v.type for i, v in enumerate(values) if isinstance(v, Narrow)}
            if self.moves:
                moved = next(iter(call.types.values()))
            values = [_values.plain(v) for v in values]
        results = NotImplemented
        if self.client is not None and self._is_for_client(values):
            results = self._in_client(call, values)
        if results is NotImplemented:
            keep = kept(self.function)
            if keep is not None:
                values = [
                    run.as_tensor(self.inputs[i], v)
                    if isinstance(v, (np.ndarray, Sizes)) and i not in keep
                    else v
                    for i, v in enumerate(values)
                ]  # fmt: skip
            results = self.function(call, *values)
        if moved is not None:
            many = isinstance(results, tuple) and not isinstance(results, (Narrow, Sizes))
            results = tuple(_narrowed(r, moved) for r in results) if many else _narrowed(results, moved)
        return _Single(results) if isinstance(results, (Narrow, Sizes)) else results

    def _is_for_client(self, values: list[Any]) -> bool:
        symbolic = False
        for v in values:
            if isinstance(v, np.ndarray):
                if v.dtype == object:
                    return True
            elif isinstance(v, Sizes):
                symbolic = True
            elif v is not None:
                return any(_values.is_text(w) for w in values)
        return bool(values) and is_small(self.op, values) and not (symbolic and self.op in _MAKE_SIZES)

    def _in_client(self, call: Call, values: list[Any]) -> Any:
        symbolic = any(isinstance(v, Sizes) for v in values)
        text = any(_values.is_text(v) for v in values)
        if text and not is_small(self.op, values):
            raise ValueError(f"[{self.op}] expected arrays of at most {LARGEST} strings and numbers beside them")
        arrays = [None if v is None else _values.array(v) for v in values]
        with np.errstate(all="ignore"):
            results = self.client(call, *arrays)
        if results is NotImplemented:
            return results
        many = isinstance(results, tuple)
        if text:
            for r in results if many else (results,):
                call.run.allowance.use(0, _size_of_text(np.asarray(r)))
        wrapped = []
        for r in results if many else (results,):
            r = np.asarray(r)
            if symbolic and not text and r.dtype == object:
                r = Sizes(r)
            wrapped.append(r)
        return tuple(wrapped) if many else _Single(wrapped[0])


def _size_of_text(found: np.ndarray) -> int:
    """The bytes of an array, with those of its strings: an estimate."""
    return found.nbytes + (sum(len(t) for t in found.flat if isinstance(t, str)) if found.dtype == object else 0)


class _Results(tuple):
    __slots__ = ()


def _Single(value: Any) -> _Results:  # noqa: N802
    return _Results((value,))


def _narrowed(value: Any, number: int) -> Any:
    return Narrow(value, number) if isinstance(value, (torch.Tensor, np.ndarray)) else value
