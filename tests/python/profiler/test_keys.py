"""The keys of key_averages(): PyTorch's names of functions, operators, kernels and nodes (keys.json)."""

from __future__ import annotations

import json

import pytest

from .key_cases import CASES, NODES, counts, nodes
from .record_keys import KEYS

RECORDED = json.loads(KEYS.read_text())
# Keys of PyTorch that no event has, with the reason.
MISSING = {
    "kernels allocate, copy and view without calling operators": """
        aten::_reshape_alias aten::_to_copy aten::_unsafe_view aten::as_strided aten::clone aten::contiguous aten::copy_ aten::empty
        aten::empty_like aten::empty_strided aten::expand aten::fill_ aten::new_empty aten::new_empty_strided aten::new_zeros
        aten::ones_like aten::resize_ aten::resolve_conj aten::scalar_tensor aten::squeeze aten::sum aten::t aten::to aten::transpose
        aten::view aten::where aten::zero_ aten::zeros CloneBackward0 ExpandBackward0 ReshapeAliasBackward0 TBackward0 UnsafeViewBackward0
    """,
    "gradients are accumulated in place, and without a view of them": "aten::add aten::detach detach",
    "formulas of gradients use other operators": """
        aten::add_ aten::addmv_ aten::div aten::div_ aten::ger aten::outer aten::select_backward aten::slice_backward
    """,
    "relu's kernel has its own name": "aten::clamp_min",
    "cross_entropy is one operator": """
        aten::log_softmax aten::_log_softmax aten::_log_softmax_backward_data aten::nll_loss aten::nll_loss_backward
        aten::nll_loss_forward aten::nll_loss_nd LogSoftmaxBackward0 NllLossBackward0
    """,
    "a step of AdamW is one operator": "aten::addcdiv_ aten::addcmul_ aten::div aten::lerp_ aten::mul_ aten::sqrt MulBackward1",
    "attention has an own projection per input, and its softmax needs no checks of its result": """
        MmBackward0 SelectBackward0 SqueezeBackward1 UnsqueezeBackward0 aten::select aten::unflatten aten::unsqueeze
        SafeSoftmaxBackward0 aten::_safe_softmax aten::all aten::isneginf
    """,
    "dropout draws and scales in one kernel": "aten::bernoulli_",
}
_ALL_MISSING = {key for keys in MISSING.values() for key in keys.split()}
# Keys with the same number of events as in PyTorch.
_SAME = {
    "encoder_layer": """
        aten::cross_entropy_loss aten::dropout aten::layer_norm aten::native_layer_norm aten::native_layer_norm_backward aten::relu
        aten::scaled_dot_product_attention aten::_scaled_dot_product_attention_math aten::softmax aten::_softmax
        NativeLayerNormBackward0 ReluBackward0 BmmBackward0 torch::autograd::AccumulateGrad Optimizer.step#AdamW.step
        Optimizer.zero_grad#AdamW.zero_grad
    """,
    "perceptron": """
        aten::add aten::addmm aten::layer_norm aten::linear aten::mm aten::native_layer_norm aten::native_layer_norm_backward aten::relu
        aten::softmax aten::_softmax aten::_softmax_backward_data aten::threshold_backward AddBackward0 AddmmBackward0
        NativeLayerNormBackward0 ReluBackward0 SoftmaxBackward0 SumBackward0 torch::autograd::AccumulateGrad
    """,
    "functions": """
        aten::einsum aten::mean aten::sub_ Cube CubeBackward AddBackward0 BmmBackward0 MeanBackward0 MmBackward0 AccumulateGrad CopySlices
    """,
    "no_bias": """
        aten::dot aten::linear aten::mv aten::slice aten::select DotBackward0 MmBackward0 MvBackward0 SliceBackward0 SumBackward1
    """,
}  # fmt: skip
_EVALUATION = "autograd::engine::evaluate_function: "


@pytest.fixture
def profiled(torch):
    import teletensor.profiler  # noqa: F401 - torch.profiler

    return torch


@pytest.mark.parametrize("name", CASES)
def test_keys_are_those_of_pytorch(profiled, name):
    found, expected = counts(profiled, CASES[name]), RECORDED["cases"][name]
    missing = {key.removeprefix(_EVALUATION) for key in expected.keys() - found.keys()}
    assert missing <= _ALL_MISSING
    for key in _SAME[name].split():
        key = f"torch::autograd::{key}" if key in ("AccumulateGrad", "CopySlices") else key
        assert found[key] == expected[key], key
    evaluated = {key.removeprefix(_EVALUATION): count for key, count in found.items() if key.startswith(_EVALUATION)}
    assert evaluated and all(found[key] == count for key, count in evaluated.items())


@pytest.mark.parametrize("name", NODES)
def test_nodes_have_pytorchs_names(profiled, name):
    assert nodes(profiled, NODES[name]) == RECORDED["nodes"][name]


