"""CodeGen: writes a graph as the source of a Python function."""

from __future__ import annotations

import enum
import inspect
import math
import os
import pprint
import re
import types
import typing
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from .._C import Tensor
from .._lazy import set_module
from ..utils import _pytree as pytree
from ._names import is_from_torch
from ._namespace import _custom_builtins
from ._source_names import _format_target, _name, _parameter
from ._tensor_text import describe, paint
from ._wrapped import wrap
from .node import Node, _get_qualified_name, _type_repr

if TYPE_CHECKING:
    from ._namespace import _Namespace

TransformCodeFunc = Callable[[list], list]  # changes the lines of a generated function's body

# Ranges of generated code in profiles. The first one is named after the file once the code is complete.
GRAPH_PLACEHOLDER = "ENTER_GRAPH_PLACEHOLDER_KEY"
_RECORD = "torch._C._profiler._RecordFunctionFast('## {} ##')"
RECORD_GRAPH = _RECORD.format(GRAPH_PLACEHOLDER)

reflectable_magic_methods = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}", "truediv": "{} / {}", "div": "{} / {}",
    "mod": "{} % {}", "pow": "{} ** {}", "lshift": "{} << {}", "rshift": "{} >> {}", "and_": "{} & {}", "or_": "{} | {}",
    "xor": "{} ^ {}", "getitem": "{}[{}]", "matmul": "{} @ {}",
}  # fmt: skip
magic_methods = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}", "ge": "{} >= {}", "pos": "+{}",
    "neg": "-{}", "invert": "~{}", **reflectable_magic_methods,
}  # fmt: skip
inplace_methods = {
    "iadd": "{} += {}", "iand": "{} &= {}", "ifloordiv": "{} //= {}", "ilshift": "{} <<= {}", "imod": "{} %= {}",
    "imul": "{} *= {}", "imatmul": "{} @= {}", "ior": "{} |= {}", "ipow": "{} **= {}", "irshift": "{} >>= {}",
    "isub": "{} -= {}", "itruediv": "{} /= {}", "ixor": "{} ^= {}", "setitem": "{}[{}] = {}",
}  # fmt: skip

# Containers' origins, whose subscripted forms of `typing` are written with typing's names.
_TYPING_ORIGINS = {list: typing.List, dict: typing.Dict, set: typing.Set, frozenset: typing.FrozenSet, tuple: typing.Tuple}  # noqa: UP006
_COUNTER = re.compile(r"# COUNTER: (\d+)")
_VARIABLE = re.compile(r"\*{0,2}\w+")  # a parameter without its annotation, default and comment
_FRAME = re.compile(r"^File \"(.+)\", line (\d+), in (.+)$")


@dataclass
class PythonCode:
    """A graph as Python source.

    Attributes:
        src: the source of the function.
        globals: the values of its global names.
        _lineno_map: from the function's line number to the node's index, or None.
        _prologue_start: the line of `def` in src.
    """

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None
    _prologue_start: int = 0


@dataclass(frozen=True)
class _ParsedStackTrace:
    """The innermost frame of a stack trace."""

    file: str
    lineno: str
    name: str
    code: str

    def get_summary_str(self) -> str:
        return f"File: {self.file}:{self.lineno} in {self.name}, code: {self.code}"


def _parse_stack_trace(trace: str, filter_fn: Callable[[str, str, str], bool] | None = None) -> _ParsedStackTrace | None:
    """The innermost frame of a formatted stack trace that passes the filter; None if there is none."""
    if trace is None:
        return None
    lines = trace.strip().split("\n")
    for i in range(len(lines) - 2, -1, -1):
        match = _FRAME.match(lines[i].strip())
        if match:
            frame = _ParsedStackTrace(*match.groups(), lines[i + 1].strip())
            if filter_fn is None or filter_fn(frame.file, frame.name, frame.code):
                return frame
    return None


