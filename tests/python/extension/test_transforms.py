"""Operators of a shared object in compiled functions, graphs, transforms and functions of torch.library."""

from __future__ import annotations

import copy

import numpy as np
import pytest


@pytest.fixture
def ops(torch):
    return torch.ops.check


def test_compiled(torch, ops):
    def function(a, b):
        return ops.scaled_add(a * 2, b, scale=3.0).relu() + ops.softsign(b)

    a, b = torch.randn(64, 48), torch.randn(48)
    compiled = torch.compile(function, fullgraph=True)
    for _ in range(2):
        np.testing.assert_allclose(compiled(a, b).numpy(), function(a, b).numpy(), rtol=1e-6, atol=1e-6)


def test_compiled_gradients(torch, ops):
    def function(x):
        return ops.softsign(ops.cube(x), 2.0).sum()

    x, y = (torch.linspace(-2, 2, 7, dtype=torch.float64).requires_grad_() for _ in range(2))
    torch.compile(function)(x).backward()
    function(y).backward()
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-12)


def test_compiled_rule_of_the_library(torch, ops):
    compiled = torch.compile(lambda x: ops.repeat(x + 1, [1, 2]) * 2)
    assert compiled(torch.ones(2)).tolist() == [[4.0, 4.0]] * 3


def test_bodies_are_fused_in_programs(torch, ops):
    x = torch.randn(256, 256)
    step = torch.compile(lambda x: ops.softsign(x * 2 + 1, 3.0).exp() - x)
    want = np.exp((2 * x.numpy() + 1) * 3 / (1 + np.abs(2 * x.numpy() + 1))) - x.numpy()
    np.testing.assert_allclose(step(x).numpy(), want, rtol=1e-5)
    traced = torch.compiler.trace(lambda x: ops.softsign(x * 2 + 1, 3.0).exp() - x, x)
    text = torch.compiler.explain(traced, x)
    assert "check::softsign" in text.split("# after inline_bodies")[0]
    last = text.rpartition("# after ")[2]
    assert "check::softsign" not in last and last.count("pointwise_chain") == 1 and " exp(" not in last


def test_make_fx(torch, ops):
    from teletensor.fx.experimental.proxy_tensor import make_fx

    graph = make_fx(lambda x: ops.scaled_add(x, x, scale=2.0))(torch.ones(3))
    assert any("check.scaled_add" in str(node.target) for node in graph.graph.nodes)
    assert graph(torch.ones(3)).tolist() == [3.0] * 3
    copied = copy.deepcopy(graph)
    assert copied(torch.ones(3)).tolist() == [3.0] * 3
    targets = [[node.target for node in each.graph.nodes] for each in (graph, copied)]
    assert ops.scaled_add.default in targets[0] and ops.scaled_add.default in targets[1]
    assert copy.deepcopy(ops.scaled_add) is ops.scaled_add


def test_vmap(torch, ops):
    x = torch.randn(4, 3)
    got = torch.func.vmap(lambda row: ops.scaled_add(row, row, scale=2.0))(x)
    np.testing.assert_allclose(got.numpy(), 3 * x.numpy(), rtol=1e-6)


def test_func_grad(torch, ops):
    x = torch.randn(4, dtype=torch.float64)
    got = torch.func.grad(lambda x: ops.cube(x).sum())(x)
    np.testing.assert_allclose(got.numpy(), 3 * x.numpy() ** 2)


def test_func_jvp(torch, ops):
    x, tangent = torch.tensor([1.0, 2.0], dtype=torch.float64), torch.tensor([1.0, 0.5], dtype=torch.float64)
    value, derivative = torch.func.jvp(ops.cube, (x,), (tangent,))
    assert (value.tolist(), derivative.tolist()) == ([1.0, 8.0], [3.0, 6.0])


def test_export(torch, ops, tmp_path):
    class Model(torch.nn.Module):
        def forward(self, x):
            return ops.scaled_add(x, x, scale=2.0) + ops.softsign(x)

    x = torch.ones(3)
    exported = torch.export.export(Model(), (x,))
    assert any("check.softsign" in str(node.target) for node in exported.graph.nodes)
    torch.export.save(exported, str(tmp_path / "model.pt2"))
    assert torch.export.load(str(tmp_path / "model.pt2")).module()(x).tolist() == [3.5] * 3


def test_names_in_graphs_and_profiles(torch, ops):
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    assert "CheckCubeBackward" in repr(ops.cube(x).grad_fn)
    with torch.profiler.profile() as profile:
        ops.cube(x).sum().item()
    assert any("check::cube" in row.key for row in profile.key_averages())


def test_library_registrations(torch, ops):
    overload = torch.ops.check.parallel.default
    try:
        torch.library.register_fake("check::parallel", lambda x: x.new_empty(x.shape))
        assert ops.parallel(torch.empty(3, device="meta")).shape == (3,)

        def setup(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])

        torch.library.register_autograd("check::no_gradient", lambda ctx, g: g * 5, setup_context=setup)
        x = torch.ones(3, requires_grad=True)
        ops.no_gradient(x).sum().backward()
        assert x.grad.tolist() == [5.0] * 3
        torch.library.register_kernel("check::parallel", "cpu", lambda x: x * 10)
        assert ops.parallel(torch.ones(2)).tolist() == [10.0, 10.0]
    finally:
        overload.fake = None
        overload.kernels.pop("CPU", None)
        no_gradient = torch.ops.check.no_gradient.default
        no_gradient.backward = no_gradient.setup_context = None


def test_dispatch_mode(torch, ops):
    from teletensor.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with Log():
        ops.scaled_add(torch.ones(2), torch.ones(2))
    assert "check.scaled_add.default" in seen


def test_autocast(torch, ops):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert ops.scaled_add(torch.ones(2), torch.ones(2)).dtype == torch.float32
