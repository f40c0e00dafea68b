"""fully_shard: shards a module's parameters in place, without a wrapper."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

from ...nn.modules.container import ModuleDict, ModuleList
from ...nn.modules.module import Module
from . import _groups, _unit
from ._nested import cast_floats
from ._run import Runner
from ._unit import ShardedUnit
from .api import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy
from .fully_sharded_data_parallel import unit_parameters, unsupported


@dataclasses.dataclass
class DataParallelMeshDims:
    """Names of a mesh's dimensions, for meshes that also have other kinds of parallelism. Not supported."""

    shard: str | tuple[str, ...] | None = None
    replicate: str | tuple[str, ...] | None = None


class UnshardHandle:
    """The result of ``FSDPModule.unshard(async_op=True)``."""

    def wait(self) -> None:
        """Has no effect: the module's forward waits."""


class GradientReductionHandle:
    """The result of ``FSDPModule.finalize_backward``, which is not supported."""

    def wait(self) -> None:
        """Has no effect."""


def _not_supported(name: str, hint: str) -> Callable:
    def method(self, *args, **kwargs):
        raise NotImplementedError(f"[FSDPModule.{name}] {hint}")

    method.__name__, method.__doc__ = name, f"Not supported: {hint}."
    return method


class FSDPModule:
    """The methods that fully_shard adds to a module."""

    _fsdp_unit: ShardedUnit | None
    _fsdp_runner: Runner
    _fsdp_policy: MixedPrecisionPolicy

    def __new__(cls, *args, **kwargs):
        """Creates an object of the original class, as slices of containers require."""
        original = cls.__mro__[2]
        self = original.__new__(original, *args, **kwargs)
        self.__init__(*args, **kwargs)
        return self

    def __deepcopy__(self, memo: dict):
        raise NotImplementedError("[deepcopy] sharded modules cannot be copied: copy them before fully_shard")

    def _apply(self, fn: Callable, recurse: bool = True) -> Module:
        for unit in self._fsdp_units(recurse=False):
            unit.check_unchanged(fn)
        return super()._apply(fn, recurse)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *args) -> None:
        unsupported("load_state_dict", **{"assign=True": local_metadata.get("assign_to_params_buffers")})
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)

    def __call__(self, *args, **kwargs):
        return _run(self, super().__call__, args, kwargs)

    def _fsdp_modules(self, recurse: bool) -> list[FSDPModule]:
        return [m for m in self.modules() if isinstance(m, FSDPModule)] if recurse else [self]

    def _fsdp_units(self, recurse: bool = True) -> list[ShardedUnit]:
        return [m._fsdp_unit for m in self._fsdp_modules(recurse) if m._fsdp_unit is not None]

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Starts to gather the parameters, which the next forward uses. ``async_op``: whether a handle is returned."""
        for unit in self._fsdp_units(recurse=False):
            unit.start_gather()
        return UnshardHandle() if async_op else None

    def reshard(self) -> None:
        """Frees parameters that unshard() gathered."""
        for unit in self._fsdp_units(recurse=False):
            unit.release()

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Whether backward averages gradients. Otherwise it keeps those of all parameters on this rank, and the next
        backward that synchronizes averages the sum."""
        for unit in self._fsdp_units(recurse):
            unit.synchronizes = requires_gradient_sync

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Whether parameters are freed after forward; see fully_shard."""
        if not isinstance(reshard_after_forward, bool):
            raise ValueError(f"reshard_after_forward should be a bool, got {type(reshard_after_forward)}")
        for module in self._fsdp_modules(recurse):
            module._fsdp_runner.frees = reshard_after_forward

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Divides the sum of the ranks' gradients by a number other than the number of ranks. Not recursive."""
        for unit in self._fsdp_units(recurse=False):
            unit.divisor = float(factor)

    def set_reduce_scatter_divide_factor(self, factor: float) -> None:
        """Alias of set_gradient_divide_factor."""
        self.set_gradient_divide_factor(factor)

    def set_force_sum_reduction_for_comms(self, enable: bool) -> None:
        """Has no effect on results."""

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Whether backward averages gradients over the replicas of a mesh with two dimensions. Otherwise it keeps those that
        are averaged within this replica, and the next backward that averages over replicas includes them."""
        for unit in self._fsdp_units(recurse):
            unit.averages_replicas = requires_all_reduce

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Has no effect on results: each backward pass completes its reductions."""

    set_reshard_after_backward = _not_supported("set_reshard_after_backward", "parameters are always freed")
    set_keep_unsharded_storage = _not_supported("set_keep_unsharded_storage", "parameters are always freed")
    set_modules_to_forward_prefetch = _not_supported(
        "set_modules_to_forward_prefetch", "the order of the previous pass is used"
    )
    set_modules_to_backward_prefetch = _not_supported(
        "set_modules_to_backward_prefetch", "the order of the forward pass is used"
    )
    set_manual_backward_finalization = _not_supported(
        "set_manual_backward_finalization", "backward completes its reductions"
    )
    finalize_backward = _not_supported("finalize_backward", "backward completes its reductions")
    set_custom_all_gather = _not_supported("set_custom_all_gather", "the engine runs the collectives")
    set_custom_reduce_scatter = _not_supported("set_custom_reduce_scatter", "the engine runs the collectives")
    set_all_reduce_hook = _not_supported("set_all_reduce_hook", "the engine runs the collectives")
    set_post_optim_event = _not_supported("set_post_optim_event", "the session executes its calls in order")
    set_reduce_scatter_unused_params = _not_supported(
        "set_reduce_scatter_unused_params", "a unit is reduced as a whole"
    )
    set_reduce_scatter_max_input_buffers = _not_supported(
        "set_reduce_scatter_max_input_buffers", "one reduction runs at a time"
    )
    set_separate_reduce_scatter_group = _not_supported("set_separate_reduce_scatter_group", "one group is used")
    set_unshard_in_backward = _not_supported("set_unshard_in_backward", "backward gathers the parameters that it needs")
    set_allocate_memory_from_process_group_for_comm = _not_supported(
        "set_allocate_memory_from_process_group_for_comm", "the engine allocates memory"
    )
    set_symm_mem_for_comm = _not_supported("set_symm_mem_for_comm", "the engine allocates memory")

    def reset_iter_state(self) -> None:
        """Discards the state of an interrupted pass: parameters gathered in advance, and gradients not yet averaged."""
        _unit.discard(self._fsdp_units())


