"""Averages of parameters instead of gradients. Each function runs on all ranks."""

from __future__ import annotations

import warnings

import teletensor as torch
import teletensor.distributed as dist
from teletensor import nn
from teletensor.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import PostLocalSGDState, post_localSGD_hook
from teletensor.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from teletensor.distributed.algorithms.model_averaging.hierarchical_model_averager import HierarchicalModelAverager
from teletensor.distributed.algorithms.model_averaging.utils import average_parameters, get_params_to_average
from teletensor.distributed.optim import PostLocalSGDOptimizer
from teletensor.nn.parallel import DistributedDataParallel


def _parameter(value: float, dtype=torch.float32) -> nn.Parameter:
    p = nn.Parameter(torch.full((2, 3), value, dtype=dtype))
    p.grad = torch.zeros_like(p)
    return p


def averages(rank: int, size: int) -> list:
    """Parameters of two dtypes, and of a group."""
    a, b = _parameter(float(rank)), _parameter(10.0 * rank, torch.float64)
    average_parameters(iter([a, b]), None)
    group = dist.new_group([0, 1])
    c = _parameter(float(rank))
    average_parameters([c], group)
    unused = nn.Parameter(torch.ones(1))
    found = get_params_to_average([{"params": [a, unused]}, {"params": [b]}])
    assert [id(p) for p in found] == [id(a), id(b)]
    return [a[0, 0].item(), b[1, 2].item(), c[0, 0].item()]


def periodic(rank: int, size: int) -> list[float]:
    """The parameter after each step; before it, each rank sets another value."""
    averager = PeriodicModelAverager(period=2, warmup_steps=1)
    values = []
    for _ in range(5):
        p = _parameter(float(rank))
        averager.average_parameters([p])
        values.append(p[0, 0].item())
    return values


def hierarchical(rank: int, size: int) -> list[float]:
    averager = HierarchicalModelAverager({2: 2, 4: 4}, warmup_steps=1)
    values = []
    for _ in range(6):
        p = _parameter(float(rank))
        averager.average_parameters([p])
        values.append(p[0, 0].item())
    return values


def optimizer(rank: int, size: int) -> list:
    """A step moves the parameter by the rank's own gradient, every second one averages it."""
    p = _parameter(0.0)
    wrapped = PostLocalSGDOptimizer(torch.optim.SGD([p], lr=1.0), PeriodicModelAverager(2, 1))
    values = []
    for _ in range(3):
        p.grad = torch.full_like(p, -float(rank))
        wrapped.step()
        values.append(p[0, 0].item())
    state = wrapped.state_dict()
    other = PostLocalSGDOptimizer(torch.optim.SGD([p], lr=0.5), PeriodicModelAverager(2, 1))
    other.load_state_dict(state)
    values += [other.averager.step, other.param_groups[0]["lr"]]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        other.load_state_dict({key: value for key, value in state.items() if key != "step"})
    return [*values, other.averager.step, len(caught)]


def hook(rank: int, size: int, post: bool) -> list[float]:
    """The gradient of two first steps and two later ones."""
    pair = dist.new_subgroups(2)[0]
    module = DistributedDataParallel(nn.Linear(1, 1, bias=False))
    module.register_comm_hook(PostLocalSGDState(None, pair, 2, post), post_localSGD_hook)
    values = []
    for _ in range(4):
        module.zero_grad()
        module(torch.full((1, 1), float(rank))).sum().backward()
        values.append(module.module.weight.grad.item())
    return values


def rejected(rank: int, size: int) -> list[str]:
    messages = []
    for make in (
        lambda: PeriodicModelAverager(0), lambda: PeriodicModelAverager(2, -1), lambda: HierarchicalModelAverager({}),
        lambda: HierarchicalModelAverager({2: size + 1}), lambda: get_params_to_average([3]),
    ):  # fmt: skip
        try:
            make()
        except (ValueError, NotImplementedError) as error:
            messages.append(str(error))
    return messages
