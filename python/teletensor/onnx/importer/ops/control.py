"""Control flow: graphs as attributes of nodes, executed by the client. It waits for conditions that the engine computes.

A trace and torch.export cannot wait. torch.export records torch.cond for `If`; a Program computes both branches and selects. Both
compute all iterations of `Loop` up to a constant limit, and select. Gradients of values that are not selected are zeros, NaN included.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import teletensor as torch

from .... import _C
from ....fx.experimental.proxy_tensor import is_recorded
from .. import _types, _values
from .._call import Call, keeps, sees_types
from .._values import Narrow

Tensor = torch.Tensor
MOST_ITERATIONS = 1 << 24
MOST_SELECTED = 64  # iterations of a Loop in a Program whose condition the engine computes


def _is_recorded(condition: Any) -> bool:
    """Whether a condition has no value because it is computed by the recorded program."""
    condition = _values.plain(condition)
    return isinstance(condition, Tensor) and (is_recorded(condition) or _C.is_tracing())


def _tensors(call: Call, values: Any, what: str) -> list[Tensor]:
    """The values as tensors of the engine, which a recorded program can select."""
    found = []
    for value in values:
        plain = _values.plain(value)
        if isinstance(value, Narrow) or not isinstance(plain, (Tensor, np.ndarray, _values.Sizes)):
            raise NotImplementedError(f"[{call.name}] {what} other than tensors, in a program whose condition is computed by it")
        found.append(call.tensor(value))
    return found


def _selected(call: Call, condition: Tensor, news: list[Tensor], olds: list[Tensor]) -> list[Tensor]:
    for new, old in zip(news, olds, strict=True):
        if new.dtype != old.dtype or tuple(new.shape) != tuple(old.shape):
            raise NotImplementedError(
                f"[{call.name}] values of different sizes or types for the outcomes of a condition that the program computes: "
                f"{tuple(new.shape)} and {tuple(old.shape)}"
            )
    return [torch.where(condition, new, old) for new, old in zip(news, olds, strict=True)]


def _guarded(value: Any, condition: Tensor) -> Any:
    """The value, to which no gradient flows unless the condition is true: where() selects, so that NaN does not either."""
    if isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex()):
        return torch.where(condition, value, value.detach())
    return value


def _reading(call: Call, plan: Any, condition: Tensor) -> Call:
    """A call whose graph reads guarded values of the graphs around it."""
    run = call.run.nested()
    for name in plan.captured:
        value = call.run.value(name)
        if (guarded := _guarded(value, condition)) is not value:
            run.values[name] = guarded
    return Call(call.name, call.version, call.attributes, call.outputs, run)


def _both(call: Call, condition: Any) -> tuple:
    """`If` in a recorded program."""
    chosen = call.tensor(condition).reshape([]).to(torch.bool)

    def branch(name: str, condition: Tensor | None = None) -> list[Tensor]:
        plan = call.need(name)
        found = plan.run(call if condition is None else _reading(call, plan, condition))
        return [t.clone() for t in _tensors(call, found, "results")]

    if is_recorded(chosen):
        return tuple(torch.cond(chosen, lambda: tuple(branch("then_branch")), lambda: tuple(branch("else_branch")), ()))
    return tuple(_selected(call, chosen, branch("then_branch", chosen), branch("else_branch", ~chosen)))


@keeps()
@sees_types
def _if(call: Call, condition: Any) -> tuple:
    if _is_recorded(condition):
        return _both(call, condition)
    return tuple(call.need("then_branch" if _values.truth(condition) else "else_branch").run(call))


def _stacked(call: Call, rows: list, axis: int = 0) -> Any:
    """Rows of a scanned output as one value."""
    if rows and all(isinstance(r, np.ndarray) for r in rows):
        return np.stack(rows, axis)
    if rows and isinstance(rows[0], Narrow):
        return Narrow(torch.stack([call.tensor(r.value) for r in rows], axis), rows[0].type)
    return torch.stack([call.tensor(r) for r in rows], axis)


def _keep(call: Call, column: list, value: Any) -> None:
    """Adds a row of a scanned output."""
    plain = _values.plain(value)
    call.run.allowance.use(0, plain.nbytes if isinstance(plain, np.ndarray) else 64)
    column.append(value)


def _nothing(call: Call, declared: tuple, axis: int = 0) -> Any:
    """The scanned output of a loop that has not run: of the type that the body declares, with sizes of 0 for unknown ones."""
    number, dims = declared
    if not number or number == _types.STRING:
        raise NotImplementedError(f"[{call.name}] without iterations, the element type of a scanned output is not known")
    sizes = [n or 0 for n in dims or ()]
    sizes.insert(axis + len(sizes) + 1 if axis < 0 else axis, 0)
    found = torch.zeros(sizes, dtype=_types.dtype_of(number), device=call.device)
    return Narrow(found, number) if number in _types.NARROW else found


@keeps()
@sees_types
def _loop(call: Call, count: Any = None, condition: Any = None, *carried: Any) -> tuple:
    body = call.need("body")
    limit = None if count is None else int(_values.integer(count))
    if limit is not None and limit > MOST_ITERATIONS:
        raise ValueError(f"[Loop] expected at most {MOST_ITERATIONS} iterations, got {limit}")
    values = list(carried)
    rows: list[list] = [[] for _ in range(len(body.outputs) - 1 - len(values))]
    active: Tensor | None = None  # whether an iteration takes place, if the recorded program computes it
    going = True
    if condition is not None and _is_recorded(condition):
        active = _first(call, limit, rows, condition)
    elif condition is not None:
        going = _values.truth(condition)
    done = 0
    has_condition = len(body.inputs) > 1
    while going and (limit is None or done < limit):
        given = [np.asarray(done, np.int64), np.asarray(True)][: 2 if has_condition else 1]
        if active is None:
            found = body.run(call, *given, *values)
        else:
            found = body.run(_reading(call, body, active), *given, *(_guarded(_values.plain(v), active) for v in values))
        if active is None:
            values = found[1 : 1 + len(values)]
        else:
            olds, news = _tensors(call, values, "values"), _tensors(call, found[1 : 1 + len(values)], "values")
            values = _selected(call, active, news, olds)
        for column, value in zip(rows, found[1 + len(values) :]):
            _keep(call, column, value)
        done += 1
        if limit is None or done < limit:
            if active is None and not _is_recorded(found[0]):
                going = _values.truth(found[0])
                continue
            following = call.tensor(found[0]).reshape([]).to(torch.bool)
            active = _first(call, limit, rows, following) if active is None else active & following
    declared = body.declared[1 + len(values) :]
    return (*values, *(_stacked(call, column) if column else _nothing(call, d) for column, d in zip(rows, declared)))


def _first(call: Call, limit: int | None, rows: list, condition: Any) -> Tensor:
    """The condition of a Loop that the recorded program computes. Raises NotImplementedError if it cannot select."""
    if rows or limit is None or limit > MOST_SELECTED:
        raise NotImplementedError(
            f"[Loop] a condition that a program computes from values: expected a constant of at most {MOST_SELECTED} iterations and no "
            f"scanned outputs, whose sizes would depend on it; got {'no limit' if limit is None else limit} and {len(rows)} scanned outputs"
        )
    return call.tensor(condition).reshape([]).to(torch.bool)


def _row(value: Any, axis: int, at: int) -> Any:
    if isinstance(value, Narrow):
        return Narrow(_row(value.value, axis, at), value.type)
    if isinstance(value, np.ndarray):
        return np.take(value, at, axis)
    return value.select(axis, at)


@keeps()
@sees_types
def _scan(call: Call, *inputs: Any) -> tuple:
    body, scanned = call.need("body"), call.need("num_scan_inputs")
    states, xs = list(inputs[: len(inputs) - scanned]), list(inputs[len(inputs) - scanned :])
    outputs = len(body.outputs) - len(states)
    in_axes = call.get("scan_input_axes") or [0] * scanned
    out_axes = call.get("scan_output_axes") or [0] * outputs
    in_back = call.get("scan_input_directions") or [0] * scanned
    out_back = call.get("scan_output_directions") or [0] * outputs
    xs = [x if isinstance(x, (Narrow, np.ndarray)) else call.tensor(x) for x in xs]
    in_axes = [a % len(_values.shape_of(x)) for a, x in zip(in_axes, xs)]
    length = int(_values.shape_of(xs[0])[in_axes[0]])
    lengths = [int(_values.shape_of(x)[a]) for x, a in zip(xs, in_axes)]
    if set(lengths) != {length}:
        raise ValueError(f"[Scan] expected scanned inputs of equal lengths, got {lengths}")
    rows: list[list] = [[] for _ in range(outputs)]
    for step in range(length):
        given = [_row(x, a, length - 1 - step if back else step) for x, a, back in zip(xs, in_axes, in_back)]
        found = body.run(call, *states, *given)
        states = found[: len(states)]
        for column, value in zip(rows, found[len(states) :]):
            _keep(call, column, value)
    rows = [list(reversed(r)) if back else r for r, back in zip(rows, out_back)]
    return (
        *states,
        *(
            _stacked(call, r, a) if r else _nothing(call, d, a)
            for r, a, d in zip(rows, out_axes, body.declared[len(states) :])
        ),
    )


@keeps()
@sees_types
def _scan_batched(call: Call, lengths: Any, *inputs: Any) -> tuple:
    """Scan of version 8: states and sequences have a batch dimension in front."""
    scanned = call.need("num_scan_inputs")
    values = [call.tensor(v) for v in inputs]
    batch = int(values[0].shape[0])
    size = int(values[-1].shape[1])
    lengths = [size] * batch if lengths is None else [int(n) for n in _values.ints(lengths)]
    back = call.get("directions") or [0] * scanned
    body = call.need("body")
    n_states = len(values) - scanned
    results: list[list] = [[] for _ in body.outputs]
    for b in range(batch):
        states = [v[b] for v in values[:n_states]]
        rows: list[list] = [[] for _ in range(len(body.outputs) - n_states)]
        for step in range(lengths[b]):
            given = [v[b, lengths[b] - 1 - step if r else step] for v, r in zip(values[n_states:], back)]
            found = body.run(call, *states, *given)
            states = found[:n_states]
            for column, value in zip(rows, found[n_states:]):
                column.append(call.tensor(value))
        for i, state in enumerate(states):
            results[i].append(call.tensor(state))
        for i, column in enumerate(rows):
            stacked = torch.stack(column)
            rest = torch.zeros([size - lengths[b], *stacked.shape[1:]], dtype=stacked.dtype, device=stacked.device)
            results[n_states + i].append(torch.cat([stacked, rest]) if lengths[b] < size else stacked)
    return tuple(torch.stack(r) for r in results)


@keeps()
@sees_types
def _sequence_map(call: Call, *inputs: Any) -> tuple:
    body = call.need("body")
    columns: list[list] = [[] for _ in body.outputs]
    if len({len(v) for v in inputs if isinstance(v, list)}) > 1:
        raise ValueError(f"[SequenceMap] expected sequences of equal lengths, got {[len(v) for v in inputs if isinstance(v, list)]}")
    for i in range(len(inputs[0])):
        found = body.run(call, *(v[i] if isinstance(v, list) else v for v in inputs))
        for column, value in zip(columns, found):
            column.append(value)
    return tuple(columns)


TABLE: dict[str, tuple] = {
    "If": ((1, _if),), "Loop": ((1, _loop),), "Scan": ((8, _scan_batched), (9, _scan)), "SequenceMap": ((17, _sequence_map),),
}  # fmt: skip
