"""Emits the generated part of `teletensor/teletensor.h`: the methods of Tensor, and the functions of its namespaces."""

from __future__ import annotations

from .api import default_text
from .declaration import Operator
from .python_bindings import MODULES, name_in, names_of
from .schema import HEADER
from .signature import Param

# Overloads that C++ cannot distinguish by types from the operator whose name they share, or that are written by hand.
OMITTED = frozenset(
    "var_dim std_dim var_mean_dim std_mean_dim var_fraction std_fraction var_mean_fraction std_mean_fraction index_put".split()
)
# Overloads that have their own name in C++, for the same reason.
OWN_NAME = frozenset({"sort_stable"})
# Operators whose tensors are not numbers in C++, because an overload takes the number.
TENSORS_ONLY = frozenset({"max_other", "min_other", "scatter"})
# Python's namespaces of the functions in namespace teletensor.
PLACES = ("torch", "F")

_SCALARS = {
    "Scalar": ("const Scalar&", "std::optional<Scalar>"),
    "int": ("int64_t", "std::optional<int64_t>"),
    "float": ("double", "std::optional<double>"),
    "bool": ("bool", "std::optional<bool>"),
    "int[]": ("IntArrayRef", "OptionalIntArrayRef"),
    "float[]": ("ArrayRef<double>", "std::optional<ArrayRef<double>>"),
    "str": ("std::string_view", "std::optional<std::string_view>"),
    "DType": ("Dtype", "std::optional<Dtype>"),
    "Device": ("Device", "std::optional<Device>"),
}


def _takes_number(op: Operator, param: Param) -> bool:
    if param.optional or param.has_default:
        return True
    tensors = [p for p in op.params if p.is_tensor]
    number = param.accepts_number or op.is_pointwise
    return number and len(tensors) > 1 and op.name not in TENSORS_ONLY


def _type(op: Operator, param: Param) -> str:
    if param.is_tensor:
        return "const Operand&" if _takes_number(op, param) else "const Tensor&"
    if param.is_tensor_list:
        return "TensorList"
    # An integer must select the overload with a dimension.
    if param.type == "bool" and op.entry.get("overload_of") and op.params.index(param) == 1:
        return "OnlyBool"
    return _SCALARS[param.type][param.optional]


def _default(param: Param) -> str:
    """As in the engine's own functions, but lists have literals, and numbers become a Scalar by themselves."""
    value = param.default
    if param.has_default and value is not None:
        if param.type == "DType":
            return f" = Dtype::{value}"
        if isinstance(value, (list, tuple)):
            return f" = {{{', '.join(map(str, value))}}}"
        if param.type in ("Scalar", "int[]") and type(value) is int:
            return f" = {value!r}"
    return default_text(param)


