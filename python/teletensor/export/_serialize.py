"""An exported program as the JSON objects of PyTorch's .pt2 format (schema version 8)."""

from __future__ import annotations

import importlib
import itertools
import json
import math
import operator
import re
from collections.abc import Collection
from typing import Any

from .. import _C
from .._C import Tensor
from .._higher_order_ops._operator import HigherOrderOperator
from .._layouts import layout, memory_format
from .._library.operators import OpOverload
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..utils import _pytree as pytree
from . import _aten_forms
from ._schema import DTYPES, MEMORY_FORMATS, STRIDED, dtype_number, expression_text, stored_symbol
from .exported_program import ExportedProgram
from .graph_signature import (
    ConstantArgument,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
)

SCHEMA_VERSION = {"major": 8, "minor": 20}
_ARITHMETIC = (
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.neg, operator.truediv, operator.eq, operator.ne,
    operator.lt, operator.le, operator.gt, operator.ge, operator.and_, operator.or_, operator.pow,
)  # fmt: skip
_SYMBOLIC = ("sym_float", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt")  # of torch
# Functions of floats. PyTorch 2.15 writes and reads trunc; it refuses programs with the others.
_ROUNDING = {math.trunc: "math.trunc", math.ceil: "math.ceil", math.floor: "math.floor", round: "builtins.round", abs: "builtins.abs"}
_NUMBERS = {bool: "as_sym_bool", int: "as_sym_int", float: "as_sym_float"}


def _stored_number(text: str, value: Any) -> dict:
    """A number that the graph computes. The format has the example of one that depends on sizes of arguments only."""
    depends_on_values = re.search(r"\bu\d+\b", text) is not None
    hint = None if depends_on_values else {"as_int": value}
    return {"as_expr": {"expr_str": expression_text(text), "hint": hint}}


def tensor_meta(tensor: Tensor, symbolic: dict[int, str | None] | None = None, requires_grad: bool | None = None) -> dict:
    """The description of a tensor."""
    sizes = [{"as_int": int(n)} for n in tuple(tensor.shape)]
    for dim, text in (symbolic or {}).items():
        if text is None:
            raise NotImplementedError("[export.save] a size that is no known expression of the dynamic sizes")
        sizes[dim] = _stored_number(text, sizes[dim]["as_int"])
    return {
        "dtype": dtype_number(tensor.dtype), "sizes": sizes,
        "requires_grad": tensor.requires_grad if requires_grad is None else requires_grad,
        "device": {"type": tensor.device.type, "index": tensor.device.index}, "strides": [{"as_int": int(n)} for n in tensor.stride()],
        "storage_offset": {"as_int": 0}, "layout": STRIDED,
    }  # fmt: skip


def _modules_of(node: Node) -> dict[str, str]:
    """The modules that called an operator, as PyTorch writes them: "key,path,type" with semicolons between."""
    found = []
    for key, (name, kind) in (node.meta.get("nn_module_stack") or {}).items():
        found.append(f"{key or 'L__self__'},{name},{kind if isinstance(kind, str) else f'{kind.__module__}.{kind.__qualname__}'}")
    return {"nn_module_stack": ";".join(found)} if found else {}


class _Symbols:
    """The symbols of a program, with those of sizes that are no known expression of others, such as those of arange(0, n / 2, 0.7)."""

    def __init__(self, known: Collection[str]) -> None:
        self.known = known
        self.more: dict[tuple[Node, int], str] = {}

    def of(self, node: Node, dim: int) -> str:
        """The symbol of a dimension of a node's result."""
        if (node, dim) not in self.more:
            used = {*self.known, *self.more.values()}
            self.more[node, dim] = next(name for k in itertools.count() if (name := f"u{k}") not in used)
        return self.more[node, dim]


class _GraphWriter:
    """Writes one graph.

    Args:
        symbols: the program's, to which the graph's are added.
    """

    def __init__(self, module: GraphModule, requires_grad: dict[str, bool], symbols: _Symbols) -> None:
        self.module, self.requires_grad, self.symbols = module, requires_grad, symbols
        self.tensors: dict[str, dict] = {}
        self.ints: dict[str, dict] = {}
        self.floats: dict[str, dict] = {}
        self.bools: dict[str, dict] = {}
        self.nodes: list[dict] = []

    def write(self) -> dict:
        """The graph."""
        graph: Graph = self.module.graph
        inputs, outputs, single = [], [], False
        for node in graph.nodes:
            if node.op == "placeholder":
                inputs.append(self.argument(node) if isinstance(node.meta.get("val"), Tensor) else self.argument(node.meta.get("val")))
                self._describe(node)
            elif node.op == "output":
                results = node.args[0]
                single = isinstance(results, Node)
                outputs = [self.argument(v) for v in ([results] if single else results)]
            elif node.op == "call_function" and node.target is not operator.getitem:
                calls = _aten_forms.in_aten(node)
                if calls is None:
                    self.nodes.append(self._call(node))
                else:
                    self._in_aten(node, calls)
        return {
            "inputs": inputs, "outputs": outputs, "nodes": self.nodes, "tensor_values": self.tensors, "sym_int_values": self.ints,
            "sym_bool_values": self.bools, "is_single_tensor_return": single, "custom_obj_values": {}, "sym_float_values": self.floats,
        }  # fmt: skip

    def _sizes(self, node: Node) -> dict[int, str]:
        """The expressions of a result's dynamic sizes."""
        known = node.meta.get("symbolic_sizes") or {}
        return {dim: self.symbols.of(node, dim) if text is None else text for dim, text in known.items()}

    def _describe(self, node: Node) -> None:
        value = node.meta.get("val")
        if isinstance(value, Tensor):
            needs = self.requires_grad.get(node.name, False)
            self.tensors[node.name] = tensor_meta(value, self._sizes(node), needs)
        elif type(value) is int and "symbolic_value" in node.meta:
            text = node.meta["symbolic_value"]
            if text is None:
                self.ints[node.name] = {"as_expr": {"expr_str": number_text(node, self.symbols), "hint": None}}
                return
            self.ints[node.name] = _stored_number(text, value)
        elif type(value) in (bool, float) and "symbolic_value" in node.meta:
            numbers = self.bools if type(value) is bool else self.floats
            numbers[node.name] = {"as_expr": {"expr_str": number_text(node, self.symbols), "hint": None}}

    def _in_aten(self, node: Node, calls: list[_aten_forms.Call]) -> None:
        """Writes a call of an operator that PyTorch lacks as calls of PyTorch's."""
        refs = {str(i): f"{node.name}_part_{i}" for i in range(len(calls) - 1)}
        for i, call in enumerate(calls):
            args = [_aten_forms.Ref(refs[a.name]) if isinstance(a, _aten_forms.Ref) else a for a in call.args]
            names = [a.name for a in call.overload._schema.arguments if not a.kwarg_only]
            inputs = [{"name": n, "arg": self.argument(v), "kind": 1} for n, v in zip(names, args)]
            inputs += [{"name": n, "arg": self.argument(v), "kind": 2} for n, v in call.kwargs.items()]
            outputs = self._outputs(node) if i == len(calls) - 1 else [{"as_tensor": {"name": refs[str(i)]}}]
            if i < len(calls) - 1:
                self.tensors[refs[str(i)]] = self._part_meta(node, call.sizes or [])
            for dtype in call.unused:
                name = f"{node.name}_unused_{len(outputs)}"
                self.tensors[name] = {**tensor_meta(node.meta["val"], self._sizes(node), False), "dtype": DTYPES[dtype]}
                outputs.append({"as_tensor": {"name": name}})
            self.nodes.append({
                "target": f"torch.ops.{call.overload}", "inputs": inputs, "outputs": outputs, "metadata": _modules_of(node),
                # A call of several results has another name than the first of them.
                "is_hop_single_tensor_return": None, "name": f"{node.name}_results" if call.unused else refs.get(str(i), node.name),
            })  # fmt: skip

    @staticmethod
    def _part_meta(node: Node, sizes: list[Any]) -> dict:
        with _C.DisableTorchFunction():
            like = _C.torch.empty(0, dtype=node.meta["val"].dtype, device="meta")
            value = _aten_forms.example(like, sizes)
        meta = tensor_meta(value, {d: n for d, n in enumerate(sizes) if not isinstance(n, int)}, False)
        return {**meta, "device": {"type": node.meta["val"].device.type, "index": node.meta["val"].device.index}}

    def _call(self, node: Node) -> dict:
        target = node.target
        if isinstance(target, OpOverload):
            name = f"torch.ops.{target}"
            names = [a.name for a in target._schema.arguments if not a.kwarg_only]
        elif isinstance(target, HigherOrderOperator):
            name, names = f"torch.ops.higher_order.{target}", [""] * len(node.args)
        elif target in _ARITHMETIC:
            name, names = f"_operator.{target.__name__}", ["a", "b"]
        elif target in _ROUNDING:
            name, names = _ROUNDING[target], ["a"]
        elif is_symbolic(target):
            prefix = "torch._" if target.__name__ == "sym_sqrt" else "torch."
            name, names = f"{prefix}{target.__name__}", ["b", "t", "f"] if target.__name__ == "sym_ite" else ["a", "b"]
        else:
            raise NotImplementedError(f"[export.save] a call of {target}")
        inputs = [{"name": n, "arg": self.argument(v), "kind": 1} for n, v in zip(names, node.args)]
        inputs += [{"name": n, "arg": self.argument(v), "kind": 2} for n, v in node.kwargs.items()]
        is_operator = isinstance(target, HigherOrderOperator)
        return {
            "target": name, "inputs": inputs, "outputs": self._outputs(node), "metadata": _modules_of(node),
            "is_hop_single_tensor_return": False if is_operator else None, "name": node.name,
        }  # fmt: skip

    def _outputs(self, node: Node) -> list[dict]:
        value = node.meta.get("val")
        if isinstance(value, Tensor):
            self._describe(node)
            return [{"as_tensor": {"name": node.name}}]
        if isinstance(value, (list, tuple)):
            items = {u.args[1]: u for u in node.users if u.target is operator.getitem}
            names = []
            for i, item in enumerate(value):
                names.append(items[i].name if i in items else f"{node.name}_unused_{i}")
                if i in items:
                    self._describe(items[i])
                else:
                    self.tensors[names[-1]] = tensor_meta(item, None, False)
            if isinstance(node.target, OpOverload) and node.target._schema.returns.endswith("[]"):
                return [{"as_tensors": [{"name": n} for n in names]}]
            return [{"as_tensor": {"name": n}} for n in names]
        if type(value) in _NUMBERS:
            self._describe(node)
            return [{_NUMBERS[type(value)]: {"as_name": node.name}}]
        return []

    def argument(self, value: Any) -> dict:
        """A value as an argument."""
        if isinstance(value, _aten_forms.Ref):
            return {"as_tensor": {"name": value.name}}
        if isinstance(value, Node):
            if value.op == "get_attr":
                part = getattr(self.module, value.target)
                if isinstance(part, Tensor):
                    raise NotImplementedError(f"[export.save] the attribute {value.target} of the graph")
                return {"as_graph": {"name": value.target, "graph": _GraphWriter(part, {}, self.symbols).write()}}
            if isinstance(value.meta.get("val"), Tensor):
                return {"as_tensor": {"name": value.name}}
            return {_NUMBERS.get(type(value.meta.get("val")), "as_sym_int"): {"as_name": value.name}}
        if isinstance(value, (list, tuple)):
            return self._list(list(value))
        for kind, key, convert in (
            (type(None), "as_none", lambda _: True), (bool, "as_bool", bool), (int, "as_int", int), (float, "as_float", float),
            (str, "as_string", str), (_C.dtype, "as_scalar_type", dtype_number), (layout, "as_layout", lambda _: STRIDED),
            (_C.device, "as_device", lambda d: {"type": d.type, "index": d.index}),
            (memory_format, "as_memory_format", lambda m: MEMORY_FORMATS[str(m).removeprefix("torch.")]),
            (complex, "as_complex", lambda c: {"real": c.real, "imag": c.imag}),
        ):  # fmt: skip
            if isinstance(value, kind):
                return {key: convert(value)}
        raise NotImplementedError(f"[export.save] an argument of the type {type(value).__name__}")

    def _list(self, values: list) -> dict:
        tensors = [isinstance(v, Node) and isinstance(v.meta.get("val"), Tensor) for v in values]
        if values and all(tensors):
            return {"as_tensors": [{"name": v.name} for v in values]}
        if any(tensors):
            return {"as_optional_tensors": [{"as_tensor": {"name": v.name}} if v is not None else {"as_none": True} for v in values]}
        if any(isinstance(v, Node) for v in values):
            return {"as_sym_ints": [{"as_name": v.name} if isinstance(v, Node) else {"as_int": v} for v in values]}
        for kind, key in ((bool, "as_bools"), (int, "as_ints"), ((int, float), "as_floats"), (str, "as_strings")):
            if all(isinstance(v, kind) and (kind is bool or not isinstance(v, bool)) for v in values):
                return {key: [float(v) for v in values] if key == "as_floats" else values}
        raise NotImplementedError(f"[export.save] a list of {[type(v).__name__ for v in values]} as an argument")


def is_symbolic(target: Any) -> bool:
    """Whether a function is torch.sym_max or the like."""
    return getattr(target, "__name__", "") in _SYMBOLIC and target is getattr(importlib.import_module("teletensor"), target.__name__)


def _is_natural(number: Any) -> bool:
    """Whether a number is a size or an expression of sizes that is never negative, as PyTorch requires of the operands of Mod."""
    if not isinstance(number, Node):
        return number >= 0
    if getattr(number.target, "_opname", "") == "sym_size":
        return True
    symbol = number.meta.get("symbolic_value")
    return symbol is not None and not re.search(r"-|\bu\d", symbol)


def number_text(node: Node, symbols: _Symbols) -> str:
    """A number or bool of the graph as the format stores it: the call that computes it."""
    names = {
        "truediv": "FloatTrueDiv", "add": "Add", "mul": "Mul", "sym_float": "ToFloat", "sym_max": "Max", "sym_min": "Min",
        "eq": "Equality", "ne": "Unequality", "lt": "StrictLessThan", "le": "LessThan", "gt": "StrictGreaterThan",
        "ge": "GreaterThan", "floordiv": "FloorDiv", "mod": "Mod", "and_": "And", "or_": "Or", "sym_not": "Not", "sym_ite": "ITE",
        "ceil": "CeilToInt", "floor": "FloorToInt", "trunc": "TruncToInt", "round": "RoundToInt", "abs": "Abs",
        "sym_sqrt": "OpaqueUnaryFn_sqrt", "pow": "PowByNatural" if type(node.meta.get("val")) is int else "FloatPow",
    }  # fmt: skip

    def text(value: Any) -> str:
        if not isinstance(value, Node):
            return f"Float('{value!r}', precision=53)" if isinstance(value, float) else f"Integer({value})"
        symbol = value.meta.get("symbolic_value")
        if type(value.meta.get("val")) is int and symbol is not None:
            return expression_text(symbol)
        is_known = value.target in _ARITHMETIC or value.target in _ROUNDING or is_symbolic(value.target)
        called = getattr(value.target, "__name__", "") if is_known else ""
        if called == "mod" and not all(map(_is_natural, value.args)):
            return f"PythonMod({', '.join(map(text, value.args))})"
        if called in names:
            return f"{names[called]}({', '.join(map(text, value.args))})"
        if value.target is operator.sub:
            return f"Add({text(value.args[0])}, Mul(Integer(-1), {text(value.args[1])}))"
        if value.target is operator.neg:
            return f"Mul(Integer(-1), {text(value.args[0])})"
        if symbol is None and isinstance(value.target, OpOverload) and value.target._opname == "sym_size":
            symbol = symbols.of(*value.args)
        if symbol is None or not symbol.isidentifier():
            raise NotImplementedError(f"[export.save] the number {value.name}, which is no known expression")
        return f"Symbol('{symbol}')"

    symbol = node.meta.get("symbolic_value")
    if type(node.meta.get("val")) is bool and symbol is not None and symbol.isidentifier():
        return f"Equality(Symbol('{symbol}'), Integer(1))"
    return text(node)


def _constant(value: Any) -> dict:
    key = {type(None): "as_none", bool: "as_bool", int: "as_int", float: "as_float", str: "as_string"}[type(value)]
    return {key: True if value is None else value}


# Types of named results that PyTorch has; those of other operators, such as var_mean, are tuples there.
_NAMED_RESULTS = frozenset("""
    aminmax cummax cummin frexp geqrf histogram histogramdd kthvalue linalg_cholesky_ex linalg_eig linalg_eigh linalg_inv_ex
    linalg_ldl_factor linalg_ldl_factor_ex linalg_lstsq linalg_lu linalg_lu_factor linalg_lu_factor_ex linalg_qr linalg_slogdet
    linalg_solve_ex linalg_svd lu_unpack max median min mode nanmedian slogdet sort svd topk triangular_solve
""".split())


def _structure(spec: Any) -> str:
    """A structure as JSON, with types that PyTorch has."""

    def known(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        kind = value.get("type")
        is_tuple = isinstance(kind, str) and kind.startswith("torch.return_types.") and kind.split(".")[-1] not in _NAMED_RESULTS
        children = [known(v) for v in value["children_spec"]]
        return {**value, "children_spec": children, **({"type": "builtins.tuple", "context": "null"} if is_tuple else {})}

    return json.dumps([known(v) for v in json.loads(pytree.treespec_dumps(spec, 1))])


def _call_argument(argument: Any) -> dict:
    """A value of a submodule's call."""
    if isinstance(argument, ConstantArgument):
        return _constant(argument.value)
    for kind, key in ((SymFloatArgument, "as_sym_float"), (SymBoolArgument, "as_sym_bool")):
        if isinstance(argument, kind):
            return {key: {"as_name": argument.name}}
    return {"as_sym_int": {"as_name": argument.name}} if isinstance(argument, SymIntArgument) else {"as_tensor": {"name": argument.name}}


def _input_spec(spec: InputSpec) -> dict:
    arg = {"name": spec.arg.name}
    if isinstance(spec.arg, ConstantArgument):
        return {"constant_input": {"name": spec.arg.name, "value": _constant(spec.arg.value)}}
    if spec.kind == InputKind.PARAMETER:
        return {"parameter": {"arg": arg, "parameter_name": spec.target}}
    if spec.kind == InputKind.BUFFER:
        return {"buffer": {"arg": arg, "buffer_name": spec.target, "persistent": spec.persistent}}
    if spec.kind == InputKind.CONSTANT_TENSOR:
        return {"tensor_constant": {"arg": arg, "tensor_constant_name": spec.target}}
    return {"user_input": {"arg": {"as_tensor": arg}}}


def _output_spec(spec: OutputSpec) -> dict:
    arg = {"name": spec.arg.name}
    if spec.kind == OutputKind.BUFFER_MUTATION:
        return {"buffer_mutation": {"arg": arg, "buffer_name": spec.target}}
    if spec.kind == OutputKind.PARAMETER_MUTATION:
        return {"parameter_mutation": {"arg": arg, "parameter_name": spec.target}}
    if spec.kind == OutputKind.USER_INPUT_MUTATION:
        return {"user_input_mutation": {"arg": arg, "user_input_name": spec.target}}
    if isinstance(spec.arg, ConstantArgument):
        return {"user_output": {"arg": _constant(spec.arg.value)}}
    return {"user_output": {"arg": _call_argument(spec.arg)}}


def program_json(program: ExportedProgram) -> dict:
    """The program without its tensors.

    Raises:
        NotImplementedError: the format, or this writer, has no form for a part of the graph.
    """
    signature = program.graph_signature
    needs = {s.arg.name: program.tensor_of(s.kind, s.target).requires_grad for s in signature.input_specs if s.target is not None}
    calls = []
    for entry in program.module_call_graph:
        call = entry.signature
        calls.append({"fqn": entry.fqn, "signature": call and {
            "inputs": [_call_argument(a) for a in call.inputs], "outputs": [_call_argument(a) for a in call.outputs],
            "in_spec": _structure(call.in_spec), "out_spec": _structure(call.out_spec),
            "forward_arg_names": call.forward_arg_names,
        }})  # fmt: skip
    symbols = _Symbols(program.range_constraints)
    graph = _GraphWriter(program.graph_module, needs, symbols).write()
    ranges = {stored_symbol(n): {"min_val": r.lower, "max_val": r.upper} for n, r in program.range_constraints.items()}
    return {
        "graph_module": {
            "graph": graph,
            "signature": {
                "input_specs": [_input_spec(s) for s in signature.input_specs],
                "output_specs": [_output_spec(s) for s in signature.output_specs],
            },
            "module_call_graph": calls, "metadata": {}, "treespec_namedtuple_fields": {},
        },
        "opset_version": {"aten": 10},
        "range_constraints": {**ranges, **{stored_symbol(n): {"min_val": 0, "max_val": None} for n in symbols.more.values()}},
        "schema_version": SCHEMA_VERSION, "verifiers": [program.dialect], "torch_version": "2.15.0", "guards_code": [],
    }  # fmt: skip
