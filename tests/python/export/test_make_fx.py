"""make_fx: the recorded operators, their values, and what cannot be recorded."""

from __future__ import annotations

import pytest


@pytest.fixture
def make_fx(torch):
    from teletensor.fx.experimental.proxy_tensor import make_fx

    return make_fx


def targets(module) -> list[str]:
    return [str(n.target) for n in module.graph.nodes if n.op == "call_function" and "getitem" not in str(n.target)]


@pytest.mark.parametrize("mode", ["real", "fake"])
def test_operators_have_pytorchs_names(torch, make_fx, mode):
    layer = torch.nn.Linear(4, 3)

    def f(x, y):
        z = layer(x) + 1
        z.add_(2)
        a, b = z.split([1, 2], 1)
        return {"a": a.relu(), "b": torch.softmax(b + y, -1)}

    x, y = torch.randn(5, 4), torch.randn(2)
    module = make_fx(f, tracing_mode=mode)(x, y)
    assert targets(module) == [
        "aten.t.default", "aten.addmm.default", "aten.add.Tensor", "aten.add_.Tensor", "aten.split_with_sizes.default",
        "aten.relu.default", "aten.add.Tensor", "aten._softmax.default",
    ]  # fmt: skip
    assert [n.name for n in module.graph.nodes if n.op == "placeholder"] == ["x_1", "y_1"]
    relu = next(n for n in module.graph.nodes if str(n.target) == "aten.relu.default")
    assert tuple(relu.meta["val"].shape) == (5, 1)
    for given in ((x, y), (torch.randn(5, 4), torch.randn(2))):
        found, expected = module(*given), f(*given)
        assert found.keys() == expected.keys()
        for key in expected:
            torch.testing.assert_close(found[key], expected[key])
    assert module._param_constant0 is layer.weight


def test_pre_dispatch_keeps_functions_and_no_grad(torch, make_fx):
    layer = torch.nn.Linear(4, 3)

    def f(x):
        with torch.no_grad():
            y = layer(x)
        return y * 2

    module = make_fx(f, pre_dispatch=True, tracing_mode="fake")(torch.randn(2, 4))
    names = [getattr(n.target, "__name__", "") for n in module.graph.nodes if n.op == "call_function"]
    assert names == ["_set_grad_enabled", "linear.default", "_set_grad_enabled", "mul.Tensor"]
    assert not module(torch.randn(2, 4, requires_grad=True)).requires_grad


def test_gradients_are_operators(torch, make_fx):
    def f(x, w, target):
        loss = torch.nn.functional.cross_entropy(torch.tanh(x @ w), target)
        return loss, torch.autograd.grad(loss, w)[0]

    x, w = torch.randn(5, 4), torch.randn(4, 3, requires_grad=True)
    target = torch.tensor([0, 1, 2, 0, 1])
    module = make_fx(f)(x, w, target)
    names = targets(module)
    assert names.count("aten.mm.default") == 2  # forward, and the gradient
    assert "teletensor.cross_entropy_backward.default" in names
    w2 = torch.randn(4, 3)
    loss, gradient = module(x, w2, target)
    expected = f(x, w2.requires_grad_(), target)
    torch.testing.assert_close(loss, expected[0].detach())
    torch.testing.assert_close(gradient, expected[1])


def test_decomposition_table(torch, make_fx):
    aten = torch.ops.aten
    table = {aten.silu.default: lambda x: x * torch.sigmoid(x)}
    module = make_fx(lambda x: torch.nn.functional.silu(x), decomposition_table=table)(torch.randn(3))
    assert targets(module) == ["aten.sigmoid.default", "aten.mul.Tensor"]


def test_values_cannot_be_read(torch, make_fx):
    from teletensor.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

    with pytest.raises(GuardOnDataDependentSymNode, match="data-dependent"):
        make_fx(lambda x: x if x.sum() > 0 else -x)(torch.randn(3))
    with pytest.raises(GuardOnDataDependentSymNode, match="item reads the value"):
        make_fx(lambda x: x * x.sum().item())(torch.randn(3))
    with pytest.raises(GuardOnDataDependentSymNode, match="data-dependent"):
        make_fx(lambda x: x if x.sum() > 0 else -x, tracing_mode="symbolic")(torch.randn(3))
    with pytest.raises(ValueError, match="tracing_mode"):
        make_fx(lambda x: x, tracing_mode="other")


