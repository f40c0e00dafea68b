"""fully_shard: shards a module's parameters in place, without a wrapper."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

from ...nn.modules.container import ModuleDict, ModuleList
from ...nn.modules.module import Module
from .._process_group import ProcessGroup
from .._world import get_world_size
from ..device_mesh import DeviceMesh, init_device_mesh
from . import _unit
from ._nested import cast_floats
from ._parameter_unit import ParameterUnit
from ._run import Runner
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
        """Gives the module its gathered parameters."""


class _UnshardHandle(UnshardHandle):
    def __init__(self, runner: Runner):
        self._runner = runner

    def wait(self) -> None:
        self._runner.unshard()


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
    """The methods that fully_shard adds to a module.

    A module has the attributes ``_fsdp_unit`` (a ParameterUnit, or None), ``_fsdp_runner`` and ``_fsdp_policy``. They are not
    annotated: get_type_hints() of a user's class must find the names of all annotations.
    """

    def __new__(cls, *args, **kwargs):
        """Creates an object of the original class, as slices of containers require."""
        original = cls.__mro__[2]
        self = original.__new__(original, *args, **kwargs)
        self.__init__(*args, **kwargs)
        return self

    def __deepcopy__(self, memo: dict):
        raise NotImplementedError("[deepcopy] sharded modules cannot be copied: copy them before fully_shard")

    def _apply(self, fn: Callable, recurse: bool = True) -> Module:
        self.reshard()
        result = super()._apply(fn, recurse)
        for unit in self._fsdp_units(recurse=False):
            unit.adopt()
        return result

    def state_dict(self, *args, **kwargs):
        """The module's state, with DTensors of this rank's parts of the parameters."""
        for module in self._fsdp_modules(recurse=True):
            module.reshard()
        return super().state_dict(*args, **kwargs)

    def __call__(self, *args, **kwargs):
        return _run(self, super().__call__, args, kwargs)

    def _fsdp_modules(self, recurse: bool) -> list[FSDPModule]:
        return [m for m in self.modules() if isinstance(m, FSDPModule)] if recurse else [self]

    def _fsdp_units(self, recurse: bool = True) -> list[ParameterUnit]:
        return [m._fsdp_unit for m in self._fsdp_modules(recurse) if m._fsdp_unit is not None]

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gives the module its gathered parameters until its next forward or reshard(). ``async_op``: only starts to gather
        them, and returns a handle."""
        for unit in self._fsdp_units(recurse=False):
            unit.start_gather()
        if async_op:
            return _UnshardHandle(self._fsdp_runner)
        self._fsdp_runner.unshard()
        return None

    def reshard(self) -> None:
        """Frees parameters that unshard() gathered."""
        self._fsdp_runner.reshard()
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

    def set_modules_to_forward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Sets the modules whose parameters are gathered while this module's forward runs, instead of the one that followed
        in the previous pass."""
        self._fsdp_runner.forward_prefetch = [m._fsdp_runner for m in _check_modules(modules)]

    def set_modules_to_backward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Sets the modules whose parameters are gathered while this module's backward runs, instead of the one that ran
        before it in forward."""
        self._fsdp_runner.backward_prefetch = [m._fsdp_runner for m in _check_modules(modules)]

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Has no effect: parameters are freed after backward, and each forward gathers them."""

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Whether backward gathers parameters that were freed after forward. Without them, a backward pass that needs one of
        them raises RuntimeError."""
        self._fsdp_runner.gathers_in_backward = unshard_in_backward

    def set_post_optim_event(self, event) -> None:
        """Has no effect: the session executes its calls in order, so that parameters are gathered after the optimizer's step."""

    def set_allocate_memory_from_process_group_for_comm(self, enable: bool) -> None:
        """Has no effect: the engine allocates memory."""

    def set_separate_reduce_scatter_group(self, enable: bool = True, *, recurse: bool = True) -> None:
        """Has no effect on results: one group runs its collectives in order."""

    def set_reduce_scatter_max_input_buffers(self, max_input_buffers: int, *, recurse: bool = True) -> None:
        """Has no effect on results: one reduction runs at a time."""

    def set_reduce_scatter_unused_params(self, reduce_scatter_unused_params: bool, *, recurse: bool = True) -> None:
        """Whether parameters that no rank uses in a backward pass get zeros. Otherwise they get no gradient; then a backward
        pass in which this rank does not use a parameter waits for the other ranks' gradients."""
        for unit in self._fsdp_units(recurse):
            unit.fills_unused = reduce_scatter_unused_params

    set_keep_unsharded_storage = _not_supported("set_keep_unsharded_storage", "parameters are always freed")
    set_manual_backward_finalization = _not_supported(
        "set_manual_backward_finalization", "backward completes its reductions"
    )
    finalize_backward = _not_supported("finalize_backward", "backward completes its reductions")
    set_custom_all_gather = _not_supported("set_custom_all_gather", "the engine runs the collectives")
    set_custom_reduce_scatter = _not_supported("set_custom_reduce_scatter", "the engine runs the collectives")
    set_all_reduce_hook = _not_supported("set_all_reduce_hook", "the engine runs the collectives")
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


