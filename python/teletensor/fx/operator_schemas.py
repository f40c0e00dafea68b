"""Signatures of functions, and arguments matched to them.

The signatures of operators are read from their documentation, which the engine's declarations generate.
"""

from __future__ import annotations

import ast
import functools
import inspect
import numbers
import re
import types
import typing
import warnings
from typing import Any, Callable, NamedTuple

from .._C import Tensor, device, dtype
from ._mutation import _mutates
from ._names import typename

__all__ = [
    "ArgsKwargsPair", "check_for_mutable_operation", "get_signature_for_torch_op", "create_type_hint", "type_matches",
    "normalize_function", "normalize_module",
]  # fmt: skip


class ArgsKwargsPair(NamedTuple):
    """Arguments of a call."""

    args: tuple
    kwargs: dict[str, Any]


# Types in the language of the operators' declarations (docs/operators.md).
_TYPES = {
    "Tensor": Tensor, "int": int, "bool": bool, "float": float, "str": str, "Scalar": numbers.Number, "DType": dtype,
    "Device": device, "Operand": typing.Union[Tensor, numbers.Number],
}  # fmt: skip
_PARAMETER = re.compile(r"^(?P<type>\w+)(?P<inner>\?)?(?P<list>\[[\d*]*\])?(?P<optional>\?)? (?P<name>\w+)(?:=(?P<default>.*))?$")
_PARTS = re.compile(r",\s*(?![^\[]*\])")  # commas outside of brackets


def _python_type(match: re.Match) -> Any:
    kind = _TYPES.get(match["type"], Any)
    if match["inner"]:
        kind = typing.Optional[kind]
    if match["list"]:
        kind = list[kind]
    return typing.Optional[kind] if match["optional"] else kind


def _parse(line: str) -> inspect.Signature | None:
    """The signature in one line of documentation; None if it is written in another way."""
    text = line[line.index("(") + 1 : line.rindex(") ->")]
    kind, parameters = inspect.Parameter.POSITIONAL_OR_KEYWORD, []
    for part in filter(None, _PARTS.split(text)):
        if part == "*":
            kind = inspect.Parameter.KEYWORD_ONLY
            continue
        match = _PARAMETER.match(part)
        if match is None:
            return None
        default = inspect.Parameter.empty
        if match["default"] is not None:
            try:
                default = ast.literal_eval(match["default"])
            except (ValueError, SyntaxError):
                default = match["default"]
        parameters.append(inspect.Parameter(match["name"], kind, default=default, annotation=_python_type(match)))
    return inspect.Signature(parameters)


@functools.cache
def _documented_signatures(op: Callable) -> tuple[inspect.Signature, ...]:
    name = getattr(op, "__name__", "")
    lines = (getattr(op, "__doc__", None) or "").split("\n")
    found = [_parse(line) for line in lines if line.startswith(f"{name}(") and ") ->" in line]
    return tuple(signature for signature in found if signature is not None)


def get_signature_for_torch_op(op: Callable, return_schemas: bool = False) -> Any:
    """The signatures of an operator's overloads; None if the function is not an operator.

    Args:
        return_schemas: also returns the lines that declare them.
    """
    module = getattr(op, "__module__", None) or ""
    found = list(_documented_signatures(op)) if module.startswith("teletensor._C") else []
    if not return_schemas:
        return found or None
    return (found, [f"{op.__name__}{signature}" for signature in found]) if found else (None, None)


def check_for_mutable_operation(target: Callable, args: tuple, kwargs: dict) -> None:
    """Raises RuntimeError if a call changes one of its arguments: an in-place function, or one with `out`."""
    module = getattr(target, "__module__", None) or ""
    name = getattr(target, "__name__", "")
    if kwargs.get("out") is not None or module.startswith(("teletensor", "torch", "_operator")) and _mutates(name):
        raise RuntimeError(
            f"Tried to trace mutable operation {name}. FX only supports functional code, so operations that mutate operands "
            "in-place (e.g. via `out` arguments) are not supported"
        )


def create_type_hint(x: Any) -> Any:
    """The annotation of a list or tuple of types; any other value unchanged."""
    if not isinstance(x, (list, tuple)):
        return x
    if isinstance(x, list):

        def hint(kind: Any) -> Any:
            return list[kind]
    else:

        def hint(kind: Any) -> Any:
            return tuple[kind, ...]

    try:
        if not x:
            return hint(Any)
        base = x[0]
        for kind in x:
            if issubclass(base, kind):
                base = kind
            elif not issubclass(kind, base):
                return hint(Any)
        return hint(base)
    except TypeError:
        warnings.warn(f"We were not able to successfully create type hint from the type {x}", stacklevel=2)
        return x


