"""torch.func: derivatives of functions, vmap, stateless modules."""

from __future__ import annotations

import pytest

import teletensor.nn.functional as F


@pytest.fixture
def func(torch):
    return torch.func


def close(torch, a, b) -> bool:
    return torch.allclose(a, b, rtol=1e-5, atol=1e-6)


def test_grad_of_grad(torch, func):
    x = torch.tensor(0.7, dtype=torch.float64)
    third = func.grad(func.grad(func.grad(torch.sin)))(x)
    assert third.item() == pytest.approx(-torch.cos(x).item()) and not third.requires_grad


def test_grad_uses_argnums(torch, func):
    x, w = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])

    def f(x, w, scale=1.0):
        return (x * w).sum() * scale, "aux"

    by_w, aux = func.grad(f, argnums=1, has_aux=True)(x, w, scale=2.0)
    assert by_w.tolist() == [2, 4] and aux == "aux"
    (by_x, by_w), value = func.grad_and_value(lambda *a: f(*a)[0], argnums=(0, 1))(x, w)
    assert by_x.tolist() == [3, 4] and by_w.tolist() == [1, 2] and value.item() == 11
    assert x.grad is None and not x.requires_grad


def test_grad_through_dictionaries(torch, func):
    params = {"w": torch.ones(3), "b": [torch.zeros(()), torch.ones(2)]}
    found = func.grad(lambda p: (p["w"] * 2).sum() + p["b"][0] * 5)(params)
    assert found["w"].tolist() == [2, 2, 2] and found["b"][0].item() == 5 and found["b"][1].tolist() == [0, 0]


def test_results_are_differentiable_outside(torch, func):
    x = torch.tensor(2.0, requires_grad=True)
    func.grad(lambda v: v**3)(x).backward()
    assert x.grad.item() == 12


INFERRED = {
    "grad": lambda f, x: f.grad(lambda v: (v * v).sum())(x),
    "vjp": lambda f, x: f.vjp(lambda v: v * v, x)[1](x)[0],
    "jacrev": lambda f, x: f.jacrev(lambda v: v * v)(x),
    "jacfwd of layer_norm": lambda f, x: f.jacfwd(lambda v: F.layer_norm(v, (3,)))(x),
    "hessian": lambda f, x: f.hessian(lambda v: (v**3).sum())(x),
    "vmap of grad": lambda f, x: f.vmap(f.grad(lambda v: v**2))(x),
    "jvp of clamp": lambda f, x: f.jvp(lambda v: v.clamp(0, 1.5), (x,), (x,))[1],
    "jvp of prod": lambda f, x: f.jvp(lambda v: v.prod(), (x,), (x,))[1],
    "jvp of cumprod": lambda f, x: f.jvp(lambda v: v.cumprod(0), (x,), (x,))[1],
    "linearize": lambda f, x: f.linearize(lambda v: v * v, x)[1](x),
}


@pytest.mark.parametrize("name", INFERRED)
def test_transforms_in_inference_mode(torch, func, name):
    x = torch.tensor([1.0, 2.0, 3.0])
    wanted = INFERRED[name](func, x)
    with torch.inference_mode():
        found = INFERRED[name](func, x)
    assert torch.equal(found, wanted) and found.abs().sum() > 0 and not found.requires_grad


@pytest.mark.parametrize("inferred", [False, True])
def test_which_results_are_inference_tensors(torch, func, inferred):
    """As in PyTorch, whose derivatives leave inference_mode."""
    with torch.inference_mode(inferred):
        x = torch.ones(3)
    with torch.inference_mode():
        f = lambda x: x.sin() * x  # noqa: E731
        gradient = func.grad(lambda x: f(x).sum())(x)
        hessian = func.hessian(lambda x: f(x).sum())(x)
        ordinary = [func.jacrev(f)(x), func.jacfwd(f)(x), *func.jvp(f, (x,), (x,)), hessian, func.vjp(f, x)[0], gradient]
        assert [(t.is_inference(), t.requires_grad) for t in ordinary] == [(False, False)] * 7
        others = [func.vmap(f)(x), torch.autograd.functional.jvp(f, x, x)[1]]
        assert [(t.is_inference(), t.requires_grad) for t in others] == [(True, False)] * 2


def test_jvp_is_the_jacobian_times_the_tangent(torch, func):
    torch.manual_seed(0)
    w, x, v = torch.randn(3, 4), torch.randn(4), torch.randn(4)
    f = lambda x: torch.tanh(w @ x) * x[0]  # noqa: E731
    value, product = func.jvp(f, (x,), (v,))
    assert close(torch, value, f(x)) and close(torch, product, func.jacrev(f)(x) @ v)
    assert close(torch, func.jacrev(f)(x), func.jacfwd(f)(x))
    assert not product.requires_grad


