"""Conversion of an ExportedProgram: every node is translated, in order, into nodes of an ONNX graph."""

from __future__ import annotations

import builtins
import operator
import warnings
from collections.abc import Callable
from typing import Any

from .. import _C
from .._C import Tensor
from .._library import aten
from .._torch_c_compat import _set_grad_enabled
from ..export.exported_program import default_decompositions
from ..export.graph_signature import ConstantArgument, InputKind, OutputKind
from ..fx.graph_module import GraphModule
from ..fx.node import Node, map_arg
from . import _control, _custom
from . import _onnx_functions as onnx_functions
from ._builder import Builder, Shared, Value
from ._dtypes import elem_type
from ._registry import REFUSED, Untranslatable, name_of
from ._translations import load
from ._translations.fourier import ON_COMPLEX, Complex
from .errors import ConversionError, DispatchError, OnnxExporterWarning


class Failed:
    """Stands for the result of a node that could not be translated."""


FAILED = Failed()


class Absent:
    """A result of an operator that has no ONNX form; only its use is an error."""

    def __init__(self, text: str) -> None:
        self.text = text


_ACCEPT_ABSENT = frozenset(["teletensor.lu_determinant.default"])


class Problem:
    """A call that could not be translated.

    Attributes:
        node, name, reason: of the call.
        missing: whether the operator has no translation at all.
    """

    def __init__(self, node: Node, name: str, reason: str, missing: bool) -> None:
        self.node, self.name, self.reason, self.missing = node, name, reason, missing

    def text(self) -> str:
        """A line of the message, with the user's line of code."""
        trace = self.node.meta.get("stack_trace")
        where = "" if not trace else "\n      " + trace.strip().replace("\n", "\n      ")
        return f"  - {self.name} ({self.node.name}): {self.reason}{where}"


class Graph:
    """The converted model, before it becomes a ModelProto.

    Attributes:
        builder: has the nodes.
        inputs, outputs: values with names.
        weights: tensors of the program by their names in the graph.
        problems: calls without a translation.
        counts: calls by the operator's name.
        infos: results of the program's nodes, by name.
    """

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.inputs: list[Value] = []
        self.outputs: list[Value] = []
        self.weights: dict[str, Tensor] = {}
        self.problems: list[Problem] = []
        self.counts: dict[str, int] = {}
        self.infos: dict[str, Value] = {}


def writes(target: Any) -> bool:
    """Whether an operator writes its arguments."""
    schema = getattr(target, "_schema", None)
    return schema is not None and bool(getattr(schema, "is_mutable", False))


def _modules(module: GraphModule) -> Any:
    yield module
    for child in module.children():
        if isinstance(child, GraphModule):
            yield from _modules(child)


def prepared(program: Any, known: dict[str, Callable], custom: dict[Any, Callable], opset: int) -> Any:
    """The program without writes, and with decompositions in place of operators that have no translation, where there are some.

    Raises:
        ConversionError: its writes have no functional form.
    """

    def needs(name: str, target: Any) -> bool:
        if name.startswith("onnx.") and opset < 23:
            return target not in custom
        return target not in custom and name not in known and name not in REFUSED

    nodes = [n for m in _modules(program.graph_module) for n in m.graph.nodes if n.op == "call_function"]
    has_writes = any(
        writes(n.target) or (name_of(n.target) == "aten.batch_norm.default" and _trains(n)) or "out" in n.kwargs
        for n in nodes
    )
    table = default_decompositions()
    if any(name_of(n.target).startswith("onnx.") for n in nodes):
        table |= onnx_functions.decompositions()
    divisible = [n for n in nodes if n.target in table and needs(name_of(n.target), n.target)]
    if not has_writes and not divisible:
        return program
    used = {k: f for k, f in table.items() if needs(name_of(k), k)}
    try:
        return program.run_decompositions(used)
    except NotImplementedError as e:
        if has_writes:
            raise ConversionError(f"[onnx.export] the program's writes have no functional form: {e}") from e
        return program


def _trains(node: Node) -> bool:
    return len(node.args) > 5 and bool(node.args[5]) and isinstance(node.args[3], Node)


