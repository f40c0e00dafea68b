"""Names that PyTorch 2.6's tests import and PyTorch 2.15 removed or renamed, for both packages."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from typing import Any


def _unchanged(*_: Any, **__: Any) -> Callable:
    return lambda function: function


def _binary_ufuncs_and_refs(module: Any) -> tuple:
    return tuple(op for op in module.ops_and_refs if isinstance(op, module.BinaryUfuncInfo))


# The value of a name as a function of its module.
NAMES: dict[str, Callable[[Any], Any]] = {
    "torch._dynamo.testing.requiresPy310": lambda _: lambda function: function,
    "torch.export.export_for_training": lambda module: module.export,
    "torch.testing._internal.common_cuda.tf32_is_not_fp32": lambda _: lambda: False,
    "torch.testing._internal.common_methods_invocations.binary_ufuncs_and_refs": _binary_ufuncs_and_refs,
    "torch.testing._internal.common_mkldnn.bf32_on_and_off": lambda _: _unchanged,
    "torch.testing._internal.common_nn.new_module_tests": lambda module: module.get_new_module_tests(),
    "torch.testing._internal.common_utils.disable_translation_validation_if_dynamic_shapes": lambda _: lambda function: function,
    "torch.testing._internal.inductor_utils.HAS_CUDA": lambda _: False,
}


def provide(source: str) -> None:
    """Sets the names that a file imports."""
    for node in ast.parse(source).body:
        if not isinstance(node, ast.ImportFrom):
            continue
        for alias in node.names:
            value = NAMES.get(f"{node.module}.{alias.name}")
            if value:
                module = importlib.import_module(node.module)
                if not hasattr(module, alias.name):
                    setattr(module, alias.name, value(module))
