"""Dual: what a function sees of a tensor that forward mode differentiates along a direction: its value and a tangent.

An operator computes the value and the tangent of its result at once, by the rules of _forward_rules.py. A tangent of None
is zero. Views share the tangent of the tensor that they view, so that writes in place to one of them change all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _C, _transforms
from .._C import Tensor
from .._grad_mode import no_grad
from .._library.engine_operators import Operator, operator_named
from .._library.handlers import flat
from ..autograd.function import Function, FunctionCtx
from . import tree
from ._forward_call import ForwardCall, batched_like, is_continuous, tangent_view, twice_backward
from ._forward_rules import differentiate
from ._linearized import Recorded, before_write
from ._transformed import Level, Transformed, innermost, read_inside, root, run_grad, with_copies

# Operators that are declared as views, whose result may be a copy.
_MAY_COPY = frozenset(("reshape", "flatten", "ravel", "contiguous", "reshape_as", "unflatten"))
class _Tangent:
    """The tangent of a tensor and of its views. Tangents are not written in place, unless nothing else can refer to them."""

    def __init__(self, base: Tensor, value: Tensor | None):
        self.base, self.value = base, value
        self.writes = 0  # views compute their tangents anew after a write
        self.is_shared = False  # whether `value` may be the tangent of another tensor, or a user's
        self.is_owned = False  # whether `value` is a copy that was not read since it was made


class Dual(Transformed):
    """A tensor with a tangent. Its value is that of the primal inside."""

    _level: ForwardLevel
    _tangent: _Tangent
    _path: tuple  # the views by which it was made from the tensor to which _tangent belongs: (operator, arguments, result)
    _seen: int  # the number of writes when _view was computed
    _view: Tensor | None

    @property
    def tangent(self) -> Tensor | None:
        shared = self._tangent
        shared.is_owned = False
        if not self._path:
            return shared.value
        if self._seen != shared.writes:
            value = shared.value
            for op, arguments, place in self._path if value is not None else ():
                value = tangent_view(op, value, arguments)[place]
            self._seen, self._view = shared.writes, value
        return self._view

    def with_value(self, change: Callable[[Tensor], Tensor]) -> Dual:
        return self._level.wrap(change(self._value), self.tangent)

    def as_leaf(self) -> Dual:
        tangent = self.tangent
        if tangent is not None and tangent.requires_grad:
            tangent = tangent.view_as(tangent)
        return self._level.wrap(_transforms.leaf(self._value), tangent)

    def as_untaped(self) -> Dual:
        tangent = self.tangent
        return self._level.wrap(_transforms.untaped(self._value), tangent if tangent is None else _transforms.untaped(tangent))

    def __repr__(self, *, tensor_contents=None) -> str:
        return f"Dual(level={self._level.number}, primal={self._value!r}, tangent={self.tangent!r})"

    def __copy__(self) -> Dual:
        return self._level.wrap(self._value, self.tangent)

    def __deepcopy__(self, memo: dict) -> Tensor:
        return memo.setdefault(id(self), self.clone())


read_inside(Dual)


def _as_array(name: str) -> Callable:
    def read(self: Dual, *args: Any, **kwargs: Any) -> Any:
        if self._level.is_running and self.tangent is not None:
            raise RuntimeError(f"[{name}] an array would lose the tangent of a dual tensor: call detach() first")
        return getattr(self._value, name)(*args, **kwargs)

    return read


for _name in ("numpy", "__array__"):
    setattr(Dual, _name, _as_array(_name))


def _new(name: str) -> Callable:
    """A method that makes a dual tensor without a tangent, which can receive one."""

    def new(self: Dual, *args: Any, **kwargs: Any) -> Tensor:
        made = getattr(self._value, name)(*args, **kwargs)
        return made if self._level.has(made) else self._level.enter(made)

    return new


for _name in ("new_empty", "new_zeros", "new_ones", "new_full", "new_empty_strided"):
    setattr(Dual, _name, _new(_name))


class ForwardLevel(Level):
    """One derivative in forward mode in progress: a context in which dual tensors exist."""

    def __init__(self) -> None:
        self.number, self.is_running = _transforms.next_number(), False
        self.depth = _transforms.running.derivatives + 1  # of nested derivatives, in the function
        self.vmap = _transforms.running.levels[-1] if _transforms.running.levels else None  # the innermost around it

    def __enter__(self) -> ForwardLevel:
        self.is_running = True
        return self

    def __exit__(self, *_: object) -> None:
        self.is_running = False

    def wrap(self, primal: Tensor, tangent: Tensor | None, view_of: Dual | None = None, path: tuple = ()) -> Dual:
        """A tensor with a tangent; `view_of` is the tensor of which it is a view, by the operator of `path`."""
        made = _C._make_wrapper(
            Dual, primal.shape, list(primal.stride()), primal.storage_offset(), primal.dtype, primal.device
        )
        made._value, made._level = primal, self
        if view_of is None:
            made._tangent, made._path = _Tangent(primal, tangent), ()
        else:
            made._tangent, made._path = view_of._tangent, (*view_of._path, path)
            made._seen, made._view = made._tangent.writes, tangent
        return made

    def enter(self, made: Tensor) -> Tensor:
        """A tensor that the function made, without a tangent, so that it can receive one by a write. Inside another derivative,
        whose inputs are mapped by the vmap around this one, it is mapped, too."""
        if not self.is_running or not is_continuous(made):
            return made
        is_mapped = self.vmap is not None and _transforms.running.derivatives > self.depth
        return self.wrap(self.vmap.batched(made).clone() if is_mapped else made, None)

    def has(self, tensor: Any) -> bool:
        """Whether the tensor may have a tangent of this derivative."""
        return isinstance(tensor, Dual) and tensor._level is self

    def unpack(self, value: Any) -> tuple[Any, Tensor | None]:
        """The primal and the tangent, which is None for zero."""
        if self.has(value):
            return value._value, value.tangent
        if isinstance(value, Transformed) and value._level.number > self.number:  # the tangent is inside
            inside = value._value
            primal, tangent = self.unpack(inside)
            if primal is not inside:
                return value.with_value(lambda _: primal), None if tangent is None else value.with_value(lambda _: tangent)
        return value, None

    def unpack_result(self, value: Any) -> tuple[Any, Tensor | None]:
        """As unpack(), with a tangent that can be changed without an effect on the tangents of other tensors."""
        if self.has(value) and value._tangent.is_shared:
            shared = value._tangent
            shared.value, shared.is_shared = shared.value.clone(), False
            shared.writes += 1
        return self.unpack(value)

    def primal(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [self.primal(v) for v in value]
        return value._value if self.has(value) else value

    def compute(self, name: str, arguments: list, into: list | None) -> list:
        op = operator_named(name)
        if not self.is_running or not _transforms.running.forward_enabled:  # the tangents are forgotten
            return op.call([self.primal(a) for a in arguments], None if into is None else self.primal(into))
        if into is not None:
            return self._write(op, arguments, into)
        return self._results(op, arguments)

    def _results(self, op: Operator, arguments: list) -> list:
        for value, written in zip(arguments, op.written, strict=True):
            tensors = value if isinstance(value, (list, tuple)) else [value]
            if written and any(self.unpack(t)[1] is not None for t in tensors):
                raise NotImplementedError(f"[{op.name}] forward mode: expected tensors to write to without tangents")
        source = next((a for a in arguments if self.has(a)), None)
        if op.name == "detach":
            results, tangents = op.call([self.primal(a) for a in arguments]), None
        else:
            call = ForwardCall(op, arguments, self)
            found = differentiate(call)
            if found is None:  # computed from other operators, with tangents
                return call.results
            results, tangents = call.results, found
        views = op.is_view and source is not None and source is arguments[0] and op.name != "detach"
        made = []
        for i, result in enumerate(results):
            tangent = None if tangents is None else tangents[i]
            if not is_continuous(result):
                made.append(result)
            elif views and (op.name not in _MAY_COPY or root(result).untyped_storage() == root(source).untyped_storage()):
                made.append(self.wrap(result, tangent, source, (op, arguments, i)))
            else:
                made.append(self.wrap(result, tangent))
                made[-1]._tangent.is_shared = tangent is not None and any(self.unpack(a)[1] is tangent for a in flat(arguments))
        return made

    # ---- Writes

    def _write(self, op: Operator, arguments: list, into: list) -> list:
        if not any(self.unpack(t)[1] is not None for t in flat(arguments)):
            before_write(self.primal(into))
            op.call([self.primal(a) for a in arguments], self.primal(into))
            for target in filter(self.has, into):
                self._set(target, None)
            return into
        results = self._results(op, with_copies(op.name, arguments, into, self._requires_grad))
        for target, result in zip(into, results, strict=True):
            primal, tangent = self.unpack(result)
            if tangent is not None and not self.has(target) and is_continuous(target):
                raise RuntimeError(
                    f"[{op.name}] forward mode: a result with a tangent cannot be written to a tensor that is no dual tensor; write to "
                    "a copy that is made of a dual tensor, such as with new_zeros() or torch.zeros_like()"
                )
            value = self.primal(target)
            if op.name != "assign" and not _C.can_cast(primal.dtype, value.dtype):
                raise RuntimeError(f"[{op.name}] result type {primal.dtype} can't be cast to the desired output type {value.dtype}")
            if value.shape != primal.shape and op.name != "assign":
                if any(a is target for a in arguments):
                    raise RuntimeError(
                        f"[{op.name}] output with shape {list(value.shape)} doesn't match the broadcast shape {list(primal.shape)}"
                    )
                raise NotImplementedError(f"[{op.name}] forward mode: expected out= to have the result's size {tuple(primal.shape)}")
            before_write([value])
            _C.ops.assign(value, primal, out=value)
            if self.has(target):
                self._set(target, tangent)
        return into

    def _requires_grad(self, tensor: Tensor) -> bool:
        tangent = self.unpack(tensor)[1]
        return tensor.requires_grad or (tangent is not None and tangent.requires_grad)

    def _set(self, target: Dual, tangent: Tensor | None) -> None:
        """Replaces the tangent of a tensor that was written, and of the tensors that share its memory."""
        shared = target._tangent
        if not target._path:
            if tangent is None and shared.value is None:
                return
            shared.value, shared.is_owned = None if tangent is None else _fitted(tangent, target), False
            shared.is_shared = tangent is not None
        else:
            if shared.value is None and tangent is None:
                return
            self._own(shared, tangent)
            view = shared.value
            for op, arguments, place in target._path:
                view = op.call([view, *(self.primal(a) for a in arguments[1:])])[place]
            view.zero_() if tangent is None else view.copy_(tangent)
        shared.writes += 1

    def _own(self, shared: _Tangent, other: Tensor | None) -> None:
        """Makes a copy of the tangent, laid out as its tensor, that no other tensor refers to."""
        like = shared.base if other is None else batched_like(shared.base, other)
        like = like if shared.value is None else batched_like(like, shared.value)
        if shared.is_owned and like.shape == shared.value.shape and type(shared.value) is type(like):
            return
        recorded = next((t for t in (other, shared.value) if isinstance(t, Recorded)), None)
        copy = _C.ops.zeros_like(like) if recorded is None else recorded._level.compute("zeros_like", [like, None, None], None)[0]
        if shared.value is not None:
            copy.copy_(shared.value)
        shared.value, shared.is_owned, shared.is_shared = copy, True, False

    # ---- Gradients and functions

    def gradients(self, outputs, grad_outputs, inputs, retain_graph: bool, create_graph: bool, allow_unused: bool) -> list:
        """The gradient of the primals; its tangent is the gradient of the outputs' tangents, plus that along the tangents of
        the given gradients."""
        primals = [[self.primal(t) for t in group] for group in (outputs, grad_outputs, inputs)]
        roots, given = [], []
        for output, gradient in zip(outputs, grad_outputs, strict=True):
            (primal, tangent), (g, dg) = self.unpack(output), self.unpack(gradient)
            if tangent is not None and tangent.requires_grad:
                like = _C.torch.ones_like(primal) if g is None else g
                roots.append(tangent)
                given.append(batched_like(like, tangent))
            if dg is not None and primal.requires_grad:
                roots.append(batched_like(primal, dg))
                given.append(dg)
        found = run_grad(*primals, retain_graph or bool(roots), create_graph, allow_unused)
        if not roots:
            return [g if g is None else self.wrap(g, None) for g in found]
        tangents = run_grad(roots, given, primals[2], retain_graph, create_graph, True)
        made: list[Tensor | None] = []
        for g, t, x in zip(found, tangents, primals[2]):
            g = _C.torch.zeros_like(x) if g is None and t is not None else g
            made.append(g if g is None else self.wrap(g, t))
        return made

    def backward(self, outputs, grad_outputs, retain_graph: bool, create_graph: bool, inputs: list) -> None:
        if self.is_running and any(self.unpack(t)[1] is not None for t in (*outputs, *grad_outputs)):
            raise NotImplementedError(
                "[backward] gradients of dual tensors cannot be accumulated in .grad, which would lose their tangents: use "
                "torch.autograd.grad() or torch.func.grad()"
            )
        values = [[self.primal(t) for t in group] for group in (outputs, grad_outputs, inputs)]
        level = innermost([t for group in values for t in group])
        run = _C.backward if level is None else level.backward
        run(values[0], values[1], retain_graph, create_graph, values[2])

    def apply_function(self, function: type, args: tuple) -> Any:
        """Function.apply() by the function's jvp(), which receives the tangents, None for tensors without one."""
        primals = tuple(self.primal(a) for a in args)
        if not self.is_running or all(self.unpack(a)[1] is None for a in args):
            return _wrapped_tree(self, function.apply(*primals))
        return _apply_function(self, function, args, primals)


