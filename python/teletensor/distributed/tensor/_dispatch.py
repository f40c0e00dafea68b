"""Computes an operator with DTensor arguments: places the arguments, calls the operator on each member, wraps the results."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from ... import _C
from ..._library.dispatch import engine_call
from ..._library.engine_operators import Operator, operator_named
from ..._library.loaded import LoadedOverload
from ..._library.operators import OpOverload
from .._device_mesh import Member
from . import _observer, _repeated
from ._copies import copies
from ._decompositions import DECOMPOSITIONS
from ._redistribute import equalized, redistribute_locals
from ._rule import Plan, Rule, make_plan
from ._rules import CallShape, rule_of
from ._spec import Spec, has_partial, local_box
from ._state import Distributed, make
from .placement_types import Replicate

# Operators that update each element of several tensors from the same elements of others.
_ELEMENTWISE_UPDATES = {"sgd_step", "adam_step"}
# Random numbers that depend on the sizes of their argument only: drawn for the whole tensor, so that they do not depend on
# its placement.
_DRAWS = {
    "uniform_like", "normal_like", "bernoulli_like", "exponential_like", "random_like", "rand_like", "randn_like",
    "randint_like", "cauchy_like", "geometric_like", "log_normal_like",
}  # fmt: skip
_NEW = {"new_empty", "new_zeros", "new_ones", "new_full"}


_SAME_SESSION = contextlib.nullcontext()
_implicit = threading.local()  # replicates: whether ordinary tensors among DTensors are equal on all ranks


@contextlib.contextmanager
def implicit_replication() -> Iterator[None]:
    """Within the context, operators with DTensors accept ordinary tensors, which must be equal on all ranks. Of this thread."""
    before, _implicit.replicates = getattr(_implicit, "replicates", False), True
    try:
        yield
    finally:
        _implicit.replicates = before


class _Arguments:
    """A call's arguments, whose tensors are numbered: lists of tensors have several."""

    def __init__(self, op: Operator, arguments: Sequence[Any], into: Sequence | None):
        self.op, self.values, self.tensors = op, list(arguments), []
        self.written: list[bool] = []  # by tensor: whether the operator writes to it
        for value, written in zip(arguments, op.written, strict=True):
            for tensor in value if isinstance(value, list) else (value,):
                if isinstance(tensor, _C.Tensor):
                    self.tensors.append(tensor)
                    self.written.append(written)
        self.mesh = next(t for t in [*self.tensors, *(into or ())] if isinstance(t, Distributed))._spec.mesh
        self.tensors = [self._distributed(t) for t in self.tensors]
        self.specs = [t._spec for t in self.tensors]
        self.requires_grad = [t.requires_grad for t in self.tensors]

    def _distributed(self, tensor):
        if isinstance(tensor, Distributed):
            if tensor._spec.mesh is not self.mesh and tensor._spec.mesh != self.mesh:
                raise RuntimeError(
                    f"[{self.op.name}] expected DTensors of one device mesh, got {self.mesh} and {tensor._spec.mesh}"
                )
            return tensor
        if tensor.dim() == 0 or self.op.name == "assign" or getattr(_implicit, "replicates", False):
            return replicate(tensor, self.mesh)
        raise RuntimeError(
            f"aten.{self.op.name}: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before calling "
            "distributed operators!"
        )

    def local(self, tensors: Sequence[_C.Tensor]) -> list[Any]:
        """The arguments of a member's call, with these tensors."""
        remaining = iter(tensors)
        return [
            next(remaining)
            if isinstance(value, _C.Tensor)
            else [next(remaining) if isinstance(t, _C.Tensor) else t for t in value]
            if isinstance(value, list)
            else value
            for value in self.values
        ]

    def shape(self, sizes: list | None = None) -> CallShape:
        """What rules depend on; `sizes` are those of the results."""
        inputs, outputs = [tuple(t.shape) for t in self.tensors], [tuple(s) for s in sizes or ()]
        return CallShape(self.op.name, self.by_name(self.values), inputs, outputs, any(self.requires_grad))

    def by_name(self, values: Sequence[Any]) -> dict[str, Any]:
        return dict(zip(self.op.names, values, strict=True))


