"""An exported program from the JSON objects of PyTorch's .pt2 format."""

from __future__ import annotations

import operator
from typing import Any

from .. import _C, _layouts, ops
from .._C import Tensor
from .._layouts import strided
from .._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..nn import Module
from ..utils import _pytree as pytree
from ._checks import InputCheck, TensorInput
from ._schema import MEMORY_FORMATS, dtype_of, expression_of
from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature, ValueRange
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)

_ARITHMETIC = {
    f"_operator.{name}": getattr(operator, name) for name in "add sub mul floordiv mod neg eq ne lt le gt ge".split()
}  # fmt: skip


def _union(value: dict) -> tuple[str, Any]:
    (key, content), = ((k, v) for k, v in value.items() if v is not None)
    return key, content


def number_of(size: dict) -> int:
    """A size, or its example."""
    key, content = _union(size)
    return content if key == "as_int" else (content.get("hint") or {"as_int": 2})["as_int"]


def target_of(text: str) -> Any:
    """The function of a call. Raises NotImplementedError if it does not exist here."""
    if text in _ARITHMETIC:
        return _ARITHMETIC[text]
    path = text.split(".")
    if path[:2] == ["torch", "ops"] and len(path) in (4, 5):
        found: Any = getattr(ops, path[2])
        for part in path[3:]:
            found = getattr(found, part, None)
        if found is not None:
            return found
    raise NotImplementedError(f"[export.load] the program calls {text}, which does not exist here")


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
            name = content["name"] if key == "as_tensor" else f"constant_{len(self.known)}"
            self._set(name, self.graph.placeholder(name))
            if key not in ("as_tensor", "as_sym_int"):
                self.known[name].meta["val"] = None if key == "as_none" else content
        for call in data["nodes"]:
            self._call(call)
        results = [self.argument(v) for v in data["outputs"]]
        self.graph.output(results[0] if data.get("is_single_tensor_return") else tuple(results))
        return GraphModule(self.root, self.graph)

    def _set(self, name: str, node: Node) -> None:
        self.known[name] = node
        meta = self.data["tensor_values"].get(name)
        if meta is not None:
            sizes, strides = ([number_of(n) for n in meta[k]] for k in ("sizes", "strides"))
            value = _C.torch.empty(0, dtype=dtype_of(meta["dtype"]), device="meta").new_empty_strided(sizes, strides)
            device = meta["device"]["type"] + (f":{meta['device']['index']}" if meta["device"]["index"] is not None else "")
            node.meta["val"] = FakeTensor._of(value, self.mode, _C.device(device))
            symbolic = {i: e and e.text() for i, e in enumerate(map(_expression, meta["sizes"])) if e is not True}
            if symbolic:
                node.meta["symbolic_sizes"] = symbolic
        elif name in self.data["sym_int_values"]:
            value = self.data["sym_int_values"][name]
            expression = _expression(value)
            node.meta["val"] = number_of(value)
            node.meta["symbolic_value"] = expression.text() if expression not in (None, True) else None

    def _call(self, call: dict) -> None:
        target = target_of(call["target"])
        args = tuple(self.argument(i["arg"]) for i in call["inputs"] if i.get("kind") != 2)
        kwargs = {i["name"]: self.argument(i["arg"]) for i in call["inputs"] if i.get("kind") == 2}
        outputs = [_union(o) for o in call["outputs"]]
        names = [o["name"] for key, content in outputs for o in (content if key == "as_tensors" else [content]) if "name" in o]
        is_single = len(outputs) == 1 and outputs[0][0] != "as_tensors" and call.get("is_hop_single_tensor_return") is not False
        if is_single:
            name = outputs[0][1].get("name") or outputs[0][1].get("as_name")
            self._set(name, self.graph.create_node("call_function", target, args, kwargs, name))
            return
        node = self.graph.create_node("call_function", target, args, kwargs, call.get("name"))
        for i, name in enumerate(names):
            self._set(name, self.graph.create_node("call_function", operator.getitem, (node, i), {}, name))
        node.meta["val"] = [self.known[n].meta.get("val") for n in names]
        for name in names:
            if "_unused_" in name and not self.known[name].users:
                self.graph.erase_node(self.known.pop(name))

    def argument(self, value: dict) -> Any:
        """The value of an argument."""
        key, content = _union(value)
        if key == "as_none":
            return None
        if key in ("as_bool", "as_int", "as_float", "as_string", "as_bools", "as_ints", "as_floats", "as_strings", "as_int_lists"):
            return content
        if key == "as_tensor":
            return self.known[content["name"]]
        if key == "as_tensors":
            return [self.known[t["name"]] for t in content]
        if key == "as_optional_tensors":
            return [self.argument(t) for t in content]
        if key == "as_optional_tensor":
            return self.argument(content)
        if key in ("as_sym_int", "as_sym_bool"):
            return self._size(content)
        if key == "as_sym_ints":
            return [self._size(n) for n in content]
        if key == "as_scalar_type":
            return dtype_of(content)
        if key == "as_device":
            return _C.device(content["type"] + (f":{content['index']}" if content["index"] is not None else ""))
        if key == "as_memory_format":
            return next(getattr(_layouts, n) for n, i in MEMORY_FORMATS.items() if i == content)
        if key == "as_layout":
            return strided
        if key == "as_complex":
            return complex(content["real"], content["imag"])
        if key == "as_graph":
            self.root.add_module(content["name"], _GraphReader(content["graph"], self.mode).read())
            return self.graph.get_attr(content["name"])
        raise NotImplementedError(f"[export.load] an argument of the kind {key}")

    def _size(self, value: dict) -> Any:
        key, content = _union(value)
        return self.known[content] if key == "as_name" else content


