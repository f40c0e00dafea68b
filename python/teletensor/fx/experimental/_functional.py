"""functional(): a graph without writes. Each write becomes a new value, also of the tensors that the written one is a view of."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ... import _C
from ..._C import Tensor
from ..._higher_order_ops._operator import HigherOrderOperator
from ..._library import aten
from ..._library.dispatch import EngineOverload
from ..._library.engine_operators import operator_named
from ..._library.operators import OpOverload
from ..._torch_c_compat import _set_grad_enabled
from ...utils._pytree import tree_map
from ..graph_module import GraphModule
from ..node import Node, map_arg
from ._numbers import same_sizes
from ._recorded import RecordedTensor
from ._recording import Recording, call_one
from ._size_nodes import Layout
from ._sizes import SizeLog
from ._unbacked import DYNAMIC

# How the value of a view's tensor follows from a new value of the view: (the tensor's value, the view's value, arguments).
_INVERSES: dict[str, Callable] = {
    "alias": lambda base, new, *_: new,
    "as_strided": lambda base, new, size, stride, offset=None: call_one("as_strided_scatter.default", base, new, size, stride, offset),
    "detach": lambda base, new, *_: new,
    "diagonal": lambda base, new, offset=0, dim1=0, dim2=1: call_one("diagonal_scatter.default", base, new, offset, dim1, dim2),
    "permute": lambda base, new, dims: new.permute([dims.index(i) if i in dims else dims.index(i - len(dims)) for i in range(len(dims))]),
    "select": lambda base, new, dim, index: call_one("select_scatter.default", base, new, dim, index),
    "slice": lambda base, new, dim=0, start=None, end=None, step=1: call_one("slice_scatter.default", base, new, dim, start, end, step),
    "t": lambda base, new: new.t(),
    "transpose": lambda base, new, a, b: new.transpose(a, b),
}  # fmt: skip
_RESHAPES = ("view", "reshape", "unsqueeze", "squeeze", "flatten", "unflatten", "view_as", "_unsafe_view", "reshape_as", "ravel")
# Results that may be views of the argument, or copies: of contiguous tensors they are views.
_MAYBE_COPIES = ("reshape", "flatten", "reshape_as", "ravel", "contiguous", "to")


# Operators whose results may have other sizes for other values, and checks of numbers: they are recorded as they are called.
_CALLED = frozenset((*DYNAMIC, "_assert_scalar", "_unique2", "index", "repeat_interleave", "unique_consecutive", "unique_dim"))


class _Memory:
    """What several values share: the current value of the tensor that all are views of."""

    def __init__(self, current: Tensor, placeholder: str | None) -> None:
        self.current, self.placeholder, self.version = current, placeholder, 0
        self.tried: list[RecordedTensor] = []  # whose contiguity decides what shares the memory


class _Value:
    """A tensor of the graph: a chain of views of a memory."""

    def __init__(self, memory: _Memory, tensor: Tensor, chain: tuple = ()) -> None:
        self.memory, self.tensor, self.chain, self.version = memory, tensor, chain, memory.version

    def read(self) -> Tensor:
        """The tensor with the writes so far."""
        if self.version != self.memory.version:
            self.tensor = self.memory.current
            for call, _ in self.chain:
                self.tensor = call(self.tensor)
            self.version = self.memory.version
        return self.tensor

    def write(self, new: Tensor) -> None:
        """Replaces the value, and thereby those of the memory's other views."""
        for tensor in self.memory.tried:
            tensor.require_joins()
        bases = [self.memory.current]
        for call, _ in self.chain[:-1]:
            bases.append(call(bases[-1]))
        value = new
        for base, (_, inverse) in zip(reversed(bases), reversed(self.chain)):
            value = inverse(base, value)
        self.memory.current, self.memory.version = value, self.memory.version + 1
        if not self.chain:
            self.tensor, self.version = new, self.memory.version


