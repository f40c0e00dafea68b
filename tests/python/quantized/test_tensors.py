"""Quantized tensors: files, copies, waits, packed weights, and products that PyTorch has only for other dtypes or layouts."""

import copy
import io
import os
import pickle
import subprocess
import sys

import pytest


def _tensors(torch):
    x = torch.arange(12, dtype=torch.float32).reshape(3, 4) / 5 - 1
    q = torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)
    p = torch.quantize_per_channel(x, torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1, 2, 3]), 0, torch.qint8)
    return q, p


def _same(torch, a, b) -> bool:
    return a.dtype is b.dtype and a.qscheme() == b.qscheme() and torch.equal(a.int_repr(), b.int_repr()) and str(a) == str(b)


@pytest.mark.parametrize("how", ["save", "pickle", "deepcopy"])
def test_copies_have_integers_and_parameters(torch, how):
    def copied(value):
        if how == "deepcopy":
            return copy.deepcopy(value)
        if how == "pickle":
            return pickle.loads(pickle.dumps(value))  # noqa: S301
        file = io.BytesIO()
        torch.save(value, file)
        return torch.load(io.BytesIO(file.getvalue()))

    q, p = _tensors(torch)
    found = copied({"q": q, "p": p, "row": q[1], "dtype": torch.qint8, "scheme": torch.per_tensor_affine})
    assert _same(torch, found["q"], q) and _same(torch, found["p"], p) and _same(torch, found["row"], q[1])
    assert found["dtype"] is torch.qint8 and found["scheme"] == torch.per_tensor_affine


@pytest.mark.parametrize("parameters", [(), ("x", 0.1, 3), (0.1, 3), ("torch.per_tensor_affine", 0.1, 3)])
def test_files_with_invalid_parameters_are_refused(torch, parameters):
    from teletensor.serialization._rebuild import rebuild_qtensor

    storage = torch.zeros(4, dtype=torch.uint8).storage()
    with pytest.raises(RuntimeError):
        rebuild_qtensor(storage, 0, (4,), (1,), parameters, False, {})


def test_files_with_quantized_dtypes_of_other_tensors_are_refused(torch):
    from teletensor.serialization._rebuild import rebuild_meta_tensor

    with pytest.raises(RuntimeError, match="a dtype"):
        rebuild_meta_tensor(torch.quint8, (2,), (1,), False)


def test_complex_scales_are_refused(torch):
    with pytest.raises(RuntimeError, match="real scales"):
        torch.quantize_per_channel(torch.ones(2, 2), torch.tensor([1j, 1j]), torch.tensor([0, 0]), 0, torch.quint8)


def test_views_share_memory(torch):
    q, _ = _tensors(torch)
    q[0].fill_(0.5)
    q[1, 2] = 0.7
    assert q.dequantize()[0].tolist() == [0.5] * 4 and abs(q[1, 2].item() - 0.7) < 1e-6


def test_nothing_waits_but_reading(torch):
    x = torch.ones(3, 4)
    with torch.no_sync():
        q = torch.quantize_per_tensor_dynamic(x, torch.quint8, False)
        packed = torch.ops.quantized.linear_prepack(torch.quantize_per_tensor(x, torch.tensor(0.1), torch.tensor(0), torch.qint8))
        y = torch.ops.quantized.linear_dynamic(x, packed, False)
        z = torch.ops.quantized.linear(q, packed, 0.1, 0)
        torch.ops.quantized_decomposed.quantize_per_tensor.tensor(x, torch.tensor([0.1]), torch.tensor([0]), 0, 255, torch.uint8)
    assert y.shape == z.shape == (3, 3)


def test_operators_refuse_tensors_that_are_not_quantized(torch):
    q, p = _tensors(torch)
    operators = torch.ops.quantized
    for call in (
        lambda: operators.add(torch.ones(3), torch.ones(3), 0.1, 0), lambda: operators.add(p, p, 0.1, 0),
        lambda: operators.linear(q, None, 0.1, 0), lambda: operators.linear_prepack(torch.ones(3, 4)),
        lambda: operators.linear_dynamic(torch.ones(3, 4).double(), operators.linear_prepack(p), False),
        lambda: operators.conv2d_prepack(p, None, [1, 1], [0, 0], [1, 1], 1),
    ):  # fmt: skip
        with pytest.raises(RuntimeError):
            call()
    with pytest.raises(NotImplementedError):
        operators.embedding_byte(operators.embedding_bag_prepack(p), torch.tensor([0]), True)


