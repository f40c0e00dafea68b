"""torch.fbgemm_* and torch.quantized_*_cell give PyTorch's results, which fbgemm_cases.py stored in fbgemm.json."""

import json

import numpy
import pytest

from .fbgemm_cases import VALUES, results

RECORDED = json.loads(VALUES.read_text())


def flat(value):
    return [number for v in value for number in flat(v)] if isinstance(value, list) else [value]


@pytest.fixture(scope="module")
def found(_engine):
    return results(_engine)


@pytest.mark.parametrize("name", RECORDED)
def test_result_equals_pytorchs(found, name):
    got, expected = numpy.array(flat(found[name])), numpy.array(flat(RECORDED[name]))
    assert got.shape == expected.shape
    scale = max(1.0, numpy.abs(expected).max())
    numpy.testing.assert_allclose(got, expected, rtol=1e-5, atol=2e-6 * scale)


def test_every_recorded_result_has_a_case(found):
    assert set(found) == set(RECORDED)


def test_weights_beyond_float16_are_limited(torch):
    assert torch.fbgemm_pack_gemm_matrix_fp16(torch.full((1, 1), 1e6)).item() == 65504.0


def test_refused_arguments(torch):
    weight, sums, scale, zero_point = torch.fbgemm_linear_quantize_weight(torch.ones(2, 3))
    packed, x, bias = torch.fbgemm_pack_quantized_matrix(weight), torch.ones(1, 3), torch.zeros(2)
    call = torch.fbgemm_linear_int8_weight
    for arguments, text in (
        ((x.double(), weight, packed, sums, scale, zero_point, bias), "expected an input of dtype float32, got torch.float64"),
        ((x[:, :2], weight, packed, sums, scale, zero_point, bias), r"expected an input \(\.\.\., 3\)"),
        ((x, weight.to(torch.int32), packed, sums, scale, zero_point, bias), "expected an int8 matrix as weight"),
        ((x, weight, packed, sums[:1], scale, zero_point, bias), "expected 2 col_offsets"),
        ((x, weight, packed, sums, scale, zero_point, bias[:1]), "expected a bias of 2 elements"),
        ((x, weight, packed, sums, scale, zero_point, bias.double()), "expected a bias of dtype float32"),
        ((x, weight, packed[:1], sums, scale, zero_point, bias), "expected a packed weight of sizes"),
    ):
        with pytest.raises(RuntimeError, match=text):
            call(*arguments)
    with pytest.raises(RuntimeError, match="expected a matrix, got a tensor of 1 dimensions"):
        torch.fbgemm_linear_quantize_weight(torch.ones(3))
    with pytest.raises(RuntimeError, match="expected sizes 3 and 4"):
        torch.fbgemm_pack_quantized_matrix(weight, 3, 4)
    with pytest.raises(RuntimeError, match="lstm_cell expects two hidden states"):
        torch.quantized_lstm_cell(x, (x,), *[weight] * 2, *[bias] * 2, *[packed] * 2, *[sums] * 2, *[scale] * 2, *[zero_point] * 2)


def test_the_packed_weight_is_used(torch):
    weight, sums, scale, zero_point = torch.fbgemm_linear_quantize_weight(torch.tensor([[1.0, 2.0, 3.0]]))
    x, bias = torch.tensor([[1.0, -2.0, 3.0]]), torch.zeros(1)
    other = torch.fbgemm_pack_quantized_matrix(weight * 0)
    expected = torch.fbgemm_linear_int8_weight(x, weight * 0, other, sums, scale, zero_point, bias)
    assert torch.fbgemm_linear_int8_weight(x, weight, other, sums, scale, zero_point, bias).tolist() == expected.tolist()
    packed = torch.fbgemm_pack_quantized_matrix(weight)
    assert torch.fbgemm_linear_int8_weight(x, weight, packed, sums, scale, zero_point, bias).tolist() != expected.tolist()
    with pytest.raises(RuntimeError, match=r"\[quantized_rnn_tanh_cell\] expected an input \(batch, features\)"):
        torch.quantized_rnn_tanh_cell(
            x[0], x[0, :1], *[weight] * 2, *[bias] * 2, *[packed] * 2, *[sums] * 2, *[scale] * 2, *[zero_point] * 2
        )


@pytest.mark.parametrize("size", [(), (1, 2), (2, 2)])
def test_the_bias_of_fp16_has_one_dimension(torch, size):
    packed = torch.fbgemm_pack_gemm_matrix_fp16(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="expected a bias of 1 dimension"):
        torch.fbgemm_linear_fp16_weight(torch.ones(2, 3), packed, torch.ones(size))
    with pytest.raises(RuntimeError, match="expected an input"):
        torch.fbgemm_linear_fp16_weight(torch.ones(3), packed, torch.ones(2))


def test_what_to_mkldnn_refuses(torch):
    ones = torch.ones(2, 2)
    calls = (
        lambda: ones.to(torch.int8).to_mkldnn(torch.float32), lambda: torch.tensor(1.0).to_mkldnn(),
        lambda: ones.to(torch.float16).to_mkldnn(torch.bfloat16),
    )  # fmt: skip
    for call in calls:
        with pytest.raises(RuntimeError):
            call()
    with pytest.raises(NotImplementedError, match="a strided tensor"):
        ones.to_sparse().to_mkldnn()
    assert ones.to(torch.int8).to_mkldnn(torch.int8).dtype is torch.int8


def test_output_of_fp16(torch):
    packed, x, output = torch.fbgemm_pack_gemm_matrix_fp16(torch.ones(2, 3)), torch.ones(1, 3), torch.empty(0)
    assert torch.fbgemm_linear_fp16_weight(x, packed, torch.ones(2), output) is output and output.tolist() == [[4, 4]]
    assert torch.fbgemm_linear_fp16_weight_fp32_activation(x, packed, None, output) is output and output.tolist() == [[3, 3]]