def test_jvp_of_independent_output_is_zero(torch, func):
    value, product = func.jvp(lambda x: torch.ones(2), (torch.ones(3),), (torch.ones(3),))
    assert value.tolist() == [1, 1] and product.tolist() == [0, 0]


def test_vjp_can_be_called_repeatedly(torch, func):
    value, product = func.vjp(lambda x, y: (x * y, x.sum()), torch.tensor([1.0, 2.0]), torch.tensor([5.0, 7.0]))
    assert value[0].tolist() == [5, 14]
    for scale in (1.0, 2.0):
        by_x, by_y = product((torch.ones(2) * scale, torch.tensor(0.0)))
        assert by_x.tolist() == [5 * scale, 7 * scale] and by_y.tolist() == [scale, 2 * scale]


def test_hessian(torch, func):
    x = torch.tensor([1.0, 2.0, 3.0])
    assert func.hessian(lambda x: (x**3).sum())(x).tolist() == [[6, 0, 0], [0, 12, 0], [0, 0, 18]]
    assert torch.autograd.functional.hvp(lambda x: (x**3).sum(), x, torch.ones(3))[1].tolist() == [6, 12, 18]
    assert torch.autograd.functional.jvp(lambda x: x**2, x, torch.ones(3))[1].tolist() == [2, 4, 6]


def test_linearize(torch, func):
    value, product = func.linearize(torch.sin, torch.tensor(0.0))
    assert value.item() == 0 and product(torch.tensor(3.0)).item() == 3


def test_misuse_is_an_error(torch, func):
    with pytest.raises(RuntimeError, match=r"\[grad\] expected the function to return one number.*\(3,\)"):
        func.grad(lambda x: x)(torch.ones(3))
    with pytest.raises(RuntimeError, match="expected floating-point or complex inputs"):
        func.grad(lambda x: x)(torch.tensor(3))
    with pytest.raises(RuntimeError, match="argnums=2"):
        func.grad(lambda x: x, argnums=2)(torch.tensor(3.0))
    with pytest.raises(RuntimeError, match="different size"):
        func.jvp(torch.sin, (torch.ones(2),), (torch.ones(3),))


def test_per_sample_gradients(torch, func):
    """vmap's main use, per-sample gradients, compared with a loop over backward()."""
    torch.manual_seed(1)
    model = torch.nn.Linear(3, 2)
    params = {name: p.detach() for name, p in model.named_parameters()}
    x, y = torch.randn(5, 3), torch.randint(0, 2, (5,))

    def loss(params, x, y):
        return torch.nn.functional.cross_entropy(func.functional_call(model, params, (x,)).unsqueeze(0), y.unsqueeze(0))

    found = func.vmap(func.grad(loss), in_dims=(None, 0, 0))(params, x, y)
    assert found["weight"].shape == (5, 2, 3)
    for i in range(5):
        model.zero_grad()
        torch.nn.functional.cross_entropy(model(x[i : i + 1]), y[i : i + 1]).backward()
        assert close(torch, found["weight"][i], model.weight.grad) and close(torch, found["bias"][i], model.bias.grad)


def test_vmap_uses_out_dims(torch):
    x, y = torch.arange(6.0).reshape(2, 3), torch.arange(3.0)
    assert torch.vmap(torch.dot, in_dims=(0, None))(x, y).tolist() == (x @ y).tolist()
    swapped = torch.vmap(lambda column: column * 2, in_dims=1, out_dims=1)(x)
    assert swapped.tolist() == (x * 2).tolist()
    assert torch.vmap(torch.vmap(torch.mul, in_dims=(0, None)), in_dims=(None, 0))(y, y).tolist() == (y[:, None] * y).tolist()
    first, shape = torch.vmap(lambda row: (row.sum(), row), out_dims=(0, 1))(x)
    assert first.tolist() == [3, 12] and shape.shape == (3, 2)


def test_vmap_rejects_invalid_arguments(torch):
    with pytest.raises(ValueError, match="same size in the mapped dimension"):
        torch.vmap(torch.add)(torch.ones(2), torch.ones(3))
    with pytest.raises(ValueError, match="0 dimensions"):
        torch.vmap(torch.sin)(torch.tensor(1.0))
    with pytest.raises(ValueError, match="at least one input"):
        torch.vmap(torch.sin, in_dims=None)(torch.ones(2))
    with pytest.raises(RuntimeError, match="'error', 'different', or 'same'"):
        torch.vmap(torch.sin, randomness="equal")


