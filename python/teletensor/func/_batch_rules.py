"""How vmap computes an operator for all entries at once.

Most rules follow from declarations: pointwise operators are aligned, reductions and operators along a dimension have theirs
moved behind the batch, and composites are computed from their parts. The tables below contain the others. A rule returns
the results with the batch as their first dimension, or raises NoRule: the operator is then called once per entry.
"""

from __future__ import annotations

import ast
import functools
from typing import Any

from .. import _C
from .._C import Tensor
from .._declarations import COMPOSITES, SHARDING
from .._library.engine_operators import Operator, operator_named
from . import _batch_layers  # noqa: F401 - adds its rules
from ._batch_call import RULES, Call, NoRule, Rule, Unmapped, behind_batch, rule
from ._batch_composites import FUNCTIONS
from ._sparse_batches import is_sparse

# ---- Operators whose entries are computed apart


def pointwise(call: Call) -> Any:
    """Each element depends on the same elements of the arguments."""
    tensors = call.tensors()
    ndim = max(t.dim() for t in tensors)
    values = {n: call.aligned(v, ndim) if isinstance(v, Tensor) else v for n, v in call.args.items()}
    # A number takes part in the promotion of dtypes in another way than an entry of a vector.
    numbers = [n for n, v in call.args.items() if isinstance(v, Tensor) and v.dim() == 0 and call.level.has(v)]
    if ndim == 0:  # numbers that are not mapped become vectors, as those that are
        values |= {n: v.reshape(1) for n, v in call.args.items() if isinstance(v, Tensor) and not call.level.has(v)}
    elif numbers:
        wanted = functools.reduce(_C.promote_types, [t.dtype for t in tensors if t.dim() > 0])
        for name in numbers:
            if values[name].dtype == _C.bool or values[name].dtype == wanted:
                continue
            if _kind(values[name].dtype) > _kind(wanted):
                raise NoRule
            values[name] = values[name].to(wanted)
    return call.run(**values)


def _kind(dtype: Any) -> int:
    return 3 if dtype.is_complex else 2 if dtype.is_floating_point else 0 if dtype == _C.bool else 1


rule("clamp float_power nan_to_num round logit ldexp to_dtype to_device")(pointwise)


@rule("assign")
def _assign(call: Call) -> Tensor:
    x = call["input"]
    src = call["src"]
    if not isinstance(src, Tensor):
        return call.run()
    if src.dim() > x.dim():
        raise NoRule
    return call.run(input=call.expanded(x), src=call.aligned(src, x.dim()))


@rule("masked_fill")
def _masked_fill(call: Call) -> Tensor:
    value = call["value"]
    if not call.level.has(value):
        return pointwise(call)
    x, mask = call["input"], call["mask"]
    ndim = max(x.dim(), mask.dim())
    return _C.ops.where(call.aligned(mask, ndim), call.aligned(value, ndim).to(x.dtype), call.aligned(x, ndim))


@rule("as_strided")
def _as_strided(_call: Call) -> Tensor:
    raise NotImplementedError("vmap: as_strided() of a mapped tensor is not supported: use views, or unfold()")


def direct(call: Call) -> Any:
    """The operator computes the entries of leading dimensions apart."""
    call.only_maps("input")
    return call.run()


rule(
    "detach alias contiguous one_hot pixel_shuffle pixel_unshuffle matrix_exp view_as_real view_as_complex real imag "
    "zeros_like ones_like full_like empty_like fill cholesky_factored qr_factored householder_factored lu_factored ldl_factored "
    "tril triu pad pad_edges pad_edges_forward"
)(direct)


@rule("eigh_decomposed svd_decomposed eig_decomposed")
def _decomposition(call: Call) -> list[Tensor]:
    """Results that are not wanted are empty vectors."""
    sizes = call.result_sizes()
    return [r.expand(call.size, 0) if tuple(s) == (0,) else r for r, s in zip(call.run(), sizes, strict=True)]