def replicate(tensor: _C.Tensor, mesh):
    """A DTensor whose value on all ranks is that of a local tensor: equal ones, or in a controller one that is copied."""
    if len(mesh._members()) > 1 and tensor.requires_grad and _C.is_grad_enabled():
        raise RuntimeError(
            "[DTensor] expected a DTensor, got a Tensor that requires grad, to which no gradient flows from the other engines: use "
            "distribute_tensor()"
        )
    locals_ = [tensor] if len(mesh._members()) == 1 else copies(tensor, mesh)
    return make(locals_, Spec(mesh, [Replicate()] * mesh.ndim), tensor.shape)


def dispatch(func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Computes a call of an operator of PyTorch with DTensors: ``DTensor.__torch_dispatch__``."""
    if func.sharded is not None:
        return func.sharded(list(args), kwargs)
    call = engine_call(args)
    if call is None:  # an operator whose kernel is a Python function, or a call by another handler
        return func.run(*func._schema.bind(args, kwargs)) if type(func) in (OpOverload, LoadedOverload) else func(*args, **kwargs)
    name, _, into = call
    results = compute(*call)
    if into is not None:
        return into[0] if len(into) == 1 else tuple(into)
    count = operator_named(name).num_outputs
    return None if count == 0 else results[0] if count == 1 else tuple(results)


def compute(name: str, arguments: list, into: list | None = None) -> list:
    """The results of an operator of the engine. `into` are the tensors that receive them, if they exist."""
    op = operator_named(name)
    if name in _ELEMENTWISE_UPDATES:
        return _update(op, arguments)
    recognised = None if _observer.called is not None else _repeated.recognised(name, arguments, into, op.is_pointwise)
    if recognised is not None and (known := _repeated.known(recognised)) is not None:
        return _repeated.run(known, recognised, into)
    call = _Arguments(op, arguments, into)
    if _observer.called is not None:
        _observer.called(name, arguments)
    if not call.mesh._members():
        raise RuntimeError(f"[{name}] this process is not a rank of the mesh {call.mesh}")
    if name in _NEW:
        return _run(op, call, None, _replicated(call, 1), op.result_sizes(arguments), None)
    if name in _DRAWS:
        return [_draw(op, call, into)]
    if name in DECOMPOSITIONS and into is None:
        result = DECOMPOSITIONS[name](call.shape(), call.specs)
        if result is not None:
            return result if isinstance(result, list) else [result]
    target = None if into is None else _writable(name, into[0])._spec.placements
    rule, plan, sizes = _planned(op, call, target)
    if op.is_random and into is not None:
        return _assign(into, compute(name, arguments))
    if plan is None and into is None:
        plan, rule = _replicated(call, max(len(sizes or ()), 1)), None
    if plan is None:
        return _assign(into, compute(name, arguments))
    if into is not None and sizes is not None:
        _check_sizes(name, into, sizes)
    results = _run(op, call, rule, plan, sizes, into)
    if recognised is not None and sizes is not None:
        _remember(recognised, call, rule, plan, sizes, into)
    return results


def repeated(name: str, arguments: list, into: list | None) -> Any:
    """The result of a call that equals one before; NotImplemented if there was none."""
    if _observer.called is not None or name in _ELEMENTWISE_UPDATES:
        return NotImplemented
    op = operator_named(name)
    recognised = _repeated.recognised(name, arguments, into, op.is_pointwise)
    if recognised is None or (known := _repeated.known(recognised)) is None:
        return NotImplemented
    results = _repeated.run(known, recognised, into)
    if into is None and op.num_outputs == 0:
        return None
    return results[0] if len(results) == 1 and (into is not None or op.num_outputs == 1) else tuple(results)


def _remember(
    recognised: _repeated.Call, call: _Arguments, rule: Rule | None, plan: Plan, sizes: list, into: list | None
) -> None:
    """Stores what a call did, if an equal one can do it without the plan."""
    op = call.op
    moves = any(spec.placements != wanted for spec, wanted in zip(call.specs, plan.inputs, strict=True))
    if op.is_random or (moves and (rule is None or rule.copies_values)):
        return
    local, template, members = recognised.local, None, call.mesh._members()
    if rule is not None and into is None:
        if rule.run is not None and _offset(call, rule, plan, members[0]) is not None:
            return
        if rule.arguments is not None:
            if op.is_pointwise:
                return
            boxes = [local_box(Spec(call.mesh, p), size, members[0])[1] for p, size in zip(plan.outputs, sizes, strict=True)]
            name, named = rule.arguments(call.by_name(local), boxes)
            op, template = operator_named(name), _repeated.template_of(local, list(named.values()))
            if template is None:
                return
    summed = []
    if _C.is_grad_enabled():
        places = [i for i, value in enumerate(call.values) for t in (value if isinstance(value, list) else (value,))
                  if isinstance(t, _C.Tensor)]  # fmt: skip
        for place, wanted, requires_grad in zip(places, plan.inputs, call.requires_grad, strict=True):
            dims = _summed_along(plan, wanted) if requires_grad else []
            if dims and isinstance(call.values[place], list):
                return
            if dims:
                summed.append((place, dims))
    moved = call.op.is_view and (call.specs[0].is_copy or call.specs[0].placements != plan.inputs[0])
    placements = [*plan.outputs, *plan.outputs[-1:] * (len(sizes) - len(plan.outputs))]
    outputs = [(p, moved, size) for p, size in zip(placements, sizes, strict=True)]
    _repeated.remember(recognised, _repeated.Remembered(op, template, summed, outputs))


_plans: dict[tuple, tuple[Rule | None, Plan | None, list | None]] = {}  # cache, by everything that a plan depends on
_MAX_PLANS = 4096


def _key(value):
    """The properties of an argument that a plan may depend on: whether it is a tensor, but not the tensor's values."""
    if isinstance(value, _C.Tensor):
        return True
    return tuple(map(_key, value)) if isinstance(value, list) else repr(value)


def _planned(op: Operator, call: _Arguments, target) -> tuple[Rule | None, Plan | None, list | None]:
    """The rule of a call, its plan, None if there is none, and the sizes of the results, None if they depend on data."""
    tensors = [(spec.placements, t.shape, t.dtype) for t, spec in zip(call.tensors, call.specs, strict=True)]
    key = (op.name, *tensors, any(call.requires_grad), target, call.mesh.shape, *map(_key, call.values))
    if key not in _plans:
        sizes = op.result_sizes(call.values)
        shape = call.shape(sizes)
        rule = rule_of(shape, op.is_pointwise) if sizes else None
        placements = [spec.placements for spec in call.specs]
        plan = None if rule is None else make_plan(rule, placements, shape.inputs, call.mesh.shape, target)
        if len(_plans) >= _MAX_PLANS:
            _plans.clear()
        _plans[key] = rule, plan, sizes
    return _plans[key]


def _writable(name: str, tensor):
    if not isinstance(tensor, Distributed):
        raise RuntimeError(f"[{name}] expected a DTensor as the result of an operator on DTensors, got a Tensor")
    if tensor._spec.is_copy:
        raise RuntimeError(
            f"[{name}] cannot write to this view in place: its elements are divided among ranks, so it is a copy. Use an operator "
            "that returns a new tensor"
        )
    return tensor


def _check_sizes(name: str, into: Sequence[_C.Tensor], sizes: Sequence[Sequence[int]]) -> None:
    """Raises RuntimeError for a result of another size: the local tensors would be resized, but not the DTensor."""
    for target, size in zip(into, sizes):
        if list(target.shape) != list(size):
            raise RuntimeError(f"[{name}] expected a DTensor of size {list(size)} as the result, got {list(target.shape)}")


def _replicated(call: _Arguments, results: int) -> Plan:
    whole = (Replicate(),) * call.mesh.ndim
    return Plan([whole] * len(call.tensors), [whole] * results, [None] * call.mesh.ndim, [False] * call.mesh.ndim)


def _placed(call: _Arguments, rule: Rule | None, plan: Plan) -> list[list[_C.Tensor]]:
    """The local tensors of each argument, in the placements of the plan."""
    placed = []
    records = _C.is_grad_enabled()
    each = zip(call.tensors, call.specs, plan.inputs, call.written, call.requires_grad, strict=True)
    for tensor, spec, wanted, written, requires_grad in each:
        locals_ = tensor._locals
        if spec.placements != wanted and (rule is None or rule.copies_values):
            if written:
                raise NotImplementedError(
                    f"[{call.op.name}] expected replicated tensors, which it writes, got placements {spec}"
                )
            locals_ = redistribute_locals(locals_, spec, tensor.shape, wanted)
        if requires_grad and records:
            locals_ = _with_summed_gradient(call, plan, wanted, locals_)
        placed.append(locals_)
    return placed


def _with_summed_gradient(call: _Arguments, plan: Plan, wanted, locals_):
    """Marks the gradient of a replicated tensor as a sum over ranks, if the call is divided."""
    for m in _summed_along(plan, wanted):
        locals_ = [
            _C.ops.group_gradient_reduced(t, member.groups[m]) if t.requires_grad else t
            for t, member in zip(locals_, call.mesh._members(), strict=True)
        ]
    return locals_


def _summed_along(plan: Plan, wanted) -> list[int]:
    """The dimensions of the mesh along which the gradient of an argument is a sum: it is replicated, and the call is divided."""
    divided = [label is not None or keeps for label, keeps in zip(plan.divided, plan.keeps_partial, strict=True)]
    return [m for m, placement in enumerate(wanted) if divided[m] and isinstance(placement, Replicate)]


def _offset(call: _Arguments, rule: Rule, plan: Plan, member: Member) -> int | None:
    """The start of a member's part of the summed label that is divided; None if none is."""
    for label in {label for label in plan.divided if label in rule.summed}:
        for tensor, labels, placements in zip(call.tensors, rule.inputs, plan.inputs, strict=True):
            if label in labels:
                offsets, _ = local_box(Spec(call.mesh, placements), tensor.shape, member)
                return offsets[labels.index(label)]
    return None


def _run(op: Operator, call: _Arguments, rule: Rule | None, plan: Plan, sizes: list | None, into: list | None) -> list:
    members = call.mesh._members()
    placed = _placed(call, rule, plan)
    moved = op.is_view and (call.specs[0].is_copy or call.specs[0].placements != plan.inputs[0])
    specs = [Spec(call.mesh, placements, is_copy=moved) for placements in plan.outputs]
    results: list[list[_C.Tensor]] = []
    creates = rule is None or rule.run is not None or len(placed) == 0  # may create tensors in the member's session
    for k, member in enumerate(members):
        values = call.local([locals_[k] for locals_ in placed])
        outs = None if into is None else [t._locals[k] for t in into]
        with member.session() if creates else _SAME_SESSION:
            results.append(_run_local(op, call, rule, plan, member, values, specs, sizes, outs))
    if op.is_random and into is None:
        columns = [equalized(call.mesh, [r[i] for r in results]) for i in range(len(results[0]))]
        results = [list(row) for row in zip(*columns, strict=True)]
    if into is not None:
        return into
    if not results[0]:
        return []
    if sizes is None:  # sizes that depend on data
        sizes = [t.shape for t in results[0]]
        specs = [specs[0]] * len(sizes)
    if len(specs) < len(sizes):
        specs = specs + [specs[-1]] * (len(sizes) - len(specs))
    return [make([r[i] for r in results], specs[i], sizes[i]) for i in range(len(sizes))]


def _run_local(op, call, rule, plan, member, values, specs, sizes, outs) -> list[_C.Tensor]:
    if rule is not None and rule.run is not None and outs is None:
        offset = _offset(call, rule, plan, member)
        if offset is not None:
            return rule.run(call.by_name(values), offset)
    if rule is not None and rule.arguments is not None and outs is None:
        boxes = [local_box(spec, size, member)[1] for spec, size in zip(specs, sizes, strict=True)]
        name, named = rule.arguments(call.by_name(values), boxes)
        return operator_named(name).call(list(named.values()))
    return op.call(values, outs)


def _assign(into: list, values: list) -> list:
    """Stores results in existing DTensors, in whose placement they cannot be computed."""
    for target, value in zip(into, values, strict=True):
        spec, own = target._spec, value._spec
        if has_partial(spec) and spec != own:
            raise NotImplementedError(f"[copy_] cannot write a tensor with placements {own} to one with placements {spec}")
        locals_ = redistribute_locals(value._locals, own, value.shape, spec.placements)
        for local, new in zip(target._locals, locals_, strict=True):
            _C.ops.assign(local, new, out=local)
    return into


def _draw(op: Operator, call: _Arguments, into: list | None):
    """Random numbers of the whole tensor, of which each rank keeps its part."""
    like = call.tensors[0]
    spec, whole = call.specs[0], Spec(call.mesh, [Replicate()] * call.mesh.ndim)
    if has_partial(spec):
        spec = whole
    drawn = []
    for k, member in enumerate(call.mesh._members()):
        with member.session():
            local = like._locals[k]
            full = _C.ops.empty(list(like.shape), dtype=local.dtype, device=local.device)
            drawn.append(op.call(call.local([full]))[0])
    placed = redistribute_locals(equalized(call.mesh, drawn), whole, like.shape, spec.placements)
    result = make(placed, spec, like.shape)
    return result if into is None else _assign(into, [result])[0]


def _update(op: Operator, arguments: list) -> list:
    """Applies an update of lists of tensors to the local tensors.

    The tensors of one parameter have one placement. Different parameters may be on different meshes, or plain tensors, as
    in a model of which some layers are parallel: each kind is updated by a call of its own.
    """
    places = [i for i, value in enumerate(arguments) if isinstance(value, list) and value and isinstance(value[0], _C.Tensor)]
    by_mesh: dict[Any, list[int]] = {}
    for number, tensors in enumerate(zip(*(arguments[i] for i in places), strict=True)):
        distributed = [isinstance(t, Distributed) for t in tensors]
        if not any(distributed):
            by_mesh.setdefault(None, []).append(number)
            continue
        if not all(distributed):
            raise RuntimeError(f"[{op.name}] expected a parameter, its gradient and its state to be DTensors, got Tensors too")
        specs = {t._spec for t in tensors}
        if len(specs) > 1 or has_partial(next(iter(specs))):
            raise RuntimeError(f"[{op.name}] expected tensors of one placement, got {', '.join(map(repr, specs))}")
        by_mesh.setdefault(next(iter(specs)).mesh, []).append(number)
    shared = [i for i, written in enumerate(op.written) if written and i not in places and isinstance(arguments[i], _C.Tensor)]
    for rest, (mesh, numbers) in zip(range(len(by_mesh) - 1, -1, -1), by_mesh.items(), strict=True):
        values = [[value[n] for n in numbers] if i in places else value for i, value in enumerate(arguments)]
        for i in shared if rest else ():  # a step number that every call would increase: only the last one does
            values[i] = values[i].clone()
        if mesh is None:
            op.call(values)
            continue
        for k, member in enumerate(mesh._members()):
            with member.session():
                op.call([[t._locals[k] for t in value] if i in places else value for i, value in enumerate(values)])
    return []
