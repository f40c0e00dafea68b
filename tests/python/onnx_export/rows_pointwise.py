"""Elementwise operators."""

from __future__ import annotations

from typing import Any

from .cases import Case

_FLOAT = """
    abs acosh:p1 asin:q asinh atan acos:q atanh:q ceil cos cosh deg2rad erf erfc exp exp2 expm1 floor frac log:p log10:p log1p:p log2:p
    logit:q nan_to_num neg positive rad2deg reciprocal:p round rsqrt:p sgn sigmoid sign signbit sin sinc sinh sqrt:p square tan tanh
    trunc isfinite isinf isnan isneginf isposinf logical_not
""".split()
_INTEGER = "abs neg sign square bitwise_not logical_not sgn ceil exp sqrt isnan isfinite signbit".split()


def _unary(name: str) -> object:
    return lambda t, x: getattr(t, name)(x)


def _unary_rows() -> dict[str, Case]:
    rows = {}
    for entry in _FLOAT:
        name, _, kind = entry.partition(":")
        if kind == "p1":
            rows[name] = Case(lambda t, x, name=name: getattr(t, name)(x + 1), ["p:n,3"])
        else:
            rows[name] = Case(_unary(name), [f"{kind or 'f'}:n,3"])
    for name in _INTEGER:
        rows[f"{name}-integers"] = Case(_unary(name) if name != "sqrt" else lambda t, x: t.sqrt(x.abs()), ["i:n,3"])
    return rows


_BINARY = {
    "add": "ff fi ij fd bi bb", "sub": "ff fi", "mul": "ff fi bb bf", "div": "ff fi ii", "floor_divide": "ff ii", "remainder": "ff ii",
    "fmod": "ff ii", "atan2": "ff", "maximum": "ff ii bb", "minimum": "ff ii fi", "fmax": "ff", "fmin": "ff", "hypot": "ff",
    "copysign": "ff", "logaddexp": "ff", "eq": "ff ii fi bb", "ne": "ff ii", "lt": "ff fi ij", "le": "ff bb", "gt": "ff ii uu", "ge": "ff",
    "bitwise_and": "ii bb", "bitwise_or": "ii bb", "bitwise_xor": "ii bb",
    "logical_and": "bb ff", "logical_or": "bb ii", "logical_xor": "bb",
    "heaviside": "ff",
}  # fmt: skip


def _binary_row(name: str, pair: str) -> Case:
    def call(t: Any, x: Any, y: Any) -> Any:
        operator = getattr(t, name)
        if pair == "ii" and name in ("div", "floor_divide", "remainder", "fmod"):  # positive and negative divisors
            return operator(x, y.abs() * 2 + 1) + operator(x, -y.abs() - 1)
        return operator(x, y)

    return Case(call, [f"{pair[0]}:n,1,3", f"{pair[1]}:2,3"])


def _binary_rows() -> dict[str, Case]:
    return {f"{name}-{pair}": _binary_row(name, pair) for name, kinds in _BINARY.items() for pair in kinds.split()}