class CodeGen:
    """Writes a graph as a Python function. Subclasses change its signature, its return statement or its globals."""

    _sym_repr: Callable[[Any], str] = staticmethod(repr)

    def __init__(self) -> None:
        self._body_transformer: TransformCodeFunc | None = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        """The line `def forward(self, ...)`, or with expanded_def one line per parameter.

        Args:
            free_vars: the parameters, with annotations and defaults; self is added in front.
            maybe_return_annotation: " -> type" or "".
        """
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        if not expanded_def:
            return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"
        lines = []
        for variable in free_vars:
            text, sharp, comment = variable.partition("#")
            lines.append(f"    {text.rstrip()},  # {comment.lstrip()}\n" if sharp else f"    {variable},\n")
        return f"def {self._func_name}(\n{''.join(lines)}){maybe_return_annotation}:"

    def generate_output(
        self, output_args: Any, *, descs: Sequence[str] | None = None, repr_fn: Callable[[Any], str] | None = None
    ) -> str:
        """The return statement.

        Args:
            descs: comments for the elements of a tuple or list, each printed on its own line.
            repr_fn: formats a value; by default repr.
        """
        return self._returning(output_args, descs, repr_fn or repr, "return ", "")

    def _returning(self, value: Any, descs: Sequence[str] | None, text: Callable, before: str, after: str) -> str:
        if descs is None or not isinstance(value, (list, tuple)):
            return f"{before}{text(value)}{after}"
        left, right = "()" if isinstance(value, tuple) else "[]"
        lines = "".join(f"    {text(item)},  # {desc}\n" for item, desc in zip(value, descs))
        return f"{before}{left}\n{lines}{right}{after}"

    def process_inputs(self, *args: Any) -> Any:
        """The values of the graph's placeholders for a call's arguments."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """A call's result for the value of the graph's output."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Names and values that the generated function needs besides those of the nodes."""
        return []

    def _gen_python_code(self, nodes: Iterable[Node], root_module: str, namespace: _Namespace, **options: Any) -> PythonCode:
        return _FunctionWriter(self, nodes, root_module, namespace, **options).write()


class _PyTreeInfo(NamedTuple):
    """The structure of a traced function's arguments and result; out_spec is None until it has returned."""

    orig_args: list[str]
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec | None


class _PyTreeCodeGen(CodeGen):
    """Flattens the arguments into the placeholders, and builds the traced structure from the result.

    Args:
        pytree_info: the structures.
        only_positional: in_spec describes a tuple of arguments. Otherwise one of a tuple and a dict describes arguments
            and keyword arguments.
    """

    def __init__(self, pytree_info: _PyTreeInfo, only_positional: bool = False) -> None:
        super().__init__()
        self.pytree_info, self._only_positional = pytree_info, only_positional

    def process_inputs(self, *inputs: Any) -> Any:
        return pytree.arg_tree_leaves(*inputs)

    def process_outputs(self, out: Any) -> Any:
        if self.pytree_info is None or self.pytree_info.out_spec is None:
            return out
        return pytree.tree_unflatten(out if isinstance(out, (list, tuple)) else [out], self.pytree_info.out_spec)

    def gen_var_bindings(self, fn_args: list[str], free_vars: list[str], expanded_def: bool) -> str:
        """The statements that assign the placeholders from the arguments."""
        in_spec, orig_args = self.pytree_info.in_spec, self.pytree_info.orig_args
        signature = f"[{', '.join(fn_args)}], self._in_spec"
        if (
            not self._only_positional
            and in_spec.type is tuple
            and in_spec.num_children == 2
            and in_spec.child(0).type is tuple
            and in_spec.child(1).type is dict
        ):
            count = in_spec.child(0).num_children
            keywords = ", ".join(f"{key!r}:{name}" for key, name in zip(in_spec.child(1).context, orig_args[count:]))
            signature = f"([{', '.join(orig_args[:count])}], {{{keywords}}}), self._in_spec"
        annotated = [variable for variable in free_vars if ":" in variable]
        bindings = ""
        if annotated:
            bindings = "\n    " + ("\n    ".join(annotated) if expanded_def else "; ".join(annotated) + ";\n")
        plain = [_VARIABLE.match(variable).group() for variable in free_vars]
        return f"{bindings}\n    {', '.join(plain)}, = fx_pytree.tree_flatten_spec({signature})"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        if self.pytree_info is None:
            return super().gen_fn_def(free_vars, maybe_return_annotation, expanded_def=expanded_def)
        fn_args = [_parameter(name) for name in self.pytree_info.orig_args]
        if fn_args and fn_args[0] == "self":
            free_vars.insert(0, "self")
        definition = super().gen_fn_def(fn_args[:], maybe_return_annotation, expanded_def=expanded_def)
        return definition + (self.gen_var_bindings(fn_args, free_vars, expanded_def) if free_vars else "")

    def generate_output(
        self, output_args: Any, *, descs: Sequence[str] | None = None, repr_fn: Callable[[Any], str] | None = None
    ) -> str:
        if not self.pytree_info or not self.pytree_info.out_spec:
            return super().generate_output(output_args, descs=descs, repr_fn=repr_fn)
        return self._returning(output_args, descs, repr_fn or repr, "return pytree.tree_unflatten(", ", self._out_spec)")