def is_view(target: Any) -> bool:
    """Whether an overload's results share memory with its first argument."""
    if isinstance(target, EngineOverload):
        return operator_named(target._opname).is_view
    return isinstance(target, OpOverload) and "(a)" in target._schema.text or getattr(target, "_opname", "") == "_reshape_alias"


_NORM = "batch_norm_forward"  # the operator of the engine that writes two of its arguments, in training


def _arguments(target: EngineOverload, args: tuple, kwargs: dict) -> list[Any]:
    """The arguments in order, without the statistics that batch_norm_forward only reads."""
    values = dict(zip(operator_named(target._opname).names, args)) | kwargs
    found = [values[n] for n in operator_named(target._opname).names]
    return found if found[5] else [found[0], None, None, *found[3:]]


def _written_arguments(target: Any, args: tuple, kwargs: dict) -> list[Any]:
    """The nodes that a call writes."""
    if isinstance(target, EngineOverload):
        if target._opname == _NORM:
            return [v for v in _arguments(target, args, kwargs)[1:3] if isinstance(v, Node)]
        out = kwargs.get("out")
        return [] if out is None else list(out) if isinstance(out, (list, tuple)) else [out]
    if not isinstance(target, OpOverload):
        return []
    values = dict(zip((a.name for a in target._schema.arguments if not a.kwarg_only), args)) | kwargs
    found = [values[a.name] for a in target._schema.arguments if a.is_write and isinstance(values.get(a.name), Node)]
    if target._opname == "batch_norm" and values.get("training"):
        found += [values[n] for n in ("running_mean", "running_var") if isinstance(values.get(n), Node)]
    return found


