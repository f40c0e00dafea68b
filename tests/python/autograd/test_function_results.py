"""Results of Functions that are views, arguments of apply() by name, and second derivatives of once_differentiable."""

import pytest


def identity(torch):
    class Identity(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g

    return Identity


def first(torch):
    class First(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x[:1]

        @staticmethod
        def backward(ctx, g):
            return torch.cat([g * 10, g])

    return First


def test_writes_to_results_that_are_views_are_refused(torch):
    x = torch.ones(2, requires_grad=True)
    for function in (identity(torch), first(torch)):
        for write in (lambda b, v: v.mul_(2), lambda b, v: v[0].mul_(2)):
            b = x * 3
            with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
                write(b, function.apply(b))
        b = x * 3
        v = function.apply(b)
        b.mul_(2)
        with pytest.raises(RuntimeError, match="its base or another view of its base has been modified inplace"):
            v.sum().backward()
        b = x * 3
        v = function.apply(b)
        with torch.no_grad():
            v.mul_(2)  # not recorded
        assert b.tolist()[0] == 6
    b = x * 3
    first(torch).apply(b).sum().backward()
    assert x.grad.tolist() == [30, 3]


def test_arguments_by_name(torch):
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, offset=0, factor=2):
            ctx.factor = factor
            return x * factor + offset

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor, None, None

    x = torch.ones(2, requires_grad=True)
    (gradient,) = torch.autograd.grad(Scaled.apply(x, factor=5).sum(), x)
    assert gradient.tolist() == [5, 5]
    assert Scaled.apply(x=x, offset=1).tolist() == [3, 3]
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        Scaled.apply(x, z=1)


def test_setup_context_receives_defaults(torch):
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(x, factor=3):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            _, ctx.factor = inputs

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor, None

    x = torch.ones(2, requires_grad=True)
    for args, factor in (((), 3), ((5,), 5)):
        assert torch.autograd.grad(Scaled.apply(x, *args).sum(), x)[0].tolist() == [factor, factor]
    assert torch.func.grad(lambda x: Scaled.apply(x).sum())(torch.ones(2)).tolist() == [3, 3]
    c = x.clone()
    assert not torch.asarray(c, requires_grad=False).requires_grad and torch.asarray(c).requires_grad


def test_second_derivatives_of_once_differentiable_are_refused(torch):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    x = torch.ones(2, requires_grad=True)
    (g,) = torch.autograd.grad(Square.apply(x).sum(), x, create_graph=True)
    assert g.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="once_differentiable"):
        torch.autograd.grad(g.sum(), x)


def test_deep_graphs_with_common_nodes_are_freed(torch):
    y = torch.ones(1, requires_grad=True).clone()
    for _ in range(100_000):
        y = y + y.sin() * 1e-9
    y.item()
    del y
    assert torch.ones(1).item() == 1


def test_gradients_of_powers_and_of_leaves(torch):
    e = torch.tensor(1 + 1j, requires_grad=True)
    torch.pow(torch.tensor([-2.0, 3.0]), e).real.sum().backward()
    torch.testing.assert_close(e.grad, torch.tensor(1.6265 - 2.6881j), rtol=1e-4, atol=1e-4)
    p = torch.nn.Parameter(torch.ones(4))
    with torch.no_grad():
        p.set_(p[1:])
    assert p.requires_grad and p.is_leaf and p.shape == (3,)
    with pytest.raises(RuntimeError, match="unique"):
        torch.func.grad(lambda x, y: x * y, argnums=(0, 0))(torch.tensor(1.0), torch.tensor(2.0))


def test_hessians_ignore_no_grad(torch):
    def f(x):
        with torch.no_grad():
            y = x * 2
        return (x * y).sum()

    assert torch.func.hessian(f)(torch.ones(2)).tolist() == [[2, 0], [0, 2]]


def test_vmap_over_nothing_and_writes_to_new_tensors(torch):
    w, none = torch.ones(3, 4), torch.zeros(0, 2, 3)
    assert torch.vmap(lambda a: a @ w)(none).shape == (0, 2, 4)
    assert torch.vmap(torch.func.grad(lambda a: (a @ w).sum()))(none).shape == (0, 2, 3)
    assert torch.func.jacfwd(lambda a: a * 2)(torch.zeros(0)).shape == (0, 0)
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(torch.vmap(lambda y: y.new_zeros(3).add_(y))(x), x)
    assert torch.equal(torch.vmap(torch.vmap(lambda y: y.new_empty(()).copy_(y)))(x), x)


def test_writes_keep_replaced_values_for_gradients(torch):
    x = torch.tensor([[-1.0, 2.0], [0.5, 3.0]], requires_grad=True)
    for call in (lambda y: torch.nn.RReLU(inplace=True).eval()(y), lambda y: torch.nn.functional.rrelu_(y)):
        (g,) = torch.autograd.grad((call(x * 1) ** 2).sum(), x)
        torch.testing.assert_close(g, torch.where(x < 0, 2 * x * (11 / 48) ** 2, 2 * x))
    (got,) = torch.autograd.grad((x * 1).renorm_(2, 0, 1.0).sum(), x)
    (expected,) = torch.autograd.grad(x.renorm(2, 0, 1.0).sum(), x)
    torch.testing.assert_close(got, expected)
