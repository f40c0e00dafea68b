"""torch.overrides: functions for types that implement __torch_function__, and modes that override functions.

The dispatch itself is in C++ (bindings/tensor/torch_function.h) and in teletensor/_overridable.py.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import re
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType
from typing import Any

import teletensor

from . import _C, _overridable, _subclass, fft, foreach, functional, linalg, special
from ._C import Tensor
from ._C import _has_torch_function as has_torch_function
from ._C import _has_torch_function_unary as has_torch_function_unary  # noqa: F401
from ._C import _has_torch_function_variadic as has_torch_function_variadic  # noqa: F401
from ._overridable import handle_torch_function, wrap_torch_function
from .nn import functional as nn_functional
from .nn import init

__all__ = [
    "get_ignored_functions", "get_overridable_functions", "get_testing_overrides", "handle_torch_function",
    "has_torch_function", "resolve_name", "is_tensor_like", "is_tensor_method_or_property", "wrap_torch_function",
    "enable_reentrant_dispatch", "redispatch_function",
]  # fmt: skip

# Types of overridable objects whose name is their text. torch.ops adds its operators.
named_by_text: list[type] = []
# Public namespaces, relative to the package, in the order in which a function is looked up.
_MODULES = {
    "": teletensor, ".functional": functional, ".nn.functional": nn_functional, ".nn.init": init, ".linalg": linalg, ".fft": fft,
    ".special": special, ".foreach": foreach,
}  # fmt: skip
# Functions that create tensors: function modes override them; their arguments do not.
_CREATING = (
    "arange as_strided as_tensor asarray bartlett_window blackman_window can_cast empty empty_permuted empty_strided eye fill "
    "from_file from_numpy frombuffer full hamming_window hann_window kaiser_window linspace logspace normal ones promote_types rand "
    "rand_like randint randint_like randn randn_like randperm range result_type scalar_tensor sparse_bsc_tensor "
    "sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor sym_constrain_range "
    "sym_constrain_range_for_size sym_fresh_size tensor tril_indices triu_indices vander zeros"
).split()
_IGNORED = {
    "": (*_CREATING, *_overridable.NEVER, "is_grad_enabled", "is_inference_mode_enabled", "set_default_dtype"),
    ".nn.functional": ("sigmoid", "tanh", "hardsigmoid", "hardswish", "upsample", "upsample_bilinear", "upsample_nearest"),
    ".nn.init": ("calculate_gain",),
    ".fft": ("fftfreq", "rfftfreq"),
}  # fmt: skip
_IGNORED_METHODS = (
    "__delitem__ __dir__ __hash__ __init_subclass__ __iter__ __new__ __subclasshook__ __torch_function__ __torch_dispatch__ "
    "_addmm_activation _make_subclass _make_wrapper_subclass as_subclass new new_empty new_empty_strided new_full new_ones "
    "new_tensor new_zeros stride unflatten"
).split()
_OPERATOR_TYPES = (BuiltinFunctionType, _C.OverridableFunction)
_METHOD_TYPES = (type(Tensor.add), type(Tensor.__add__), _C.OverridableFunction)  # generated, slots, Python


def _module(place: str) -> Any:
    return _MODULES[place]


@functools.cache
def get_ignored_functions() -> set[Callable]:
    """The public functions that arguments cannot override, because they take no tensors or read any object's values."""
    found = [getattr(_module(place), name, None) for place, names in _IGNORED.items() for name in names]
    found += [getattr(Tensor, name, None) for name in _IGNORED_METHODS]
    return {function for function in found if callable(function)}


@functools.cache
def get_default_nowrap_functions() -> set[Callable]:
    """The functions whose results Tensor.__torch_function__ does not convert to the subclass."""
    return _subclass.kept_results


def _functions(place: str) -> Iterator[tuple[str, Any]]:
    module = _module(place)
    for name in dir(module):
        if not name.startswith("__"):
            function = getattr(module, name, None)
            if isinstance(function, _OPERATOR_TYPES) and getattr(function, "__module__", None) != "builtins":
                yield name, function


@functools.cache
def _overridable_functions() -> tuple[dict[Any, list[Callable]], dict[Callable, str]]:
    """The overridable functions by namespace, and the names of all functions and properties."""
    functions: dict[Any, list[Callable]] = {}
    names: dict[Callable, str] = {}
    ignored = get_ignored_functions()
    for place in _MODULES:
        for name, function in _functions(place):
            # the function may be in several namespaces; lists it in its own
            if isinstance(function, _C.OverridableFunction):
                names[function] = f"torch{function.__module__.removeprefix('teletensor')}.{function.__qualname__}"
            names.setdefault(function, f"torch{place}.{name}")
            hidden = name.startswith("_") or (name.endswith("_") and place != ".foreach") or not name[0].islower()
            if not hidden and function not in ignored:
                functions.setdefault(_module(place), []).append(function)
    for name in dir(Tensor):
        value = inspect.getattr_static(Tensor, name)
        if isinstance(value, property) or inspect.isgetsetdescriptor(value):
            if name not in _overridable.PLAIN_ATTRIBUTES:
                names[value.__get__], names[value.__set__] = f"torch.Tensor.{name}.__get__", f"torch.Tensor.{name}.__set__"
                functions.setdefault(value, []).append(value.__get__)
        elif isinstance(value, _METHOD_TYPES) and getattr(object, name, None) is not value:
            names[value] = f"torch.Tensor.{name}"
            if value not in ignored:
                functions.setdefault(Tensor, []).append(value)
    return functions, names