def test_functional_call_does_not_change_the_module(torch, func):
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    before = model.state_dict()["0.weight"].clone()
    out = func.functional_call(model, {"0.weight": torch.zeros(2, 2), "0.bias": torch.ones(2)}, torch.ones(3, 2))
    assert out.abs().max().item() < 1e-3
    assert close(torch, model[0].weight, before) and isinstance(model[0].weight, torch.nn.Parameter)
    for given, message in (({"0.weight": torch.zeros(2, 2)}, "Missing"), ({"nothing": torch.ones(1)}, "Unexpected key.*'nothing'")):
        with pytest.raises(RuntimeError, match=message):
            func.functional_call(model, given, torch.ones(3, 2), strict=True)


def test_functional_call_sets_other_attributes_and_returns_what_was_set(torch, func):
    class Counts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x):
            self.count = self.count + 1
            return x + self.scale

    model, given = Counts(), {"count": torch.ones(()), "scale": torch.ones(())}
    assert func.functional_call(model, given, torch.ones(())) == 2
    assert given["count"] == 2 and model.count == 0 and not hasattr(model, "scale")


def test_strict_functional_call_with_one_name_of_tied_weights(torch, func):
    model = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False), torch.nn.Linear(2, 2, bias=False))
    model[1].weight = model[0].weight
    given = {"1.weight": torch.eye(2)}
    assert func.functional_call(model, given, torch.ones(1, 2), strict=True).tolist() == [[1, 1]]
    with pytest.raises(RuntimeError, match="Missing key.*'0.weight'"):
        func.functional_call(model, given, torch.ones(1, 2), tie_weights=False, strict=True)


def test_functional_call_replaces_tied_weights_together(torch, func):
    model = torch.nn.Module()
    model.a = torch.nn.Linear(2, 2, bias=False)
    model.b = torch.nn.Linear(2, 2, bias=False)
    model.b.weight = model.a.weight
    model.forward = lambda x: model.b(model.a(x))
    assert func.functional_call(model, {"a.weight": torch.eye(2) * 3}, torch.ones(1, 2)).tolist() == [[9, 9]]


def test_an_ensemble(torch, func):
    torch.manual_seed(2)
    models = [torch.nn.Linear(3, 1) for _ in range(4)]
    params, buffers = func.stack_module_state(models)
    x = torch.randn(5, 3)
    out = torch.vmap(lambda p, b: func.functional_call(models[0], (p, b), (x,)))(params, buffers)
    assert close(torch, out, torch.stack([m(x) for m in models]))


def test_vmap_does_not_map_keyword_arguments(torch):
    x = torch.arange(6.0).reshape(2, 3)
    added = torch.vmap(lambda row, other=None: row + other)(x, other=torch.ones(2, 3))
    assert added.tolist() == (x.unsqueeze(1) + torch.ones(2, 3)).tolist()
    assert torch.vmap(lambda row, k: row * k["a"])(x, k={"a": torch.ones(())}).tolist() == x.tolist()
    with pytest.raises(ValueError, match="at least one input"):
        torch.vmap(lambda row: row)(row=x)


def test_vmap_of_an_output_that_is_not_mapped(torch):
    x, shared = torch.arange(6.0).reshape(2, 3), torch.ones(2)
    rows, same, number = torch.vmap(lambda row: (row, shared, 3), out_dims=(0, None, None))(x)
    assert rows.tolist() == x.tolist() and same is shared and number == 3
    with pytest.raises(ValueError, match="differs between the entries"):
        torch.vmap(lambda row: row, out_dims=None)(x)
    with pytest.raises(ValueError, match=r"greater than 0. \(got 0\)"):
        torch.vmap(torch.sin, chunk_size=0)


def test_transforms_are_known_to_libraries(torch):
    """kornia, for example, does not read values or write in place while a transform runs."""
    running, found = torch._C._are_functorch_transforms_active, []

    def noted(x):
        found.append(running())
        return (x * 2).sum()

    x = torch.ones(3)
    torch.func.grad(noted)(x), torch.func.vjp(noted, x), torch.func.jvp(noted, (x,), (x,)), torch.vmap(noted)(torch.ones(1, 3))
    assert len(found) >= 4 and all(found) and not running()
    with pytest.raises(ZeroDivisionError):
        torch.vmap(lambda x: 1 / 0)(x)
    noted(x)
    assert not found[-1]


