"""Every sample of every operator with distributed arguments, in a process that controls three engines."""

from __future__ import annotations

import functools
import itertools
import math
import random
import warnings

import numpy as np

import teletensor as torch
from teletensor.distributed.device_mesh import init_device_mesh
from teletensor.distributed.tensor import DTensor, Partial, Replicate, Shard
from teletensor.distributed.tensor._spec import Spec, local_box

from ....operators.samples import SAMPLES, arguments, call

MAX_COMBINATIONS = 24  # of placements, per sample
MANY_ARGUMENTS = 8  # of a sample whose combinations are MIN_COMBINATIONS: each costs a transfer and a gradient per argument
MIN_COMBINATIONS = 8


@functools.cache
def mesh():
    torch.connect_all(3)
    return init_device_mesh("cpu", (3,))


def distributed(array: np.ndarray, placement, requires_grad: bool) -> DTensor:
    """The array in a placement; each engine receives its part from this process."""
    of, locals_ = mesh(), []
    spec = Spec(of, [placement])
    for k, member in enumerate(of._members()):
        offsets, sizes = local_box(spec, array.shape, member)
        part = array[tuple(slice(o, o + n) for o, n in zip(offsets, sizes, strict=True))]
        if isinstance(placement, Partial):
            part = part * [0.5, 0.25, 0.25][k] if array.dtype.kind in "fc" else part * (k == 1)
        with member.session():
            local = torch.tensor(np.ascontiguousarray(part).reshape(part.shape))
        local.requires_grad = requires_grad
        locals_.append(local)
    return DTensor.from_local(locals_, of, [placement], shape=array.shape) if not requires_grad else _leaf(locals_, spec, array)


def _leaf(locals_, spec, array) -> DTensor:
    from teletensor.distributed.tensor._dispatch import make

    return make(locals_, spec, array.shape)


def placements(array: np.ndarray) -> list:
    """The placements to try: whole, divided along each dimension and, for numbers, as a sum."""
    choices = [Replicate(), *(Shard(d) for d in range(array.ndim))]
    return [*choices, Partial()] if array.dtype.kind in "fciu" else choices


def combinations(arrays: list[np.ndarray]) -> list[tuple]:
    """Placements of all arguments: all combinations, or a fixed choice of them."""
    choices = [placements(array) for array in arrays]
    number = math.prod(map(len, choices))
    draw = random.Random(number)
    if len(arrays) < MANY_ARGUMENTS:
        every = list(itertools.product(*choices))
        return every if number <= MAX_COMBINATIONS else draw.sample(every, MAX_COMBINATIONS)
    # Each placement of each argument occurs.
    columns = [(of_one * MIN_COMBINATIONS)[:MIN_COMBINATIONS] for of_one in choices]
    for column in columns:
        draw.shuffle(column)
    return list(zip(*columns, strict=True))


def arrays_of(sample) -> list[np.ndarray]:
    found = []
    arguments(torch, sample, lambda name, a: found.append(a))
    return found


def tensors_of(results) -> list:
    return [r for r in results if isinstance(r, torch.Tensor)]


def whole(tensor) -> torch.Tensor:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def computed(sample, make) -> tuple[list, list]:
    """The results, and the arguments that `make(number, array)` made."""
    made = []

    def convert(name, array):
        made.append(make(len(made), array))
        return made[-1]

    return tensors_of(call(torch, sample, arguments(torch, sample, convert))), made


def differentiable(sample) -> bool:
    entry = sample.operator.entry
    return bool(sample.operator.differentiable_params) and entry.get("grad") != "none" and entry.get("checked_inputs") != []


class Expected:
    """The values of an ordinary tensor, read once."""

    def __init__(self, tensor) -> None:
        self.dtype, self.values = tensor.dtype, tensor.detach().numpy()

    def compare(self, what: str, actual) -> None:
        actual = whole(actual).detach()
        assert tuple(actual.shape) == self.values.shape and actual.dtype == self.dtype, (
            f"{what}: got {tuple(actual.shape)} {actual.dtype}, expected {self.values.shape} {self.dtype}"
        )
        if actual.numel():
            np.testing.assert_allclose(actual.numpy(), self.values, rtol=1e-6, atol=1e-6, err_msg=what)


def check_sample(sample) -> None:
    arrays = arrays_of(sample)
    if not arrays or "empty" in sample.operator.name:
        return
    wants = [differentiable(sample) and a.dtype.kind in "fc" for a in arrays]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, leaves = computed(sample, lambda i, a: torch.tensor(np.ascontiguousarray(a).reshape(a.shape)).requires_grad_(wants[i]))
        roots = [r for r in expected if r.requires_grad]
        if roots:
            try:
                sum((r * torch.arange(r.numel()).reshape(r.shape).to(r.dtype)).sum().abs() for r in roots).backward()
                gradients = [leaf.grad if leaf.grad is None else Expected(leaf.grad) for leaf in leaves]
            except NotImplementedError:  # a derivative that does not exist
                roots, wants = [], [False] * len(wants)
        expected = [Expected(value) for value in expected]
        for chosen in combinations(arrays):
            what = f"{sample} {', '.join(map(str, chosen))}"
            try:
                results, made = computed(sample, lambda i, a: distributed(a, chosen[i], wants[i]))  # noqa: B023
            except NotImplementedError as error:
                assert "expected replicated tensors, which it writes" in str(error), what
                continue
            assert len(results) == len(expected), what
            for result, value in zip(results, expected, strict=True):
                value.compare(what, result)
            if not roots:
                continue
            roots = [r for r in results if r.requires_grad]
            weights = [
                distributed(np.arange(r.numel(), dtype="float64").reshape(tuple(r.shape)), Replicate(), False).to(r.dtype)
                for r in roots
            ]
            sum((r * w).sum().abs() for r, w in zip(roots, weights, strict=True)).backward()
            for i, (tensor, gradient) in enumerate(zip(made, gradients, strict=True)):
                if gradient is not None:
                    gradient.compare(f"{what}: gradient {i}", tensor.grad)


def check_operator(rank: int, size: int, name: str) -> list[str]:
    """Returns the failures of an operator's samples."""
    mesh()
    failures = []
    for sample in SAMPLES:
        if sample.operator.name != name:
            continue
        try:
            check_sample(sample)
        except Exception as error:  # noqa: BLE001 - reported by the test
            lines = [line for line in str(error).splitlines() if line.strip()]
            failures.append(f"{sample}: {type(error).__name__}: {' | '.join(lines[:6])}")
    return failures