class _FunctionWriter:
    """Writes the function of one graph. Used once."""

    def __init__(
        self,
        codegen: CodeGen,
        nodes: Iterable[Node],
        root_module: str,
        namespace: _Namespace,
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        expanded_def: bool = False,
        record_func: bool = False,
        additional_meta: list[str] | None = None,
    ) -> None:
        self._codegen, self._nodes, self._root, self._names = codegen, list(nodes), root_module, namespace
        self._verbose, self._expanded, self._colored = verbose, expanded_def, colored
        self._stride = include_stride or os.environ.get("FX_GRAPH_SHOW_STRIDE", "0") == "1"
        self._device = include_device or os.environ.get("FX_GRAPH_SHOW_DEVICE", "0") == "1"
        self._show_meta = os.environ.get("FX_GRAPH_SHOW_META", "0") == "1"
        self._additional_meta = additional_meta or []
        self._records = record_func
        self._dim, self._blue = paint("dim", colored), paint("blue", colored)
        self._parameters: list[str] = []
        self._body: list[str] = []
        self._globals: dict[str, Any] = {}
        self._wrapped: dict[str, None] = {}
        self._return_annotation = ""
        self._summary: str | None = None

    def write(self) -> PythonCode:
        for name, builtin in _custom_builtins.items():
            self._add_global(name, builtin.obj)
        last_uses = self._last_uses()
        if self._records:
            self._body.append(f"_rf = {RECORD_GRAPH}; _rf.__enter__()\n")
        for i, node in enumerate(self._nodes):
            if self._verbose:
                self._write_source_line(node)
            self._body.append(f"# COUNTER: {i}\n")
            is_recorded = self._records and node.op in ("call_function", "call_method", "call_module")
            if is_recorded:
                self._body.append(f"_rf_{node.name} = {_RECORD.format(i)}; _rf_{node.name}.__enter__()\n")
            self._write_node(node)
            self._delete_unused(node, last_uses.get(node, []))
            if is_recorded:
                self._body.append(f"_rf_{node.name}.__exit__(None, None, None)\n")
        if self._records:
            self._body.append("_rf.__exit__(None, None, None)\n")
        body = self._body or ["pass\n"]
        wraps = ""
        if self._wrapped:
            wraps = "\n".join(f'{self._add_global("wrap", wrap)}("{name}")' for name in self._wrapped)
        if self._codegen._body_transformer:
            body = self._codegen._body_transformer(body)
        for name, value in self._codegen.additional_globals():
            self._add_global(name, value)
        prologue = _call_known(
            self._codegen.gen_fn_def, self._parameters, self._return_annotation, expanded_def=self._expanded
        )
        code, line_numbers = _without_counters(body, prologue.count("\n") + 1)
        return PythonCode(
            f"\n{wraps}\n\n{prologue}\n{code}", self._globals, _lineno_map=line_numbers, _prologue_start=wraps.count("\n") + 4
        )

    # -- names and values

    def _add_global(self, hint: str, value: Any) -> str:
        """The name by which the function refers to an object."""
        if is_from_torch(value) and hint not in _custom_builtins:
            return _get_qualified_name(value)
        name = self._names.create_name(hint, value)
        if name in self._globals:
            if self._globals[name] != value:
                raise AssertionError(f"Global name {name} already assigned to different object")
            return name
        self._globals[name] = value
        return name

    def _type(self, kind: Any) -> str:
        """An annotation."""
        if kind == ():
            return "()"
        text = _type_repr(kind)
        if isinstance(kind, types.UnionType) and "|" in text:
            union = self._add_global(_type_repr(typing.Union), typing.Union)
            return f"{union}[{','.join(self._type(arg) for arg in typing.get_args(kind))}]"
        origin = getattr(kind, "__origin__", None)
        if origin:
            if isinstance(kind, typing._GenericAlias):
                origin = _TYPING_ORIGINS.get(origin, origin)
            name, arguments = self._add_global(_type_repr(origin), origin), typing.get_args(kind)
            return f"{name}[{','.join(self._type(arg) for arg in arguments)}]" if arguments else name
        return self._add_global(text, kind)

    def _text(self, arg: Any) -> str:
        """An argument as an expression."""
        if isinstance(arg, Node):
            return repr(arg)
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            return f"{self._add_global(_get_qualified_name(type(arg)), type(arg))}({', '.join(map(self._text, arg))})"
        if isinstance(arg, enum.Enum):
            return f"{self._add_global(type(arg).__name__, type(arg))}.{arg.name}"
        if isinstance(arg, complex):
            finite = math.isfinite(arg.real) and math.isfinite(arg.imag)
            if arg.real == 0.0 or arg.imag == 0.0 or not finite:
                return f"complex({self._text(arg.real)}, {self._text(arg.imag)})"
        elif isinstance(arg, Tensor):
            return f"torch.Tensor(size={list(arg.size())}, dtype={str(arg.dtype).rpartition('.')[2]})"
        elif isinstance(arg, tuple):
            return f"({', '.join(map(self._text, arg))}{',' if len(arg) == 1 else ''})"
        elif isinstance(arg, list):
            return f"[{', '.join(map(self._text, arg))}]"
        elif isinstance(arg, dict):
            return "{" + ", ".join(f"{self._text(k)}: {self._text(v)}" for k, v in arg.items()) + "}"
        elif isinstance(arg, slice):
            return f"slice({self._text(arg.start)}, {self._text(arg.stop)}, {self._text(arg.step)})"
        return self._blue(repr(arg))

    def _arguments(self, args: tuple, kwargs: dict) -> str:
        return ", ".join([*map(self._text, args), *(f"{_name(k, 'a keyword')} = {self._text(v)}" for k, v in kwargs.items())])

    # -- statements

    def _write_node(self, node: Node) -> None:
        _name(node.name, "the name of a node")
        annotation = "" if node.type is None else f" : {self._type(node.type)}"
        if self._verbose:
            annotation = self._tensor_annotation(node) or annotation
        if self._show_meta and node.meta:
            lines = "".join(f"{k}: {pprint.pformat(str(v), width=80, compact=True)}\n" for k, v in node.meta.items())
            self._body.append(f'"""\n{lines}"""\n')
        getattr(self, f"_write_{node.op}", self._write_unknown)(node, f"{node!r}{annotation}", annotation)

    def _write_unknown(self, node: Node, _left: str, _annotation: str) -> None:
        raise NotImplementedError(f"node: {node.op} {node.target}")

    def _write_placeholder(self, node: Node, _left: str, annotation: str) -> None:
        default = f" = {self._text(node.args[0])}" if node.args else ""
        comment = f"  # {node.meta['desc']}" if self._expanded and node.meta.get("desc") is not None else ""
        self._parameters.append(f"{_parameter(node.target)}{annotation}{default}{comment}")
        name = node.target.replace("*", "")
        if name != repr(node):
            self._body.append(f"{node!r} = {name}\n")

    def _write_get_attr(self, node: Node, left: str, _annotation: str) -> None:
        self._body.append(f"{left} = {_format_target(self._root, node.target)}")

    def _write_call_module(self, node: Node, left: str, _annotation: str) -> None:
        self._body.append(f"{left} = {_format_target(self._root, node.target)}({self._arguments(node.args, node.kwargs)})")

    def _write_call_method(self, node: Node, left: str, _annotation: str) -> None:
        method = _format_target(self._text(node.args[0]), node.target)
        self._body.append(f"{left} = {method}({self._arguments(node.args[1:], node.kwargs)})")

    def _write_call_function(self, node: Node, left: str, annotation: str) -> None:
        target = node.target
        if getattr(target, "__module__", "") == "_operator":
            if target.__name__ in magic_methods:
                self._body.append(f"{left} = {magic_methods[target.__name__].format(*map(self._text, node.args))}")
                return
            if target.__name__ in inplace_methods:
                statement = inplace_methods[target.__name__].format(*map(self._text, node.args))
                self._body.append(f"{statement};  {node!r}{annotation} = {self._text(node.args[0])}")
                return
        name = self._add_global(_get_qualified_name(target), target)
        if name == "getattr" and len(node.args) == 2 and isinstance(node.args[1], str) and node.args[1].isidentifier():
            self._body.append(f"{left} = {_format_target(self._text(node.args[0]), node.args[1])}")
            return
        self._body.append(f"{left} = {name}({self._arguments(node.args, node.kwargs)})")
        if node.meta.get("is_wrapped", False):
            self._wrapped.setdefault(name)

    def _write_output(self, node: Node, _left: str, _annotation: str) -> None:
        if node.type is not None:
            self._return_annotation = f" -> {self._type(node.type)}"
        descriptions = node.meta.get("desc") if self._expanded else None
        self._body.append(
            _call_known(self._codegen.generate_output, node.args[0], descs=descriptions, repr_fn=self._text)
        )

    def _tensor_annotation(self, node: Node) -> str:
        """The tensor that a pass recorded for a node, as an annotation in quotes; "" if there is none."""
        value = node.meta.get("val", node.meta.get("tensor_meta", node.meta.get("example_value")))
        if isinstance(value, Tensor):
            return f': "{describe(value, self._stride, self._device, self._colored)}"'
        if hasattr(value, "_fields") and hasattr(value, "dtype"):  # TensorMetadata
            return f': "{describe(value)}"'
        return ""

    def _write_source_line(self, node: Node) -> None:
        """A comment with the source line that created the node, if it differs from the last one."""
        if node.op in ("placeholder", "output"):
            return
        extra = ", ".join(f"{key}: {node.meta[key]}" for key in self._additional_meta if key in node.meta)
        notes = {k: v if len(str(v)) <= 40 else f"{str(v)[:40]}..." for k, v in node.meta.get("custom", {}).items()}
        source = "No stacktrace found for following nodes"
        parsed = _parse_stack_trace(node.stack_trace) if node.stack_trace else None
        if parsed:
            source = parsed.get_summary_str()
        text = f"{f'# {extra} ' if extra else ''}#{f' Annotation: {notes}' if notes else ''} {source}"
        summary = f"\n{self._dim(text)}\n"
        if summary != self._summary:
            self._summary = summary
            self._body.append(summary)

    # -- lifetimes

    def _last_uses(self) -> dict[Node, list[Node]]:
        """For each node the nodes that no later node uses."""
        seen: set[Node] = set()
        last: dict[Node, list[Node]] = {}
        for user in reversed(self._nodes):
            for node in user._input_nodes:
                if node not in seen:
                    seen.add(node)
                    last.setdefault(user, []).append(node)
        return last

    def _delete_unused(self, node: Node, unused: list[Node]) -> None:
        """Ends a node's line, releasing the values that are not needed any more."""
        if node.op == "placeholder":
            return
        if node.op == "output":
            self._body.append("\n")
            return
        names = [repr(n) for n in (unused if node.users else [*unused, node])]
        self._body.append(f";  {self._dim(' = '.join([*names, 'None']))}\n" if names else "\n")


def _call_known(method: Callable, *args: Any, **options: Any) -> Any:
    """Calls a method of a CodeGen, whose subclass may not have all options."""
    known = inspect.signature(method).parameters
    return method(*args, **{name: value for name, value in options.items() if name in known})


def _without_counters(body: list[str], first_line: int) -> tuple[str, dict[int, int | None]]:
    """Removes the comments that count nodes. Returns the indented lines, and the node's index for each line's number."""
    numbers: dict[int, int | None] = {}
    lines: list[str] = []
    index = None
    for line in "".join(body).split("\n"):
        counter = _COUNTER.search(line)
        if counter is not None:
            index = int(counter.group(1))
        else:
            numbers[len(lines) + first_line] = index
            lines.append(line)
    code = "\n".join(lines).lstrip("\n")
    return "\n".join("    " + line for line in code.split("\n")), numbers


set_module("teletensor.fx.graph", PythonCode, CodeGen)
