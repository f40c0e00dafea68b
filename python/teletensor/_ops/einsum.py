"""einsum and tensordot: sums of products over selected dimensions."""

from __future__ import annotations

import functools
import itertools
import math
import string
from collections.abc import Sequence

from .. import _C
from .._C import Tensor
from .._composites import one_operator
from .out_variant import exact_out_variant

__all__ = ["einsum", "tensordot"]


def einsum(*args) -> Tensor:
    """einsum(equation, *operands) or einsum(operand, dims, ..., result's dims): an Einstein summation.

    Contracts two operands at a time with one bmm, in _cheapest_pair()'s order, or from left to right as PyTorch where the
    order decides the dtype of the result: under autocast, and for operands of several dtypes.
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts list"
        )
    equation, *operands = args
    if not isinstance(equation, str):
        equation, operands = _from_sublists(equation, *operands)
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    return _contracted(equation, operands)


@one_operator("einsum")
def _contracted(equation: str, operands: Sequence[Tensor]) -> Tensor:
    shapes = tuple(tuple(operand.shape) for operand in operands)
    in_order = len(operands) > 2 and (
        _C.autocast_dtype(operands[0].device.type) is not None or any(t.dtype != operands[0].dtype for t in operands)
    )
    plan = _plan if all(type(n) is int for shape in shapes for n in shape) else _plan.__wrapped__
    result, steps = plan(equation, shapes, in_order)
    values: list = [*operands]
    for at, method, args, other in steps:
        value, values[at] = values[at], None  # each value is used once: this frees those between the steps
        if other is None:
            values.append(getattr(value, method)(*args))
        else:
            factor, values[other] = values[other], None
            if value.dtype != factor.dtype and value.shape[-1] == 1:  # an outer product, for which PyTorch calls mul()
                dtype = _C.promote_types(value.dtype, factor.dtype)
                value, factor = value.to(dtype), factor.to(dtype)
            # PyTorch multiplies without a product of matrices, which autocast would cast, where there is nothing to sum.
            is_outer = _C.autocast_dtype(value.device.type) is not None and value.shape[-1] == 1
            values.append(value * factor if is_outer else value @ factor)
    return values[result] if steps else values[result][...]  # a view, never the operand itself


class _Planned:
    """Stands for a tensor while a contraction is planned: has its shape, and records what is applied to it."""

    def __init__(self, shape: list, index: int, operands: int, steps: list):
        self.shape = shape
        self.index = index  # among the operands, followed by the steps' results
        self._operands, self._steps = operands, steps

    def dim(self) -> int:
        return len(self.shape)

    def _then(self, shape: list, method: str, *args, other: int | None = None) -> _Planned:
        self._steps.append((self.index, method, args, other))
        return _Planned(shape, self._operands + len(self._steps) - 1, self._operands, self._steps)

    def sum(self, dims: list) -> _Planned:
        return self._then([n for i, n in enumerate(self.shape) if i not in dims], "sum", dims)

    def permute(self, order: list) -> _Planned:
        return self._then([self.shape[i] for i in order], "permute", order)

    def expand(self, shape: list) -> _Planned:
        return self._then(shape, "expand", shape)

    def reshape(self, shape: list) -> _Planned:
        return self._then(shape, "reshape", shape)

    def diagonal(self, offset: int, first: int, second: int) -> _Planned:
        rest = [n for i, n in enumerate(self.shape) if i not in (first, second)]
        return self._then([*rest, min(self.shape[first], self.shape[second])], "diagonal", offset, first, second)

    def __matmul__(self, other: _Planned) -> _Planned:
        return self._then([*self.shape[:-1], other.shape[-1]], "matmul", other=other.index)


@functools.lru_cache(maxsize=1024)  # planning takes several times as long as issuing a small contraction
def _plan(equation: str, shapes: tuple[tuple[int, ...], ...], in_order: bool) -> tuple[int, list]:
    """Returns the index of the result, among the operands and the steps' results in order, and the steps: the index of a
    value, the method to call, its arguments, and for a product the index of the other value."""
    steps: list = []
    result = _contract(
        equation, [_Planned([*shape], i, len(shapes), steps) for i, shape in enumerate(shapes)], in_order
    )
    return result.index, steps


def _contract(equation: str, operands: Sequence[_Planned], in_order: bool) -> _Planned:
    inputs, output = _einsum_terms(equation.replace(" ", ""), operands)
    terms = [_einsum_diagonal(i, *term) for i, term in enumerate(zip(inputs, operands))]
    sizes: dict[str, int] = {}
    for i, (labels, value) in enumerate(terms):
        for c, n in zip(labels, value.shape):
            if sizes.setdefault(c, n) == 1:
                sizes[c] = n
            elif n not in (1, sizes[c]):
                raise RuntimeError(
                    f"einsum(): subscript {c} has size {n} for operand {i} which does not broadcast with previously seen "
                    f"size {sizes[c]}"
                )
    while len(terms) > 1:
        i, j = (0, 1) if in_order else _cheapest_pair([labels for labels, _ in terms], output, sizes)
        later = set("".join(labels for k, (labels, _) in enumerate(terms) if k not in (i, j))) | set(output)
        pair = _einsum_pair(*terms[i], *terms[j], later)
        terms = [pair, *(t for k, t in enumerate(terms) if k not in (i, j))]
    labels, value = terms[0]
    summed_dims = [i for i, c in enumerate(labels) if c not in output]
    if summed_dims:
        value = value.sum(summed_dims)
        labels = "".join(c for c in labels if c in output)
    return value.permute([labels.index(c) for c in output]) if labels != output else value


def _from_sublists(*args) -> tuple[str, tuple]:
    """Converts einsum(a, [0, 1], b, [1, 2], [0, 2]) to an equation."""

    def letters(labels: Sequence) -> str:
        if not all(c is Ellipsis or 0 <= c < len(string.ascii_letters) for c in labels):
            raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
        return "".join("..." if c is Ellipsis else string.ascii_letters[c] for c in labels)

    pairs = list(zip(args[::2], args[1::2]))
    equation = ",".join(letters(labels) for _, labels in pairs)
    if len(args) % 2:
        equation += "->" + letters(args[-1])
    return equation, tuple(t for t, _ in pairs)


def _cheapest_pair(terms: list[str], output: str, sizes: dict[str, int]) -> tuple[int, int]:
    """Returns the indices of the two terms to contract next.

    These are the terms whose result has the fewest elements compared with the terms themselves; on a tie, the two terms
    whose contraction needs the fewest multiplications.
    """
    if len(terms) == 2:
        return 0, 1

    def cost(pair: tuple[int, int]):
        both = set(terms[pair[0]]) | set(terms[pair[1]])
        later = set(output).union(*(terms[k] for k in range(len(terms)) if k not in pair))
        count = lambda labels: math.prod(sizes[c] for c in labels)  # noqa: E731
        left = count(both & later)
        return left - count(terms[pair[0]]) - count(terms[pair[1]]), count(both)

    return min(itertools.combinations(range(len(terms)), 2), key=cost)


def _einsum_terms(equation: str, operands) -> tuple[list[str], str]:
    left, arrow, output = equation.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(operands):
        raise RuntimeError(f"einsum(): the equation has {len(inputs)} operands, got {len(operands)}")
    for i, term in enumerate(inputs):
        for c in term.replace("...", "", 1):
            if c == ".":
                raise RuntimeError(
                    f"einsum(): found '.' for operand {i} that is not part of an ellipsis, of which it may have one"
                )
            if c not in string.ascii_letters:
                raise RuntimeError(f"einsum(): invalid subscript {c!r} for operand {i}, subscripts must be in [a-zA-Z]")
    spare = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in equation]
    widest = max((t.dim() - len(s.replace("...", "")) for s, t in zip(inputs, operands) if "..." in s), default=0)
    dots = "".join(spare[:widest])
    for i, (term, operand) in enumerate(zip(inputs, operands)):
        if "..." in term:
            extra = operand.dim() - len(term) + 3
            inputs[i] = term.replace("...", dots[widest - extra :])
        if len(inputs[i]) != operand.dim():
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(inputs[i])}) does not match the number of "
                f"dimensions ({operand.dim()}) for operand {i}"
            )
    if not arrow:
        every = "".join(inputs)
        return inputs, dots + "".join(sorted(c for c in set(every) if every.count(c) == 1 and c not in dots))
    output = output.replace("...", dots)
    for c in output:
        if output.count(c) > 1:
            raise RuntimeError(f"einsum(): output subscript {c} appears more than once in the output")
        if not any(c in term for term in inputs):
            raise RuntimeError(f"einsum(): output subscript {c} does not appear in the equation for any input operand")
    return inputs, output


def _einsum_diagonal(operand: int, labels: str, value: _Planned) -> tuple[str, _Planned]:
    """Replaces dimensions of one operand that have the same label by their diagonal."""
    for c in dict.fromkeys(labels):
        while labels.count(c) > 1:
            first = labels.index(c)
            second = labels.index(c, first + 1)
            if value.shape[first] != value.shape[second]:
                raise RuntimeError(
                    f"einsum(): subscript {c} is repeated for operand {operand} but the sizes don't match, "
                    f"{value.shape[second]} != {value.shape[first]}"
                )
            value = value.diagonal(0, first, second)
            labels = labels[:first] + labels[first + 1 : second] + labels[second + 1 :] + c
    return labels, value


def _einsum_pair(a_labels: str, a: _Planned, b_labels: str, b: _Planned, later: set) -> tuple[str, _Planned]:
    """Contracts two operands: keeps batch labels and sums over labels that are not used later."""
    for own, other in ((0, b_labels), (1, a_labels)):
        labels, value = (a_labels, a) if own == 0 else (b_labels, b)
        summed_dims = [i for i, c in enumerate(labels) if c not in other and c not in later]
        if summed_dims:
            value = value.sum(summed_dims)
            labels = "".join(c for i, c in enumerate(labels) if i not in summed_dims)
        if own == 0:
            a_labels, a = labels, value
        else:
            b_labels, b = labels, value
    batch = [c for c in a_labels if c in b_labels and c in later]
    inner = [c for c in a_labels if c in b_labels and c not in later]
    free_a = [c for c in a_labels if c not in b_labels]
    free_b = [c for c in b_labels if c not in a_labels]
    sizes = {c: n for ls, t in ((a_labels, a), (b_labels, b)) for c, n in zip(ls, t.shape) if n != 1}
    size = lambda cs: [sizes.get(c, 1) for c in cs]  # noqa: E731

    def matrix(labels, value, *groups):
        order = [c for group in groups for c in group]
        value = value.permute([labels.index(c) for c in order])
        if (expanded := size(order)) != value.shape:
            value = value.expand(expanded)
        return value.reshape(size(batch) + [math.prod(size(group)) for group in groups[1:]])

    left = matrix(a_labels, a, batch, free_a, inner)
    right = matrix(b_labels, b, batch, inner, free_b)
    result = (left @ right).reshape(size(batch) + size(free_a) + size(free_b))
    return "".join(batch + free_a + free_b), result


def tensordot(a: Tensor, b: Tensor, dims=2, out: Tensor | None = None) -> Tensor:
    """Contracts the last `dims` dimensions of a with the first of b, or the dimensions in the two lists of `dims`."""
    return _tensordot(a, b, dims, out=out)


@exact_out_variant
def _tensordot(a: Tensor, b: Tensor, dims) -> Tensor:
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims = (list(range(a.dim() - dims, a.dim())), list(range(dims)))
    left, right = [[d % t.dim() for d in ds] for t, ds in zip((a, b), dims)]
    if len(left) != len(right):
        raise RuntimeError("both dimension lists should have same length")
    for x, y in zip(left, right):  # size 1 broadcasts
        if a.shape[x] != b.shape[y] and 1 not in (a.shape[x], b.shape[y]):
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {a.shape[x]} in dim {x} "
                f"and second has size {b.shape[y]} in dim {y}"
            )
        if a.shape[x] == 1:
            b = b.sum(y, True, dtype=b.dtype)
        elif b.shape[y] == 1:
            a = a.sum(x, True, dtype=a.dtype)
    if len(left) == a.dim() and len(right) == b.dim() and _C.autocast_dtype(a.device.type) is not None:
        return (a.permute(left) * b.permute(right)).sum()  # a number, which autocast does not cast
    free_a = [d for d in range(a.dim()) if d not in left]
    free_b = [d for d in range(b.dim()) if d not in right]
    inner = math.prod(a.shape[d] for d in left)
    outer_a, outer_b = [a.shape[d] for d in free_a], [b.shape[d] for d in free_b]
    rows = a.permute(free_a + left).reshape(math.prod(outer_a), inner)  # -1 is ambiguous for empty tensors
    columns = b.permute(right + free_b).reshape(inner, math.prod(outer_b))
    return (rows @ columns).reshape(outer_a + outer_b)