class Converter:
    """Translates the nodes of one program.

    Args:
        custom: translations by overload that are used instead of the table's.
    """

    failed = FAILED

    def __init__(self, program: Any, opset: int, custom: dict[Any, Callable]) -> None:
        self.known, self.custom = load(), custom
        self.original = program
        self.program = prepared(program, self.known, custom, opset)
        self.shared = Shared(opset)
        self.builder = Builder(self.shared)
        self.graph = Graph(self.builder)
        self.is_dynamic = bool(self.program.range_constraints)

    def run(self) -> Graph:
        """The converted graph.

        Raises:
            DispatchError: operators have no translation; the message lists all of them.
            ConversionError: some calls cannot be expressed.
        """
        values = self._inputs()
        outputs = self.translate_nodes(self.builder, self.program.graph_module, values)
        if self.graph.problems:
            raise _error(self.graph.problems, self.shared.opset)
        self._outputs(outputs)
        return self.graph

    # ---- Inputs and outputs

    def _inputs(self) -> dict[Node, Any]:
        values: dict[Node, Any] = {}
        signature = self.program.graph_signature
        specs = {s.arg.name: s for s in signature.input_specs}
        nodes = [n for n in self.program.graph.nodes if n.op == "placeholder"]
        for node in nodes:
            spec = specs[node.name]
            if (
                spec.kind == InputKind.USER_INPUT
                and not isinstance(spec.arg, ConstantArgument)
                and isinstance(node.meta.get("val"), Tensor)
            ):
                try:
                    elem_type(node.meta["val"].dtype)
                except TypeError as e:
                    raise ConversionError(f"[onnx.export] the input {node.name}: {e}") from e
                made = Value(self.builder, self.shared.fresh(_input_name(node.name)), node.meta["val"].dtype, shape_of(node))
                self.graph.inputs.append(made)
                values[node] = made
        for node in nodes:
            if node in values:
                continue
            spec = specs[node.name]
            if spec.kind == InputKind.USER_INPUT:
                values[node] = node.meta.get("val", getattr(spec.arg, "value", None))
            elif node.users or isinstance(node.meta.get("val"), Tensor):
                values[node] = self._weight(spec.target, self.program.tensor_of(spec.kind, spec.target))
        return values

    def _weight(self, name: str, tensor: Tensor) -> Any:
        if tensor.dtype.is_complex:
            pair = self._weight(f"{name}.pair", _C.torch.view_as_real(tensor.detach().resolve_conj()))
            return Complex(pair, tuple(tensor.shape))
        made = Value(self.builder, self.shared.fresh(name), tensor.dtype, tuple(tensor.shape))
        self.graph.weights[made.name] = tensor
        return made

    def _outputs(self, found: list[Any]) -> None:
        builder, taken = self.builder, {v.name for v in self.graph.inputs} | set(self.graph.weights)
        changed = []
        builder.metadata = {}
        for spec, value in zip(self.program.graph_signature.output_specs, found, strict=True):
            if spec.kind != OutputKind.USER_OUTPUT:
                changed.append(spec.target)
                continue
            if value is None:
                continue
            if isinstance(value, Absent):
                raise ConversionError(f"[onnx.export] a result of the model: {value.text}")
            if isinstance(value, Complex):
                raise ConversionError("[onnx.export] a result is complex; return torch.view_as_real() of it")
            if not isinstance(value, Value):
                value = builder.value(value)
            if value.name in taken or value.name in self.shared.initializers:
                builder.prefix = "output"
                value = builder.op("Identity", value, shape=value.shape)
                builder.prefix = "val"
            taken.add(value.name)
            self.graph.outputs.append(value)
        if changed:
            warnings.warn(
                f"[onnx.export] the model writes {', '.join(map(str, changed))}; ONNX graphs keep no state; the writes are left out",
                OnnxExporterWarning, stacklevel=5,
            )  # fmt: skip

    # ---- Nodes

    def translate_nodes(self, builder: Builder, module: GraphModule, values: dict[Node, Any]) -> list[Any]:
        """Translates a graph's nodes; returns its results. `values` has those of the placeholders."""
        for node in module.graph.nodes:
            if node.op == "placeholder":
                continue
            if node.op == "output":
                results = node.args[0] if isinstance(node.args[0], (list, tuple)) else [node.args[0]]
                return [values[r] if isinstance(r, Node) else r for r in results]
            if node.op == "get_attr":
                values[node] = self._attribute(module, node)
                continue
            values[node] = self._translated(builder, node, values)
        raise AssertionError("[onnx.export] expected an output node")

    def _attribute(self, module: GraphModule, node: Node) -> Any:
        value: Any = module
        for part in node.target.split("."):
            value = getattr(value, part)
        return self._weight(node.target, value) if isinstance(value, Tensor) else value

    def _translated(self, builder: Builder, node: Node, values: dict[Node, Any]) -> Any:
        args, kwargs = map_arg((node.args, dict(node.kwargs)), values.__getitem__)
        if _contains_failed((args, kwargs)):
            return FAILED
        if node.target is operator.getitem and isinstance(args[0], (list, tuple)):
            found = args[0][args[1]]
            if found is None:
                return Absent(f"the result {args[1]} of {node.args[0].target} has no ONNX form")
            return self._named(builder, node, found, 0)
        if node.target is _set_grad_enabled:
            return None
        builder.metadata, builder.node = metadata_of(node), node
        name = name_of(node.target)
        self.graph.counts[name] = self.graph.counts.get(name, 0) + 1
        absent = [] if name in _ACCEPT_ABSENT else [v for v in _flat((args, kwargs)) if isinstance(v, Absent)]
        if absent:
            return self._problem(node, name, absent[0].text, False)
        start = len(builder.nodes)
        builder.dtype, builder.shape = _expected(node)
        uncertain = builder.parent is not None and self.is_dynamic and any(_has_dynamic_size(v) for v in _flat((args, kwargs)))
        if uncertain:  # nodes of graphs within the program's have the example's sizes
            builder.shape = _unknown(builder.shape)
        try:
            result = self._call(builder, node, name, args, kwargs)
        except Untranslatable as e:
            return self._problem(node, name, str(e), False)
        except ConversionError:
            raise
        except TypeError as e:
            return self._problem(node, name, f"{e}", False)
        except Exception as e:  # noqa: BLE001 - reported with the user's line
            return self._problem(node, name, f"the translation failed: {type(e).__name__}: {e}", False)
        if result is FAILED:
            return result
        if isinstance(result, (list, tuple)):
            users = {n.args[1]: n for n in node.users if n.target is operator.getitem}
            return [r if i not in users else self._named(builder, users[i], r, start) for i, r in enumerate(result)]
        return self._named(builder, node, result, start)

    def _call(self, builder: Builder, node: Node, name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        if node.target in self.custom:
            return _custom.call(builder, self.custom[node.target], args, kwargs, node)
        if name in _control.OPERATORS:
            return _control.OPERATORS[name](self, builder, node, *args)
        if _contains_complex((args, kwargs)):
            if name not in ON_COMPLEX:
                return self._problem(node, name, "complex numbers, for which this operator has no translation", True)
            return ON_COMPLEX[name](builder, *args, **kwargs)
        if name in REFUSED:
            return self._problem(node, name, REFUSED[name], True)
        function = self.known.get(name) or self.known.get(_same_in_aten(node.target, name))
        if function is None:
            return self._problem(node, name, "no translation", True)
        return function(builder, *args, **kwargs)

    def _problem(self, node: Node, name: str, reason: str, missing: bool) -> Failed:
        self.graph.problems.append(Problem(node, name, reason, missing))
        return FAILED

    def _named(self, builder: Builder, node: Node, value: Any, start: int) -> Any:
        """The result with the node's name, dtype and sizes."""
        if not isinstance(value, Value):
            return value
        dtype, shape = _expected(node)
        if dtype is not None and not isinstance(dtype, list) and value.dtype is not None and value.dtype is not dtype:
            value = builder.cast(value, dtype)
        if isinstance(node.meta.get("val"), Tensor) and value.const is None:
            if builder.parent is not None and self.is_dynamic and _has_dynamic_size(value):
                shape = value.shape if value.shape is not None and len(value.shape) == len(shape) else _unknown(shape)
            value.shape = shape
        self._rename(builder, value, node.name, start)
        if builder.parent is None and value.shape is not None and value.const is None:
            self.graph.infos[value.name] = value
        return value

    def _rename(self, builder: Builder, value: Value, name: str, start: int) -> None:
        made = builder.nodes[start:] if start else builder.nodes[-8:]
        if (
            not any(value.name in record.outputs for record in made)
            or value.name == name
            or not value.name.startswith("val")
        ):
            return
        old, value.name = value.name, self.shared.fresh(name)
        for cache in (builder.shapes, builder.sizes):
            for key in [k for k in cache if (k[0] if isinstance(k, tuple) else k) == old]:
                cache[(value.name, key[1]) if isinstance(key, tuple) else value.name] = cache.pop(key)
        for record in made:
            record.outputs = [value.name if n == old else n for n in record.outputs]
            record.inputs = [value.name if n == old else n for n in record.inputs]


def _input_name(name: str) -> str:
    """The parameter's name: graphs rename those of Python's functions, such as "input"."""
    base = name.removesuffix("_1")
    return base if base != name and hasattr(builtins, base) else name


def _same_in_aten(target: Any, name: str) -> str:
    """The operator of aten that has the parameters of one of the engine's own; "" if there is none.

    Calls that write into a tensor of an operator that has no such form in aten (such as hardswish with inplace=True) are among them.
    """
    if not name.startswith("teletensor."):
        return ""
    packet = aten.packet(getattr(target, "_opname", ""))
    if packet is None or "default" not in packet.overloads():
        return ""

    def parameters(overload: Any) -> list[str]:
        return ["self" if a.name == "input" else a.name for a in overload._schema.arguments]

    return f"aten.{target._opname}.default" if parameters(packet.default) == parameters(target) else ""


def _has_dynamic_size(value: Any) -> bool:
    """Whether the sizes of a value are not all known numbers."""
    if isinstance(value, Complex):
        value = value.pair
    return isinstance(value, Value) and (value.shape is None or any(type(n) is not int for n in value.shape))


def _unknown(shapes: Any) -> Any:
    """Sizes of the same number of dimensions that are unknown; of each result if there are several."""
    if isinstance(shapes, list):
        return [None if s is None else _unknown(s) for s in shapes]
    return None if shapes is None else (None,) * len(shapes)


def _contains(value: Any, test: Callable[[Any], bool]) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_contains(v, test) for v in value)
    if isinstance(value, dict):
        return any(_contains(v, test) for v in value.values())
    return test(value)