def _expression(size: dict) -> Any:
    """True for a constant size, else its expression or None."""
    key, content = _union(size)
    return True if key == "as_int" else expression_of(content["expr_str"])


def _input_spec(data: dict) -> InputSpec:
    kind, content = _union(data)
    if kind == "parameter":
        return InputSpec(InputKind.PARAMETER, TensorArgument(content["arg"]["name"]), content["parameter_name"])
    if kind == "buffer":
        return InputSpec(InputKind.BUFFER, TensorArgument(content["arg"]["name"]), content["buffer_name"], content["persistent"])
    if kind == "tensor_constant":
        return InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(content["arg"]["name"]), content["tensor_constant_name"])
    if kind == "constant_input":
        key, value = _union(content["value"])
        return InputSpec(InputKind.USER_INPUT, ConstantArgument(content["name"], None if key == "as_none" else value), None)
    if kind == "user_input":
        key, value = _union(content["arg"])
        if key == "as_tensor":
            return InputSpec(InputKind.USER_INPUT, TensorArgument(value["name"]), None)
    raise NotImplementedError(f"[export.load] an input of the kind {kind}")


def _output_spec(data: dict, i: int) -> OutputSpec:
    kind, content = _union(data)
    names = {
        "buffer_mutation": (OutputKind.BUFFER_MUTATION, "buffer_name"),
        "parameter_mutation": (OutputKind.PARAMETER_MUTATION, "parameter_name"),
        "user_input_mutation": (OutputKind.USER_INPUT_MUTATION, "user_input_name"),
    }  # fmt: skip
    if kind in names:
        return OutputSpec(names[kind][0], TensorArgument(content["arg"]["name"]), content[names[kind][1]])
    if kind != "user_output":
        raise NotImplementedError(f"[export.load] a result of the kind {kind}")
    key, value = _union(content["arg"])
    if key == "as_tensor":
        return OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(value["name"]), None)
    if key == "as_sym_int" and "as_name" in value:
        return OutputSpec(OutputKind.USER_OUTPUT, SymIntArgument(value["as_name"]), None)
    constant = None if key == "as_none" else value.get("as_int") if key == "as_sym_int" else value
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
    ranges = {n: (r["min_val"] or 0, r["max_val"]) for n, r in data["range_constraints"].items()}
    calls = []
    for entry in content["module_call_graph"]:
        call = entry["signature"]
        specs = [pytree.treespec_loads(call[k]) for k in ("in_spec", "out_spec")] if call else []
        calls.append(ModuleCallEntry(entry["fqn"], call and ModuleCallSignature([], [], *specs, call.get("forward_arg_names"))))
    check = _check(signature, content["graph"]["tensor_values"], calls[0].signature.in_spec, ranges)
    for node, spec in zip([n for n in module.graph.nodes if n.op == "placeholder"], signature.input_specs, strict=True):
        spec.arg.name = node.name
    return ExportedProgram(
        module, module.graph, signature, state, {n: ValueRange(*r) for n, r in ranges.items()}, calls, examples, constants,
        input_check=check, verifier=(data.get("verifiers") or ["TRAINING"])[0],
    )  # fmt: skip
