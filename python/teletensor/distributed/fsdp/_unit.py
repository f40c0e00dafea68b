"""ShardedUnit: the parameters of one wrapped module, stored in parts on the ranks of a group."""

from __future__ import annotations

import collections
import contextlib
import weakref
from collections.abc import Callable, Iterator

from ... import _C
from ..._C import Tensor
from ..._grad_mode import no_grad
from ...autograd import gradients
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from .. import _options
from .._reduce_op import ReduceOp
from ._groups import ShardGroups
from ._sharded_tensor import ShardedTensor

# Gradients that are being reduced: the unit, the Work, and the tensor for this rank's part. Oldest first.
_reductions: collections.deque[tuple[ShardedUnit, object, Tensor]] = collections.deque()
# Parts of gradients that are being averaged over replicas, likewise.
_replications: collections.deque[tuple[ShardedUnit, object, Tensor]] = collections.deque()
_MAX_REDUCTIONS = 1  # maximum number of reductions in progress when another one starts
_live: weakref.WeakSet[ShardedUnit] = weakref.WeakSet()


def end_backward() -> None:
    """Ends a backward pass: finishes its reductions, and frees parameters that were gathered but not used."""
    flush()
    units = list(_live)
    for unit in units:
        unit.reset()
    for unit in units:
        unit.release()


def _finish_reductions(leave: int = 0) -> None:
    while len(_reductions) > leave:
        unit, work, part = _reductions.popleft()
        work.wait()
        if unit.replicas is None:
            unit._accumulate(part)
        else:
            _finish_replications()
            unit._start_replication(part)


def _finish_replications() -> None:
    while _replications:
        unit, work, part = _replications.popleft()
        work.wait()
        unit._accumulate(part)


def flush() -> None:
    """Makes the gradients of all backward passes so far available in ``.grad``."""
    _finish_reductions()
    _finish_replications()


def discard(units: list[ShardedUnit]) -> None:
    """Discards parameters gathered in advance, reductions in progress and gradients that were not reduced."""
    for queue in (_reductions, _replications):
        kept = [entry for entry in queue if entry[0] not in units]
        for unit, work, _ in queue:
            if unit in units:
                work.wait()
        queue.clear()
        queue.extend(kept)
    for unit in units:
        unit.reset()
        unit.release()
        unit._unreduced = unit._unreplicated = None


class FlatParameter(Parameter):
    """This rank's part of the concatenated parameters of a unit, padded to the same length on all ranks."""

    _unit: ShardedUnit

    def detach(self) -> ShardedTensor:
        return self._shard_like(super().detach())

    def _shard_like(self, value: Tensor) -> ShardedTensor:
        """A tensor that is divided like this parameter."""
        return ShardedTensor(value, self._unit, None)

    def __deepcopy__(self, memo: dict):
        raise NotImplementedError(
            "[deepcopy] modules with sharded parameters cannot be copied: copy them before sharding"
        )


class ShardedParameter(Parameter):
    """This rank's elements of a parameter, as a vector. It has no elements if they are all on other ranks."""

    _unit: ShardedUnit
    _index: int

    def full_tensor(self) -> Tensor:
        """Returns the parameter's values from all ranks, in its shape. All ranks must call it."""
        return self._unit.gather_flat(self._unit.shard.detach())[self._index]

    def detach(self) -> ShardedTensor:
        return self._shard_like(super().detach())

    def _shard_like(self, value: Tensor) -> ShardedTensor:
        """A tensor that is divided like this parameter."""
        return ShardedTensor(value, self._unit, self._index)

    def to_local(self) -> Tensor:
        """Returns this rank's elements, without history."""
        return self.detach()

    def __deepcopy__(self, memo: dict):
        raise NotImplementedError(
            "[deepcopy] modules with sharded parameters cannot be copied: copy them before sharding"
        )


class Entry:
    """One parameter of a unit."""

    def __init__(self, parameter: Parameter, name: str, offset: int):
        self.name, self.offset = name, offset
        self.shape, self.numel, self.requires_grad = parameter.shape, parameter.numel(), parameter.requires_grad
        self.part_numel = self.numel  # elements from its offset to that of the next entry
        self.places: list[tuple[Module, str]] = []  # the modules that register it, and its name in each


