"""PipelineStage: one part of a model, and its state for the microbatches in progress."""

from __future__ import annotations

from typing import Any

from ... import _C
from ..._C import Tensor
from ..._grad_mode import no_grad
from ...autograd import gradients
from ...nn.modules.module import Module
from ...nn.parallel.distributed import DistributedDataParallel
from .. import distributed_c10d
from ..fsdp import FSDPModule, FullyShardedDataParallel
from ._utils import TensorMeta, check_metas

__all__ = ["PipelineStage"]


def _as_tuple(value) -> tuple:
    return tuple(value) if type(value) in (tuple, list) else (value,)


class PipelineStage:
    """One part of a model that is divided into stages; the outputs of each are the inputs of the next one.

    A schedule (ScheduleGPipe and others) runs the stages of a rank. Only the last stage may return values other than a
    tensor or a tuple of tensors. The outputs have the same shapes for all microbatches and in all steps: the first step
    sends them to the next stage, and waits for those of the previous one, unless `input_args` are given on all ranks.

    Args:
        submodule: the module that this stage runs.
        stage_index: the position of the stage.
        num_stages: the number of stages of the model.
        device: the device that stores the submodule; received tensors are stored there.
        input_args: tensors with the shapes and dtypes of the inputs.
        output_args: tensors with the shapes and dtypes of the outputs; by default computed from `input_args`.
        group: the ranks; by default the group of init_process_group().
        output_grads, input_grads, get_mesh: None; used by PyTorch for stages of distributed tensors.
        dw_builder: None. Schedules that divide backward passes compute the gradients of weights by a second pass.

    Raises:
        ValueError: the index is out of range.
        RuntimeError: the group has more ranks than there are stages.
        NotImplementedError: an argument that must be None, or a submodule that is a DistributedDataParallel, because it expects
            one backward pass after each forward pass; reduce the gradients after the step, or use fully_shard.
    """

    def __init__(self, submodule: Module, stage_index: int, num_stages: int, device, input_args=None, output_args=None,
                 output_grads=None, input_grads=None, group=None, dw_builder=None, get_mesh=None):  # fmt: skip
        if not 0 <= stage_index < num_stages:
            raise ValueError(f"Stage index {stage_index} is out of range of {num_stages}")
        for name, value in (("output_grads", output_grads), ("input_grads", input_grads), ("dw_builder", dw_builder),
                            ("get_mesh", get_mesh)):  # fmt: skip
            if value is not None:
                raise NotImplementedError(f"[PipelineStage] {name} is not supported")
        if any(isinstance(m, (DistributedDataParallel, FullyShardedDataParallel)) for m in submodule.modules()):
            raise NotImplementedError(
                "[PipelineStage] expected a module without DistributedDataParallel and FullyShardedDataParallel; use "
                "fully_shard, or reduce the gradients after the step"
            )
        if output_args is not None and input_args is None:
            raise AssertionError("If specifying output_args, input_args must also be specified.")
        self.submod, self.stage_index, self.num_stages = submodule, stage_index, num_stages
        self.device, self.group = _C.device(device), group
        self._group = group or distributed_c10d._get_default_group()
        self.group_rank, self.group_size = self._group.rank(), self._group.size()
        if self.group_size > num_stages:
            raise RuntimeError(
                f"Pipeline group size {self.group_size} cannot be larger than number of stages {num_stages}"
            )
        self.stage_index_to_group_rank = {i: i % self.group_size for i in range(num_stages)}
        self.has_backward = False
        self.inputs_meta: tuple[TensorMeta, ...] | None = None
        self._outputs_meta: tuple[TensorMeta, ...] | None = None
        if input_args is not None:
            self._describe(input_args, output_args)
        self.describes_outputs = input_args is None  # before the first message to the next stage
        self.output_chunks: list[Any] = []
        # By microbatch: the inputs, and the outputs or the loss, of forward passes whose backward pass has not run.
        self._pending: dict[int, tuple[tuple, list]] = {}
        # By microbatch: the roots of a divided backward pass and their gradients, until those of weights are computed.
        self._undivided: dict[int, tuple[list, list]] = {}

    def _describe(self, input_args, output_args) -> None:
        inputs = _as_tuple(input_args)
        if output_args is None:
            with no_grad():
                output_args = self.submod(*inputs)
        self.inputs_meta = tuple(TensorMeta.of(t) for t in inputs)
        self._outputs_meta = tuple(TensorMeta.of(t) for t in _as_tuple(output_args))

    @property
    def is_first(self) -> bool:
        """Whether this stage gets the model's inputs."""
        return self.stage_index == 0

    @property
    def is_last(self) -> bool:
        """Whether this stage returns the model's outputs."""
        return self.stage_index == self.num_stages - 1

    def get_outputs_meta(self) -> tuple[Tensor, ...]:
        """Returns tensors on the meta device with the shapes and dtypes of the outputs. Known after the first step."""
        if self._outputs_meta is None:
            raise AssertionError("Attempted to get_outputs_meta() without configuring output meta")
        return tuple(meta.empty("meta") for meta in self._outputs_meta)

    def clear_runtime_states(self) -> None:
        """Discards the state of all microbatches."""
        self._pending.clear()
        self._undivided.clear()
        self.output_chunks.clear()

    def scale_grads(self, grad_scale_factor: int) -> None:
        """Divides the gradients of the parameters."""
        if grad_scale_factor == 1:
            return
        for p in self.submod.parameters():
            if p.grad is not None:
                p.grad.detach().div_(grad_scale_factor)

    # Computation of one microbatch.

    def forward_one_chunk(self, microbatch: int, args: tuple, kwargs: dict) -> Any:
        """Runs the submodule. Returns its outputs.

        Args:
            args: the microbatch's arguments, or the outputs of the previous stage.

        Raises:
            PipeliningShapeError: the outputs have other shapes than those of the first microbatch.
        """
        if not self.is_first:
            args = tuple(self._leaf(t) for t in args)
        output = self.submod(*args, **kwargs)
        if not self.is_last:
            self._check_outputs(_as_tuple(output))
        if self.has_backward:
            self._pending[microbatch] = (args, list(_as_tuple(output)))
        return output

    def _leaf(self, tensor: Tensor) -> Tensor:
        """A received tensor, or the output of a stage on this rank, whose gradient goes to the previous stage."""
        leaf = tensor.detach()
        return leaf.requires_grad_(True) if self.has_backward and TensorMeta.of(leaf).has_gradient else leaf

    def _check_outputs(self, outputs: tuple) -> None:
        for t in outputs:
            if not isinstance(t, Tensor):
                raise TypeError(
                    f"expected a tensor or a tuple of tensors from stage {self.stage_index}, got {type(t).__name__}"
                )
        metas = tuple(TensorMeta.of(t) for t in outputs)
        if self._outputs_meta is None:
            self._outputs_meta = metas
        check_metas(f"outputs of stage {self.stage_index}", self._outputs_meta, metas)

    def gradient_metas(self) -> tuple[TensorMeta, ...] | None:
        """Shapes and dtypes of the gradients that the next stage sends: one per floating-point output. None: not known."""
        if self._outputs_meta is None:
            return None
        return tuple(meta for meta in self._outputs_meta if meta.has_gradient)

    def set_loss(self, microbatch: int, loss: Tensor) -> None:
        """Makes the loss the value from which the microbatch's backward pass starts."""
        if self.has_backward:
            self._pending[microbatch] = (self._pending[microbatch][0], [loss])

    def backward_one_chunk(self, microbatch: int, grads: list[Tensor] | None, last_backward: bool) -> list[Tensor]:
        """Computes the gradients of one microbatch, which are added to those of the parameters.

        Args:
            grads: the gradients of the floating-point outputs; None in the last stage.
            last_backward: whether this is the stage's last backward pass in this step.

        Returns:
            The gradients of the floating-point inputs, except in the first stage.
        """
        inputs, roots, gradients_of_roots = self._roots(microbatch, grads)
        for m in self.submod.modules():
            if isinstance(m, FSDPModule):
                m.set_requires_gradient_sync(last_backward, recurse=False)
        if roots:
            gradients.backward(roots, gradients_of_roots)
        if self.is_first:
            return []
        leaves = [t for t in inputs if isinstance(t, Tensor) and t.requires_grad]
        return [_C.torch.zeros_like(t) if t.grad is None else t.grad for t in leaves]

    def _roots(self, microbatch: int, grads: list[Tensor] | None) -> tuple[tuple, list[Tensor], list[Tensor | None]]:
        """The inputs of a microbatch's forward pass, and the tensors from which its backward pass starts with their gradients."""
        inputs, outputs = self._pending.pop(microbatch)
        if grads is None:
            return inputs, outputs, [None] * len(outputs)
        floating = [t for t in outputs if TensorMeta.of(t).has_gradient]
        pairs = [(t, g) for t, g in zip(floating, grads, strict=True) if t.requires_grad]
        return inputs, [t for t, _ in pairs], [g for _, g in pairs]

    def backward_input_one_chunk(self, microbatch: int, grads: list[Tensor] | None) -> list[Tensor]:
        """Computes the gradients of one microbatch's inputs; those of the parameters by backward_weight_one_chunk().

        Args:
            grads: the gradients of the floating-point outputs; None in the last stage.

        Raises:
            NotImplementedError: the submodule has FSDP modules, which expect whole backward passes.
        """
        if any(isinstance(m, FSDPModule) for m in self.submod.modules()):
            raise NotImplementedError("[PipelineStage] schedules that divide backward passes do not support fully_shard")
        inputs, roots, gradients_of_roots = self._roots(microbatch, grads)
        self._undivided[microbatch] = roots, gradients_of_roots
        leaves = [] if self.is_first else [t for t in inputs if isinstance(t, Tensor) and t.requires_grad]
        if not leaves or not roots:
            return [_C.torch.zeros_like(t) for t in leaves]
        found = gradients.grad(roots, leaves, gradients_of_roots, retain_graph=True, allow_unused=True)
        return [_C.torch.zeros_like(t) if g is None else g for t, g in zip(leaves, found, strict=True)]

    def backward_weight_one_chunk(self, microbatch: int) -> None:
        """Computes the gradients of the parameters for one microbatch, after those of its inputs, and adds them.

        As in a whole backward pass, so are those of other leaves: the model's inputs, and what the loss function has.
        """
        roots, gradients_of_roots = self._undivided.pop(microbatch)
        if roots:
            gradients.backward(roots, gradients_of_roots)
