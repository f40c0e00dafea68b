"""An exported program from the JSON objects of PyTorch's .pt2 format."""

from __future__ import annotations

import functools
import json
import operator
import re
from typing import Any

from .. import _C, _layouts
from .._C import Tensor
from .._layouts import strided
from .._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..nn import Module
from ..utils import _pytree as pytree
from ._checks import InputCheck, TensorInput, ValueRange
from ._file_names import identifier, integer, module_name, node_name, path, text
from ._schema import MEMORY_FORMATS, dtype_of, expression_of, symbol_of
from ._targets import check_arguments, target_of
from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)

_IS_ONE = re.compile(r"Equality\(Symbol\('([A-Za-z_]\w*)'(?:, \w+=\w+)*\), Integer\(1\)\)")


def _union(value: dict) -> tuple[str, Any]:
    found = [(k, v) for k, v in value.items() if v is not None]
    if len(found) != 1:
        raise RuntimeError(f"[export.load] expected a value of one kind, got {len(found)}")
    return found[0]


def number_of(size: dict, *limits: int) -> int:
    """A size, stride or offset, or its example.

    Args:
        limits: the smallest one, which is 0 unless it is a number that no tensor has as a size.
    """
    key, content = _union(size)
    if key == "as_expr":
        key, content = _union(content.get("hint") or {"as_int": 2})
    if key != "as_int":
        raise RuntimeError(f"[export.load] expected a number, got {key}")
    return integer(content, "a size", *(limits or (0,)))


_SYMBOLIC = {"as_sym_int": SymIntArgument, "as_sym_float": SymFloatArgument, "as_sym_bool": SymBoolArgument}
_FACTORIES = ("bool", "dict", "float", "int", "list", "set", "str", "tuple")  # of a defaultdict
_PLAIN = {
    "as_bool": (bool,), "as_int": (int,), "as_float": (float, int), "as_string": (str,), "as_bools": (bool,), "as_ints": (int,),
    "as_floats": (float, int), "as_strings": (str,), "as_int_lists": (int,),
}  # fmt: skip


def plain(key: str, content: Any) -> Any:
    """A constant of a kind, or a list of them."""
    if key not in _PLAIN:
        raise NotImplementedError(f"[export.load] a constant of the kind {key}")
    values = content if key.endswith("s") else [content]
    if key == "as_int_lists":
        values = [n for row in content for n in row]
    if not isinstance(values, list) or any(type(v) not in _PLAIN[key] for v in values):
        raise RuntimeError(f"[export.load] expected values of the kind {key}, got {type(content).__name__}")
    if any(type(v) is int and not -(2**63) <= v < 2**63 for v in values):
        raise RuntimeError("[export.load] expected integers of 64 bits")
    return content


def device_of(data: dict) -> _C.device:
    """A device."""
    name, index = identifier(data["type"], "a device"), data["index"]
    return _C.device(name if index is None else f"{name}:{integer(index, 'the index of a device', 0, 255)}")


def flag(value: Any, what: str) -> bool:
    """True or False."""
    if type(value) is not bool:
        raise RuntimeError(f"[export.load] expected {what} to be true or false, got {type(value).__name__}")
    return value


def _modules_of(metadata: dict) -> dict[str, tuple[str, str]]:
    """The modules that called an operator: paths and names of types, by path; empty if the file does not have them in this form."""
    stored = metadata.get("nn_module_stack") if isinstance(metadata, dict) else None
    return dict(_stack_of(stored)) if isinstance(stored, str) and len(stored) <= 1 << 16 else {}


@functools.lru_cache(256)
def _stack_of(stored: str) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for entry in stored.split(";")[:64]:
        parts = entry.split(",")
        if len(parts) != 3:
            return {}
        name = parts[1].removeprefix("L['self']").removeprefix(".").partition("@")[0]
        found[path(name, "a module's name") if name else ""] = (name, text(parts[2], "the type of a module"))
    return found


