"""Forward mode of torch.func and autograd.functional: nested transforms, writes in place, custom functions, linearize."""

import pytest


@pytest.fixture
def x(torch):
    return torch.tensor([0.5, -1.0, 2.0, 0.1], dtype=torch.float64)


@pytest.fixture
def t(torch):
    return torch.tensor([1.0, 2.0, -1.0, 0.5], dtype=torch.float64)


def numeric(torch, function, x, t, step=1e-6):
    return (function(x + step * t) - function(x - step * t)) / (2 * step)


def close(torch, a, b, **kwargs):
    assert a.shape == b.shape and torch.allclose(a, b, **kwargs), (a, b)


@pytest.fixture
def func(torch):
    return torch.func


class TestNesting:
    def f(self, torch):
        weight = torch.arange(16, dtype=torch.float64).reshape(4, 4) / 16
        return lambda z: (weight @ z).tanh() * z.exp() + torch.softmax(z, 0) * (z * z).sum()

    def test_jvp_of_jvp(self, torch, func, x, t):
        f = self.f(torch)
        _, second = func.jvp(lambda z: func.jvp(f, (z,), (t,))[1], (x,), (t,))
        close(torch, second, numeric(torch, lambda z: func.jvp(f, (z,), (t,))[1], x, t), rtol=1e-5)
        third = func.jvp(lambda z: func.jvp(lambda w: func.jvp(torch.sin, (w,), (t,))[1], (z,), (t,))[1], (x,), (t,))[1]
        close(torch, third, -x.cos() * t**3)

    def test_tangents_that_depend_on_an_outer_variable(self, torch, func, x, t):
        _, found = func.jvp(lambda z: func.jvp(torch.sin, (z,), (z * z,))[1], (x,), (t,))
        close(torch, found, (-x.sin() * x**2 + 2 * x * x.cos()) * t)

    def test_jvp_of_grad_and_grad_of_jvp(self, torch, func, x, t):
        f = self.f(torch)

        def total(z):
            return f(z).sum()

        rows = torch.stack([func.grad(lambda z, i=i: func.grad(total)(z)[i])(x) for i in range(4)])
        close(torch, func.jvp(func.grad(total), (x,), (t,))[1], rows @ t)
        close(torch, func.grad(lambda z: func.jvp(total, (z,), (t,))[1])(x), rows @ t)
        close(torch, func.hessian(total)(x), rows)
        close(torch, func.jacfwd(func.jacfwd(total))(x), rows)
        close(torch, func.jacrev(func.jacfwd(total))(x), rows)

    def test_jvp_of_vjp_with_tangents_of_the_cotangent(self, torch, func, x, t):
        def g(z):
            _, product = func.vjp(torch.sin, z)
            return product(z * z)[0]

        close(torch, func.jvp(g, (x,), (t,))[1], (2 * x * x.cos() - x**2 * x.sin()) * t)
        _, product = func.vjp(lambda z: func.jvp(torch.sin, (z,), (t,))[1], x)
        close(torch, func.jvp(lambda u: product(u)[0], (x,), (t,))[1], -x.sin() * t * t)

    def test_vmap(self, torch, func, x, t):
        f = self.f(torch)
        xs, ts = torch.stack([x, 2 * x, -x]), torch.stack([t, t + 1, -t])
        want = torch.stack([func.jvp(f, (a,), (b,))[1] for a, b in zip(xs, ts)])
        close(torch, torch.vmap(lambda a, b: func.jvp(f, (a,), (b,))[1])(xs, ts), want)
        close(torch, func.jvp(torch.vmap(f), (xs,), (ts,))[1], want)
        shared = torch.vmap(lambda b: func.jvp(f, (x,), (b,))[1])(ts)
        close(torch, shared, torch.stack([func.jvp(f, (x,), (b,))[1] for b in ts]))
        close(torch, torch.vmap(func.jacfwd(f))(xs), torch.stack([func.jacrev(f)(a) for a in xs]))
        close(torch, torch.vmap(func.hessian(lambda z: f(z).sum()))(xs)[1], func.hessian(lambda z: f(z).sum())(xs[1]))
        nested = torch.vmap(lambda a: func.jvp(lambda z: torch.vmap(lambda s: (s * z).sin().sum())(xs), (a,), (t,))[1])(xs)
        close(torch, nested[1], func.jvp(lambda z: (xs * z).sin().sum(1), (xs[1],), (t,))[1])
        inner = func.jvp(lambda z: torch.vmap(func.grad(lambda s: (s * s * z).sin().sum()))(xs), (x,), (t,))[1]
        close(torch, inner, numeric(torch, lambda z: torch.stack([(2 * s * z) * (s * s * z).cos() for s in xs]), x, t), rtol=1e-5)

    def test_randomness(self, torch, func, x, t):
        def noisy(z):
            return torch.nn.functional.dropout(z, 0.5) + torch.rand_like(z) * z

        value, tangent = func.jvp(noisy, (x,), (x,))
        close(torch, value, tangent)  # linear
        value, tangent = torch.vmap(lambda b: func.jvp(noisy, (x,), (b,)), randomness="different")(torch.stack([x] * 8))
        close(torch, value, tangent)
        assert not torch.allclose(value[0], value[1])
        value, tangent = torch.vmap(lambda b: func.jvp(noisy, (x,), (b,)), randomness="same")(torch.stack([x] * 3))
        close(torch, value, tangent)
        close(torch, value[0], value[1])


