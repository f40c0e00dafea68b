"""Calling modules as functions of their parameters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .. import _C
from .._C import Tensor


def _registry(module: Any, path: str) -> tuple[dict, str]:
    """Returns the dictionary that contains the named parameter or buffer, and its key."""
    where, _, name = path.rpartition(".")
    owner = module.get_submodule(where)
    for registry in (owner._parameters, owner._buffers):
        if name in registry:
            return registry, name
    raise KeyError(f"[functional_call] {type(module).__name__} has no parameter or buffer {path!r}")


@contextmanager
def _replaced(module: Any, values: dict[str, Tensor], tie_weights: bool) -> Iterator[None]:
    names = dict(values)
    if tie_weights:  # replace a shared tensor under all of its names
        held: dict[int, list[str]] = {}
        for find in (module.named_parameters, module.named_buffers):
            for name, value in find(remove_duplicate=False):
                held.setdefault(id(value), []).append(name)
        for shared in held.values():
            given = [name for name in shared if name in values]
            for name in shared:
                if given and name not in names:
                    names[name] = values[given[0]]
    replacements = [(*_registry(module, name), value) for name, value in names.items()]
    before = [registry[name] for registry, name, _ in replacements]
    try:
        for registry, name, value in replacements:
            registry[name] = value
        yield
    finally:
        for (registry, name, _), value in zip(replacements, before):
            registry[name] = value


def functional_call(
    module: Any, parameter_and_buffer_dicts: Any, args: Any = None, kwargs: dict | None = None, *,
    tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """Calls the module with its parameters and buffers temporarily replaced by other tensors.

    Args:
        parameter_and_buffer_dicts: tensors by name, in one or several dictionaries.
        args: the call's arguments: a tuple, or a single argument.
        tie_weights: whether a tensor that the module has under several names is replaced under all of them.
        strict: whether all parameters and buffers must be given, and no other names.
    """
    dicts = parameter_and_buffer_dicts if isinstance(parameter_and_buffer_dicts, (tuple, list)) else [parameter_and_buffer_dicts]
    values: dict[str, Tensor] = {}
    for given in dicts:
        if not isinstance(given, dict):
            raise ValueError(f"[functional_call] expected a dict, or a list of dicts, got {type(given).__name__}")
        repeated = values.keys() & given.keys()
        if repeated:
            raise ValueError(f"[functional_call] expected each name once, got {sorted(repeated)} more than once")
        values.update(given)
    if strict:
        expected = {name for find in (module.named_parameters, module.named_buffers) for name, _ in find()}
        if expected != values.keys():
            missing, unknown = sorted(expected - values.keys()), sorted(values.keys() - expected)
            raise RuntimeError(f"[functional_call] missing {missing}, unexpected {unknown}")
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, values, tie_weights):
        return module(*arguments, **(kwargs or {}))


def stack_module_state(models: list) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Stacks the parameters and buffers of models of the same class, by name, for vmap over an ensemble.

    The results are leaves, which require grad if the stacked tensors do.

    Raises:
        RuntimeError: there is no model, or the models differ in class, in `training`, or in `requires_grad` of a tensor.
    """
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(m) for m in models}) > 1:
        names = sorted({type(m).__name__ for m in models})
        raise RuntimeError(f"stack_module_state: Expected all models to be of the same class, got {', '.join(names)}")

    def stacked(name: str, tensors: list[Tensor]) -> Tensor:
        required = {t.requires_grad for t in tensors}
        if len(required) > 1:
            raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
        return _C.torch.stack([t.detach() for t in tensors]).requires_grad_(required.pop())

    def of(find: str) -> dict[str, Tensor]:
        entries = [dict(getattr(m, find)()) for m in models]
        return {name: stacked(name, [e[name] for e in entries]) for name in entries[0]}

    return of("named_parameters"), of("named_buffers")
