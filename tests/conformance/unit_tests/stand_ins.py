"""Stand-ins for private names of PyTorch that torch.testing._internal uses when it is imported or around each test."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType, SimpleNamespace
from typing import Any


class _ScriptFunction:
    """torch._C.ScriptFunction and ScriptMethod, whose calls PyTorch's tests wrap."""

    def __call__(self, *args: Any) -> Any:
        raise NotImplementedError("TorchScript")


def _exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # a parent
        return False


NAMES: dict[str, dict[str, Any]] = {
    "torch": {
        "_disable_dynamo": lambda function=None, recursive=True: function,
        "_nnpack_available": lambda: False,
        "_segment_reduce": lambda *args, **options: sys.modules["torch"].segment_reduce(*args, **options),
    },
    "torch._C": {
        "ScriptList": type("ScriptList", (), {}), "ScriptDict": type("ScriptDict", (), {}),
        "ScriptFunction": _ScriptFunction, "ScriptMethod": type("ScriptMethod", (_ScriptFunction,), {}),
        "_TorchFunctionState": SimpleNamespace(ENABLED=0), "_get_cpu_capability": lambda: "AVX2", "has_lapack": True, "has_spectral": True,
        "_get_torch_function_state": lambda: 0, "_set_torch_function_state": lambda state: None,
    },
    "torch._export.wrappers": {"mark_subclass_constructor_exportable_experimental": lambda function: function},
    "torch._higher_order_ops.invoke_subgraph": {"mark_compile_region": lambda function: function},
    "torch._dynamo": {"is_dynamo_supported": lambda: True},
    "torch._subclasses": {"CrossRefFakeMode": object},
    "torch._utils": {"_is_privateuse1_backend_available": lambda: False},
    "torch._utils_internal": {"get_writable_path": lambda path: path, "get_file_path": lambda *parts: "/".join(parts)},
    "torch._vendor.packaging.version": {"parse": lambda text: tuple(map(int, text.split("+")[0].split(".")))},
    "torch.ao.nn.qat": {"modules": SimpleNamespace(__all__=[])},
    "torch.ao.nn.quantizable": {"modules": SimpleNamespace(__all__=[])},
    "torch.ao.nn.quantized": {"modules": SimpleNamespace(__all__=[])},
    "torch.backends": {"disable_global_flags": lambda: None},
    "torch.backends.python_native": {"available_dsls": []},
    "torch.cpu": {"_is_avx2_supported": lambda: True},
    "torch.cuda.jiterator": dict.fromkeys(("_create_jit_fn", "_create_multi_output_jit_fn"), lambda *_, **__: _ScriptFunction()),
    "torch.ops.mkldnn": {"_is_mkldnn_acl_supported": lambda: False},
    "torch.profiler": {"itt": SimpleNamespace(is_available=lambda: False)},
    "torch.utils": {"deterministic": SimpleNamespace(fill_uninitialized_memory=True)},  # set around tests
    "torch.utils._import_utils": {"_check_module_exists": _exists, "import_dill": lambda: None},
    "torch.utils._triton": {"has_triton": lambda: False},
}  # fmt: skip


def _module(name: str) -> Any:
    """Imports a module, or creates it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        parent, _, last = name.rpartition(".")
        owner = _module(parent)
        if hasattr(owner, last):  # an object, such as torch.ops.mkldnn
            return getattr(owner, last)
        module = ModuleType(name, __doc__)
        module.__path__ = []
        sys.modules[name] = module
        setattr(owner, last, module)
        return module


def install() -> None:
    """Sets the names, which teletensor lacks or refuses. teletensor.as_torch must be imported."""
    for name, values in NAMES.items():
        module = _module(name)
        for attribute, value in values.items():
            setattr(module, attribute, value)
