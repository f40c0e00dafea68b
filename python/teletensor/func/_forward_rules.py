"""How forward mode computes the tangents of an operator's results.

Most rules follow from declarations. The gradient formulas of a pointwise operator, whose Jacobian is diagonal, are also its
derivative along a tangent. An operator is applied to the tangent of an argument in which it is affine. Reductions of
which each element has one result need one backward pass. Composites are computed from their parts. _forward_table.py
contains the other rules; the operators that remain are differentiated twice, each one on its own.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from typing import Any

from .. import _C, _transforms
from .._C import Tensor
from .._declarations import COMPOSITES, LINEAR, MULTIPLIERS, NOT_HOLOMORPHIC, SHARDING
from .._grad_mode import inference_mode
from ..autograd import gradients
from ._batch_call import NoRule
from ._batch_rules import CompositeNames, MarkCalls, composite
from ._batched import Batched
from ._forward_call import ForwardCall, batched_like, fitted, is_continuous, tangent_view, total, twice_backward
from ._forward_table import RULES, Parts

# ---- Formulas of pointwise operators


@functools.cache
def _compiled(op: str, parameter: str) -> Any:
    """The code of a formula; None if it is zero, NotImplemented if it calls a function that only the engine has."""
    text = MULTIPLIERS[op][parameter]
    if text == "zeros_like(g)":
        return None
    parsed = ast.parse(text, mode="eval")
    called = [node.func.id for node in ast.walk(parsed) if isinstance(node, ast.Call)]
    if any(not hasattr(_C.ops, name) for name in called):
        return NotImplemented
    return compile(ast.fix_missing_locations(MarkCalls().visit(parsed)), f"<gradient of {op}>", "eval")


def _multiplied(call: ForwardCall) -> list[Tensor | None]:
    """The formulas, with the tangent in place of the result's gradient."""
    name = call.op.name
    codes = {p: _compiled(name, p) for p in call.tangents if p in MULTIPLIERS[name]}
    if NotImplemented in codes.values():
        raise NoRule
    result = call.results[0]
    if name in NOT_HOLOMORPHIC and any(t.is_complex() for t in (result, *(p for p, _ in call.flat()))):
        raise NoRule
    names = CompositeNames(call.primals | {"result": result})
    tangent = None
    for parameter, code in codes.items():
        if code is not None:
            names["g"] = call.tangents[parameter]
            tangent = total(tangent, eval(code, {"__builtins__": {}}, names))  # the declaration's own expression
    return [fitted(tangent, result)]


# ---- Operators that are affine in an argument

# Composites, and operators whose formulas read more than they need; as in LINEAR.
_MORE_LINEAR: dict[str, dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
        {"input": ("bias",), "weight": ("bias",), "bias": ("input", "weight")},
    ),
    "bilinear": {"input1": ("bias",), "input2": ("bias",), "weight": ("bias",), "bias": ("input1", "input2", "weight")},
    **dict.fromkeys(("index_copy", "masked_scatter", "put"), {"input": ("source",), "source": ("input",)}),
    **dict.fromkeys(("matmul", "kron", "inner"), {"input": (), "other": ()}),
    **dict.fromkeys(("trapezoid", "cumulative_trapezoid"), {"y": (), "x": ()}),
    **dict.fromkeys(
        ("im2col", "col2im", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "avg_pool3d", "adaptive_avg_pool3d",
         "interpolate", "diff", "repeat_interleave", "rot90", "fill_diagonal", "conj_physical", "grid_sample",
         "nll_loss", "as_strided", "diag", "tile", "take_along_dim", "pad_edges"),
        {"input": ()},
    ),
    **dict.fromkeys(("vstack", "hstack"), {"tensors": ()}),
    "affine_grid": {"theta": ()},
    "complex": {"real": ("imag",), "imag": ("real",)},
}  # fmt: skip
# Views of which the argument `other` only has the sizes.
_LIKE_OTHER = frozenset(("view_as", "reshape_as", "expand_as"))
# Numbers that an affine operator adds.
_OFFSETS = {"jagged_to_padded": "padding", "pad": "value", "index_fill": "value", "scatter_value": "value", "fill_diagonal": "fill_value"}