def along_dim(call: Call) -> Any:
    """The operator reduces a dimension, or computes along it."""
    call.only_maps("input")
    x = call["input"]
    value, ndim = call.value(x), x.dim()
    if ndim == 0:  # a number is a vector of one element
        value, ndim = value.unsqueeze(1), 1
    dim, sizes = call["dim"], call.result_sizes()
    if isinstance(dim, list) and dim:
        dim = [behind_batch(d, ndim) for d in dim]
    elif isinstance(dim, int):
        dim = behind_batch(dim, ndim)
    elif _takes_list(call.op.name):
        dim = list(range(1, ndim + 1))
    else:
        value, dim = value.flatten(1), 1
    more = {"k": 1} if x.dim() == 0 and call.op.name == "topk" else {}  # the result of a number has it also for k = 0
    found = call.run(input=value, dim=dim, **more)
    results = found if isinstance(found, (list, tuple)) else [found]
    shapes = [(call.size, *s) for s in sizes]
    return [r if tuple(r.shape) == shape else r.reshape(shape) for r, shape in zip(results, shapes, strict=True)]


@functools.cache
def _takes_list(name: str) -> bool:
    """Whether an operator reduces several dimensions at once."""
    return name not in ("prod", "argmax", "argmin", "aminmax", "quantile", "nanquantile", "median", "nanmedian")


rule("topk glu diff logcumsumexp kthvalue mode nanmedian_dim vector_norm prod")(along_dim)


@rule("any all")
def _any_all(call: Call) -> Any:
    if call["dim"] == []:
        raise NoRule  # of no dimension
    return along_dim(call)


@rule("median nanmedian")
def _median(call: Call) -> Tensor:
    value = call.value(call["input"]).reshape(call.size, call["input"].numel())
    if value.requires_grad or value.shape[1] == 0:
        raise NoRule  # equal elements share the gradient
    return (_C.ops.median_dim if call.op.name == "median" else _C.ops.nanmedian_dim)(value, 1)[0]


@rule("softmax_backward log_softmax_backward")
def _along_dim_of_both(call: Call) -> Any:
    ndim = call["grad"].dim()
    if ndim == 0:
        raise NoRule
    return call.run(grad=call.expanded(call["grad"]), output=call.expanded(call["output"]), dim=behind_batch(call["dim"], ndim))


@rule("roll")
def _roll(call: Call) -> Any:
    x, dims = call["input"], call["dims"]
    if not dims:
        return call.run(input=call.value(x).flatten(1), dims=[1]).reshape(call.size, *x.shape)
    return call.run(dims=[behind_batch(d, x.dim()) for d in dims])


@rule("check_range")
def _check_range(call: Call) -> Unmapped:
    return Unmapped([call.run(input=call.value(call["input"]))])


# ---- Views


@rule("view reshape flatten unflatten ravel squeeze squeeze_dim unsqueeze view_as reshape_as")
def _reshaped(call: Call) -> Tensor | Unmapped:
    sizes = call.result_sizes()[0]
    if not call.is_mapped("input"):
        return Unmapped([call["input"].reshape(sizes) if call.op.name == "reshape_as" else call["input"].view(sizes)])
    value, sizes = call.value(call["input"]), [call.size, *sizes]
    return value.view(sizes) if call.op.is_view and call.op.name not in ("reshape", "flatten") else value.reshape(sizes)


@rule("expand broadcast_to expand_as")
def _expanded(call: Call) -> Tensor | Unmapped:
    sizes = call.result_sizes()[0]
    if not call.is_mapped("input"):
        return Unmapped([call["input"].expand(sizes)])
    return call.expanded(call["input"], len(sizes)).expand(call.size, *sizes)


# Parameters that are dimensions of the input.
_DIMS = {
    "permute": "dims", "transpose": "dim0 dim1", "narrow": "dim", "select": "dim", "slice": "dim", "split": "dim",
    "split_with_sizes": "dim", "chunk": "dim", "tensor_split": "dim", "unbind": "dim", "movedim": "source destination",
    "diagonal": "dim1 dim2", "unfold": "dimension", "flip": "dims", "fft_c2c": "dim", "fft_r2c": "dim", "fft_c2r": "dim",
    "cummax": "dim", "cummin": "dim", "repeat_interleave": "dim",
}  # fmt: skip


# Those of them that accept a number, as a vector of one element.
_OF_NUMBERS = frozenset(("permute", "transpose", "movedim", "unfold", "flip", "cummax", "cummin", "repeat_interleave"))


def _with_dims(call: Call) -> Any:
    call.only_maps("input")
    ndim = call["input"].dim()
    changed: dict[str, Any] = {}
    if ndim == 0:
        if call.op.name not in _OF_NUMBERS:
            raise NoRule  # raises the operator's error
        sizes, ndim = call.result_sizes(), 1
        changed["input"] = call.value(call["input"]).unsqueeze(1)
    for name in _DIMS[call.op.name].split():
        given = call[name]
        if given is None:
            raise NoRule
        changed[name] = [behind_batch(d, ndim) for d in given] if isinstance(given, list) else behind_batch(given, ndim)
    if call.op.name == "permute":
        changed["dims"] = [0, *(changed["dims"] or [1])]
    found = call.run(**changed)
    if "input" not in changed:
        return found
    results = found if isinstance(found, (list, tuple)) else [found]
    return [r.view(call.size, *s) for r, s in zip(results, sizes, strict=True)]


