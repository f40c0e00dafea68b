"""Rules of forward mode that do not follow from declarations (_forward_rules.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _C, _transforms
from .._C import Tensor
from .._grad_mode import inference_mode
from ..autograd import gradients
from ._batch_call import NoRule
from ._forward_call import ForwardCall, batched_like, total, twice_backward


class Parts(list):
    """The results of an operator that was computed from others with the tangents: dual tensors."""


Rule = Callable[[ForwardCall], "list[Tensor | None] | Parts"]
RULES: dict[str, Rule] = {}


def _rule(names: str) -> Callable[[Rule], Rule]:
    """Declares the rule of the operators with these names."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names.split(), function))
        return function

    return register


# ---- Elements


@_rule("polar")
def _polar(call: ForwardCall) -> list[Tensor | None]:
    result = call.results[0]
    length, angle = call.tangents.get("abs"), call.tangents.get("angle")
    found = None if length is None else _C.ops.polar(_C.torch.ones_like(call["abs"]), call["angle"]) * length
    return [total(found, None if angle is None else result * 1j * angle)]


@_rule("softmax")
def _softmax(call: ForwardCall) -> list[Tensor | None]:
    result = call.results[0]
    return [_C.ops.softmax_backward(call.tangents["input"].to(result.dtype), result, call["dim"])]


@_rule("log_softmax")
def _log_softmax(call: ForwardCall) -> list[Tensor | None]:
    result = call.results[0]
    tangent = call.tangents["input"].to(result.dtype)
    product = result.exp() * tangent
    return [tangent - (product.sum([call["dim"]], True) if result.dim() > 0 else product)]


@_rule("dropout")
def _dropout(call: ForwardCall) -> list[Tensor | None]:
    x, tangent = call["input"], call.tangents["input"]
    if not call["training"] or call["p"] == 0:
        return [tangent]
    kept = call.run(input=_C.torch.ones_like(x))[0]
    call.results = [x * kept]
    return [tangent * kept]


@_rule("dropout_forward")
def _dropout_forward(call: ForwardCall) -> list[Tensor | None]:
    kept = call.results[1]
    return [_C.ops.scale_kept(call.tangents["input"], kept, call["p"]), None]


@_rule("fill")
def _fill(call: ForwardCall) -> list[Tensor | None]:
    call.only("input")
    return [None]


@_rule("group_reduced")
def _group_reduced(call: ForwardCall) -> list[Tensor | None]:
    if call["op"] not in ("sum", "avg"):
        raise NoRule
    return call.run(input=call.tangents["input"])


# ---- Elements that are selected by their values


@_rule("sort topk cummax cummin")
def _gathered(call: ForwardCall) -> list[Tensor | None]:
    tangent, places = call.tangents["input"], call.results[1]
    return [tangent.reshape(places.shape) if tangent.dim() == 0 else _C.ops.gather(tangent, call["dim"], places), None]


@_rule("kthvalue mode max_dim min_dim median_dim")
def _selected(call: ForwardCall) -> list[Tensor | None]:
    tangent, places, dim = call.tangents["input"], call.results[1], call["dim"]
    if tangent.dim() == 0:
        return [tangent.reshape(places.shape), None]
    if call["keepdim"]:
        return [_C.ops.gather(tangent, dim, places), None]
    return [_C.ops.gather(tangent, dim, places.unsqueeze(dim)).squeeze(dim), None]


@_rule("max_pool2d_with_indices adaptive_max_pool2d_with_indices")
def _max_pool(call: ForwardCall) -> list[Tensor | None]:
    return [_at_places(call.tangents["input"], call.results[1]), None]


@_rule("max_pool2d")
def _max_pool_values(call: ForwardCall) -> list[Tensor | None]:
    names = ("input", "kernel_size", "stride", "padding", "dilation", "ceil_mode")
    return [_at_places(call.tangents["input"], _C.ops.max_pool2d_with_indices(*(call[name] for name in names))[1])]


def _at_places(planes: Tensor, places: Tensor) -> Tensor:
    """The elements of each plane at the places that max pooling found."""
    return _C.ops.gather(planes.flatten(-2), -1, places.flatten(-2)).reshape(places.shape)


# ---- Normalizations


def _normalized(call: ForwardCall, sizes: list[int] | None, **without: Any) -> list[Tensor | None]:
    """A normalization with a scale and a shift. The Jacobian of the normalization alone is symmetric, so that one backward
    pass computes its derivative."""
    if call["input"].is_complex():
        raise NoRule
    scaled = {n: None for n in ("weight", "bias") if n in call.primals} | without
    recorded = call.is_recorded()
    tangent, weight = call.tangents.get("input"), call["weight"]

    def shaped(parameter: Tensor) -> Tensor:
        return parameter if sizes is None else parameter.reshape(sizes)

    found = None
    if tangent is not None:
        with inference_mode(False):
            x = _transforms.leaf(batched_like(call["input"], tangent))
            plain = call.run(**scaled, input=x)[0]
            found = gradients.grad([plain], [x], [tangent], create_graph=recorded, retain_graph=True)[0]
        plain = plain if recorded else _transforms.untaped(plain)
        found = found if weight is None else found * shaped(weight)
    elif "weight" in call.tangents:
        plain = call.run(**scaled)[0]
    if "weight" in call.tangents:
        found = total(found, plain * shaped(call.tangents["weight"]))
    if "bias" in call.tangents:
        found = total(found, shaped(call.tangents["bias"]))
    return [found if found is None else found.expand(call.results[0].shape)]