class Function:
    """The C++ form of an operator."""

    def __init__(self, op: Operator):
        self.op = op
        self.params = list(op.params)
        names = [p.name for p in self.params[-2:]]
        # The dtype and the device of a new tensor are options.
        self.has_options = names == ["dtype", "device"] and all(p.optional for p in self.params[-2:])
        if self.has_options:
            self.params = self.params[:-2]

    @property
    def result(self) -> str:
        outputs = self.op.signature.num_outputs
        if outputs <= 1:
            return {-1: "std::vector<Tensor>", 0: "void", 1: "Tensor"}[outputs]
        return f"std::tuple<{', '.join(['Tensor'] * outputs)}>"

    def names(self) -> list[str]:
        return [self.op.name] if self.op.name in OWN_NAME else names_of(self.op)

    def parameters(self, defaults: bool, skipped: int = 0) -> str:
        params = self.params[skipped:]
        texts = [_default(p) if defaults else "" for p in params]
        last_without = max((i for i, text in enumerate(texts) if not text), default=-1)
        rows = [
            f"{_type(self.op, p)} {p.name}{t if i > last_without else ''}"
            for i, (p, t) in enumerate(zip(params, texts))
        ]
        if self.has_options:
            rows.append(f"const TensorOptions& options{' = {}' if defaults else ''}")
        return ", ".join(rows)

    def body(self, is_method: bool, in_place: bool = False) -> str:
        lines, args = [], []
        for i, p in enumerate(self.params):
            if is_method and i == 0:
                args.append("self()")
            elif p.is_tensor:
                args.append(f"{p.name}.arg()")
            elif p.is_tensor_list:
                lines.append(f"  const internal::ListArg list_{p.name}({p.name});\n")
                args.append(f"list_{p.name}.arg()")
            elif p.type == "int[]" and p.list_size > 1:
                lines.append(f"  const internal::RepeatedArg list_{p.name}({p.name}, {p.list_size});\n")
                args.append(f"list_{p.name}.arg()")
            elif p.type in ("int[]", "float[]"):
                args.append(
                    f"{p.name}.arg()" if not (p.optional and p.type == "float[]") else f"internal::arg({p.name})"
                )
            else:
                args.append(f"tt::Arg({p.name})")
        if self.has_options:
            args += ["options.dtype_arg()", "options.device_arg()"]
        lines.append(f"  const tt::Arg args[] = {{{', '.join(args)}}};\n" if args else "  const tt::Args args;\n")
        call = f"op_id::{self.op.constant}, args"
        outputs = self.op.signature.num_outputs
        if in_place:
            lines.append(f"  return internal::call_into({call}, handle());\n")
        elif outputs == 0:
            lines.append(f"  internal::call_all({call});\n")
        elif outputs == 1:
            result = f"internal::call({call})"
            lines.append(
                f"  return internal::with_options({result}, options);\n"
                if self.has_options
                else f"  return {result};\n"
            )
        elif outputs == -1:
            lines.append(f"  return internal::call_list({call});\n")
        else:
            lines.append(f"  return internal::call_tuple<{outputs}>({call});\n")
        return "".join(lines)


def _methods(operators: list[Operator]) -> list[Function]:
    return [Function(op) for op in operators if "Tensor" in op.python and op.name not in OMITTED]


def _has_inplace(op: Operator) -> bool:
    return op.has_inplace and op.signature.num_outputs == 1


def emit_methods_header(operators: list[Operator]) -> str:
    rows = []
    for f in _methods(operators):
        for name in f.names():
            params = f.parameters(True, 1)
            if not f.op.is_inplace_only:
                rows.append(f"  /// {_doc(f.op)}\n  {f.result} {name}({params}) const;\n")
            if _has_inplace(f.op):
                place = f"{name.rstrip('_')}_"
                rows.append(
                    f"  /// Writes the result of `{f.op.name}` to this tensor, and returns it.\n  Tensor {place}({params}) const;\n"
                )
    return f"""{HEADER}#pragma once
#include <cmath>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>
#include "client/api/operand.h"
namespace teletensor {{
/// The methods of Tensor that are operators.
class TensorMethods : public TensorBase {{
 public:
  using TensorBase::TensorBase;
{"".join(rows)}}};
}}  // namespace teletensor
"""


def _doc(op: Operator) -> str:
    """The declaration's text, such that Doxygen reads no commands in it."""
    text = op.doc
    for mark in "\\@<>#%&":
        text = text.replace(mark, f"\\{mark}")
    return text


SOURCE = f"""{HEADER}#include "client/api/tensor.h"
#include "client/api/dispatch.h"
#include "client/api/functions.h"
#include "client/api/operators.h"
#include "engine/schema/op_ids.h"
namespace teletensor {{
namespace op_id = tt::op_id;
"""


def emit_methods_source(operators: list[Operator]) -> str:
    rows = []
    for f in _methods(operators):
        for name in f.names():
            params = f.parameters(False, 1)
            if not f.op.is_inplace_only:
                rows.append(f"{f.result} TensorMethods::{name}({params}) const {{\n{f.body(True)}}}\n")
            if _has_inplace(f.op):
                rows.append(f"Tensor TensorMethods::{name.rstrip('_')}_({params}) const {{\n{f.body(True, True)}}}\n")
    return f"{SOURCE}{''.join(rows)}}}  // namespace teletensor\n"


