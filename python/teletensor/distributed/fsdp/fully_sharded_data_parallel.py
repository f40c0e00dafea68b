"""FullyShardedDataParallel: a module whose parameters, gradients and optimizer state are divided among the ranks."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ... import _C
from ..._C import Tensor
from ..._grad_mode import no_grad
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from . import _groups
from ._nested import cast_floats
from ._norm import norm_over_ranks
from ._run import Runner
from ._unit import FlatParameter, ShardedUnit
from .api import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    OptimStateDictConfig,
    OptimStateKeyType,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)
from .wrap import wrap_submodules

__all__ = ["FullyShardedDataParallel", "OptimStateKeyType"]

_WRAPPED = "_fsdp_wrapped_module"
_HYBRID = (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)
_CONFIGS = {
    StateDictType.FULL_STATE_DICT: (FullStateDictConfig, FullOptimStateDictConfig),
    StateDictType.LOCAL_STATE_DICT: (LocalStateDictConfig, LocalOptimStateDictConfig),
    StateDictType.SHARDED_STATE_DICT: (ShardedStateDictConfig, ShardedOptimStateDictConfig),
}


def unsupported(function: str, **values) -> None:
    """Raises NotImplementedError if a value is set."""
    for name, value in values.items():
        if value:
            raise NotImplementedError(f"[{function}] {name} is not supported")


def broadcast_states(module: Module, group) -> None:
    """Copies the parameters and buffers of rank 0 to all ranks, in one collective per dtype."""
    by_dtype: dict = {}
    for tensor in (*module.parameters(), *module.buffers()):
        if not isinstance(tensor, FlatParameter):
            by_dtype.setdefault(tensor.dtype, []).append(tensor.detach())
    for tensors in by_dtype.values():
        group.broadcast(tensors, 0).wait()


class FullyShardedDataParallel(Module):
    """Trains a module of which each rank stores an equal part: parameters, gradients and optimizer state.

    The parameters of the wrapped module that no nested FullyShardedDataParallel contains form one unit. They are gathered
    from all ranks when the module runs and again in backward, which averages their gradients over the ranks. While a unit
    runs, the parameters of the next one are gathered. The optimizer must be created afterwards, from ``parameters()``.

    With FULL_SHARD, a unit frees its parameters after forward and gathers them again in backward. The root keeps its own, as
    all units do with SHARD_GRAD_OP. A graph that refers to freed parameters fails if a parameter was changed in between.

    With HYBRID_SHARD, parameters are divided among the ranks of one group, such as those of a host, and ranks with the same
    part average their gradients. Each gradient is averaged within the first group and then over the second one.

    Args:
        module: the module. Its parameters' values must be equal on all ranks unless ``sync_module_states`` is set.
        process_group: the ranks; by default the group of init_process_group(). For HYBRID_SHARD, a tuple of the group that
            divides and the group that replicates; by default, with an `auto_wrap_policy`, groups of the LOCAL_WORLD_SIZE
            ranks of each host.
        sharding_strategy: FULL_SHARD (the default), SHARD_GRAD_OP, NO_SHARD or HYBRID_SHARD.
        cpu_offload: ``CPUOffload(True)`` stores the parts of parameters and gradients on the CPU.
        auto_wrap_policy: selects the submodules that are wrapped first, with the same options.
        backward_prefetch: whether the parameters of the next unit are gathered before or after this unit's gradients are
            computed; None: not in advance.
        mixed_precision: dtypes of the computation, the reduction and the buffers.
        ignored_modules, ignored_states: modules and parameters that are not sharded; their gradients are not averaged.
        device_id: the device to which the module is moved first.
        sync_module_states: whether the values of rank 0 are used on all ranks.
        forward_prefetch: has no effect on results; the next unit is always gathered in advance.
        use_orig_params: whether ``parameters()`` returns each parameter, as a vector of this rank's elements, under its
            own name; otherwise it returns one flat parameter per unit.
        device_mesh: a mesh with one dimension, instead of the group; for HYBRID_SHARD with two, of which the second divides.

    Raises:
        ValueError: the groups do not fit the strategy.
        NotImplementedError: ``param_init_fn``, ``limit_all_gathers=False``.
    """

    def __init__(
        self, module: Module, process_group=None, sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: CPUOffload | None = None, auto_wrap_policy=None,
        backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: MixedPrecision | None = None, ignored_modules: Iterable[Module] | None = None,
        param_init_fn: Callable | None = None, device_id=None, sync_module_states: bool = False,
        forward_prefetch: bool = False, limit_all_gathers: bool = True, use_orig_params: bool = False,
        ignored_states: Iterable | None = None, device_mesh=None,
    ):  # fmt: skip
        super().__init__()
        unsupported("FullyShardedDataParallel", param_init_fn=param_init_fn,
                    **{"limit_all_gathers=False": not limit_all_gathers})  # fmt: skip
        strategy = ShardingStrategy.FULL_SHARD if sharding_strategy is None else sharding_strategy
        mixed = mixed_precision or MixedPrecision()
        unsupported("FullyShardedDataParallel", **{"keep_low_precision_grads=True": mixed.keep_low_precision_grads})
        groups = _groups.of_strategy(
            "FullyShardedDataParallel", process_group, device_mesh, is_hybrid=strategy in _HYBRID,
            may_form=auto_wrap_policy is not None,
        )  # fmt: skip
        self.process_group, self._replicas = groups
        self.rank, self.world_size = self.process_group.rank(), self.process_group.size()
        self.sharding_strategy, self.mixed_precision = strategy, mixed
        self.cpu_offload, self.backward_prefetch = cpu_offload or CPUOffload(), backward_prefetch
        ignored, ignored_parameters = _ignored(ignored_modules, ignored_states)
        if device_id is not None:
            module.to(_C.device("cuda", device_id) if isinstance(device_id, int) else _C.device(device_id))
        if sync_module_states:
            for group in filter(None, groups):
                broadcast_states(module, group)
        if auto_wrap_policy is not None:
            self._wrap_submodules(module, auto_wrap_policy, ignored, ignored_parameters, {
                "process_group": groups.shard if groups.replicas is None else tuple(groups),
                "sharding_strategy": strategy, "cpu_offload": cpu_offload,
                "backward_prefetch": backward_prefetch, "mixed_precision": mixed_precision,
                "use_orig_params": use_orig_params, "ignored_modules": ignored_modules, "ignored_states": ignored_states,
            })  # fmt: skip
        self._modules[_WRAPPED] = module
        places = unit_parameters(module, FullyShardedDataParallel, ignored, ignored_parameters)
        self._unit = ShardedUnit(
            module, places, groups, sharded=strategy is not ShardingStrategy.NO_SHARD,
            originals=use_orig_params, param_dtype=mixed.param_dtype,
            reduce_dtype=mixed.reduce_dtype, offload=self.cpu_offload.offload_params,
        ) if places else None  # fmt: skip
        frees = None if strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.HYBRID_SHARD) else False
        self._runner = Runner(module, self._unit, frees)
        self._runner.prefetches_backward = {
            BackwardPrefetch.BACKWARD_PRE: "before", BackwardPrefetch.BACKWARD_POST: "after", None: None,
        }[backward_prefetch]  # fmt: skip
        self._settings = StateDictSettings(
            StateDictType.FULL_STATE_DICT, FullStateDictConfig(), FullOptimStateDictConfig()
        )
        if mixed.buffer_dtype is not None:
            self._cast_buffers(mixed.buffer_dtype)
        self._register_load_state_dict_pre_hook(_add_prefix)

    def _wrap_submodules(self, module: Module, policy, ignored: set, ignored_parameters: set, options: dict) -> None:
        if any(isinstance(m, FullyShardedDataParallel) for m in module.modules()):
            raise ValueError("FSDP auto wrapping requires modules to not already have FSDP applied")
        classes = tuple(self.mixed_precision._module_classes_to_ignore)
        if options["mixed_precision"] is not None and classes:
            keeps_dtype = {m for m in module.modules() if isinstance(m, classes) and m is not module}
            full = {**options, "mixed_precision": MixedPrecision(_module_classes_to_ignore=())}
            for child in keeps_dtype:
                _replace_child(module, child, _FullPrecision(child, **full))
            ignored = ignored | {m for m in module.modules() if isinstance(m, FullyShardedDataParallel)}
        wrap_submodules(module, policy, FullyShardedDataParallel, ignored, ignored_parameters, options)

    def _cast_buffers(self, dtype) -> None:
        nested = {id(b) for m in self.module.modules() if isinstance(m, FullyShardedDataParallel) for b in m.buffers()}
        for module in self.module.modules():
            for name, buffer in module._buffers.items():
                if buffer is not None and buffer.is_floating_point() and id(buffer) not in nested:
                    module._buffers[name] = buffer.to(dtype)

    @property
    def module(self) -> Module:
        """The wrapped module."""
        return self._modules[_WRAPPED]

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__(_WRAPPED), name)

    def __getitem__(self, key):
        return self.module[key]

    def __deepcopy__(self, memo: dict):
        raise NotImplementedError("[deepcopy] sharded modules cannot be copied: copy them before sharding")

    def _apply(self, fn: Callable, recurse: bool = True) -> Module:
        if self._unit is not None:
            self._unit.check_unchanged(fn)
        return super()._apply(fn, recurse)

    def check_is_root(self) -> bool:
        """Whether this is the outermost unit. Known after the first forward pass."""
        return self._runner.is_root is not False

    def forward(self, *args, **kwargs):
        """Runs the module with the gathered parameters."""
        return self._runner(self._call_module, args, kwargs)

    def _call_module(self, *args, **kwargs):
        mixed = self.mixed_precision
        casts = mixed.cast_root_forward_inputs if self._runner.is_root else mixed.cast_forward_inputs
        if casts:
            args, kwargs = cast_floats((args, kwargs), mixed.param_dtype)
        return self.module(*args, **kwargs)

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[FullyShardedDataParallel]:
        """The FullyShardedDataParallel modules in a module, including itself."""
        found = [m for m in module.modules() if isinstance(m, FullyShardedDataParallel)]
        if not root_only:
            return found
        nested = {inner for m in found for inner in m.module.modules()}
        return [m for m in found if m not in nested]

    # Gradients.

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within the context, backward passes keep the gradients of all parameters on this rank; the first one after it
        averages their sum. Takes the memory of all gradients."""
        units = [m._unit for m in self.fsdp_modules(self) if m._unit is not None]
        before = [unit.synchronizes for unit in units]
        for unit in units:
            unit.synchronizes = False
        try:
            yield
        finally:
            for unit, value in zip(units, before, strict=True):
                unit.synchronizes = value

    @no_grad()
    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Scales the gradients so that their norm over all ranks is at most ``max_norm``; returns the norm before.

        All ranks must call it, on the root.
        """
        parameters = list(self.parameters())
        norm = norm_over_ranks(parameters, float(norm_type))
        factor = (float(max_norm) / (norm + 1e-6)).clamp(max=1.0)
        for p in parameters:
            if p.grad is not None:
                p.grad.detach().mul_(factor.to(p.grad.dtype))
        return norm

    def register_comm_hook(self, state, hook) -> None:
        """Not supported."""
        raise NotImplementedError("[register_comm_hook] use MixedPrecision(reduce_dtype=...) to compress gradients")

    # Full parameters.

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(
        module: Module, recurse: bool = True, writeback: bool = True, rank0_only: bool = False,
        offload_to_cpu: bool = False, with_grads: bool = False,
    ) -> Iterator[None]:  # fmt: skip
        """Within the context, the modules have their full parameters. All ranks must enter it.

        Args:
            recurse: also for nested units.
            writeback: whether changes are copied to this rank's part at the end.
            rank0_only: whether only rank 0 has the full parameters; requires ``writeback=False``.
            offload_to_cpu: whether the full parameters are on the CPU.
        """
        if rank0_only and writeback:
            raise NotImplementedError("writeback=True and rank0_only=True is not supported")
        unsupported("summon_full_params", **{"with_grads=True": with_grads})
        found = FullyShardedDataParallel.fsdp_modules(module)
        if not recurse:
            found = [m for m in found if m is module]
        with contextlib.ExitStack() as stack:
            for m in found:
                if m._unit is not None:
                    stack.enter_context(m._full_parameters(writeback, rank0_only, offload_to_cpu))
            yield

    @contextlib.contextmanager
    def _full_parameters(
        self, writeback: bool, rank0_only: bool = False, offload_to_cpu: bool = False
    ) -> Iterator[None]:
        unit = self._unit
        tensors = unit.gather_flat(unit.shard.detach())
        if rank0_only and self.rank != 0:
            yield
            return
        parameters = [Parameter(t.clone() if unit.ranks == 1 else t, entry.requires_grad)
                      for t, entry in zip(tensors, unit.entries, strict=True)]  # fmt: skip
        del tensors
        if offload_to_cpu:
            parameters = [Parameter(p.detach().cpu(), p.requires_grad) for p in parameters]
        with unit.installed(parameters):
            yield
            if writeback:
                current = [entry.places[0][0]._parameters[entry.places[0][1]] for entry in unit.entries]
                unit.store([p.detach().to(unit.device) for p in current])

    # State dicts.

    @staticmethod
    def set_state_dict_type(
        module: Module, state_dict_type: StateDictType, state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> StateDictSettings:  # fmt: skip
        """Sets the type of state dict of all units in a module; returns the previous one."""
        model, optimizer = _CONFIGS[state_dict_type]
        config = model() if state_dict_config is None else state_dict_config
        optim = optimizer() if optim_state_dict_config is None else optim_state_dict_config
        if type(config) is not model:
            raise RuntimeError(f"Expected state_dict_config of type {model} but got {type(config)}")
        if type(optim) is not optimizer:
            raise RuntimeError(f"Expected optim_state_dict_config of type {optimizer} but got {type(optim)}")
        unsupported(
            "set_state_dict_type",
            _use_dtensor=getattr(config, "_use_dtensor", False) or getattr(optim, "_use_dtensor", False),
        )
        before = StateDictSettings(StateDictType.FULL_STATE_DICT, FullStateDictConfig(), FullOptimStateDictConfig())
        for i, m in enumerate(FullyShardedDataParallel.fsdp_modules(module)):
            before = m._settings if i == 0 else before
            m._settings = StateDictSettings(state_dict_type, config, optim)
        return before

    @staticmethod
    def get_state_dict_type(module: Module) -> StateDictSettings:
        """The type of state dict of the units in a module."""
        return FullyShardedDataParallel.fsdp_modules(module)[0]._settings

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(
        module: Module, state_dict_type: StateDictType, state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> Iterator[None]:  # fmt: skip
        """set_state_dict_type() within a context."""
        found = FullyShardedDataParallel.fsdp_modules(module)
        before = [m._settings for m in found]
        FullyShardedDataParallel.set_state_dict_type(
            module, state_dict_type, state_dict_config, optim_state_dict_config
        )
        try:
            yield
        finally:
            for m, settings in zip(found, before, strict=True):
                m._settings = settings

    def state_dict(self, *args, destination=None, prefix: str = "", keep_vars: bool = False):
        """The state under the wrapped module's names. All ranks must call it.

        FULL_STATE_DICT has the full parameters; SHARDED_STATE_DICT a vector of this rank's elements of each parameter;
        LOCAL_STATE_DICT this rank's flat parameters. Gathers one unit after the other.
        """
        kind, config = self._settings.state_dict_type, self._settings.state_dict_config
        save = functools.partial(self.module.state_dict, *args, prefix=prefix, keep_vars=keep_vars)
        first = save(destination=destination) if self._unit is None else None
        if first is None:
            with self._exposed_for(kind, config):
                first = save(destination=destination)
        rank0_only = getattr(config, "rank0_only", False)
        for key in [k for k in first if k.startswith(prefix)]:
            if rank0_only and self.rank != 0:
                del first[key]
            elif isinstance(first[key], Tensor):
                value = first[key]
                first[key] = value.cpu() if config.offload_to_cpu else value
        return first

    def _exposed_for(self, kind: StateDictType, config: StateDictConfig | None = None, writeback: bool = False):
        """A context in which the module has the parameters that a state dict contains."""
        if kind is StateDictType.FULL_STATE_DICT:
            return self._full_parameters(
                writeback, getattr(config, "rank0_only", False), config is not None and config.offload_to_cpu
            )
        if kind is StateDictType.LOCAL_STATE_DICT:
            if self._unit.originals:
                raise NotImplementedError("[state_dict] LOCAL_STATE_DICT requires use_orig_params=False")
            return contextlib.nullcontext()
        return self._unit.installed(self._unit.sharded_parameters())

    def load_state_dict(self, state_dict, strict: bool = True, assign: bool = False):
        """Loads a state of the current type. All ranks must call it; each needs the values of its own elements."""
        unsupported("load_state_dict", **{"assign=True": assign})
        found = self.fsdp_modules(self)
        with contextlib.ExitStack() as stack:
            for m in found:
                if m._unit is not None:
                    stack.enter_context(m._exposed_for(m._settings.state_dict_type, None, writeback=True))
            return super().load_state_dict(state_dict, strict)

    # The optimizer's state.

    @staticmethod
    def optim_state_dict(model: Module, optim, optim_state_dict: dict | None = None, group=None) -> dict:
        """The optimizer's state by parameter name, gathered from all ranks (FULL_STATE_DICT only).

        All ranks must call it. Values other than vectors like the parameters, such as the number of steps, are those of
        this rank.
        """
        unsupported("optim_state_dict", optim_state_dict=optim_state_dict, group=group)
        settings = FullyShardedDataParallel.get_state_dict_type(model)
        _require_full("optim_state_dict", settings)
        config = settings.optim_state_dict_config
        names = _names(model)
        state: dict[str, dict] = {}
        rank = FullyShardedDataParallel.fsdp_modules(model)[0].rank
        for unit, path in _units(model):
            for key, values in _gathered_state(unit, optim, path).items():
                state[key] = {
                    k: v.cpu() if config.offload_to_cpu and isinstance(v, Tensor) else v for k, v in values.items()
                }
        for name, parameter in names.items():
            if (
                not isinstance(parameter, FlatParameter)
                and not hasattr(parameter, "_unit")
                and parameter in optim.state
            ):
                state[name] = dict(optim.state[parameter])
        if config.rank0_only and rank != 0:
            return {}
        groups = [
            {**g, "params": [n for p in g["params"] for n in _original_names(model, p)]} for g in optim.param_groups
        ]
        return {"state": state, "param_groups": groups}

    @staticmethod
    def optim_state_dict_to_load(
        model: Module, optim, optim_state_dict: dict, is_named_optimizer: bool = False, load_directly: bool = False, group=None
    ) -> dict:  # fmt: skip
        """Converts a result of optim_state_dict() to the argument of ``optim.load_state_dict`` on this rank."""
        unsupported("optim_state_dict_to_load", is_named_optimizer=is_named_optimizer, group=group)
        _require_full("optim_state_dict_to_load", FullyShardedDataParallel.get_state_dict_type(model))
        saved, numbers = optim_state_dict["state"], {}
        for g in optim.param_groups:
            for p in g["params"]:
                numbers[id(p)] = len(numbers)
        state: dict[int, dict] = {}
        for unit, path in _units(model):
            state.update(_local_state(unit, saved, path, numbers))
        for name, parameter in _names(model).items():
            if id(parameter) in numbers and numbers[id(parameter)] not in state and name in saved:
                state[numbers[id(parameter)]] = dict(saved[name])
        groups = []
        for own, old in zip(optim.param_groups, optim_state_dict["param_groups"], strict=True):
            groups.append({**old, "params": [numbers[id(p)] for p in own["params"]]})
        result = {"state": state, "param_groups": groups}
        if load_directly:
            optim.load_state_dict(result)
        return result


def _ignored(modules, states) -> tuple[set[Module], set]:
    """The ignored modules with their submodules, and the ignored parameters."""
    if modules is not None and states is not None:
        raise ValueError("Cannot pass both ignored_modules and ignored_states at the same time.")
    values = list(modules or states or ())
    roots = [v for v in values if isinstance(v, Module)]
    inside = {m for root in roots for m in root.modules()}
    parameters = {v for v in values if isinstance(v, Tensor)} | {p for root in roots for p in root.parameters()}
    if len(roots) + sum(isinstance(v, Tensor) for v in values) != len(values):
        raise TypeError("expected modules or parameters in ignored_modules and ignored_states")
    return inside, parameters


def unit_parameters(module: Module, nested: type, ignored: set[Module], ignored_parameters: set) -> list:
    """(module, path, name) of the parameters that no nested unit and no ignored module has."""
    ignored_ids = {id(p) for p in ignored_parameters}
    return list(_places(module, "", nested, ignored, ignored_ids, set()))


def _places(module: Module, path: str, nested: type, ignored: set[Module], ignored_ids: set[int], seen: set) -> Iterator[tuple]:
    seen.add(module)
    for name, parameter in module._parameters.items():
        if parameter is not None and id(parameter) not in ignored_ids:
            yield module, path, name
    for name, child in module._modules.items():
        if child is not None and child not in seen and child not in ignored and not isinstance(child, nested):
            yield from _places(child, f"{path}{'.' if path else ''}{name}", nested, ignored, ignored_ids, seen)


def _replace_child(root: Module, old: Module, new: Module) -> None:
    for module in list(root.modules()):
        for name, child in module._modules.items():
            if child is old and module is not new:
                module._modules[name] = new


class _FullPrecision(FullyShardedDataParallel):
    """A module inside one with mixed precision that computes in its parameters' dtype."""

    def _call_module(self, *args, **kwargs):
        dtype = next((t.dtype for t in args if isinstance(t, Tensor) and t.is_floating_point()), None)
        own = self._unit.dtype if self._unit is not None else None
        args, kwargs = cast_floats((args, kwargs), own)
        return cast_floats(self.module(*args, **kwargs), dtype)


