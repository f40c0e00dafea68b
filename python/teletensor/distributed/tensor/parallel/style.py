"""Styles of tensor parallelism: how a module's parameters, inputs and outputs are placed on a mesh of one dimension.

In a process that controls all ranks, outputs stay DTensors: there is no single local tensor to return.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

from .... import _C
from ....nn.modules.module import Module
from ....nn.modules.sparse import Embedding
from ....nn.parameter import Parameter
from ...device_mesh import DeviceMesh
from .._api import distribute_module, distribute_tensor
from .._dtensor import DTensor
from ..placement_types import Placement, Replicate, Shard


def _as_dtensor(value: _C.Tensor, mesh: DeviceMesh, layouts: Sequence[Placement]) -> DTensor:
    """A DTensor of this rank's tensor; in a controller, of the whole tensor of one of the engines."""
    if isinstance(value, DTensor):
        return value
    if len(mesh._members()) == 1:
        return DTensor.from_local(value, mesh, layouts, run_check=False)
    if value.requires_grad:
        raise RuntimeError("[parallelize_module] expected a DTensor as an input that requires grad: use distribute_tensor")
    return distribute_tensor(value, mesh, layouts)


def _placed(value: _C.Tensor, mesh: DeviceMesh, layouts: Sequence[Placement], wanted: Sequence[Placement]) -> DTensor:
    tensor = _as_dtensor(value, mesh, layouts)
    wanted = [Shard(p.dim % tensor.dim()) if isinstance(p, Shard) else p for p in wanted]
    return tensor if list(tensor.placements) == wanted else tensor.redistribute(placements=wanted)


def _returned(tensor: DTensor, use_local_output: bool) -> _C.Tensor:
    return tensor.to_local() if use_local_output and len(tensor.to_locals()) == 1 else tensor


class ParallelStyle(abc.ABC):
    """The base of all styles; subclasses define ``_apply(module, device_mesh)``, which returns the module."""

    src_data_rank: int | None = 0

    @abc.abstractmethod
    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module: ...


class _DividedLayer(ParallelStyle):
    """A layer whose parameters are divided, with one input and one output."""

    _desired_input: Placement

    def __init__(self, input_layout: Placement, output_layout: Placement, use_local_output: bool):
        self.input_layouts, self.output_layouts = (input_layout,), (output_layout,)
        self.use_local_output = use_local_output

    def _placements(self, module: Module) -> dict[str, Placement]:
        raise NotImplementedError

    def _wanted_input(self, module: Module) -> Placement:
        return self._desired_input

    def _partition(self, name: str, module: Module, mesh: DeviceMesh) -> None:
        for key, placement in self._placements(module).items():
            parameter = module._parameters.get(key)
            if parameter is not None:
                placed = distribute_tensor(parameter.detach(), mesh, [placement], src_data_rank=self.src_data_rank)
                module.register_parameter(key, Parameter(placed, parameter.requires_grad))

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        wanted = [self._wanted_input(module)]

        def prepare(module, inputs, mesh):
            return (_placed(inputs[0], mesh, self.input_layouts, wanted), *inputs[1:])

        def finish(module, output, mesh):
            return _returned(_placed(output, mesh, (), self.output_layouts), self.use_local_output)

        return distribute_module(module, device_mesh, self._partition, prepare, finish)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(input_layouts={self.input_layouts}, output_layouts={self.output_layouts}, "
            f"use_local_output={self.use_local_output})"
        )


class ColwiseParallel(_DividedLayer):
    """Divides the output features of a Linear, or the width of an Embedding.

    Args:
        input_layouts: placement of the input, if it is not a DTensor; by default Replicate.
        output_layouts: placement of the output; by default ``Shard(-1)``.
        use_local_output: return a local tensor instead of a DTensor.
    """

    _desired_input = Replicate()

    def __init__(self, *, input_layouts=None, output_layouts=None, use_local_output: bool = True):
        super().__init__(input_layouts or Replicate(), output_layouts or Shard(-1), use_local_output)

    def _placements(self, module: Module) -> dict[str, Placement]:
        if isinstance(module, Embedding):
            return {"weight": Shard(1)}
        _require_linear("ColwiseParallel", module)
        return {"weight": Shard(0), "bias": Shard(0)}


class RowwiseParallel(_DividedLayer):
    """Divides the input features of a Linear, or the rows of an Embedding.

    Args:
        input_layouts: placement of the input, if it is not a DTensor; by default ``Shard(-1)``.
        output_layouts: placement of the output; by default Replicate.
        use_local_output: return a local tensor instead of a DTensor.
    """

    _desired_input = Shard(-1)

    def __init__(self, *, input_layouts=None, output_layouts=None, use_local_output: bool = True):
        super().__init__(input_layouts or Shard(-1), output_layouts or Replicate(), use_local_output)

    def _wanted_input(self, module: Module) -> Placement:
        return Replicate() if isinstance(module, Embedding) else Shard(-1)

    def _placements(self, module: Module) -> dict[str, Placement]:
        if isinstance(module, Embedding):
            return {"weight": Shard(0)}
        _require_linear("RowwiseParallel", module)
        return {"weight": Shard(1), "bias": Replicate()}


def _require_linear(style: str, module: Module) -> None:
    from ....nn.modules.linear import Linear

    if not isinstance(module, Linear):
        raise NotImplementedError(f"{style} currently only support nn.Linear and nn.Embedding!")