RULES.update(dict.fromkeys(_DIMS, _with_dims))


@rule("view_of_dtype")
def _view_of_dtype(call: Call) -> Tensor:
    if call["input"].dim() == 0 and call["input"].dtype.itemsize != call["dtype"].itemsize:
        raise NoRule  # raises the operator's error
    return call.run()


@rule("t")
def _transposed(call: Call) -> Tensor:
    x = call["input"]
    return call.value(x).transpose(1, 2) if x.dim() == 2 else call.value(x).view_as(call.value(x))


@rule("diag")
def _diag(call: Call) -> Tensor:
    value = call.value(call["input"])
    if call["input"].dim() == 1:
        return _C.ops.diag_embed(value, call["diagonal"], -2, -1)
    return _C.ops.diagonal(value, call["diagonal"], 1, 2).clone()


@rule("tile")
def _tile(call: Call) -> Tensor:
    dims = call["dims"]
    missing = call["input"].dim() - len(dims)
    return call.run(input=call.expanded(call["input"], len(dims)), dims=[1] * (1 + max(missing, 0)) + dims)


@rule("diag_embed")
def _diag_embed(call: Call) -> Tensor:
    ndim = call["input"].dim() + 1
    return call.run(dim1=behind_batch(call["dim1"], ndim), dim2=behind_batch(call["dim2"], ndim))


@rule("repeat")
def _repeat(call: Call) -> Tensor:
    repeats = call["repeats"]
    return call.run(input=call.expanded(call["input"], len(repeats)), repeats=[1, *repeats])


@rule("cat stack")
def _join(call: Call) -> Tensor:
    tensors = call["tensors"]
    ndim = tensors[0].dim()
    if any(t.dim() != ndim for t in tensors):
        raise NoRule  # cat ignores empty vectors
    dim = behind_batch(call["dim"], ndim + (call.op.name == "stack"))
    return call.run(tensors=[call.expanded(t) for t in tensors], dim=dim)


@rule("new_empty new_zeros new_ones new_full")
def _new(call: Call) -> Tensor:
    return call.run(size=[call.size, *call["size"]])


# ---- Products


@rule("matmul")
def _matmul(call: Call) -> Tensor:
    a, b = call["input"], call["other"]
    ndim = max(a.dim(), b.dim(), 2)

    def operand(x: Tensor, column: bool) -> Tensor:
        value = call.value(x)
        if x.dim() == 1:
            value = value.unsqueeze(-1 if column else -2)
        if not call.level.has(x):
            return value
        return value.reshape(call.size, *[1] * (ndim - max(x.dim(), 2)), *value.shape[1:])

    if a.dim() == 0 or b.dim() == 0:
        raise NoRule  # raises the operator's error
    if a.dim() == 1 and b.dim() == 1 and is_sparse(a) and not call.level.has(b):
        return _C.ops.mv(call.value(a), b)
    result = _C.ops.matmul(operand(a, False), operand(b, True))
    if b.dim() == 1:
        result = result.squeeze(-1)
    return result.squeeze(-1 if b.dim() == 1 else -2) if a.dim() == 1 else result


@rule("attention")
def _attention(call: Call) -> Tensor:
    names = [n for n in ("query", "key", "value", "attn_mask") if call[n] is not None]
    ndim = call["query"].dim()
    if any(call[n].dim() != ndim for n in ("query", "key", "value")):
        raise NoRule
    return call.run(**{n: call.expanded(call[n], ndim) for n in names})


@rule("lu_solved lu_determinant lu_log_determinant triangular_solved ldl_solved pseudo_inverse_of lu_permutation")
def _matrices(call: Call) -> Any:
    if any(t.dim() > 2 for t in call.tensors()):
        raise NoRule
    return call.run(**{n: call.expanded(v) for n, v in call.args.items() if isinstance(v, Tensor)})


# ---- Indexing


