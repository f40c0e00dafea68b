"""torch.fbgemm_*: linear layers with a weight in 8 or 16 bits, by PyTorch's older names, and torch.quantized_*_cell, which use them.

The engine needs no packed weights: fbgemm_pack_* return what the products compute with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .. import _C
from .._C import Tensor
from .._quantized_names import qint8
from .create import _make_per_tensor_quantized_tensor, dynamic_quantizer
from .operators.linear import dynamic
from .operators.recurrent_layers import CellParams, gru_step, lstm_step
from .packed import LinearPackedParams

_HALF_MAX = 65504.0  # the largest number of float16


def _require(name: str, holds: bool, expected: str, got: object) -> None:
    if not holds:
        raise RuntimeError(f"[{name}] expected {expected}, got {got}")


def fbgemm_linear_quantize_weight(input: Tensor) -> tuple[Tensor, Tensor, float, int]:  # noqa: A002
    """Quantizes a weight to int8 with one scale. Waits for the scale and the zero point.

    Args:
        input: a float32 matrix (N, K).

    Returns:
        The int8 matrix, the int32 sums of its rows less K times the zero point, the scale and the zero point.

    Raises:
        RuntimeError: the input is no float32 matrix.
    """
    name = "fbgemm_linear_quantize_weight"
    _require(name, input.dim() == 2, "a matrix", f"a tensor of {input.dim()} dimensions")
    _require(name, input.dtype is _C.float32, "dtype float32", input.dtype)
    quantizer = dynamic_quantizer(input, qint8, False)
    numbers = quantizer.quantize(input)
    scale, zero_point = float(quantizer.scale), int(quantizer.zero_point)
    sums = numbers.to(_C.int32).sum(1) - zero_point * input.size(1)
    return numbers, sums.to(_C.int32), scale, zero_point


def fbgemm_pack_quantized_matrix(input: Tensor, K: int | None = None, N: int | None = None) -> Tensor:  # noqa: A002, N803
    """Returns a copy of an int8 matrix of fbgemm_linear_quantize_weight. K and N are its sizes, if they are given."""
    name = "fbgemm_pack_quantized_matrix"
    _require(name, input.dtype is _C.int8 and input.dim() == 2, "an int8 matrix", f"{input.dtype} of {input.dim()} dimensions")
    if K is not None or N is not None:
        _require(name, sorted(input.shape) == sorted((K, N)), f"sizes {K} and {N}", tuple(input.shape))
    return input.clone()


def _packed(
    name: str, weight: Tensor, packed: Tensor, col_offsets: Tensor, scale: float, zero_point: int, bias: Tensor
) -> LinearPackedParams:
    _require(name, isinstance(packed, Tensor), "a packed weight", type(packed).__name__)
    _require(name, weight.dtype is _C.int8 and weight.dim() == 2, "an int8 matrix as weight", f"{weight.dtype} {tuple(weight.shape)}")
    rows = weight.size(0)
    _require(name, tuple(col_offsets.shape) == (rows,), f"{rows} col_offsets", tuple(col_offsets.shape))
    _require(name, tuple(bias.shape) == (rows,), f"a bias of {rows} elements", tuple(bias.shape))
    _require(name, bias.dtype is _C.float32, "a bias of dtype float32", bias.dtype)
    _require(name, packed.dtype is _C.int8 and packed.shape == weight.shape, f"a packed weight of sizes {tuple(weight.shape)}",
             f"{packed.dtype} {tuple(packed.shape)}")  # fmt: skip
    return LinearPackedParams(_make_per_tensor_quantized_tensor(packed, float(scale), int(zero_point)), bias)


def fbgemm_linear_int8_weight_fp32_activation(
    input: Tensor, weight: Tensor, packed: Tensor, col_offsets: Tensor, weight_scale: float, weight_zero_point: int, bias: Tensor  # noqa: A002
) -> Tensor:  # fmt: skip
    """input @ weight.T + bias, where the input is quantized to 8 bits with the scale of its range.

    Args:
        input: float32 (..., K).
        weight, col_offsets, weight_scale, weight_zero_point: the results of fbgemm_linear_quantize_weight.
        packed: the result of fbgemm_pack_quantized_matrix, with which the product is computed.
        bias: float32 (N).

    Raises:
        RuntimeError: a size or dtype differs from these.
    """
    name = "fbgemm_linear_int8_weight_fp32_activation"
    _require(name, input.dtype is _C.float32, "an input of dtype float32", input.dtype)
    _require(name, input.dim() >= 2 and input.size(-1) == weight.size(-1), f"an input (..., {weight.size(-1)})", tuple(input.shape))
    parameters = _packed(name, weight, packed, col_offsets, weight_scale, weight_zero_point, bias)
    return dynamic(name, input, parameters, False)


def fbgemm_linear_int8_weight(
    input: Tensor, weight: Tensor, packed: Tensor, col_offsets: Tensor, weight_scale: float, weight_zero_point: int, bias: Tensor  # noqa: A002
) -> Tensor:  # fmt: skip
    """Same as fbgemm_linear_int8_weight_fp32_activation."""
    return fbgemm_linear_int8_weight_fp32_activation(input, weight, packed, col_offsets, weight_scale, weight_zero_point, bias)


def fbgemm_pack_gemm_matrix_fp16(input: Tensor) -> Tensor:  # noqa: A002
    """Returns a float32 matrix (N, K) rounded to float16; larger numbers become the largest one of float16."""
    name = "fbgemm_pack_gemm_matrix_fp16"
    _require(name, input.dtype is _C.float32 and input.dim() == 2, "a float32 matrix", f"{input.dtype} of {input.dim()} dimensions")
    return input.clamp(-_HALF_MAX, _HALF_MAX).to(_C.float16)


def fbgemm_linear_fp16_weight_fp32_activation(
    input: Tensor, packed_weight: Tensor, bias: Tensor | None, output: Tensor | None = None  # noqa: A002
) -> Tensor:  # fmt: skip
    """input @ weight.T + bias in float32, for a weight of fbgemm_pack_gemm_matrix_fp16.

    Args:
        input: float32 (..., K).
        packed_weight: float16 (N, K).
        bias: float32 (N), or None.
        output: receives the result; its size becomes that of the result.

    Raises:
        RuntimeError: a size or dtype differs from these.
    """
    name = "fbgemm_linear_fp16_weight_fp32_activation"
    _require(name, packed_weight.dtype is _C.float16, "a weight of fbgemm_pack_gemm_matrix_fp16", packed_weight.dtype)
    _require(name, input.dtype is _C.float32, "an input of dtype float32", input.dtype)
    columns = packed_weight.size(1)
    _require(name, input.dim() >= 2 and input.size(-1) == columns, f"an input (..., {columns})", tuple(input.shape))
    _require(name, bias is None or bias.dim() == 1, "a bias of 1 dimension", "" if bias is None else tuple(bias.shape))
    result = _C.ops.linear(input, packed_weight.to(_C.float32), bias)
    return result if output is None else output.resize_(result.shape).copy_(result)


def fbgemm_linear_fp16_weight(input: Tensor, packed_weight: Tensor, bias: Tensor, output: Tensor | None = None) -> Tensor:  # noqa: A002
    """Same as fbgemm_linear_fp16_weight_fp32_activation."""
    return fbgemm_linear_fp16_weight_fp32_activation(input, packed_weight, bias, output)


def _cell_params(
    name: str, input: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, packed_ih: Tensor, packed_hh: Tensor,  # noqa: A002
    col_offsets_ih: Tensor, col_offsets_hh: Tensor, scale_ih: float, scale_hh: float, zero_point_ih: int, zero_point_hh: int,
) -> CellParams:  # fmt: skip
    _require(name, input.dim() == 2, "an input (batch, features)", tuple(input.shape))
    return CellParams(
        _packed(name, w_ih, packed_ih, col_offsets_ih, scale_ih, zero_point_ih, b_ih),
        _packed(name, w_hh, packed_hh, col_offsets_hh, scale_hh, zero_point_hh, b_hh),
    )


def quantized_lstm_cell(
    input: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, packed_ih: Tensor, packed_hh: Tensor,  # noqa: A002
    col_offsets_ih: Tensor, col_offsets_hh: Tensor, scale_ih: float, scale_hh: float, zero_point_ih: int, zero_point_hh: int,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """One step of an LSTM with weights of fbgemm_linear_quantize_weight; returns the states h and c.

    Args:
        input: float32 (batch, features).
        hx: the states h and c, float32 (batch, hidden).
        w_ih, w_hh: int8 (4 * hidden, features) and (4 * hidden, hidden).
        packed_ih, packed_hh: the results of fbgemm_pack_quantized_matrix, with which the products are computed.

    Raises:
        RuntimeError: a size or dtype differs from these.
    """
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    params = _cell_params(
        "quantized_lstm_cell", input, w_ih, w_hh, b_ih, b_hh, packed_ih, packed_hh, col_offsets_ih, col_offsets_hh, scale_ih, scale_hh,
        zero_point_ih, zero_point_hh,
    )  # fmt: skip
    return lstm_step(params.input_product(input), hx[0], hx[1], params)


def _cell(name: str, doc: str, step: Callable[[Tensor, Tensor, CellParams], Tensor]) -> Callable[..., Tensor]:
    def cell(
        input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor, packed_ih: Tensor, packed_hh: Tensor,  # noqa: A002
        col_offsets_ih: Tensor, col_offsets_hh: Tensor, scale_ih: float, scale_hh: float, zero_point_ih: int, zero_point_hh: int,
    ) -> Tensor:  # fmt: skip
        offsets, scales, zero_points = (col_offsets_ih, col_offsets_hh), (scale_ih, scale_hh), (zero_point_ih, zero_point_hh)
        params = _cell_params(name, input, w_ih, w_hh, b_ih, b_hh, packed_ih, packed_hh, *offsets, *scales, *zero_points)
        return step(params.input_product(input), hx, params)

    cell.__name__ = cell.__qualname__ = name
    cell.__doc__ = f"{doc} See quantized_lstm_cell for the arguments; ``hx`` is the state h."
    return cell


quantized_gru_cell = _cell("quantized_gru_cell", "One step of a GRU.", gru_step)
quantized_rnn_relu_cell = _cell(
    "quantized_rnn_relu_cell", "relu() of the sum of both products.", lambda x, h, params: _C.torch.relu(x + params.hidden_product(h))
)
quantized_rnn_tanh_cell = _cell(
    "quantized_rnn_tanh_cell", "tanh() of the sum of both products.", lambda x, h, params: _C.torch.tanh(x + params.hidden_product(h))
)
