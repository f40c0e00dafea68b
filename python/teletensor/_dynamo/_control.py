"""torch.cond, while_loop, scan, map and checkpoint during capture: nodes that receive the graphs of their functions."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from .._C import Tensor, torch
from .._higher_order_ops import control
from ._bodies import Body, same_metadata
from ._body_calls import CheckpointCall, HookCall
from ._values import Break, Constant, HandleValue, SequenceValue, SymbolValue, TensorValue, Value


def _options(args: list[Value], kwargs: dict[str, Value], names: tuple[str, ...]) -> dict[str, Value]:
    given = dict(zip(names, args))
    if len(args) > len(names) or given.keys() & kwargs.keys() or kwargs.keys() - set(names):
        raise Break("wrong arguments of an operator that calls functions")
    return {**given, **kwargs}


class Control:
    """A part of Executor."""

    def control_flow(self, function: Callable, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        """The result of a function of control.py; None if it is another one."""
        if function is control.map and args and not kwargs:
            return self.map_rows(*args)
        found = _FUNCTIONS.get(function)
        if found is None:
            return None
        name, parameters = found
        return getattr(self, name)(**_options(args, kwargs, parameters))

    def _tensors(self, value: Value, what: str) -> list[TensorValue]:
        leaves = self.leaves(value)
        if not all(isinstance(leaf, TensorValue) for leaf in leaves):
            raise Break(f"{what} other than tensors")
        return leaves

    def _executed(self, function: Value, args: list[Value], may_write: bool = False) -> tuple[Body, Value]:
        with self.body(may_write) as body:
            return body, self.real(self.call(function, args, {}))

    def _finished(self, body: Body, values: list[Value]) -> Any:
        """The module of a body that returns tensors."""
        self._bodies.append(body)
        outer, self.graph = self.graph, body.graph
        try:
            return body.finish([self.node_of(v) for v in values])
        finally:
            self.graph = outer
            self._bodies.pop()

    def _share_lifted(self, bodies: list[Body]) -> list[Any]:
        """Gives all bodies the same lifted inputs, in the same order."""
        union: dict[Any, None] = {}
        for body in bodies:
            union.update(dict.fromkeys(body.lifted))
        for body in bodies:
            had = list(body.lifted.items())
            order = {node: body.lift(node) for node in union}
            placed = [order[node] for node in union]
            if [node for node, _ in had] != list(union):
                own = [n for n in body.graph.nodes if n.op == "placeholder" and n not in placed]
                _reorder(body, [*own, *placed])
            body.lifted = order
        return list(union)

    def _outputs(self, target: Any, args: tuple, examples: list[Any]) -> list[TensorValue]:
        """The results of a node that returns a tuple of tensors."""
        node = self.graph.call_function(target, args)
        self.note_place(node)
        self.calls += 1
        results = []
        for i, example in enumerate(examples):
            part = self.graph.call_function(operator.getitem, (node, i))
            part.meta["example_value"] = example
            results.append(TensorValue(part, example, Tensor, is_leaf=None))
            results[-1].may_exist = True
        return results

    def cond(self, pred: Value, true_fn: Value, false_fn: Value, operands: Value | None = None) -> Value:
        """torch.cond()."""
        pred = self.real(pred)
        given = self.elements(operands) if operands is not None else []
        if isinstance(pred, (Constant, SymbolValue)):
            return self.call(true_fn if self.truth(pred) else false_fn, given, {})
        if not isinstance(pred, TensorValue) or pred.example.numel() != 1:
            raise Break("cond() of something else than a bool")
        for operand in given:
            self._tensors(operand, "operands of cond()")
        found = [self._executed(f, given) for f in (true_fn, false_fn)]
        results = [self._tensors(result, "results of functions of cond()") for _, result in found]
        if self.structure(found[0][1]) != self.structure(found[1][1]):
            raise Break("functions of cond() that return different structures")
        for a, b in zip(*results):
            if not same_metadata(a.example, b.example):
                raise Break("functions of cond() that return different kinds of tensors")
        modules: list[Any] = []
        lifted = [self.here(n) for n in self._finish_sharing([body for body, _ in found], results, modules)]
        nodes = [self.add_body(m, name) for m, name in zip(modules, ("cond_true", "cond_false"))]
        examples = [(a if a.example.requires_grad else b).example.clone() for a, b in zip(*results)]
        outputs = self._outputs(control._COND, (self.node_of(pred), *nodes, tuple(lifted)), examples)
        return self.rebuilt(found[0][1], iter(outputs))

    def _finish_sharing(self, bodies: list[Body], results: list[list[TensorValue]], modules: list[Any]) -> list[Any]:
        for body, values in zip(bodies, results):  # results from outside are lifted, too
            self._bodies.append(body)
            outer, self.graph = self.graph, body.graph
            for value in values:
                self.node_of(value)
            self.graph = outer
            self._bodies.pop()
        lifted = self._share_lifted(bodies)
        modules += [self._finished(body, values) for body, values in zip(bodies, results)]
        return lifted

    def _placeholders(self, body: Body, values: list[TensorValue], name: str, examples: list[Any]) -> list[Value]:
        return [body.tensor(f"{name}_{i}", example) for i, (_, example) in enumerate(zip(values, examples))]

    def while_loop(self, cond_fn: Value, body_fn: Value, carried_inputs: Value) -> Value:
        """torch.while_loop()."""
        carried = self._tensors(carried_inputs, "values of while_loop()")
        examples = [t.example for t in carried]
        found: list[tuple[Body, Value]] = []
        for function in (cond_fn, body_fn):
            with self.body() as body:
                inputs = self.rebuilt(carried_inputs, iter(self._placeholders(body, carried, "carried", examples)))
                found.append((body, self.real(self.call(function, self.elements(inputs), {}))))
        test = found[0][1]
        if not isinstance(test, TensorValue) or test.example.numel() != 1:
            raise Break("the condition of while_loop() is no tensor of one element")
        updated = found[1][1] if isinstance(found[1][1], SequenceValue) else SequenceValue([found[1][1]], tuple)
        results = self._tensors(updated, "results of the function of while_loop()")
        if len(results) != len(carried) or not all(same_metadata(a.example, e) for a, e in zip(results, examples)):
            raise Break("the function of while_loop() returns other kinds of tensors")
        modules: list[Any] = []
        lifted = [self.here(n) for n in self._finish_sharing([b for b, _ in found], [[test], results], modules)]
        nodes = [self.add_body(m, name) for m, name in zip(modules, ("while_loop_cond", "while_loop_body"))]
        made = [t.example.clone() for t in results]
        outputs = self._outputs(control._WHILE_LOOP, (*nodes, tuple(self.node_of(t) for t in carried), tuple(lifted)), made)
        return self.rebuilt(SequenceValue(self.elements(carried_inputs), tuple), iter(outputs))

    def scan(
        self, combine_fn: Value, init: Value, xs: Value, dim: Value | None = None, reverse: Value | None = None
    ) -> Value:
        """torch.scan()."""
        at, is_reverse = (self.python_value(self.real(v)) if v is not None else default for v, default in ((dim, 0), (reverse, False)))
        carried, given = self._tensors(init, "values of scan()"), self._tensors(xs, "inputs of scan()")
        if not carried or not given or any(t.example.dim() == 0 for t in given):
            raise Break("scan() without tensors")
        at %= given[0].example.dim()
        rows = self._rows(given, at, is_reverse)
        examples = [t.example for t in carried]
        for _ in range(3):  # until the values require grad as those of the next iteration
            with self.body() as body:
                inputs = self._placeholders(body, carried, "carried", examples)
                parts = self._placeholders(body, rows, "x", [t.example[0] for t in rows])
                result = self.call(combine_fn, [self.rebuilt(init, iter(inputs)), self.rebuilt(xs, iter(parts))], {})
                new, out = self.elements(result)
            updated, outputs = self._tensors(new, "results of scan()"), self._tensors(out, "results of scan()")
            if self.structure(new) != self.structure(init) and self._shape(new) != self._shape(init):
                raise Break("the function of scan() returns another structure")
            if not all(same_metadata(a.example, e) for a, e in zip(updated, examples)):
                raise Break("the function of scan() returns other kinds of tensors")
            is_fixed = all(a.example.requires_grad == e.requires_grad for a, e in zip(updated, examples))
            if is_fixed or int(rows[0].example.size(0)) < 2:
                break
            examples = [a.example for a in updated]
        module = self._finished(body, [*updated, *outputs])
        lifted = tuple(self.here(n) for n in body.lifted)
        made = [*(t.example.clone() for t in updated), *(self._stacked(t.example, rows[0].example) for t in outputs)]
        nodes = [[self.node_of(t) for t in part] for part in (carried, rows)]
        found = self._outputs(control._SCAN, (self.add_body(module, "scan_combine"), *nodes, lifted), made)
        stacked: list[Value] = found[len(carried) :]
        if is_reverse:
            stacked = [self.call_in_graph("call_method", "flip", [t, Constant(0)]) for t in stacked]
        if at:
            moved = [Constant(0), Constant(at)]
            stacked = [self.call_in_graph("call_method", "movedim", [t, *moved]) if at < t.example.dim() else t for t in stacked]
        return SequenceValue([self.rebuilt(init, iter(found[: len(carried)])), self.rebuilt(out, iter(stacked))], tuple)

    def _shape(self, value: Value) -> Any:
        value = self.real(value)
        return type(value) if not isinstance(value, SequenceValue) else [self._shape(v) for v in value.items]

    def _rows(self, given: list[TensorValue], dim: int, is_reverse: bool) -> list[TensorValue]:
        rows: list[Any] = given
        if dim != 0:
            rows = [self.call_in_graph("call_method", "movedim", [t, Constant(dim), Constant(0)]) for t in rows]
        if is_reverse:
            rows = [self.call_in_graph("call_method", "flip", [t, Constant(0)]) for t in rows]
        if len({int(t.example.size(0)) for t in rows}) > 1 or int(rows[0].example.size(0)) == 0:
            raise Break("inputs of different sizes")
        return rows

    @staticmethod
    def _stacked(example: Any, rows: Any) -> Any:
        return example.unsqueeze(0).expand(rows.size(0), *example.shape).clone().contiguous()

    def map_rows(self, f: Value, xs: Value, *args: Value) -> Value:
        """torch._higher_order_ops.map()."""
        given = self._tensors(xs, "inputs of map()")
        if not given or any(t.example.dim() == 0 for t in given):
            raise Break("map() of something else than tensors with dimensions")
        self._rows(given, 0, False)
        with self.body() as body:
            parts = self._placeholders(body, given, "x", [t.example[0] for t in given])
            result = self.real(self.call(f, [self.rebuilt(xs, iter(parts)), *args], {}))
        results = self._tensors(result, "results of the function of map()")
        module = self._finished(body, results)
        lifted = tuple(self.here(n) for n in body.lifted)
        made = [self._stacked(t.example, given[0].example) for t in results]
        nodes = (self.add_body(module, "map_body"), [self.node_of(t) for t in given], lifted)
        return self.rebuilt(result, iter(self._outputs(control._MAP, nodes, made)))

    def checkpoint_body(self, function: Value, args: list[Value], kwargs: dict[str, Value], options: dict[str, Any]) -> Value:
        """torch.utils.checkpoint.checkpoint(), whose function is executed again in the backward pass."""
        with self.body() as body:
            result = self.real(self.call(function, args, kwargs))
        tensors: list[TensorValue] = []
        self.template(result, tensors)
        module = self._finished(body, tensors)
        lifted = tuple(self.here(n) for n in body.lifted)
        made = [t.example.view_as(t.example) for t in tensors]
        outputs = iter(self._outputs(CheckpointCall(options), (self.add_body(module, "checkpoint_body"), lifted), made))
        return self._with_tensors(result, outputs)

    def register_hook(self, value: TensorValue, hook: Value) -> Value:
        """Tensor.register_hook() of a function without side effects, whose graph the node receives."""
        if self._bodies or not value.example.requires_grad:
            raise Break("Tensor.register_hook()")
        with self.body() as body:
            gradient = body.tensor("grad", torch.empty_like(value.example.detach()))
            found = self.real(self.call(hook, [gradient], {}))
        returns = isinstance(found, TensorValue)
        if not returns and not (isinstance(found, Constant) and found.value is None):
            raise Break("a hook that returns something else than a tensor")
        module = self._finished(body, [found] if returns else [])
        lifted = tuple(self.here(n) for n in body.lifted)
        node = self.graph.call_function(HookCall(returns), (self.node_of(value), self.add_body(module, "hook_body"), lifted))
        self.calls += 1
        self.mutates = True
        return HandleValue(node)

    def call_handle(self, value: HandleValue, name: str, args: list[Value]) -> Value:
        """A method of the handle of a hook."""
        if name == "__enter__":
            return value
        if name not in ("remove", "__exit__") or name == "remove" and args:
            raise Break(f"RemovableHandle.{name}()")
        self.graph.call_method("remove", (self.here(value.node),))
        return Constant(None)

    def _with_tensors(self, value: Value, tensors: Any) -> Value:
        """The value with other tensors in its containers."""
        value = self.real(value)
        if isinstance(value, TensorValue):
            return next(tensors)
        leaves = self.leaves(value)
        if leaves == [value]:
            return value
        return self.rebuilt(value, iter([next(tensors) if isinstance(v, TensorValue) else v for v in leaves]))


def _reorder(body: Body, placeholders: list[Any]) -> None:
    """Puts the inputs of a body into an order."""
    first = next(n for n in body.graph.nodes if n not in placeholders) if len(body.graph.nodes) > len(placeholders) else None
    for node in placeholders:
        if first is not None:
            first.prepend(node)
        else:
            last = list(body.graph.nodes)[-1]
            if last is not node:
                last.append(node)
    body._last = placeholders[-1]


_FUNCTIONS: dict[Callable, tuple[str, tuple[str, ...]]] = {
    control.cond: ("cond", ("pred", "true_fn", "false_fn", "operands")),
    control.while_loop: ("while_loop", ("cond_fn", "body_fn", "carried_inputs")),
    control.scan: ("scan", ("combine_fn", "init", "xs", "dim", "reverse")),
}