@pytest.mark.parametrize("name", ["grad", "grad_and_value", "vjp", "jacrev", "jvp"])
@pytest.mark.parametrize("target", ["captured", "view"])
def test_inputs_are_not_written_to_captured_tensors(torch, func, name, target):
    captured = torch.zeros(2)

    def f(x):
        written = captured if target == "captured" else captured[:]
        written.copy_(x)
        return (x * captured).sum()

    x = torch.tensor([1.0, 2.0])
    calls = {"vjp": lambda: func.vjp(f, x), "jvp": lambda: func.jvp(f, (x,), (x,))}
    with pytest.raises(RuntimeError, match="would mutate a captured Tensor|cannot be written to a tensor that is no dual"):
        calls.get(name, lambda: getattr(func, name)(f)(x))()
    assert not captured.requires_grad and captured.tolist() == [0, 0]


def test_arguments_and_own_tensors_are_written(torch, func):
    x, given = torch.tensor([1.0, 2.0]), torch.zeros(2)

    def f(x, c):
        c.copy_(x)
        return (x * c).sum()

    assert func.grad(f)(x, given).tolist() == [2, 4] and func.grad(f)(x, c=given).tolist() == [2, 4]
    assert func.jacrev(f)(x, given).tolist() == [2, 4] and given.tolist() == [1, 2] and not given.requires_grad

    def own(x):
        c = torch.zeros(2)
        c.copy_(x)
        c[0] = x[1]
        return (x * c).sum()

    assert func.grad(own)(x).tolist() == [2, 5]
    constant = torch.zeros(2)
    assert func.grad(lambda x: (x * constant.add_(1)).sum())(x).tolist() == [1, 1] and constant.tolist() == [1, 1]


def test_jvp_writes_to_clones_of_captured_tensors(torch, func):
    captured, x = torch.tensor([3.0, 4.0]), torch.tensor([1.0, 2.0])

    def f(x, make):
        made = make(captured)
        made[0] = x[1]
        return x * made

    for make, second in ((torch.clone, 4), (lambda c: (c + 0).clone(), 4), (lambda c: torch.zeros_like(c).clone(), 0)):
        value, tangent = func.jvp(lambda x, make=make: f(x, make), (x,), (torch.ones(2),))
        assert value.tolist() == [2, 2 * second] and tangent.tolist() == [3, second]
    assert func.jacfwd(lambda x: f(x, torch.clone))(x).tolist() == [[2, 1], [0, 4]]
    assert captured.tolist() == [3, 4]


def test_the_product_of_vjp_may_free_the_graph(torch, func):
    _, product = func.vjp(lambda x: (x * x).exp(), torch.tensor([0.0, 1.0]))
    first = product(torch.ones(2), retain_graph=True)[0]
    assert product(torch.ones(2), retain_graph=False, create_graph=False)[0].tolist() == first.tolist()
    with pytest.raises(RuntimeError, match="second time"):
        product(torch.ones(2), retain_graph=False)


def test_stacked_modules(torch, func):
    models = [torch.nn.Linear(2, 2) for _ in range(2)]
    for model in models:
        model.weight.requires_grad_(False)
    params, _ = func.stack_module_state(models)
    assert {name: (p.requires_grad, p.is_leaf) for name, p in params.items()} == {"weight": (False, True), "bias": (True, True)}
    models[0].weight.requires_grad_(True)
    with pytest.raises(RuntimeError, match="Expected weight from each model to have the same .requires_grad"):
        func.stack_module_state(models)
    with pytest.raises(RuntimeError, match="same training/eval mode"):
        func.stack_module_state([torch.nn.ReLU(), torch.nn.ReLU().eval()])


def test_jacobians_of_arguments_to_which_a_function_writes(torch):
    """The result is the argument itself; afterwards, the caller's tensor has the value and no history."""

    def copied(x, y):
        y.copy_(x)
        return y

    def partly(x, y):
        y[:1] = x[:1] * 3
        return y, y.sum()

    x, y = torch.tensor([1.0, 2.0]), torch.zeros(2)
    assert torch.func.jacrev(copied)(x, y).tolist() == [[1, 0], [0, 1]]
    assert y.tolist() == [1, 2] and not y.requires_grad
    first, second = torch.func.jacrev(partly)(x, torch.zeros(2))
    assert first.tolist() == [[3, 0], [0, 0]] and second.tolist() == [3, 0]
    assert torch.func.jacrev(lambda x, y: copied(y, x), argnums=1)(x, y).tolist() == [[1, 0], [0, 1]]
    assert torch.func.grad(copied)(torch.tensor(2.0), torch.tensor(1.0)).item() == 1


def test_cotangents_have_the_structure_of_the_results(torch):
    x = torch.tensor(1.0)
    _, product = torch.func.vjp(lambda x: (x, [x, x]), x)
    assert product((x, [x, x]))[0].item() == 3
    for wrong in ((x, (x, x)), [x, [x, x]], ((x, [x, x]),), x):
        with pytest.raises(RuntimeError, match="Expected pytree structure of cotangents"):
            product(wrong)
