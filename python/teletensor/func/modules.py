"""Calling modules as functions of their parameters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .. import _C
from .._C import Tensor


def _registry(module: Any, path: str) -> tuple[dict, str]:
    """Returns the dictionary that contains the named parameter, buffer or other attribute, and its key."""
    where, _, name = path.rpartition(".")
    owner = module.get_submodule(where)
    return next((registry for registry in (owner._parameters, owner._buffers) if name in registry), vars(owner)), name


def _names_by_tensor(module: Any) -> list[list[str]]:
    """The names of each parameter and buffer."""
    held: dict[int, list[str]] = {}
    for find in (module.named_parameters, module.named_buffers):
        for name, value in find(remove_duplicate=False):
            held.setdefault(id(value), []).append(name)
    return list(held.values())


@contextmanager
def reparametrized(module: Any, given: dict[str, Tensor], tie_weights: bool = False, strict: bool = False) -> Iterator[None]:
    """Sets parameters and buffers of a module, or other attributes, within a context.

    Afterwards `given` has the tensors that the module then had: code within the context may have replaced them.
    """
    names = dict(given)
    names_by_tensor = _names_by_tensor(module) if tie_weights or strict else []  # endless for modules that contain themselves
    for shared in names_by_tensor if tie_weights else ():
        first = next((name for name in shared if name in given), None)
        for name in shared if first is not None else ():
            names.setdefault(name, given[first])
    own = {name for shared in names_by_tensor for name in shared}
    if strict and own != names.keys():
        keys = {"Unexpected": [name for name in given if name not in own], "Missing": sorted(own - names.keys())}
        messages = [f"{kind} key(s): {', '.join(map(repr, found))}." for kind, found in keys.items() if found]
        raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t" + "\n\t".join(messages))
    places = [(*_registry(module, name), name, value) for name, value in names.items()]
    before = [(registry, key, registry.get(key, module)) for registry, key, _, _ in places]  # the module stands for no tensor
    try:
        for registry, key, _, value in places:
            registry[key] = value
        yield
        given.update({name: registry[key] for registry, key, name, _ in places if name in given})
    finally:
        for registry, key, value in before:
            if value is module:
                registry.pop(key, None)
            else:
                registry[key] = value


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
    several = isinstance(parameter_and_buffer_dicts, (tuple, list))
    values: dict[str, Tensor] = {}
    for given in parameter_and_buffer_dicts if several else [parameter_and_buffer_dicts]:
        if not isinstance(given, dict):
            raise ValueError(f"[functional_call] expected a dict, or a list of dicts, got {type(given).__name__}")
        repeated = values.keys() & given.keys()
        if repeated:
            raise ValueError(f"[functional_call] expected each name once, got {sorted(repeated)} more than once")
        values.update(given)
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    with reparametrized(module, values if several else parameter_and_buffer_dicts, tie_weights, strict):
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