class Functionaliser:
    """Records a graph again without writes.

    Args:
        numbers: sizes of inputs, by name and dimension, that are symbols of the log.
        log: of the sizes that may differ in other runs.
    """

    def __init__(
        self, module: GraphModule, decompositions: dict[Any, Callable] | None,
        numbers: dict[str, dict[int, int]] | None = None, log: SizeLog | None = None,
    ) -> None:  # fmt: skip
        self.module, self.numbers = module, numbers or {}
        self.recording = Recording(True, decompositions, log)
        self.values: dict[Node, Any] = {}
        self.memories: list[_Memory] = []
        self.copies: list[Node] = []  # of values that were written by copy_()

    def _memory(self, tensor: Tensor, placeholder: str | None = None) -> _Value:
        memory = _Memory(tensor, placeholder)
        self.memories.append(memory)
        return _Value(memory, tensor)

    def _wrapped(self, result: Any) -> Any:
        return tree_map(lambda v: self._memory(v) if isinstance(v, Tensor) else v, result)

    def _read(self, argument: Any) -> Any:
        def read(node: Node) -> Any:
            return tree_map(lambda v: v.read() if isinstance(v, _Value) else v, self.values[node])

        return map_arg(argument, read)

    def run(self) -> tuple[GraphModule, list[str]]:
        """The new module, and the names of the inputs that it writes, whose new values are its first results."""
        with self.recording:
            for node in self.module.graph.nodes:
                if node.op == "placeholder":
                    val = node.meta.get("val")
                    if not isinstance(val, Tensor):  # the graph does not use it
                        self.values[node] = self.recording.number(node.name, val)
                        continue
                    made = self.recording.placeholder(node.name, val, self.numbers.get(node.name))
                    self.values[node] = self._memory(made, node.name)
                elif node.op == "get_attr":
                    self.values[node] = self._attribute(node)
                elif node.op == "output":
                    return self._finish(node)
                else:
                    self.values[node] = self._call(node)
        raise AssertionError("[functional] expected an output node")

    def _attribute(self, node: Node) -> Any:
        value = self.module
        for part in node.target.split("."):
            value = getattr(value, part)
        if not isinstance(value, Tensor):
            setattr(self.recording.root, node.target, value)
            return value
        with self.recording.unrecorded():
            return self._memory(self.recording.constant(value, fresh=False, detached=True))

    def _finish(self, node: Node) -> tuple[GraphModule, list[str]]:
        changed = [m for m in self.memories if m.placeholder is not None and m.version]
        outputs = tree_map(
            lambda v: self.recording.own(v)._node if isinstance(v, Tensor) else self.recording.argument(v),
            self._read(node.args[0]),
        )
        new = [self.recording.own(m.current)._node for m in changed]
        graph = self.recording.graph
        rest = outputs if isinstance(outputs, (list, tuple)) else (outputs,)
        graph.output((*new, *rest) if new else outputs)
        if not new:
            graph.set_codegen(self.module.graph._codegen)
        graph.eliminate_dead_code()
        self._remove_copies()
        return GraphModule(self.recording.root, graph), [m.placeholder for m in changed if m.placeholder]

    def _remove_copies(self) -> None:
        """Removes the copies of values that nothing else uses, and whose memory is new."""
        for copy in self.copies:
            source = copy.args[0] if copy.users else None
            if source is None or source.op != "call_function" or len(source.users) > 1 or not isinstance(source.target, OpOverload):
                continue
            if not is_view(source.target) and source.target._opname not in (*_RESHAPES, *_MAYBE_COPIES):
                copy.replace_all_uses_with(source)
                self.recording.graph.erase_node(copy)

    def _call(self, node: Node) -> Any:
        target, args, kwargs = node.target, node.args, dict(node.kwargs)
        self.recording.origin = node
        if target is operator.getitem:
            found = self.values[args[0]]
            return found[args[1]]
        written = _written_arguments(target, args, kwargs)
        if target is _set_grad_enabled:
            return None
        if getattr(target, "_opname", "").startswith("sym_") and isinstance(args[0], Node) and args[0] in self.values:
            method = {"sym_size": "size", "sym_stride": "stride", "sym_numel": "numel", "sym_storage_offset": "storage_offset"}
            return getattr(self.values[args[0]].read(), method[target._opname])(*args[1:])
        if getattr(target, "_opname", "") in ("item", "_local_scalar_dense"):
            return self.values[args[0]].read().item()
        if isinstance(target, HigherOrderOperator):
            return self._higher_order(node)
        if not written:
            return self._pure(target, args, kwargs)
        if getattr(target, "_opname", "") == "batch_norm":
            return self._batch_norm(args)
        if getattr(target, "_opname", "") == _NORM:
            return self._batch_norm_forward(target, _arguments(target, args, kwargs))
        result = self._without_write(target, args, kwargs)
        results = [result] if isinstance(result, Tensor) else list(result)
        for argument, new in zip(written, results):
            value = self.values[argument]
            old = value.read()
            new = new if new.dtype == old.dtype else new.to(old.dtype)
            new = new if same_sizes(new.shape, old.shape) else new.expand(old.shape)
            if getattr(target, "_opname", "") == "copy_":
                new = call_one("clone.default", new)
                self.copies.append(self.recording.own(new)._node)
            value.write(new)
        return self.values[written[0]] if len(written) == 1 else tuple(self.values[w] for w in written)

    def _higher_order(self, node: Node) -> Any:
        """Keeps a call with graphs as it is; a region without gradients becomes a part of this graph."""
        modules = [self.values[a] for a in node.all_input_nodes if isinstance(self.values[a], GraphModule)]
        if node.target.name() == "wrap_with_set_grad_enabled":
            return self._inlined(modules[0], [self.values[a] for a in node.args[2:]])
        if any(_written_arguments(n.target, n.args, n.kwargs) for m in modules for n in m.graph.nodes if n.op == "call_function"):
            raise NotImplementedError(f"[functional] writes in the functions of {node.target}")
        recording = self.recording

        def argument(found: Any) -> Any:
            if isinstance(found, GraphModule):
                name = next(n for n, m in recording.root.named_children() if m is found)
                return recording.graph.get_attr(name)
            return recording.own(found.read())._node if isinstance(found, _Value) else recording.argument(found)

        items = {n.args[1]: n.meta.get("symbolic_sizes", {}) for n in node.users if n.target is operator.getitem}

        def layout(place: int, value: Tensor) -> Layout | None:
            texts = items.get(place, {}) if recording.log is not None and not recording.log.constant else {}
            if None in texts.values():
                raise NotImplementedError(f"[functional] the sizes of the results of {node} are no known expressions")
            if not texts:
                return None
            sizes = [recording.log.number_of(texts[d]) if d in texts else n for d, n in enumerate(value.shape)]
            return Layout.dense(recording.log.facts, value, sizes)

        args = map_arg(node.args, lambda n: argument(self.values[n]))
        with recording.unrecorded():
            made = recording.add(node.target, args, {})
            values = tuple(map(recording.without_values, node.meta["val"]))
            layouts = [layout(i, v) for i, v in enumerate(node.meta["val"])]
            return self._wrapped(recording.result(made, values, node.meta["val"][0].device, layouts))

    def _inlined(self, module: GraphModule, arguments: list[Any]) -> Any:
        given = iter(arguments)
        for node in module.graph.nodes:
            if node.op == "output":
                return tuple(self.values[n] for n in node.args[0])
            self.values[node] = next(given) if node.op == "placeholder" else self._call(node)
        raise AssertionError("[functional] expected an output node")

    def _pure(self, target: Any, args: tuple, kwargs: dict) -> Any:
        positional, keyword = self._read(args), self._read(kwargs)
        called = isinstance(target, OpOverload) and getattr(target, "_opname", "") not in _CALLED
        result = self.recording.one(target, positional, keyword) if called else target(*positional, **keyword)
        if not is_view(target) or not isinstance(args[0], Node):
            return self._wrapped(result)
        base = self.values[args[0]]
        if target._opname in _MAYBE_COPIES and target._opname != "to":
            source = self.recording.own(positional[0])
            base.memory.tried.append(source)
            if not self._shares(target._opname, args[0], base, result):
                made = self._memory(result)
                made.memory.tried.append(source)
                return made
        if isinstance(result, Tensor):
            return self._view(base, target, result, positional[1:], keyword, None)
        return type(result)(self._view(base, target, r, positional[1:], keyword, i) for i, r in enumerate(result))

    def _shares(self, name: str, source: Node, base: _Value, result: Tensor) -> bool:
        """Whether the result of contiguous(), reshape() and the like is a view, by the strides of the graph's own tensor."""
        like = self.recording.without_values(source.meta.get("val", base.tensor))
        with self.recording.unrecorded(), _C.DisableTorchFunction():
            if name == "contiguous" or like.is_contiguous():
                return like.is_contiguous()
            try:
                like.view(self.recording.own(result).plain_sizes())
            except RuntimeError:
                return False
            return True

    def _view(self, base: _Value, target: Any, result: Tensor, rest: tuple, keyword: dict, item: int | None) -> Any:
        name = target._opname
        if name == "to":
            if (result.dtype != base.tensor.dtype or result.device != base.tensor.device):
                return self._memory(result)
            return _Value(base.memory, result, (*base.chain, (self._again(target, rest, keyword, item), _unknown(name))))

        def inverse(whole: Tensor, new: Tensor) -> Tensor:
            if name in _RESHAPES or name in ("contiguous", "to"):
                return new.reshape(whole.shape)
            if item is not None and name == "unbind":
                return call_one("select_scatter.default", whole, new, *(rest or (keyword.get("dim", 0),)), item)
            if name not in _INVERSES or item is not None:
                raise NotImplementedError(f"[functional] a write to a result of {target}, which is a view")
            return _INVERSES[name](whole, new, *rest, **keyword)

        return _Value(base.memory, result, (*base.chain, (self._again(target, rest, keyword, item), inverse)))

    def _again(self, target: Any, rest: tuple, keyword: dict, item: int | None) -> Callable:
        def call(whole: Tensor) -> Tensor:
            found = self.recording.one(target, (whole, *rest), keyword)
            return found if item is None else found[item]

        return call

    def _batch_norm(self, args: tuple) -> Any:
        values = self._read(args)
        functional_norm = aten.packet("_native_batch_norm_legit_functional").default
        results = self.recording.one(functional_norm, (*values[:6], *values[6:8]), {})
        for node, new in zip(args[3:5], results[3:5]):
            self.values[node].write(new)
        return self._memory(results[0])

    def _batch_norm_forward(self, target: EngineOverload, args: list) -> Any:
        """Calls the operator without its statistics, whose new values follow from the input's mean and variance."""
        values = self._read(tuple(args))
        results = self.recording.one(target, (values[0], None, None, *values[3:]), {})
        x, momentum = values[0].to(results[1].dtype), values[6]
        variance = x.var([d for d in range(x.dim()) if d != 1], correction=1)
        for node, new in zip(args[1:3], (results[1], variance)):
            if isinstance(node, Node):
                old = self.values[node].read()
                self.values[node].write((old * (1 - momentum) + new * momentum).to(old.dtype))
        return self._wrapped(results)

    def _without_write(self, target: Any, args: tuple, kwargs: dict) -> Any:
        """Calls the variant of an operator that returns new tensors."""
        positional, keyword = list(self._read(args)), dict(self._read(kwargs))
        if isinstance(target, EngineOverload):
            keyword.pop("out")
            return self.recording.one(target, tuple(positional), keyword)
        name = target._opname
        if name == "copy_":
            source = positional[1]
            return source if isinstance(source, Tensor) else positional[0].new_full(positional[0].shape, source)
        if name == "fill_":
            return _C.torch.full_like(*positional)
        if name == "zero_":
            return _C.torch.zeros_like(positional[0])
        overload_name = target._overloadname
        if target.namespace != "aten":
            raise NotImplementedError(f"[functional] {target} has no variant that returns a new tensor")
        if target.has_out:
            for a in target._schema.arguments:
                if a.is_write:
                    keyword.pop(a.name, None)
            base = aten.packet(name)
            return self.recording.one(aten.select(base, tuple(positional), keyword), tuple(positional), keyword)
        base = aten.packet(name.removesuffix("_")) if name.endswith("_") else None
        if base is None or overload_name not in base.overloads() or getattr(base, overload_name)._schema.is_mutable:
            raise NotImplementedError(f"[functional] {target} has no variant that returns a new tensor")
        return self.recording.one(getattr(base, overload_name), tuple(positional), keyword)


