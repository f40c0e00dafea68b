"""cuDNN's attention compared with the engine's own kernels: results, gradients, and which of them computed.

On simulated GPUs plain loops replace cuDNN (tests/cuda/simulated/fused_attention.cc). On a machine with a GPU
(`TELETENSOR_TEST_GPU`) this is the comparison of cuDNN with our own kernels.
"""

from __future__ import annotations

import importlib
import json
import re

import numpy as np
import pytest

from tests.conftest import IN_PROCESS, SIMULATED
from tests.python.session.test_session import run_script

pytestmark = pytest.mark.skipif(IN_PROCESS, reason="the engine in this process has no GPU")

# (samples, heads, rows, columns, depth, width), and the passes that cuDNN computes. Simulated devices take small shapes.
BOTH, FORWARD, NEITHER = ("forward", "backward"), ("forward",), ()
SHAPES = [
    ((1, 2, 128, 128, 8, 8), BOTH), ((2, 1, 128, 256, 16, 8), BOTH), ((1, 1, 256, 128, 8, 16), BOTH),
    ((2, 2, 5, 7, 8, 8), FORWARD), ((1, 1, 70, 128, 16, 16), FORWARD), ((1, 2, 1, 128, 8, 8), NEITHER),
    ((1, 2, 128, 128, 12, 8), NEITHER),
]  # fmt: skip
if not SIMULATED:
    SHAPES += [
        ((2, 16, 1024, 1024, 64, 64), BOTH), ((2, 8, 1024, 2048, 128, 128), BOTH), ((2, 8, 2048, 1024, 128, 128), BOTH),
        ((1, 4, 384, 640, 32, 96), BOTH), ((3, 5, 1000, 777, 64, 64), FORWARD), ((64, 12, 128, 128, 64, 64), BOTH),
    ]  # fmt: skip


@pytest.fixture
def attention(torch):
    if not torch.cuda.is_available():
        pytest.skip("the engine has no GPU")
    return importlib.import_module("teletensor.nn.attention")


def plans(torch) -> int:
    """How many of cuDNN's plans the engine has used; on simulated devices, calls."""
    torch.cuda.synchronize()
    status = json.loads(torch._C.Admin(torch.connection().address).status())
    libraries = {row["name"]: row["version"] for device in status["devices"] for row in device["libraries"]}
    return int(re.match(r"(\d+) plans", libraries.get("cuDNN attention", "0 plans")).group(1))


def arrays(shape, spread: float = 1.0) -> list[np.ndarray]:
    samples, heads, rows, columns, depth, width = shape
    rng = np.random.default_rng(rows + columns + depth)
    sizes = ((rows, depth), (columns, depth), (columns, width), (rows, width))
    return [spread * rng.standard_normal((samples, heads, *size)).astype("float32") for size in sizes]


def results(torch, attention, backend, inputs, dtype, device="cuda", **options) -> list[np.ndarray]:
    """The output and the three gradients, as float32."""
    q, k, v, g = (torch.tensor(x, device=device).to(dtype) for x in inputs)
    leaves = [t.detach().requires_grad_() for t in (q, k, v)]
    with attention.sdpa_kernel(backend):
        y = torch.nn.functional.scaled_dot_product_attention(*leaves, **options)
    y.backward(g)
    return [t.detach().float().cpu().numpy() for t in (y, *(leaf.grad for leaf in leaves))]


def assert_equal_up_to_rounding(got, want, dtype_name: str) -> None:
    """Compares relatively to the largest element. Rounding weights and their gradients costs a third of the tolerance."""
    tolerance = {"float16": 2e-3, "bfloat16": 1.6e-2}[dtype_name]
    for name, x, y in zip(("output", "query's gradient", "key's gradient", "value's gradient"), got, want):
        assert np.isfinite(x).all(), name
        assert np.abs(x - y).max() <= tolerance * max(1.0, np.abs(y).max()), name


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape, passes", SHAPES)
def test_cudnn_agrees_with_own_kernels(torch, attention, shape, passes, causal, dtype):
    backends, kind = attention.SDPBackend, getattr(torch, dtype)
    inputs = [torch.tensor(x).to(kind).float().numpy() for x in arrays(shape)]
    options = {"is_causal": causal, "scale": 0.25}
    before = plans(torch)
    own = results(torch, attention, backends.FLASH_ATTENTION, inputs, kind, **options)
    assert plans(torch) == before
    cudnn = results(torch, attention, backends.CUDNN_ATTENTION, inputs, kind, **options)
    used = plans(torch) - before
    assert used == len(passes), "cuDNN is missing, too old, or rejected the case; see `teletensor status`"
    assert_equal_up_to_rounding(cudnn, own, dtype)
    exact = results(torch, attention, backends.FLASH_ATTENTION, inputs, torch.float32, **options)
    assert_equal_up_to_rounding(cudnn, exact, dtype)