def _functions(operators: list[Operator]) -> dict[str, list[tuple[str, Function]]]:
    """Maps namespaces ("" for teletensor) to names and functions."""
    found: dict[str, list[tuple[str, Function]]] = {"": [], **{place: [] for place in MODULES}, "ops": []}
    for op in operators:
        f = Function(op)
        if op.name in OMITTED:
            continue
        if not op.python or set(op.python) == {"Tensor"}:
            if not op.has_inplace and op.python == []:
                found["ops"].append((op.name, f))
            continue
        for name in f.names():
            if set(PLACES) & set(op.python):
                found[""].append((name, f))
            for place in MODULES:
                if place in op.python:
                    found[place].append((name_in(place, name), f))
    return found


def _declarations(rows: list[tuple[str, Function]]) -> str:
    return "".join(f"/// {_doc(f.op)}\n{f.result} {name}({f.parameters(True)});\n" for name, f in rows)


def _definitions(rows: list[tuple[str, Function]]) -> str:
    return "".join(f"{f.result} {name}({f.parameters(False)}) {{\n{f.body(False)}}}\n" for name, f in rows)


def _in(place: str, text: str) -> str:
    return f"namespace {place} {{\n{text}}}  // namespace {place}\n" if place and text else text


def _header(text: str) -> str:
    return f"""{HEADER}#pragma once
#include <cmath>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>
#include "client/api/tensor.h"
namespace teletensor {{
{text}}}  // namespace teletensor
"""


def emit_functions_header(operators: list[Operator]) -> str:
    found = _functions(operators)
    return _header("".join(_in(place, _declarations(rows)) for place, rows in found.items() if place != "ops"))


def emit_operators_header(operators: list[Operator]) -> str:
    return _header(_in("ops", _declarations(_functions(operators)["ops"])))


def emit_functions_source(operators: list[Operator]) -> str:
    text = "".join(_in(place, _definitions(rows)) for place, rows in _functions(operators).items())
    return f"{SOURCE}{text}}}  // namespace teletensor\n"


def _sample_sizes(op: Operator) -> list[list[int]] | None:
    """The sizes of the tensors of the first sample that has nothing but tensors with sizes, which must come first."""
    for spec in op.entry["samples"] or []:
        given = spec if isinstance(spec, dict) else {op.params[0].name: spec}
        names = [p.name for p in op.params[: len(given)]]
        is_sizes = all(isinstance(v, list) and all(isinstance(n, int) for n in v) for v in given.values())
        required = [p for p in op.params[len(given) :] if not p.has_default]
        if is_sizes and list(given) == names and all(p.is_tensor for p in op.params[: len(given)]) and not required:
            return list(given.values())
    return None


def emit_sample_rows(operators: list[Operator]) -> str:
    """Rows of a test: an operator, its sample's sizes, and the calls of its functions and methods."""
    rows = []
    for op in operators:
        f = Function(op)
        if (
            op.name in OMITTED
            or op.is_random
            or "empty" in op.name
            or not op.params
            or (sizes := _sample_sizes(op)) is None
        ):
            continue
        tensors = [f"t[{i}]" for i in range(len(sizes))]
        calls = []
        for name in f.names():
            if set(PLACES) & set(op.python):
                calls.append(f"teletensor::{name}({', '.join(tensors)})")
            calls += [f"{m}::{name_in(m, name)}({', '.join(tensors)})" for m in MODULES if m in op.python]
            if "Tensor" in op.python and not op.is_inplace_only:
                calls.append(f"t[0].{name}({', '.join(tensors[1:])})")
        if calls:
            lists = ", ".join(f"{{{', '.join(map(str, s))}}}" for s in sizes)
            rows.append(
                f'{{"{op.name}", {{{lists}}}, [](const Tensor* t, Results& r) {{ {" ".join(f"r.add({c});" for c in calls)} }}}},\n'
            )
    return f"{HEADER}{''.join(rows)}"


def outputs(operators: list[Operator]) -> dict[str, str]:
    return {
        "client/api/tensor_methods.h": emit_methods_header(operators),
        "client/api/functions.h": emit_functions_header(operators),
        "client/api/operators.h": emit_operators_header(operators),
        "client/api/tensor_methods.cc": emit_methods_source(operators),
        "client/api/functions.cc": emit_functions_source(operators),
        "client/api/sample_rows.inc": emit_sample_rows(operators),
    }