ROWS: dict[str, Case] = {
    **_unary_rows(),
    **_binary_rows(),
    "add-alpha": Case(lambda t, x, y: t.add(x, y, alpha=2), ["f:n,3", "f:3"]),
    "add-number": Case(lambda t, x: x + 2.5, ["f:n,3"]),
    "add-number-to-integers": Case(lambda t, x: x + 2.5, ["i:n,3"]),
    "add-integer-to-halves": Case(lambda t, x: x + 2, ["h:n,3"]),
    "add-scalar-tensor": Case(lambda t, x: x + t.tensor(3), ["j:n,3"]),
    "add-zero-dim": Case(lambda t, x, y: x + y, ["f:n,3", "d:"]),
    "sub-alpha": Case(lambda t, x, y: t.sub(x, y, alpha=3), ["i:n,3", "i:3"]),
    "rsub": Case(lambda t, x: 3 - x, ["f:n,3"]),
    "rsub-tensor": Case(lambda t, x, y: t.rsub(x, y, alpha=2), ["f:n,3", "f:3"]),
    "div-number": Case(lambda t, x: x / 3, ["i:n,3"]),
    "rdiv": Case(lambda t, x: 3 / x, ["p:n,3"]),
    "div-floor": Case(lambda t, x, y: t.div(x, y, rounding_mode="floor"), ["f:n,3", "p:3"]),
    "div-trunc": Case(lambda t, x, y: t.div(x, y, rounding_mode="trunc"), ["f:n,3", "p:3"]),
    "div-trunc-integers": Case(lambda t, x: t.div(x, 4, rounding_mode="trunc"), ["i:n,3"]),
    "div-floor-integers": Case(lambda t, x: t.div(x, -4, rounding_mode="floor"), ["i:n,3"]),
    "remainder-number": Case(lambda t, x: x % 3, ["i:n,3"]),
    "remainder-negative": Case(lambda t, x: x % -2.5, ["f:n,3"]),
    "fmod-number": Case(lambda t, x: t.fmod(x, 1.5), ["f:n,3"]),
    "pow-2": Case(lambda t, x: x**2, ["f:n,3"]),
    "pow-3": Case(lambda t, x: x**3, ["i:n,3"]),
    "pow-half": Case(lambda t, x: x**0.5, ["p:n,3"]),
    "pow-fraction": Case(lambda t, x: x**1.7, ["p:n,3"]),
    "pow-tensors": Case(lambda t, x, y: x**y, ["p:n,3", "f:3"]),
    "pow-of-number": Case(lambda t, x: 2**x, ["f:n,3"]),
    "pow-integers-and-floats": Case(lambda t, x: x**0.5, ["i5:n,3"]),
    "float_power": Case(lambda t, x: t.float_power(x, 2), ["f:n,3"]),
    "round-decimals": Case(lambda t, x: t.round(x, decimals=2), ["f:n,3"]),
    "clamp": Case(lambda t, x: x.clamp(-0.5, 0.5), ["f:n,3"]),
    "clamp-min": Case(lambda t, x: x.clamp(min=0), ["i:n,3"]),
    "clamp-max": Case(lambda t, x: t.clamp_max(x, 0.3), ["f:n,3"]),
    "clamp-tensors": Case(lambda t, x, y: t.clamp(x, y, y + 1), ["f:n,3", "f:3"]),
    "clamp-small-integers": Case(lambda t, x: x.clamp(2, 5), ["u:n,3"]),
    "clip": Case(lambda t, x: t.clip(x, -1, 1), ["f:n,3"]),
    "lerp": Case(lambda t, x, y: t.lerp(x, y, 0.3), ["f:n,3", "f:n,3"]),
    "lerp-tensor": Case(lambda t, x, y, w: t.lerp(x, y, w), ["f:n,3", "f:n,3", "f:n,3"]),
    "addcmul": Case(lambda t, x, y, z: t.addcmul(x, y, z, value=0.5), ["f:n,3", "f:n,3", "f:3"]),
    "addcdiv": Case(lambda t, x, y, z: t.addcdiv(x, y, z, value=0.5), ["f:n,3", "f:n,3", "p:3"]),
    "xlogy": Case(lambda t, x, y: t.xlogy(x.relu(), y), ["f:n,3", "p:3"]),
    "where": Case(lambda t, c, x, y: t.where(c, x, y), ["b:n,3", "f:n,3", "f:3"]),
    "where-number": Case(lambda t, c, x: t.where(c, x, 0.0), ["b:n,3", "f:n,3"]),
    "where-promoted": Case(lambda t, c, x, y: t.where(c, x, y), ["b:n,3", "i:n,3", "f:3"]),
    "masked_fill": Case(lambda t, x, m: x.masked_fill(m, float("-inf")), ["f:n,3", "b:n,3"]),
    "masked_fill-integers": Case(lambda t, x, m: x.masked_fill(m, 7), ["i:n,3", "b:3"]),
    "comparison-with-number": Case(lambda t, x: (x > 0, x <= 0.25, x == 0, x != 1), ["f:n,3"]),
    "comparison-of-integers-with-fraction": Case(lambda t, x: x > 0.5, ["i:n,3"]),
    "isclose": Case(lambda t, x, y: t.isclose(x, y, atol=0.5), ["f:n,3", "f:3"]),
    "isin": Case(lambda t, x, y: t.isin(x, y), ["i5:n,3", "i5:3"]),
    "bitwise-shift": Case(lambda t, x: ((x << 2), (x >> 1)), ["i:n,3"]),
    "bitwise-number": Case(lambda t, x: ((x & 3), (x | 8), (x ^ 1)), ["i:n,3"]),
    "invert-booleans": Case(lambda t, x: ~x, ["b:n,3"]),
    "to-int64": Case(lambda t, x: (x * 10).to(t.int64), ["f:n,3"]),
    "to-bool": Case(lambda t, x: x.to(t.bool), ["i:n,3"]),
    "to-float": Case(lambda t, x: x.float(), ["b:n,3"]),
    "to-half": Case(lambda t, x: x.half(), ["f:n,3"]),
    "to-double": Case(lambda t, x: x.double(), ["i:n,3"]),
    "type_as": Case(lambda t, x, y: x.type_as(y), ["i:n,3", "f:3"]),
    "clone-detach-contiguous": Case(lambda t, x: x.t().contiguous().clone().detach() + 1, ["f:n,3"]),
    "doubles": Case(lambda t, x: (x.sin() * 2 + x.exp()).sum(1), ["d:n,3"]),
    "same-result-twice": Case(lambda t, x: (x, x + 1, x + 1), ["f:n,3"]),
    "constant-result": Case(lambda t, x: (t.tensor([1.0, 2.0]), x), ["f:n,3"]),
}  # fmt: skip