def test_rows_with_a_very_negative_logsumexp(torch, attention):
    """Some versions of cuDNN return NaN as gradients for such rows (github.com/pytorch/pytorch/issues/196678)."""
    backends = attention.SDPBackend
    for rows, columns in ((128, 256), (128, 192), (64, 128)):
        inputs = arrays((1, 1, rows, columns, 16, 16), 0.1)
        inputs[0][..., 0], inputs[1][..., 0] = 1.0, -480.0  # every scaled score is near -120
        options = {"scale": 0.25}
        cudnn = results(torch, attention, backends.CUDNN_ATTENTION, inputs, torch.bfloat16, **options)
        own = results(torch, attention, backends.FLASH_ATTENTION, inputs, torch.bfloat16, **options)
        for x, y in zip(cudnn, own):
            assert np.isfinite(x).all() and np.abs(x - y).max() <= 0.05 * max(1.0, np.abs(y).max())


# Calls that do not use cuDNN although the shape is supported, and what selects the implementation.
NOT_SELECTED = {
    "an earlier backend": lambda t, a, call: within(a, [a.SDPBackend.FLASH_ATTENTION, a.SDPBackend.CUDNN_ATTENTION], call),
    "disabled": lambda t, a, call: disabled(t, call, "cudnn"),
    "disabled in the older form": lambda t, a, call: older(t, call, enable_cudnn=False),
}
SELECTED = {
    "by default": lambda t, a, call: call(),
    "with others disabled": lambda t, a, call: disabled(t, call, "flash", "mem_efficient"),
    "alone": lambda t, a, call: within(a, a.SDPBackend.CUDNN_ATTENTION, call),
    "before math": lambda t, a, call: within(a, [a.SDPBackend.CUDNN_ATTENTION, a.SDPBackend.MATH], call),
    "by priority": lambda t, a, call: within(a, [a.SDPBackend.CUDNN_ATTENTION, a.SDPBackend.FLASH_ATTENTION], call, True),
    "the older form": lambda t, a, call: older(t, call, enable_flash=False, enable_mem_efficient=False, enable_math=False),
}


def within(attention, backends, call, *priority):
    with attention.sdpa_kernel(backends, *priority):
        return call()


def older(torch, call, **enabled):
    with torch.backends.cuda.sdp_kernel(**enabled):
        return call()


def disabled(torch, call, *names):
    settings = [getattr(torch.backends.cuda, f"enable_{name}_sdp") for name in names]
    for enable in settings:
        enable(False)
    try:
        return call()
    finally:
        for enable in settings:
            enable(True)


@pytest.mark.parametrize("way, uses", [(w, False) for w in NOT_SELECTED] + [(w, True) for w in SELECTED])
def test_selection(torch, attention, way, uses):
    ways = SELECTED if uses else NOT_SELECTED
    heads = 2 + [*NOT_SELECTED, *SELECTED].index(way)  # a new shape, and therefore a new plan
    x = torch.rand(1, heads, 16, 16, device="cuda", dtype=torch.float16)
    before = plans(torch)
    ways[way](torch, attention, lambda: torch.nn.functional.scaled_dot_product_attention(x, x, x).sum().item())
    assert plans(torch) - before == uses