def _add_prefix(state_dict: dict, prefix: str, *_) -> None:
    """Renames a state dict's keys to those of the module inside the wrapper."""
    for key in [k for k in state_dict if k.startswith(prefix)]:
        state_dict[f"{prefix}{_WRAPPED}.{key[len(prefix) :]}"] = state_dict.pop(key)


# The optimizer's state, by unit. Paths are those of the original modules.


def _clean(path: str) -> str:
    return ".".join(part for part in path.split(".") if part and part != _WRAPPED)


def _units(model: Module) -> Iterator[tuple[ShardedUnit, str]]:
    for path, m in model.named_modules():
        if isinstance(m, FullyShardedDataParallel) and m._unit is not None:
            clean = _clean(path)
            yield m._unit, f"{clean}." if clean else ""


def _names(model: Module) -> dict[str, Parameter]:
    return {_clean(name): p for name, p in model.named_parameters()}


def _original_names(model: Module, parameter: Parameter) -> list[str]:
    for unit, path in _units(model):
        for i, exposed in enumerate(unit.exposed):
            if exposed is parameter:
                return [path + unit.entries[i].name] if unit.originals else [path + e.name for e in unit.entries]
    return [name for name, p in _names(model).items() if p is parameter]


def _require_full(function: str, settings: StateDictSettings) -> None:
    if settings.state_dict_type is not StateDictType.FULL_STATE_DICT:
        raise NotImplementedError(
            f"[{function}] expected FULL_STATE_DICT; optimizer.state_dict() returns the state of this rank's part"
        )


