"""A call of an operator with dual tensors, and what the rules for its tangents have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _C, _transforms
from .._C import Tensor
from .._grad_mode import inference_mode
from .._library.engine_operators import Operator
from ..autograd import gradients
from ._batch_call import NoRule
from ._batched import Batched
from ._transformed import Transformed


def is_continuous(tensor: Tensor) -> bool:
    """Whether a tensor's dtype can have derivatives."""
    return tensor.is_floating_point() or tensor.is_complex()


def batched_like(tensor: Tensor, other: Tensor) -> Tensor:
    """The tensor with an entry of its own for each entry of the vmaps that map over `other`."""
    if not isinstance(other, Batched):
        return tensor
    level = other._level
    if isinstance(tensor, Transformed) and tensor._level.number > level.number:
        return tensor.with_value(lambda value: batched_like(value, other))
    value = level.expanded(tensor)
    inside = batched_like(value, other._value)
    return tensor if level.has(tensor) and inside is value else level.wrap(inside)


class ForwardCall:
    """A call with dual tensors of one level, their primals and tangents."""

    def __init__(self, op: Operator, arguments: Sequence[Any], level: Any):
        self.op, self.level = op, level
        self.args = dict(zip(op.names, arguments, strict=True))
        self.primals = {name: level.primal(value) for name, value in self.args.items()}
        self.tangents: dict[str, Any] = {}  # by parameter, without those of zero; for a list of tensors a list
        for name, value in self.args.items():
            if isinstance(value, (list, tuple)):
                found: Any = [level.unpack(v)[1] for v in value]
                if any(t is not None for t in found):
                    self.tangents[name] = found
            elif (found := level.unpack(value)[1]) is not None:
                self.tangents[name] = found
        self._results: list | None = None

    @property
    def results(self) -> list:
        """The primals of the results."""
        if self._results is None:
            self._results = self.op.call(list(self.primals.values()))
        return self._results

    @results.setter
    def results(self, values: list) -> None:
        self._results = values

    def __getitem__(self, name: str) -> Any:
        return self.primals[name]

    def only(self, *names: str) -> None:
        """NoRule if other arguments than these have tangents."""
        if any(name not in names for name in self.tangents):
            raise NoRule

    def run(self, **changed: Any) -> list:
        """Calls the operator with its primals, of which some are changed."""
        return self.op.call([changed[n] if n in changed else v for n, v in self.primals.items()])

    def flat(self) -> list[tuple[Tensor, Tensor | None]]:
        """The tensors of the arguments with their tangents."""
        pairs = []
        for value in self.args.values():
            for v in value if isinstance(value, (list, tuple)) else [value]:
                if isinstance(v, Tensor):
                    pairs.append(self.level.unpack(v))
        return pairs

    def is_recorded(self) -> bool:
        """Whether a backward pass may follow, through the results or their tangents."""
        return is_recorded(self.flat())


def is_recorded(pairs: Sequence[tuple[Tensor, Tensor | None]]) -> bool:
    return _C.is_grad_enabled() and any(p.requires_grad or (t is not None and t.requires_grad) for p, t in pairs)


def fitted(tangent: Tensor | None, result: Tensor) -> Tensor | None:
    """The tangent with the dtype and size of its result."""
    if tangent is None or not is_continuous(result):
        return None
    if tangent.is_complex() and not result.is_complex():
        tangent = _C.torch.real(tangent)
    if tangent.dtype != result.dtype:
        tangent = tangent.to(result.dtype)
    return tangent if tangent.shape == result.shape else tangent.expand(result.shape)


def total(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    return b if a is None else a if b is None else a + b


def tangent_view(op: Operator, tangent: Tensor, arguments: Sequence[Any]) -> list[Tensor]:
    """A view of a tangent, whose strides may differ from the primal's: the result may be a copy."""
    if op.name == "view":
        return [tangent.reshape(arguments[1])]
    if op.name == "view_as":
        return [tangent.reshape(arguments[1].shape)]
    if op.name in ("view_as_complex", "unflatten"):
        tangent = tangent.contiguous()
    elif op.name == "as_strided":
        primal = arguments[0]
        copy = _C.ops.zeros_like(primal)
        if copy.stride() != primal.stride() or primal.storage_offset() != 0 or isinstance(tangent, Batched):
            raise NotImplementedError("[as_strided] forward mode: expected a dense tensor at the start of its storage")
        tangent = copy.copy_(tangent)
    return op.call([tangent, *arguments[1:]])


def twice_backward(
    compute: Callable[..., Sequence[Any]], primals: Sequence[Tensor], tangents: Sequence[Tensor | None]
) -> tuple[list, list[Tensor | None]]:
    """Returns the results of a function and their tangents, by its gradient: J^T u is linear in u, and J t is the derivative
    of it along t. The gradient must be differentiable.
    """
    recorded = is_recorded(list(zip(primals, tangents)))
    like = next(t for t in tangents if t is not None)
    with inference_mode(False):
        copies = [p if t is None else _transforms.leaf(batched_like(p, like)) for p, t in zip(primals, tangents)]
        results = list(compute(*copies))
        found: list[Tensor | None] = [None] * len(results)
        places = [i for i, r in enumerate(results) if isinstance(r, Tensor) and is_continuous(r) and r.requires_grad]
        vectors = [_C.torch.zeros_like(results[i]).requires_grad_() for i in places]
        if places:
            inputs = [(x, t) for x, t in zip(copies, tangents) if t is not None]
            products = gradients.grad([results[i] for i in places], [x for x, _ in inputs], vectors, create_graph=True, allow_unused=True)
            used = [(p, t) for p, (_, t) in zip(products, inputs) if p is not None and p.requires_grad]
            if used:
                rows = gradients.grad(
                    [p for p, _ in used], vectors, [t for _, t in used], create_graph=recorded, allow_unused=True
                )
                for i, row in zip(places, rows):
                    found[i] = row
    if not recorded:
        results = [_transforms.untaped(r) if isinstance(r, Tensor) and r.requires_grad else r for r in results]
    return results, found
