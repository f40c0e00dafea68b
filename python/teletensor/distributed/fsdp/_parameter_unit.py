"""ParameterUnit: the parameters of one module that fully_shard divides one by one, as DTensors."""

from __future__ import annotations

from collections.abc import Callable

from ... import _C
from ..._C import Tensor
from ..._grad_mode import no_grad
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from ..device_mesh import DeviceMesh
from ..tensor import DTensor, Replicate, Shard
from ..tensor._spec import Spec, part
from ..tensor._state import make
from . import _groups
from ._unit import Entry, ShardedUnit


class ParameterEntry(Entry):
    """One parameter of a ParameterUnit.

    Args:
        parameter: the whole parameter, or one that tensor parallelism has distributed over another mesh.
        dim: the dimension that is divided.
        offset: the start of its elements in the ranks' parts.
    """

    def __init__(self, parameter: Parameter, name: str, offset: int, dim: int, ranks: int):
        self.whole_spec: Spec | None = parameter._spec if isinstance(parameter, DTensor) else None
        self.whole_shape = parameter.shape
        local = parameter._local_tensor.detach() if isinstance(parameter, DTensor) else parameter.detach()
        super().__init__(local, name, offset)
        self.requires_grad = parameter.requires_grad
        self.dim = dim
        self.chunk = -(-local.shape[dim] // ranks)  # the length of a part; the last ones may be shorter
        self.padded = [*local.shape]
        self.padded[dim] = self.chunk * ranks
        self.part_shape = [*local.shape]
        self.part_shape[dim] = self.chunk
        self.part_numel = self.numel // max(local.shape[dim], 1) * self.chunk
        self.parameter: Parameter | None = None  # the DTensor of this rank's part
        self.grad_offset = 0  # in the ranks' parts of the gradients

    def own(self, whole: Tensor, ranks: int, rank: int) -> Tensor:
        """This rank's part, without padding."""
        start, length = part(self.shape[self.dim], ranks, rank)
        return whole.narrow(self.dim, start, length)

    def split(self, whole: Tensor, ranks: int) -> Tensor:
        """The parts of all ranks, each in one row, padded with zeros."""
        missing = self.padded[self.dim] - self.shape[self.dim]
        if missing:
            shape = [*self.shape]
            shape[self.dim] = missing
            whole = _C.torch.cat([whole, _C.torch.zeros(shape, dtype=whole.dtype, device=whole.device)], self.dim)
        if self.dim == 0:
            return whole.reshape(ranks, self.part_numel)
        rows = whole.unflatten(self.dim, (ranks, self.chunk)).movedim(self.dim, 0)
        return rows.reshape(ranks, self.part_numel)

    def join(self, target: Tensor, rows: Tensor, ranks: int) -> None:
        """Copies the rows of split() to a vector of the padded whole."""
        if self.dim == 0:
            target.view(ranks, self.part_numel).copy_(rows)
        else:
            parts = rows.view(ranks, *self.part_shape).movedim(0, self.dim)
            target.view(self.padded).unflatten(self.dim, (ranks, self.chunk)).copy_(parts)

    def whole_of(self, padded: Tensor) -> Tensor:
        """The parameter, as a view of a vector of the padded whole."""
        return padded.view(self.padded).narrow(self.dim, 0, self.shape[self.dim])


class ParameterUnit(ShardedUnit):
    """The parameters of one module, each divided along one of its dimensions. The modules' parameters are DTensors.

    The parts of all parameters are gathered in one collective, and their gradients are reduced in one.

    Args:
        mesh: one dimension divides; the first of two replicates.
        placement_fn: returns the Shard of a parameter, or None for Shard(0).
    """

    def __init__(self, owner: Module, places: list, mesh: DeviceMesh, *, placement_fn: Callable | None = None, param_dtype=None,
                 reduce_dtype=None, offload: bool = False):  # fmt: skip
        self.owner, self.originals, self.mesh = owner, True, mesh
        self._set_ranks(_groups.of_mesh("fully_shard", mesh), sharded=True)
        self._placement_fn, self._offload = placement_fn, offload
        self._param_dtype, self._reduce_dtype = param_dtype, reduce_dtype
        self._trainable: list[ParameterEntry] = []
        self.fills_unused = False  # whether parameters without a gradient get zeros
        self._has_unused = False  # whether the last backward pass computed no gradient of a trainable parameter
        self._unreduced = None
        parameters = self._collect(places)
        self.requires_grad = any(entry.requires_grad for entry in self.entries)
        self.numel = sum(entry.numel for entry in self.entries)
        self.part_numel = sum(entry.part_numel for entry in self.entries)
        self.device = _C.device(mesh.device_type if parameters[0].device.type == "meta" else parameters[0].device)
        self.storage_device = _C.device("cpu") if offload else self.device
        with no_grad():
            for parameter, entry in zip(parameters, self.entries, strict=True):
                self._distribute(parameter, entry)
        self._adopt()
        self._set_state()

    def _entry(self, parameter: Parameter, path: str, offset: int) -> ParameterEntry:
        return ParameterEntry(parameter, path, offset, self._dim_of(parameter, path.rpartition(".")[2]), self.ranks)

    def _dim_of(self, parameter: Parameter, name: str) -> int:
        if parameter.dim() == 0:
            raise ValueError(
                f"fully_shard doesn't support scalar parameters. Change {name} to a 1D tensor with numel equal to 1."
            )
        placement = self._placement_fn(parameter) if self._placement_fn is not None else None
        if placement is None:
            return 0
        if not isinstance(placement, Shard):
            raise NotImplementedError(
                f"[fully_shard] expected shard_placement_fn to return Shard or None, got {placement!r}"
            )
        dim = range(parameter.dim())[placement.dim]
        size = parameter.to_local().shape[dim] if isinstance(parameter, DTensor) else parameter.shape[dim]
        if dim and size % self.ranks:
            raise NotImplementedError(
                f"FSDP does not support uneven sharding on dim {dim}: {parameter.shape} (world size: {self.ranks})"
            )
        return dim

    def _placed(self, entry: ParameterEntry) -> Spec:
        """The mesh and placements of a parameter's part. A parameter that is distributed over a mesh is divided further: the
        mesh of its part has that mesh's dimensions first."""
        own = [Replicate()] * (self.mesh.ndim - 1) + [Shard(entry.dim)]
        if entry.whole_spec is None:
            return Spec(self.mesh, own)
        return Spec(_product(entry.whole_spec.mesh, self.mesh), [*entry.whole_spec.placements, *own])

    def _distribute(self, parameter: Parameter, entry: ParameterEntry) -> None:
        """Replaces the modules' parameter by a DTensor of this rank's part."""
        whole = parameter._local_tensor.detach() if entry.whole_spec is not None else parameter.detach()
        local = entry.own(whole, self.ranks, self.rank).clone()
        if local.device.type != "meta":
            local = local.to(self.storage_device)
        entry.parameter = Parameter(make([local], self._placed(entry), list(entry.whole_shape)), entry.requires_grad)
        entry.parameter.__dict__.update(
            {k: v for k, v in parameter.__dict__.items() if k not in entry.parameter.__dict__}
        )
        entry.parameter._in_unit = True
        for module, name in entry.places:
            module._parameters[name] = entry.parameter

    def adopt(self) -> None:
        """Uses the parameters that the modules have now: to_empty(), to() or load_state_dict() may have replaced them.

        Raises:
            RuntimeError: one is not a DTensor with the placements of its part.
        """
        for entry in self.entries:
            module, name = entry.places[0]
            parameter = module._parameters.get(name)
            if parameter is entry.parameter:
                continue
            spec = self._placed(entry)
            if not isinstance(parameter, DTensor) or parameter._spec != spec or parameter.shape != entry.whole_shape:
                raise RuntimeError(
                    f"[fully_shard] expected the parameter {entry.name} to be a DTensor of size {list(entry.whole_shape)} with "
                    f"placements {spec}, got {type(parameter).__name__}"
                )
            entry.parameter, parameter._in_unit = parameter, True
            for module, name in entry.places[1:]:
                module._parameters[name] = parameter
        self._adopt()

    def _adopt(self) -> None:
        self.exposed = [entry.parameter for entry in self.entries]
        self.dtype = self.exposed[0].dtype
        device = self._local(self.entries[0]).device
        if not self._offload and device.type != "meta":
            self.device = self.storage_device = device
        for entry, parameter in zip(self.entries, self.exposed, strict=True):
            if parameter.dtype is not self.dtype:
                raise AssertionError(
                    f"FSDP expects uniform original parameter dtype but got {self.dtype} and {parameter.dtype} ({entry.name})"
                )
            if entry.requires_grad is not parameter.requires_grad:
                entry.requires_grad = parameter.requires_grad
        trainable = [entry for entry in self.entries if entry.requires_grad]
        if self._unreduced is not None and trainable != self._trainable:
            raise RuntimeError(
                "[fully_shard] requires_grad was changed between backward passes whose gradients are added up"
            )
        offset = 0
        for entry in trainable:
            entry.grad_offset = offset
            offset += entry.part_numel
        self._trainable, self.requires_grad = trainable, bool(trainable)
        self.param_dtype = self._param_dtype or self.dtype
        self.reduce_dtype = self._reduce_dtype or self.param_dtype

    def _local(self, entry: ParameterEntry) -> Tensor:
        return entry.parameter.to_locals()[0].detach()

    # Gathering.

    def _part(self) -> Tensor:
        self.adopt()
        if self._local(self.entries[0]).device.type == "meta":
            names = [entry.name for entry in self.entries]
            raise RuntimeError(
                f"FSDP parameters should be materialized from meta device before training, but got {names}: call to_empty() and "
                "initialize them"
            )
        pieces = []
        for entry in self.entries:
            local = self._local(entry)
            missing = entry.part_numel - local.numel()
            pieces.append(local.reshape(-1))
            if missing:
                pieces.append(_C.torch.zeros(missing, dtype=self.dtype, device=local.device))
        return _C.torch.cat(pieces)

    def version(self) -> int:
        return sum(parameter._version for parameter in self.exposed)

    def _arranged(self, full: Tensor) -> Tensor:
        if len(self.entries) == 1 and self.entries[0].dim == 0 or self.ranks == 1:
            return full
        base = _C.torch.empty(full.shape, dtype=full.dtype, device=full.device)
        rows = full.view(self.ranks, self.part_numel)
        for entry in self.entries:
            columns = rows.narrow(1, entry.offset, entry.part_numel)
            entry.join(self._region(base, entry), columns, self.ranks)
        return base

    def _region(self, base: Tensor, entry: ParameterEntry) -> Tensor:
        return base.narrow(0, entry.offset * self.ranks, entry.part_numel * self.ranks)

    def _views(self, base: Tensor) -> list[Tensor]:
        return [entry.whole_of(self._region(base, entry)) for entry in self.entries]

    def presented(self, tensors: list[Tensor]) -> list[Tensor]:
        return [
            tensor if entry.whole_spec is None else make([tensor], entry.whole_spec, list(entry.whole_shape))
            for tensor, entry in zip(tensors, self.entries, strict=True)
        ]

    # Gradients.

    def _mark_unused(self, grads: list[Tensor | None]) -> None:
        pairs = zip(grads, self.entries, strict=True)
        self._has_unused = not self.fills_unused and any(g is None and entry.requires_grad for g, entry in pairs)

    def _flatten(self, tensors: list[Tensor | None], dtype) -> Tensor:
        """The gradients of the trainable parameters, and for each of them one number: 1 if it has a gradient, else 0."""
        found = [t for t, entry in zip(tensors, self.entries, strict=True) if entry.requires_grad]
        rows = [
            _C.torch.zeros(self.ranks, entry.part_numel, dtype=dtype, device=self.device)
            if t is None else entry.split(t.to(dtype), self.ranks)
            for t, entry in zip(found, self._trainable, strict=True)
        ]  # fmt: skip
        flags = _C.tensor([float(t is not None) for t in found], dtype=dtype, device=self.device)
        return _C.torch.cat([*rows, flags.expand(self.ranks, len(found))], 1).view(-1)

    def _used(self, part: Tensor) -> list[bool]:
        """Whether a parameter has a gradient on any rank. Waits only if one has none on this rank."""
        count = len(self._trainable)
        if not self._has_unused:
            return [True] * count
        return [flag > 0 for flag in part.narrow(0, part.numel() - count, count).tolist()]

    def _accumulate(self, part: Tensor) -> None:
        with no_grad():
            used = self._used(part)
            part = part.to(self.dtype).to(self.storage_device)
            for entry, is_used in zip(self._trainable, used, strict=True):
                if not is_used:
                    continue
                local = entry.parameter.to_locals()[0]
                grad = part.narrow(0, entry.grad_offset, entry.part_numel).view(entry.part_shape)
                grad = grad.narrow(entry.dim, 0, local.shape[entry.dim])
                if local.grad is None:
                    local.grad = grad
                else:
                    local.grad.add_(grad)


_products: dict[tuple[DeviceMesh, DeviceMesh], DeviceMesh] = {}


def _product(first: DeviceMesh, second: DeviceMesh) -> DeviceMesh:
    """The mesh with the dimensions of two slices of one mesh: those of the first, then those of the second."""
    key = (first, second)
    if key not in _products:
        parent = getattr(second, "_parent", None)
        names = (*(first.mesh_dim_names or ()), *(second.mesh_dim_names or ()))
        if parent is None or getattr(first, "_parent", None) != parent or len(names) != first.ndim + second.ndim:
            raise ValueError(
                "[fully_shard] expected a slice of the mesh whose other slices distribute the parameters, such as mesh['dp'] and "
                f"mesh['tp'], got {second} and {first}"
            )
        _products[key] = parent[names]
    return _products[key]