def _flat(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    return [w for v in value for w in _flat(v)] if isinstance(value, (list, tuple)) else [value]


def _contains_failed(value: Any) -> bool:
    return _contains(value, lambda v: v is FAILED)


def _contains_complex(value: Any) -> bool:
    return _contains(value, lambda v: isinstance(v, Complex))


def shape_of(node: Node) -> tuple:
    """The sizes of a node's result: numbers, expressions of symbols, or None for dynamic ones without an expression."""
    with _C.DisableTorchFunction():  # fake tensors' attributes would pass through Python functions
        shape: list[Any] = list(node.meta["val"].shape)
    for dim, text in (node.meta.get("symbolic_sizes") or {}).items():
        shape[dim] = text
    return tuple(int(n) if type(n) is not str and n is not None else n for n in shape)


def _expected(node: Node) -> tuple[Any, Any]:
    """The dtypes and sizes of a node's results."""
    val = node.meta.get("val")
    if isinstance(val, Tensor):
        with _C.DisableTorchFunction():
            dtype = val.dtype
        return dtype, shape_of(node)
    if isinstance(val, (list, tuple)):
        users = {n.args[1]: n for n in node.users if n.target is operator.getitem}
        dtypes = [v.dtype if isinstance(v, Tensor) else None for v in val]
        shapes = [
            shape_of(users[i])
            if i in users and isinstance(v, Tensor)
            else (None,) * v.dim()
            if isinstance(v, Tensor)
            else None
            for i, v in enumerate(val)
        ]
        return dtypes, shapes
    return None, None


def metadata_of(node: Node) -> dict[str, str]:
    """What ONNX's nodes store about the program's node."""
    found = {"pkg.torch.onnx.fx_node": node.format_node() or node.name, "pkg.torch.onnx.op": name_of(node.target)}
    stack = node.meta.get("nn_module_stack")
    if stack:
        scopes = [*(name for name, _ in stack.values()), node.name]
        found["namespace"] = "/".join(s or "model" for s in scopes)
        found["pkg.torch.onnx.name_scopes"] = str(scopes)
        found["pkg.torch.onnx.class_hierarchy"] = str([f"{kind.__module__}.{kind.__qualname__}" if isinstance(kind, type) else str(kind)
                                                       for _, kind in stack.values()])  # fmt: skip
    if node.meta.get("stack_trace"):
        found["pkg.torch.onnx.stack_trace"] = node.meta["stack_trace"]
    return found


def _error(problems: list[Problem], opset: int) -> ConversionError:
    lines = "\n".join(p.text() for p in problems)
    names = sorted({p.name for p in problems})
    kind = DispatchError if any(p.missing for p in problems) else ConversionError
    return kind(
        f"[onnx.export] {len(problems)} calls cannot be expressed in opset {opset} ({', '.join(names)}):\n{lines}"
    )
