"""Calls of torch.fbgemm_* and torch.quantized_*_cell, whose results in PyTorch 2.15 are in fbgemm.json, for test_fbgemm.py:

.venv-peers/bin/python -m tests.python.quantized.fbgemm_cases
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy

VALUES = Path(__file__).with_name("fbgemm.json")
_SAME = ("linear_int8_weight", "linear_int8_weight_fp32_activation")


def _tensor(torch: Any, seed: int, *shape: int, scale: float = 1.0) -> Any:
    numbers = numpy.random.default_rng(seed).standard_normal(shape) * scale
    return torch.tensor(numbers.astype(numpy.float32))


def _weight(torch: Any, seed: int, *shape: int) -> tuple:
    numbers, sums, scale, zero_point = torch.fbgemm_linear_quantize_weight(_tensor(torch, seed, *shape))
    return numbers, torch.fbgemm_pack_quantized_matrix(numbers), sums, scale, zero_point


def plain(value: Any) -> Any:
    """A result as JSON has it."""
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    return value.tolist() if hasattr(value, "tolist") else value


def results(torch: Any) -> dict[str, Any]:
    """The results by name."""
    found: dict[str, Any] = {}
    for name, shape in (("square", (5, 5)), ("wide", (3, 40)), ("tall", (33, 2))):
        weight = _tensor(torch, 1, *shape)
        found[f"quantized {name}"] = torch.fbgemm_linear_quantize_weight(weight)
        numbers, packed, sums, scale, zero_point = _weight(torch, 1, *shape)
        x, bias = _tensor(torch, 2, 4, shape[1], scale=3), _tensor(torch, 3, shape[0])
        for function in _SAME:
            call = getattr(torch, f"fbgemm_{function}")
            found[f"{function} {name}"] = call(x, numbers, packed, sums, scale, zero_point, bias)
        half = torch.fbgemm_pack_gemm_matrix_fp16(weight * 1000)
        found[f"fp16 {name}"] = torch.fbgemm_linear_fp16_weight_fp32_activation(x, half, bias)
        found[f"fp16 without fp32 {name}"] = torch.fbgemm_linear_fp16_weight(x, half, bias)
    found["quantized zeros"] = torch.fbgemm_linear_quantize_weight(torch.zeros(2, 3))
    found["quantized positive"] = torch.fbgemm_linear_quantize_weight(_tensor(torch, 4, 3, 3).abs())
    cells = {"quantized_lstm_cell": 4, "quantized_gru_cell": 3, "quantized_rnn_relu_cell": 1, "quantized_rnn_tanh_cell": 1}
    for name, gates in cells.items():
        features, hidden = 6, 5
        w, v = _weight(torch, 5, gates * hidden, features), _weight(torch, 6, gates * hidden, hidden)
        state = _tensor(torch, 7, 2, hidden)
        states = (state, _tensor(torch, 8, 2, hidden)) if gates == 4 else state
        biases = _tensor(torch, 9, gates * hidden), _tensor(torch, 10, gates * hidden)
        found[name] = getattr(torch, name)(
            _tensor(torch, 11, 2, features), states, w[0], v[0], *biases, w[1], v[1], w[2], v[2], w[3], v[3], w[4], v[4]
        )
    return {name: plain(value) for name, value in found.items()}


if __name__ == "__main__":
    import torch

    VALUES.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in results(torch).items()) + "\n}\n")
