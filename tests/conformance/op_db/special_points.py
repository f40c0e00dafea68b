"""Values and derivatives where functions are not smooth: at zeros, ties, bounds of domains, infinities and NaN."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

import teletensor

from .convert import Converter, difference, leaves, rebind
from .forms import Form

INF, NAN = float("inf"), float("nan")
# By name, the numbers from which every element of an argument that requires grad is drawn.
POINTS = {
    "zeros": (0.0,),
    "ones": (1.0,),
    "ties": (-1.0, 0.0, 1.0),
    "halves": (-0.5, 0.0, 0.5, 1.0, 2.0),
    "large": (-30.0, 0.0, 30.0),
    "infinite": (-INF, -1.0, 0.0, 1.0, INF, NAN),
}
ONLY_NAN = "only where PyTorch has NaN: "
REFUSALS = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, AttributeError, AssertionError)


def samples_at_points(sample) -> list[tuple[str, Any]]:
    """The sample at every special point, by the point's name."""
    rows = []
    for name, numbers in POINTS.items():
        generator = torch.Generator().manual_seed(0)
        input_, args, kwargs = _drawn((sample.input, sample.args, sample.kwargs), numbers, generator)
        process = sample.output_process_fn_grad
        rows.append((name, type(sample)(input_, args=args, kwargs=kwargs, output_process_fn_grad=process)))
    return rows


def _drawn(value: Any, numbers: tuple[float, ...], generator: torch.Generator) -> Any:
    """Nested arguments in which new leaves with these numbers replace the tensors that require grad."""
    if isinstance(value, torch.Tensor):
        if not value.requires_grad or value.layout is not torch.strided:
            return value
        chosen = torch.tensor(numbers, dtype=torch.float64)

        def draw() -> torch.Tensor:
            return chosen[torch.randint(len(numbers), value.shape, generator=generator)]

        new = torch.complex(draw(), draw()) if value.is_complex() else draw()
        return new.to(value.dtype).requires_grad_()
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_drawn(v, numbers, generator) for v in value)
    if isinstance(value, dict):
        return {k: _drawn(v, numbers, generator) for k, v in value.items()}
    return value


@dataclass
class Derivatives:
    """The results of a call in one of the packages, and as many of its derivatives as were computed."""

    package: Any
    inputs: list
    orders: list[list] = field(default_factory=list)

    def differentiate(self, weights: list) -> None:
        """Computes the next derivatives: those of the sum of the products of the last ones and `weights`."""
        pairs = [(r, w) for r, w in zip(self.orders[-1], weights) if r.requires_grad]
        found = [None] * len(self.inputs)
        if pairs:
            results, gradients = zip(*pairs)
            again = len(self.orders) == 1
            found = self.package.autograd.grad(results, self.inputs, gradients, allow_unused=True, create_graph=again)
        zeros = self.package.zeros_like
        # clone(): PyTorch's gradients may be zeros without a storage
        self.orders.append([zeros(x) if g is None else g.clone() for x, g in zip(self.inputs, found)])
        _read(self.orders[-1])


def _read(values: list) -> None:
    """Waits for our values, since errors that depend on data are raised then."""
    for value in values:
        if isinstance(value, teletensor.Tensor):
            value.detach().to_dense().reshape(-1)[:1].tolist()


def _weights(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    return [(1 + torch.arange(t.numel()) % 7).to(t.dtype).reshape(t.shape) for t in tensors]


def _refusal(step: Any, *args: Any) -> Exception | None:
    try:
        step(*args)
    except REFUSALS as e:
        return e
    return None


def _found(ours: list, theirs: list, factor: float, absolute: bool) -> str:
    """How results differ, with a mark if they differ only where PyTorch has NaN."""
    found = difference(ours, theirs, tolerance_factor=factor, absolute=absolute)
    if not found or len(ours) != len(theirs):
        return found
    with_nan = []
    for mine, other in zip(ours, theirs):
        if not isinstance(other, torch.Tensor) or not isinstance(mine, teletensor.Tensor) or mine.shape != other.shape:
            return found
        if other.layout is not torch.strided:
            return found
        there = teletensor.tensor(np.asarray(torch.isnan(other.detach())))
        with_nan.append(teletensor.where(there, NAN, mine.detach()) if there.any() else mine)
    return found if difference(with_nan, theirs, tolerance_factor=factor, absolute=absolute) else ONLY_NAN + found


def differences(form: Form, wrapper: Any, sample: Any, allowance: Any) -> dict[str, str]:
    """How values and derivatives of a sample differ, by what is compared; empty texts where they do not.

    Leaves out what PyTorch refuses, and what follows a difference.
    """
    convert = Converter()
    args, kwargs, process = (sample.input, *sample.args), sample.kwargs, sample.output_process_fn_grad
    mine_args, mine_kwargs = convert(args), convert(kwargs)
    pairs = [(t, m) for t, m in convert.pairs.values() if t.requires_grad and t.is_leaf]
    theirs, ours = Derivatives(torch, [t for t, _ in pairs]), Derivatives(teletensor, [m for _, m in pairs])

    def call_ours() -> None:
        ours.orders.append(list(leaves(rebind(process)(rebind(wrapper)(form.ours, *mine_args, **mine_kwargs)))))
        _read(ours.orders[0])

    def call_theirs() -> None:
        theirs.orders.append(list(leaves(process(wrapper(form.theirs, *args, **kwargs)))))

    if not pairs or _refusal(call_theirs):
        return {}
    if refusal := _refusal(call_ours):
        return {"value": f"{type(refusal).__name__}: {refusal}"}
    found = {"value": _found(ours.orders[0], theirs.orders[0], 1.0, allowance.absolute)}
    kept = [(t, m) for t, m in zip(theirs.orders[0], ours.orders[0]) if isinstance(t, torch.Tensor) and t.requires_grad]
    theirs.orders[0], ours.orders[0] = [t for t, _ in kept], [m for _, m in kept]
    last = "value"
    for name in ("first derivative", "second derivative") if kept else ():
        if found[last]:
            break
        weights, last = _weights(theirs.orders[-1]), name
        if _refusal(theirs.differentiate, weights):
            break
        if refusal := _refusal(ours.differentiate, [Converter()(w) for w in weights]):
            found[name] = f"{type(refusal).__name__}: {refusal}"
        else:
            found[name] = _found(ours.orders[-1], theirs.orders[-1], 100 * allowance.tolerance_factor, False)
    return found