class SequenceParallel(ParallelStyle):
    """Replicates the parameters of a LayerNorm, RMSNorm or Dropout, and divides its input along the sequence.

    Args:
        sequence_dim: the dimension of the sequence.
        use_local_output: return a local tensor instead of a DTensor.
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False):
        self.sequence_sharding, self.use_local_output = (Shard(sequence_dim),), use_local_output

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def prepare(module, inputs, mesh):
            if not isinstance(inputs[0], _C.Tensor):
                raise ValueError(f"expecting input of {module} to be a torch.Tensor or DTensor, but got {inputs[0]}")
            return (_placed(inputs[0], mesh, self.sequence_sharding, self.sequence_sharding), *inputs[1:])

        def finish(module, output, mesh):
            return _returned(output, self.use_local_output)

        return distribute_module(module, device_mesh, None, prepare, finish)

    def __repr__(self) -> str:
        return f"SequenceParallel(sequence_dim={self.sequence_sharding[0].dim}, use_local_output={self.use_local_output})"


def _layouts(value) -> tuple | None:
    return None if value is None else (value,) if isinstance(value, Placement) else tuple(value)


def _prepare_values(what: str, values: tuple, layouts: tuple, wanted: tuple, mesh: DeviceMesh, use_local: bool) -> tuple:
    if len(values) != len(layouts):
        raise ValueError(f"module {what} and {what[:-1]}_layouts should have same length! Got {len(values)} and {len(layouts)}")
    prepared = []
    for value, layout, desired in zip(values, layouts, wanted, strict=True):
        if layout is not None and not isinstance(value, _C.Tensor):
            raise ValueError(f"expecting a tensor among the module's {what} with layout {layout}, but got {value}")
        if layout is not None:
            value = _returned(_placed(value, mesh, (layout,), (layout if desired is None else desired,)), use_local)
        prepared.append(value)
    return tuple(prepared)


class PrepareModuleInput(ParallelStyle):
    """Converts a module's inputs to DTensors with given placements.

    Args:
        input_layouts: the placement of each positional input, if it is not a DTensor; None leaves an input unchanged.
        desired_input_layouts: the placements that forward receives.
        input_kwarg_layouts, desired_input_kwarg_layouts: the same for keyword inputs, by name.
        use_local_output: pass local tensors to forward instead of DTensors.
    """

    def __init__(
        self, *, input_layouts=None, desired_input_layouts=None, input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None, use_local_output: bool = False,
    ):  # fmt: skip
        self.input_layouts, self.desired_input_layouts = _layouts(input_layouts), _layouts(desired_input_layouts)
        self.input_kwarg_layouts, self.desired_input_kwarg_layouts = input_kwarg_layouts or {}, desired_input_kwarg_layouts or {}
        self.use_local_output = use_local_output
        if self.input_layouts is not None:
            if self.desired_input_layouts is None:
                raise AssertionError("desired module inputs should not be None!")
            if len(self.input_layouts) != len(self.desired_input_layouts):
                raise AssertionError("input_layouts and desired_input_layouts should have same length!")

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def prepare(module: Module, args: tuple, kwargs: dict[str, Any]):
            if self.input_layouts is not None:
                args = _prepare_values(
                    "inputs", args, self.input_layouts, self.desired_input_layouts, device_mesh, self.use_local_output
                )
            for name, layout in self.input_kwarg_layouts.items():
                if name in kwargs:
                    desired = self.desired_input_kwarg_layouts.get(name)
                    (kwargs[name],) = _prepare_values(
                        "inputs", (kwargs[name],), (layout,), (desired,), device_mesh, self.use_local_output
                    )
            return args, kwargs

        module.register_forward_pre_hook(prepare, with_kwargs=True)
        return module


class PrepareModuleOutput(ParallelStyle):
    """Converts a module's outputs to given placements.

    Args:
        output_layouts: the placement of each output, if it is not a DTensor; None leaves an output unchanged.
        desired_output_layouts: the placements of the results.
        use_local_output: return local tensors instead of DTensors.
    """

    def __init__(self, *, output_layouts, desired_output_layouts, use_local_output: bool = True):
        self.output_layouts, self.desired_output_layouts = _layouts(output_layouts), _layouts(desired_output_layouts)
        self.use_local_output = use_local_output
        if len(self.output_layouts) != len(self.desired_output_layouts):
            raise AssertionError("output_layouts and desired_output_layouts should have same length!")

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def finish(module: Module, inputs, outputs):
            values = outputs if isinstance(outputs, tuple) else (outputs,)
            prepared = _prepare_values(
                "outputs", values, self.output_layouts, self.desired_output_layouts, device_mesh, self.use_local_output
            )
            return prepared if isinstance(outputs, tuple) else prepared[0]

        module.register_forward_hook(finish)
        return module


class PrepareModuleInputOutput(ParallelStyle):
    """PrepareModuleInput and PrepareModuleOutput together; the arguments are theirs."""

    def __init__(
        self, *, input_layouts=None, desired_input_layouts=None, input_kwarg_layouts=None, desired_input_kwarg_layouts=None,
        use_local_input: bool = False, output_layouts, desired_output_layouts, use_local_output: bool = True,
    ):  # fmt: skip
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts, desired_input_layouts=desired_input_layouts, input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts, use_local_output=use_local_input,
        )  # fmt: skip
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts, desired_output_layouts=desired_output_layouts, use_local_output=use_local_output
        )

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        return self.prepare_module_output._apply(self.prepare_module_input._apply(module, device_mesh), device_mesh)


__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput",
    "RowwiseParallel", "SequenceParallel",
]  # fmt: skip