def make_dual(level: ForwardLevel, primal: Tensor, tangent: Tensor | None) -> Dual:
    """A dual tensor of a user's tensors; a tangent of None is zero.

    Raises:
        ValueError: one of them is neither floating point nor complex.
        RuntimeError: their sizes, dtypes or devices differ.
    """
    for name, value in (("primal", primal), ("tangent", tangent)):
        if value is not None and not is_continuous(value):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {value.dtype}")
    if tangent is None:
        return level.wrap(primal, None)
    if primal.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. "
            f"Tensor is of size {list(primal.shape)} while the given forward gradient is of size {list(tangent.shape)}."
        )
    if primal.dtype != tangent.dtype or primal.device != tangent.device:
        raise RuntimeError(
            f"[make_dual] expected a tangent of dtype {primal.dtype} on {primal.device}, got {tangent.dtype} on {tangent.device}"
        )
    return level.wrap(primal, tangent if tangent.stride() == primal.stride() else tangent.clone())


def _fitted(tangent: Tensor, like: Tensor) -> Tensor:
    """The tangent of a result that is written to `like`."""
    tangent = tangent if tangent.dtype == like.dtype else tangent.to(like.dtype)
    return tangent if tangent.shape == like.shape else tangent.expand(like.shape)


def _wrapped_tree(level: ForwardLevel, results: Any) -> Any:
    return tree.map_leaves(lambda r: level.wrap(r, None) if isinstance(r, Tensor) and is_continuous(r) else r, results)