def _affine(call: ForwardCall) -> list[Tensor | None]:
    """The operator, applied to the tangents: at once to those of arguments that are added, and without other summands."""
    name, table = call.op.name, LINEAR.get(call.op.name) or _MORE_LINEAR[call.op.name]
    if name in _LIKE_OTHER:
        call.tangents.pop("other", None)
        if not call.tangents:
            return [None]
    if any(p not in table for p in call.tangents):
        raise NoRule
    if call.op.is_view:
        return list(tangent_view(call.op, call.tangents["input"], list(call.primals.values())))
    offset = {_OFFSETS[name]: 0} if name in _OFFSETS else {}
    found: list[Tensor | None] = [None] * max(call.op.num_outputs, 1)
    left = dict(call.tangents)
    while left:
        group: dict[str, Any] = {}
        for parameter in list(left):
            if all(other in table[parameter] for other in group):
                group[parameter] = left.pop(parameter)
        if list(group) == ["bias"]:
            terms = [_bias(call, group["bias"])]
        else:
            absent = [q for q in table if call[q] is not None and all(q in table[p] for p in group)]
            terms = call.run(**offset, **{q: None if q == "bias" else _zero(call[q]) for q in absent}, **_filled(call, group))
        found = [total(a, b) for a, b in zip(found, terms)] if any(f is not None for f in found) else list(terms)
    return found


def _filled(call: ForwardCall, group: dict[str, Any]) -> dict[str, Any]:
    return {
        p: [_zero(x) if v is None else v for x, v in zip(call[p], t)] if isinstance(t, list) else t for p, t in group.items()
    }


def _zero(x: Any) -> Any:
    return _C.torch.zeros_like(x) if isinstance(x, Tensor) else x


def _bias(call: ForwardCall, tangent: Tensor) -> Tensor:
    result = call.results[0]
    spatial = int(call.op.name[-2]) if call.op.name.startswith("conv") and call.op.name[-1] == "d" else 0
    return tangent.reshape(-1, *[1] * spatial).expand(result.shape) if spatial else tangent.expand(result.shape)


# ---- One backward pass


def _recorded(call: ForwardCall, change: Any = lambda x: x) -> tuple[list, dict[str, Tensor]]:
    """Calls the operator with copies of the arguments that have tangents. Returns its results and the copies."""
    like = next(iter(call.tangents.values()))
    if isinstance(like, list):
        raise NoRule
    batched = {p: batched_like(call[p], like) for p in call.tangents}
    copies = {p: _transforms.leaf(change(x)) for p, x in batched.items()}
    results = call.run(**copies)
    if all(x is call[p] for p, x in batched.items()):  # otherwise the results have a batch that the primals lack
        call.results = results if call.is_recorded() else [_transforms.untaped(r) for r in results]
    return results, copies


_MORE_POINTWISE = frozenset(("clamp", "float_power", "ldexp", "nan_to_num"))


def _diagonal(call: ForwardCall) -> list[Tensor | None]:
    """A pointwise operator: its Jacobian is diagonal, so that the vector-Jacobian product also is the derivative."""
    name = call.op.name
    sizes, recorded = call.op.result_sizes(list(call.args.values())), call.is_recorded()
    if sizes is None or len(sizes) != 1:
        raise NoRule
    size = sizes[0]
    is_complex = any(t.is_complex() for t, _ in call.flat())
    if is_complex and call.results[0].is_complex():
        if name in NOT_HOLOMORPHIC or name == "sgn" or not all(call[p].is_complex() for p in call.tangents):
            raise NoRule
    dtype = call.results[0].dtype if any(call[p].dim() < len(size) for p in call.tangents) else None

    def operand(x: Tensor) -> Tensor:
        x = x if dtype is None or x.dim() > 0 or x.dtype == dtype else x.to(dtype)  # a number does not promote others
        return x.expand(size)

    with inference_mode(False):
        (result,), copies = _recorded(call, operand)
        if not result.requires_grad:
            return [None]
        tangent = None
        for parameter, x in copies.items():
            vector = call.tangents[parameter]
            if is_complex and not result.is_complex():
                g = gradients.grad([result], [x], [_C.torch.ones_like(result)], True, recorded, allow_unused=True)[0]
                part = None if g is None else _C.torch.real(g.conj() * vector)
            else:
                vector = fitted(vector, result)
                vector = vector.conj() if is_complex else vector
                part = gradients.grad([result], [x], [vector], True, recorded, allow_unused=True)[0]
                part = part.conj() if is_complex and part is not None else part
            tangent = total(tangent, part)
    return [fitted(tangent, result)]