class _GraphReader:
    """Reads one graph."""

    def __init__(self, data: dict, mode: FakeTensorMode) -> None:
        self.data, self.mode = data, mode
        self.graph, self.root = Graph(), Module()
        self.known: dict[str, Node] = {}

    def read(self) -> GraphModule:
        """The module of the graph."""
        data = self.data
        for value in data["inputs"]:
            key, content = _union(value)
            name = node_name(content["name"]) if key == "as_tensor" else f"constant_{len(self.known)}"
            self._set(name, self.graph.placeholder(name))
            if key not in ("as_tensor", "as_sym_int"):
                self.known[name].meta["val"] = None if key == "as_none" else content
        for call in data["nodes"]:
            self._call(call)
        results = [self.argument(v) for v in data["outputs"]]
        self.graph.output(results[0] if data.get("is_single_tensor_return") else tuple(results))
        return GraphModule(self.root, self.graph)

    def _set(self, name: str, node: Node) -> None:
        if node_name(name) in self.known:
            raise RuntimeError(f"[export.load] expected one value named {name}")
        self.known[name] = node
        meta = self.data["tensor_values"].get(name)
        if meta is not None:
            sizes, strides = ([number_of(n) for n in meta[k]] for k in ("sizes", "strides"))
            value = _C.torch.empty(0, dtype=dtype_of(meta["dtype"]), device="meta").new_empty_strided(sizes, strides)
            node.meta["val"] = FakeTensor._of(value, self.mode, device_of(meta["device"]))
            symbolic = {i: e and e.text() for i, e in enumerate(map(_expression, meta["sizes"])) if e is not True}
            if symbolic:
                node.meta["symbolic_sizes"] = symbolic
        elif name in self.data["sym_int_values"]:
            value = self.data["sym_int_values"][name]
            expression = _expression(value)
            node.meta["val"] = number_of(value, -(2**63))
            node.meta["symbolic_value"] = expression.text() if expression not in (None, True) else None
        elif name in self.data.get("sym_float_values", {}):
            node.meta["val"], node.meta["symbolic_value"] = 0.5, _symbol_of(self.data["sym_float_values"][name])
        elif name in self.data.get("sym_bool_values", {}):
            node.meta["val"], node.meta["symbolic_value"] = True, _symbol_of_bool(self.data["sym_bool_values"][name])

    def _call(self, call: dict) -> None:
        modules = _modules_of(call.get("metadata") or {})
        target = target_of(call["target"])
        args = tuple(self.argument(i["arg"]) for i in call["inputs"] if i.get("kind") != 2)
        kwargs = {identifier(i["name"], "a keyword"): self.argument(i["arg"]) for i in call["inputs"] if i.get("kind") == 2}
        check_arguments(target, args, kwargs)
        outputs = [_union(o) for o in call["outputs"]]
        names = [o["name"] for key, content in outputs for o in (content if key == "as_tensors" else [content]) if "name" in o]
        names = [node_name(n) for n in names]
        is_single = len(outputs) == 1 and outputs[0][0] != "as_tensors" and call.get("is_hop_single_tensor_return") is not False
        if is_single:
            name = node_name(outputs[0][1].get("name") or outputs[0][1].get("as_name"))
            node = self.graph.create_node("call_function", target, args, kwargs, name)
            self._set(name, node)
            if modules:
                node.meta["nn_module_stack"] = modules
            return
        node = self.graph.create_node("call_function", target, args, kwargs, None if call.get("name") is None else node_name(call["name"]))
        for i, name in enumerate(names):
            self._set(name, self.graph.create_node("call_function", operator.getitem, (node, i), {}, name))
            if modules:
                self.known[name].meta["nn_module_stack"] = modules
        if modules:
            node.meta["nn_module_stack"] = modules
        node.meta["val"] = [self.known[n].meta.get("val") for n in names]
        for name in names:
            if "_unused_" in name and not self.known[name].users:
                self.graph.erase_node(self.known.pop(name))

    def argument(self, value: dict) -> Any:
        """The value of an argument."""
        key, content = _union(value)
        if key == "as_none":
            return None
        if key in _PLAIN:
            return plain(key, content)
        if key == "as_tensor":
            return self._known(content["name"])
        if key == "as_tensors":
            return [self._known(t["name"]) for t in content]
        if key == "as_optional_tensors":
            return [self.argument(t) for t in content]
        if key == "as_optional_tensor":
            return self.argument(content)
        if key in ("as_sym_int", "as_sym_bool", "as_sym_float"):
            return self._size(content)
        if key == "as_sym_ints":
            return [self._size(n) for n in content]
        if key == "as_scalar_type":
            return dtype_of(content)
        if key == "as_device":
            return device_of(content)
        if key == "as_memory_format":
            return next(getattr(_layouts, n) for n, i in MEMORY_FORMATS.items() if i == content)
        if key == "as_layout":
            return strided
        if key == "as_complex":
            return complex(plain("as_float", content["real"]), plain("as_float", content["imag"]))
        if key == "as_graph":
            name = module_name(content["name"])
            if name in self.root._modules:
                raise RuntimeError(f"[export.load] expected one subgraph named {name}")
            self.root.add_module(name, _GraphReader(content["graph"], self.mode).read())
            return self.graph.get_attr(name)
        raise NotImplementedError(f"[export.load] an argument of the kind {key}")

    def _size(self, value: dict) -> Any:
        key, content = _union(value)
        if key == "as_name":
            return self._known(content)
        return plain("as_bool" if type(content) is bool else "as_float" if type(content) is float else "as_int", content)

    def _known(self, name: str) -> Node:
        if text(name, "the name of a value") not in self.known:
            raise RuntimeError(f"[export.load] expected {name!r} to be computed before its use")
        return self.known[name]


