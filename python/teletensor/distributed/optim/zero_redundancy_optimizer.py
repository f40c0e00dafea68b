"""ZeroRedundancyOptimizer: an optimizer whose state is divided among the ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._C import Tensor
from ..._grad_mode import no_grad
from ...optim import Optimizer
from .. import distributed_c10d
from .._objects import gather_object
from ..algorithms.join import Join, Joinable, JoinHook

__all__ = ["ZeroRedundancyOptimizer"]


class _ZeROJoinHook(JoinHook):
    """Updates this rank's parameters, with the gradients that DistributedDataParallel's hook computed."""

    def __init__(self, zero: ZeroRedundancyOptimizer):
        self.zero = zero

    def main_hook(self) -> None:
        self.zero.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """Divides the parameters among the ranks. Each rank updates its own and keeps their state, and then sends them to all
    others. Gradients must be equal on all ranks, as DistributedDataParallel computes them.

    Each parameter belongs to one rank. They are assigned from the largest to the smallest, each to the rank that has the
    fewest elements so far.

    Args:
        params: the parameters or parameter groups, the same on all ranks; of one dtype.
        optimizer_class: the class of each rank's optimizer.
        process_group: the ranks; by default the group of init_process_group().
        parameters_as_bucket_view: has no effect on results; a rank's parameters are sent in one collective in both cases.
        defaults: options of the optimizer.

    Raises:
        NotImplementedError: ``overlap_with_ddp=True``.

    Source: S. Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", SC 2020.
    """

    def __init__(
        self, params, optimizer_class: type[Optimizer], process_group=None, parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False, **defaults: Any,
    ):  # fmt: skip
        if overlap_with_ddp:
            raise NotImplementedError("[ZeroRedundancyOptimizer] overlap_with_ddp=True is not supported")
        self.process_group = process_group or distributed_c10d._get_default_group()
        self.world_size, self.rank = self.process_group.size(), self.process_group.rank()
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self._optimizer_class = optimizer_class
        self._sizes = [0] * self.world_size  # number of elements of each rank's parameters
        self._by_rank: list[list[list[Tensor]]] = []  # parameters by group and rank
        self._consolidated: list[dict] = []
        self.optim: Optimizer | None = None
        Joinable.__init__(self)
        Optimizer.__init__(self, params, defaults)
        self._check_dtypes()
        groups = [self._local_group(i) for i in range(len(self.param_groups))]
        self.optim = optimizer_class(groups, **defaults)
        self.defaults = self.optim.defaults
        self.param_groups = [
            {**local, **own} for local, own in zip(self.optim.param_groups, self.param_groups, strict=True)
        ]
        self.state = self.optim.state

    def _check_dtypes(self) -> None:
        kinds = {p.dtype for g in self.param_groups for p in g["params"]}
        if len(kinds) > 1:
            raise ValueError(
                "ZeroRedundancyOptimizer only supports using the same type for all parameters, got "
                + " and ".join(sorted(map(str, kinds)))
            )

    def _local_group(self, index: int) -> dict:
        group = self.param_groups[index]
        return {**group, "params": self._by_rank[index][self.rank]}

    def add_param_group(self, param_group: dict) -> None:
        """Adds a group, the same on all ranks."""
        Optimizer.add_param_group(self, param_group)
        params: list[list[Tensor]] = [[] for _ in range(self.world_size)]
        for p in sorted(self.param_groups[-1]["params"], key=lambda p: p.numel(), reverse=True):
            rank = self._sizes.index(min(self._sizes))
            params[rank].append(p)
            self._sizes[rank] += p.numel()
        self._by_rank.append(params)
        if self.optim is not None:
            self._check_dtypes()
            self.optim.add_param_group(self._local_group(len(self.param_groups) - 1))

    def _copy_options(self) -> None:
        """Copies the groups' options, which schedulers change, to this rank's optimizer."""
        for group, local in zip(self.param_groups, self.optim.param_groups, strict=True):
            local.update({k: v for k, v in group.items() if k != "params"})

    def step(self, closure: Callable | None = None, **kwargs: Any):
        """Updates this rank's parameters and receives the others'. Returns the closure's loss, if a closure is given."""
        Join.notify_join_context(self)
        self._copy_options()
        loss = self.optim.step(closure, **kwargs) if closure is not None else self.optim.step(**kwargs)
        with no_grad():
            works = []
            for rank in range(self.world_size):
                params = [p.detach() for groups in self._by_rank for p in groups[rank]]
                if params:
                    works.append(self.process_group.broadcast(params, rank))
            for work in works:
                work.wait()
        return loss

    # The state.

    def _parameter_indices(self) -> dict[int, int]:
        numbers: dict[int, int] = {}
        for group in self.param_groups:
            for p in group["params"]:
                numbers[id(p)] = len(numbers)
        return numbers

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Collects the state of all ranks at one rank, where state_dict() returns it. All ranks must call it."""
        self._copy_options()
        numbers = self._parameter_indices()
        mine = {numbers[id(p)]: dict(state) for p, state in self.optim.state.items()}
        states: list | None = [None] * self.world_size if self.rank == to else None
        gather_object(mine, states, group=self.process_group, group_dst=to)
        self._consolidated = states or []

    def state_dict(self) -> dict:
        """The state of all ranks at the last consolidate_state_dict(), in the format of the optimizer's class.

        Raises:
            RuntimeError: the state was not collected at this rank.
        """
        if not self._consolidated:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to save the global state."
            )
        numbers = self._parameter_indices()
        state = {number: values for states in self._consolidated for number, values in states.items()}
        groups = [{**group, "params": [numbers[id(p)] for p in group["params"]]} for group in self.param_groups]
        return {"state": dict(sorted(state.items())), "param_groups": groups}

    def load_state_dict(self, state_dict: dict) -> None:
        """Loads a state of all parameters; each rank keeps that of its own."""
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if [len(g["params"]) for g in saved] != [len(g["params"]) for g in self.param_groups]:
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        by_parameter = {id(p): n for old, group in zip(saved, self.param_groups, strict=True)
                        for n, p in zip(old["params"], group["params"], strict=True)}  # fmt: skip
        groups, state = [], {}
        for old, local in zip(saved, self.optim.param_groups, strict=True):
            names = [by_parameter[id(p)] for p in local["params"]]
            groups.append({**old, "params": names})
            state.update({n: state_dict["state"][n] for n in names if state_dict["state"].get(n) is not None})
        self.optim.load_state_dict({"state": state, "param_groups": groups})
        self.state = self.optim.state
        for group, old in zip(self.param_groups, saved, strict=True):
            group.update({k: v for k, v in old.items() if k != "params"})

    # Join.

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Returns the hook of a Join context: it updates this rank's parameters."""
        return _ZeROJoinHook(self)

    @property
    def join_device(self):
        """The parameters' device."""
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self):
        """The group."""
        return self.process_group