_MORE_REDUCTIONS = frozenset(("vector_norm", "prod", "chebyshev_norm"))


def _reduced(call: ForwardCall) -> list[Tensor | None]:
    """A reduction of which each element has one result: the sum of the gradient's products with the tangent."""
    call.only("input")
    recorded, tangent = call.is_recorded(), call.tangents["input"]
    with inference_mode(False):
        results, copies = _recorded(call)
        x = copies["input"]
        found: list[Tensor | None] = []
        for result in results:
            if not is_continuous(result) or not result.requires_grad:
                found.append(None)
                continue
            if x.is_complex() and result.is_complex() and call.op.name not in ("prod", "logsumexp"):
                raise NoRule
            g = gradients.grad([result], [x], [_C.torch.ones_like(result)], True, recorded)[0]
            product = (g.conj() if g.is_complex() else g) * tangent
            dim, keepdim = call.primals.get("dim"), call.primals.get("keepdim", False)
            dims = [] if dim is None else dim if isinstance(dim, (list, tuple)) else [dim]
            if x.dim() > 0:
                product = product.sum(dims, keepdim) if dims else product.sum(list(range(x.dim())), keepdim)
            found.append(fitted(product.reshape(result.shape), result))
    return found


# ---- The choice


def _with_tensors(value: Any, tensors: Iterator[Tensor]) -> Any:
    """An argument with its tensors replaced by the next ones."""
    if isinstance(value, (list, tuple)):
        return [_with_tensors(v, tensors) for v in value]
    return next(tensors) if isinstance(value, Tensor) else value


def _twice(call: ForwardCall) -> list[Tensor | None]:
    """Any operator whose gradient is differentiable."""
    if call.op.is_view:
        raise NotImplementedError(f"[{call.op.name}] forward mode of this view is not supported: its result would not be a view")
    pairs = call.flat()

    def compute(*tensors: Tensor) -> list:
        rest = iter(tensors)
        return call.op.call([_with_tensors(v, rest) for v in call.args.values()])

    results, tangents = twice_backward(compute, [p for p, _ in pairs], [t for _, t in pairs])
    if not any(isinstance(t, Batched) and batched_like(p, t) is not p for p, t in pairs):  # as in _recorded()
        call.results = results
    return tangents


def rules_of(call: ForwardCall) -> list[Any]:
    """The rules that may compute the tangents, in order of preference."""
    op = call.op
    name, declared = op.name, SHARDING.get(op.name, "")
    found: list[Any] = [RULES[name]] if name in RULES else []
    if name in MULTIPLIERS:
        found.append(_multiplied)
    if name in LINEAR or name in _MORE_LINEAR:
        found.append(_affine)
    if name in COMPOSITES:
        found.append(composite)
    if op.is_pointwise or declared == "pointwise" or name in _MORE_POINTWISE:
        found.append(_diagonal)
    if (declared == "reduction" or name in _MORE_REDUCTIONS) and not op.is_random:
        found.append(_reduced)
    return [*found, _twice]


def differentiate(call: ForwardCall) -> list[Tensor | None] | None:
    """Returns the tangents of the results. Returns None if the operator was computed from others: the results are dual tensors."""
    if not call.tangents:
        return [None] * len(call.results)
    for rule in rules_of(call):
        try:
            found = rule(call)
        except NoRule:
            continue
        if rule is composite or isinstance(found, Parts):
            call.results = list(found) if isinstance(found, (list, tuple)) else [found]
            return None
        results = call.results
        if rule is not _affine and any(t is not None and t.requires_grad for t in found):
            # The tangent may depend on the result. A gradient with respect to the result does not include this dependence.
            call.results = [r.view_as(r) if is_continuous(r) and r.requires_grad else r for r in results]
        return found
    raise AssertionError("unreachable")
