"""torch.autograd.forward_ad: tangents against torch.func.jvp and closed forms, levels, errors."""

import pytest

FUNCTIONS = {
    "polynomial": lambda torch, x: x**3 + 2 * x,
    "sin of a product": lambda torch, x: (x * x).sin() / (1 + x.exp()),
    "matmul": lambda torch, x: x.reshape(2, 2) @ x.reshape(2, 2).t(),
    "softmax": lambda torch, x: torch.softmax(x, 0),
    "norm": lambda torch, x: x.norm(),
    "layer_norm": lambda torch, x: torch.nn.functional.layer_norm(x, (4,)),
    "constant branch": lambda torch, x: x * x.detach() + torch.ones(4),
    "itself": lambda torch, x: x,
}


@pytest.fixture
def fwd(torch):
    import teletensor.autograd.forward_ad as module

    yield module
    module._level = None


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tangents(torch, fwd, name):
    x, t = torch.tensor([0.5, -1.0, 2.0, 0.1]), torch.tensor([1.0, 2.0, -1.0, 0.5])
    value, expected = torch.func.jvp(lambda v: FUNCTIONS[name](torch, v), (x,), (t,))
    with fwd.dual_level():
        primal, tangent = fwd.unpack_dual(FUNCTIONS[name](torch, fwd.make_dual(x, t)))
        assert torch.equal(primal, value) and torch.allclose(tangent, expected) and not primal.requires_grad
        assert fwd.unpack_dual(x * 2).tangent is None
    assert fwd.unpack_dual(x).tangent is None


def test_several_duals_and_backward_over_forward(torch, fwd):
    w, x = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0])
    with fwd.dual_level():
        a, b = fwd.make_dual(w, torch.ones(2)), fwd.make_dual(x, torch.tensor([0.5, 0.0]))
        primal, tangent = fwd.unpack_dual(a**3 * b)
        assert torch.allclose(tangent, 3 * w**2 * x + w**3 * torch.tensor([0.5, 0.0]))
        tangent.sum().backward()
    assert torch.allclose(w.grad, 6 * w * x + 3 * w**2 * torch.tensor([0.5, 0.0])) and primal.requires_grad


def test_modules_with_dual_parameters(torch, fwd):
    net, x = torch.nn.Linear(3, 2), torch.ones(1, 3)
    parameters = {name: p.detach() for name, p in net.named_parameters()}
    with fwd.dual_level():
        for name, p in parameters.items():
            delattr(net, name)
            setattr(net, name, fwd.make_dual(p, torch.ones_like(p)))
        assert fwd.unpack_dual(net(x)).tangent.tolist() == [[4, 4]]


def test_levels_and_errors(torch, fwd):
    x, t = torch.ones(2), torch.ones(2)
    cases = [
        (lambda: fwd.make_dual(x, torch.ones(3)), RuntimeError, "different size"),
        (lambda: fwd.make_dual(x.long(), t), ValueError, "Expected primal to be floating point or complex, but got: torch.int64"),
        (lambda: fwd.make_dual(x, t.double()), RuntimeError, "expected a tangent of dtype"),
        (lambda: fwd.make_dual(fwd.make_dual(x, t), t), RuntimeError, "already has a forward gradient at the same level"),
        (lambda: fwd.make_dual(x, fwd.make_dual(x, t)), RuntimeError, "itself has a forward gradient at the same level"),
        (lambda: fwd.enter_dual_level(), RuntimeError, "Nested forward mode AD"),
        (lambda: x.add_(fwd.make_dual(x, t)), RuntimeError, "cannot be written to a tensor that is no dual tensor"),
        (lambda: fwd.make_dual(x.clone().requires_grad_(), t).sin().sum().backward(), NotImplementedError, "lose their tangents"),
    ]
    with fwd.dual_level():
        for run, kind, text in cases:
            with pytest.raises(kind, match=text):
                run()
        with fwd.set_fwd_grad_enabled(False):
            assert fwd.make_dual(x, t) is x
        dual = fwd.make_dual(x, t)
        with fwd.set_fwd_grad_enabled(False):
            assert fwd.unpack_dual(dual * 2).tangent is None
        with torch.no_grad():
            assert fwd.unpack_dual(dual.sin()).tangent.tolist() == torch.ones(2).cos().tolist()
        assert fwd.unpack_dual(dual.detach()).tangent is None
    for run in (lambda: fwd.make_dual(x, t), fwd.exit_dual_level):
        with pytest.raises(RuntimeError, match="Trying to"):
            run()


def test_after_the_level(torch, fwd):
    x = torch.tensor([1.0, 2.0])
    with fwd.dual_level():
        y = fwd.make_dual(x, torch.ones(2)) * 3
    assert y.tolist() == [3, 6] and (y + 1).tolist() == [4, 7] and type(y + 1) is torch.Tensor
    with fwd.dual_level():
        assert fwd.unpack_dual(y * fwd.make_dual(x, torch.ones(2))).tangent.tolist() == [3, 6]


def test_gradients_and_maps_of_dual_tensors(torch, fwd):
    x, t = torch.tensor([0.5, -1.0, 2.0]), torch.tensor([1.0, 2.0, -1.0])
    with fwd.dual_level():
        dual = fwd.make_dual(x.clone().requires_grad_(), t)
        y = dual.exp()
        value, tangent = fwd.unpack_dual(torch.autograd.grad((y**3).sum(), dual)[0])
        assert torch.allclose(value, 3 * (3 * x).exp()) and torch.allclose(tangent, 9 * (3 * x).exp() * t)
        y = dual.exp()  # with respect to a result on which the tangent depends
        value, tangent = fwd.unpack_dual(torch.autograd.grad(y.sin().sum(), y)[0])
        assert torch.allclose(value, x.exp().cos()) and torch.allclose(tangent, -x.exp().sin() * x.exp() * t)
        value, tangent = fwd.unpack_dual(torch.func.grad(lambda z: (z**3).sum())(dual))
        assert torch.allclose(value, 3 * x**2) and torch.allclose(tangent, 6 * x * t)
        value, tangent = fwd.unpack_dual(torch.vmap(lambda z: z.sin() * z)(dual))
        assert torch.allclose(tangent, (x.sin() + x * x.cos()) * t)


@pytest.mark.parametrize("name", ["__pos__", "clone", "view of a result", "written"])
def test_tangents_of_results_are_not_those_of_the_arguments(torch, fwd, name):
    functions = {
        "view of a result": lambda x: (x + 0).view(2, 1),
        "written": lambda x: torch.zeros_like(x).copy_(x),
    }
    function = functions.get(name, lambda x: getattr(x, name)() + 0)
    x, t = torch.ones(2), torch.tensor([1.0, 2.0])
    with fwd.dual_level():
        dual = fwd.make_dual(x, t)
        assert fwd.unpack_dual(dual).tangent is t  # the user's
        result = function(dual)
        tangent = fwd.unpack_dual(result).tangent.mul_(7)
        assert fwd.unpack_dual(result).tangent.tolist() == tangent.tolist()
    _, tangent = torch.func.jvp(function, (x,), (t,))
    tangent.mul_(7)
    assert t.tolist() == [1.0, 2.0]


def test_a_tangent_of_another_layout_is_copied(torch, fwd):
    t = torch.ones(2, 3).t()
    with fwd.dual_level():
        dual = fwd.make_dual(torch.ones(3, 2), t)
        t.mul_(5)
        assert fwd.unpack_dual(dual).tangent.unique().tolist() == [1.0]