def _symbol_of(number: dict) -> str | None:
    """The symbol that a float is; None for other expressions."""
    key, content = _union(number)
    expression = expression_of(content["expr_str"]) if key == "as_expr" else None
    names = list(expression.terms) if expression is not None else []
    return names[0][0] if len(names) == 1 and len(names[0]) == 1 and expression.terms == {names[0]: 1} else None


def _symbol_of_bool(value: dict) -> str | None:
    """The symbol whose value of 1 a bool is; None for other expressions."""
    key, content = _union(value)
    found = _IS_ONE.fullmatch(text(content["expr_str"], "an expression")) if key == "as_expr" else None
    return None if found is None else found[1]


def _expression(size: dict) -> Any:
    """True for a constant size, else its expression or None."""
    key, content = _union(size)
    return True if key == "as_int" else expression_of(content["expr_str"])


def _tensor(content: dict) -> TensorArgument:
    return TensorArgument(node_name(content["arg"]["name"]))


def _input_spec(data: dict) -> InputSpec:
    kind, content = _union(data)
    if kind == "parameter":
        return InputSpec(InputKind.PARAMETER, _tensor(content), path(content["parameter_name"], "a parameter's name"))
    if kind == "buffer":
        name = path(content["buffer_name"], "a buffer's name")
        return InputSpec(InputKind.BUFFER, _tensor(content), name, flag(content["persistent"], "persistent"))
    if kind == "tensor_constant":
        return InputSpec(InputKind.CONSTANT_TENSOR, _tensor(content), path(content["tensor_constant_name"], "a constant's name"))
    if kind == "constant_input":
        key, value = _union(content["value"])
        constant = None if key == "as_none" else plain(key, value)
        return InputSpec(InputKind.USER_INPUT, ConstantArgument(node_name(content["name"]), constant), None)
    if kind == "user_input":
        key, value = _union(content["arg"])
        if key == "as_tensor":
            return InputSpec(InputKind.USER_INPUT, TensorArgument(node_name(value["name"])), None)
    raise NotImplementedError(f"[export.load] an input of the kind {kind}")


def _output_spec(data: dict, i: int) -> OutputSpec:
    kind, content = _union(data)
    names = {
        "buffer_mutation": (OutputKind.BUFFER_MUTATION, "buffer_name"),
        "parameter_mutation": (OutputKind.PARAMETER_MUTATION, "parameter_name"),
        "user_input_mutation": (OutputKind.USER_INPUT_MUTATION, "user_input_name"),
    }  # fmt: skip
    if kind in names:
        target = content[names[kind][1]]
        target = node_name(target) if kind == "user_input_mutation" else path(target, "the name of a written tensor")
        return OutputSpec(names[kind][0], _tensor(content), target)
    if kind != "user_output":
        raise NotImplementedError(f"[export.load] a result of the kind {kind}")
    key, value = _union(content["arg"])
    if key == "as_tensor":
        return OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(node_name(value["name"])), None)
    if key in _SYMBOLIC and "as_name" in value:
        argument = _SYMBOLIC[key](node_name(value["as_name"]))
        return OutputSpec(OutputKind.USER_OUTPUT, argument, None)
    constant = None if key == "as_none" else plain("as_int", value["as_int"]) if key == "as_sym_int" else plain(key, value)
    return OutputSpec(OutputKind.USER_OUTPUT, ConstantArgument(f"output_{i}", constant), None)


