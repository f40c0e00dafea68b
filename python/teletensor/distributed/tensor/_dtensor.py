"""DTensor: a tensor that is distributed over a mesh of ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ... import _C
from ..._layouts import require_strided
from ..._lazy import set_module
from ..._library.handlers import classes_with_rules
from ..device_mesh import DeviceMesh
from ._dispatch import dispatch, repeated, replicate
from ._gradients import gradient_of, gradient_spec, run_backward, run_grad
from ._redistribute import broadcast_along, redistribute_locals
from ._spec import Spec, check_placements, local_box
from ._state import Distributed, make
from .placement_types import Partial, Placement, Replicate, Shard


def _single_local(op: str, locals_: Sequence[_C.Tensor]) -> _C.Tensor:
    if len(locals_) != 1:
        raise RuntimeError(
            f"[{op}] this process controls {len(locals_)} ranks, so there is no single local tensor: use to_locals() or "
            "full_tensor()"
        )
    return locals_[0]


class DTensor(Distributed):
    """A tensor of which each rank of a mesh has a part, a copy or a summand, as its placements say.

    Operators and modules accept it as any tensor; each rank computes its part of the result, and collectives run in the
    engines where the parts must be exchanged. Gradients are DTensors too. ``distribute_tensor``, ``DTensor.from_local`` and
    the functions of ``torch.distributed.tensor`` create it.

    With one process per rank, all ranks must make the same calls, and each process has its rank's local tensor. A process
    that controls all ranks (``connect_all``) has the local tensors of all of them.
    """

    __torch_function__ = _C._disabled_torch_function_impl

    def __new__(cls, *args, **kwargs):
        raise RuntimeError("[DTensor] use DTensor.from_local(), distribute_tensor() or a function such as zeros()")

    def __init__(self, *args, **kwargs):
        pass

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        """Computes an operator on each rank that this process drives; gradients are recorded for the local tensors."""
        return dispatch(func, args, kwargs or {}) if all(issubclass(t, Distributed) for t in types) else NotImplemented

    @classmethod
    def run_engine_call(cls, name, arguments, into):
        """Computes a call that equals one before; others are NotImplemented, and reach __torch_dispatch__()."""
        return NotImplemented if cls in classes_with_rules else repeated(name, arguments, into)

    # ---- Placement

    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh of the ranks."""
        return self._spec.mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """How the tensor is distributed along each dimension of the mesh."""
        return self._spec.placements

    @property
    def _local_tensor(self) -> _C.Tensor:
        return _single_local("_local_tensor", self._locals)

    def to_locals(self) -> tuple[_C.Tensor, ...]:
        """Returns the local tensors of the ranks that this process drives."""
        return self._locals

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> _C.Tensor:
        """Returns this rank's local tensor, without communication. The result is differentiable.

        Args:
            grad_placements: placements of the result's gradient; by default those of this tensor. With Partial, each rank
                computes a summand of the gradient.
        """
        local = _single_local("to_local", self._locals)
        if grad_placements is None:
            return local.view_as(local)
        wanted = check_placements("to_local", self.device_mesh, grad_placements, self.dim())
        (member,) = self.device_mesh._members()
        for m, (own, given) in enumerate(zip(self.placements, wanted, strict=True)):
            if own == given or (isinstance(own, Partial) and isinstance(given, Replicate)):
                continue
            if not (isinstance(own, Replicate) and given.is_partial("sum")):
                raise NotImplementedError(f"[to_local] expected the gradient's placement {own} or, if replicated, P(sum), got {given}")
            if local.requires_grad:
                local = _C.ops.group_gradient_reduced(local, member.groups[m])
        return local.view_as(local)

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> _C.Tensor:
        """Returns the whole tensor as an ordinary one; in a controller, on the first rank's engine. All ranks must call it."""
        whole = self.redistribute(placements=[Replicate()] * self.device_mesh.ndim)
        if len(whole.to_locals()) > 1:
            if grad_placements is not None:
                raise NotImplementedError("[full_tensor] grad_placements is supported with one process per rank only")
            return whole.to_locals()[0]
        return whole.to_local(grad_placements=grad_placements)

    def redistribute(
        self, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *, async_op: bool = False,
        forward_dtype=None, backward_dtype=None,
    ) -> DTensor:  # fmt: skip
        """Returns the tensor with other placements on the same mesh. All ranks must call it. Does not wait.

        Args:
            async_op: has no effect: no call waits.
            forward_dtype: the dtype to which the tensor is cast before it is moved.
        """
        if device_mesh is not None and device_mesh != self.device_mesh:
            raise NotImplementedError("[redistribute] cross device mesh comm is not supported yet!")
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        if backward_dtype is not None:
            raise NotImplementedError("[redistribute] backward_dtype is not supported: gradients have the tensor's dtype")
        source = self if forward_dtype is None else self.to(forward_dtype)
        spec = source._spec
        target = check_placements("redistribute", spec.mesh, placements, self.dim())
        for own, wanted in zip(spec.placements, target, strict=True):
            if isinstance(wanted, Partial) and own != wanted:
                raise RuntimeError(f"Can not redistribute from {own} to {wanted}, redistributing to Partial is for internal use only!")
        if target == spec.placements:
            return source.view_as(source)
        locals_ = redistribute_locals(source._locals, spec, self.shape, target)
        return make(locals_, Spec(spec.mesh, target), self.shape)

    @staticmethod
    def from_local(
        local_tensor, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *,
        run_check: bool = False, shape=None, stride=None, grad_placements: Sequence[Placement] | None = None,
    ) -> DTensor:  # fmt: skip
        """Returns a DTensor of the ranks' local tensors. Differentiable with respect to them.

        Args:
            local_tensor: this rank's tensor; in a controller, a sequence with the tensor of each rank.
            device_mesh: the mesh; by default that of the default group.
            placements: by default Replicate.
            run_check: copies the replicated tensors of the mesh's first ranks to the others.
            shape: the size of the whole tensor; required if the parts have different sizes.
            stride: must be that of a contiguous tensor of this shape.
            grad_placements: must be `placements`, or Replicate for Partial.
        """
        locals_ = [local_tensor] if isinstance(local_tensor, _C.Tensor) else list(local_tensor)
        require_strided("DTensor.from_local", *locals_)
        mesh = _mesh_or_default(device_mesh)
        members = mesh._members()
        if len(locals_) != len(members):
            raise RuntimeError(f"[from_local] expected {len(members)} local tensors, got {len(locals_)}")
        spec = Spec(mesh, check_placements("from_local", mesh, placements, locals_[0].dim()))
        if grad_placements is not None:
            given = check_placements("from_local", mesh, grad_placements, locals_[0].dim())
            if given not in (spec.placements, gradient_spec(spec).placements):
                raise NotImplementedError(f"[from_local] expected grad_placements {gradient_spec(spec)}, got {given}")
        size = _whole_size(spec, locals_[0]) if shape is None else list(shape)
        for local, member in zip(locals_, members, strict=True):
            expected = local_box(spec, size, member)[1]
            if list(local.shape) != expected:
                raise RuntimeError(
                    f"[from_local] expected a local tensor of size {expected} for the whole size {size}, got {list(local.shape)}"
                    + ("" if shape is not None else ": give the whole size as `shape`")
                )
        if stride is not None and list(stride) != _contiguous_stride(size):
            raise NotImplementedError(f"[from_local] expected the stride of a contiguous tensor, got {list(stride)}")
        if run_check:
            for m, placement in enumerate(spec.placements):
                if isinstance(placement, Replicate):
                    locals_ = broadcast_along(mesh, m, locals_)
        return make([t.view_as(t) for t in locals_], spec, size)

    # ---- Properties and methods that involve the local tensors

    @property
    def requires_grad(self) -> bool:
        return any(t.requires_grad for t in self._locals)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if value:
            gradient_spec(self._spec)
        for local in self._locals:
            local.requires_grad = value

    @property
    def is_leaf(self) -> bool:
        return all(t.is_leaf for t in self._locals)

    @property
    def grad(self) -> DTensor | None:
        grads = [t.grad for t in self._locals]
        if any(g is None for g in grads):
            return None
        return gradient_of(self, grads)

    @grad.setter
    def grad(self, value: DTensor | None) -> None:
        grads = [None] * len(self._locals)
        if value is not None:
            if not isinstance(value, DTensor):
                raise TypeError(f"assigned grad expected to be a DTensor or None but got {type(value).__name__}")
            grads = value.redistribute(placements=gradient_spec(self._spec).placements).to_locals()
        for local, grad in zip(self._locals, grads, strict=True):
            local.grad = grad

    @property
    def data(self) -> DTensor:
        return self.detach()

    @data.setter
    def data(self, value: DTensor) -> None:
        if not isinstance(value, DTensor):
            raise TypeError(f"[data] expected a DTensor, got {type(value).__name__}")
        requires_grad, locals_ = self.requires_grad, self._locals
        if value._spec == self._spec and value.shape == self.shape and value.dtype == self.dtype:
            for local, new in zip(locals_, value.to_locals(), strict=True):
                local.data = new  # keeps gradients and graphs
        else:
            locals_ = [t.detach() for t in value.to_locals()]
            for local in locals_:
                local.requires_grad = requires_grad
        _C._set_wrapper(self, value)
        self._locals, self._spec = tuple(locals_), value._spec

    @property
    def grad_fn(self):
        return self._locals[0].grad_fn

    def __setitem__(self, index, value) -> None:
        """Writes to the whole tensor, of which each rank keeps its part. All ranks must call it."""
        whole = self.redistribute(placements=[Replicate()] * self.device_mesh.ndim)
        members = self.device_mesh._members()
        values = value if isinstance(value, DTensor) else None
        if isinstance(value, _C.Tensor) and values is None:
            values = replicate(value, self.device_mesh)
        parts = None if values is None else values.redistribute(placements=whole.placements).to_locals()
        locals_, index = [t.clone() for t in whole.to_locals()], _whole_index(index, self.device_mesh)
        for k, member in enumerate(members):
            with member.session():
                locals_[k][_local_index(index, k)] = value if parts is None else parts[k]
        self.copy_(make(locals_, whole._spec, self.shape))

    @property
    def _version(self) -> int:
        return max(t._version for t in self._locals)

    def _replicated(self, tensor: _C.Tensor) -> DTensor:
        """A tensor that is equal on all ranks as a DTensor on this one's mesh."""
        return replicate(tensor, self.device_mesh)

    def untyped_storage(self):
        raise RuntimeError("[untyped_storage] a DTensor has a storage on each rank: use to_locals()")

    def is_set_to(self, tensor) -> bool:
        """Whether both are DTensors with the same placements whose local tensors are the same memory."""
        if not isinstance(tensor, DTensor) or tensor._spec != self._spec or tensor.shape != self.shape:
            return False
        own, others = self._locals, tensor._locals
        return all(a.is_set_to(b) for a, b in zip(own, others, strict=True))

    def item(self):
        """The single element as a Python number. Waits; all ranks must call it."""
        return self.full_tensor().item()

    def tolist(self):
        """The elements as nested lists. Waits; all ranks must call it."""
        return self.full_tensor().tolist()

    def numpy(self, *, force: bool = False):
        """The values as a NumPy array. Waits; all ranks must call it."""
        return self.full_tensor().numpy(force=force)

    def __bool__(self) -> bool:
        return bool(self.full_tensor())

    def __int__(self) -> int:
        return int(self.full_tensor())

    def __float__(self) -> float:
        return float(self.full_tensor())

    def __index__(self) -> int:
        return self.full_tensor().__index__()

    def __complex__(self) -> complex:
        return complex(self.full_tensor())

    def __array__(self, dtype=None, copy=None):
        return self.full_tensor().detach().__array__(dtype, copy)

    def __repr__(self, *, tensor_contents=None) -> str:
        locals_ = self._locals
        text = repr(locals_[0]) if len(locals_) == 1 else f"[{', '.join(map(repr, locals_))}]"
        return f"DTensor(local_tensor={text}, device_mesh={self.device_mesh}, placements={self.placements})"

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if self.dim() == 0 else object.__format__(self, spec)

    def __deepcopy__(self, memo: dict) -> DTensor:
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment."
            )
        if id(self) not in memo:
            locals_ = [t.detach().clone() for t in self._locals]
            for local, own in zip(locals_, self._locals, strict=True):
                local.requires_grad = own.requires_grad
            memo[id(self)] = copied = make(locals_, self._spec, self.shape)
            copied.__dict__ = {**self.__dict__, **copied.__dict__}
        return memo[id(self)]

    def retain_grad(self) -> None:
        """Keeps the gradient of a result of an operator."""
        for local in self._locals:
            local.retain_grad()

    def register_hook(self, hook: Callable):
        """Calls ``hook(grad)`` with a DTensor in each backward pass. Requires one process per rank."""
        local = _single_local("register_hook", self._locals)
        spec, size = gradient_spec(self._spec), self.shape

        def local_hook(grad):
            result = hook(make([grad], spec, size))
            return None if result is None else result.redistribute(placements=spec.placements).to_local()

        return local.register_hook(local_hook)

    def detach_(self) -> DTensor:
        """Detaches the tensor from its graph, in place."""
        self._locals = self.detach()._locals
        return self

    def cpu(self, memory_format=None) -> DTensor:
        """Copies the local tensors to the CPUs of their engines."""
        return self.to("cpu", memory_format=memory_format)

    run_backward = staticmethod(run_backward)
    run_grad = staticmethod(run_grad)

    def __shards__(self) -> tuple[tuple[int, ...], list[tuple[tuple[int, ...], _C.Tensor]]]:
        """The whole size, and the (offsets, local tensor) of each part that this process drives, for checkpoints."""
        if any(isinstance(p, Partial) for p in self.placements):
            raise RuntimeError("[DTensor] expected a tensor without Partial placements for a checkpoint")
        parts = [
            (tuple(local_box(self._spec, self.shape, member)[0]), local)
            for member, local in zip(self.device_mesh._members(), self._locals, strict=True)
        ]
        return tuple(self.shape), parts


