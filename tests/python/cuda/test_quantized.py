"""Quantization on GPUs: the recorded rows and flows, integers equal to the CPU's, and errors of zero points and ranges."""

from __future__ import annotations

import json

import pytest

from tests.conftest import IN_PROCESS
from tests.python.pt2e import test_lowering
from tests.python.quantization import record as flows
from tests.python.quantization import test_values as flow_values
from tests.python.quantized import record, rows, test_values

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="the engine in this process has no GPU")]

FLOWS = json.loads(flows.VALUES.read_text())


@pytest.fixture
def gpu(torch):
    """The package, with a GPU as the default device."""
    torch.set_default_device("cuda")
    yield torch
    torch.set_default_device(None)


# Rows whose results name the device.
NAMING = ("str(", ".type()")


@pytest.mark.parametrize("row", [r for r in rows.rows() if not any(part in r for part in NAMING)])
def test_row(gpu, row):
    steps = 1 if row.startswith(test_values.ROUNDED) else 0
    test_values.check(record.value_of(row, gpu), test_values.RECORDED[row], row, steps)


@pytest.mark.parametrize("name", flows.cases())
def test_flow(gpu, name):
    """Observers, converted static models, dynamic quantization and training have PyTorch's values."""
    flow_values.check(flows.run(flows.cases()[name], gpu), FLOWS[name], name)


@pytest.mark.parametrize("case", test_lowering.LOWERED)
def test_lowered_program(gpu, case):
    test_lowering.test_operators_and_values(gpu, case)


def both(torch, function, *arguments):
    """The results on the CPU and on a GPU, both on the CPU."""
    moved = [a.cuda() if isinstance(a, torch.Tensor) else a for a in arguments]
    want, got = function(*arguments), function(*moved)
    assert got.device.type == "cuda" and got.dtype is want.dtype
    return want, got.cpu()


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize(("m", "n", "k"), [(1, 3, 5), (3, 70, 257), (5, 7, 64), (66, 65, 33), (130, 4, 100), (2, 3, 0)])
def test_integer_products_are_the_cpus(torch, m, n, k, dtype):
    ops, kind = torch._C.ops, getattr(torch, dtype)
    low = 0 if dtype == "uint8" else -128
    a, b = torch.randint(low, low + 256, (m, k)).to(kind), torch.randint(-128, 128, (n, k)).to(torch.int8)
    scale, bias = torch.rand(n) * 20 / max(k, 1) ** 0.5 / 128**2, torch.randn(n)
    for point, points in ((low + 100, torch.randint(-9, 9, (n,))), (low, 0), (low + 255, torch.tensor([3.0]))):
        want, got = both(torch, ops.int8_linear, a, b, point, points)
        assert torch.equal(got, want)
        for output in ((0.1, 30, 0, 255, False), (0.07, -3, -3, 127, True)):
            for added in (bias, bias[:1], None):
                want, got = both(torch, ops.int8_linear_quantized, a, b, point, points, scale, added, *output)
                assert torch.equal(got, want)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("channels", [(4, 6, 1), (3, 9, 1), (4, 4, 4), (4, 18, 2)])