def _check(signature: ExportGraphSignature, tensors: dict[str, dict], in_spec: Any, ranges: dict) -> InputCheck:
    leaves: list[tuple[str, Any]] = []
    for spec in signature.input_specs:
        if spec.kind != InputKind.USER_INPUT:
            continue
        if isinstance(spec.arg, ConstantArgument):
            leaves.append((spec.arg.name, spec.arg.value))
            continue
        meta = tensors[spec.arg.name]
        sizes = []
        for size in meta["sizes"]:
            found = _expression(size)
            names = [k for k in found.terms if k] if found not in (None, True) else []
            if found is True:
                sizes.append(size["as_int"])
            elif found is not None and found.divisor == 1 and len(names) == 1 and len(names[0]) == 1 and names[0][0] in ranges:
                sizes.append((names[0][0], found.terms[names[0]], found.terms.get((), 0)))
            else:
                sizes.append(None)
        leaves.append((spec.arg.name, TensorInput(sizes, dtype_of(meta["dtype"]))))
    return InputCheck(in_spec, leaves, ranges)


def _range(name: str, data: dict) -> tuple[str, tuple[int | None, int | None]]:
    low, high = data["min_val"], data["max_val"]
    if re.fullmatch(r"z?uf?\d+", name):  # depends on values, and may be negative
        low = None if low is None else integer(low, f"the smallest {name}")
    else:
        low = 0 if low is None else integer(low, f"the smallest {name}")
    high = None if high is None else integer(high, f"the largest {name}", *([] if low is None else [low]))
    return symbol_of(identifier(name, "a symbol")), (low, high)


def _module_call(entry: dict) -> ModuleCallEntry:
    call = entry["signature"]
    name = text(entry["fqn"], "a module's name")
    if name:
        path(name.partition("@")[0], "a module's name")
    if not call:
        return ModuleCallEntry(name)
    specs = []
    for key in ("in_spec", "out_spec"):
        if not isinstance(call[key], str) or len(call[key]) > 1 << 20:
            raise RuntimeError(f"[export.load] expected {key} as a text of at most 1 MiB")
        _check_factories(json.loads(call[key]))
        _make_result_types(call[key])
        specs.append(pytree.treespec_loads(call[key]))
    arguments = call.get("forward_arg_names")
    arguments = arguments if arguments is None else [node_name(n) for n in arguments]
    values = [[_call_argument(v) for v in call.get(k) or []] for k in ("inputs", "outputs")] if name else [[], []]
    return ModuleCallEntry(name, ModuleCallSignature(*values, *specs, arguments))


def _call_argument(value: dict) -> Any:
    """A value of a submodule's call."""
    key, content = _union(value)
    if key == "as_tensor":
        return TensorArgument(node_name(content["name"]))
    if key in _SYMBOLIC:
        return _SYMBOLIC[key](node_name(content["as_name"]))
    return ConstantArgument("", None if key == "as_none" else plain(key, content))


# Calls whose results have a type of their own, which is created with the first result.
_NAMED_RESULTS = frozenset("aminmax cummax cummin kthvalue max median min mode nanmedian sort topk".split())


def _make_result_types(structure: str) -> None:
    """Makes the types of named results that a structure contains."""
    for name in sorted(_NAMED_RESULTS & set(re.findall(r"torch\.return_types\.(\w+)", structure))):
        values = _C.torch.empty(2, device="meta")
        arguments = {"kthvalue": (1,), "topk": (1,), "aminmax": ()}.get(name, (0,))
        pytree.tree_flatten(getattr(_C.torch, name)(values, *arguments))


def _check_factories(data: Any) -> None:
    """Raises RuntimeError if a structure in JSON names a function that makes missing values, other than a builtin type."""
    if isinstance(data, dict):
        module, name = data.get("default_factory_module", "builtins"), data.get("default_factory_name", "list")
        if module != "builtins" or name not in _FACTORIES:
            raise RuntimeError("[export.load] expected a defaultdict of a builtin type")
    for part in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        _check_factories(part)