class TestJvp:
    def test_trees_aux_and_strict(self, torch, func, x, t):
        def f(inputs, y):
            return {"a": inputs["p"] * y, "b": (y.sin(), torch.ones(2))}, (inputs["p"], "text")

        (value, tangent, aux) = func.jvp(f, ({"p": x}, x), ({"p": t}, t), has_aux=True)
        close(torch, tangent["a"], 2 * x * t)
        assert tangent["b"][1].tolist() == [0, 0] and aux[1] == "text" and type(aux[0]) is torch.Tensor
        with pytest.raises(RuntimeError, match="independent of the inputs"):
            func.jvp(lambda z: (z, torch.ones(2)), (x,), (t,), strict=True)
        with pytest.raises(RuntimeError, match="only tensors"):
            func.jvp(lambda z: (z, 1), (x,), (t,))
        with pytest.raises(RuntimeError, match="non-empty output"):
            func.jvp(lambda z: (), (x,), (t,))
        with pytest.raises(ValueError, match="Expected primal to be floating point"):
            func.jvp(lambda z: z, (x.long(),), (t,))

    def test_no_tape(self, torch, func, x, t):
        seen = []

        def f(z):
            y = z.sin()
            seen.append(y.requires_grad)
            return y

        func.jvp(f, (x,), (t,))
        with torch.no_grad():
            close(torch, func.jvp(f, (x,), (t,))[1], x.cos() * t)
        assert seen == [False, False]

    def test_results_differentiate_backward(self, torch, func, x, t):
        w = x.clone().requires_grad_()
        value, tangent = func.jvp(lambda z: z**3 * w, (x,), (t,))
        close(torch, torch.autograd.grad(tangent.sum(), w)[0], 3 * x**2 * t)
        value, tangent = func.jvp(lambda z: torch.nn.functional.layer_norm(z, (4,)), (w,), (t,))
        found = torch.autograd.grad(tangent[0], w)[0]
        want = [numeric(torch, lambda z: func.jvp(lambda v: torch.nn.functional.layer_norm(v, (4,)), (z,), (t,))[1][0], x, e)
                for e in torch.eye(4, dtype=torch.float64)]  # fmt: skip
        close(torch, found, torch.stack(want), rtol=1e-4)

    def test_types_that_are_promoted(self, torch, func):
        a, b = torch.tensor([1.0, 2.0]), torch.tensor(3.0, dtype=torch.float64)
        value, tangent = func.jvp(lambda p, q: p * q + torch.arange(2), (a, b), (torch.ones(2), torch.tensor(2.0).double()))
        assert tangent.dtype == value.dtype == torch.float32 and tangent.tolist() == [5, 7]
        value, tangent = func.jvp(lambda q: q + torch.zeros(2, 3), (b,), (torch.tensor(2.0).double(),))
        assert tangent.dtype == torch.float32 and tangent.shape == (2, 3) and tangent.sum().item() == 12
        assert func.jvp(lambda p: p.long(), (a,), (a,))[1].tolist() == [0, 0]

    def test_modes_receive_the_operators_of_primals_and_tangents(self, torch, func, x, t):
        from teletensor.utils._python_dispatch import TorchDispatchMode

        seen = []

        class Names(TorchDispatchMode):
            def __torch_dispatch__(self, f, types, args=(), kwargs=None):
                seen.append(f._schema.name)
                assert all(type(a) is torch.Tensor for a in args)
                return f(*args, **(kwargs or {}))

        with Names():
            func.jvp(torch.sin, (x,), (t,))
        assert seen == ["aten::sin", "aten::cos", "aten::mul"]

    def test_values_can_be_read(self, torch, func, x, t):
        _, tangent = func.jvp(lambda z: z * 2 if z.sum() > 0 and z[0].item() == 0.5 and len(z.tolist()) == 4 else z, (x,), (t,))
        close(torch, tangent, 2 * t)
        assert func.jvp(lambda z: z * float(z.detach().numpy()[0]), (x,), (t,))[1].tolist() == (t * 0.5).tolist()
        with pytest.raises(RuntimeError, match="lose the tangent"):
            func.jvp(lambda z: torch.from_numpy(z.numpy()), (x,), (t,))

    def test_modules(self, torch, func):
        nn = torch.nn
        torch.manual_seed(0)
        net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 3)).double()
        image = torch.randn(2, 1, 6, 6, dtype=torch.float64)
        parameters = {k: v.detach() for k, v in net.named_parameters()}
        directions = {k: torch.randn_like(v) for k, v in parameters.items()}

        def loss(p, i):
            return nn.functional.cross_entropy(func.functional_call(net, p, (i,)), torch.tensor([0, 2]))

        _, tangent = func.jvp(loss, (parameters, image), (directions, image))
        gradients = func.grad(loss, (0, 1))(parameters, image)
        want = sum((gradients[0][k] * directions[k]).sum() for k in parameters) + (gradients[1] * image).sum()
        close(torch, tangent, want)
        mean = net[1].running_mean.clone()
        func.jvp(loss, (parameters, image), (directions, image))
        assert not torch.equal(net[1].running_mean, mean)
        net.eval()
        _, tangent = func.jvp(loss, (parameters, image), (directions, image))
        gradients = func.grad(loss, (0, 1))(parameters, image)
        close(torch, tangent, sum((gradients[0][k] * directions[k]).sum() for k in parameters) + (gradients[1] * image).sum())

    def test_values_of_matrices(self, torch, func, x, t):
        a, b = torch.outer(x, t) + torch.diag(t), torch.outer(t, t)
        linalg = torch.linalg
        for f in (lambda z: linalg.eigvalsh(z + z.t()), linalg.svdvals, lambda z: linalg.matrix_norm(z, "nuc")):
            close(torch, func.jvp(f, (a,), (b,))[1], numeric(torch, f, a, b), rtol=1e-5)

    def test_parameters_that_require_gradients(self, torch, func):
        torch.manual_seed(0)
        layer = torch.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True).double()
        z, d = torch.randn(2, 3, 4, dtype=torch.float64), torch.randn(2, 3, 4, dtype=torch.float64)

        def total(w):
            return layer(w).sin().sum()

        product = func.jvp(func.grad(total), (z,), (d,))[1]
        close(torch, product, func.grad(lambda w: (func.grad(total)(w) * d).sum())(z))
        value, tangent = func.jvp(total, (z,), (d,))
        found = torch.autograd.grad(tangent, layer.linear1.weight)[0]
        assert tangent.requires_grad and found.abs().sum() > 0

    def test_attention(self, torch, func):
        q, k, v = (torch.randn(2, 3, 4, dtype=torch.float64) for _ in range(3))
        for kwargs in ({}, {"is_causal": True}, {"attn_mask": torch.randn(3, 3, dtype=torch.float64)}):
            def f(*z, kwargs=kwargs):
                return torch.nn.functional.scaled_dot_product_attention(*z, **kwargs)

            value, tangent = func.jvp(f, (q, k, v), (v, q, k))
            close(torch, value, f(q, k, v))
            step = 1e-6
            close(torch, tangent, (f(q + step * v, k + step * q, v + step * k) - f(q - step * v, k - step * q, v - step * k)) / (2 * step),
                  rtol=1e-4, atol=1e-7)  # fmt: skip


