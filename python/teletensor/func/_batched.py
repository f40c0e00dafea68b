"""Batched: what a function sees of a tensor that vmap maps over: one entry's sizes, and the values of all entries.

The batch dimension is the first one of the tensor inside. Operators are computed once for all entries by the rules of
_batch_rules.py, and entry by entry where there is no rule.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .. import _C, _transforms
from .._C import Tensor
from .._library.engine_operators import Operator, operator_named
from ..autograd import gradients
from ..autograd.function import Function
from ..random import fork_rng
from . import tree
from ._batch_call import Call, NoRule, Unmapped
from ._batch_rules import derive, rule_of
from ._sparse_batches import SparseBatch, has_sparse, is_sparse
from ._transformed import VALUE_METHODS, Level, Transformed, innermost, run_grad, with_copies


def _refuse_values(name: str):
    def refuse(self, *args, **kwargs):
        raise RuntimeError(
            f"vmap: {name} needs the values of a tensor that is mapped, of which each entry has others. Control flow that depends on "
            "values is not supported: use torch.where(), or a loop over the entries"
        )

    return refuse


class Batched(Transformed):
    """A tensor that vmap passes to the function. Its value has the entries along the first dimension."""

    _level: VmapLevel

    def with_value(self, change: Callable[[Tensor], Tensor]) -> Batched:
        return self._level.wrap(change(self._value))

    def as_leaf(self) -> Batched:
        return self._level.wrap(_transforms.leaf(self._value))

    def as_untaped(self) -> Batched:
        return self._level.wrap(_transforms.untaped(self._value))

    def __repr__(self, *, tensor_contents=None) -> str:
        return f"Batched(level={self._level.number}, size={self._level.size}, value={self._value!r})"

    def __copy__(self) -> Batched:
        return self._level.wrap(self._value)


for _name in VALUE_METHODS:
    setattr(Batched, _name, _refuse_values(_name))


class SparseBatched(SparseBatch, Batched):
    """The same of a sparse_coo tensor."""


def _new(name: str) -> Callable:
    """A method that makes a mapped tensor, to which values that differ between the entries can be written."""

    def new(self: Batched, *args: Any, **kwargs: Any) -> Tensor:
        made, level = getattr(self._value, name)(*args, **kwargs), self._level
        return level.wrap(made.expand(level.size, *made.shape).clone()) if level.is_running else made

    return new


for _name in ("new_empty", "new_zeros", "new_ones", "new_full"):
    setattr(Batched, _name, _new(_name))


class VmapLevel(Level):
    """One vmap in progress: a context in which tensors of its batch exist."""

    def __init__(self, size: int, randomness: str):
        self.number, self.size, self.randomness = _transforms.next_number(), size, randomness
        self.is_running = False
        self.runs_entries = False  # whether a function is being called once per entry

    def __enter__(self) -> VmapLevel:
        _transforms.running.levels.append(self)
        self.depth = len(_transforms.running.levels)  # among nested vmaps: PyTorch's level
        self.is_running = True
        return self

    def __exit__(self, *_: object) -> None:
        _transforms.running.levels.pop()
        self.is_running = False

    def wrap(self, value: Tensor) -> Batched:
        """A tensor whose first dimension is the batch, as the function sees it."""
        kind = SparseBatched if is_sparse(value) else Batched
        made = _C._make_wrapper(kind, value.shape[1:], list(value.stride())[1:], 0, value.dtype, value.device)
        made._value, made._level = value, self
        return made

    def has(self, tensor: Any) -> bool:
        """Whether the tensor differs between the entries of this vmap."""
        return isinstance(tensor, Batched) and tensor._level is self

    def expanded(self, tensor: Tensor) -> Tensor:
        """The values of all entries, as a tensor whose first dimension is the batch."""
        return tensor._value if self.has(tensor) else tensor.expand(self.size, *tensor.shape)

    def batched(self, tensor: Tensor) -> Tensor:
        """See _transforms.batched()."""
        if isinstance(tensor, Transformed) and tensor._level.number > self.number:  # the batch is inside
            return tensor.with_value(self.batched)
        value, levels = self.expanded(tensor), _transforms.running.levels
        outer = levels.index(self)
        return self.wrap(levels[outer - 1].batched(value) if outer else value)

    def entries(self, value: Any) -> list:
        """An argument for each entry: lists of tensors stay lists."""
        if isinstance(value, (list, tuple)):
            if not any(map(self.has, value)):
                return [value] * self.size
            return [list(row) for row in zip(*map(self.entries, value))]
        return list(value._value.unbind(0)) if self.has(value) else [value] * self.size

    def compute(self, name: str, arguments: list, into: list | None) -> list:
        """Computes an operator for all entries."""
        return _compute(self, name, arguments, into)

    def apply_function(self, function: type, args: tuple) -> Any:
        """Function.apply() with mapped arguments: by the function's vmap(), or once per entry."""
        return _apply_function(self, function, args)

    def apply_operator(self, operator: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A custom operator, by its rule for vmap. Keyword-only tensors must not be mapped, as a rule has no in_dims for them."""
        if any(self.has(v) for v in kwargs.values()):
            raise NotImplementedError(f"[vmap] {operator} has a rule, which expects keyword-only arguments that are not mapped")
        in_dims = tuple(
            [0 if self.has(v) else None for v in a] if isinstance(a, (list, tuple)) else 0 if self.has(a) else None for a in args
        )
        return _by_rule(self, operator.vmap_rule, in_dims, args, kwargs)

    def gradients(self, outputs, grad_outputs, inputs, retain_graph: bool, create_graph: bool, allow_unused: bool) -> list:
        return _gradients(self, outputs, grad_outputs, inputs, retain_graph, create_graph, allow_unused)

    def backward(self, *_: Any) -> None:
        """Gradients of one entry cannot be accumulated in `.grad`."""
        raise RuntimeError("vmap: backward() of a tensor that is mapped is not supported: use torch.func.grad() or torch.func.vjp()")


class UnmappedWriteError(RuntimeError):
    """A write of values that differ between the entries to a tensor that they share."""


def _compute(level: VmapLevel, name: str, arguments: list, into: list | None) -> list:
    op = operator_named(name)
    if not level.is_running:
        raise RuntimeError(f"vmap: {name} received a tensor that vmap has passed to a function which has ended")
    if draws(op, arguments):
        return draw(op, arguments, into, level)
    if into is not None:
        if not all(map(level.has, into)):
            raise UnmappedWriteError(
                f"vmap: {name} cannot write in place to a tensor that is not mapped, because the value differs between the entries; "
                "write to a copy that is made of a mapped tensor, such as with new_zeros() or torch.zeros_like()"
            )
        arguments = with_copies(name, arguments, into, lambda t: t.requires_grad)
        results = _results(op, arguments, level) if innermost(arguments) is level else op.call(arguments)
        return _assign(name, into, results, level)
    return _results(op, arguments, level)


def _assign(name: str, into: list, results: list, level: VmapLevel) -> list:
    for target, result in zip(into, results, strict=True):
        if name != "assign" and not _C.can_cast(result.dtype, target.dtype):
            raise RuntimeError(f"[{name}] result type {result.dtype} can't be cast to the desired output type {target.dtype}")
        value = _aligned(level, result, target.dim())
        _C.ops.assign(target._value, value, out=target._value)
    return into


def _aligned(level: VmapLevel, tensor: Tensor, ndim: int) -> Tensor:
    """The values of a result, with as many dimensions as a target of `ndim` dimensions has with its batch."""
    if not level.has(tensor):
        return tensor
    value = tensor._value
    return value.reshape(level.size, *[1] * (ndim - tensor.dim()), *tensor.shape) if tensor.dim() < ndim else value


def _results(op: Operator, arguments: list, level: VmapLevel) -> list:
    call = Call(op, arguments, level)
    try:
        if (compute := rule_of(op)) is not None:
            found = compute(call)
            if isinstance(found, Unmapped):
                return found.results
            values = list(found) if isinstance(found, (list, tuple)) else [found]
            results = [level.wrap(v) for v in values]
            _check_sizes(op, arguments, results)
            return results
        if (derived := derive(op)) is not None:
            found = derived(call)
            return list(found) if isinstance(found, (list, tuple)) else [found]
    except NoRule:
        pass
    except _C.OutOfMemoryError:
        raise
    except RuntimeError:  # of a sparse tensor, which the entries may not have
        if not has_sparse(arguments):
            raise
    for value, written in zip(arguments, op.written, strict=True):  # through views of the entries
        tensors = [v for v in (value if isinstance(value, (list, tuple)) else [value]) if isinstance(v, Tensor)]
        if written and not all(map(level.has, tensors)):
            raise RuntimeError(f"vmap: {op.name} writes to a tensor that is not mapped, and the value differs between the entries")
    if op.is_view and not has_sparse(arguments):
        raise NotImplementedError(f"vmap: {op.name} of this mapped tensor is not supported: its result would not be a view of it")
    _warn_once(op.name)
    return _run_entries(op, arguments, level)


def _check_sizes(op: Operator, arguments: list, results: list) -> None:
    """A rule must give the sizes that the operator gives for one entry."""
    sizes = op.result_sizes(arguments)
    if sizes is not None and [tuple(r.shape) for r in results] != [tuple(s) for s in sizes]:
        raise AssertionError(f"[vmap] {op.name}: expected results of sizes {sizes}, got {[tuple(r.shape) for r in results]}")


_warned: set[str] = set()
_PACKAGE = __package__.split(".")[0]


def _warn_once(name: str) -> None:
    if name in _warned:
        return
    _warned.add(name)
    depth, frame = 1, sys._getframe()  # the caller of the package's functions
    while frame.f_back is not None and (frame.f_globals.get("__package__") or "").startswith(_PACKAGE):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(f"vmap: {name} has no batching rule and is called once per entry", UserWarning, stacklevel=depth)


def _run_entries(op: Operator, arguments: list, level: VmapLevel, same_numbers: bool = False) -> list:
    """Calls an operator once per entry, with the same random numbers or further ones."""
    rows = []
    for i, entry in enumerate(zip(*map(level.entries, arguments))):
        with fork_rng(enabled=same_numbers and i + 1 < level.size):  # the last entry's numbers count as drawn
            rows.append(op.call(list(entry)))
    if not rows:
        raise RuntimeError(f"vmap: {op.name} has no batching rule, and a batch of size 0 has no entry for which to call it")
    columns = list(zip(*rows))
    if any(len({tuple(t.shape) for t in column}) > 1 for column in columns):
        raise RuntimeError(f"vmap: the sizes of the results of {op.name} depend on values, and differ between the entries")
    return [level.wrap(_C.torch.stack(column)) for column in columns]


# ---- Random numbers

# Operators that draw for each element of their arguments.
_ELEMENTWISE_DRAWS = frozenset((
    "uniform_like", "normal_like", "bernoulli_like", "bernoulli", "exponential_like", "random_like", "rand_like", "randn_like",
    "randint_like", "cauchy_like", "geometric_like", "log_normal_like", "dropout", "standard_gamma", "poisson",
))  # fmt: skip


_RECURRENT = frozenset({"lstm", "gru", "rnn"})


def draws(op: Operator, arguments: list) -> bool:
    """Whether a call uses random numbers: also one of recurrent layers with dropout between them."""
    if op.name not in _RECURRENT:
        return op.is_random
    layers, dropout, train = (arguments[op.names.index(name)] for name in ("num_layers", "dropout", "train"))
    return layers > 1 and dropout > 0 and train


def draw(op: Operator, arguments: list, into: list | None, level: VmapLevel) -> list:
    """The results of a random operator in a vmap, whose arguments need not be mapped by it."""
    if level.runs_entries:
        if level.randomness == "same":
            raise NotImplementedError("vmap: randomness='same' is not supported in an autograd.Function without a vmap() of its own")
        if level.randomness == "different":
            return op.call(arguments, into)
    if into is not None and not all(map(level.has, into)):
        if level.randomness == "different" or any(map(level.has, [*arguments, *into])):
            raise RuntimeError(f"vmap: {op.name} cannot write different numbers to a tensor that is not mapped")
        if level.randomness == "same":
            return op.call(arguments, into)
    results = _drawn(op, arguments, level)
    return results if into is None else _assign(op.name, into, results, level)


def _drawn(op: Operator, arguments: list, level: VmapLevel) -> list:
    is_mapped = any(level.has(x) for v in arguments for x in (v if isinstance(v, (list, tuple)) else [v]))
    if op.name == "dropout" and (not arguments[2] or arguments[1] == 0):
        return [level.wrap(r) for r in op.call(_values(level, arguments))] if is_mapped else op.call(arguments)
    if level.randomness == "error":
        raise RuntimeError(
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness "
            "flags on vmap or perform the randomness operation out of vmap"
        )
    if level.randomness == "different":
        if op.name in _ELEMENTWISE_DRAWS:
            first = level.expanded(arguments[0])
            return [level.wrap(r) for r in op.call([first, *_values(level, arguments[1:])])]
        if "size" in op.names and not is_mapped:
            at = op.names.index("size")
            return [level.wrap(r) for r in op.call([*arguments[:at], [level.size, *arguments[at]], *arguments[at + 1 :]])]
        return _run_entries(op, arguments, level)
    if not is_mapped:
        return op.call(arguments)
    if op.name in _RECURRENT:
        return _run_entries(op, arguments, level, same_numbers=True)
    if op.name == "dropout":  # the same elements of all entries
        x = arguments[0]
        return [x * op.call([_C.torch.ones(x.shape, dtype=x.dtype, device=x.device), *arguments[1:]])[0]]
    if op.name.endswith("_like"):  # of the argument only the sizes count
        x = arguments[0]
        return op.call([_C.torch.empty(x.shape, dtype=x.dtype, device=x.device), *arguments[1:]])
    raise NotImplementedError(f"vmap: randomness='same' is not supported for {op.name}, whose numbers depend on values")


def _values(level: VmapLevel, arguments: Sequence[Any]) -> list:
    return [
        [x._value if level.has(x) else x for x in v] if isinstance(v, (list, tuple)) else v._value if level.has(v) else v for v in arguments
    ]


# ---- Gradients


def _gradients(level: VmapLevel, outputs, grad_outputs, inputs, retain_graph, create_graph, allow_unused) -> list:
    if not all(map(level.has, [*outputs, *inputs])):
        return _gradients_of_entries(level, outputs, grad_outputs, inputs, retain_graph, create_graph, allow_unused)
    given = [_gradient_of(level, o, g) for o, g in zip(outputs, grad_outputs, strict=True)]
    # The entries are computed apart, so that the gradient of one entry's outputs is that of all entries' outputs.
    found = run_grad([o._value for o in outputs], given, [x._value for x in inputs], retain_graph, create_graph, allow_unused)
    return [g if g is None else level.wrap(g) for g in found]


def _gradient_of(level: VmapLevel, output: Tensor, gradient: Tensor | None) -> Tensor:
    if gradient is not None:
        return level.expanded(gradient)
    if output.numel() != 1:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    return _C.torch.ones_like(output._value)


def _gradients_of_entries(level: VmapLevel, outputs, grad_outputs, inputs, retain_graph, create_graph, allow_unused) -> list:
    """A backward pass for each entry, because the graph of some tensor is shared by all entries."""
    rows = []
    for i in range(level.size):
        roots, given = ([t._value.select(0, i) if level.has(t) else t for t in list_] for list_ in (outputs, grad_outputs))
        targets = [t._value if level.has(t) else t for t in inputs]
        retain = retain_graph or i + 1 < level.size
        found = gradients.grad(roots, targets, given, retain, create_graph, allow_unused=allow_unused)
        rows.append([g if g is None or not level.has(t) else g.select(0, i) for g, t in zip(found, inputs, strict=True)])
    return [None if any(g is None for g in column) else level.wrap(_C.torch.stack(column)) for column in zip(*rows)]


class VmapInfo(NamedTuple):
    """What Function.vmap() receives of the vmap."""

    batch_size: int
    randomness: str


def _by_rule(level: VmapLevel, rule: Callable, in_dims: tuple, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The results of a rule that the user has written, as mapped tensors."""
    returned = rule(VmapInfo(level.size, level.randomness), in_dims, *_values(level, args), **kwargs)
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise RuntimeError(f"[vmap] expected a rule for vmap to return (results, out_dims), got {type(returned).__name__}")
    results, out_dims = returned
    dims = tree.broadcast(out_dims, results, lambda d: d is None or isinstance(d, int))
    moved = [r if d is None else r.movedim(d, 0) for r, d in zip(tree.leaves(results), dims, strict=True)]
    for result, dim in zip(moved, dims, strict=True):
        if dim is not None and result.shape[0] != level.size:
            raise RuntimeError(f"[vmap] expected a result with {level.size} entries in dimension {dim}, got {result.shape[0]}")
    return tree.rebuild(results, [r if d is None else level.wrap(r) for r, d in zip(moved, dims, strict=True)])


def _apply_function(level: VmapLevel, function: type[Function], args: tuple) -> Any:
    if (rule := function.vmap) is not Function.vmap:
        return _by_rule(level, rule, tuple(0 if level.has(a) else None for a in args), args, {})
    before, level.runs_entries = level.runs_entries, True
    try:
        results = [function.apply(*entry) for entry in zip(*map(level.entries, args))]
    finally:
        level.runs_entries = before
    columns = zip(*map(tree.leaves, results))
    return tree.rebuild(results[0], [
        level.wrap(_C.torch.stack(c)) if isinstance(c[0], Tensor) else c[0] for c in columns
    ])  # fmt: skip
