"""The rules of operators, by name. An operator without a rule is computed by every rank from the whole tensors."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

from ... import _C
from ..._declarations import SHARDING
from ._decompositions import ELEMENTWISE_LOSSES
from ._rule import Labels, Rule


@dataclasses.dataclass
class CallShape:
    """The inputs of a rule: the arguments by name, the sizes of the tensors among them, and the sizes of the results.
    """

    name: str
    args: dict[str, Any]
    inputs: list[tuple[int, ...]]
    outputs: list[tuple[int, ...]]
    requires_grad: bool

    @property
    def ndim(self) -> int:
        return len(self.inputs[0])

    def dim(self, name: str = "dim") -> int:
        """A dimension that is given as an argument, without its sign."""
        value = self.args[name]
        value = value[0] if isinstance(value, list) else value
        return value + max(self.ndim, 1) if value < 0 else value


RULES: dict[str, Callable[[CallShape], Rule | None]] = {}


def _rule(*names: str):
    def register(function):
        for name in names:
            RULES[name] = function
        return function

    return register


def _aligned(shape: Sequence[int], out: Sequence[int]) -> Labels:
    """Labels of a tensor that is broadcast to `out`, whose dimension i has the label i."""
    offset = len(out) - len(shape)
    return tuple(i + offset if n == out[i + offset] else None for i, n in enumerate(shape))


def _range(shape: Sequence[int], without: Sequence[int] = ()) -> Labels:
    """The label i for dimension i, except for those that cannot be divided."""
    return tuple(None if i in without else i for i in range(len(shape)))


_LINEAR = {
    "add": "all", "sub": "all", "rsub": "all", "mul": "one", "div": "first", "neg": "all", "to_dtype": "all", "clone": "all",
    "positive": "all", "assign": "",
}  # fmt: skip


def pointwise(call: CallShape) -> Rule:
    """The rule of operators that compute each entry from the same entries of their arguments."""
    out = call.outputs[0]
    linear = _LINEAR.get(call.name, "")
    if linear == "all" and call.name in ("add", "sub", "rsub") and len(call.inputs) < 2:
        linear = ""  # adds a number
    if call.name == "div" and call.args["rounding_mode"] is not None:
        linear = ""
    if call.name == "to_dtype" and not (call.args["dtype"].is_floating_point or call.args["dtype"].is_complex):
        linear = ""
    return Rule([_aligned(s, out) for s in call.inputs], [_range(out) for _ in call.outputs], linear=linear)


# Operators with kernels and composites of which the declarations do not say that they are pointwise.
for _name in ("clamp", "float_power", "nan_to_num", "round", "logit", "ldexp", "to_dtype", "to_device", *ELEMENTWISE_LOSSES):
    RULES[_name] = pointwise


@_rule("detach", "alias", "contiguous")
def _identity(call: CallShape) -> Rule:
    return Rule([_range(call.inputs[0])], [_range(call.inputs[0])], linear="all")


@_rule("zeros_like", "ones_like", "full_like", "empty_like", "fill")
def _like(call: CallShape) -> Rule:
    return Rule([_range(call.inputs[0])], [_range(call.inputs[0])], copies_values=False)


# ---- Views


def _reshaped(call: CallShape) -> Rule:
    """Dimensions that are merged or divided share the label of their first dimension, if its parts are even."""
    source, target = call.inputs[0], call.outputs[0]
    own, result, even = [None] * len(source), [None] * len(target), {}
    i = j = 0
    while i < len(source) and j < len(target) and 0 not in (*source, *target):
        start, end, a, b = i, j, source[i], target[j]
        i, j = i + 1, j + 1
        while a != b:
            if a < b:
                a, i = a * source[i], i + 1
            else:
                b, j = b * target[j], j + 1
        if (i - start, j - end) == (1, 1):
            own[start] = result[end] = start
            continue
        first = next((d for d in range(start, i) if source[d] != 1), start)
        into = next((d for d in range(end, j) if target[d] != 1), end)
        own[first] = result[into] = first
        even[first] = math.gcd(source[first], target[into])

    def arguments(args: dict, sizes: list) -> tuple[str, dict]:
        return "reshape", {"input": args["input"], "shape": list(sizes[0])}

    return Rule([tuple(own)], [tuple(result)], even=even, linear="all", arguments=arguments)


@_rule("view", "reshape", "flatten", "ravel", "unflatten", "squeeze", "squeeze_dim", "unsqueeze", "view_as", "reshape_as")
def _reshape(call: CallShape) -> Rule:
    rule = _reshaped(call)
    if len(call.inputs) == 2:  # the other tensor only gives the sizes
        rule.inputs.append((None,) * len(call.inputs[1]))
        rule.linear = ""
    return rule


@_rule("expand", "broadcast_to", "expand_as")
def _expand(call: CallShape) -> Rule:
    out = call.outputs[0]

    def arguments(args: dict, sizes: list) -> tuple[str, dict]:
        return "expand", {"input": args["input"], "size": list(sizes[0])}

    inputs = [_aligned(call.inputs[0], out)] + [(None,) * len(s) for s in call.inputs[1:]]
    return Rule(inputs, [_range(out)], linear="all" if len(inputs) == 1 else "", arguments=arguments)


def _permuted(call: CallShape, order: Sequence[int]) -> Rule:
    return Rule([_range(call.inputs[0])], [tuple(order)], linear="all")


@_rule("permute")
def _permute(call: CallShape) -> Rule:
    return _permuted(call, [d % call.ndim for d in call.args["dims"]])


@_rule("transpose", "t")
def _transpose(call: CallShape) -> Rule:
    order = list(range(call.ndim))
    if call.ndim >= 2:
        a, b = (0, 1) if call.name == "t" else (call.dim("dim0"), call.dim("dim1"))
        order[a], order[b] = order[b], order[a]
    return _permuted(call, order)


@_rule("view_as_complex", "view_as_real")
def _complex_view(call: CallShape) -> Rule:
    """The dimension of the real and the imaginary part is not divided."""
    shared = min(call.ndim, len(call.outputs[0]))
    source, target = _range(call.inputs[0], [shared]), _range(call.outputs[0], [shared])
    return Rule([source], [target], linear="all")


@_rule("movedim")
def _movedim(call: CallShape) -> Rule:
    source, target = ([d % call.ndim for d in call.args[name]] for name in ("source", "destination"))
    order = [d for d in range(call.ndim) if d not in source]
    for to, d in sorted(zip(target, source, strict=True)):
        order.insert(to, d)
    return _permuted(call, order)


@_rule("select")
def _select(call: CallShape) -> Rule:
    dim, labels = call.dim(), _range(call.inputs[0], [call.dim()])
    return Rule([labels], [labels[:dim] + labels[dim + 1 :]], linear="all")


@_rule("slice", "narrow", "split", "split_with_sizes", "chunk", "tensor_split", "flip", "roll", "tril", "triu", "pad", "pad_edges")
def _same_dims(call: CallShape) -> Rule:
    """Operators whose results have the same dimensions; those that they change cannot be divided."""
    shape, args = call.inputs[0], call.args
    if call.name in ("flip", "roll"):
        changed = [d % call.ndim for d in args["dims"]] if args["dims"] else range(call.ndim)
    elif call.name in ("tril", "triu"):
        changed = [call.ndim - 2, call.ndim - 1]
    elif call.name in ("pad", "pad_edges"):  # also where what is added replaces what is cropped
        changed = [call.ndim - 1 - i for i in range(len(args["pad"]) // 2) if any(args["pad"][2 * i : 2 * i + 2])]
    else:
        changed = [i for i in range(call.ndim) if any(out[i] != shape[i] for out in call.outputs)]
        if call.name == "split_with_sizes" or len(call.outputs) > 1:
            changed.append(call.dim())
    labels = _range(shape, changed)
    is_pad, arguments = call.name == "pad", None
    if call.name == "narrow":
        dim = call.dim()

        def arguments(args: dict, sizes: list) -> tuple[str, dict]:
            return "narrow", {**args, "length": sizes[0][dim]}

    return Rule([labels], [labels for _ in call.outputs], linear="" if is_pad else "all", nonempty=is_pad, arguments=arguments)


@_rule("unbind")
def _unbind(call: CallShape) -> Rule:
    dim, labels = call.dim(), _range(call.inputs[0], [call.dim()])
    return Rule([labels], [labels[:dim] + labels[dim + 1 :]] * len(call.outputs), linear="all")


@_rule("cat", "stack")
def _join(call: CallShape) -> Rule:
    n = len(call.outputs[0])
    dim = call.args["dim"] % n
    out = tuple(None if i == dim else i for i in range(n))
    labels = out if call.name == "cat" else out[:dim] + out[dim + 1 :]
    if any(len(s) != len(labels) for s in call.inputs):
        return None  # cat ignores empty vectors
    return Rule([labels] * len(call.inputs), [out], linear="all")


@_rule("repeat")
def _repeat(call: CallShape) -> Rule:
    repeats, shape = call.args["repeats"], call.inputs[0]
    offset = len(repeats) - len(shape)
    labels = tuple(i if repeats[i + offset] == 1 else None for i in range(len(shape)))
    return Rule([labels], [(None,) * offset + labels], linear="all")


# ---- Reductions


def _reduced_dims(call: CallShape) -> list[int]:
    dims = call.args.get("dim")
    if dims is None or dims == []:
        return list(range(call.ndim))
    return [d % max(call.ndim, 1) for d in (dims if isinstance(dims, list) else [dims])]


def _reduction_labels(call: CallShape, dims: Sequence[int]) -> tuple[Labels, list[Labels]]:
    labels = _range(call.inputs[0])
    keep = bool(call.args.get("keepdim"))
    out = tuple(None if i in dims else i for i in labels) if keep else tuple(i for i in labels if i not in dims)
    return labels, [out for _ in call.outputs]


@_rule("sum", "nansum", "mean")
def _sum(call: CallShape) -> Rule:
    dims = _reduced_dims(call)
    labels, outputs = _reduction_labels(call, dims)
    run = None
    if call.name == "mean":
        count = math.prod(call.inputs[0][d] for d in dims)

        def run(args: dict, offset: int) -> list[_C.Tensor]:
            """The mean of this rank's elements times their fraction of all elements: sums in half precision would
            overflow.
            """
            shape = args["input"].shape
            own = math.prod(shape[d] for d in dims)
            function = _C.ops.mean if own or not count else _C.ops.sum
            local = function(args["input"], args["dim"], args["keepdim"], dtype=args["dtype"])
            return [local * (own / count) if own else local]

    return Rule([labels], outputs, summed=frozenset(dims), linear="" if call.name == "nansum" else "all", run=run)


@_rule("prod", "nanmedian_dim", "kthvalue", "mode", "vector_norm")
def _reduction(call: CallShape) -> Rule:
    dims = _reduced_dims(call)
    labels, outputs = _reduction_labels(call, dims)
    if call.name in ("amax", "amin", "prod") and not call.requires_grad:
        op = {"amax": "max", "amin": "min", "prod": "product"}[call.name]
        return Rule([labels], outputs, summed=frozenset(dims), reduce_op=op, nonempty=True)
    return Rule([labels], outputs)


@_rule("topk", "glu")
def _along_dim(call: CallShape) -> Rule:
    labels = _range(call.inputs[0], [call.dim()])
    return Rule([labels], [labels for _ in call.outputs])


# ---- Products


@_rule("matmul", "mm", "bmm", "mv", "dot")
def _matmul(call: CallShape) -> Rule:
    a, b = call.inputs
    out = call.outputs[0]
    batch = len(out) - (len(a) > 1) - (len(b) > 1)
    rows = ("m",) if len(a) > 1 else ()
    columns = ("n",) if len(b) > 1 else ()
    left = _aligned(a[:-2], out[:batch]) + rows + ("k",)
    right = _aligned(b[:-2], out[:batch]) + ("k",) + columns
    return Rule([left, right], [tuple(range(batch)) + rows + columns], summed=frozenset("k"), linear="one")


@_rule("linear")
def _linear(call: CallShape) -> Rule:
    batch = tuple(range(call.ndim - 1))
    inputs = [(*batch, "k"), ("n", "k"), ("n",)][: len(call.inputs)]
    if len(call.inputs[1]) == 1:
        inputs = [(*batch, "k"), ("k",), ()][: len(call.inputs)]
    out = batch + (("n",) if len(call.inputs[1]) == 2 else ())
    return Rule(inputs, [out], summed=frozenset("k"), addends=frozenset([2]), linear="one" if len(inputs) == 2 else "")


@_rule("addmm", "baddbmm")
def _addmm(call: CallShape) -> Rule:
    batch = ("b",) if call.name == "baddbmm" else ()
    out = (*batch, "m", "n")
    offset = len(out) - len(call.inputs[0])
    added = tuple(out[i + offset] if n == call.outputs[0][i + offset] else None for i, n in enumerate(call.inputs[0]))
    return Rule([added, (*batch, "m", "k"), (*batch, "k", "n")], [out], summed=frozenset("k"), addends=frozenset([0]))


@_rule("attention")
def _attention(call: CallShape) -> Rule:
    out = call.outputs[0]
    batch = tuple(range(len(out) - 2))
    q, k, v, *mask = call.inputs
    if any(len(s) != len(out) or tuple(s[:-2]) != tuple(out[:-2]) for s in (q, k, v)):
        return None
    rows = None if call.args["is_causal"] or mask else "l"
    inputs = [(*batch, rows, None), (*batch, None, None), (*batch, None, None)]
    inputs += [(*_aligned(s[:-2], out[:-2]), None, None) for s in mask]
    return Rule(inputs, [(*batch, rows, None)])


# ---- Layers


def _own_entries(indices: _C.Tensor, offset: int, size: int, total: int) -> tuple[_C.Tensor, _C.Tensor]:
    """Which indices are in this rank's part of a dimension, and their positions there; 0 for those of other ranks.

    Indices that no rank has stay out of range, so that the operator raises its error.
    """
    local = indices - offset
    inside = (local >= 0) & (local < size)
    valid = (indices >= 0) & (indices < total)
    return inside, _C.torch.where(valid, local * inside, indices)


@_rule("embedding")
def _embedding(call: CallShape) -> Rule:
    indices = tuple(range(len(call.inputs[1])))
    total = call.inputs[0][0]

    def run(args: dict, offset: int) -> list[_C.Tensor]:
        """The rows of the table that this rank has; zeros for the others."""
        rows = args["weight"].shape[0]
        inside, local = _own_entries(args["indices"], offset, rows, total)
        padding = args["padding_idx"] - offset
        found = _C.ops.embedding(args["weight"], local, padding if 0 <= padding < rows else -1)
        return [found.masked_fill(inside.logical_not().unsqueeze(-1), 0)]

    return Rule([("v", "d"), indices], [(*indices, "d")], summed=frozenset("v"), run=run, nonempty=True)


@_rule("layer_norm", "rms_norm")
def _layer_norm(call: CallShape) -> Rule:
    kept = call.ndim - len(call.args["normalized_shape"])
    labels = _range(call.inputs[0], range(kept, call.ndim))
    return Rule([labels] + [(None,) * len(s) for s in call.inputs[1:]], [labels])


@_rule("group_norm")
def _group_norm(call: CallShape) -> Rule:
    labels = _range(call.inputs[0], range(1, call.ndim))
    return Rule([labels] + [(None,) * len(s) for s in call.inputs[1:]], [labels])


@_rule("conv1d", "conv2d", "conv3d")
def _convolution(call: CallShape) -> Rule:
    spatial = int(call.name[4])
    if call.ndim != spatial + 2:
        return None
    rest, one_group = (None,) * spatial, call.args["groups"] == 1
    source, target = ("i", "o") if one_group else (None, None)
    inputs = [("n", source, *rest), (target, source, *rest), (target,)][: len(call.inputs)]
    return Rule(inputs, [("n", target, *rest)], summed=frozenset("i"), addends=frozenset([2]), nonempty=True)


@_rule("max_pool2d", "avg_pool2d", "adaptive_avg_pool2d", "adaptive_max_pool2d", "interpolate")
def _pool(call: CallShape) -> Rule:
    if call.ndim != 4:
        return None
    labels = ("n", "c", None, None)
    return Rule([labels], [labels for _ in call.outputs], nonempty=True)


# ---- Indexing


@_rule("gather", "take_along_dim")
def _gather(call: CallShape) -> Rule:
    dim, (source, index) = call.dim(), call.inputs
    if len(source) != len(index):
        return None
    labels = tuple("s" if i == dim else i if source[i] == index[i] else None for i in range(len(source)))
    own = tuple("i" if i == dim else label for i, label in enumerate(labels))
    total = source[dim] if source else 1

    def run(args: dict, offset: int) -> list[_C.Tensor]:
        """The entries that this rank has; zeros for the others."""
        inside, local = _own_entries(args["index"], offset, args["input"].shape[dim], total)
        return [_C.ops.gather(args["input"], dim, local).masked_fill(inside.logical_not(), 0)]

    summed = frozenset("s") if call.name == "gather" else frozenset()
    return Rule([labels, own], [own], summed=summed, run=run, nonempty=True)


@_rule("index_select")
def _index_select(call: CallShape) -> Rule:
    dim, labels = call.dim(), _range(call.inputs[0], [call.dim()])
    return Rule([labels, ("i",)], [tuple("i" if i == dim else label for i, label in enumerate(labels))], linear="first")


# Rules that follow from operators' declarations.
_DECLARED = {"pointwise": pointwise, "reduction": _reduction, "along dim": _along_dim}


def rule_of(call: CallShape, is_pointwise: bool) -> Rule | None:
    """Returns the rule of a call; None if every rank must compute it from the whole tensors."""
    make = pointwise if is_pointwise else RULES.get(call.name) or _DECLARED.get(SHARDING.get(call.name))
    return None if make is None else make(call)