@pytest.mark.parametrize("space", [1, 2, 3])
def test_integer_convolutions_are_the_cpus(torch, channels, space, last):
    ops, (inputs, outputs, groups) = torch._C.ops, channels
    x = torch.randint(0, 256, (2, inputs, *(7, 6, 5)[:space])).to(torch.uint8)
    x = x.movedim(1, -1).contiguous().movedim(-1, 1) if last else x
    w = torch.randint(-128, 128, (outputs, inputs // groups, *(3, 2, 3)[:space])).to(torch.int8)
    points, scale, bias = torch.randint(-3, 4, (outputs,)), torch.rand(outputs) / 128**2, torch.randn(outputs)
    for stride, padding, dilation in ((1, 0, 1), (2, 1, 1), (1, 2, 2)):
        lists = [[n] * space for n in (stride, padding, dilation)]
        want, got = both(torch, ops.int8_convolution, x, w, 77, points, *lists, groups)
        assert torch.equal(got, want)
        arguments = x, w, 77, points, *lists, groups, scale, bias, 0.02, 30, 30, 255, False
        want, got = both(torch, ops.int8_convolution_quantized, *arguments)
        assert torch.equal(got, want) and got.stride() == want.stride()


@pytest.mark.parametrize("per_row", [False, True])
@pytest.mark.parametrize(("m", "n", "k"), [(1, 9, 33), (3, 70, 130), (70, 5, 64)])
def test_dynamic_products_are_the_cpus(torch, m, n, k, per_row):
    x, w = torch.randn(m, k) * torch.linspace(0, 9, m).reshape(-1, 1), torch.randint(-128, 128, (n, k)).to(torch.int8)
    scales, points, bias = torch.rand(n), torch.randint(-9, 9, (n,)), torch.randn(n)
    for reduce_range, added, relu in ((False, bias, False), (True, None, True)):
        want, got = both(torch, torch._C.ops.int8_linear_dynamic, x, w, scales, points, added, reduce_range, per_row, relu)
        torch.testing.assert_close(got, want, rtol=1e-6, atol=1e-5)
    want, got = both(torch, torch._C.ops.int8_linear_dynamic, x.bfloat16(), w, 0.5, 0, None, False, per_row, False)
    torch.testing.assert_close(got, want)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize(("rows", "n", "k"), [(1, 9, 128), (8, 70, 96), (9, 130, 64), (70, 66, 320), (0, 3, 32)])
def test_weights_of_few_bits_are_the_cpus(torch, rows, n, k, dtype):
    dtype = getattr(torch, dtype)
    x, fours = (torch.randn(rows, k) / 8).to(dtype), torch.randint(0, 16, (n, k), dtype=torch.int32)
    tolerance = {torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 2e-3}[dtype]
    want, got = both(torch, torch._C.ops.int4_pack, fours)
    assert torch.equal(got, want)
    want, got = both(torch, torch._C.ops.int4_weight_mm, x, want, 32, torch.rand(k // 32, n, 2).to(dtype))
    torch.testing.assert_close(got, want, rtol=tolerance, atol=10 * tolerance)
    eights = torch.randint(-128, 128, (n, k - 27)).to(torch.int8)
    for scales in (torch.rand(n).to(dtype) / 128, torch.tensor([0.01])):
        want, got = both(torch, torch._C.ops.int8_weight_mm, x[:, 27:], eights, scales)
        torch.testing.assert_close(got, want, rtol=tolerance, atol=10 * tolerance)


@pytest.mark.parametrize("config", ["Int8WeightOnlyConfig", "Int4WeightOnlyConfig", "Int8DynamicActivationInt8WeightConfig"])
@pytest.mark.parametrize("shape", [(3, 64), (2, 11, 64)])
def test_models_with_quantized_weights(torch, config, shape):
    import teletensor.torchao.quantization as q

    layer = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.ReLU(), torch.nn.Linear(96, 8))
    q.quantize_(layer, getattr(q, config)(**({"group_size": 32} if "Int4" in config else {})))
    x = torch.randn(shape)
    want = layer(x)
    torch.testing.assert_close(layer.cuda()(x.cuda()).cpu(), want, rtol=1e-4, atol=1e-4)


OBSERVED = [(True, False, 0), (True, True, 1), (False, False, 0), (False, True, 0)]


@pytest.mark.parametrize(("per_row", "symmetric", "axis"), OBSERVED)
@pytest.mark.parametrize("switches", [(1, 1), (1, 0), (0, 1), (0, 0)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_observers_have_the_cpus_state(torch, per_row, symmetric, axis, switches, dtype):
    """The states too may have any dtype; what is switched off does not change their bits."""
    x = torch.randn(5, 7)
    count = x.shape[axis] if per_row else 1
    kind = getattr(torch, dtype)
    states = []
    for device in ("cpu", "cuda"):
        low = torch.full((1, count), float("inf"), dtype=kind, device=device)
        high, scale = torch.full((count,), -1 / 3, dtype=kind, device=device), torch.ones(count, dtype=kind, device=device)
        point = torch.zeros(count, dtype=torch.int32, device=device)
        state = low, high, scale, point
        for i in range(2):
            numbers = torch.tensor(switches, device=device)
            given = (x * (i + 1)).to(device)
            torch._C.ops.observe_moving_average(given, numbers, *state, 0.1, -8, 7, axis, per_row, symmetric)
        states.append([t.cpu() for t in state])
    for want, got in zip(*states, strict=True):
        assert torch.equal(got, want)


def failure(torch, call) -> str:
    with pytest.raises(RuntimeError) as caught:
        call().tolist()
    return str(caught.value).partition("\n")[0].partition(" (")[0]


def invalid_calls(torch, device):
    ops, nan = torch._C.ops, float("nan")
    x, w = torch.ones(2, 3, dtype=torch.uint8, device=device), torch.ones(2, 3, dtype=torch.int8, device=device)
    floats = torch.tensor([[1.0, nan, 2.0]], device=device)
    convolution = lambda point: ops.int8_convolution(  # noqa: E731
        x.reshape(1, 2, 3), w.reshape(2, 1, 3), point, 0, [1], [2], [1], 2
    )
    return [
        lambda: ops.int8_linear(x, w, 256, 0),
        lambda: ops.int8_linear(x, w, torch.tensor([-1], device=device), 0),
        lambda: ops.int8_linear(x, w, 2**63 - 1, 0),
        lambda: ops.int8_linear(x.to(torch.int8), w, -129, 0),
        lambda: ops.int8_linear(x, w, 0, torch.tensor([2**31, -(2**40)], device=device)),
        lambda: ops.int8_linear(x, w, 0, torch.tensor([0.0, nan], device=device)),
        lambda: ops.int8_linear(x, w, 0, torch.tensor([1j, 0j], device=device)),
        lambda: ops.int8_linear(x, w, 0, torch.zeros(3, dtype=torch.int32, device=device)),
        lambda: ops.int8_linear_quantized(x, w, 0, 0, torch.ones(3, device=device), None, 1.0, 0, 0, 255, False),
        lambda: convolution(-1),
        lambda: ops.int8_linear_dynamic(floats, w, 1.0, 0),
        lambda: ops.choose_quantization_params(floats, 0, 255)[0],
        lambda: ops.choose_quantization_params(floats, 0, 255)[1],
        lambda: ops.choose_quantization_params(floats[:, :1] / 0, 0, 255)[0],
        lambda: ops.choose_quantization_params(floats, 5, 5)[0],
        lambda: torch._weight_int8pack_mm(floats, w, torch.ones(3, device=device)),
    ]


@pytest.mark.parametrize("index", range(16))
def test_errors_are_the_cpus(torch, index):
    assert failure(torch, invalid_calls(torch, "cuda")[index]) == failure(torch, invalid_calls(torch, "cpu")[index])
    assert torch._C.ops.int8_linear(*[torch.ones(1, 1, dtype=torch.int8, device="cuda")] * 2, 0, 0).tolist() == [[1]]


def test_nothing_waits(gpu):
    x = gpu.randn(3, 4)
    with gpu.no_sync():
        gpu.quantize_per_tensor_dynamic(x, gpu.quint8, False)
        packed = gpu.ops.quantized.linear_prepack(gpu.quantize_per_tensor(x, gpu.tensor(0.1), gpu.tensor(0), gpu.qint8))
        y = gpu.ops.quantized.linear_dynamic(x, packed, False)
    assert y.shape == (3, 3)


def test_observing_waits_for_nothing(gpu):
    flow_values.test_observing_waits_for_nothing(gpu)


def test_a_graph_contains_the_operators(gpu):
    """Captured once, they compute with the values that their operands have at each replay."""
    ops, output = gpu._C.ops, (0.1, 30, 0, 255, False)
    x, image = gpu.randn(9, 32), gpu.randint(0, 256, (1, 2, 5, 5)).to(gpu.uint8)
    w, filters, scale = gpu.randint(-128, 128, (8, 32)).to(gpu.int8), gpu.randint(-9, 9, (8, 2, 3, 3)).to(gpu.int8), gpu.rand(8) / 99

    def results():
        a = gpu.quantize_per_tensor_dynamic(x, gpu.quint8, False).int_repr()
        return [
            a, ops.int8_linear(a, w, 3, 0), ops.int8_linear_quantized(a, w, 3, 0, scale, None, *output),
            ops.int8_linear_dynamic(x, w, scale, 0), ops.int8_weight_mm(x, w, scale),
            ops.int8_convolution_quantized(image, filters, 3, 0, [1, 1], [1, 1], [1, 1], 1, scale, None, *output),
        ]  # fmt: skip

    results()
    graph = gpu.cuda.CUDAGraph()
    with gpu.cuda.graph(graph):
        captured = results()
    x.copy_(gpu.randn(9, 32) * 3)
    image.copy_(image.flip(3))
    graph.replay()
    for got, want in zip(captured, results(), strict=True):
        gpu.testing.assert_close(got, want)