@rule("gather scatter scatter_value scatter_add scatter_combine take_along_dim")
def _gather(call: Call) -> Tensor:
    if any(t.dim() == 0 for t in call.tensors()) or len({t.dim() for t in call.tensors()}) > 1:
        raise NoRule
    tensors = {n: call.expanded(v) for n, v in call.args.items() if isinstance(v, Tensor)}
    return call.run(dim=behind_batch(call["dim"], call["input"].dim()), **tensors)


@rule("index_select")
def _index_select(call: Call) -> Tensor:
    x, index = call["input"], call["index"]
    if x.dim() == 0 or index.dim() != 1:
        raise NoRule
    dim = behind_batch(call["dim"], x.dim())
    if not call.is_mapped("index"):
        return call.run(dim=dim)
    sizes = [call.size, *x.shape]
    sizes[dim] = index.shape[0]
    places = [call.size, *[1] * x.dim()]
    places[dim] = index.shape[0]
    return _C.ops.gather(call.expanded(x), dim, call.value(index).reshape(places).expand(sizes))


@rule("index_add index_copy index_fill")
def _index_write(call: Call) -> Tensor:
    x, index = call["input"], call["index"]
    if x.dim() == 0:
        raise NoRule
    tensors = {n: call.expanded(call[n]) for n in ("input", "source") if n in call.args}
    dim = behind_batch(call["dim"], x.dim())
    if not call.is_mapped("index"):
        return call.run(dim=dim, **tensors)
    if index.dim() != 1 or 0 in x.shape or any(t.dim() != x.dim() + 1 for t in tensors.values()):
        raise NoRule
    call.op.result_sizes(list(call.args.values()))  # raises the operator's errors
    size = x.shape[dim - 1]
    rows = {n: t.movedim(dim, 1).flatten(0, 1) for n, t in tensors.items()}  # of all entries, along the dimension
    entries = _C.torch.arange(call.size, device=x.device).reshape(-1, 1)
    value = call.value(index).to(_C.int64)
    wrapped = _C.torch.where(value < 0, value + size, value) if call.op.name == "index_fill" else value
    outside = (wrapped < 0) | (wrapped >= size)
    places = _C.torch.where(outside, call.size * size, wrapped + entries * size)  # stay out of range
    return call.run(dim=0, index=places.flatten(), **rows).unflatten(0, (call.size, size)).movedim(1, dim)


def _positions(indices: list) -> tuple[int, bool, int]:
    """Where the first index is, whether others are apart from it, and the dimensions that the indices have together."""
    places = [i for i, index in enumerate(indices) if index is not None]
    return places[0], places[-1] - places[0] + 1 != len(places), max(indices[i].dim() for i in places)


@rule("index")
def _index(call: Call) -> Tensor:
    x, indices = call["input"], call["indices"]
    first, apart, ndim = _positions(indices)
    if not any(map(call.level.has, indices)):
        result = _C.ops.index(call.value(x), [None, *indices])
        return result.movedim(ndim, 0) if apart else result
    given = [i if i is None else call.aligned(i, ndim) for i in indices]
    if not call.is_mapped("input"):
        result = _C.ops.index(x, given)
        return result if apart else result.movedim(first, 0)
    entries = _C.torch.arange(call.size, device=x.device).reshape(call.size, *[1] * ndim)
    result = _C.ops.index(call.value(x), [entries, *given])
    if apart or first == 0:
        return result  # the dimensions of the indices come first
    return result.movedim(list(range(1, 1 + ndim)), list(range(1 + first, 1 + first + ndim)))


@rule("index_put")
def _index_put(call: Call) -> Tensor:
    x, indices, values = call["input"], call["indices"], call["values"]
    if len(indices) == 1 and indices[0].dtype == _C.bool and values.dim() == 0:
        mask = indices[0]
        if mask.dim() == 0 or tuple(mask.shape) != tuple(x.shape[: mask.dim()]):
            raise NoRule
        mask = call.value(mask).reshape([*call.value(mask).shape, *[1] * (x.dim() - mask.dim())])
        old, new = call.expanded(x), call.aligned(values, x.dim()).to(x.dtype)
        return _C.ops.where(mask, old + new if call["accumulate"] else new, old)
    first, apart, ndim = _positions(indices)
    if apart or first != 0 or any(i is not None and i.dtype == _C.bool for i in indices):
        raise NoRule
    entries = _C.torch.arange(call.size, device=x.device).reshape(call.size, *[1] * ndim)
    given = [i if i is None else call.aligned(i, ndim) for i in indices]
    written = ndim + x.dim() - sum(i is not None for i in indices)
    return call.run(input=call.expanded(x).clone(), indices=[entries, *given], values=call.aligned(values, written))