class ShardedUnit:
    """The parameters of one module, concatenated. Each rank stores an equal part, which the optimizer updates.

    The whole is gathered when the module runs, and gradients are averaged over the ranks into the parts.

    Args:
        places: (module, its path, the parameter's name) of each parameter.
        groups: the ranks among which the parameters are divided, and those that have the same part as this rank.
        sharded: False stores the whole on each rank.
        originals: whether each parameter is exposed under its name, as a view of this rank's part; otherwise one
            FlatParameter is exposed, which `owner` registers.
        param_dtype, reduce_dtype: dtypes of the gathered parameters and of reductions; None: the parameters' dtype.
        offload: whether the parts are stored on the CPU.
    """

    FLAT_NAME = "_flat_param"

    def __init__(self, owner: Module, places: list, groups: ShardGroups, *, sharded: bool, originals: bool, param_dtype=None,
                 reduce_dtype=None, offload: bool = False):  # fmt: skip
        self.owner, self.originals = owner, originals
        self._set_ranks(groups, sharded)
        parameters = self._collect(places)
        first = parameters[0]
        for parameter in parameters:
            if parameter.dtype is not first.dtype:
                raise ValueError(f"Must flatten tensors with uniform dtype but got {first.dtype} and {parameter.dtype}")
            if parameter.device != first.device:
                raise ValueError(
                    f"expected the parameters of a unit on one device, got {first.device} and {parameter.device}"
                )
            if parameter.requires_grad != first.requires_grad and not originals:
                raise ValueError("Must flatten tensors with uniform `requires_grad` when `use_orig_params=False`")
        self.device = first.device
        if self.device.type == "meta":
            raise NotImplementedError(
                "[fsdp] parameters on the meta device are not supported: initialize the module first"
            )
        self.dtype = first.dtype
        self.param_dtype = param_dtype or self.dtype
        self.reduce_dtype = reduce_dtype or self.param_dtype
        self.requires_grad = any(entry.requires_grad for entry in self.entries)
        self.numel = sum(entry.numel for entry in self.entries)
        self.part_numel = -(-self.numel // self.ranks)
        self.storage_device = _C.device("cpu") if offload else self.device
        with no_grad():
            flat = self._flatten([parameter.detach() for parameter in parameters], self.dtype)
            self.shard = flat.view(self.ranks, -1)[self.rank].clone().to(self.storage_device)
        self.exposed = self._expose()
        self._set_state()

    def _set_ranks(self, groups: ShardGroups, sharded: bool) -> None:
        self.group, self.replicas = groups
        self.ranks = self.group.size() if sharded else 1  # number of parts
        self.rank = self.group.rank() if sharded else 0
        self.entries: list[Entry] = []

    def _set_state(self) -> None:
        self.synchronizes = True
        self.averages_replicas = True
        self.divisor: float | None = None  # divisor of the sum of gradients; None: the number of ranks
        self._unreduced: Tensor | None = None  # gradients of backward passes that did not synchronize
        self._unreplicated: Tensor | None = None  # gradients that were not averaged over replicas
        self._gathering: tuple | None = None  # the Work, and the tensor that it fills
        self._gathered_version = 0  # of the parts that are gathered
        # A tensor that requires grad, so that a unit is recorded even if its inputs do not require grad.
        self.anchor = _C.torch.zeros((), device=self.device, requires_grad=True)
        self._replaced: list[list[tuple[Module, str, Parameter | None]]] = []  # by each install()
        self.reset: Callable[[], None] = lambda: None  # ends what an interrupted pass has begun (Runner)
        _live.add(self)
        if flush not in gradients.after_backward:
            gradients.after_backward.append(flush)

    def _entry(self, parameter: Parameter, path: str, offset: int) -> Entry:
        return Entry(parameter, path, offset)

    def _collect(self, places: list) -> list[Parameter]:
        """Creates the entries; returns their parameters."""
        known: dict[int, Entry] = {}
        parameters: list[Parameter] = []
        offset = 0
        for module, path, name in places:
            parameter = module._parameters[name]
            entry = known.get(id(parameter))
            if entry is None:
                if getattr(parameter, "_in_unit", False):
                    raise NotImplementedError(
                        f"[fsdp] the parameter {name} of {type(module).__name__} is shared with a module of another unit: "
                        "wrap or shard the smallest module that contains both, or ignore the parameter"
                    )
                entry = known[id(parameter)] = self._entry(parameter, f"{path}{'.' if path else ''}{name}", offset)
                parameter._in_unit = True
                offset += entry.part_numel
                self.entries.append(entry)
                parameters.append(parameter)
            entry.places.append((module, name))
        return parameters

    def _flatten(self, tensors: list[Tensor | None], dtype) -> Tensor:
        """Concatenates one tensor, or None for zeros, per entry, and pads the result to a multiple of the parts."""
        pieces = [
            _C.torch.zeros(entry.numel, dtype=dtype, device=self.device) if t is None else t.reshape(-1).to(dtype)
            for t, entry in zip(tensors, self.entries, strict=True)
        ]
        if padding := self.part_numel * self.ranks - self.numel:
            pieces.append(_C.torch.zeros(padding, dtype=dtype, device=self.device))
        return _C.torch.cat(pieces) if len(pieces) > 1 else pieces[0]

    def bounds(self, entry: Entry) -> tuple[int, int]:
        """Start and end of this rank's elements of the parameter, relative to its part."""
        low = self.part_numel * self.rank
        start = min(max(entry.offset - low, 0), self.part_numel)
        end = min(max(entry.offset + entry.numel - low, 0), self.part_numel)
        return start, end

    def local(self, part: Tensor, entry: Entry) -> Tensor:
        """The parameter's elements in a tensor that is laid out like this rank's part."""
        start, end = self.bounds(entry)
        piece = part[start:end]
        return piece.view(entry.shape) if self.ranks == 1 else piece

    def _expose(self) -> list[Parameter]:
        """Replaces the modules' parameters by those of this rank's part."""
        if not self.originals:
            flat = FlatParameter(self.shard, self.requires_grad)
            for entry in self.entries:
                for module, name in entry.places:
                    del module._parameters[name]
            flat._unit = self
            self.owner._parameters[self.FLAT_NAME] = flat
            return [flat]
        exposed = self.sharded_parameters()
        for parameter, entry in zip(exposed, self.entries, strict=True):
            for module, name in entry.places:
                module._parameters[name] = parameter
        return exposed

    def sharded_parameters(self) -> list[Parameter]:
        """This rank's elements of each parameter."""
        parameters: list[Parameter] = []
        for index, entry in enumerate(self.entries):
            parameter = ShardedParameter(self.local(self.shard, entry), entry.requires_grad)
            parameter._unit, parameter._index = self, index
            parameters.append(parameter)
        return parameters

    def check_unchanged(self, fn: Callable) -> None:
        """Raises NotImplementedError if a function of Module._apply() replaces this rank's part."""
        if fn(self.shard) is not self.shard:
            raise NotImplementedError("[fsdp] move or cast the module before it is sharded")

    # Gathering.

    def start_gather(self) -> None:
        """Starts to gather the parameters, unless it has started."""
        if self._gathering is None:
            with no_grad():
                self._gathering = self._start(self._part(), self.param_dtype)
            self._gathered_version = self.version()

    def _part(self) -> Tensor:
        """This rank's part, as a vector."""
        return self.shard.detach()

    def version(self) -> int:
        """The number of changes of this rank's part in place."""
        return self.shard._version + sum(p._version for p in self.exposed)

    def _start(self, part: Tensor, dtype) -> tuple:
        part = part.to(self.device).to(dtype)
        if self.ranks == 1:
            return None, part
        full = _C.torch.empty(self.part_numel * self.ranks, dtype=dtype, device=self.device)
        return self.group.all_gather_single(full, part), full

    def _views(self, full: Tensor) -> list[Tensor]:
        pieces = full[: self.numel].split([entry.numel for entry in self.entries])
        return [piece.view(entry.shape) for piece, entry in zip(pieces, self.entries, strict=True)]

    def gather(self) -> Tensor:
        """Returns the gathered parameters, as one tensor that views() divides. The unit does not keep them."""
        if self._gathering is not None and self._gathered_version != self.version():
            self.release()  # the parameters were changed since they were gathered in advance
        with no_grad():
            self.start_gather()
            work, full = self._gathering
            self._gathering = None
            if work is not None:
                work.wait()
            return self._arranged(full)

    def _arranged(self, full: Tensor) -> Tensor:
        """The parameters one after the other, of the ranks' parts one after the other."""
        return full

    def views(self, base: Tensor) -> list[Tensor]:
        """The parameters, as views of a result of gather() without history."""
        with no_grad():
            return [view.detach() for view in self._views(base)]

    def presented(self, tensors: list[Tensor]) -> list[Tensor]:
        """The tensors that the modules use, of gathered ones."""
        return tensors

    def gather_flat(self, part: Tensor) -> list[Tensor]:
        """Gathers tensors that are laid out like the ranks' parts, in their dtype; one tensor per parameter."""
        with no_grad():
            work, full = self._start(part, part.dtype)
            if work is not None:
                work.wait()
            return self._views(full)

    def release(self) -> None:
        """Frees parameters that were gathered in advance."""
        if self._gathering is not None:
            work, _ = self._gathering
            self._gathering = None
            if work is not None:
                work.wait()

    def install(self, tensors: list[Tensor]) -> None:
        """Replaces the modules' parameters by other tensors, one per entry, until uninstall(). Nests."""
        before: list[tuple[Module, str, Parameter | None]] = []
        for tensor, entry in zip(tensors, self.entries, strict=True):
            for module, name in entry.places:
                before.append((module, name, module._parameters.get(name)))
                module._parameters[name] = tensor
        if not self.originals:
            before.append((self.owner, self.FLAT_NAME, self.owner._parameters.pop(self.FLAT_NAME)))
        self._replaced.append(before)

    def uninstall(self) -> None:
        """Gives the modules the parameters that they had before the last install()."""
        for module, name, parameter in self._replaced.pop():
            if parameter is None:
                del module._parameters[name]
            else:
                module._parameters[name] = parameter

    @contextlib.contextmanager
    def installed(self, tensors: list[Tensor]) -> Iterator[None]:
        """Replaces the modules' parameters by other tensors, one per entry."""
        self.install(tensors)
        try:
            yield
        finally:
            self.uninstall()

    def store(self, tensors: list[Tensor]) -> None:
        """Copies this rank's elements of full parameters to its part."""
        with no_grad():
            low = self.part_numel * self.rank
            for tensor, entry in zip(tensors, self.entries, strict=True):
                start, end = self.bounds(entry)
                if end > start:
                    first = start + low - entry.offset
                    self.shard[start:end].copy_(tensor.detach().reshape(-1)[first : first + end - start])

    # Gradients.

    def reduce(self, grads: list[Tensor | None]) -> None:
        """Averages the parameters' gradients over the ranks, or keeps them until the next backward pass that
        synchronizes. Does not wait for the reduction."""
        if not self.requires_grad:
            return
        self._mark_unused(grads)
        with no_grad():
            flat = self._flatten(grads, self.reduce_dtype)
            if self._unreduced is not None:
                flat = flat + self._unreduced
                self._unreduced = None
            if not self.synchronizes:
                self._unreduced = flat
                return
            _finish_reductions(_MAX_REDUCTIONS - 1)
            if self.divisor is not None:
                flat = flat / self.divisor
            op = self._reduction()
            if self.ranks == 1:
                part = flat
                work = self.group.allreduce([part], _options.AllreduceOptions(reduceOp=op))
            else:
                part = _C.torch.empty(flat.numel() // self.ranks, dtype=self.reduce_dtype, device=self.device)
                work = self.group.reduce_scatter_single(part, flat, _options.ReduceScatterOptions(reduceOp=op))
            _reductions.append((self, work, part))

    def _mark_unused(self, grads: list[Tensor | None]) -> None:
        """Called with the gradients of each backward pass."""

    def _reduction(self) -> ReduceOp:
        return ReduceOp.AVG if self.divisor is None else ReduceOp.SUM

    def _start_replication(self, part: Tensor) -> None:
        """Starts to average this rank's part of the gradients over the replicas, or keeps it."""
        with no_grad():
            if self._unreplicated is not None:
                part = part + self._unreplicated
                self._unreplicated = None
            if not self.averages_replicas:
                self._unreplicated = part
                return
            options = _options.AllreduceOptions(reduceOp=self._reduction())
            _replications.append((self, self.replicas.allreduce([part], options), part))

    def _accumulate(self, part: Tensor) -> None:
        """Adds this rank's part of the averaged gradients to ``.grad`` of the exposed parameters."""
        with no_grad():
            part = part.to(self.dtype).to(self.storage_device)
            parts = [self.local(part, entry) for entry in self.entries] if self.originals else [part]
            for parameter, grad in zip(self.exposed, parts, strict=True):
                if not parameter.requires_grad:
                    continue
                if parameter.grad is None:
                    parameter.grad = grad
                else:
                    parameter.grad.add_(grad)
