"""The signature language: `(Tensor input, *, Scalar alpha=1) -> Tensor`."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

# Type in a signature -> (C++ ParamType, C++ type of a kernel's parameter, accessor).
SCALARS = {
    "Scalar": ("kScalar", "Scalar", "{a}.scalar()"),
    "int": ("kInt", "SymInt", "{a}.integer"),
    "float": ("kFloat", "double", "{a}.to_double()"),
    "bool": ("kBool", "bool", "{a}.to_bool()"),
    "int[]": ("kInts", "SizesView", "{a}.ints()"),
    "float[]": ("kFloats", "absl::Span<const double>", "{a}.floats()"),
    "str": ("kString", "std::string_view", "{a}.string()"),
    "DType": ("kDType", "DType", "{a}.dtype()"),
    "Device": ("kDevice", "Device", "decode_device({a}.integer)"),
}

_PARAM = re.compile(
    r"^(?P<type>Tensor\(w\)\[\]|Tensor\(w\)|Tensor\?\[\]|Tensor\[\]|Tensor|[A-Za-z]+(?:\[(?:\d*|\*)\])?)(?P<opt>\?)?"
    r" (?P<name>\w+)(?:=(?P<default>.+))?$"
)


class DeclarationError(Exception):
    """An invalid declaration; the message gives the place and the reason."""


@dataclass
class Param:
    name: str
    type: str  # Tensor, Tensor[], or a key of SCALARS
    optional: bool = False
    default: object = None
    has_default: bool = False
    keyword_only: bool = False
    list_size: int = 0
    optional_entries: bool = False
    written: bool = False
    accepts_number: bool = False  # Operand: a number may be passed for the tensor
    variadic: bool = False  # int[*]: takes all remaining positional arguments

    @property
    def is_tensor(self) -> bool:
        return self.type == "Tensor"

    @property
    def is_tensor_list(self) -> bool:
        return self.type == "Tensor[]"

    @property
    def param_type(self) -> str:
        """The ParamType enumerator."""
        if self.is_tensor:
            return "kTensor"
        if self.is_tensor_list:
            return "kTensors"
        return SCALARS[self.type][0]

    @property
    def kernel_type(self) -> str:
        """The C++ parameter type in a typed kernel."""
        if self.is_tensor:
            return "const Tensor&"
        if self.is_tensor_list:
            return "const Tensors&"
        base = SCALARS[self.type][1]
        return f"std::optional<{base}>" if self.optional else base

    @property
    def api_type(self) -> str:
        """The C++ parameter type in the typed operator function."""
        if self.is_tensor:
            return "const Operand&"
        return self.kernel_type

    def accessor(self, arg: str) -> str:
        """Returns a C++ expression that converts the Arg expression `arg` to the typed value. Tensors stay Args."""
        if self.is_tensor or self.is_tensor_list:
            return arg
        value = SCALARS[self.type][2].format(a=arg)
        if not self.optional:
            return value
        base = SCALARS[self.type][1]
        return f"({arg}.is_none() ? std::optional<{base}>() : std::optional<{base}>({value}))"


@dataclass
class Signature:
    params: list[Param]
    results: list[str] = field(default_factory=list)  # names; "" if anonymous
    returns_list: bool = False

    @property
    def num_outputs(self) -> int:
        return -1 if self.returns_list else len(self.results)

    def index(self, name: str) -> int:
        return next(i for i, p in enumerate(self.params) if p.name == name)


def _split(text: str) -> list[str]:
    """Splits at commas outside brackets and quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for i, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return parts + [last] if last else parts


def _param(text: str, keyword_only: bool) -> Param:
    match = _PARAM.match(text)
    if not match:
        raise DeclarationError(f"expected a parameter, got {text!r}")
    kind, optional, default = match["type"], bool(match["opt"]), match["default"]
    param = Param(match["name"], kind, optional, keyword_only=keyword_only)
    if "(w)" in kind:
        param.type, param.written = kind.replace("(w)", ""), True
    elif kind == "Operand":
        param.type, param.accepts_number = "Tensor", True
    elif kind == "int[*]":
        param.type, param.variadic = "int[]", True
    elif kind == "Tensor?[]":
        param.type, param.optional_entries = "Tensor[]", True
    elif size := re.match(r"^(int|float)\[(\d+)\]$", kind):
        param.type, param.list_size = f"{size[1]}[]", int(size[2])
    if param.type not in ("Tensor", "Tensor[]", *SCALARS):
        raise DeclarationError(f"unknown type {kind!r} of parameter {param.name}")
    if default is not None:
        param.has_default = True
        try:
            param.default = ast.literal_eval(default)
        except (ValueError, SyntaxError) as e:
            raise DeclarationError(f"default {default!r} of {param.name} is not a literal") from e
        if param.default is None and not param.optional:
            raise DeclarationError(f"{param.name} defaults to None but is not optional: write {kind}?")
    return param


def parse_signature(text: str) -> Signature:
    """Parses a whole signature; raises DeclarationError."""
    match = re.match(r"^\((.*)\) -> (Tensor\[\]|Tensor|\(.*\))$", text)
    if not match:
        raise DeclarationError(f"expected a signature, got {text!r}")
    params, keyword_only = [], False
    for part in _split(match[1]):
        if part == "*":
            keyword_only = True
        else:
            params.append(_param(part, keyword_only))
    if match[2] == "Tensor[]":
        return Signature(params, [], True)
    if match[2] == "Tensor":
        return Signature(params, [""])
    results = [r.removeprefix("Tensor").strip() for r in _split(match[2][1:-1])]
    return Signature(params, results)
