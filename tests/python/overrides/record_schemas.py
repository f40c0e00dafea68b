"""Records the declarations of PyTorch's operators that exist here. Run by a Python with PyTorch, beside this package:

PYTHONPATH=build/python .venv-peers/bin/python -m tests.python.overrides.record_schemas
"""

from __future__ import annotations

import re
from pathlib import Path

import torch

from teletensor._library import aten

# Types of arguments that no operator here has: names of dimensions, streams, sparse and quantized layouts.
REFUSED = ("Dimname", "Stream", "Storage", "__torch__", "Layout layout)", "QScheme", "Dict(")

# Operators of which an overload is no operator of the dispatcher.
UNREGISTERED = ("sym_is_contiguous", "sym_size", "sym_stride")

# A default of a dtype is a number in the text of a schema.
DTYPE = re.compile(r"(?P<type>ScalarType\?? \w+)=(?P<number>\d+)")
DTYPES = ("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")


def dtype_name(match: re.Match[str]) -> str:
    """The declaration of an argument with the dtype's name."""
    return f"{match['type']}={DTYPES[int(match['number'])]}"


def declarations() -> list[str]:
    """The declarations without the namespace, in PyTorch's order within a name."""
    registered = set(torch._C._dispatch_get_all_op_names())
    found: dict[str, list[str]] = {}
    for schema in torch._C._jit_get_all_schemas():
        name = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
        base = schema.name.removeprefix("aten::")
        is_registered = name in registered or base in UNREGISTERED
        if not schema.name.startswith("aten::") or not is_registered or schema.overload_name.endswith("dimname"):
            continue
        if any(a.type.__str__() in ("str", "Stream") and a.name in ("dim", "names") for a in schema.arguments):
            continue
        text = str(schema).removeprefix("aten::")
        if base in UNREGISTERED:
            text = text.replace("memory_format=0", "memory_format=contiguous_format")
        if not any(refused in text for refused in REFUSED) and aten.implementation(base) is not None:
            found.setdefault(base, []).append(DTYPE.sub(dtype_name, text))
    return [text for base in sorted(found) for text in found[base]]


if __name__ == "__main__":
    place = Path(aten.__file__).resolve().parent / "aten_schemas.txt"
    head = f"# Declarations of PyTorch {torch.__version__}'s operators, recorded by tests/python/overrides/record_schemas.py.\n"
    place.write_text(head + "\n".join(declarations()) + "\n")