def _apply_function(level: ForwardLevel, function: type[Function], args: tuple, primals: tuple) -> Any:
    if (rule := function.jvp) is Function.jvp:
        return _without_rule(level, function, args, primals)
    if any(isinstance(p, Transformed) for p in primals):
        results, ctx = function.apply(*primals), FunctionCtx(function.__name__)
        ctx.needs_input_grad = tuple(isinstance(p, Tensor) and p.requires_grad for p in primals)
        marked = results
        if function.setup_context is None:
            with no_grad():
                marked = function.forward(ctx, *primals)  # for what it saves and marks
        else:
            function.setup_context(ctx, primals, results)
        ctx._finish_forward()
    else:
        results, ctx = function._applied(primals)
        marked = results
    tangents = [level.unpack(a)[1] for a in args]
    if ctx._materialize:
        tangents = [
            _C.torch.zeros_like(p) if t is None and isinstance(p, Tensor) and is_continuous(p) else t
            for p, t in zip(primals, tangents)
        ]  # fmt: skip
    with ctx._saved_for_forward():
        found = rule(ctx, *tangents)
    many = isinstance(results, (tuple, list))
    outputs = list(results) if many else [results]
    derivatives = list(found) if isinstance(found, (tuple, list)) else [found]
    if len(derivatives) != len(outputs):
        raise RuntimeError(
            f"{function.__name__}.jvp returned an incorrect number of forward gradients (expected {len(outputs)}, got {len(derivatives)})"
        )
    marked = list(marked) if many else [marked]
    for i, (output, tangent) in enumerate(zip(marked, derivatives)):
        if tangent is not None and isinstance(output, Tensor) and not function._is_differentiable(ctx, output):
            raise RuntimeError(
                f"Function's jvp returned a gradient at position {i}, but  the corresponding forward output is not a differentiable "
                "Tensor.You should return None at that position instead."
            )
    made = [_with_derivative(level, function, args, primals, o, t) for o, t in zip(outputs, derivatives)]
    return tuple(made) if many else made[0]