def _unknown(name: str) -> Callable:
    def inverse(*_: Any) -> Tensor:
        raise NotImplementedError(f"[functional] a write to a result of {name}(), which may be a copy or a view")

    return inverse


def check_apart(written: list[Tensor], others: list[Tensor], what: str) -> None:
    """Raises NotImplementedError if a written tensor has memory of another written one, or of one of the others.

    Graphs without writes treat all inputs as values of their own, and store new values at the end.
    """
    seen: dict[tuple, list[tuple[int, int]]] = {}
    for i, tensor in enumerate((*written, *others)):
        while _C._is_wrapper(tensor):
            if not isinstance(getattr(tensor, "_value", None), Tensor):
                return
            tensor = tensor._value
        if tensor.numel() == 0:
            continue
        first = tensor.storage_offset() * tensor.itemsize
        end = first + (sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride())) + 1) * tensor.itemsize
        ranges = seen.setdefault((tensor._session, tensor._storage[0], tensor.device), [])
        if any(first < b and a < end for a, b in ranges):
            raise NotImplementedError(f"[{what}] inputs share memory, and some are written")
        if i < len(written):
            ranges.append((first, end))


def functional(module: GraphModule, decompositions: dict[Any, Callable] | None = None) -> tuple[GraphModule, list[str]]:
    """Returns the module without writes, and the names of the inputs that it wrote.

    The new values of these inputs are its first results, before those of the module.

    Raises:
        NotImplementedError: a write has no form that returns a new value.
    """
    return Functionaliser(module, decompositions).run()
