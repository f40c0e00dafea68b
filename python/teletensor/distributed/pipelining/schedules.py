"""Schedules: the order in which the ranks run the stages of a model for the microbatches of a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ... import _C
from ..._C import Tensor
from ..._lazy import defined_by
from . import _order
from ._channels import Receiver, Sender
from ._order import BACKWARD, FORWARD, INPUT, WEIGHT, Action, Order
from ._plan import input_of, messages_between, stage_ranks, user_of
from .microbatch import merge_chunks, split_args_kwargs_into_chunks
from .stage import PipelineStage, _as_tuple

__all__ = [
    "PipelineScheduleMulti", "PipelineScheduleSingle", "Schedule1F1B", "ScheduleDualPipeV", "ScheduleGPipe",
    "ScheduleInterleaved1F1B", "ScheduleInterleavedZeroBubble", "ScheduleLoopedBFS", "ScheduleZBVZeroBubble",
    "get_schedule_class",
]  # fmt: skip


def _as_sent(action: Action) -> Action:
    """The computation for which messages are planned: the gradient of an input is that of a whole backward pass."""
    return action._replace(computation_type=BACKWARD) if action.computation_type == INPUT else action


def _communicating(order: Order) -> Order:
    """The computations that receive or send something: all but the gradients of weights."""
    return {
        rank: [_as_sent(a) for a in actions if a is not None and a.computation_type != WEIGHT] for rank, actions in order.items()
    }


class _Step:
    """The actions of one rank in one step, and its channels to the other ranks."""

    def __init__(self, order: Order, stages: list[PipelineStage], ranks: dict[int, int]):
        first = stages[0]
        rank, group, self.num_stages = first.group_rank, first._group, first.num_stages
        self._group = group
        self.stages = {stage.stage_index: stage for stage in stages}
        self.actions = [action for action in order[rank] if action is not None]
        order = _communicating(order)
        self.rank, self.ranks = rank, ranks
        self.senders: dict[int, Sender] = {}
        self.receivers: dict[int, Receiver] = {}
        for peer in range(group.size()):
            if peer == rank:
                continue
            if messages_between(order, rank, peer, ranks, self.num_stages):
                self.senders[peer] = Sender(group, peer)
            if messages := messages_between(order, peer, rank, ranks, self.num_stages):
                self.receivers[peer] = Receiver(group, peer, messages, self.stages)
        self.last_backward = {a.stage_index: a for a in self.actions if a.computation_type in (BACKWARD, WEIGHT)}

    def rank_of_input(self, action: Action) -> int | None:
        """The rank that computes the input of a computation, if it is another one."""
        needed = input_of(action, self.num_stages)
        rank = None if needed is None else self.ranks[needed.stage_index]
        return None if rank == self.rank else rank

    def abort(self, reason: str) -> None:
        """Makes the other ranks fail instead of waiting for this one."""
        self._group.abort(f"rank {self.rank} failed in a pipeline: {reason}")

    def finish(self) -> None:
        """Ends the step: the engine waits for the messages that this rank has sent."""
        for sender in self.senders.values():
            sender.finish()
        for receiver in self.receivers.values():
            receiver.finish()


def _require_defaults(function: str, **values) -> None:
    """Raises NotImplementedError if a value is set."""
    for name, value in values.items():
        if value is not None:
            raise NotImplementedError(f"[{function}] {name} is not supported: pass the whole batch")


class _PipelineSchedule:
    """The common base of schedules with one and with several stages per rank."""

    def __init__(self, stages: list[PipelineStage], n_microbatches: int, loss_fn, args_chunk_spec, kwargs_chunk_spec,
                 output_merge_spec, scale_grads: bool):  # fmt: skip
        if n_microbatches < 1:
            raise ValueError(f"expected at least 1 microbatch, got {n_microbatches}")
        self._all_stages, self._n_microbatches, self._loss_fn = stages, n_microbatches, loss_fn
        self._args_chunk_spec, self._kwargs_chunk_spec = args_chunk_spec, kwargs_chunk_spec
        self._output_merge_spec, self.scale_grads = output_merge_spec, scale_grads
        self._has_backward = loss_fn is not None
        self._num_stages, self._steps = stages[0].num_stages, {}
        self.pp_group_size, self.rank = stages[0].group_size, stages[0].group_rank
        self.pipeline_order: Order = {}

    def step(
        self, *args, target=None, losses: list | None = None, return_outputs: bool = True, loss_kwargs: dict | None = None,
        arg_mbs: list | None = None, kwarg_mbs: list | None = None, target_mbs: list | None = None,
        finalize_gradients: bool = True, **kwargs,
    ):  # fmt: skip
        """Runs one batch: divides it into microbatches and runs forward and, if there is a loss, backward passes.

        Does not wait in this process, except that the first step waits for the shapes of the previous stage's outputs.

        Args:
            args: the model's arguments, on the rank of the first stage only.
            target: the second argument of the loss; required on the rank of the last stage, and not used elsewhere.
            losses: a list that gets the loss of each microbatch, on the rank of the last stage.
            return_outputs: whether the outputs are returned on the rank of the last stage.
            loss_kwargs, arg_mbs, kwarg_mbs, target_mbs: None; not supported.
            finalize_gradients: True.
            kwargs: keyword arguments of the submodules of this rank's stages.

        Returns:
            The outputs of the last stage for the whole batch, on its rank; None on other ranks.

        Raises:
            RuntimeError: gradients are disabled.
            PipeliningShapeError: a stage's outputs have other shapes than those of the first microbatch.
            NotImplementedError: microbatches that the caller has divided, arguments of the loss, or gradients not scaled.

        If a stage or the loss raises an exception, the group is aborted, so that the other ranks get an error with its text.
        """
        _require_defaults("step", loss_kwargs=loss_kwargs, arg_mbs=arg_mbs, kwarg_mbs=kwarg_mbs, target_mbs=target_mbs)
        if finalize_gradients is not True:
            raise NotImplementedError("[step] finalize_gradients=False is not supported")
        if self._has_backward and not _C.is_grad_enabled():
            raise RuntimeError(
                "step() requires gradients to be enabled for backward computation; it should not be used under "
                "torch.no_grad() context. Please call eval() instead."
            )
        return self._run(args, kwargs, target, losses, return_outputs, self._has_backward)

    def eval(
        self, *args, target=None, losses: list | None = None, arg_mbs: list | None = None, kwarg_mbs: list | None = None,
        target_mbs: list | None = None, return_outputs: bool = True, **kwargs,
    ):  # fmt: skip
        """Like step(), without backward passes."""
        _require_defaults("eval", arg_mbs=arg_mbs, kwarg_mbs=kwarg_mbs, target_mbs=target_mbs)
        return self._run(args, kwargs, target, losses, return_outputs, False)

    def _order_of(self, has_backward: bool) -> Order:
        if has_backward:
            return self.pipeline_order
        return {rank: [a for a in actions if a is not None and a.computation_type == FORWARD]
                for rank, actions in self.pipeline_order.items()}  # fmt: skip

    def _prepared(self, has_backward: bool) -> _Step:
        if has_backward not in self._steps:
            order = self._order_of(has_backward)
            ranks = stage_ranks(_communicating(order), self._num_stages, self._n_microbatches)
            for stage in self._all_stages:
                if ranks[stage.stage_index] != self.rank:
                    raise ValueError(f"stage {stage.stage_index} belongs to rank {ranks[stage.stage_index]} of the group, "
                                     f"not to rank {self.rank}")  # fmt: skip
                stage.stage_index_to_group_rank = dict(ranks)
            self._steps[has_backward] = _Step(order, self._all_stages, ranks)
        return self._steps[has_backward]

    def _run(self, args: tuple, kwargs: dict, target, losses, return_outputs: bool, has_backward: bool):
        step = self._prepared(has_backward)
        last = next((stage for stage in self._all_stages if stage.is_last), None)
        self._check_arguments(args, target, losses, last)
        for stage in self._all_stages:
            stage.has_backward = has_backward
            stage.clear_runtime_states()
        batch = _Batch(self, step, args, kwargs, target if last is not None else None, return_outputs)
        batch.run()
        if last is None:
            return None
        if losses is not None:
            losses[:] = [batch.losses[i] for i in sorted(batch.losses)]
        if not return_outputs:
            return None
        last.output_chunks = [batch.outputs[i] for i in range(self._n_microbatches)]
        return merge_chunks(last.output_chunks, self._output_merge_spec)

    def _check_arguments(self, args: tuple, target, losses, last: PipelineStage | None) -> None:
        if args and not any(stage.is_first for stage in self._all_stages):
            raise AssertionError("expected positional arguments only on the rank of the first stage")
        if losses is not None and not isinstance(losses, list):
            raise TypeError(f"losses must be a list but got a {type(losses)}")
        if last is not None and self._loss_fn is not None and not isinstance(target, Tensor):
            raise TypeError(f"expected a tensor in `target` for the loss, got {type(target).__name__}")


class _Batch:
    """The microbatches of one step on this rank."""

    def __init__(
        self, schedule: _PipelineSchedule, step: _Step, args: tuple, kwargs: dict, target, keeps_outputs: bool
    ):
        count = schedule._n_microbatches
        self._schedule, self._step, self._keeps_outputs = schedule, step, keeps_outputs
        if args or kwargs:
            self._args, self._kwargs = split_args_kwargs_into_chunks(
                args, kwargs, count, schedule._args_chunk_spec, schedule._kwargs_chunk_spec
            )
        else:
            self._args, self._kwargs = [()] * count, [{}] * count
        self._targets = None if target is None else list(_C.torch.tensor_split(target, count))
        self._local: dict[Action, list[Tensor]] = {}  # inputs of computations that this rank has computed itself
        self.outputs: dict[int, Any] = {}
        self.losses: dict[int, Tensor] = {}

    def run(self) -> None:
        """Runs all computations of this rank, and scales the gradients.

        If one raises an exception, the group is aborted, because the other ranks wait for messages of this one.
        """
        actions = self._step.actions
        for i, action in enumerate(actions):
            try:
                inputs = None if action.computation_type == WEIGHT else self._inputs(_as_sent(action))
                if i + 1 < len(actions) and actions[i + 1].computation_type != WEIGHT:
                    self._start(_as_sent(actions[i + 1]))
                computed = self._compute(action, inputs)
                if action.computation_type != WEIGHT:
                    self._deliver(_as_sent(action), computed)
            except Exception as error:
                self._step.abort(f"{action} raised {type(error).__name__}: {error}")
                raise
        if self._step.last_backward and self._schedule.scale_grads:
            for stage in self._step.stages.values():
                stage.scale_grads(self._schedule._n_microbatches)
        self._step.finish()

    def _start(self, action: Action) -> None:
        """Starts to receive the input of the next computation while the engine computes the current one."""
        peer = self._step.rank_of_input(action)
        if peer is not None:
            self._step.receivers[peer].start(action, may_wait=False)

    def _inputs(self, action: Action) -> list[Tensor] | None:
        peer = self._step.rank_of_input(action)
        if peer is None:
            return self._local.pop(action, None)
        tensors, arrived = self._step.receivers[peer].take(action)
        if peer in self._step.senders:
            self._step.senders[peer].release(arrived)
        return tensors

    def _compute(self, action: Action, inputs: list[Tensor] | None) -> list[Tensor]:
        """Returns what the next computation gets."""
        stage, i = self._step.stages[action.stage_index], action.microbatch_index
        if action.computation_type == BACKWARD:
            return stage.backward_one_chunk(i, inputs, action == self._step.last_backward[stage.stage_index])
        if action.computation_type == INPUT:
            return stage.backward_input_one_chunk(i, inputs)
        if action.computation_type == WEIGHT:
            stage.backward_weight_one_chunk(i)
            return []
        args = self._args[i] if stage.is_first else tuple(inputs)
        output = stage.forward_one_chunk(i, args, self._kwargs[i])
        if not stage.is_last:
            return list(_as_tuple(output))
        if self._keeps_outputs:
            self.outputs[i] = output
        if self._schedule._loss_fn is not None:
            self.losses[i] = self._schedule._loss_fn(output, self._targets[i])
            stage.set_loss(i, self.losses[i])
        return []

    def _deliver(self, action: Action, tensors: list[Tensor]) -> None:
        user = user_of(action, self._step.num_stages)
        if user is None:
            return
        peer = self._step.ranks[user.stage_index]
        if peer == self._step.rank:
            self._local[user] = tensors
            return
        stage = self._step.stages[action.stage_index]
        if action.computation_type == FORWARD and stage.describes_outputs:
            self._step.senders[peer].describe(stage._outputs_meta)
            stage.describes_outputs = False
        self._step.senders[peer].send(tensors)


class PipelineScheduleSingle(_PipelineSchedule):
    """Base class of schedules with one stage per rank. Stage i is on rank i of the group.

    Args:
        stage: this rank's stage.
        n_microbatches: the number of microbatches of a batch.
        loss_fn: called with a microbatch's output and target. None: no backward passes.
        args_chunk_spec, kwargs_chunk_spec: how arguments are divided; by default along dimension 0.
        output_merge_spec: how outputs are merged; by default along dimension 0.
        scale_grads: whether gradients are divided by the number of microbatches, as a loss that is a mean requires.
    """

    def __init__(
        self, stage: PipelineStage, n_microbatches: int, loss_fn: Callable | None = None, args_chunk_spec=None,
        kwargs_chunk_spec=None, output_merge_spec=None, scale_grads: bool = True,
    ):  # fmt: skip
        super().__init__(
            [stage], n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads
        )
        if stage.num_stages != stage.group_size:
            raise ValueError(f"expected one stage per rank, got {stage.num_stages} stages and {stage.group_size} ranks")
        self._stage = stage


class ScheduleGPipe(PipelineScheduleSingle):
    """Runs all forward passes, then all backward passes.

    Source: Y. Huang et al., "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism", 2019.
    """

    @functools.wraps(PipelineScheduleSingle.__init__)
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.pipeline_order = _order.gpipe(self._num_stages, self._n_microbatches)


class Schedule1F1B(PipelineScheduleSingle):
    """Alternates forward and backward passes: a rank keeps the activations of at most one microbatch per stage.

    Raises:
        ValueError: there are fewer microbatches than stages.

    Source: D. Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", 2019.
    """

    @functools.wraps(PipelineScheduleSingle.__init__)
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self._n_microbatches < self._num_stages:
            raise ValueError(
                f"Number of microbatches ({self._n_microbatches}) must be greater than or equal to the number of stages "
                f"({self._num_stages})."
            )
        self.pipeline_order = _order.one_forward_one_backward(self._num_stages, self._n_microbatches)


class PipelineScheduleMulti(_PipelineSchedule):
    """Base class of schedules with several stages per rank. A subclass sets `pipeline_order`.

    Args:
        stages: this rank's stages.
        backward_requires_autograd, defer_pp_recv, max_active_stages, unshard_lookahead, defer_reduce_grad_wait,
            max_outstanding_sends: the defaults; other values are not supported, because the engine orders the messages.
        Others: see PipelineScheduleSingle.
    """

    def __init__(
        self, stages: list[PipelineStage], n_microbatches: int, loss_fn: Callable | None = None, args_chunk_spec=None,
        kwargs_chunk_spec=None, output_merge_spec=None, scale_grads: bool = True, backward_requires_autograd: bool = True,
        defer_pp_recv: bool = False, max_active_stages: int = 3, unshard_lookahead: str = "full", *,
        defer_reduce_grad_wait: bool = False, max_outstanding_sends: int | None = None,
    ):  # fmt: skip
        if not stages:
            raise ValueError("expected at least one stage")
        for name, value, default in (
            ("backward_requires_autograd", backward_requires_autograd, True), ("defer_pp_recv", defer_pp_recv, False),
            ("max_active_stages", max_active_stages, 3), ("unshard_lookahead", unshard_lookahead, "full"),
            ("defer_reduce_grad_wait", defer_reduce_grad_wait, False), ("max_outstanding_sends", max_outstanding_sends, None),
        ):  # fmt: skip
            if value != default:
                raise NotImplementedError(f"[{type(self).__name__}] {name}={value!r} is not supported")
        super().__init__(
            stages, n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads
        )
        self._stages = stages
        if stages[0].num_stages != len(stages) * stages[0].group_size:
            raise ValueError(
                f"expected the same number of stages on all ranks, got {stages[0].num_stages} stages and {len(stages)} on "
                f"this rank of {stages[0].group_size}"
            )


class ScheduleLoopedBFS(PipelineScheduleMulti):
    """Runs all microbatches through the first stage of a rank, then through its next one.

    Source: J. Lamy-Poirier, "Breadth-First Pipeline Parallelism", 2022.
    """

    def __init__(
        self, stages: list[PipelineStage], n_microbatches: int, loss_fn: Callable | None = None, output_merge_spec=None,
        scale_grads: bool = True, backward_requires_autograd: bool = True, defer_pp_recv: bool = False,
        max_active_stages: int = 3, unshard_lookahead: str = "full", *, defer_reduce_grad_wait: bool = False,
        max_outstanding_sends: int | None = None,
    ):  # fmt: skip
        super().__init__(
            stages, n_microbatches, loss_fn, None, None, output_merge_spec, scale_grads, backward_requires_autograd, defer_pp_recv,
            max_active_stages, unshard_lookahead, defer_reduce_grad_wait=defer_reduce_grad_wait,
            max_outstanding_sends=max_outstanding_sends,
        )  # fmt: skip
        self.pipeline_order = _order.looped_breadth_first(self.pp_group_size, len(stages), n_microbatches)


class ScheduleInterleaved1F1B(PipelineScheduleMulti):
    """1F1B with several stages per rank: stage i is on rank i modulo the number of ranks.

    Raises:
        ValueError: the number of microbatches is not a multiple of ``max(1, n_microbatches // ranks)``.

    Source: D. Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters", 2021.
    """

    @functools.wraps(PipelineScheduleMulti.__init__)
    def __init__(self, stages: list[PipelineStage], n_microbatches: int, *args, **kwargs):
        super().__init__(stages, n_microbatches, *args, **kwargs)
        self.pipeline_order = _order.interleaved(self.pp_group_size, len(stages), n_microbatches)


class ScheduleInterleavedZeroBubble(PipelineScheduleMulti):
    """1F1B with several stages per rank, whose gradients of weights are computed where a rank would wait: stage i is on rank i
    modulo the number of ranks.

    A divided backward pass computes the gradients of activations twice, so that it pays where ranks wait for each other.

    Source: P. Qi et al., "Zero Bubble Pipeline Parallelism", 2023.
    """

    @functools.wraps(PipelineScheduleMulti.__init__)
    def __init__(self, stages: list[PipelineStage], n_microbatches: int, *args, **kwargs):
        super().__init__(stages, n_microbatches, *args, **kwargs)
        ranks, count = self.pp_group_size, len(stages)
        stages_of = {rank: list(range(rank, ranks * count, ranks)) for rank in range(ranks)}
        self.pipeline_order = _order.zero_bubble(stages_of, n_microbatches, ranks * count, splits_all=True)


class _VShaped(PipelineScheduleMulti):
    """Schedules with two stages per rank, in the shape of a V: rank r has the stages r and 2 * ranks - 1 - r."""

    _splits_all: bool

    @functools.wraps(PipelineScheduleMulti.__init__)
    def __init__(self, stages: list[PipelineStage], n_microbatches: int, *args, **kwargs):
        super().__init__(stages, n_microbatches, *args, **kwargs)
        if len(stages) != 2:
            raise ValueError(f"{type(self).__name__} requires exactly 2 stages per rank, but got {len(stages)}.")
        ranks = self.pp_group_size
        self.pipeline_order = _order.zero_bubble(_order.v_shaped(ranks), n_microbatches, 2 * ranks, self._splits_all)


class ScheduleZBVZeroBubble(_VShaped):
    """Two stages per rank in the shape of a V; all backward passes are divided. The loss is on the rank of the first stage.

    Source: P. Qi et al., "Pipeline Parallelism with Controllable Memory", 2024.
    """

    _splits_all = True


class ScheduleDualPipeV(_VShaped):
    """Two stages per rank in the shape of a V; backward passes are divided only after the last forward pass of a rank.

    Forward and backward passes of two microbatches follow each other; the engine does not overlap them.

    Source: DeepSeek-AI, "DualPipe" (the variant in the shape of a V), 2025.
    """

    _splits_all = False


_BY_NAME = {
    "1F1B": Schedule1F1B, "GPipe": ScheduleGPipe, "Interleaved1F1B": ScheduleInterleaved1F1B,
    "LoopedBFS": ScheduleLoopedBFS, "InterleavedZeroBubble": ScheduleInterleavedZeroBubble,
    "ZBVZeroBubble": ScheduleZBVZeroBubble, "DualPipeV": ScheduleDualPipeV,
    "PipelineScheduleSingle": PipelineScheduleSingle, "PipelineScheduleMulti": PipelineScheduleMulti,
}  # fmt: skip


def get_schedule_class(schedule_name: str) -> type:
    """Returns a schedule class by its name, such as "1F1B"; upper and lower case are equal."""
    by_lower = {name.lower(): schedule for name, schedule in _BY_NAME.items()}
    if schedule_name.lower() not in by_lower:
        raise ValueError(f"Unknown schedule name '{schedule_name}'. The valid options are {list(_BY_NAME)}")
    return by_lower[schedule_name.lower()]


__getattr__, __dir__ = defined_by(globals(), "_liveness", "PipelineActivationLiveness", "analyze_pipeline_activation_liveness")