def get_overridable_functions() -> dict[Any, list[Callable]]:
    """The functions that __torch_function__ overrides, by the module, class or property that contains them."""
    return _overridable_functions()[0]


def resolve_name(f: Callable) -> str | None:
    """The public name of a function that a handler received, such as "torch.Tensor.add"; None for other functions."""
    if isinstance(f, tuple(named_by_text)):
        return str(f)
    return _overridable_functions()[1].get(f)


def is_tensor_method_or_property(func: Callable) -> bool:
    """Whether a function that a handler received is a method of Tensor, or the __get__ of one of its properties."""
    return func in _methods() or func.__name__ == "__get__"


@functools.cache
def _methods() -> set[Callable]:
    return set(get_overridable_functions()[Tensor])


_PARAMETER = re.compile(r"(?:\S+ )?(?P<name>\w+)(?:=(?P<default>.*))?$")


def _value(text: str | None) -> Any:
    """The value of a default in a declaration; the text itself if it is a name."""
    if text is None:
        return None
    try:
        return ast.literal_eval(text.capitalize() if text in ("true", "false") else text)
    except (SyntaxError, ValueError):
        return text


def documented_parameters(function: Callable) -> list[tuple[str, Any, bool]]:
    """The parameters of a generated function, of the first signature in its documentation: name, default, keyword only.

    The default is Parameter.empty for a required parameter.
    """
    text = (function.__doc__ or "").partition("\n")[0]
    parts = [part for part in text.partition("(")[2].partition(") ->")[0].split(", ") if part]
    star = parts.index("*") if "*" in parts else len(parts)
    found = []
    for i, part in enumerate(parts):
        match = _PARAMETER.match(part)
        if part != "*" and match is not None:
            optional = "?" in part.split(" ")[0] or match["default"] is not None
            found.append((match["name"], _value(match["default"]) if optional else inspect.Parameter.empty, i > star))
    return found


def _documented_signature(function: Callable) -> inspect.Signature:
    parameters: list[inspect.Parameter] = []
    required = False  # a parameter before a required one is required too
    for name, default, keyword_only in reversed(documented_parameters(function)):
        kind = inspect.Parameter.KEYWORD_ONLY if keyword_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        required = not keyword_only and (required or default is inspect.Parameter.empty)
        parameters.insert(0, inspect.Parameter(name, kind, default=inspect.Parameter.empty if required else default))
    return inspect.Signature(parameters)


def signature_of(function: Callable) -> inspect.Signature:
    """The signature of a function, of a generated one by its documentation."""
    try:
        return inspect.signature(function)
    except ValueError:
        pass
    name = getattr(function, "__name__", "")
    if name.endswith("_") and not name.endswith("__"):  # an in-place method's documentation has no signature
        function = getattr(Tensor, name.rstrip("_"), function)
    try:
        found = _documented_signature(function)
    except ValueError:
        found = inspect.Signature()
    return found if found.parameters else inspect.Signature([inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)])


def _stand_in(function: Callable) -> Callable:
    def stand_in(*args: Any, **kwargs: Any) -> int:
        return -1

    stand_in.__signature__ = signature_of(function)  # type: ignore[attr-defined]
    return stand_in


@functools.cache
def get_testing_overrides() -> dict[Callable, Callable]:
    """For each overridable function, a function with its signature that returns -1."""
    return {function: _stand_in(function) for group in get_overridable_functions().values() for function in group}


def is_tensor_like(inp: Any) -> bool:
    """Whether the object is a Tensor or its type implements __torch_function__."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


class TorchFunctionMode:
    """Overrides all functions within a ``with`` statement: each call is passed to ``__torch_function__`` of the mode.

    The mode is inactive while its handler runs. Modes nest; the innermost receives a call first.
    """

    def __torch_function__(self, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> TorchFunctionMode:
        _C._push_on_torch_function_stack(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _C._pop_torch_function_stack()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchFunctionMode:
        """Creates a mode; the former spelling of ``with Mode():``."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that calls each function unchanged."""

    def __torch_function__(self, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_function_mode() -> TorchFunctionMode | None:
    """The innermost function mode of this thread."""
    count = _C._len_torch_function_stack()
    return _C._get_function_stack_at(count - 1) if count else None


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    """The function modes of this thread, the outermost first."""
    return [_C._get_function_stack_at(i) for i in range(_C._len_torch_function_stack())]


_push_mode = _C._push_on_torch_function_stack
_pop_mode = _C._pop_torch_function_stack


@contextlib.contextmanager
def _pop_mode_temporarily() -> Iterator[TorchFunctionMode]:
    """Deactivates the innermost function mode, which it returns."""
    mode = _pop_mode()
    try:
        yield mode
    finally:
        _push_mode(mode)


@contextlib.contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Has no effect: handlers may call functions that are dispatched again."""
    yield


def redispatch_function(func: Callable, types: tuple, args: tuple, kwargs: dict | None) -> Any:
    """Calls a function without overriding this call; the calls that the function makes are overridden as usual."""
    return _C._call_without_one_override(func, types, args, kwargs or {})