_PRODUCTS = [(1, 1, 1), (1, 33, 64), (5, 7, 130), (70, 50, 257), (4, 4, 20000)]
_BLOCKED = [(13, 70, 1030), (131, 129, 515), (61, 16, 512), (20, 130, 3)]  # rows, columns and depths of several blocks


@pytest.mark.parametrize(("m", "n", "k"), [*_PRODUCTS, *_BLOCKED])
def test_integer_products_are_exact(torch, m, n, k):
    torch.manual_seed(m)
    a = torch.randint(0, 256, (m, k)).to(torch.uint8)
    b = torch.randint(-128, 128, (n, k)).to(torch.int8)
    points = torch.randint(-9, 9, (n,))
    from teletensor import _C

    found = _C.ops.int8_linear(a, b, 100, points)
    assert torch.equal(found.to(torch.int64), ((a.double() - 100) @ (b.double() - points.double().reshape(-1, 1)).t()).to(torch.int64))
    for _ in range(2):  # with weights that are packed and kept
        assert torch.equal(_C.ops.int8_linear(a, b, 100, points), found)
    scale, bias = torch.rand(n) * 20 / k**0.5 / 128**2, torch.randn(n)
    for output in ((0.1, 30, 0, 255, False), (0.07, -3, -3, 127, True)):
        for bias_ in (bias, None):
            requantized = _C.ops.requantize(found, scale, 0.0 if bias_ is None else bias_, *output)
            assert torch.equal(_C.ops.int8_linear_quantized(a, b, 100, points, scale, bias_, *output), requantized)
    b.copy_(b.flip(1))
    assert torch.equal(_C.ops.int8_linear(a.flip(1), b, 100, points), found)
    signed = a.to(torch.int16).sub(128).to(torch.int8)
    assert torch.equal(torch._int_mm(signed, b.t()).double(), signed.double() @ b.double().t())


@pytest.mark.parametrize("m", [1, 2, 4])
@pytest.mark.parametrize("n", [8, 17, 64, 65, 200])
@pytest.mark.parametrize("extreme", [False, True])
def test_products_of_few_rows_with_kept_weights(torch, m, n, extreme):
    """Depths that end within a group of 4 and of 8 elements; extremes, whose products of 8 bits do not saturate."""
    from teletensor import _C

    torch.manual_seed(n)
    for k in (1, 3, 4, 5, 8, 11, 64, 511, 516, 1031):
        a, b = torch.randint(0, 256, (m, k)).to(torch.uint8), torch.randint(-128, 128, (n, k)).to(torch.int8)
        if extreme:
            a.fill_(255)
            b.fill_(-128)
        points = torch.randint(-9, 9, (n,))
        expected = (a.double() - 3) @ (b.double() - points.double().reshape(-1, 1)).t()
        for _ in range(3):  # weights are packed when they are used again
            assert torch.equal(_C.ops.int8_linear(a, b, 3, points).double(), expected)
        a[:, 0] = 255  # each row's scale is 1, so that its integers are its elements
        scales = torch.rand(n)
        exact = a.double() @ ((b.double() - points.double().reshape(-1, 1)) * scales.double().reshape(-1, 1)).t()
        for _ in range(3):
            numbers = _C.ops.int8_linear_dynamic(a.float(), b, scales, points, None, False, True, False)
            assert torch.allclose(numbers.double(), exact, rtol=1e-6, atol=0)


def test_products_without_rows_or_elements(torch):
    from teletensor import _C

    b = torch.ones(70, 5, dtype=torch.int8)
    for _ in range(2):
        assert _C.ops.int8_linear(torch.ones(0, 5, dtype=torch.uint8), b, 3, 0).shape == (0, 70)
        assert _C.ops.int8_linear_dynamic(torch.ones(0, 5), b, 1.0, 0, None, False, True, False).shape == (0, 70)
    empty = _C.ops.int8_linear(torch.ones(1, 0, dtype=torch.uint8), torch.ones(70, 0, dtype=torch.int8), 3, 0)
    assert empty.tolist() == [[0] * 70]


