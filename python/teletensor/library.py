"""torch.library: custom operators. Their Python functions run in the client on teletensor's tensors, as called.

An operator is defined by custom_op(), or by define() or Library with a schema, and called as torch.ops.namespace.name.
Functions registered for fake tensors are used for tensors on the meta device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ._library import fake_context, registry
from ._library.custom_op import CustomOpDef, define_custom_op  # noqa: F401 - programs may import it from here
from ._library.operators import OpOverload, OpOverloadPacket
from ._library.registrations import (
    _KEYS,
    _decorator,
    _kernels,
    _overload,
    register_autocast,
    register_autograd,  # noqa: F401 - programs may import it from here
    register_kernel,  # noqa: F401 - programs may import it from here
    register_torch_dispatch,
    register_vmap,
)  # fmt: skip
from ._library.schema import infer_schema, parse
from ._options import check_kind

__all__ = [
    "Library", "custom_op", "define", "fallthrough_kernel", "get_ctx", "get_kernel", "impl", "impl_abstract",
    "infer_schema", "register_autocast", "register_fake", "register_torch_dispatch", "register_vmap", "triton_op",
    "wrap_triton",
]  # fmt: skip

_RESERVED = ("prim",)


class Library:
    """Defines operators in a namespace (kind "DEF" or "FRAGMENT"), or adds kernels to operators ("IMPL").

    Raises:
        ValueError: the kind is unknown or the namespace reserved.
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in _RESERVED and kind != "FRAGMENT":
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._defined: list[OpOverload] = []

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Defines an operator such as "scale(Tensor x) -> Tensor"; returns its name. `tags` are kept, and have no effect."""
        if self.kind == "IMPL":
            raise RuntimeError("[Library.define] expected a library of kind DEF or FRAGMENT, got IMPL")
        parsed = parse(schema, self.ns)
        self._defined.append(registry.define(parsed, tags))
        return parsed.name.partition("::")[2]

    def _kernels(self, op_name: str | OpOverload) -> dict[str, Callable]:
        if isinstance(op_name, (OpOverload, OpOverloadPacket)):
            return _overload(op_name).kernels
        return registry.kernels(op_name if "::" in op_name else f"{self.ns}::{op_name}")

    def impl(
        self, op_name: Any, fn: Callable, dispatch_key: str = "", *, with_keyset: bool = False, allow_override: bool = True
    ) -> None:
        """Adds a kernel for a dispatch key. The operator may be defined later.

        Raises:
            TypeError: `fn` cannot be called.
            RuntimeError: the key has a kernel and `allow_override` is False.
            NotImplementedError: `with_keyset` is True, or the operator is the engine's.
        """
        if with_keyset:
            raise NotImplementedError("[Library.impl] with_keyset: there are no dispatch key sets")
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        kernels = self._kernels(op_name)
        if key in kernels and not allow_override:
            raise RuntimeError(f"[Library.impl] {op_name} already has a kernel for {key}")
        if fn is fallthrough_kernel:
            kernels.pop(key, None)
        else:
            kernels[key] = fn

    def fallback(self, fn: Callable, dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Raises NotImplementedError."""
        raise NotImplementedError("[Library.fallback] a kernel for all operators of a dispatch key is not supported")

    def _destroy(self) -> None:
        """Removes the operators that this library defined."""
        while self._defined:
            registry.remove(self._defined.pop())


def custom_op(
    name: str, fn: Callable | None = None, /, *, mutates_args: Any, device_types: Any = None, schema: str | None = None, tags: Any = None,
    compile: bool = False,  # noqa: A002 - as torch.compile
) -> Any:  # fmt: skip
    """Defines an operator by a Python function; without one returns a decorator.

    Args:
        name: "namespace::name".
        mutates_args: the names of the tensors that the function changes, or "unknown".
        device_types: the devices of the function's tensors; None means all.
        schema: the arguments and results, "(Tensor x) -> Tensor"; inferred from type annotations by default.
        tags: without effect.
        compile: teletensor's own. The function is recorded as a Program at its first call for each signature, and a call is then one
            instruction, without a call of Python (docs/custom-operators.md). It must not read values of tensors. Without
            register_autograd(), gradients are those of its operators.
    """
    if fn is None:
        return lambda f: define_custom_op(name, f, mutates_args, device_types, schema, compile)
    return define_custom_op(name, fn, mutates_args, device_types, schema, compile)


