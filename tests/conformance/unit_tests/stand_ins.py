"""Stand-ins for private names of PyTorch that torch.testing._internal uses when it is imported or around each test."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from types import ModuleType, SimpleNamespace
from typing import Any


class _ScriptFunction:
    """torch._C.ScriptFunction and ScriptMethod, whose calls PyTorch's tests wrap."""

    def __call__(self, *args: Any) -> Any:
        raise NotImplementedError("TorchScript")


def _optimize_assert(backend: Any, **options: Any) -> Any:
    return sys.modules["torch"]._dynamo.optimize(backend, nopython=True, **options)


def _aot_eager(module: Any, inputs: Any, **_: Any) -> Any:
    return sys.modules["torch"]._dynamo.lookup_backend("aot_eager")(module, inputs)


def _unsupported(first: Any, second: Any) -> Any:
    """A function that ends the graph."""
    sys.modules["torch"]._dynamo.graph_break()
    return second


def _same(ref: Any, res: Any, *, tol: float = 1e-4, equal_nan: bool = False, exact_dtype: bool = True, **_: Any) -> bool:
    """Whether two results are equal, up to rounding."""
    torch = sys.modules["torch"]
    options = {"tol": tol, "equal_nan": equal_nan, "exact_dtype": exact_dtype}
    if isinstance(ref, (list, tuple, set)):
        return len(ref) == len(res) and all(_same(a, b, **options) for a, b in zip(ref, res, strict=True))
    if isinstance(ref, dict):
        return ref.keys() == res.keys() and all(_same(ref[key], res[key], **options) for key in ref)
    if isinstance(ref, torch.Tensor):
        return _close(ref, res, tol, equal_nan, exact_dtype)
    if type(ref).__module__ == "numpy" or isinstance(ref, float):
        return _close(torch.as_tensor(ref), torch.as_tensor(res), tol, equal_nan, exact_dtype)
    return ref is res if ref is None else bool(ref == res) or vars(ref).keys() == vars(res).keys() and _same(vars(ref), vars(res))


def _close(ref: Any, res: Any, tol: float, equal_nan: bool, exact_dtype: bool) -> bool:
    try:
        sys.modules["torch"].testing.assert_close(res, ref, rtol=tol, atol=tol, equal_nan=equal_nan, check_dtype=exact_dtype)
    except AssertionError:
        return False
    return True


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
        "_DisableFuncTorch": contextlib.nullcontext,
        "_TorchFunctionState": SimpleNamespace(ENABLED=0), "_get_cpu_capability": lambda: "AVX2", "has_lapack": True, "has_spectral": True,
        "_get_torch_function_state": lambda: 0, "_set_torch_function_state": lambda state: None,
    },
    "torch._export.wrappers": {"mark_subclass_constructor_exportable_experimental": lambda function: function},
    "torch._higher_order_ops.invoke_subgraph": {"mark_compile_region": lambda function: function},
    "torch._dynamo": {"is_dynamo_supported": lambda: True, "optimize_assert": _optimize_assert},
    "torch._dynamo.backends.debugging": {"aot_eager": _aot_eager},
    "torch._dynamo.backends.registry": {"lookup_backend": lambda name: sys.modules["torch"]._dynamo.lookup_backend(name)},
    "torch._dynamo.config": {"debug_disable_compile_counter": False},
    "torch._dynamo.eval_frame": {"unsupported": _unsupported},
    "torch._dynamo.utils": {
        "disable_cache_limit": lambda: lambda function: function, "CompileCounterInt": int, "same": _same,
        "ifdynstaticdefault": lambda static, dynamic: static,
    },
    "torch._inductor.utils": {"GPU_TYPES": []},
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
    "torch.utils._import_utils": {"_check_module_exists": _exists, "import_dill": lambda: None},
    "torch.utils._mode_utils": {"no_dispatch": contextlib.nullcontext, "all_same_mode": lambda modes: len(set(modes)) == 1},
    "torch.utils._triton": {"has_triton": lambda **_: False},
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
            object.__setattr__(module, attribute, value)  # also a setting that does not exist