class TestWrites:
    CASES = {
        "arithmetic": lambda torch, z: z.clone().mul_(z).add_(1),
        "a row": lambda torch, z: _set(z * 2, 0, z[1] * z[2]),
        "a view of a view": lambda torch, z: _then(z * z, lambda y: y.reshape(2, 2)[1].unsqueeze(0).mul_(y[0])),
        "a base under a view": lambda torch, z: _view_after_write(z * z),
        "an expanded tangent": lambda torch, z: _then(z.sum().expand(4) + torch.zeros(4), lambda y: y[1:3].copy_(z[:2])),
        "zeros": lambda torch, z: _then(torch.zeros_like(z), lambda y: y[1:].copy_(z[1:] ** 2)),
        "constants": lambda torch, z: _then(z * 3, lambda y: (y[0].fill_(2.0), y[1:2].zero_())),
        "a transpose": lambda torch, z: _then(z.reshape(2, 2) * 1, lambda y: y.t()[0].add_(y[1])),
        "an in-place view": lambda torch, z: (z.reshape(2, 2) * 2).t_().unsqueeze_(0).mul_(z[0]),
        "index_put": lambda torch, z: _set(z * 1, torch.tensor([0, 2]), z[:2] * z[1]),
        "a mask": lambda torch, z: _set(z * 1, z > 0, z[0]),
        "scatter": lambda torch, z: (z * 2).scatter_add_(0, torch.tensor([1, 1]), z[:2].sin()),
        "a shared tangent": lambda torch, z: _then(z + 0, lambda y: y.mul_(2)) * z,
    }

    @pytest.mark.parametrize("name", CASES)
    @pytest.mark.parametrize("mapped", [False, True])
    def test_in_place(self, torch, func, x, t, name, mapped):
        def f(z):
            return self.CASES[name](torch, z)

        value, tangent = func.jvp(f, (x,), (t,))
        close(torch, value, f(x))
        close(torch, tangent, numeric(torch, f, x, t), rtol=1e-6, atol=1e-8)
        if mapped:
            close(torch, func.jacfwd(f)(x), torch.stack([func.jvp(f, (x,), (e,))[1] for e in torch.eye(4).double()], -1))

    def test_the_argument_itself(self, torch, func, x, t):
        given = x.clone()
        value, tangent = func.jvp(lambda z: z.mul_(z), (given,), (t,))
        close(torch, tangent, 2 * x * t)
        close(torch, given, x * x)

    def test_out(self, torch, func, x, t):
        def f(z):
            result = torch.zeros_like(z)
            torch.mul(z, z, out=result)
            return result

        close(torch, func.jvp(f, (x,), (t,))[1], 2 * x * t)
        def shifted(z):
            made = z.new_zeros(2, 4)
            made[0, 1:] = z[:3] ** 2
            made[1] = z
            return made

        want = torch.stack([torch.cat([0 * t[:1], (2 * x * t)[:3]]), t])
        for found in (func.jvp(shifted, (x,), (t,))[1], func.linearize(shifted, x)[1](t), func.jacfwd(shifted)(x) @ t):
            close(torch, found, want)
        outside = torch.zeros(4).double()
        with pytest.raises(RuntimeError, match="no dual tensor"):
            func.jvp(lambda z: torch.mul(z, z, out=outside), (x,), (t,))
        with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
            func.jvp(lambda z: z[0].clone().add_(z), (x,), (t,))