@rule("embedding")
def _embedding(call: Call) -> Tensor:
    if not call.is_mapped("weight"):
        return call.run()
    if call["padding_idx"] >= 0:
        raise NoRule
    indices, weight = call["indices"], call.value(call["weight"])
    rows = weight.shape[1]
    entries = _C.torch.arange(call.size, device=indices.device).reshape(call.size, *[1] * indices.dim())
    places = call.aligned(indices, indices.dim()).long()
    places = _C.torch.where((places < 0) | (places >= rows), call.size * rows, places + entries * rows)  # stay out of range
    return _C.ops.embedding(weight.flatten(0, 1), places)


@rule("searchsorted bucketize")
def _search(call: Call) -> Tensor:
    name = "boundaries" if "boundaries" in call.args else "sorted_sequence"
    if call[name].dim() != 1:
        if call[name].dim() != call["input"].dim():
            raise NoRule
        return call.run(**{n: call.expanded(call[n]).contiguous() for n in (name, "input")})
    if not call.is_mapped(name):
        return call.run()
    found = _C.ops.searchsorted(call.value(call[name]), call.expanded(call["input"]).reshape(call.size, -1), right=call["right"])
    return found.reshape(call.size, *call["input"].shape)


# ---- Composites


_CALLED = "called_"


class MarkCalls(ast.NodeTransformer):
    """Gives called names a prefix: an argument may have an operator's name."""

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        node.func = ast.Name(_CALLED + node.func.id, ast.Load())
        return node


class CompositeNames(dict):
    """The names of a composite's expression: its arguments, operators, and functions."""

    def __missing__(self, name: str) -> Any:
        name = name.removeprefix(_CALLED)
        if name in FUNCTIONS:
            return FUNCTIONS[name]
        if not hasattr(_C.ops, name) or name in _C.__dict__:
            raise NoRule
        op = operator_named(name)

        def call(*args: Any, **kwargs: Any) -> Any:
            count = op.num_positional
            return op.function(*args[:count], **dict(zip(op.names[count:], args[count:])), **kwargs)

        return call


@functools.cache
def _compiled(name: str) -> Any:
    tree = ast.fix_missing_locations(MarkCalls().visit(ast.parse(COMPOSITES[name], mode="eval")))
    return compile(tree, f"<composite {name}>", "eval")


def composite(call: Any) -> Any:
    call.op.result_sizes(list(call.args.values()))  # raises the operator's errors
    return eval(_compiled(call.op.name), {"__builtins__": {}}, CompositeNames(call.args))  # the declaration's own expression


def _linear(call: Call) -> Tensor:
    x, weight, bias = (call[n] for n in ("input", "weight", "bias"))
    if not call.is_mapped("weight") and not call.is_mapped("bias"):
        return call.level.wrap(call.run())
    product = _C.ops.matmul(x, weight.transpose(0, 1) if weight.dim() == 2 else weight)
    return product if bias is None else product + bias


def _put(call: Call) -> Tensor:
    x, index, source = (call[n] for n in ("input", "index", "source"))
    call.op.result_sizes(list(call.args.values()))  # raises the operator's errors
    return _C.ops.index_put(x.reshape(-1), [index.reshape(-1)], source.reshape(-1), call["accumulate"]).reshape(x.shape)


# Operators that are computed from others, which receive the mapped tensors.
_DERIVED: dict[str, Rule] = {
    "linear": _linear,
    "put": _put,
    "hstack": lambda call: _C.torch.cat(
        [t.reshape(1) if t.dim() == 0 else t for t in call["tensors"]], 0 if call["tensors"][0].dim() < 2 else 1
    ),
}

_DECLARED = {"pointwise": pointwise, "reduction": along_dim, "along dim": along_dim}


def rule_of(op: Operator) -> Rule | None:
    """The rule that computes an operator's results from the values, or None."""
    if op.name in RULES:
        return RULES[op.name]
    if op.is_pointwise:
        return pointwise
    declared = SHARDING.get(op.name, "")
    if op.name in _DERIVED or (declared != "pointwise" and "dim" not in op.names):
        return None
    return _DECLARED.get(declared)


def derive(op: Operator) -> Rule | None:
    """The computation of an operator from others on the mapped tensors, or None."""
    return _DERIVED.get(op.name) or (composite if op.name in COMPOSITES else None)
