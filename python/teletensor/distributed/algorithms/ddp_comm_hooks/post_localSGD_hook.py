"""post_localSGD_hook: gradients are averaged over all ranks at first, then within groups or not at all."""

from __future__ import annotations

from ....futures import Future
from ..._grad_bucket import GradBucket
from ..._groups import new_subgroups
from ..._process_group import ProcessGroup
from . import default_hooks

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]


class PostLocalSGDState:
    """The state of post_localSGD_hook.

    Args:
        process_group: the ranks of the first steps; by default the group of init_process_group().
        subgroup: the ranks of the later steps; None: groups with as many ranks as the engine has GPUs.
        start_localSGD_iter: the number of first steps.
        post_local_gradient_allreduce: whether gradients are averaged within `subgroup` in the later steps.
    """

    __slots__ = ["process_group", "subgroup", "start_localSGD_iter", "post_local_gradient_allreduce", "iter"]

    def __init__(
        self, process_group: ProcessGroup | None, subgroup: ProcessGroup | None, start_localSGD_iter: int,  # noqa: N803
        post_local_gradient_allreduce: bool = True,
    ):  # fmt: skip
        self.process_group, self.subgroup = process_group, subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Counts a step after its last bucket."""
        self.iter += bucket.is_last()


def post_localSGD_hook(state: PostLocalSGDState, bucket: GradBucket) -> Future:  # noqa: N802 - PyTorch's name
    """Averages gradients over all ranks until step `start_localSGD_iter`, later within a subgroup.

    Use it with a PostLocalSGDOptimizer, whose averager must begin with the same step.
    """
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return default_hooks._allreduce_fut(state.process_group, bucket.buffer())
    if not state.post_local_gradient_allreduce:
        future: Future = Future()
        future.set_result(bucket.buffer())
        return future
    if state.subgroup is None:
        state.subgroup = new_subgroups()[0]
    return default_hooks._allreduce_fut(state.subgroup, bucket.buffer())