def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Whether an argument of one type may be given for a parameter of another."""
    origin = typing.get_origin(signature_type) or signature_type
    if signature_type is argument_type or signature_type is Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(type_matches(kind, argument_type) for kind in typing.get_args(signature_type))
    if origin is list:
        return _matches_elements(typing.get_args(signature_type)[0], argument_type)
    if signature_type is int and argument_type is dtype:
        return True
    if signature_type is numbers.Number and argument_type in (int, float):
        return True
    if inspect.isclass(argument_type) and inspect.isclass(signature_type):
        return issubclass(argument_type, signature_type)
    return False


def _matches_elements(element: Any, argument_type: Any) -> bool:
    """Whether a type is a list or tuple of an element type; int matches a list of int."""
    if argument_type is int and element is int:
        return True
    if not inspect.isclass(element):
        warnings.warn(f"Does not support nested parametric types, got list[{element}]. Please file a bug.", stacklevel=3)
        return False
    given = typing.get_args(argument_type)
    if typing.get_origin(argument_type) is list:
        return issubclass(given[0], element)
    if typing.get_origin(argument_type) is tuple:
        return all(kind is Ellipsis or kind == () or issubclass(kind, element) for kind in given)
    return False


def normalize_function(
    target: Callable,
    args: tuple,
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """A call's arguments matched to the function's signature, with its defaults.

    Args:
        target: an operator or a Python function.
        arg_types, kwarg_types: the arguments' types, which select between overloads.
        normalize_to_only_use_kwargs: gives all arguments by keyword.

    Returns:
        None if no signature is known or none fits.

    Raises:
        RuntimeError: several overloads fit and no types were given.
    """
    kwargs = kwargs or {}
    if not isinstance(target, types.BuiltinFunctionType):
        return _normalized(inspect.signature(inspect.unwrap(target)), args, kwargs, normalize_to_only_use_kwargs)
    signatures = get_signature_for_torch_op(target) or []
    matched = [signature for signature in signatures if _binds(signature, args, kwargs)]
    if len(matched) > 1:
        if arg_types is None and kwarg_types is None:
            schemas = "\n".join(str(signature) for signature in matched)
            raise RuntimeError(
                f"Tried to normalize arguments to {typename(target)} but the schema match was ambiguous! Please provide "
                f"argument types to the normalize_arguments() call. Available schemas:\n{schemas}"
            )
        matched = [signature for signature in signatures if _fits(signature, arg_types or (), kwarg_types or {})]
    return _normalized(matched[0], args, kwargs, normalize_to_only_use_kwargs) if matched else None


def _binds(signature: inspect.Signature, args: tuple, kwargs: dict) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _fits(signature: inspect.Signature, arg_types: tuple, kwarg_types: dict) -> bool:
    """Whether arguments of these types may be given."""
    try:
        bound = signature.bind(*arg_types, **kwarg_types).arguments
    except TypeError:
        return False
    return all(type_matches(signature.parameters[name].annotation, kind) for name, kind in bound.items())


def normalize_module(
    root: Any, target: str, args: tuple, kwargs: dict[str, Any] | None = None, normalize_to_only_use_kwargs: bool = False
) -> ArgsKwargsPair | None:
    """A call's arguments matched to the forward() of a submodule of torch.nn; None for other submodules.

    Raises:
        RuntimeError: the root has no such submodule.
    """
    from .. import nn

    try:
        submodule = root.get_submodule(target)
    except AttributeError as e:
        raise RuntimeError(f"Tried to normalize node with target {target} but root did not have that target!") from e
    if getattr(nn, type(submodule).__name__, None) is not type(submodule):
        return None
    signature = inspect.signature(inspect.unwrap(submodule.forward))
    return _normalized(signature, args, kwargs or {}, normalize_to_only_use_kwargs)


def _normalized(signature: inspect.Signature, args: tuple, kwargs: dict, only_kwargs: bool) -> ArgsKwargsPair | None:
    supported = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    if any(parameter.kind not in supported for parameter in signature.parameters.values()):
        return None
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    names = list(signature.parameters)
    positional = 0 if only_kwargs else len(args)
    return ArgsKwargsPair(
        tuple(bound.arguments[name] for name in names[:positional]), {name: bound.arguments[name] for name in names[positional:]}
    )
