"""autograd.Function and torch.utils.checkpoint in torch.export and make_fx: nodes, values, what requires grad, warnings, errors."""

from __future__ import annotations

import warnings

import pytest

LOSES_BACKWARD = "gradients of the graph are theirs"


def operators(graph):
    return [n.target._opname for n in graph.nodes if n.op == "call_function" and hasattr(n.target, "_opname")]


@pytest.fixture
def double_gradient(torch):
    class DoubleGradient(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, g):
            return g * 2

    return DoubleGradient.apply


def module_of(torch, forward):
    module = torch.nn.Module()
    module.layer = torch.nn.Linear(3, 3)
    module.forward = lambda *args: forward(module, *args)
    return module


def test_forward_is_part_of_the_graph(torch, double_gradient):
    module = module_of(torch, lambda m, x: double_gradient(m.layer(x)))
    with pytest.warns(UserWarning, match=LOSES_BACKWARD):
        program = torch.export.export(module, (torch.randn(2, 3),))
    assert operators(program.graph) == ["linear", "sin"]
    x = torch.randn(2, 3)
    result = program.module()(x)
    torch.testing.assert_close(result, module(x))
    weight = program.parameters().__iter__().__next__()
    (found,) = torch.autograd.grad(result.sum(), [weight])  # of sin
    want = torch.cos(module.layer(x)).T @ x
    torch.testing.assert_close(found, want, rtol=1e-4, atol=1e-5)


def test_make_fx(torch, double_gradient):
    from teletensor.fx.experimental.proxy_tensor import make_fx

    for mode in ("real", "fake", "symbolic"):
        with pytest.warns(UserWarning, match=LOSES_BACKWARD):
            graph = make_fx(lambda x: double_gradient(x) + 1, tracing_mode=mode)(torch.ones(3, requires_grad=True))
        assert operators(graph.graph)[:2] == ["sin", "add"]
        x = torch.randn(3)
        torch.testing.assert_close(graph(x), x.sin() + 1)


def test_gradients_within_the_function_raise(torch, double_gradient):
    from teletensor.fx.experimental.proxy_tensor import make_fx

    with pytest.raises(NotImplementedError, match="custom_function"):
        make_fx(lambda x: torch.autograd.grad(double_gradient(x).sum(), x))(torch.ones(3, requires_grad=True))
    from teletensor._functorch.aot_autograd import aot_function

    with pytest.raises(NotImplementedError, match="custom_function"):
        aot_function(double_gradient, fw_compiler=lambda graph, _: graph)(torch.ones(3, requires_grad=True))


def test_what_requires_grad(torch):
    class Rounded(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, n):
            rounded, other = x.round(), x * 2
            ctx.mark_non_differentiable(other)
            return rounded, other, n, x

        @staticmethod
        def backward(ctx, g, _other, _n, h):
            return g + h, None

    seen = []

    def forward(m, x):
        with torch.no_grad():
            without = Rounded.apply(m.layer(x), torch.ones(2))
        results = Rounded.apply(m.layer(x), torch.ones(2, dtype=torch.int64))
        seen.append([[r.requires_grad for r in rs] for rs in (without, results)])
        seen.append(type(results[0].grad_fn).__name__)
        return results[0] + results[3], results[1], results[2], without[0]

    module = module_of(torch, forward)
    with pytest.warns(UserWarning, match=LOSES_BACKWARD):
        program = torch.export.export(module, (torch.randn(2, 3),))
    recorded, seen[:] = list(seen), []
    x = torch.randn(2, 3)
    want, got = module(x), program.module()(x)
    assert recorded == seen
    for a, b in zip(got, want):
        torch.testing.assert_close(a, b)
    assert not got[3].requires_grad and got[0].requires_grad


def test_forward_that_changes_its_input(torch):
    class AddOne(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.add_(1)

        @staticmethod
        def backward(ctx, g):
            return g

    def forward(m, x):
        y = m.layer(x)
        z = AddOne.apply(y)
        return z * y

    module = module_of(torch, forward)
    with pytest.warns(UserWarning, match=LOSES_BACKWARD):
        program = torch.export.export(module, (torch.randn(2, 3),))
    assert operators(program.graph) == ["linear", "add_", "mul"]
    x = torch.randn(2, 3)
    torch.testing.assert_close(program.module()(x), module(x))


def test_modes_within_forward(torch):
    class Modes(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with torch.enable_grad():
                y = x * 2
            return (y + 1).detach()

        @staticmethod
        def backward(ctx, g):
            return g

    for outside in (torch.no_grad, torch.enable_grad):

        def forward(m, x, outside=outside):
            with outside():
                y = Modes.apply(x)
                return m.layer(y) * 3

        module = module_of(torch, forward)
        program = torch.export.export(module, (torch.randn(2, 3),))
        x = torch.randn(2, 3)
        got, want = program.module()(x), module(x)
        torch.testing.assert_close(got, want)
        assert got.requires_grad == want.requires_grad == (outside is torch.enable_grad)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_are_part_of_the_graph(torch, reentrant):
    from teletensor.utils.checkpoint import checkpoint

    module = module_of(torch, lambda m, x: checkpoint(lambda x: torch.nn.functional.dropout(m.layer(x), 0.5), x, use_reentrant=reentrant))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program = torch.export.export(module, (torch.randn(2, 3),))
    assert operators(program.graph) == ["linear", "dropout"]
    x, results = torch.randn(2, 3), []
    for f in (program.module(), module):
        torch.manual_seed(3)
        y = f(x.clone().requires_grad_())
        results.append([y, *torch.autograd.grad(y.sum(), list(f.parameters()))])
    for a, b in zip(*results):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_losses_in_parts(torch):
    loss = torch.nn.LinearCrossEntropyLoss(8, 5, options=torch.nn.LinearCrossEntropyOptions(batch_chunk_size=16))
    x, y = torch.randn(40, 8), torch.randint(0, 5, (40,))
    program = torch.export.export(loss, (x, y))
    assert operators(program.graph).count("cross_entropy_loss") == 3
    torch.testing.assert_close(program.module()(x, y), loss(x, y))


def test_forward_that_returns_its_argument(torch):
    class Reversed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return -g

    module = module_of(torch, lambda m, x: Reversed.apply(m.layer(x)) * 2)
    with pytest.warns(UserWarning, match=LOSES_BACKWARD):
        program = torch.export.export(module, (torch.randn(2, 3),))
    assert operators(program.graph) == ["linear", "view_as", "mul"]
    x = torch.randn(2, 3, requires_grad=True)
    got, want = program.module()(x), module.layer(x) * 2
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(torch.autograd.grad(got.sum(), [x]), torch.autograd.grad(want.sum(), [x]))