def test_what_graphs_of_operators_cannot_contain(torch, make_fx):
    def casts(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return torch.nn.functional.linear(x, x)

    with pytest.raises(NotImplementedError, match="autocast"):
        make_fx(casts)(torch.randn(2, 2))
    with pytest.raises(NotImplementedError, match=r"use torch\.autograd\.grad"):
        make_fx(lambda x: (x * x).sum().backward())(torch.randn(2, requires_grad=True))


def test_tensor_made_of_numbers_is_copied_at_each_call(torch, make_fx):
    def f(x):
        t = torch.tensor([1.0, 2.0])
        t.add_(x)
        return t

    module = make_fx(f)(torch.ones(2))
    for _ in range(2):
        assert module(torch.ones(2)).tolist() == [2.0, 3.0]


def test_graph_has_no_writes_after_functional(torch, make_fx):
    from teletensor.fx.experimental._functional import functional

    def f(x, state):
        x = x.clone()
        x[0] = 1
        x[:, 1].mul_(3)
        x.view(-1)[2:4] = 0
        x.t()[2] += 1
        x.unbind(0)[1].neg_()
        state.add_(x.sum())
        return x.sum(0)

    x, state = torch.randn(5, 4), torch.zeros(2)
    module, written = functional(make_fx(f, tracing_mode="fake")(x, state))
    assert written == ["state_1"]
    assert not any(n.target._schema.is_mutable for n in module.graph.nodes if hasattr(n.target, "_schema"))
    new_state, result = module(x, state)
    assert state.tolist() == [0, 0]
    torch.testing.assert_close(result, f(x, state))
    torch.testing.assert_close(new_state, state)


def test_recorded_graph_runs_as_a_program(torch, make_fx):
    module = make_fx(lambda x: (x.exp() * 2).sum(-1))(torch.randn(3, 4))
    x = torch.randn(3, 4)
    program = torch.compiler.trace(module, x)
    torch.testing.assert_close(program(x), module(x))


def test_modules_that_call(torch, make_fx):
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    module = make_fx(net, record_module_stack=True)(torch.randn(1, 2))
    relu = next(n for n in module.graph.nodes if "relu" in str(n.target))
    assert list(relu.meta["nn_module_stack"]) == ["", "1"]


@pytest.mark.parametrize("mode", ["real", "fake"])
def test_numbers_are_inputs_whose_values_are_constant(torch, make_fx, mode):
    x = torch.ones(3)
    module = make_fx(lambda a, k, flag, text: a * k if flag and text else a, tracing_mode=mode)(x, 3, True, "t")
    assert [n.name for n in module.graph.nodes if n.op == "placeholder"] == ["a_1", "k_1", "flag_1", "text_1"]
    assert next(n for n in module.graph.nodes if n.name == "k_1").meta["val"] == 3
    assert module(2 * x, 3, True, "t").tolist() == [6, 6, 6]
    module = make_fx(lambda pair: pair[0] * pair[1], tracing_mode=mode)((x, 2))
    assert module((x, 2)).tolist() == [2, 2, 2]
    leaf = x.clone().requires_grad_()
    module = make_fx(lambda k, a: torch.autograd.grad((a * a * k).sum(), a)[0], tracing_mode=mode)(3.0, leaf)
    assert module(3.0, leaf).tolist() == [6, 6, 6]


@pytest.mark.parametrize("mode", ["real", "fake"])
def test_values_as_numbers_of_a_call(torch, make_fx, mode):
    functions = [
        lambda a: torch.full((2,), a[0]), lambda a: torch.arange(a[0]), lambda a: torch.add(a, a, alpha=a[0]),
        lambda a: a.new_full((2,), a[0]),
        lambda a: torch.addcmul(a, a, a, value=a[0]), lambda a: torch.tensor([a[0], a[1]]), lambda a: torch.zeros([a.long()[0]]),
    ]  # fmt: skip
    for f in functions:
        with pytest.raises(RuntimeError, match="data-dependent"):
            make_fx(f, tracing_mode=mode)(torch.ones(3))


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_transforms_that_differentiate(torch, make_fx, mode):
    def wave(a):
        return (a.sin() * a).sum()

    transformed = {
        "grad": torch.func.grad(wave),
        "vmap of grad": torch.func.vmap(torch.func.grad(wave)),
        "hessian": lambda x: torch.func.hessian(wave)(x[0]),
        "jacrev": lambda x: torch.func.jacrev(lambda a: a.sin() * a)(x[0]),
        "gradients of gradients": torch.func.grad(lambda a: torch.func.grad(wave)(a).square().sum()),
        "vjp": lambda x: torch.func.vjp(torch.sin, x)[1](x)[0],
        "jvp": lambda x: torch.func.jvp(torch.sin, (x,), (2 * x,))[1],
    }
    for f in transformed.values():
        for requires_grad in (False, True):
            module = make_fx(f, tracing_mode=mode)(torch.randn(3, 4, requires_grad=requires_grad))
            x = torch.randn(3, 4)
            torch.testing.assert_close(module(x), f(x))