def _set(y, index, value):
    y[index] = value
    return y


def _then(y, write):
    write(y)
    return y


def _view_after_write(y):
    view = y[1:]
    y.mul_(y[0])
    return view * 1


class TestFunctions:
    def cube(self, torch, calls):
        class Cube(torch.autograd.Function):
            @staticmethod
            def forward(ctx, z, factor):
                ctx.save_for_forward(z)
                ctx.save_for_backward(z * 0)
                ctx.factor = factor
                return z**3 * factor

            @staticmethod
            def jvp(ctx, tangent, factor):
                assert factor is None
                calls.append("jvp")
                (z,) = ctx.saved_tensors
                assert ctx.saved_for_forward[0] is z
                return 3 * z**2 * ctx.factor * tangent

            @staticmethod
            def backward(ctx, g):
                raise AssertionError("not called")

        return Cube

    def test_jvp(self, torch, func, x, t):
        calls = []
        cube = self.cube(torch, calls)
        _, tangent = func.jvp(lambda z: cube.apply(z, 2.0) * z, (x,), (t,))
        close(torch, tangent, 8 * x**3 * t)
        _, second = func.jvp(lambda z: func.jvp(lambda w: cube.apply(w, 2.0), (z,), (t,))[1], (x,), (t,))
        close(torch, second, 12 * x * t * t)
        close(torch, func.jacfwd(lambda z: cube.apply(z, 1.0))(x), torch.diag(3 * x**2))
        assert len(calls) >= 3

    def test_vmap(self, torch, func, x, t):
        cube = self.cube(torch, [])
        xs, ts = torch.stack([x, -x]), torch.stack([t, t + 1])
        close(torch, torch.vmap(lambda a, b: func.jvp(lambda z: cube.apply(z, 1.0), (a,), (b,))[1])(xs, ts), 3 * xs**2 * ts)
        close(torch, func.jvp(torch.vmap(lambda z: cube.apply(z, 1.0)), (xs,), (ts,))[1], 3 * xs**2 * ts)

    def test_setup_context_several_outputs_and_none(self, torch, func, x, t):
        class Both(torch.autograd.Function):
            @staticmethod
            def forward(z):
                return z.sin(), z.long(), z * 2

            @staticmethod
            def setup_context(ctx, inputs, outputs):
                ctx.save_for_forward(*inputs)
                ctx.mark_non_differentiable(outputs[1])

            @staticmethod
            def jvp(ctx, tangent):
                return ctx.saved_tensors[0].cos() * tangent, None, None

        found = func.jvp(Both.apply, (x,), (t,))[1]
        close(torch, found[0], x.cos() * t)
        assert found[1].tolist() == found[2].tolist() == [0] * 4

    def test_without_jvp(self, torch, func, x, t):
        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, z):
                ctx.save_for_backward(z)
                return z * z

            @staticmethod
            def backward(ctx, g):
                return 2 * ctx.saved_tensors[0] * g

        close(torch, func.jvp(Square.apply, (x,), (t,))[1], 2 * x * t)

    def test_invalid_results(self, torch, func, x, t):
        class Wrong(torch.autograd.Function):
            @staticmethod
            def forward(ctx, z):
                return z * 1

            @staticmethod
            def jvp(ctx, tangent):
                return tangent[:2] if tangent[0] > 0 else (tangent, tangent)

        with pytest.raises(RuntimeError, match="expected a tensor of size"):
            func.jvp(Wrong.apply, (x,), (t,))
        with pytest.raises(RuntimeError, match="incorrect number of forward gradients"):
            func.jvp(Wrong.apply, (x,), (-t,))


