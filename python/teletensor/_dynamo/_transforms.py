"""Transforms of torch.func and autograd.Function.apply() during capture.

A transform is called with stand-ins of its arguments and a function that executes the user's one symbolically: so it infers what
kinds of tensors that function receives, and the metadata of the results. The node calls the transform with the body.
"""

from __future__ import annotations

import inspect
import operator
import types
from collections.abc import Callable
from typing import Any

from .. import _C
from .._C import Tensor
from ..autograd.function import FunctionCtx, once_differentiable
from ..func import functional_call, tree
from ..nn import Module
from ._bodies import Body, Slot, fill
from ._body_calls import FunctionCall, TransformCall, call_kept
from ._values import (
    Break,
    Constant,
    DictValue,
    FunctionValue,
    ObjectValue,
    SequenceValue,
    SymbolValue,
    TensorValue,
    Value,
    kind,
)  # fmt: skip
from ._wrap import entries_of_results, is_namedtuple


class TransformValue(Value):
    """A function that a transform has made, such as vmap(f)."""

    cls = types.FunctionType

    def __init__(self, transform: Callable, function: Value, options: dict[str, Any]) -> None:
        self.transform, self.function, self.options = transform, function, options


class NeedsSeed(Exception):  # noqa: N818 - begins the capture again
    """The function differentiates, and the trace was begun without a tensor that requires grad."""


class KeptFunction(Value):
    """A function that a node has returned, such as that of vjp()."""

    cls = types.FunctionType

    def __init__(self, node: Any, example: Callable) -> None:
        self.node, self.example = node, example


class _Table:
    """The transforms, when torch.func has been imported."""

    makers: dict[Any, str] = {}
    immediate: dict[Any, str] = {}
    codes: dict[types.CodeType, Any] = {}

    @classmethod
    def load(cls) -> None:
        """Fills the table."""
        from ..func import functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap

        cls.immediate.update({vjp: "vjp", jvp: "jvp", linearize: "linearize"})
        for function in (functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, vmap):
            cls.makers[function] = function.__name__
            for code in function.__code__.co_consts:
                if isinstance(code, types.CodeType) and code.co_name in ("mapped", "differentiated", "functional"):
                    cls.codes[code] = function


_ONCE = next(c for c in once_differentiable.__code__.co_consts if isinstance(c, types.CodeType))