def _check_modules(modules: list) -> list[FSDPModule]:
    for module in modules:
        if not isinstance(module, FSDPModule):
            raise ValueError(f"expected modules that fully_shard returned, got {type(module)}")
    return list(modules)


def _mesh_of(mesh, module: Module) -> DeviceMesh:
    kind = next((p.device.type for p in module.parameters() if p.device.type != "meta"), "cpu")
    if mesh is None:
        return init_device_mesh(kind, (get_world_size(),))
    if isinstance(mesh, ProcessGroup):
        return DeviceMesh.from_group(mesh, kind)
    return mesh


def fully_shard(
    module: Module | list[Module], *, mesh=None, reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable | None = None, mp_policy: MixedPrecisionPolicy | None = None,
    offload_policy: OffloadPolicy | None = None, ignored_params: set | None = None,
    dp_mesh_dims: DataParallelMeshDims | None = None,
) -> FSDPModule:  # fmt: skip
    """Shards the parameters of a module, without those of submodules that are already sharded, and returns the module.

    Call it on submodules first. Each parameter becomes a DTensor of its own shape that is divided along its first dimension.
    The parameters form one unit: they are gathered in one collective when the module runs, and their gradients are averaged
    in one. Create the optimizer afterwards.

    A unit frees its gathered parameters after forward. Backward gathers them again. Parameters on the meta device need values
    before the first forward (``to_empty()``).

    Args:
        module: a module, or several, each of which becomes a unit.
        mesh: a mesh with one dimension, or a process group; by default all ranks. In a mesh with two dimensions, the second
            one divides the parameters, and the first one replicates them. Parameters that are DTensors already, of another
            slice of the same mesh, are divided further.
        reshard_after_forward: whether the parameters are freed after forward; None: true unless this is the root. An int,
            the number of ranks over which PyTorch keeps them divided, frees them too.
        shard_placement_fn: returns the Shard of a parameter along another dimension, which the ranks must divide evenly.
        mp_policy: dtypes of computation, reduction and outputs.
        offload_policy: ``CPUOffloadPolicy()`` stores this rank's parts of parameters and gradients on the CPU.
        ignored_params: parameters that are not sharded; their gradients are not averaged.

    Raises:
        NotImplementedError: ``dp_mesh_dims``, ``param_dtype_override_fn``.
    """
    if isinstance(module, (list, tuple)):
        if not module:
            raise ValueError("[fully_shard] expected at least one module")
        for m in module:
            fully_shard(m, mesh=mesh, reshard_after_forward=reshard_after_forward, shard_placement_fn=shard_placement_fn,
                        mp_policy=mp_policy, offload_policy=offload_policy, ignored_params=ignored_params)  # fmt: skip
        return module
    if isinstance(module, (ModuleList, ModuleDict)):
        raise ValueError(f"fully_shard does not support containers that do not implement forward: {module}")
    if isinstance(module, FSDPModule):
        raise ValueError("[fully_shard] the module is already sharded")
    mp_policy = mp_policy or MixedPrecisionPolicy()
    unsupported("fully_shard", dp_mesh_dims=dp_mesh_dims, param_dtype_override_fn=mp_policy.param_dtype_override_fn)
    if isinstance(reshard_after_forward, int) and not isinstance(reshard_after_forward, bool):
        reshard_after_forward = True
    mesh = _mesh_of(mesh, module)
    places = unit_parameters(module, FSDPModule, set(), set(ignored_params or ()))
    module._fsdp_unit = ParameterUnit(
        module, places, mesh, placement_fn=shard_placement_fn, param_dtype=mp_policy.param_dtype,
        reduce_dtype=mp_policy.reduce_dtype, offload=isinstance(offload_policy, CPUOffloadPolicy),
    ) if places else None  # fmt: skip
    module._fsdp_policy = mp_policy
    module._fsdp_runner = Runner(module, module._fsdp_unit, reshard_after_forward)
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
    _check_modules(modules)


for _class in (FSDPModule, UnshardHandle, GradientReductionHandle, DataParallelMeshDims):
    _class.__module__ = "teletensor.distributed.fsdp"