def _check_structures(calls: list[ModuleCallEntry], signature: ExportGraphSignature) -> None:
    """Raises RuntimeError if the structures of the arguments and results do not fit the graph."""
    call = calls[0].signature if calls else None
    if call is None:
        raise RuntimeError("[export.load] expected the structures of the arguments and results")
    spec = call.in_spec
    if spec.type is not tuple or [c.type for c in spec.children()] != [tuple, dict]:
        raise RuntimeError("[export.load] expected the structure of a tuple of arguments and a dict of keyword arguments")
    for name in spec.child(1).context:
        identifier(name, "a keyword of the program")
    inputs = sum(s.kind == InputKind.USER_INPUT for s in signature.input_specs)
    outputs = sum(s.kind == OutputKind.USER_OUTPUT for s in signature.output_specs)
    if (spec.num_leaves, call.out_spec.num_leaves) != (inputs, outputs):
        raise RuntimeError(f"[export.load] expected structures of {inputs} arguments and {outputs} results")
    names, count = call.forward_arg_names, spec.child(0).num_children + spec.child(1).num_children
    if names is not None and (len(names) != count or len(set(names)) != count):
        raise RuntimeError(f"[export.load] expected {count} different names of arguments")


def _check_signature(signature: ExportGraphSignature, module: GraphModule, state: dict, constants: dict) -> None:
    """Raises RuntimeError if the signature does not fit the graph or the tensors."""
    nodes = [n for n in module.graph.nodes if n.op == "placeholder"]
    results = next(n for n in reversed(module.graph.nodes) if n.op == "output").args[0]
    count = len(results) if isinstance(results, (list, tuple)) else 1
    if len(nodes) != len(signature.input_specs) or count != len(signature.output_specs):
        raise RuntimeError("[export.load] expected a signature with the inputs and results of the graph")
    targets = set()
    for node, spec in zip(nodes, signature.input_specs):
        if not isinstance(spec.arg, ConstantArgument) and spec.arg.name != node.name and spec.arg.name != node.target:
            raise RuntimeError(f"[export.load] expected the input {node.name} in the signature, got {spec.arg.name}")
        if spec.kind == InputKind.USER_INPUT:
            targets.add(spec.arg.name)
            continue
        targets.add(spec.target)
        hidden = spec.kind == InputKind.CONSTANT_TENSOR or spec.persistent is False
        if spec.target not in (constants if hidden else state):
            raise RuntimeError(f"[export.load] the file has no tensor {spec.target}")
    for spec in signature.output_specs:
        if spec.target is not None and spec.target not in targets:
            raise RuntimeError(f"[export.load] expected a write to an input of the graph, got {spec.target}")


def program_of(data: dict, state: dict[str, Tensor], constants: dict[str, Tensor], examples: Any) -> ExportedProgram:
    """The program with its tensors.

    Raises:
        NotImplementedError: the program contains what does not exist here; RuntimeError: the format has another version.
    """
    if data["schema_version"]["major"] != 8:
        raise RuntimeError(f"[export.load] expected a program of the schema version 8, got {data['schema_version']}")
    content = data["graph_module"]
    module = _GraphReader(content["graph"], FakeTensorMode()).read()
    signature = ExportGraphSignature(
        [_input_spec(s) for s in content["signature"]["input_specs"]],
        [_output_spec(s, i) for i, s in enumerate(content["signature"]["output_specs"])],
    )
    _check_signature(signature, module, state, constants)
    ranges = dict(_range(n, r) for n, r in data["range_constraints"].items())
    calls = [_module_call(entry) for entry in content["module_call_graph"]]
    _check_structures(calls, signature)
    check = _check(signature, content["graph"]["tensor_values"], calls[0].signature.in_spec, ranges)
    for node, spec in zip([n for n in module.graph.nodes if n.op == "placeholder"], signature.input_specs, strict=True):
        spec.arg.name = node.name
    verifier = text((data.get("verifiers") or ["TRAINING"])[0], "the verifier")
    return ExportedProgram(
        module, module.graph, signature, state, {n: ValueRange(*r) for n, r in ranges.items()}, calls, examples, constants,
        input_check=check, verifier=verifier,
    )  # fmt: skip