def _with_derivative(level: ForwardLevel, function: type, args: tuple, primals: tuple, output: Any, tangent: Any) -> Any:
    if not isinstance(output, Tensor) or not is_continuous(output):
        return output
    if tangent is not None and (not isinstance(tangent, Tensor) or tangent.shape != output.shape):
        got = f"a tensor of size {tuple(tangent.shape)}" if isinstance(tangent, Tensor) else type(tangent).__name__
        raise RuntimeError(
            f"{function.__name__}.jvp returned an invalid forward gradient: expected a tensor of size {tuple(output.shape)}, got {got}"
        )
    for argument, primal in zip(args, primals):
        if output is primal and level.has(argument):  # changed in place
            level._set(argument, tangent)
            return argument
    return level.wrap(output, tangent)


def _without_rule(level: ForwardLevel, function: type[Function], args: tuple, primals: tuple) -> Any:
    """The derivative by the function's backward(), which must be differentiable."""
    structure: list[Any] = []

    def compute(*tensors: Tensor) -> list:
        given = iter(tensors)
        structure[:] = [function.apply(*(next(given) if isinstance(p, Tensor) else p for p in primals))]
        return tree.leaves(structure[0])

    tensors = [(p, level.unpack(a)[1]) for p, a in zip(primals, args) if isinstance(p, Tensor)]
    results, tangents = twice_backward(compute, [p for p, _ in tensors], [t for _, t in tensors])
    made = [
        level.wrap(r, t) if isinstance(r, Tensor) and is_continuous(r) else r for r, t in zip(results, tangents, strict=True)
    ]
    return tree.rebuild(structure[0], made)
