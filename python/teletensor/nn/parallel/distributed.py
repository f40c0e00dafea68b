"""DistributedDataParallel: the same module on every rank of a group, with gradients averaged during backward."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import weakref
from collections.abc import Iterable, ValuesView
from typing import Any

from ... import _C
from ..._C import Tensor
from ..._grad_mode import enable_grad
from ..._gradients import clear
from ...autograd import gradients
from ...distributed._reduce_op import ReduceOp
from ...distributed._world import _world
from ...distributed.algorithms.join import Join, Joinable, JoinHook
from ..modules.module import Module
from ._comm_hook import HookReducer
from ._pass_marks import PassMarks
from ._sparse_reducer import (
    Kind,
    SparseReducer,
    fail_missing,
    kind_of,
    kinds_of_all,
    require_no_sparse,
    sparse_parameters,
)
from .data_parallel import scatter_kwargs

__all__ = ["DistributedDataParallel"]

_MIB = 1 << 20
_numbers = itertools.count(1)  # of reducers, and of modules in the order of their creation
# Attributes that belong to the group of the ranks. A pickle has none of them.
_OF_GROUP = frozenset((
    "process_group", "device_mesh", "_parameters_to_reduce", "_strided_parameters", "_reducer", "_hook_reducer", "_sparse_reducer",
    "_sparse_marks", "_status", "_join_config",
))  # fmt: skip
_live: weakref.WeakValueDictionary[int, DistributedDataParallel] = weakref.WeakValueDictionary()  # by number


def _in_order() -> list[DistributedDataParallel]:
    """The modules, in the order in which all ranks created them."""
    return [module for _, module in sorted(_live.items(), key=lambda item: item[0])]


def _begin_all(all_leaves: bool) -> None:
    """Begins a backward pass; `all_leaves`: whether it accumulates into all leaves."""
    for module in _in_order():
        if (marks := module._marks()) is not None and marks.is_pending:
            marks.begin(all_leaves)


def _finish_all() -> None:
    """Ends the backward pass of the modules whose forward pass expects gradients to be averaged."""
    for module in _in_order():
        module._finish()


class _DDPJoinHook(JoinHook):
    """Contributes zero gradients to the other ranks' iterations; at the end, copies the model of one of the last ranks.
    """

    def __init__(self, module: DistributedDataParallel):
        self.module = module

    def main_hook(self) -> None:
        module = self.module
        if not module._any_rank(False):
            return  # the other ranks accumulate gradients
        if module.broadcast_buffers and module.require_forward_param_sync and module._buffers_to_broadcast():
            module._broadcast(module._buffers_to_broadcast(), module._common_rank(False))
        module._reduce_zeros()

    def post_hook(self, is_last_joiner: bool) -> None:
        module = self.module
        root = module._common_rank(is_last_joiner)
        ignored = module.parameters_to_ignore
        module._broadcast([p for name, p in module.module.named_parameters() if name not in ignored], root)
        module._broadcast(module._buffers_to_broadcast(), root)


class DistributedDataParallel(Module, Joinable):
    """Trains copies of a module on the ranks of a group: each rank's loss is computed from its own data, and the
    gradients are averaged over the ranks, so that all copies stay equal.

    The engine divides the parameters into buckets, in reverse order, and reduces each bucket as soon as backward() has
    computed its gradients, while it computes the other gradients. backward() does not wait; only reading a gradient
    does. Gradients of embeddings with sparse=True are sparse: the ranks gather and add their elements after backward(), which
    waits for their number. Where such a weight also has a strided gradient, their sum is averaged as a strided tensor.

    Args:
        module: a module with the same parameters, in the same order, on every rank.
        device_ids: None, or a list with the device that stores the module's parameters. forward() copies tensors in its
            arguments to this device.
        output_device: None, or that device.
        dim: 0.
        broadcast_buffers: whether the constructor, and forward() before a pass that synchronizes, copy the buffers of
            rank 0 to all ranks. None: True.
        forward_sync_buffers: whether forward() does; the constructor then does in any case.
        init_sync: whether the constructor copies the parameters and buffers of rank 0 to all ranks. It must be the same
            on all ranks.
        process_group: the group; by default that of init_process_group().
        device_mesh: a mesh with one dimension, whose group is used, instead of `process_group`.
        bucket_cap_mb: maximum size of a bucket in MiB, 25 by default; the first has 1 MiB.
        find_unused_parameters: whether the loss may not depend on all parameters. backward() then waits for the number
            of ranks that use each one if this rank does not use all of them.
        check_reduction: has no effect, as in PyTorch.
        gradient_as_bucket_view: has no effect on results; the engine copies gradients to its buckets in both cases.
        static_graph: whether the set of used parameters never changes; unused parameters are then allowed.

    Raises:
        RuntimeError: no parameter requires a gradient. If a pass does not compute the gradient of some parameter and
            ``find_unused_parameters`` is False, the gradients of all ranks become errors that name the rank and the
            parameters; PyTorch reports it at the next forward pass.

    Source: S. Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", VLDB 2020.
    """

    def __init__(
        self, module: Module, device_ids=None, output_device=None, dim: int = 0, broadcast_buffers: bool | None = None,
        init_sync: bool = True, process_group=None, bucket_cap_mb=None, find_unused_parameters: bool = False,
        check_reduction: bool = False, gradient_as_bucket_view: bool = False, static_graph: bool = False,
        delay_all_reduce_named_params=None, param_to_hook_all_reduce=None, mixed_precision=None, device_mesh=None,
        skip_all_reduce_unused_params: bool = False, bucket_cap_mb_list=None, batched_grad_copy: bool = False,
        forward_sync_buffers=None, lazy_bucket_allocation: bool = False,
    ):  # fmt: skip
        from ...distributed import distributed_c10d

        super().__init__()
        Joinable.__init__(self)
        for name, value in (
            ("delay_all_reduce_named_params", delay_all_reduce_named_params),
            ("param_to_hook_all_reduce", param_to_hook_all_reduce), ("mixed_precision", mixed_precision),
            ("skip_all_reduce_unused_params", skip_all_reduce_unused_params), ("bucket_cap_mb_list", bucket_cap_mb_list),
            ("batched_grad_copy", batched_grad_copy),
            ("lazy_bucket_allocation", lazy_bucket_allocation),
        ):  # fmt: skip
            if value:
                raise NotImplementedError(f"[DistributedDataParallel] {name} is not supported")
        if any(isinstance(m, DistributedDataParallel) for m in module.modules()):
            raise NotImplementedError(
                "[DistributedDataParallel] expected a module that contains no other DistributedDataParallel"
            )
        if dim != 0:
            raise NotImplementedError(f"[DistributedDataParallel] expected dim=0, got {dim}")
        if device_mesh is not None and process_group is not None:
            raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
        if device_mesh is not None and device_mesh.ndim != 1:
            raise RuntimeError(f"Only 1D device mesh is supported, but got {device_mesh}.")
        self.module, self.device_mesh = module, device_mesh
        if device_mesh is not None:
            process_group = device_mesh.get_group()
        self.process_group = process_group or distributed_c10d._get_default_group()
        self.dim, self.static_graph = dim, static_graph
        init_sync_buffers = broadcast_buffers is not False or forward_sync_buffers is not None
        self.broadcast_buffers = broadcast_buffers is not False if forward_sync_buffers is None else forward_sync_buffers
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self.parameters_to_ignore = ignored
        named = [(name, p) for name, p in module.named_parameters() if name not in ignored and p.requires_grad]
        if not named:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters that require a gradient."
            )
        self._names = [name for name, _ in named]
        self._parameters_to_reduce = [p for _, p in named]
        self._check_devices(device_ids, output_device)
        if init_sync:
            self._broadcast([p for name, p in module.named_parameters() if name not in ignored])
            self._broadcast(self._buffers_to_broadcast() if init_sync_buffers else [])
        bucket_bytes = int((25 if bucket_cap_mb is None else bucket_cap_mb) * _MIB)
        if bucket_bytes < 1:
            raise ValueError(f"[DistributedDataParallel] expected a positive bucket_cap_mb, got {bucket_cap_mb}")
        self._bucket_bytes = (min(_MIB, bucket_bytes) if bucket_cap_mb is None else bucket_bytes, bucket_bytes)
        self._reducer = 0
        self._hook_reducer: HookReducer | None = None  # replaces the engine's reducer
        self._sparse_reducer: SparseReducer | None = None  # of the parameters whose gradients are sparse
        self._expects_backward = False
        self._accumulates = False  # whether the passes since the last average were not averaged
        # number of passes that synchronize; the error of a call in the wrong order
        self._num_passes, self._error = 0, ""
        self._create_reducer(None)
        _live[next(_numbers)] = self
        if _finish_all not in gradients.after_backward:
            gradients.before_backward.append(_begin_all)
            gradients.after_backward.append(_finish_all)

    def __getstate__(self) -> dict:
        """For pickles and copies: without the group and what belongs to it.

        Raises:
            RuntimeError: the group is not the default group, which the loaded module joins.
        """
        if self.process_group is not _world.default_pg:
            raise RuntimeError(
                "DDP Pickling/Unpickling are only supported when using DDP with the default process group. That is, when you have "
                "called init_process_group and have not passed process_group argument to DDP constructor"
            )
        return {name: value for name, value in vars(self).items() if name not in _OF_GROUP}

    def __setstate__(self, state: dict) -> None:
        """Makes the module one of the default group. Its parameters are not copied between the ranks."""
        from ...distributed import distributed_c10d

        super().__setstate__(state)
        Joinable.__init__(self)
        self.process_group, self.device_mesh = distributed_c10d._get_default_group(), None
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        named = dict(self.module.named_parameters())
        self._parameters_to_reduce = [named[name] for name in self._names]
        self._reducer, self._hook_reducer, self._sparse_reducer = 0, None, None
        self._expects_backward, self._accumulates = False, False
        self._create_reducer(None)
        _live[next(_numbers)] = self

    def _check_devices(self, device_ids, output_device) -> None:
        self.device_ids = list(device_ids) if device_ids else None
        devices = {p.device for p in self._parameters_to_reduce}
        given = [*(device_ids or ()), *([] if output_device is None else [output_device])]
        for device in given:
            device = _C.device(device) if not isinstance(device, int) else _C.device("cuda", device)
            if devices != {device}:
                raise ValueError(
                    f"[DistributedDataParallel] expected the parameters' device in device_ids and output_device, got "
                    f"{device} for parameters on {', '.join(sorted(map(str, devices)))}"
                )

    def _destroy_reducer(self) -> None:
        if self._reducer:
            _C.ops.reducer_destroy(self._reducer)
        self._reducer, self._hook_reducer, self._sparse_reducer = 0, None, None

    def _sparse_flags(self) -> list[bool]:
        """Whether each parameter's gradient is sparse."""
        return sparse_parameters(self.module, self._parameters_to_reduce)

    def _create_reducer(self, wire_dtype) -> None:
        self._destroy_reducer()
        is_sparse = self._sparse_flags()
        named = list(zip(self._names, self._parameters_to_reduce, strict=True))
        sparse = [pair for pair, sparse in zip(named, is_sparse, strict=True) if sparse]
        strided = [pair for pair, sparse in zip(named, is_sparse, strict=True) if not sparse]
        self._strided_names, self._strided_parameters = [name for name, _ in strided], [p for _, p in strided]
        if sparse:
            parameters = [p for _, p in sparse]
            self._sparse_reducer = SparseReducer(parameters, self.process_group, wire_dtype)
            self._sparse_marks = PassMarks(self._parameters_to_reduce)
        if not self._strided_parameters:
            return
        self._reducer = next(_numbers)
        first, others = self._bucket_bytes
        self._status = _C.ops.reducer_create(
            self._reducer, self._strided_parameters, self.process_group._handle, first_bucket_bytes=first,
            bucket_bytes=others, wire_dtype=wire_dtype,
        )  # fmt: skip

    def _buffers_to_broadcast(self) -> list:
        return [b for name, b in self.module.named_buffers() if name not in self.parameters_to_ignore]

    def _broadcast(self, tensors, root: int = 0) -> None:
        """Copies the tensors of a rank to all ranks, in one collective per dtype."""
        by_dtype: dict = {}
        for tensor in tensors:
            by_dtype.setdefault(tensor.dtype, []).append(tensor.detach())
        for group in by_dtype.values():
            self.process_group.broadcast(group, root).wait()

    def forward(self, *inputs, **kwargs):
        """Calls the module. With gradients enabled, the next backward() averages them."""
        synchronizes = _C.is_grad_enabled() and self.require_backward_grad_sync
        root = 0
        if self._join_config.enable:
            Join.notify_join_context(self)
            self._start_any_rank(synchronizes)
            if (
                synchronizes
                and self.broadcast_buffers
                and self.require_forward_param_sync
                and self._buffers_to_broadcast()
            ):
                root = self._common_rank(True)
        if _C.is_grad_enabled():
            self._prepare(synchronizes)
        self._num_passes += synchronizes
        self._accumulates |= _C.is_grad_enabled() and not synchronizes
        if synchronizes and self.broadcast_buffers and self.require_forward_param_sync:
            self._broadcast(self._buffers_to_broadcast(), root)
        if self.device_ids is not None:
            (inputs,), (kwargs,) = scatter_kwargs(inputs, kwargs, self.device_ids) if inputs or kwargs else (((),), ({},))
        output = self.module(*inputs, **kwargs)
        self.require_forward_param_sync = self.require_backward_grad_sync
        if synchronizes and (marks := self._marks()) is not None:
            marks.mark(output)
        return output

    def _marks(self) -> PassMarks | None:
        """Which passes belong to this module; None: the engine knows it."""
        if self._hook_reducer is not None:
            return self._hook_reducer.marks
        return None if self._sparse_reducer is None else self._sparse_marks

    def _prepare(self, synchronizes: bool) -> None:
        """Begins a forward pass. One that does not synchronize does not change what the next backward pass does if an earlier one does.
        """
        if not synchronizes:
            if self._hook_reducer is not None:
                self._hook_reducer.prepare_local()
            return
        marks = self._marks()
        if marks is not None:
            if marks.is_pending and gradients.is_in_pass():
                return  # activation checkpointing computes the forward pass again
            marks.prepare()
        if self._reducer:
            _C.ops.reducer_prepare(self._reducer, True)
        self._expects_backward = True

    def _finish(self) -> None:
        # The engine knows whether the pass belongs to this module, and ignores the call if it does not.
        if not self._expects_backward:
            return
        if self.process_group not in _world.pg_map:  # destroyed, and the reducer with it
            self._expects_backward = False
            return
        allows_unused = self.find_unused_parameters or self.static_graph
        marks = self._marks()
        if marks is None:
            require_no_sparse(self.process_group, self._strided_names, self._strided_parameters)
            self._finish_strided()
        elif not marks.is_pending:
            return
        elif self._hook_reducer is not None:
            self._hook_reducer.finish(self._names, allows_unused)
        else:
            self._finish_with_sparse(allows_unused)

    def _finish_with_sparse(self, allows_unused: bool) -> None:
        """Ends a pass of a module some of whose gradients are sparse. If the pass belongs to the module, each rank issues the same
        collectives, whichever gradients it has."""
        changed = self._sparse_marks.changed()
        if not self._sparse_marks.is_of_module(changed):
            return
        self._sparse_marks.is_pending = False
        is_changed = {id(p): c for p, c in zip(self._parameters_to_reduce, changed, strict=True)}
        require_no_sparse(self.process_group, self._strided_names, self._strided_parameters)
        if not allows_unused and not all(changed):
            fail_missing(self.process_group, [name for name, c in zip(self._names, changed, strict=True) if not c])
        without = [p for p in self._strided_parameters if p.grad is None]
        own = [kind_of(p.grad) for p in self._parameters_to_reduce]
        if self._reducer:
            if not any(is_changed[id(p)] for p in self._strided_parameters):
                self._enter_strided()
            for p in without:
                if p.grad is None:
                    p.grad = _C.torch.zeros_like(p)
            grads = [p.grad for p in self._strided_parameters]
            self._status = _C.ops.reducer_finish(grads, self._reducer, len(grads) if allows_unused else 0)
        self._average_sparse(own, without)
        self._accumulates = False

    def _average_sparse(self, own: list[Kind], without: list) -> None:
        """Averages the gradients that are sparse. `own`: the kinds of this rank's gradients. Gradients of the parameters in `without`
        become None if no rank has one."""
        kinds = dict(zip(map(id, self._parameters_to_reduce), kinds_of_all(own, self.process_group), strict=True))
        for p in without:
            if kinds[id(p)] is Kind.NONE:
                p.grad = None
        self._sparse_reducer.average([kinds[id(p)] for p in self._sparse_reducer.parameters])

    def _enter_strided(self) -> None:
        """Makes the engine reduce the other ranks' gradients if this rank's pass has computed no strided one."""
        p = min(self._strided_parameters, key=lambda p: p.numel())
        with enable_grad():
            alias = p.view_as(p)
        _C.backward([alias], [_C.torch.zeros_like(p)], False, False, [])

    def _finish_strided(self) -> None:
        parameters = self._strided_parameters
        if self.find_unused_parameters or self.static_graph:
            without = [p for p in parameters if p.grad is None]
            if len(without) == len(parameters):
                return  # another module's pass
            for p in without:
                p.grad = _C.torch.zeros_like(p)
            grads = [p.grad for p in parameters]
            counts = _C.ops.reducer_finish(grads, self._reducer, len(parameters))
            if without or self._accumulates:
                unused = self._unused_by_all(counts.tolist(), set(without))
                for p in without:
                    if p in unused:
                        p.grad = None
        else:
            grads = [p.grad for p in parameters if p.grad is not None]
            if not grads:
                return
            self._status = _C.ops.reducer_finish(grads, self._reducer, 0)

    def _unused_by_all(self, counts: list[int], without: set) -> set:
        """The parameters of which no rank has a gradient, from the numbers of ranks that used each in this pass."""
        if self._accumulates and any(counts):  # the pass is of this module
            has_gradient = [int(p not in without) for p in self._strided_parameters]
            total = _C.tensor(has_gradient, dtype=_C.int32, device="cpu")
            self.process_group.allreduce([total], ReduceOp.SUM).wait()
            counts, self._accumulates = total.tolist(), False
        return {p for p, count in zip(self._strided_parameters, counts, strict=True) if count == 0}

    @contextlib.contextmanager
    def no_sync(self):
        """Within the context, backward passes accumulate gradients locally; the first one after it averages the sum."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    # Join.

    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Join:
        """A context for a training loop that may end earlier on some ranks; see torch.distributed.algorithms.join.Join.

        Ranks that have left the loop contribute zero gradients. At the end, all ranks have the model of one of the last
        ranks. Gradients are divided by the number of all ranks.

        Raises:
            NotImplementedError: ``divide_by_initial_world_size=False``, or the module has ``find_unused_parameters``.
        """
        return Join(
            [self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size
        )

    def join_hook(self, **kwargs) -> JoinHook:
        """Returns the hook of a Join context."""
        if not kwargs.get("divide_by_initial_world_size", True):
            raise NotImplementedError("[join] divide_by_initial_world_size=False is not supported")
        if self._hook_reducer is not None:
            raise NotImplementedError("[join] a module with a communication hook in Python is not supported")
        if self.find_unused_parameters or self.static_graph:
            raise NotImplementedError("[join] find_unused_parameters=True and static_graph=True are not supported")
        return _DDPJoinHook(self)

    @property
    def join_device(self) -> _C.device:
        """The parameters' device."""
        return self._parameters_to_reduce[0].device

    @property
    def join_process_group(self):
        """The group."""
        return self.process_group

    def _start_any_rank(self, flag: bool):
        value = _C.torch.full((1,), float(flag), device=self.join_device)
        return self.process_group.allreduce([value], ReduceOp.MAX), value

    def _any_rank(self, flag: bool) -> bool:
        """Whether the flag is set on any rank. Waits."""
        work, value = self._start_any_rank(flag)
        work.wait()
        return bool(value.item())

    def _common_rank(self, is_candidate: bool) -> int:
        """The highest rank that is a candidate. Waits."""
        value = _C.torch.full((1,), float(self.process_group.rank() if is_candidate else -1), device=self.join_device)
        self.process_group.allreduce([value], ReduceOp.MAX).wait()
        rank = int(value.item())
        if rank < 0:
            raise RuntimeError("[join] expected at least one rank with a current model")
        return rank

    def _reduce_zeros(self) -> None:
        """Takes part in the reduction of the other ranks' gradients, whose average replaces this rank's."""
        parameters = self._strided_parameters
        if parameters:
            clear(parameters)
            with enable_grad():
                _C.ops.reducer_prepare(self._reducer, True)
                aliases = [p.view_as(p) for p in parameters]
            self._expects_backward = False  # the pass is ended here
            gradients.backward(aliases, [_C.torch.zeros_like(p) for p in parameters])
            self._finish_strided()
        if self._sparse_reducer is not None:
            clear(self._sparse_reducer.parameters)
            self._average_sparse([kind_of(p.grad) for p in self._parameters_to_reduce], [])

    def register_comm_hook(self, state, hook) -> None:
        """Sets how gradients are reduced.

        The engine applies ``default_hooks.allreduce_hook``, ``fp16_compress_hook`` and ``bf16_compress_hook`` of
        torch.distributed.algorithms.ddp_comm_hooks while backward runs. Other hooks are called when the backward pass has
        been issued, once per bucket.

        Args:
            state: the hook's first argument; for the three hooks above, None or the module's process group.
            hook: ``hook(state, bucket)`` gets a GradBucket with this rank's gradients, and returns a Future of the buffer
                with the gradients to use. A sparse gradient has a bucket of its own, whose buffer is a sparse_coo tensor unless the
                gradient is strided on some rank.

        Raises:
            TypeError: the hook is not callable.
            NotImplementedError: another state for one of the three hooks.
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        wire = getattr(hook, "_wire_dtype", False)
        if wire is not False:
            if state is not None and state is not self.process_group:
                raise NotImplementedError("[register_comm_hook] expected state=None or the module's process group")
            self._create_reducer(wire)
            return
        self._destroy_reducer()
        self._hook_reducer = HookReducer(
            state, hook, self._parameters_to_reduce, self._sparse_flags(), self._bucket_bytes, self.process_group
        )

    def train(self, mode: bool = True):
        """Sets training mode of this module and the wrapped one."""
        super().train(mode)
        self.module.train(mode)
        return self

    def _get_ddp_logging_data(self) -> dict:
        return {"world_size": self.process_group.size(), "rank": self.process_group.rank(),
                "num_parameter_tensors": len(self._parameters_to_reduce), "iteration": self._num_passes,
                "has_error": int(bool(self._error)), "error": self._error}  # fmt: skip

    def _set_static_graph(self) -> None:
        """Same as ``static_graph=True``.

        Raises:
            RuntimeError: the module has been called.
        """
        if self._num_passes:
            self._error = (
                "set_static_graph() should be called before training loop starts and after DistributedDataParallel is "
                "constructed."
            )
            raise RuntimeError(self._error)
        self.static_graph = True

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Module, params_and_buffers_to_ignore) -> None:
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore


def _find_tensors(obj: Any) -> Iterable[Tensor]:
    """The tensors in lists, tuples, dictionaries and dataclasses. Not used here; training loops of programs call it."""
    if isinstance(obj, Tensor):
        return [obj]
    if dataclasses.is_dataclass(obj) and not isinstance(obj, type):
        obj = [getattr(obj, field.name) for field in dataclasses.fields(obj)]
    elif isinstance(obj, dict):
        obj = obj.values()
    return itertools.chain.from_iterable(map(_find_tensors, obj)) if isinstance(obj, (list, tuple, ValuesView)) else []
