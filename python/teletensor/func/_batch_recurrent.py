"""Recurrent layers of which vmap maps the weights: each step is a batched product, one matrix per entry."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _C
from .._C import Tensor
from ._batch_call import Call, NoRule
from ._batch_composites import gru_state, lstm_states

_ops = _C.ops
# Elements of the states of an entry from which the CPU's kernel for all steps of an LSTM, called once per entry, is faster.
_LARGE_STATE = 1024


def _product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The linear layer of each entry: x (entries, rows, features), weights with or without a dimension of entries."""
    product = _ops.matmul(x, _ops.transpose(weight, -2, -1))
    return product if bias is None else _ops.add(product, _ops.unsqueeze(bias, 1) if bias.dim() == 2 else bias)


def _lstm_step(entered: Tensor, states: Sequence[Tensor], weights: Sequence[Tensor | None]) -> list[Tensor]:
    _, w_hh, _, b_hh, w_hr = weights
    output, state = lstm_states(_ops.add(entered, _product(states[0], w_hh, b_hh)), states[1])
    return [output if w_hr is None else _product(output, w_hr, None), state]


def _gru_step(entered: Tensor, states: Sequence[Tensor], weights: Sequence[Tensor | None]) -> list[Tensor]:
    _, w_hh, _, b_hh, _ = weights
    return [gru_state(entered, _product(states[0], w_hh, b_hh), states[0])]


def _tanh_step(entered: Tensor, states: Sequence[Tensor], weights: Sequence[Tensor | None]) -> list[Tensor]:
    _, w_hh, _, b_hh, _ = weights
    return [_ops.tanh(_ops.add(entered, _product(states[0], w_hh, b_hh)))]


def _relu_step(entered: Tensor, states: Sequence[Tensor], weights: Sequence[Tensor | None]) -> list[Tensor]:
    _, w_hh, _, b_hh, _ = weights
    return [_ops.relu(_ops.add(entered, _product(states[0], w_hh, b_hh)))]


_STEPS = {"lstm": _lstm_step, "gru": _gru_step, "tanh": _tanh_step, "relu": _relu_step}


def _weights(call: Call, which: int) -> list[Tensor | None]:
    """The weights of one layer in one direction: w_ih, w_hh, b_ih, b_hh and w_hr."""
    count = call["num_layers"] * (2 if call["bidirectional"] else 1)
    each = len(call["params"]) // count
    found: list[Tensor | None] = [call.value(p) for p in call["params"][which * each : (which + 1) * each]]
    biases = found[2:4] if call["has_biases"] else [None, None]
    return [*found[:2], *biases, found[-1] if each % 2 else None]


def layers_with_mapped_weights(call: Call) -> list[Tensor]:
    """lstm, gru and rnn for all entries. Sequences that are packed, or whose layers have dropout between them, have no rule."""
    x, given = call["input"], call["hx"] if isinstance(call["hx"], list) else [call["hx"]]
    if call["batch_sizes"] or x.dim() != 3 or 0 in x.shape or _C.autocast_dtype(x.device.type) is not None:
        raise NoRule
    call.result_sizes()  # raises the operator's errors
    step = _STEPS.get(call["nonlinearity"] if call.op.name == "rnn" else call.op.name)
    if step is None:
        raise NoRule  # whose call raises the operator's error
    if call.op.name == "lstm" and x.device.type == "cpu" and given[0].shape[1] * given[0].shape[2] >= _LARGE_STATE:
        rows = [call.op.call(list(entry)) for entry in zip(*map(call.level.entries, call.args.values()))]
        return [_C.torch.stack(column) for column in zip(*rows)]
    x = call.expanded(x)
    x = x if call["batch_first"] else _ops.transpose(x, 1, 2)  # entries, sequences, steps, features
    initial = [_ops.unbind(call.expanded(h), 1) for h in given]
    directions = 2 if call["bidirectional"] else 1
    last: list[list[Tensor]] = [[] for _ in given]
    for layer in range(call["num_layers"]):
        outputs = []
        for direction in range(directions):
            which = layer * directions + direction
            weights = _weights(call, which)
            entered = _ops.unflatten(_product(_ops.flatten(x, 1, 2), weights[0], weights[2]), 1, list(x.shape[1:3]))
            steps = _ops.unbind(entered, 2)
            states, made = [h[which] for h in initial], []
            for values in reversed(steps) if direction else steps:
                states = step(values, states, weights)
                made.append(states[0])
            outputs.append(_ops.stack(made[::-1] if direction else made, 2))
            for all_last, state in zip(last, states, strict=True):
                all_last.append(state)
        x = outputs[0] if directions == 1 else _ops.cat(outputs, -1)
    x = x if call["batch_first"] else _ops.transpose(x, 1, 2)
    return [x, *(_ops.stack(states, 1) for states in last)]