def test_modes_and_subclasses_receive_calls_of_quantized_operators(torch):
    from teletensor.utils._python_dispatch import TorchDispatchMode

    q = torch.quantize_per_tensor(torch.randn(1, 8), 0.05, 128, torch.quint8)
    weight = torch.quantize_per_tensor(torch.randn(9, 8), 0.02, 0, torch.qint8)
    packed = torch.ops.quantized.linear_prepack(weight, None)
    expected = torch.ops.quantized.linear(q, packed, 0.1, 100)
    seen = []

    class Recording(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((str(func), args[1:]))
            return func(*args, **(kwargs or {}))

    with Recording():
        found = torch.ops.quantized.linear(q, packed, 0.1, 100)
    assert ("quantized.linear.default", (packed, 0.1, 100)) in seen
    assert torch.equal(found.int_repr(), expected.int_repr())

    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return super().__torch_function__(func, types, args, kwargs or {})

    torch.ops.quantized.linear_dynamic(torch.randn(1, 8).as_subclass(Logged), packed, False)
    assert any("linear_dynamic" in name for name in seen if isinstance(name, str))


@pytest.mark.parametrize("channels", [(4, 6, 1), (5, 19, 1), (4, 4, 4), (4, 8, 2), (4, 18, 2), (6, 12, 6)])
@pytest.mark.parametrize("kernel", [(3, 2, 3), (1, 1, 1)])
@pytest.mark.parametrize("space", [1, 2, 3])
def test_integer_convolutions_are_exact(torch, channels, kernel, space):
    torch.manual_seed(space)
    inputs, outputs, groups = channels
    x = torch.randint(0, 256, (2, inputs, *(7, 6, 5)[:space])).to(torch.uint8)
    w = torch.randint(-128, 128, (outputs, inputs // groups, *kernel[:space])).to(torch.int8)
    points = torch.randint(-3, 4, (outputs,))
    from teletensor import _C

    for stride, padding, dilation in ((1, 0, 1), (2, 1, 1), (1, 2, 2)):
        lists = [[n] * space for n in (stride, padding, dilation)]
        found = _C.ops.int8_convolution(x, w, 77, points, *lists, groups)
        conv = getattr(torch.nn.functional, f"conv{space}d")
        weight = w.double() - points.double().reshape([-1, *[1] * (space + 1)])
        expected = conv(x.double() - 77, weight, None, *lists, groups)
        assert torch.equal(found.double(), expected)
        last = x.movedim(1, -1).contiguous().movedim(-1, 1)
        for _ in range(2):  # with channels last, and weights that are packed and kept
            assert torch.equal(_C.ops.int8_convolution(last, w, 77, points, *lists, groups).double(), expected)
        scale, bias = torch.rand(outputs) / 128**2, torch.randn(outputs)
        channels = [-1, *[1] * space]
        output = (0.02, 30, 30, 255, False)
        requantized = _C.ops.requantize(found, scale.reshape(channels), bias.reshape(channels), *output)
        for i in (x, last):
            result = _C.ops.int8_convolution_quantized(i, w, 77, points, *lists, groups, scale, bias, *output)
            assert torch.equal(result, requantized) and 30 < float(result.float().mean()) < 255
        if space == 2:
            assert result.is_contiguous(memory_format=torch.channels_last)
    w.zero_()
    found = _C.ops.int8_convolution(x, w, 77, points.zero_(), *lists, groups)
    assert not found.any()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("rows", "n", "k"), [(1, 9, 128), (5, 9, 128), (5, 83, 96), (53, 130, 320), (200, 16, 256)])
def test_weights_of_few_bits(torch, rows, n, k, dtype):
    torch.manual_seed(0)
    dtype = getattr(torch, dtype)
    x = torch.randn(rows, k).to(dtype)
    fours = torch.randint(0, 16, (n, k), dtype=torch.int32)
    scales = torch.rand(k // 32, n, 2).to(dtype)
    found = torch._weight_int4pack_mm_for_cpu(x, torch._convert_weight_to_int4pack_for_cpu(fours, 2), 32, scales)
    s = scales.double().repeat_interleave(32, 0)
    expected = x.double() @ ((fours.t() - 8).double() * s[..., 0] + s[..., 1])
    tolerance = 1e-5 if dtype is torch.float32 else 2e-2
    assert found.dtype is dtype and torch.allclose(found.double(), expected, rtol=tolerance, atol=tolerance * 30)
    x = torch.randn(rows, k - 27).to(dtype)
    eights = torch.randint(-128, 128, (n, k - 27)).to(torch.int8)
    found = torch._weight_int8pack_mm(x, eights, scales[0, :, 0])
    expected = x.double() @ (eights.double() * scales[0, :, 0].double().reshape(-1, 1)).t()
    assert found.dtype is dtype and torch.allclose(found.double(), expected, rtol=tolerance, atol=tolerance * 300)


def test_rows_are_quantized_apart(torch):
    torch.manual_seed(0)
    from teletensor import _C

    x, w = torch.randn(4, 32) * torch.tensor([[1.0], [10.0], [100.0], [0.0]]), torch.randint(-128, 128, (5, 32)).to(torch.int8)
    apart = _C.ops.int8_linear_dynamic(x, w, 0.01, 0, None, False, True)
    one_by_one = torch.cat([_C.ops.int8_linear_dynamic(row, w, 0.01, 0, None, False, False) for row in x.split(1)])
    assert torch.equal(apart, one_by_one)


@pytest.mark.parametrize("points", [False, True])
def test_many_rows_are_quantized_apart(torch, points):
    """Rows apart have the bits of one row at a time, and, if each has the extremes, of one range for all."""
    torch.manual_seed(0)
    from teletensor import _C

    x, w = torch.randn(41, 1003), torch.randint(-128, 128, (70, 1003)).to(torch.int8)
    x[:, 0], x[:, 1] = -7, 9
    zeros, bias = torch.randint(-9, 9, (70,)) * int(points), torch.randn(70)
    scales = torch.rand(70)
    apart = _C.ops.int8_linear_dynamic(x, w, scales, zeros, bias, False, True, True)
    one_by_one = [_C.ops.int8_linear_dynamic(row, w, scales, zeros, bias, False, False, True) for row in x.split(1)]
    assert torch.equal(apart, torch.cat(one_by_one))
    assert torch.equal(apart, _C.ops.int8_linear_dynamic(x, w, scales, zeros, bias, False, False, True))


@pytest.mark.parametrize("isa", ["baseline", "avx2"])
def test_loops_without_avx512(isa):
    """The products' tests pass with other loops, which an engine of their process uses."""
    chosen = "exact or few_bits or rows_are_quantized"
    command = [sys.executable, "-m", "pytest", __file__, "-n0", "-q", "-k", chosen, "-p", "no:cacheprovider"]
    environment = {**os.environ, "TELETENSOR_CPU_ISA": isa}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)  # noqa: S603
    if isa == "avx2" and "TELETENSOR_CPU_ISA must be" in result.stdout + result.stderr:
        pytest.skip("this build has no loops for AVX2 alone")
    assert result.returncode == 0 and " passed" in result.stdout, result.stdout[-2000:]


def test_invalid_sizes_are_refused(torch):
    four = torch._convert_weight_to_int4pack_for_cpu(torch.zeros(3, 64, dtype=torch.int32), 2)
    for x, group, scales in ((torch.ones(2, 32), 32, (2, 3, 2)), (torch.ones(2, 64), 16, (4, 3, 2)), (torch.ones(2, 64), 32, (2, 4, 2))):
        with pytest.raises(RuntimeError):
            torch._weight_int4pack_mm_for_cpu(x, four, group, torch.ones(scales))
    with pytest.raises(RuntimeError):
        torch._convert_weight_to_int4pack_for_cpu(torch.zeros(3, 33, dtype=torch.int32), 2)
    with pytest.raises(RuntimeError):
        torch._weight_int8pack_mm(torch.ones(2, 3), torch.ones(4, 3, dtype=torch.int8), torch.ones(2)).sum().item()


def test_graphs_contain_the_operators(torch):
    """fx, export and its files, and compile keep quantized_decomposed operators and their values."""
    decomposed = torch.ops.quantized_decomposed

    class Net(torch.nn.Module):
        def forward(self, x):
            q = decomposed.quantize_per_tensor.default(x, 0.1, 3, -128, 127, torch.int8)
            return decomposed.dequantize_per_tensor.default(q, 0.1, 3, -128, 127, torch.int8) + 1

    net, x = Net(), torch.arange(6, dtype=torch.float32).reshape(2, 3) / 7
    program = torch.export.export(net, (x,))
    file = io.BytesIO()
    torch.export.save(program, file)
    loaded = torch.export.load(io.BytesIO(file.getvalue()))
    traced = torch.fx.symbolic_trace(net)
    for graph in (program.graph, loaded.graph, traced.graph):
        assert decomposed.quantize_per_tensor.default in {node.target for node in graph.nodes}
    for call in (program.module(), loaded.module(), traced, torch.compile(net)):
        assert torch.equal(call(x), net(x))


def test_recurrent_layers(torch):
    """quantized_lstm and quantized_gru have the results of their cells, step by step."""
    torch.manual_seed(0)
    operators = torch.ops.quantized

    def packed(gates):
        w = torch.randn(gates * 4, 4) * 0.3
        return operators.linear_prepack(torch.quantize_per_tensor(w, 0.01, 0, torch.qint8), torch.randn(gates * 4))

    x, h, c = torch.randn(3, 2, 4), torch.randn(1, 2, 4), torch.randn(1, 2, 4)
    b = torch.zeros(1)
    w = packed(4), packed(4)
    params = [operators.make_quantized_cell_params_dynamic(*w, b, b, True)]
    output, last, cell = torch.quantized_lstm(x[:1], (h, c), params, True, 1, 0.0, False, False, False)
    expected = operators.quantized_lstm_cell_dynamic(x[0], [h[0], c[0]], *w, b, b)
    assert torch.equal(output[0], expected[0]) and torch.equal(last[0], expected[0]) and torch.equal(cell[0], expected[1])
    output, last, cell = torch.quantized_lstm(x, (h, c), params, True, 1, 0.0, False, False, False)
    assert output.shape == (3, 2, 4) and torch.equal(output[-1], last[0])
    w = packed(3), packed(3)
    params = [operators.make_quantized_cell_params_dynamic(*w, b, b, True)]
    output, last = torch.quantized_gru(x[:1], h, params, True, 1, 0.0, False, False, False)
    assert torch.equal(output[0], operators.quantized_gru_cell_dynamic(x[0], h[0], *w, b, b))


@pytest.mark.parametrize("recipe", ["TensorWise", "RowWise"])
def test_scaled_mm(torch, recipe):
    F = torch.nn.functional
    torch.manual_seed(0)
    a, b = torch.randn(16, 32).to(torch.float8_e4m3fn), torch.randn(16, 32).to(torch.float8_e4m3fn).t()
    kind = getattr(F.ScalingType, recipe)
    s, t = (torch.tensor(0.5), torch.tensor(2.0)) if recipe == "TensorWise" else (torch.rand(16, 1), torch.rand(1, 16))
    found = F.scaled_mm(a, b, s, kind, t, kind, output_dtype=torch.float32)
    assert torch.allclose(found, (a.float() * s) @ (b.float() * t), rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="unsupported recipe"):
        F.scaled_mm(a, b, s, F.ScalingType.BlockWise1x32, t, kind)


def test_packed_weights_and_scales_are_copies(torch):
    w = torch.quantize_per_tensor(torch.ones(2, 4), 0.5, 0, torch.qint8)
    packed = torch.ops.quantized.linear_prepack(w, None)
    table = torch.quantize_per_channel(torch.ones(2, 4), torch.tensor([0.5, 0.5]), torch.tensor([0.0, 0.0]), 0, torch.quint8)
    rows = torch.ops.quantized.embedding_bag_prepack(table)
    w.fill_(0.0)
    table._ints.fill_(0)
    assert packed.unpack()[0].dequantize().tolist() == [[1.0] * 4] * 2 and rows.unpack().dequantize().tolist() == [[1.0] * 4] * 2
    scale, point = torch.tensor(0.5), torch.tensor(3)
    q = torch.quantize_per_tensor(torch.ones(3), scale, point, torch.quint8)
    scale.fill_(9.0)
    point.fill_(0)
    assert q.dequantize().tolist() == [1.0] * 3 and (q.q_scale(), q.q_zero_point()) == (0.5, 3)


def test_memory_formats(torch):
    q = torch.quantize_per_tensor(torch.arange(24.0).reshape(1, 2, 3, 4), 1.0, 0, torch.quint8)
    for moved in (q.contiguous(memory_format=torch.channels_last), q.clone(memory_format=torch.channels_last)):
        assert moved.is_contiguous(memory_format=torch.channels_last) and torch.equal(moved, q)
    p = torch.quantize_per_channel(q.dequantize(), torch.ones(2), torch.zeros(2, dtype=torch.int64), 1, torch.quint8)
    with pytest.raises(RuntimeError, match="uniformly"):
        p.contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("point", ["1j", "2**40", "-(2**31) - 1"])
def test_zero_points_that_are_not_32_bit_integers_are_refused(torch, point):
    x, w = torch.ones(2, 3, dtype=torch.uint8), torch.ones(2, 3, dtype=torch.int8)
    with pytest.raises(RuntimeError, match="weight_zero_point"):
        torch._C.ops.int8_linear(x, w, 0, torch.tensor([eval(point)] * 2)).tolist()  # noqa: S307 - a number of this file


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_rows_that_are_not_finite_give_nan_when_each_row_is_quantized(torch, value):
    x = torch.tensor([[1.0, 2.0], [value, 1.0]])
    result = torch._C.ops.int8_linear_dynamic(x, torch.ones(2, 2, dtype=torch.int8), 1.0, 0, None, False, True, False)
    assert result.isnan().tolist() == [[False, False], [True, True]]


@pytest.mark.parametrize("sizes", [(3,), (3, 1), (1, 3), (1, 3, 1)])
def test_states_of_observers_keep_their_order_in_any_sizes(torch, sizes):
    x = torch.tensor([[-1.0, 3.0], [-2.0, 5.0], [0.5, 0.25]])
    low, high = torch.full(sizes, float("inf")), torch.full(sizes[::-1], float("-inf"))
    scale, point = torch.zeros(sizes), torch.zeros(sizes, dtype=torch.int32)
    torch._C.ops.observe_moving_average(x, torch.ones(2), low, high, scale, point, 0.1, 0, 255, 0, True, False)
    assert low.reshape(-1).tolist() == [-1.0, -2.0, 0.25] and high.reshape(-1).tolist() == [3.0, 5.0, 0.5]
    expected = torch.tensor([4.0, 7.0, 0.5]) / 255
    assert torch.allclose(scale.reshape(-1), expected) and point.reshape(-1).tolist() == [64, 73, 0]


_LOOPS = """
import teletensor as torch
torch.manual_seed(0)
x, w = torch.randn(5, 70), torch.randint(-128, 128, (19, 70), dtype=torch.int8)
print(torch._C.ops.int8_linear(torch.randint(0, 256, (5, 70), dtype=torch.uint8), w, 7, 3).tolist())
print(torch._C.ops.int8_linear_dynamic(x, w, 0.5, 3, None, False, False, False).tolist())
"""


def test_loops_of_every_instruction_set_have_the_same_results(torch):
    def printed(**isa: str) -> str:
        return subprocess.run([sys.executable, "-c", _LOOPS], env=os.environ | isa, capture_output=True, text=True, check=True).stdout

    assert torch.__name__ and printed() == printed(TELETENSOR_CPU_ISA="baseline") != ""


def test_parts_of_tensors_with_a_scale_per_channel_have_its_scales(torch):
    x = torch.arange(24.0).reshape(2, 3, 4) / 10
    scales, points = torch.tensor([0.1, 0.2, 0.05]), torch.tensor([0, 10, 5])
    q = torch.quantize_per_channel(x, scales, points, 1, torch.quint8)
    parts = {
        "q[:, 1:]": q[:, 1:], "q[1:, ::2]": q[1:, ::2], "q[..., 2:]": q[..., 2:], "q.split(2, 1)[1]": q.split(2, 1)[1],
        "q.chunk(2, 2)[1]": q.chunk(2, 2)[1], "q.unbind(0)[1]": q.unbind(0)[1], "q.unbind(1)[2]": q.unbind(1)[2],
        "q.unbind(2)[0]": q.unbind(2)[0], "q.narrow(1, 1, 2)": q.narrow(1, 1, 2), "q.tensor_split(3, 1)[1]": q.tensor_split(3, 1)[1],
    }
    numbers = q.dequantize()
    for code, part in parts.items():
        assert torch.equal(part.dequantize(), eval(code, {"q": numbers})), code
    assert q[:, 1:].q_per_channel_zero_points().tolist() == [10, 5] and q.unbind(0)[1].q_per_channel_axis() == 0


# An expression of p, with a scale per entry of dimension 1, and one with a single channel; the channels' dimension, or an error.
AXES = [
    ("p.unsqueeze(0)", 2), ("p.unsqueeze(1)", 2), ("p.unsqueeze(2)", 1), ("p.unsqueeze(-1)", 1), ("p.unsqueeze(0).squeeze(0)", 1),
    ("p.unsqueeze(0).unsqueeze(0).squeeze()", 1), ("p.unsqueeze(2).squeeze(2)", 1), ("p[0]", 0), ("p.select(0, 1)", 0),
    ("one.unsqueeze(0)", 1), ("one.unsqueeze(1)", 0), ("one.unsqueeze(0).squeeze(0)", 0), ("one[:, 0]", 0), ("one.squeeze(0)", "non-axis"),
    ("one.squeeze()", "non-axis"), ("torch.Tensor.unsqueeze(p, 0)", 2), ("p.view(1, 2, 3)", 2),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "axis"), AXES)
def test_dimension_of_the_channels(torch, expression, axis):
    p = torch.quantize_per_channel(torch.ones(2, 3), torch.tensor([0.1, 0.2, 0.3]), torch.zeros(3, dtype=torch.int64), 1, torch.qint8)
    one = torch.quantize_per_channel(torch.ones(1, 3), torch.tensor([0.1]), torch.zeros(1, dtype=torch.int64), 0, torch.qint8)
    names = {"torch": torch, "p": p, "one": one}
    if isinstance(axis, str):
        with pytest.raises(RuntimeError, match=axis):
            eval(expression, names)
        return
    result = eval(expression, names)
    assert result.q_per_channel_axis() == torch.Tensor.q_per_channel_axis(result) == axis
    assert result.dequantize().shape[axis] == result.q_per_channel_scales().numel()


# Results of PyTorch for numbers of qint32: an expression, the integers, and the scale and zero point.
QINT32 = [
    ("o.mul(a, b, 0.5, 3)", [-9, 1, 19, 753], (0.5, 3)), ("o.mul_relu(a, b, 0.5, 3)", [3, 3, 19, 753], (0.5, 3)),
    ("o.add_scalar(a, -2.5)", [-2995, 505, 2005, 100000000], (0.001, 2505)),
    ("o.mul_scalar(a, -2.5)", [2994, -506, -2006, -100000001], (0.0025, -6)),
    ("o.mul_scalar_relu(a, -2.5)", [2994, -6, -6, -6], (0.0025, -6)),
    ("o.add_scalar(c, -1.0)", [2147479706, 2147482649, 2147482649, 2147482649], (0.0010000002323649823, 2147483647)),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "ints", "quantizer"), QINT32)
