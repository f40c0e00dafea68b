"""`python -m tests.conformance.signatures.declarations`: prints the signatures of PyTorch's public callables, one per line.

Requires an interpreter with PyTorch. A name has one line per overload. Sources: the type stubs of the wheel
(`_VariableFunctions.pyi`, `_C/*.pyi`, `nn/functional.pyi`), the operators' schemas for built-in functions that the stubs
do not declare (`torch.linalg`), and `inspect.signature` for Python functions.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import logging
import re
import types
import warnings
from pathlib import Path

import torch

from .text import described, from_stub

MODULES = """
torch torch.accelerator torch.amp torch.autograd torch.autograd.functional torch.autograd.graph torch.compiler
torch.cpu torch.cuda torch.distributed torch.distributed.checkpoint torch.distributed.device_mesh
torch.distributed.fsdp torch.distributed.optim torch.distributed.pipelining torch.distributed.rpc
torch.distributed.tensor torch.distributions torch.distributions.constraints torch.distributions.transforms
torch.fft torch.func torch.futures torch.fx torch.hub torch.jit torch.library torch.linalg torch.masked torch.multiprocessing
torch.nn torch.nn.attention torch.nn.attention.flex_attention torch.nn.functional torch.nn.init torch.nn.parallel torch.nn.utils
torch.nn.utils.parametrize torch.nn.utils.prune torch.nn.utils.rnn torch.nn.utils.stateless torch.optim
torch.optim.lr_scheduler torch.optim.swa_utils
torch.overrides torch.profiler torch.random torch.serialization torch.signal.windows torch.special torch.storage torch.testing
torch.utils torch.utils._pytree torch.utils.checkpoint torch.utils.data torch.utils.dlpack
""".split()

PACKAGE = Path(torch.__file__).parent
# Modules of built-in functions, and the prefixes of their operators' names.
SCHEMA_PREFIXES = {"torch._C._linalg": "", "torch._C._special": "", "torch._C._fft": "", "torch._C._nn": ""}
SCHEMA_TYPES = {
    "Tensor": "Tensor", "Optional[Tensor]": "Tensor", "int": "int", "float": "float", "bool": "bool", "str": "str",
    "number": "Number", "List[int]": "ints", "List[float]": "floats", "List[Tensor]": "Tensors", "Device": "device",
}  # fmt: skip
WITHOUT_SCHEMA = {"dtype": "dtype", "layout": "layout", "memory_format": "memory_format"}


@functools.cache
def stub(path: str) -> tuple[dict[str, list[ast.FunctionDef]], dict[str, dict[str, list[ast.FunctionDef]]]]:
    """The functions of a stub file by name, and the methods of its classes."""
    functions: dict[str, list[ast.FunctionDef]] = {}
    classes: dict[str, dict[str, list[ast.FunctionDef]]] = {}
    for node in ast.parse((PACKAGE / path).read_text()).body:
        if isinstance(node, ast.FunctionDef):
            functions.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.ClassDef):
            methods = classes.setdefault(node.name, {})
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    methods.setdefault(inner.name, []).append(inner)
    return functions, classes


def stub_lines(nodes: list[ast.FunctionDef], method: bool) -> list[str]:
    """The parameter lists of a stub's overloads; properties have none."""
    if any(isinstance(d, ast.Name) and d.id == "property" for node in nodes for d in node.decorator_list):
        return []
    return list(dict.fromkeys(from_stub(node, method) for node in nodes))


def schema_lines(name: str) -> list[str]:
    """The parameter lists of an operator's overloads. Those with `out` are joined with those without."""
    rows: dict[str, bool] = {}
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}"):
        parts, starred, has_out = [], False, False
        for a in schema.arguments:
            if a.is_out:
                has_out = True
                continue
            kind = str(a.type)
            optional = kind.startswith("Optional[")
            kind = kind.removeprefix("Optional[").removesuffix("]") if optional else kind
            kind = WITHOUT_SCHEMA.get(a.name) or SCHEMA_TYPES.get(kind, kind)
            if a.kwarg_only and not starred:
                parts.append("*")
                starred = True
            text = f"{'input' if a.name == 'self' else a.name}: {kind}"
            if a.has_default_value():
                value = a.default_value
                if kind == "dtype" and value is not None:
                    value = ...
                text += f"={'...' if value is ... else repr(value)}"
            parts.append(text)
        if "str" in [str(a.type) for a in schema.arguments if a.name == "dim"] or "out" in "".join(parts[-1:]):
            continue
        row = "|".join(parts)
        rows[row] = rows.get(row, False) or has_out
    lines = []
    for row, has_out in rows.items():
        parts = row.split("|")
        if has_out:
            parts += ["out: Tensor=None"] if "*" in parts else ["*", "out: Tensor=None"]
        lines.append(", ".join(parts))
    return lines


# Functions that pass all their arguments to another function.
DISPATCHERS = {"unique": torch.functional._unique_impl, "unique_consecutive": torch.functional._unique_consecutive_impl}