_ACTIVATIONS = """
    relu relu6 leaky_relu elu celu selu gelu silu mish hardswish hardsigmoid hardtanh softplus softsign logsigmoid hardshrink softshrink
    tanhshrink
""".split()
for _name in _ACTIVATIONS:
    ROWS[_name] = Case(lambda t, x, name=_name: getattr(t.nn.functional, name)(x * 3), ["f:n,3"])
ROWS |= {
    "relu-integers": Case(lambda t, x: t.relu(x), ["i:n,3"]),
    "leaky_relu-slope": Case(lambda t, x: t.nn.functional.leaky_relu(x, 0.3), ["f:n,3"]),
    "elu-alpha": Case(lambda t, x: t.nn.functional.elu(x, 0.3), ["f:n,3"]),
    "gelu-tanh": Case(lambda t, x: t.nn.functional.gelu(x, approximate="tanh"), ["f:n,3"]),
    "softplus-beta": Case(lambda t, x: t.nn.functional.softplus(x * 5, 2, 3), ["f:n,3"]),
    "threshold": Case(lambda t, x: t.nn.functional.threshold(x, 0.1, 20), ["f:n,3"]),
    "glu": Case(lambda t, x: t.nn.functional.glu(x, 1), ["f:n,4"]),
    "glu-dynamic": Case(lambda t, x: t.nn.functional.glu(t.cat([x, x]), 0), ["f:n,4"]),
    "prelu": Case(lambda t: t.nn.PReLU(3), ["f:n,3,2"], is_module=True),
    "rrelu": Case(lambda t, x: t.nn.functional.rrelu(x), ["f:n,3"]),
    "softmax": Case(lambda t, x: t.softmax(x, -1), ["f:n,3"]),
    "softmax-dtype": Case(lambda t, x: t.softmax(x, 0, dtype=t.float64), ["f:n,3"]),
    "log_softmax": Case(lambda t, x: t.log_softmax(x, 1), ["f:n,3"]),
    "softmin": Case(lambda t, x: t.nn.functional.softmin(x, 1), ["f:n,3"]),
    "normalize": Case(lambda t, x: t.nn.functional.normalize(x, dim=1), ["f:n,3"]),
    "dropout-eval": Case(lambda t, x: t.nn.functional.dropout(x, 0.5, False), ["f:n,3"]),
}  # fmt: skip