def _local_index(index, k: int):
    """The index of member k, whose tensors must be replicated."""
    if isinstance(index, tuple):
        return tuple(_local_index(i, k) for i in index)
    if not isinstance(index, _C.Tensor):
        return index
    return index.to_locals()[k]


def _whole_index(index, mesh: DeviceMesh):
    """The index with whole tensors on each rank. A tensor must be a DTensor."""
    if isinstance(index, tuple):
        return tuple(_whole_index(i, mesh) for i in index)
    if not isinstance(index, _C.Tensor):
        return index
    if not isinstance(index, DTensor):
        raise NotImplementedError("[DTensor] expected DTensors as indices of an assignment, got a Tensor")
    return index.redistribute(mesh, [Replicate()] * mesh.ndim)


def _whole_size(spec: Spec, local: _C.Tensor) -> list[int]:
    size = list(local.shape)
    for m, placement in enumerate(spec.placements):
        if isinstance(placement, Shard):
            size[placement.dim] *= spec.mesh.shape[m]
    return size


def _contiguous_stride(size: Sequence[int]) -> list[int]:
    strides, step = [], 1
    for n in reversed(size):
        strides.insert(0, step)
        step *= max(n, 1)
    return strides


def _mesh_or_default(mesh: DeviceMesh | None) -> DeviceMesh:
    if mesh is not None:
        return mesh
    from ... import _connection
    from .._world import get_world_size, is_initialized
    from ..device_mesh import init_device_mesh

    engines = _connection.engines()
    if engines is None and not is_initialized():
        raise RuntimeError("No device mesh is currently active!")
    return init_device_mesh("cpu", (len(engines) if engines is not None else get_world_size(),))


Distributed.created = DTensor

__all__ = ["DTensor"]

set_module("teletensor.distributed.tensor", DTensor)
