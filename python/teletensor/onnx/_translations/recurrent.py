"""Recurrent layers and cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import _C
from .._builder import Builder, Value
from .._registry import TRANSLATIONS, Untranslatable, translates

# Places of PyTorch's gates in ONNX's order: LSTM i, f, g, o -> i, o, f, g; GRU r, z, n -> z, r, n.
_ORDERS = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}


def _gates(b: Builder, parameter: Value, kind: str) -> Value:
    """Rows of a parameter in ONNX's order of gates, with a dimension for the direction."""
    order = _ORDERS[kind]
    if len(order) > 1:
        parts = b.op("Split", parameter, axis=0, num_outputs=len(order), outputs=len(order))
        parameter = b.op("Concat", *(parts[i] for i in order), axis=0, shape=parameter.shape)
    return b.unsqueeze(parameter, [0])


class _Layer:
    """The parameters of one layer, for one or two directions."""

    def __init__(self, b: Builder, kind: str, rows: list[Sequence[Value]]) -> None:
        def joined(values: list[Value]) -> Value:
            return values[0] if len(values) == 1 else b.op("Concat", *values, axis=0)

        self.W = joined([_gates(b, row[0], kind) for row in rows])
        self.R = joined([_gates(b, row[1], kind) for row in rows])
        self.B = None
        if len(rows[0]) == 4:
            self.B = joined([b.op("Concat", _gates(b, row[2], kind), _gates(b, row[3], kind), axis=1) for row in rows])
        self.hidden = rows[0][1].shape[1]


def layers(
    b: Builder, kind: str, x: Value, states: Sequence[Value], params: Sequence[Value], has_biases: bool, num_layers: int, dropout: float,
    train: bool, bidirectional: bool, batch_first: bool, activation: str | None = None,
) -> list[Value]:  # fmt: skip
    if dropout and train and num_layers > 1:
        raise Untranslatable("dropout between recurrent layers; call eval() before the export")
    per_layer = 4 if has_biases else 2
    directions = 2 if bidirectional else 1
    if len(params) != per_layer * num_layers * directions:
        raise Untranslatable("projections of an LSTM's states (proj_size)")
    unbatched = x.rank == 2
    if unbatched:
        x, states = b.unsqueeze(x, [1]), [b.unsqueeze(s, [1]) for s in states]
    elif batch_first:
        x = b.transpose(x, [1, 0, 2])
    finals: list[list[Value]] = [[] for _ in states]
    for layer in range(num_layers):
        rows = [
            params[(layer * directions + d) * per_layer : (layer * directions + d + 1) * per_layer]
            for d in range(directions)
        ]
        weights = _Layer(b, kind, rows)
        initial = [b.slice(s, 0, layer * directions, (layer + 1) * directions) if num_layers > 1 else s for s in states]
        options: dict[str, Any] = {
            "hidden_size": weights.hidden,
            "direction": "bidirectional" if bidirectional else "forward",
        }
        if kind == "GRU":
            options["linear_before_reset"] = 1
        if activation:
            options["activations"] = [activation] * directions
        made = b.op(kind, x, weights.W, weights.R, weights.B, None, *initial, outputs=1 + len(states), **options)
        for found, state in zip(finals, made[1:]):
            found.append(state)
        y = made[0]
        y.shape = (x.shape[0], directions, x.shape[1], weights.hidden)
        if bidirectional:
            joined = b.transpose(y, [0, 2, 1, 3])
            x = b.reshape(
                joined,
                [b.size(x, 0), b.size(x, 1), directions * weights.hidden],
                (*x.shape[:2], directions * weights.hidden),
            )
        else:
            x = b.squeeze(y, [1])
    out = b.squeeze(x, [1]) if unbatched else b.transpose(x, [1, 0, 2]) if batch_first else x
    ends = [f[0] if len(f) == 1 else b.op("Concat", *f, axis=0) for f in finals]
    return [out, *(b.op("Squeeze", e, b.const([1], _C.int64)) for e in ends)] if unbatched else [out, *ends]


@translates("aten.lstm.input")
def _lstm(
    b: Builder, input: Value, hx: Sequence[Value], params: Sequence[Value], has_biases: bool, num_layers: int, dropout: float,  # noqa: A002
    train: bool, bidirectional: bool, batch_first: bool,
) -> list[Value]:  # fmt: skip
    return layers(b, "LSTM", input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)


def _single(kind: str, activation: str | None = None) -> Any:
    def translate(
        b: Builder, input: Value, hx: Value, params: Sequence[Value], has_biases: bool, num_layers: int, dropout: float, train: bool,  # noqa: A002
        bidirectional: bool, batch_first: bool,
    ) -> list[Value]:  # fmt: skip
        return layers(
            b, kind, input, [hx], params, has_biases, num_layers, dropout, train, bidirectional, batch_first, activation
        )

    return translate


TRANSLATIONS["aten.gru.input"] = _single("GRU")
TRANSLATIONS["aten.rnn_tanh.input"] = _single("RNN", "Tanh")
TRANSLATIONS["aten.rnn_relu.input"] = _single("RNN", "Relu")


# ---- Cells


def _product(b: Builder, x: Value, weight: Value, bias: Value | None) -> Value:
    made = b.op("MatMul", x, b.transpose(weight, [1, 0]))
    return made if bias is None else b.op("Add", made, bias)


def _parts(b: Builder, x: Value, count: int) -> list[Value]:
    return list(b.op("Split", x, axis=-1, num_outputs=count, outputs=count))


@translates("aten.lstm_cell.default")
def _lstm_cell(
    b: Builder, input: Value, hx: Sequence[Value], w_ih: Value, w_hh: Value, b_ih: Value | None = None, b_hh: Value | None = None,  # noqa: A002
) -> list[Value]:  # fmt: skip
    total = b.op("Add", _product(b, input, w_ih, b_ih), _product(b, hx[0], w_hh, b_hh))
    i, f, g, o = _parts(b, total, 4)
    kept = b.op("Mul", b.op("Sigmoid", f), hx[1])
    c = b.op("Add", kept, b.op("Mul", b.op("Sigmoid", i), b.op("Tanh", g)))
    return [b.op("Mul", b.op("Sigmoid", o), b.op("Tanh", c)), c]


@translates("aten.gru_cell.default")
def _gru_cell(
    b: Builder, input: Value, hx: Value, w_ih: Value, w_hh: Value, b_ih: Value | None = None, b_hh: Value | None = None,  # noqa: A002
) -> Value:  # fmt: skip
    ir, iz, inew = _parts(b, _product(b, input, w_ih, b_ih), 3)
    hr, hz, hn = _parts(b, _product(b, hx, w_hh, b_hh), 3)
    r, z = b.op("Sigmoid", b.op("Add", ir, hr)), b.op("Sigmoid", b.op("Add", iz, hz))
    n = b.op("Tanh", b.op("Add", inew, b.op("Mul", r, hn)))
    return b.op("Add", b.op("Mul", b.op("Sub", hx, n), z), n)


def _rnn_cell(activation: str) -> Any:
    def translate(
        b: Builder, input: Value, hx: Value, w_ih: Value, w_hh: Value, b_ih: Value | None = None, b_hh: Value | None = None,  # noqa: A002
    ) -> Value:  # fmt: skip
        return b.op(activation, b.op("Add", _product(b, input, w_ih, b_ih), _product(b, hx, w_hh, b_hh)))

    return translate


TRANSLATIONS["aten.rnn_tanh_cell.default"], TRANSLATIONS["aten.rnn_relu_cell.default"] = (
    _rnn_cell("Tanh"),
    _rnn_cell("Relu"),
)
