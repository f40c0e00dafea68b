"""State dicts of models and optimizers that do not depend on how the model is wrapped: names are those of the unwrapped
modules, and the optimizer's state is named by parameter. Sharded values stay sharded; checkpoints can be loaded with
another number of ranks."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ... import _C
from ..._C import Tensor
from ..._grad_mode import no_grad
from ...nn.modules.module import Module
from ...optim import Optimizer
from ..tensor._state import Distributed, make
from ._broadcast import broadcast_values
from ._shards import boxes_of, copy_value

__all__ = [
    "StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict",
    "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip

_WRAPPERS = ("_fsdp_wrapped_module", "_orig_mod", "_checkpoint_wrapped_module")


@dataclasses.dataclass
class StateDictOptions:
    """Options of the functions of this module.

    Args:
        full_state_dict: whether sharded values are gathered; with `cpu_offload`, all ranks but the first get an empty
        dict. cpu_offload: whether tensors are copied to the CPU. ignore_frozen_params: whether parameters that do not
        require grad are left out. strict: whether a model's state dict must have exactly the model's names.
        flatten_optimizer_state_dict: whether an optimizer's state dict has one level: ``state.<parameter>.<key>``.
        broadcast_from_rank0: whether the values of a full state dict that is set are those of rank 0; all other ranks may
        pass an empty dict. Requires `full_state_dict`.

    Raises:
        ValueError: ``broadcast_from_rank0`` without ``full_state_dict``.
        NotImplementedError: ``keep_submodule_prefixes=False``, ``dsd_fqn_modifiers``.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"

    def __post_init__(self) -> None:
        if not self.keep_submodule_prefixes or self.dsd_fqn_modifiers != "_fqn_modifiers":
            raise NotImplementedError(
                "[StateDictOptions] expected keep_submodule_prefixes=True and the default dsd_fqn_modifiers"
            )
        if self.broadcast_from_rank0 and not self.full_state_dict:
            raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")


def _clean(model: Module, name: str) -> str:
    """The name without the names of wrappers."""
    from ...nn.parallel import DistributedDataParallel

    kept: list[str] = []
    module: Any = model
    for part in name.split("."):
        is_wrapper = isinstance(module, DistributedDataParallel) and part == "module"
        if not is_wrapper and part not in _WRAPPERS:
            kept.append(part)
        module = module._modules.get(part) if isinstance(module, Module) else None
    return ".".join(kept)


class _Named(NamedTuple):
    """A parameter of an optimizer: its name, and its number in the unit if it is part of a flat parameter."""

    name: str
    index: int | None


def _names_by_id(model: Module) -> dict[int, list[_Named]]:
    """The names of each parameter object; several for a flat parameter."""
    from ..fsdp._unit import FlatParameter

    names: dict[int, list[_Named]] = {}
    for path, module in model.named_modules(remove_duplicate=False):
        for key, parameter in module._parameters.items():
            if parameter is None or id(parameter) in names:
                continue
            prefix = f"{path}." if path else ""
            if isinstance(parameter, FlatParameter):
                names[id(parameter)] = [
                    _Named(_clean(model, prefix + entry.name), i) for i, entry in enumerate(parameter._unit.entries)
                ]
            else:
                names[id(parameter)] = [_Named(_clean(model, prefix + key), None)]
    return names


@contextlib.contextmanager
def _sharded_state_dicts(model: Module, full: bool) -> Iterator[None]:
    from ..fsdp import FullyShardedDataParallel, StateDictType

    if not any(isinstance(m, FullyShardedDataParallel) for m in model.modules()):
        yield
        return
    kind = StateDictType.FULL_STATE_DICT if full else StateDictType.SHARDED_STATE_DICT
    with FullyShardedDataParallel.state_dict_type(model, kind):
        yield


def _rank() -> int:
    from .._world import get_rank, is_initialized

    return get_rank() if is_initialized() else 0


def _gathered(value) -> Any:
    """The whole of a sharded value. Collective."""
    if hasattr(value, "full_tensor"):
        return value.full_tensor().detach()
    from ..fsdp._sharded_tensor import ShardedTensor

    if not isinstance(value, ShardedTensor):
        return value
    unit, index = value._unit, value._index
    with no_grad():
        if index is None:
            raise NotImplementedError("[full_state_dict] LOCAL_STATE_DICT cannot be gathered")
        part = _C.torch.zeros(unit.part_numel, dtype=value.dtype, device=unit.storage_device)
        if value.numel():
            unit.local(part, unit.entries[index]).copy_(value)
        # One collective per value: the parts of the unit's other parameters are zeros.
        return unit.gather_flat(part)[index].clone()


def _offloaded(value, options: StateDictOptions):
    return value.cpu() if options.cpu_offload and isinstance(value, Tensor) else value