def test_autocast_and_unsupported_dtypes(torch, attention):
    attend = torch.nn.functional.scaled_dot_product_attention
    x = torch.rand(1, 9, 16, 16, device="cuda")
    before = plans(torch)
    with attention.sdpa_kernel(attention.SDPBackend.CUDNN_ATTENTION):
        with pytest.raises(RuntimeError, match="No available kernel. Aborting execution."):
            attend(x, x, x)
        with torch.autocast("cuda", torch.bfloat16):
            assert attend(x, x, x).dtype is torch.bfloat16
        masked = attend(x.half(), x.half(), x.half(), torch.full((16, 16), float("-inf"), device="cuda").half())
    assert plans(torch) - before == 1  # the engine's own kernels compute attention with a mask
    assert not masked.any().item()
    with attention.sdpa_kernel([attention.SDPBackend.CUDNN_ATTENTION, attention.SDPBackend.MATH]):
        assert attend(x, x, x).dtype is torch.float32


@pytest.mark.skipif(not SIMULATED, reason="the machine may have cuDNN")
def test_engine_without_cudnn(own_daemon):
    script = """
import teletensor as torch, teletensor.nn.attention as attention
x = torch.arange(256, device="cuda").reshape(1, 1, 16, 16).div(256).half()
attend = torch.nn.functional.scaled_dot_product_attention
with attention.sdpa_kernel(attention.SDPBackend.CUDNN_ATTENTION):
    y = attend(x, x, x)
with attention.sdpa_kernel(attention.SDPBackend.FLASH_ATTENTION):
    print(torch.equal(y, attend(x, x, x)))
"""
    result = run_script(script, own_daemon(TELETENSOR_SIMULATED_WITHOUT="cudnn"))
    assert result.stdout.strip() == "True", result.stderr


def test_captured_graph(torch, attention):
    x = torch.rand(1, 1, 128, 16, device="cuda", dtype=torch.float16)
    with attention.sdpa_kernel(attention.SDPBackend.CUDNN_ATTENTION):
        torch.nn.functional.scaled_dot_product_attention(x, x, x)  # builds the plan
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=False)
    for _ in range(2):
        x.copy_(torch.rand_like(x))
        graph.replay()
        want = torch.nn.functional.scaled_dot_product_attention(x, x, x)
        assert (y - want).abs().max().item() < 2e-3


def values_and_gradients(torch, f, q, k, v):
    leaves = [x.detach().requires_grad_() for x in (q, k, v)]
    y = f(*leaves)
    return [t.detach().cpu().double() for t in (y, *torch.autograd.grad(y.float().sin().sum(), leaves))]


@pytest.mark.parametrize("dtype, number", [
    ("float32", float(np.finfo(np.float32).min)), ("float32", -1e9), ("float32", -10000.0), ("float32", -300.0),
    ("float64", float(np.finfo(np.float64).min)), ("float64", -1e30), ("float16", -65504.0), ("bfloat16", -1e38),
])  # fmt: skip
def test_rows_that_a_mask_of_large_numbers_excludes(torch, attention, dtype, number):
    """All scores of such a row are large: its logsumexp alone does not determine the weights."""
    kind, t = getattr(torch, dtype), 37
    exact = torch.float64 if dtype == "float64" else torch.float32
    q, k, v = (torch.tensor(x).to(kind) for x in arrays((2, 2, t, t, 8, 8))[:3])
    mask = torch.zeros(t, t).to(exact).masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), number)
    mask[:3] = number

    def written_out(q, k, v):
        return (q @ k.transpose(-2, -1) * 0.5 + mask.to(q.device)).softmax(-1) @ v

    def fused(q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, mask.to(kind).to(q.device), scale=0.5)

    expected = values_and_gradients(torch, written_out, *(x.to(exact) for x in (q, k, v)))
    tolerance = {"float16": 1e-2, "bfloat16": 6e-2}.get(dtype, 1e-3)
    on_gpu = [x.cuda() for x in (q, k, v)]
    calls = [fused]
    if dtype in ("float32", "float64"):
        program = torch.compiler.trace(written_out, *(x.clone().requires_grad_() for x in on_gpu))
        assert "softmax_attention(" in program.explain(*(x.clone().requires_grad_() for x in on_gpu))
        calls.append(program)
    for f in calls:
        for got, want in zip(values_and_gradients(torch, f, *on_gpu), expected, strict=True):
            assert (got - want).abs().max().item() <= tolerance * max(1.0, want.abs().max().item())
