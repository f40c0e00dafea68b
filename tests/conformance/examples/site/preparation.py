"""What both packages change before an example program runs: CPUs as accelerator, equal random numbers, recorded losses.

- `torch.accelerator` shows one CPU per rank. Numbers of devices, as in `model.to(0)`, stand for the CPU.
- Random numbers, which differ between the packages, are NumPy's, from the seed of the latest torch.manual_seed(), by
  default 0; those of random.randint() are from the seed 0. Uninitialised integers are zeros. LSTMs have no dropout.
- PyTorch, whose DTensors have no attention on CPUs, computes it from each rank's heads.
- The loss of each backward() is appended to a file per process in the folder EXAMPLE_RECORDS, with the time.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time

import numpy
import torch
from torch import nn
from torch.nn import functional as F

_rng = numpy.random.default_rng(0)


def prepare() -> None:
    """Changes `torch`."""
    random.randint = random.Random(0).randint  # of the program alone
    _use_cpus()
    _draw_with_numpy()
    _record_losses()
    if not nn.__name__.startswith("teletensor"):
        F.scaled_dot_product_attention = _attention_of_heads(F.scaled_dot_product_attention)


def _attention_of_heads(attention):
    def wrapper(query, key, value, *args, **kw):
        if not hasattr(query, "placements"):
            return attention(query, key, value, *args, **kw)
        from torch.distributed.tensor import DTensor

        output = attention(query.to_local(), key.to_local(), value.to_local(), *args, **kw)
        return DTensor.from_local(output, query.device_mesh, query.placements)

    return wrapper


def _use_cpus() -> None:
    shown = {
        "is_available": lambda: True,
        "device_count": lambda: int(os.environ["EXAMPLE_RANKS"]),
        "current_accelerator": lambda check_available=False: torch.device("cpu"),
        "current_device_index": lambda: 0,
        "set_device_index": lambda index: None,
        "device_index": lambda index: None,
    }
    for name, function in shown.items():
        setattr(torch.accelerator, name, _for_programs(function, getattr(torch.accelerator, name)))
    for owner in (torch.Tensor, nn.Module):
        owner.to = _to_cpu(owner.to)
    parallel = nn.parallel.DistributedDataParallel
    create = parallel.__init__
    parallel.__init__ = lambda self, module, device_ids=None, **more: create(self, module, **more)


def _for_programs(function, original):
    """Calls a function if a program does, and the original one if the package itself does."""

    def wrapper(*args, **kwargs):
        caller = sys._getframe(1).f_globals.get("__name__", "").partition(".")[0]
        return (original if caller in ("torch", "teletensor") else function)(*args, **kwargs)

    return wrapper


def _to_cpu(to):
    def wrapper(self, *args, **kwargs):
        if args and isinstance(args[0], int):
            args = ("cpu", *args[1:])
        return to(self, *args, **kwargs)

    return wrapper


def _fill(tensor, values):
    """Sets a tensor, or a DTensor of all ranks, to values of its whole shape, from a function that draws them."""
    if tensor.is_meta:
        return tensor
    values = torch.from_numpy(numpy.ascontiguousarray(values(tuple(tensor.shape)))).to(tensor.dtype)
    with torch.no_grad():
        if hasattr(tensor, "placements"):
            from torch.distributed.tensor import distribute_tensor

            values = distribute_tensor(values, tensor.device_mesh, tensor.placements)
        tensor.copy_(values)
    return tensor


def _uniform(low=0.0, high=1.0):
    return lambda shape: _rng.uniform(low, high, shape).astype(numpy.float32)


def _normal(mean=0.0, std=1.0):
    return lambda shape: (mean + std * _rng.standard_normal(shape)).astype(numpy.float32)


def _integers(low, high):
    return lambda shape: _rng.integers(low, high, shape)


def _size(size):
    return size[0] if len(size) == 1 and not isinstance(size[0], int) else size


def _draw_with_numpy() -> None:
    seed = torch.manual_seed

    def manual_seed(number):
        global _rng
        _rng = numpy.random.default_rng(number)
        return seed(number)

    torch.manual_seed = manual_seed
    torch.rand = lambda *size, **kw: _fill(torch.empty(*_size(size), **kw), _uniform())
    torch.randn = lambda *size, **kw: _fill(torch.empty(*_size(size), **kw), _normal())
    torch.randint = _randint
    torch.LongTensor = lambda *size: torch.zeros(*size, dtype=torch.int64) if isinstance(size[0], int) else torch.tensor(*size)
    torch.randperm = _randperm(torch.randperm)
    torch.utils.data.random_split = _random_split
    tensor = torch.Tensor
    tensor.uniform_ = lambda self, low=0.0, high=1.0, **kw: _fill(self, _uniform(low, high))
    tensor.normal_ = lambda self, mean=0.0, std=1.0, **kw: _fill(self, _normal(mean, std))
    tensor.random_ = _random(tensor.random_)
    _initialise_with_numpy()
    F.dropout = _dropout
    nn.Dropout.forward = lambda self, x: _dropout(x, self.p, self.training)
    create = nn.LSTM.__init__  # which draws the numbers for its dropout itself
    nn.LSTM.__init__ = lambda self, *args, dropout=0.0, **kw: create(self, *args, **kw)
    torch.distributions.Categorical.sample = _sample


def _initialise_with_numpy() -> None:
    def fan(tensor):
        return tensor[0].numel() if tensor.dim() > 1 else 1

    def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
        bound = (6 / (1 + a * a)) ** 0.5 / fan(tensor) ** 0.5
        return _fill(tensor, _uniform(-bound, bound))

    empty = nn.Module.to_empty

    def to_empty(self, **kw):
        empty(self, **kw)
        for parameter in self.parameters():  # a program may leave some of them uninitialised
            _fill(parameter, _normal(0, 0.1))
        return self

    nn.Module.to_empty = to_empty
    nn.init.uniform_ = lambda tensor, a=0.0, b=1.0, generator=None: _fill(tensor, _uniform(a, b))
    nn.init.normal_ = lambda tensor, mean=0.0, std=1.0, generator=None: _fill(tensor, _normal(mean, std))
    nn.init.trunc_normal_ = lambda tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None: _fill(
        tensor, lambda shape: _normal(mean, std)(shape).clip(a, b)
    )
    nn.init.kaiming_uniform_ = kaiming_uniform_


def _randint(*args, **kw):
    """randint(high, size) or randint(low, high, size)."""
    low, high = (0, args[0]) if len(args) == 2 else args[:2]
    return _fill(torch.empty(args[-1], dtype=kw.pop("dtype", torch.int64), **kw), _integers(low, high))


def _random(original):
    def random_(self, *bounds, **kw):
        if not bounds:  # a data loader's seed
            return original(self, **kw)
        return _fill(self, _integers(*((0, *bounds) if len(bounds) == 1 else bounds)))

    return random_


def _randperm(original):
    def randperm(n, generator=None, **kw):
        if generator is not None:  # of a sampler, whose order is the same in both packages
            return original(n, generator=generator, **kw)
        return torch.tensor(_rng.permutation(n), **kw)

    return randperm


def _random_split(dataset, lengths, generator=None):
    order, subsets = _rng.permutation(len(dataset)).tolist(), []
    for length in lengths:
        subsets.append(torch.utils.data.Subset(dataset, order[:length]))
        order = order[length:]
    return subsets


def _dropout(input, p=0.5, training=True, inplace=False):
    if not training or p == 0:
        return input
    return input * _fill(torch.empty(input.shape), lambda shape: (_rng.random(shape) >= p) / (1 - p))


def _sample(self, sample_shape=()):
    """One number per row, by the inverse of the distribution function."""
    probabilities = self.probs.detach().to(torch.float64).cumsum(-1).numpy()
    draws = _rng.random((*probabilities.shape[:-1], 1)) * probabilities[..., -1:]
    return torch.tensor((probabilities < draws).sum(-1).astype(numpy.int64))


def _record_losses() -> None:
    folder = os.environ["EXAMPLE_RECORDS"]

    def record(loss):
        value = loss.detach()
        value = value.full_tensor() if hasattr(value, "full_tensor") else value
        with open(os.path.join(folder, f"{os.getpid()}.jsonl"), "a") as file:
            file.write(json.dumps([float(value.sum().item()), time.time()]) + "\n")

    backward = torch.Tensor.backward

    def recorded(self, *args, **kwargs):
        record(self)
        return backward(self, *args, **kwargs)

    torch.Tensor.backward = recorded
    if torch.distributed.is_available():
        import torch.distributed.autograd as dist_autograd

        of_context = dist_autograd.backward

        def recorded_of_context(context_id, roots, *args, **kwargs):
            for root in roots:
                record(root)
            return of_context(context_id, roots, *args, **kwargs)

        dist_autograd.backward = recorded_of_context