def _final(values: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    if options.full_state_dict:
        values = {key: _gathered(value) for key, value in values.items()}
        if options.cpu_offload and _rank() != 0:
            return {}
    return {key: _offloaded(value, options) for key, value in values.items()}


def _check_submodules(function: str, submodules) -> None:
    if submodules is not None:
        raise NotImplementedError(f"[{function}] submodules is not supported")


def get_model_state_dict(
    model: Module, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """The model's state by the names of the unwrapped modules. Sharded parameters are this rank's parts, which load() of a
    checkpoint writes in place. All ranks must call it."""
    _check_submodules("get_model_state_dict", submodules)
    options = options or StateDictOptions()
    with _sharded_state_dicts(model, False):
        state = model.state_dict()
    frozen = _frozen(model) if options.ignore_frozen_params else set()
    values = {name: value for key, value in state.items() if (name := _clean(model, key)) not in frozen}
    return _final(values, options)


def _frozen(model: Module) -> set[str]:
    from ..fsdp._unit import FlatParameter

    frozen = set()
    for path, module in model.named_modules(remove_duplicate=False):
        for key, parameter in module._parameters.items():
            if parameter is None or parameter.requires_grad:
                continue
            prefix = f"{path}." if path else ""
            own = [entry.name for entry in parameter._unit.entries] if isinstance(parameter, FlatParameter) else [key]
            frozen.update(_clean(model, prefix + name) for name in own)
    return frozen


def set_model_state_dict(model: Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None):
    """Copies a state dict to the model: one of get_model_state_dict(), or one with whole tensors on every rank. Returns the
    missing and unexpected names. All ranks must call it.

    Raises:
        RuntimeError: names are missing or unexpected, and ``options.strict``.
    """
    options = options or StateDictOptions()
    if options.broadcast_from_rank0:
        model_state_dict = broadcast_values(model_state_dict, _device_of(model))
    with _sharded_state_dicts(model, False):
        own = model.state_dict()
        by_name = {_clean(model, key): key for key in own}
        frozen = _frozen(model) if options.ignore_frozen_params else set()
        if not any(hasattr(value, "__shards__") for value in own.values()):
            renamed = {by_name.get(name, name): value for name, value in model_state_dict.items()}
            found = model.load_state_dict(renamed, strict=False)
            missing = [name for key in found.missing_keys if (name := _clean(model, key)) not in frozen]
            unexpected = [_clean(model, key) for key in found.unexpected_keys]
        else:
            missing = [name for name in by_name if name not in model_state_dict and name not in frozen]
            unexpected = [name for name in model_state_dict if name not in by_name]
            created: dict[str, Tensor] = {}
            for name, value in model_state_dict.items():
                target = own.get(by_name.get(name, ""))
                if isinstance(target, Tensor) and target.device.type == "meta":
                    created[by_name[name]] = target = _empty_like(target, value.device)
                if boxes_of(target) is not None:
                    copy_value(target, value)
            if created:
                model.load_state_dict(created, strict=False, assign=True)
    if options.strict and (missing or unexpected):
        raise RuntimeError(f"Error(s) in loading state_dict: missing {missing}, unexpected {unexpected}")
    from ...nn.modules.module import _IncompatibleKeys

    return _IncompatibleKeys(missing, unexpected)


def _device_of(model: Module) -> _C.device:
    return next((p.device for p in model.parameters() if p.device.type != "meta"), _C.device("cpu"))


def _empty_like(target: Tensor, device: _C.device) -> Tensor:
    """A tensor without values like one on the meta device, with the same placements."""
    if not isinstance(target, Distributed):
        return _C.torch.empty(target.shape, dtype=target.dtype, device=device)
    locals_ = [_C.torch.empty(t.shape, dtype=t.dtype, device=device) for t in target._locals]
    return make(locals_, target._spec, target.shape)


# Optimizers.


def _optimizers(optimizers) -> tuple[Optimizer, ...]:
    return (optimizers,) if isinstance(optimizers, Optimizer) else tuple(optimizers)


def _initialize(optimizer: Optimizer) -> None:
    """Creates the state that the first step would create, without changing the parameters."""
    if optimizer.state:
        return
    parameters = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
    if any(p.grad is not None for p in parameters):
        raise RuntimeError("expected an optimizer that has made a step, or parameters without gradients (zero_grad)")
    rates = [group.get("lr") for group in optimizer.param_groups]
    try:
        for p in parameters:
            p.grad = _C.torch.zeros_like(p.detach())
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            if rate is not None:
                group["lr"] = _C.torch.zeros_like(rate) if isinstance(rate, Tensor) else 0.0
        optimizer.step()
    finally:
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            if rate is not None:
                group["lr"] = rate
        optimizer.zero_grad(set_to_none=True)


_init_optim_state = _initialize  # PyTorch's name


def _state_of(parameter: Tensor, named: _Named, values: dict) -> dict:
    """A parameter's state; tensors that are divided like a sharded parameter are marked as parts."""
    from ..fsdp._sharded_tensor import ShardedTensor

    unit = getattr(parameter, "_unit", None)
    if unit is None:
        return dict(values)
    index = parameter._index if named.index is None else named.index
    result = {}
    for key, value in values.items():
        if isinstance(value, Tensor) and value.dim() and value.shape == parameter.shape:
            part = value if named.index is None else unit.local(value, unit.entries[index])
            value = ShardedTensor(part, unit, index)
        result[key] = value
    return result


def _names_in(group: dict, names: dict[int, list[_Named]]) -> list[str]:
    found = []
    for p in group["params"]:
        if id(p) not in names:
            raise RuntimeError("expected an optimizer of the model's parameters, created after the model was wrapped")
        found += [named.name for named in names[id(p)]]
    return found


def get_optimizer_state_dict(
    model: Module, optimizers: Optimizer | Iterable[Optimizer], *, submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The optimizers' state by parameter name: ``{"state": {name: {key: value}}, "param_groups": [...]}``. Sharded like the
    model. An optimizer that has not made a step gets the state that its first step would create. All ranks must call it."""
    _check_submodules("get_optimizer_state_dict", submodules)
    options = options or StateDictOptions()
    names = _names_by_id(model)
    state: dict[str, Any] = {}
    groups: list[dict] = []
    for optimizer in _optimizers(optimizers):
        _initialize(optimizer)
        for group in optimizer.param_groups:
            groups.append({**group, "params": _names_in(group, names)})
            for p in group["params"]:
                for named in names[id(p)] if p in optimizer.state else ():
                    state[named.name] = _final(_state_of(p, named, optimizer.state[p]), options)
    if options.full_state_dict and options.cpu_offload and _rank() != 0:
        return {}
    result = {"state": state, "param_groups": groups}
    return _flattened(result) if options.flatten_optimizer_state_dict else result


def _flattened(state_dict: dict) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, values in state_dict["state"].items():
        flat.update({f"state.{name}.{key}": value for key, value in values.items()})
    for group in state_dict["param_groups"]:
        for name in group["params"]:
            flat.update({f"param_groups.{name}.{key}": value for key, value in group.items() if key != "params"})
    return flat


def _nested(flat: dict[str, Any], own: dict) -> dict:
    """The inverse of _flattened, for the groups and names of `own`."""
    state = {name: {key: flat[f"state.{name}.{key}"] for key in values if f"state.{name}.{key}" in flat}
             for name, values in own["state"].items()}  # fmt: skip
    groups = []
    for group in own["param_groups"]:
        prefix = f"param_groups.{group['params'][0]}." if group["params"] else "param_groups."
        options = {key: flat.get(prefix + key, value) for key, value in group.items() if key != "params"}
        groups.append({**options, "params": group["params"]})
    return {"state": state, "param_groups": groups}


def set_optimizer_state_dict(
    model: Module, optimizers: Optimizer | Iterable[Optimizer], optim_state_dict: dict[str, Any], *,
    options: StateDictOptions | None = None,
) -> None:  # fmt: skip
    """Copies a state dict of get_optimizer_state_dict(), or one with whole tensors on every rank, to the optimizers. All
    ranks must call it.

    Raises:
        KeyError: the state dict lacks the state of a parameter.
    """
    options = options or StateDictOptions()
    names = _names_by_id(model)
    if options.broadcast_from_rank0:
        optim_state_dict = broadcast_values(optim_state_dict, _device_of(model))
    if options.flatten_optimizer_state_dict:
        own = get_optimizer_state_dict(model, optimizers)
        optim_state_dict = _nested(optim_state_dict, own)
    saved_groups = {name: group for group in optim_state_dict["param_groups"] for name in group["params"]}
    for optimizer in _optimizers(optimizers):
        _initialize(optimizer)
        for group in optimizer.param_groups:
            in_group = _names_in(group, names)
            if in_group and in_group[0] not in saved_groups:
                raise KeyError(
                    f"[set_optimizer_state_dict] the state dict has no group with the parameter {in_group[0]}"
                )
            if in_group:
                group.update({key: v for key, v in saved_groups[in_group[0]].items() if key != "params"})
            for p in group["params"]:
                for named in names[id(p)] if p in optimizer.state else ():
                    _set_state(
                        optimizer.state[p], _state_of(p, named, optimizer.state[p]), optim_state_dict, named.name
                    )


def _set_state(values: dict, own: dict, state_dict: dict, name: str) -> None:
    """Copies a parameter's state to `values`. `own` has the same tensors, as parts of the whole."""
    if name not in state_dict["state"]:
        raise KeyError(f"[set_optimizer_state_dict] the state dict has no state of the parameter {name}")
    for key, value in state_dict["state"][name].items():
        if boxes_of(value) is None or boxes_of(own.get(key)) is None:
            values[key] = value
        else:
            copy_value(own[key], value)


def get_state_dict(
    model: Module, optimizers: Optimizer | Iterable[Optimizer], *, submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:  # fmt: skip
    """get_model_state_dict() and get_optimizer_state_dict()."""
    model_state = get_model_state_dict(model, submodules=submodules, options=options)
    return model_state, get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options)


def set_state_dict(
    model: Module, optimizers: Optimizer | Iterable[Optimizer], *, model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any], options: StateDictOptions | None = None,
):  # fmt: skip
    """set_optimizer_state_dict() and set_model_state_dict()."""
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)