def callable_lines(thing, place: str, name: str, method: bool = False) -> list[str]:
    """The parameter lists of one callable; empty if PyTorch declares none."""
    thing = DISPATCHERS.get(name, thing) if place == "torch" else thing
    owner = getattr(thing, "__module__", None) or ""
    if isinstance(thing, (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)) and not method:
        functions = stub("_C/_VariableFunctions.pyi")[0]
        own = thing.__name__
        if owner in SCHEMA_PREFIXES:
            found = schema_lines(own)
            if found:
                return found
        if own in functions and getattr(torch._C._VariableFunctions, own, None) == thing:
            return stub_lines(functions[own], False)
        own_functions = stub("_C/__init__.pyi")[0]
        if owner.startswith("torch._C.") and (PACKAGE / "_C" / f"{owner.split('.')[-1]}.pyi").exists():
            own_functions = stub(f"_C/{owner.split('.')[-1]}.pyi")[0]
        return stub_lines(own_functions[own], False) if own in own_functions else []
    if place == "torch.nn.functional" and name in stub("nn/functional.pyi")[0]:
        signature = inspect.signature(thing)
        if any(p.kind is p.VAR_POSITIONAL for p in signature.parameters.values()):  # chosen by a boolean argument
            return stub_lines(stub("nn/functional.pyi")[0][name], False)
    try:
        return [described(inspect.signature(thing), method)]
    except (TypeError, ValueError):
        return []


def class_lines(cls: type, path: str) -> list[str]:
    """The lines of a class: its constructor, and the public methods that it or a base class in torch defines."""
    lines = []
    own = cls.__module__ or ""
    stubs = stub("_C/__init__.pyi")[1]
    if own.startswith("torch._C._distributed_c10d"):
        stubs = stub("_C/_distributed_c10d.pyi")[1]
    methods = {}
    for base in reversed(cls.__mro__):  # methods of public base classes have lines of their own
        if base is cls or (base.__module__ or "").startswith("torch") and base not in public_classes():
            methods.update({name: value for name, value in vars(base).items()})
    if own.startswith("torch._C") or cls in (torch.Generator, torch.Size, torch.device, torch.finfo, torch.iinfo):
        declared = stubs.get(cls.__name__, {})
        for name, nodes in declared.items():
            if name in ("__new__", "__init__"):
                lines += [f"{path}({row})" for row in stub_lines(nodes, True)]
            elif not name.startswith("_"):
                lines += [f"{path}.{name}({row})" for row in stub_lines(nodes, True)]
        return lines
    try:
        lines.append(f"{path}({described(inspect.signature(cls), False)})")
    except (TypeError, ValueError):
        pass
    for name, value in sorted(methods.items()):
        if name.startswith("_") or isinstance(value, (property, type)):
            continue
        bound = isinstance(value, (classmethod,))
        function = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        if isinstance(function, types.FunctionType):
            skip_first = not isinstance(value, staticmethod) or bound
            try:
                lines.append(f"{path}.{name}({described(inspect.signature(function), skip_first)})")
            except (TypeError, ValueError):
                continue
    return lines


def tensor_lines() -> list[str]:
    """The lines of Tensor's methods."""
    lines = []
    declared = stub("_C/__init__.pyi")[1]["TensorBase"]
    for name in sorted(set(dir(torch.Tensor))):
        if name.startswith("_"):
            continue
        value = inspect.getattr_static(torch.Tensor, name)
        if isinstance(value, types.FunctionType):
            rows = [described(inspect.signature(value), True)]
            if "*args" in rows[0] and name in declared:
                rows = stub_lines(declared[name], True)
        elif isinstance(value, types.MethodDescriptorType) and name in declared:
            rows = stub_lines(declared[name], True)
        else:
            continue
        lines += [f"torch.Tensor.{name}({row})" for row in rows]
    return lines


def public_names(module) -> list[str]:
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    if module is torch:
        names = [n for n in dir(module) if not n.startswith("_")] + ["_foreach_" + n for n in ()]
    return sorted(set(names))


def is_ours(value) -> bool:
    """Whether a value of a module without `__all__` belongs to torch."""
    return str(getattr(value, "__module__", "") or "torch").startswith("torch")


@functools.cache
def public_classes() -> set[type]:
    modules = map(importlib.import_module, MODULES)
    return {v for m in modules for n in public_names(m) if isinstance(v := getattr(m, n, None), type)}


def all_lines() -> list[str]:
    lines: list[str] = tensor_lines()
    for path in MODULES:
        module = importlib.import_module(path)
        for name in public_names(module):
            value = getattr(module, name, None)
            if value is torch.Tensor or not callable(value) or not is_ours(value) or isinstance(value, torch._ops.OpOverloadPacket):
                continue
            where = f"{path}.{name}"
            if isinstance(value, type):
                if re.search(r"(^[A-Z][A-Za-z0-9]*Tensor$|Storage(Base)?$)", name) and path in ("torch", "torch.cuda", "torch.storage"):
                    continue  # legacy types: constructors with PyTorch's rules for `torch.Tensor`
                if "torch.classes" in str(value) or issubclass(value, (BaseException,)) or getattr(value, "_is_protocol", False):
                    continue
                if re.search(r"enum", str(type(value)).lower()) or path == "torch" and value.__module__ == "torch._C" and name not in (
                    "Generator", "device", "Size", "finfo", "iinfo", "Event", "Stream"
                ):  # fmt: skip
                    continue
                lines += class_lines(value, where)
            else:
                lines += [f"{where}({row})" for row in callable_lines(value, path, name)]
    return list(dict.fromkeys(lines))


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    print(f"# Declarations of PyTorch {torch.__version__.split('+')[0]}, written by `make signatures`.")
    print("\n".join(line for line in all_lines() if not line.endswith("(*args, **kwargs)")))


if __name__ == "__main__":
    main()
