"""torch.library.opcheck: whether an operator does what its schema says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .operators import OpOverload, tensors_in


def _test_schema(op: OpOverload, args: tuple, kwargs: dict) -> None:
    """Raises RuntimeError if a tensor that the schema does not mark with "!" changes."""
    positional, keyword = op._schema.bind(args, kwargs)
    constant = [v for a, v in zip(op._schema.arguments, [*positional, *keyword.values()]) if not a.is_write]
    tensors = [*tensors_in(constant)]
    before = [t.detach().clone() for t in tensors]
    op(*args, **kwargs)
    for t, old in zip(tensors, before):
        if not (t.detach() == old).logical_or(t.detach() != t.detach()).all().item():
            raise RuntimeError(f"Argument of {op} is not declared as mutable but was changed")


def _test_autograd_registration(op: OpOverload, args: tuple, kwargs: dict) -> None:
    """Raises RuntimeError if an Autograd kernel exists beside a formula, which would then never be used."""
    positional, keyword = op._schema.bind(args, kwargs)
    if any(t.requires_grad for t in tensors_in([*positional, *keyword.values()])):
        if op.backward is None and not set(op.kernels) & {"Autograd", "AutogradCPU", "AutogradCUDA", "CompositeImplicitAutograd"}:
            raise RuntimeError(f"{op} was called with tensors that require grad but has no derivative: use register_autograd")


_TESTS = {"test_schema": _test_schema, "test_autograd_registration": _test_autograd_registration}


def check(op: OpOverload, args: tuple, kwargs: dict, tests: Sequence[str], raise_exception: bool) -> dict[str, Any]:
    """Runs tests by name; returns "SUCCESS" or the exception for each."""
    results: dict[str, Any] = {}
    for name in tests:
        if name not in _TESTS:
            raise NotImplementedError(f"[opcheck] expected one of {', '.join(_TESTS)}, got {name!r}: graphs are not compiled")
        try:
            _TESTS[name](op, args, kwargs)
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise RuntimeError(f"opcheck(op, ...): {name} failed with {error}") from error
            results[name] = error
    return results