@_rule("layer_norm rms_norm")
def _norm(call: ForwardCall) -> list[Tensor | None]:
    call.only("input", "weight", "bias")
    return _normalized(call, None)


@_rule("group_norm")
def _group_norm(call: ForwardCall) -> list[Tensor | None]:
    call.only("input", "weight", "bias")
    return _normalized(call, [1, -1, *[1] * (call["input"].dim() - 2)])


@_rule("batch_norm")
def _batch_norm(call: ForwardCall) -> list[Tensor | None]:
    call.only("input", "weight", "bias")
    sizes = [1, -1, *[1] * (call["input"].dim() - 2)]
    if call["training"] or call["running_mean"] is None:
        call.results  # noqa: B018 - writes the running statistics
        return _normalized(call, sizes, running_mean=None, running_var=None)
    return _normalized(call, sizes)


# ---- Losses, attention, linear systems


@_rule("cross_entropy")
def _cross_entropy(call: ForwardCall) -> list[Tensor | None] | Parts:
    call.only("input")
    if call["target"].dtype.is_floating_point:
        raise NoRule
    call.op.result_sizes(list(call.args.values()))  # raises the operator's errors
    x, target, weight, ignored, reduction = (call.args[n] for n in ("input", "target", "weight", "ignore_index", "reduction"))
    dim, smoothing = 1 if x.dim() > 1 else 0, call["label_smoothing"]
    scores = _C.ops.log_softmax(x, dim)
    losses = _C.ops.nll_loss(scores, target, weight, ignore_index=ignored, reduction=reduction)
    if smoothing == 0:
        return Parts([losses])
    kept = target != ignored
    each = scores if weight is None else scores * weight.reshape([-1 if d == dim else 1 for d in range(x.dim())])
    each = _C.torch.where(kept, -each.sum(dim), 0.0)
    if reduction != "none":
        each = each.sum()
    if reduction == "mean":
        classes = kept if weight is None else _C.torch.where(kept, _C.ops.index(weight, [_C.torch.where(kept, target, 0)]), 0.0)
        each = each / classes.sum()
    return Parts([losses * (1 - smoothing) + each * (smoothing / x.shape[dim])])


@_rule("nll_loss_forward")
def _nll_loss_forward(call: ForwardCall) -> list[Tensor | None]:
    call.only("input")
    return [call.run(input=call.tangents["input"])[0], None]


@_rule("attention")
def _attention(call: ForwardCall) -> list[Tensor | None] | Parts:
    query, key, value, mask = (call.args[n] for n in ("query", "key", "value", "attn_mask"))
    call.op.result_sizes(list(call.args.values()))  # raises the operator's errors
    scale = call["scale"] if call["scale"] is not None else query.shape[-1] ** -0.5
    scores = (query * scale) @ key.transpose(-2, -1)
    if call["is_causal"]:
        allowed = _C.torch.ones(scores.shape[-2:], dtype=_C.bool, device=query.device).tril()
        scores = scores.masked_fill(~allowed, float("-inf"))
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == _C.bool else scores + mask
    weights = _C.ops.softmax(scores, -1)
    # A row without allowed keys has no weights.
    weights = weights.masked_fill((scores == float("-inf")).all(-1, keepdim=True), 0.0)
    return Parts([weights @ value])


@_rule("eigh_decomposed eig_decomposed svd_decomposed")
def _values_of_matrices(call: ForwardCall) -> list[Tensor | None]:
    """The derivatives of eigenvalues and singular values depend on the vectors."""
    if call["vectors"]:
        raise NoRule
    place, x, tangent = int(call.op.name.startswith("svd")), call["input"], call.tangents["input"]
    found, tangents = twice_backward(lambda matrix: call.run(input=matrix, vectors=True), [x], [tangent])
    if call.is_recorded() and found[place].shape == call.results[place].shape and type(found[place]) is type(x):
        call.results = [found[place] if i == place else r for i, r in enumerate(call.results)]
    return [tangents[place] if i == place else None for i in range(len(call.results))]


@_rule("lu_solved")
def _lu_solved(call: ForwardCall) -> list[Tensor | None]:
    """A x = b, so A dx = db - dA x."""
    a, b, result = call.tangents.get("A"), call.tangents.get("B"), call.results[0]
    if any(n in call.tangents for n in ("pivots",)) or call["B"].dim() < 2:
        raise NoRule
    if a is not None:
        if call["transposed"]:
            if a.is_complex():
                raise NoRule
            a = a.transpose(-2, -1)
        product = a @ result
        b = -product if b is None else b - product
    if b is None:
        raise NoRule  # only LU has a tangent
    return call.run(B=b.expand(result.shape) if b.shape != result.shape else b)


@_rule("triangular_solved")
def _triangular_solved(call: ForwardCall) -> list[Tensor | None]:
    a, b, result = call.tangents.get("A"), call.tangents.get("B"), call.results[0]
    if a is not None:
        part = a.triu(1 if call["unitriangular"] else 0) if call["upper"] else a.tril(-1 if call["unitriangular"] else 0)
        if call["transposed"]:
            if a.is_complex():
                raise NoRule
            part = part.transpose(-2, -1)
        product = part @ result
        b = -product if b is None else b - product
    return call.run(B=b.expand(result.shape) if b.shape != result.shape else b)