def _events(torch, function, **options):
    with torch.profiler.profile(**options) as prof:
        function()
    return prof.events()


def test_nodes_contain_their_kernels_and_have_measured_times(profiled):
    torch = profiled
    linear, x = torch.nn.Linear(64, 64), torch.randn(64, 64)
    events = _events(torch, lambda: linear(x).sum().backward())
    node = next(e for e in events if e.name == "AddmmBackward0")
    evaluation = node.cpu_parent
    assert evaluation.name == _EVALUATION + node.name and evaluation.cpu_parent.name == "teletensor::backward"
    assert {child.name for child in node.cpu_children} >= {"aten::mm"}
    for event in (node, evaluation):
        assert event.cpu_time_total == event.time_range.elapsed_us() > 0
        assert event.cpu_time_total >= sum(child.cpu_time_total for child in event.cpu_children)
        outer = event.cpu_parent.time_range
        assert outer.start <= event.time_range.start <= event.time_range.end <= outer.end


def test_a_functions_time_is_that_of_its_operators(profiled):
    torch = profiled
    q = torch.randn(2, 4, 8)
    F = torch.nn.functional

    def program():
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            F.scaled_dot_product_attention(q, q, q)

    attention = next(e for e in _events(torch, program) if e.name == "aten::scaled_dot_product_attention")
    inner = attention.cpu_children[0]
    assert inner.name == "aten::_scaled_dot_product_attention_math" and not attention.is_user_annotation
    assert [child.name for child in inner.cpu_children].count("aten::matmul") == 2
    total = sum(child.cpu_time_total for child in inner.cpu_children)
    assert attention.cpu_time_total == pytest.approx(total) and attention.self_cpu_time_total == pytest.approx(0, abs=1e-6)
    assert attention.client_time > 0


@pytest.mark.parametrize(
    ("program", "names"),
    [
        (lambda t, x: x.add_(1), ["aten::add_"]),
        (lambda t, x: x.__iadd__(1), ["aten::add_"]),
        (lambda t, x: t.nn.functional.softmax(x, 0), ["aten::softmax", "aten::_softmax"]),
        (lambda t, x: t.nn.functional.layer_norm(x, (4,)), ["aten::layer_norm", "aten::native_layer_norm"]),
        (lambda t, x: x.double(), ["aten::to", "aten::_to_copy"]),
        (lambda t, x: x @ x, ["aten::matmul", "aten::mm"]),
        (lambda t, x: x[None] @ x, ["aten::unsqueeze", "aten::matmul", "aten::mm"]),
        (lambda t, x: t.bmm(x.view(1, 4, 4), x.view(1, 4, 4)), ["aten::view", "aten::view", "aten::bmm"]),
        (lambda t, x: x.contiguous(), ["aten::contiguous"]),  # issues nothing
        (lambda t, x: x.sum().item(), ["aten::sum", "aten::item", "aten::_local_scalar_dense"]),
        (lambda t, x: x.requires_grad_(False), []),
        (lambda t, x: t.linalg.norm(x), ["aten::linalg_norm", "aten::linalg_vector_norm"]),
    ],
)
def test_names_of_one_call(profiled, program, names):
    torch = profiled
    x = torch.ones(4, 4)
    x.sum().item()
    assert sorted(e.name for e in _events(torch, lambda: program(torch, x))) == sorted(names)


def test_calls_are_logged_only_during_a_profile(profiled):
    torch = profiled
    x = torch.ones(4)
    _events(torch, lambda: x + 1)
    x.add_(1)
    assert all(e.name != "aten::add_" for e in _events(torch, lambda: x * 2))


def test_a_failed_node_does_not_confuse_later_ones(profiled):
    torch = profiled
    x = torch.randn(4, 4, requires_grad=True)

    def program():
        y = x.exp()
        z = y * y
        y.detach().zero_()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()
            x.grad.tolist()
        (x @ x).sum().backward()

    events = _events(torch, program)
    assert [e.name for e in events if e.name in ("MmBackward0", "ExpBackward0")] == ["MmBackward0"]
    node = next(e for e in events if e.name == "MmBackward0")
    assert node.cpu_parent.cpu_parent.name == "teletensor::backward"


def test_two_threads_have_their_own_functions(profiled):
    import threading

    torch = profiled
    F, x = torch.nn.functional, torch.ones(4, 4)

    def program():
        other = threading.Thread(target=lambda: [F.cross_entropy(x, torch.zeros(4, dtype=torch.int64)) for _ in range(20)])
        other.start()
        for _ in range(20):
            F.softmax(x, 0)
        other.join()

    events = _events(torch, program)
    losses = [e for e in events if e.name == "aten::cross_entropy_loss"]
    sums = [e for e in events if e.name == "aten::softmax"]
    assert len(losses) == len(sums) == 20 and not {e.thread for e in losses} & {e.thread for e in sums}