class TestLinearize:
    def test_values(self, torch, func, x, t):
        calls = []

        def f(z, w):
            calls.append(1)
            y = torch.nn.functional.layer_norm(z * w, (4,)).sin() @ torch.ones(4, 3).double()
            y[0] = z[1] * w[0]
            return y, torch.ones(2), {"c": torch.cumprod(w, 0)}

        value, product = func.linearize(f, x, 2 * x)
        for direction in (t, -2 * t):
            want = func.jvp(f, (x, 2 * x), (direction, t))[1]
            calls.clear()
            got = product(direction, t)
            assert calls == []
            close(torch, got[0], want[0])
            close(torch, got[1], want[1])
            close(torch, got[2]["c"], want[2]["c"])
        close(torch, value[0], f(x, 2 * x)[0])

    def test_writes_within_the_function(self, torch, func, x, t):
        def shifted(z):
            made = z.clone()
            made[1:] = z[:-1] ** 2
            return made.mul_(z)

        def cleared(z):
            square = z * z
            fourth = square * square
            return square.zero_().add_(fourth) * fourth

        def constant(z):
            sine = z.sin()
            product = sine * z
            sine.add_(1)
            second = sine * z
            sine[0] = 5.0
            return product + second * sine

        for f in (shifted, cleared, constant):
            _, product = func.linearize(f, x)
            want = func.jvp(f, (x,), (t,))[1]
            for found in (product(t), product(2 * t) / 2, torch.vmap(product)(torch.stack([x, t]))[1]):
                close(torch, found, want)
            close(torch, want, numeric(torch, f, x, t), rtol=1e-5)

    def test_results_are_no_tangents_of_the_caller(self, torch, func, x, t):
        given = t.clone()
        for result in func.linearize(lambda z: (z, z.view(2, 2), z[1:]), x)[1](given):
            result.zero_()
        close(torch, given, t)

    def test_nested(self, torch, func, x, t):
        value, product = func.linearize(torch.sin, x)
        rows = torch.vmap(product)(torch.eye(4, dtype=torch.float64))
        close(torch, rows, torch.diag(x.cos()))
        close(torch, func.jvp(product, (t,), (x,))[1], x.cos() * x)
        close(torch, func.grad(lambda v: product(v).sum())(t), x.cos())
        _, found = func.jvp(lambda z: func.linearize(torch.sin, z)[1](t), (x,), (t,))
        close(torch, found, -x.sin() * t * t)
        xs = torch.stack([x, -x])
        close(torch, torch.vmap(lambda z: func.linearize(torch.sin, z)[1](t))(xs), xs.cos() * t)
        close(torch, func.linearize(torch.vmap(lambda z: z.sin().sum()), xs)[1](xs), (xs.cos() * xs).sum(1))
        value, product = func.linearize(func.grad(lambda z: (z**3).sum()), x)
        close(torch, product(t), 6 * x * t)

    def test_errors(self, torch, func, x, t):
        _, product = func.linearize(torch.sin, x)
        for tangent, text in ((t[:2], "shape"), (t.float(), "dtype")):
            with pytest.raises(RuntimeError, match=f"tangent:0 with {text}"):
                product(tangent)
        with pytest.raises(RuntimeError, match="same structure"):
            product((t,), t)
        factor = x.clone()
        _, product = func.linearize(lambda z: z * factor, x)
        close(torch, product(t), t * x)
        factor.mul_(2)
        with pytest.raises(RuntimeError, match="changed in place"):
            product(t)