def test_arithmetic_of_qint32(torch, expression, ints, quantizer):
    x = torch.tensor([-3.0, 0.5, 2.0, 1e5])
    a, c = (torch.quantize_per_tensor(x, 0.001, point, torch.qint32) for point in (5, 2**31 - 3))
    b = torch.quantize_per_tensor(torch.tensor([2.0, -1.5, 4.0, 1e5]), 0.002, -7, torch.qint32)
    result = eval(expression, {"o": torch.ops.quantized, "a": a, "b": b, "c": c})
    assert (result.int_repr().tolist(), (result.q_scale(), result.q_zero_point())) == (ints, quantizer)


def test_relu6_into_its_input(torch):
    z = torch.quantize_per_tensor(torch.tensor([-1.0, 3.0, 9.0]), 0.1, 0, torch.quint8)
    assert torch.ops.quantized.relu6(z, True).int_repr().tolist() == z.int_repr().tolist() == [0, 30, 60]


def test_limits_of_the_integers(torch):
    limits = [torch.iinfo(t) for t in (torch.qint8, torch.qint32, torch.quint4x2)]
    assert [(i.bits, i.min, i.max) for i in limits] == [(8, -128, 127), (32, -(2**31), 2**31 - 1), (8, 0, 255)]


def test_engine_with_other_sums_is_refused(torch):
    assert "qnnpack" not in torch.backends.quantized.supported_engines
    with pytest.raises(RuntimeError, match="qnnpack is not supported"):
        torch.backends.quantized.engine = "qnnpack"