def define(qualname: str, schema: Any, *, lib: Library | None = None, tags: Any = ()) -> Any:
    """Defines the operator "ns::name" with a schema "(Tensor x) -> Tensor". `tags` are kept, and have no effect."""
    check_kind("library.define", "qualname", qualname, str)
    if lib is not None and lib.ns != qualname.partition("::")[0]:
        raise ValueError(f"[library.define] expected an operator of the library's namespace {lib.ns}, got {qualname}")
    operator = registry.define(parse(qualname + schema), tags)
    if lib is not None:
        lib._defined.append(operator)


def impl(qualname: str, types: Any, func: Callable | None = None, *, lib: Library | None = None) -> Any:
    """Adds a kernel for device types ("cpu", "cuda", "default"), or for a dispatch key if `lib` is given.

    The operator may be defined later.
    """
    if lib is not None:
        kinds = [types] if isinstance(types, str) else list(types)
        return _decorator(lambda f: [lib.impl(qualname, f, _KEYS.get(kind, kind)) for kind in kinds] and None, func)

    def register(f: Callable) -> None:
        kernels = _kernels(qualname)
        for kind in [types] if isinstance(types, str) else types:
            if f is fallthrough_kernel:
                kernels.pop(_KEYS.get(kind, kind), None)
            else:
                kernels[_KEYS.get(kind, kind)] = f

    return _decorator(register, func)


def register_fake(
    op: Any, func: Callable | None = None, /, *, lib: Library | None = None, _stacklevel: int = 1, allow_override: bool = True
) -> Any:
    """Sets the function that creates results for tensors on the meta device. `lib` has no effect.

    The operator may be defined later: packages register functions for operators of compiled libraries that do not load.
    """
    if isinstance(op, str) and registry.packet(*op.partition(".")[0].split("::")) is None:
        return _decorator(lambda f: registry.set_early_fake(op, f), func)
    operator = _overload(op)

    def register(f: Callable) -> None:
        if operator.fake is not None and not allow_override:
            raise RuntimeError(f"[register_fake] {operator} already has a fake implementation")
        operator.fake = f

    return _decorator(register, func)


def impl_abstract(qualname: str, func: Callable | None = None, *, lib: Library | None = None, _stacklevel: int = 1) -> Any:
    """register_fake under its former name."""
    return register_fake(qualname, func)


def get_kernel(op: Any, dispatch_key: Any) -> Callable:
    """The kernel registered for a dispatch key. Raises RuntimeError if there is none."""
    operator, key = _overload(op), str(dispatch_key).rpartition(".")[2]
    if key not in operator.kernels:
        raise RuntimeError(f"[get_kernel] {operator} has no kernel for {key}")
    return operator.kernels[key]


def get_ctx() -> Any:
    """The context of the function for fake tensors that runs, or None. Its new_dynamic_size() raises RuntimeError for meta tensors."""
    return fake_context.current()


def fallthrough_kernel() -> None:
    """A kernel for Library.impl() that stands for none: the kernel of the next dispatch key is called. Calling it raises, as in PyTorch."""
    message = "fallthrough_kernel() should never be called."
    raise NotImplementedError(message)


def triton_op(name: str, fn: Callable | None = None, /, *, mutates_args: Any, schema: str | None = None) -> Any:
    """Defines an operator by a Python function, as custom_op() does; without a function returns a decorator.

    A call whose function reaches a kernel of Triton fails, in wrap_triton() with NotImplementedError: the kernels need tensors with
    addresses in this process. Other registered kernels and fake functions work. The arguments are those of custom_op().
    """
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel: Any, /) -> Any:
    """Raises NotImplementedError: Triton's kernels need tensors with addresses in this process."""
    raise NotImplementedError("[wrap_triton] Triton's kernels need tensors with addresses in this process")


def opcheck(
    op: Any, args: tuple, kwargs: dict | None = None, *, test_utils: str | Sequence[str] = ("test_schema", "test_autograd_registration"),
    raise_exception: bool = True, atol: float | None = None, rtol: float | None = None,
) -> dict[str, str]:  # fmt: skip
    """Calls the operator and compares its effects with its schema; only "test_schema" and "test_autograd_registration" exist.

    Returns:
        "SUCCESS" or the exception by test. Both tests compare no values, so `atol` and `rtol` have no effect.

    Raises:
        RuntimeError: a test failed and `raise_exception` is True.
        NotImplementedError: for other tests.
    """
    from ._library.check import check

    return check(_overload(op), args, kwargs or {}, [test_utils] if isinstance(test_utils, str) else test_utils, raise_exception)