class Transforms:
    """A part of Executor.

    Attributes:
        seed: a tensor without dimensions that requires grad, for stand-ins of copies that do.
        derivatives: the number of transforms that differentiate backward around the function that is executed.
    """

    seed: Any = None
    needs_seed = False
    derivatives = 0

    def transform_of(self, function: FunctionValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        """The result of a call of a function of torch.func, or of one that it has made; None if it is another function."""
        if not (function.globals.get("__name__") or "").startswith("teletensor.func."):
            return None
        if not _Table.makers:
            _Table.load()
        original = function.original
        if original is functional_call:
            return self.functional_call(**self.bind_arguments(function, args, kwargs))
        if original in _Table.makers and (args or "func" in kwargs):
            bound = self.bind_arguments(function, args, kwargs)
            options = {k: self.python_value(self.real(v)) for k, v in bound.items() if k != "func"}
            return TransformValue(original, self._function(bound["func"]), options)
        if original in _Table.immediate:
            names = [n for n, p in inspect.signature(original).parameters.items() if p.kind == inspect.Parameter.KEYWORD_ONLY]
            options = {k: self.python_value(self.real(v)) for k, v in kwargs.items() if k in names}
            if kwargs.keys() - set(names) or not args:
                raise Break(f"{original.__name__}() with keyword arguments")
            return self.apply_transform(TransformCall(original, options, True), self._function(args[0]), args[1:], {})
        maker = _Table.codes.get(function.code)
        if maker is not None and function.closure:
            free = {name: self.real(cell.content) for name, cell in zip(function.code.co_freevars, function.closure) if cell.content}
            if "func" in free and "both" not in free:
                parameters = inspect.signature(maker).parameters
                options = {k: self.python_value(v) for k, v in free.items() if k != "func" and k in parameters}
                return self.call_transform(TransformValue(maker, self._function(free["func"]), options), args, kwargs)
        return None

    def _function(self, value: Value) -> Value:
        return self.real(value)

    def call_transform(self, value: TransformValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """A call of a function that a transform has made."""
        return self.apply_transform(TransformCall(value.transform, value.options, False), value.function, args, kwargs)

    def apply_transform(self, call: TransformCall, function: Value, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Adds the node of a transform's call."""
        self.begin_trace()
        nodes: list[Any] = []
        given: list[Any] = []
        positional = tuple(self._argument(a, nodes, given) for a in args)
        call.arguments = positional, {k: self._argument(v, nodes, given) for k, v in kwargs.items()}
        bodies: list[tuple[Body, list[TensorValue], Any]] = []

        def execute(*a: Any, **k: Any) -> Any:
            with self.body(may_write=True) as body:
                values = [self._received(body, x) for x in a]
                keywords = {name: self._received(body, x) for name, x in k.items()}
                result = self.real(self.call(function, values, keywords))
                tensors: list[TensorValue] = []
                template = self.template(result, tensors)
                for tensor in tensors:
                    self.node_of(tensor)
            bodies.append((body, tensors, template))
            return self._example(result)

        examples, keywords = fill(call.arguments, given)
        try:
            infer = _INFERENCES.get(call.transform.__name__)
            result = call.run(execute, examples, keywords) if infer is None else infer(self, call, execute, examples, keywords)
        except (RuntimeError, ValueError, TypeError, NotImplementedError, IndexError, KeyError) as e:
            raise Break(f"{call.__name__}: {type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}") from None
        if not bodies:
            raise Break(f"{call.__name__} does not call its function")
        body, tensors, call.template = bodies[0]
        for other, *_ in bodies[1:]:
            if list(other.lifted) != list(body.lifted) and set(other.lifted) - set(body.lifted):
                raise Break(f"{call.__name__} calls a function that uses other tensors each time")
        module = self._finished(body, tensors)
        lifted = tuple(self.here(n) for n in body.lifted)
        node = self.graph.call_function(call, (self.add_body(module, f"{call.__name__}_body"), tuple(nodes), lifted))
        self.note_place(node)
        self.calls += 1
        known = {id(v.example): v for v in self.tensors_in([*args, *kwargs.values()])}
        return self._result_of(result, node, known)

    def _argument(self, value: Value, nodes: list[Any], examples: list[Any]) -> Any:
        """The template of an argument: a Slot for each tensor, which are appended to `nodes` and `examples`."""
        value = self.real(value)
        if isinstance(value, TensorValue):
            nodes.append(self.node_of(value))
            examples.append(value.example)
            return Slot(len(nodes) - 1)
        if isinstance(value, SequenceValue) and value.cls in (list, tuple):
            return value.cls(self._argument(item, nodes, examples) for item in value.items)
        if isinstance(value, SequenceValue) and is_namedtuple(value.cls):
            return value.cls(*(self._argument(item, nodes, examples) for item in value.items))
        if isinstance(value, DictValue):
            return value.cls((k.value, self._argument(v, nodes, examples)) for k, v in value.items.values() if isinstance(k, Constant))
        value = self.plain(value)
        if isinstance(value, Constant):
            return value.value
        raise Break(f"a {kind(value)} as an argument of a function of a transform")

    def _received(self, body: Body, given: Any) -> Value:
        """The value of an argument that a transform passes to its function."""
        if isinstance(given, Tensor):
            return body.tensor("arg", given)
        if isinstance(given, (list, tuple)) and (type(given) in (list, tuple) or hasattr(given, "_fields")):
            return SequenceValue([self._received(body, g) for g in given], type(given))
        if isinstance(given, dict):
            return DictValue(entries_of_results({k: self._received(body, v) for k, v in given.items()}), type(given))
        return Constant(given)

    def _example(self, value: Value) -> Any:
        """The result of a function as the transform receives it."""
        value = self.real(value)
        if isinstance(value, (TensorValue, SymbolValue)):
            return value.example
        if isinstance(value, Constant):
            return value.value
        if isinstance(value, SequenceValue):
            items = [self._example(item) for item in value.items]
            return value.cls(*items) if hasattr(value.cls, "_fields") else value.cls(items)
        if isinstance(value, DictValue):
            return value.cls((k.value, self._example(v)) for k, v in value.items.values())
        raise Break(f"a {kind(value)} as a result of a function of a transform")

    def _result_of(self, result: Any, node: Any, known: dict[int, TensorValue]) -> Value:
        """The value that a node returns: tensors and functions in containers."""
        if isinstance(result, dict):
            entries = {k: self._result_of(v, self.graph.call_function(operator.getitem, (node, k)), known) for k, v in result.items()}
            return DictValue(entries_of_results(entries), type(result))
        if isinstance(result, (tuple, list)) and not isinstance(result, _C.Size):
            items = [self._result_of(item, self.graph.call_function(operator.getitem, (node, i)), known) for i, item in enumerate(result)]
            return SequenceValue(items, type(result))
        if isinstance(result, types.FunctionType):
            return KeptFunction(node, result)
        return self._result(result, node, known)

    def call_kept(self, value: KeptFunction, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """A call of a function that a node has returned."""
        if kwargs:
            raise Break("keyword arguments of a function that a transform has returned")
        pairs = [self.arguments(a) for a in args]
        try:
            result = value.example(*(p[1] for p in pairs))
        except (RuntimeError, ValueError, TypeError, NotImplementedError) as e:
            raise Break(f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}") from None
        node = self.graph.call_function(call_kept, (self.here(value.node), *(p[0] for p in pairs)))
        self.calls += 1
        return self._result_of(result, node, {id(v.example): v for v in self.tensors_in(args)})

    def functional_call(
        self, module: Value, parameter_and_buffer_dicts: Value, args: Value, kwargs: Value, tie_weights: Value, strict: Value
    ) -> Value:  # fmt: skip
        """torch.func.functional_call(): calls the module with other values in its registries."""
        module, given = self.real(module), self.real(parameter_and_buffer_dicts)
        dicts = given.items if isinstance(given, SequenceValue) else [given]
        values: dict[str, Value] = {}
        for entries in (self.real(d) for d in dicts):
            if not isinstance(entries, DictValue) or values.keys() & entries.items.keys():
                raise Break("functional_call() with something else than different names")
            values.update({k: self.real(v) for k, (_, v) in entries.items.items()})
        if not isinstance(module, ObjectValue) or module.original is None or not isinstance(module.original, Module):
            raise Break("functional_call() of a module that the function has made")
        if self.truth(strict) or any(not isinstance(v, TensorValue) for v in values.values()):
            raise Break("functional_call() with strict=True, or with values other than tensors")
        registries: list[tuple[DictValue, str, Value]] = []
        self._collect(module, "", registries, values, self.truth(tie_weights))
        if values:
            raise Break(f"functional_call() of {sorted(values)}, which the module does not have")
        before = [registry.items[name] for registry, name, _ in registries]
        for registry, name, value in registries:
            registry.items[name] = (registry.items[name][0], value)
        try:
            arguments = self.real(args)
            positional = [] if isinstance(arguments, Constant) and arguments.value is None else [arguments]
            if isinstance(arguments, SequenceValue) and arguments.cls is tuple:
                positional = list(arguments.items)
            named = self.real(kwargs)
            keywords = {k: v for k, (_, v) in named.items.items()} if isinstance(named, DictValue) else {}
            result = self.call(module, positional, keywords)
            if any(registry.items[name][1] is not value for registry, name, value in registries):
                raise Break("functional_call() of a module that replaces its buffers")
        finally:
            for (registry, name, _), entry in zip(registries, before):
                registry.items[name] = entry
        return result

    def _collect(self, module: Value, prefix: str, found: list, values: dict[str, Value], ties: bool) -> None:
        """The entries of registries that functional_call() replaces. Removes their names from `values`."""
        named = dict(values)
        tied: dict[int, Value] = {}
        entries: list[tuple[DictValue, str, str, Value]] = []

        def visit(module: Value, prefix: str) -> None:
            for registry in ("_parameters", "_buffers"):
                held = self.real(self.get_attribute(module, registry))
                for name, (_, value) in held.items.items():
                    entries.append((held, name, prefix + name, self.real(value)))
            for name, (_, child) in self.real(self.get_attribute(module, "_modules")).items.items():
                child = self.real(child)
                if isinstance(child, ObjectValue):
                    visit(child, f"{prefix}{name}.")

        visit(module, prefix)
        for _, _, path, value in entries:
            if path in named and isinstance(value, TensorValue):
                tied.setdefault(id(value), named[path])
        for registry, name, path, value in entries:
            if path in named:
                found.append((registry, name, named[path]))
                values.pop(path, None)
            elif ties and id(value) in tied:
                found.append((registry, name, tied[id(value)]))

    # -- autograd.Function

    def apply_recorded(self, cls: type, args: list[Value]) -> Value:
        """Function.apply() of tensors that require grad: a node with the graphs of forward() and backward()."""
        owner = Constant(cls)
        places = [i for i, v in enumerate(args) if isinstance(v, TensorValue)]
        if any(type(args[i].example) is not Tensor for i in places):
            raise Break("autograd.Function in a function of a transform")
        needs = [isinstance(v, TensorValue) and v.example.requires_grad for v in args]
        nodes = tuple(self.node_of(args[i]) for i in places)
        with self.body(may_write=True) as forward:
            given = list(args)
            for i in places:
                given[i] = forward.tensor(f"arg{i}", args[i].example, args[i].is_leaf)
            context = ObjectValue(FunctionCtx)
            self.call(self.get_attribute(context, "__init__"), [Constant(cls.__name__)], {})
            self.set_attribute(context, "needs_input_grad", SequenceValue([Constant(n) for n in needs], tuple))
            _C.set_grad_enabled(False)
            try:
                result = self.real(self.call_forward(owner, context, given))
            finally:
                _C.set_grad_enabled(True)
            outputs = self._tensors_of_result(result, given)
            settings = context.attributes
            if settings["_dirty"].items or not self.truth(settings["_materialize"]):
                raise Break("autograd.Function with mark_dirty() or set_materialize_grads(False)")
            constant_ones = [k.value for k in settings["_constant"].items.values()]
            constant = [i for i, t in enumerate(outputs) if not _can_require_grad(t.example) or any(t is k for k in constant_ones)]
            for t in outputs:
                self.node_of(t)
            with self.body() as backward:
                gradients = [backward.tensor(f"grad{i}", _C.torch.empty_like(t.example)) for i, t in enumerate(outputs)]
                function = self.real(self.get_attribute(owner, "backward"))
                is_once = isinstance(function, FunctionValue) and function.code is _ONCE
                _C.set_grad_enabled(False)
                try:
                    found = self.real(self.call(function, [context, *gradients], {}))
                finally:
                    _C.set_grad_enabled(True)
                found_values = self.elements(found) if isinstance(found, SequenceValue) else [found]
                with_gradient, returned = self._gradients_of(found_values, args, places)
                for value in returned:
                    self.node_of(value)
            saved = list(backward.lifted)
            backward_module = self._finished(backward, returned)
        results = [v.node if v.node.graph is forward.graph else forward.lift(v.node) for v in outputs]
        forward_module = forward.finish([*results, *saved])
        lifted = tuple(self.here(n) for n in forward.lifted)
        call = FunctionCall(cls, len(outputs), constant, with_gradient, is_once)
        names = [self.add_body(m, name) for m, name in ((forward_module, "forward_body"), (backward_module, "backward_body"))]
        history = [args[i].example for i in places if needs[i]]
        examples = [t.example if i in constant else _with_history(t.example, history) for i, t in enumerate(outputs)]
        values = self._outputs(call, (*names, nodes, lifted), examples)
        for value in values:
            value.may_exist = False
        return self._with_tensors(result, iter(values))

    def call_forward(self, cls: Constant, context: Value, given: list[Value]) -> Value:
        """Executes forward(), and setup_context() if the class has it."""
        forward, setup = self.get_attribute(cls, "forward"), self.real(self.get_attribute(cls, "setup_context"))
        if isinstance(setup, Constant) and setup.value is None:
            return self.call(forward, [context, *given], {})
        result = self.call(forward, given, {})
        self.call(setup, [context, SequenceValue(list(given), tuple), result], {})
        return result

    def _tensors_of_result(self, result: Value, given: list[Value]) -> list[TensorValue]:
        items = result.items if isinstance(result, SequenceValue) and result.cls in (tuple, list) else [result]
        tensors = [self.real(item) for item in items]
        if not all(isinstance(t, TensorValue) for t in tensors):
            raise Break("autograd.Function with results other than tensors")
        if any(t is v for t in tensors for v in given) or len({id(t) for t in tensors}) < len(tensors):
            raise Break("autograd.Function that returns an argument")
        if any(not self.is_in_body(t) for t in tensors):
            raise Break("autograd.Function that returns a tensor from outside")
        return tensors

    def is_in_body(self, value: TensorValue) -> bool:
        """Whether a tensor was computed in the body that is being executed."""
        return value.node is not None and value.node.graph is self.graph and value.node.op != "placeholder"

    def _gradients_of(self, found: list[Value], args: list[Value], places: list[int]) -> tuple[list[int], list[TensorValue]]:
        found = [self.real(v) for v in found]
        if len(found) < len(args):
            raise Break("backward() returns fewer gradients than forward() has arguments")
        with_gradient, returned = [], []
        for i, gradient in enumerate(found):
            if isinstance(gradient, Constant) and gradient.value is None:
                continue
            if i not in places or not isinstance(gradient, TensorValue):
                raise Break("backward() returns a gradient of something else than a tensor")
            with_gradient.append(places.index(i))
            returned.append(gradient)
        return with_gradient, returned

    def context_method(self, function: Callable, args: list[Value]) -> Value | None:
        """Methods of FunctionCtx that need more than their Python code; None if it is another function."""
        if function is FunctionCtx.mark_non_differentiable or function is FunctionCtx.mark_dirty:
            context = self.real(args[0])
            registry = "_constant" if function is FunctionCtx.mark_non_differentiable else "_dirty"
            known = context.attributes[registry]
            for tensor in args[1:]:
                tensor = self.real(tensor)
                known.items[id(tensor)] = Constant(tensor)
            return Constant(None)
        if function is _SAVED:
            return context.attributes["_saved"] if (context := self.real(args[0])) is not None else None
        return None


# Examples of the results of transforms that differentiate backward, which a trace of metadata does not execute.


def _leaf(ex: Any, x: Any) -> Any:
    """A stand-in for a copy that requires grad."""
    if not isinstance(x, Tensor) or not _can_require_grad(x):
        raise Break("a derivative with respect to something else than a floating-point tensor")
    if ex.seed is None:
        raise NeedsSeed
    if not isinstance(ex.seed, tuple):
        ex.seed = (ex.stand_in_for_own(ex.seed),)
    return x.detach() + ex.seed[0].to(x.dtype)


def _selected(args: tuple, argnums: Any) -> tuple:
    """The places of the arguments to differentiate."""
    return tuple(p % len(args) for p in ([argnums] if isinstance(argnums, int) else argnums))


def _executed(ex: Any, execute: Callable, args: tuple, kwargs: dict, places: tuple, has_aux: bool) -> tuple[Any, Any, bool]:
    """Calls the function with copies. Returns its result, aux, and whether results stay differentiable."""
    given = [leaf for p in places for leaf in tree.leaves(args[p])]
    copies = list(args)
    is_outer = ex.derivatives > 0 or any(x.requires_grad for x in given)
    was_enabled = _C.is_grad_enabled()
    ex.derivatives += 1
    _C.set_grad_enabled(True)
    try:
        for p in places:
            copies[p] = tree.map_leaves(lambda x: _leaf(ex, x), args[p])
        result = execute(*copies, **kwargs)
    finally:
        ex.derivatives -= 1
        _C.set_grad_enabled(was_enabled)
    if not has_aux:
        return result, None, is_outer
    if not isinstance(result, tuple) or len(result) != 2:
        raise Break("has_aux of a function that does not return a pair")
    return result[0], result[1], is_outer


def _plain(value: Any, is_outer: bool) -> Any:
    return value if is_outer else tree.map_leaves(lambda x: x.detach() if isinstance(x, Tensor) else x, value)


def _like(ex: Any, x: Any, is_outer: bool, sizes: tuple = ()) -> Any:
    made = x.detach().new_empty((*sizes, *x.shape)) if sizes else _C.torch.empty_like(x.detach())
    return _leaf(ex, made) if is_outer else made


def _grad_and_value(ex: Any, call: TransformCall, execute: Callable, args: tuple, kwargs: dict) -> Any:
    argnums, has_aux = call.options["argnums"], call.options["has_aux"]
    places = _selected(args, argnums)
    value, aux, is_outer = _executed(ex, execute, args, kwargs, places, has_aux)
    if not isinstance(value, Tensor) or value.dim() != 0:
        raise Break("grad() of a function that does not return one number")
    selected = args[places[0]] if isinstance(argnums, int) else tuple(args[p] for p in places)
    found = tree.map_leaves(lambda x: _like(ex, x, is_outer), selected)
    value, aux = _plain(value, is_outer), _plain(aux, is_outer)
    if call.transform.__name__ == "grad":
        return (found, aux) if has_aux else found
    return found, (value, aux) if has_aux else value


def _vjp(ex: Any, call: TransformCall, execute: Callable, args: tuple, kwargs: dict) -> Any:
    has_aux = call.options.get("has_aux", False)
    outputs, aux, is_outer = _executed(ex, execute, args, kwargs, tuple(range(len(args))), has_aux)

    def product(*cotangents: Any) -> Any:
        differentiable = is_outer or ex.derivatives > 0 or any(v.requires_grad for v in tree.leaves(cotangents))
        return tree.map_leaves(lambda x: _like(ex, x, differentiable), args)

    results = _plain(outputs, is_outer), product
    return (*results, _plain(aux, is_outer)) if has_aux else results


def _jacobian(ex: Any, call: TransformCall, execute: Callable, args: tuple, kwargs: dict) -> Any:
    argnums, has_aux = call.options["argnums"], call.options.get("has_aux", False)
    places = _selected(args, argnums)
    output, aux, is_outer = _executed(ex, execute, args, kwargs, places, has_aux)
    selected = args[places[0]] if isinstance(argnums, int) else tuple(args[p] for p in places)
    if call.transform.__name__ == "hessian":
        def second(o: Any, x: Any) -> Any:
            return tree.map_leaves(lambda z: _like(ex, z, is_outer, (*o.shape, *x.shape)), selected)

        return _mapped(lambda o: _mapped(lambda x: second(o, x), selected), output)
    found = _mapped(lambda o: tree.map_leaves(lambda x: _like(ex, x, is_outer, tuple(o.shape)), selected), output)
    return (found, _plain(aux, is_outer)) if has_aux else found


def _mapped(function: Callable, value: Any) -> Any:
    """The tree with the function, which may return trees, applied to each leaf."""
    if isinstance(value, (tuple, list)):
        return type(value)(_mapped(function, v) for v in value)
    if isinstance(value, dict):
        return {k: _mapped(function, v) for k, v in value.items()}
    return function(value)


_INFERENCES: dict[str, Callable] = {
    "grad": _grad_and_value, "grad_and_value": _grad_and_value, "vjp": _vjp, "jacrev": _jacobian, "hessian": _jacobian,
}  # fmt: skip


def _can_require_grad(example: Any) -> bool:
    return example.is_floating_point() or example.is_complex()


def _with_history(example: Any, inputs: list[Any]) -> Any:
    """A stand-in with the metadata of another, whose gradient reaches the inputs."""
    made = example.detach().clone()
    for x in inputs:
        total = x.sum()
        total = total.real if total.is_complex() and not example.is_complex() else total
        made = made + total.to(example.dtype)
    return made if made.stride() == example.stride() else _C.torch.empty_strided(
        example.shape, example.stride(), dtype=example.dtype, device=example.device
    ).copy_(made)  # fmt: skip


_SAVED = FunctionCtx.saved_tensors.fget