def _run(module: FSDPModule, call: Callable, args: tuple, kwargs: dict):
    policy = module._fsdp_policy

    def run(*args, **kwargs):
        if policy.cast_forward_inputs:
            args, kwargs = cast_floats((args, kwargs), policy.param_dtype)
        return cast_floats(call(*args, **kwargs), policy.output_dtype)

    return module._fsdp_runner(run, args, kwargs)


@functools.cache
def _sharded_class(cls: type) -> type:
    return type(f"FSDP{cls.__name__}", (FSDPModule, cls), {})


def fully_shard(
    module: Module, *, mesh=None, reshard_after_forward: bool | int | None = None, shard_placement_fn: Callable | None = None,
    mp_policy: MixedPrecisionPolicy | None = None, offload_policy: OffloadPolicy | None = None,
    ignored_params: set | None = None, dp_mesh_dims: DataParallelMeshDims | None = None,
) -> FSDPModule:  # fmt: skip
    """Shards the parameters of a module, without those of submodules that are already sharded, and returns the module.

    Call it on submodules first. Each parameter becomes a vector of this rank's elements, under the same name; a rank may
    have none. ``full_tensor()`` of it returns the parameter's values from all ranks. The parameters form one unit: they are
    concatenated and divided into equal parts, and are gathered when the module runs. See FullyShardedDataParallel, which
    describes memory and recomputation.

    Args:
        mesh: a mesh with one dimension, or a process group; by default the group of init_process_group(). In a mesh with two
            dimensions, the second one divides the parameters, and the first one replicates them.
        reshard_after_forward: whether the parameters are freed after forward and the forward pass is run again in
            backward. None: true unless this is the root. A module that contains sharded modules keeps its own
            parameters.
        mp_policy: dtypes of computation, reduction and outputs.
        offload_policy: ``CPUOffloadPolicy()`` stores this rank's parts of parameters and gradients on the CPU.
        ignored_params: parameters that are not sharded; their gradients are not averaged.

    Raises:
        NotImplementedError: a list of modules, ``shard_placement_fn``, ``dp_mesh_dims``, an int in
            ``reshard_after_forward``, ``param_dtype_override_fn``.
    """
    if isinstance(module, (list, tuple)):
        raise NotImplementedError("[fully_shard] a list of modules is not supported: put them into one module")
    if isinstance(module, (ModuleList, ModuleDict)):
        raise ValueError(f"fully_shard does not support containers that do not implement forward: {module}")
    if isinstance(module, FSDPModule):
        raise ValueError("[fully_shard] the module is already sharded")
    mp_policy = mp_policy or MixedPrecisionPolicy()
    unsupported("fully_shard", shard_placement_fn=shard_placement_fn, dp_mesh_dims=dp_mesh_dims,
                param_dtype_override_fn=mp_policy.param_dtype_override_fn)  # fmt: skip
    if reshard_after_forward is not None and not isinstance(reshard_after_forward, bool):
        raise NotImplementedError(
            f"[fully_shard] expected a bool or None in reshard_after_forward, got {reshard_after_forward}"
        )
    groups = (
        _groups.of_mesh("fully_shard", mesh)
        if hasattr(mesh, "get_group")
        else _groups.of_strategy("fully_shard", mesh, None, is_hybrid=False, may_form=False)
    )
    places = unit_parameters(module, FSDPModule, set(), set(ignored_params or ()))
    module._fsdp_unit = ShardedUnit(
        module, places, groups, sharded=True, originals=True, param_dtype=mp_policy.param_dtype,
        reduce_dtype=mp_policy.reduce_dtype, offload=isinstance(offload_policy, CPUOffloadPolicy),
    ) if places else None  # fmt: skip
    module._fsdp_policy = mp_policy
    module._fsdp_runner = Runner(module, module._fsdp_unit, reshard_after_forward)
    module._fsdp_runner.has_nested_units = any(isinstance(m, FSDPModule) for m in module.modules())
    module.__class__ = _sharded_class(type(module))
    return module


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Makes a method of a sharded module gather the parameters, as forward does. No effect on other modules."""
    if not isinstance(module, FSDPModule):
        return
    if not hasattr(module, method_name):
        raise ValueError(f"{type(module)} does not have a method {method_name}")
    method = getattr(module, method_name)

    @functools.wraps(method)
    def wrapped(*args, **kwargs):
        return _run(module, method, args, kwargs)

    setattr(module, method_name, wrapped)


def share_comm_ctx(modules: list[FSDPModule]) -> None:
    """Has no effect: all modules share the session's order of calls."""
    for module in modules:
        if not isinstance(module, FSDPModule):
            raise ValueError(f"expected modules that fully_shard returned, got {type(module)}")


for _class in (FSDPModule, UnshardHandle, GradientReductionHandle, DataParallelMeshDims):
    _class.__module__ = "teletensor.distributed.fsdp"