def _gathered_state(unit: ShardedUnit, optim, path: str) -> dict[str, dict]:
    """The state of a unit's parameters, by name. Vectors like this rank's parts are gathered."""
    result: dict[str, dict] = {}
    states = [optim.state.get(p, {}) for p in unit.exposed]
    keys = sorted({k for s in states for k in s})
    for key in keys:
        values = [s.get(key) for s in states]
        shapes = [
            isinstance(v, Tensor) and v.shape == p.shape and v.dim() > 0
            for v, p in zip(values, unit.exposed, strict=True)
        ]
        if any(shapes):
            dtype = next(v.dtype for v, ok in zip(values, shapes, strict=True) if ok)
            part = _C.torch.zeros(unit.part_numel, dtype=dtype, device=unit.storage_device)
            if unit.originals:
                for value, ok, entry in zip(values, shapes, unit.entries, strict=True):
                    if ok and value.numel():
                        unit.local(part, entry).copy_(value)
            else:
                part = values[0].detach()
            gathered: list = unit.gather_flat(part)
        else:
            gathered = values if unit.originals else values * len(unit.entries)
        for entry, value in zip(unit.entries, gathered, strict=True):
            if value is not None:
                result.setdefault(path + entry.name, {})[key] = value.clone() if isinstance(value, Tensor) else value
    return result


def _local_state(unit: ShardedUnit, saved: dict, path: str, numbers: dict[int, int]) -> dict[int, dict]:
    """The inverse of _gathered_state: this rank's part of a unit's state, by the parameters' numbers."""
    states = [saved.get(path + entry.name, {}) for entry in unit.entries]
    result: dict[int, dict] = {}
    for key in sorted({k for s in states for k in s}):
        values = [s.get(key) for s in states]
        is_vector = [
            isinstance(v, Tensor) and v.shape == e.shape and v.dim() > 0
            for v, e in zip(values, unit.entries, strict=True)
        ]
        if any(is_vector):
            dtype = next(v.dtype for v, ok in zip(values, is_vector, strict=True) if ok)
            flat = unit._flatten(
                [v.to(unit.device) if ok else None for v, ok in zip(values, is_vector, strict=True)], dtype
            )
            part = flat.view(unit.ranks, -1)[unit.rank].clone()
            local: list = [unit.local(part, e) for e in unit.entries] if unit.originals else [part]
        else:
            local = values if unit.originals else values[:1]
        for parameter, value in zip(unit.exposed, local, strict=True):
            if id(parameter) in numbers and value is not None:
                result.setdefault(numbers[id(parameter)], {})[key] = value
    return result