def test_autograd_functional(torch, func, x, t):
    functional = torch.autograd.functional

    def f(a, b):
        return a.sin() * b, a.sum()

    values, products = functional.jvp(f, (x, t), (t, x))
    close(torch, products[0], x.cos() * t * t + x.sin() * x)
    close(torch, products[1], t.sum())
    rows = functional.jacobian(f, (x, t), vectorize=True, strategy="forward-mode")
    close(torch, rows[0][0], torch.diag(x.cos() * t))
    assert rows[1][1].tolist() == [0] * 4
    single = functional.jacobian(torch.sin, x, vectorize=True, strategy="forward-mode")
    close(torch, single, torch.diag(x.cos()))
    close(torch, functional.jacobian(torch.sin, (x,), vectorize=True, strategy="forward-mode")[0], single)
    both = functional.jacobian(lambda z: (z, z * z), x, vectorize=True, strategy="forward-mode")
    close(torch, both[1], torch.diag(2 * x))
    second = functional.hessian(lambda z: (z**3).sum(), x, vectorize=True, outer_jacobian_strategy="forward-mode")
    close(torch, second, torch.diag(6 * x))
    pair = functional.hessian(lambda a, b: (a * a * b).sum(), (x, t), vectorize=True, outer_jacobian_strategy="forward-mode")
    close(torch, pair[0][0], torch.diag(2 * t))
    close(torch, pair[0][1], torch.diag(2 * x))
    w = x.clone().requires_grad_()
    assert not functional.jvp(torch.sin, w, t)[1].requires_grad
    close(torch, torch.autograd.grad(functional.jvp(torch.sin, w, t, create_graph=True)[1].sum(), w)[0], -x.sin() * t)
    with pytest.raises(RuntimeError, match="not supported together"):
        functional.jacobian(torch.sin, x, strict=True, vectorize=True, strategy="forward-mode")


def test_tangents_of_results_without_a_derivative_are_refused(torch):
    """As in PyTorch: of outputs that were marked, and of integers."""

    class Marked(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y, constant, rounded = x * 2, x * 3, x.long()
            ctx.mark_non_differentiable(constant)
            ctx.place = forbidden
            return y, constant, rounded

        @staticmethod
        def jvp(ctx, t):
            return t * 2, t * 3 if ctx.place == 1 else None, t if ctx.place == 2 else None

    for forbidden in (0, 1, 2):
        with torch.autograd.forward_ad.dual_level():
            x = torch.autograd.forward_ad.make_dual(torch.ones(2), torch.ones(2))
            if forbidden:
                with pytest.raises(RuntimeError, match=f"jvp returned a gradient at position {forbidden}, but"):
                    Marked.apply(x)
            else:
                tangents = [torch.autograd.forward_ad.unpack_dual(r).tangent for r in Marked.apply(x)]
                assert tangents[0].tolist() == [2, 2] and tangents[1:] == [None, None]
