"""Differentiation from Python: hooks, custom functions, second derivatives, errors."""

from __future__ import annotations

import pytest


def test_backward_accumulates(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    first = x.grad
    (x * x).sum().backward()
    assert x.grad is first and first.tolist() == [4, 8]
    x.grad = None
    assert x.grad is None
    (3 * x).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_unreached_leaf_has_no_gradient(torch):
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    assert y.grad is None and x.is_leaf and (x * 2).grad_fn.name() == "MulBackward0"
    with pytest.raises(RuntimeError, match="One of the differentiated Tensors appears to not have been used"):
        torch.autograd.grad((x * 2).sum(), [x, y])
    assert torch.autograd.grad((x * 2).sum(), [x, y], allow_unused=True)[1] is None


def test_second_derivatives(torch):
    x = torch.tensor(2.0, requires_grad=True)
    (g,) = torch.autograd.grad(x**3, x, create_graph=True)
    (h,) = torch.autograd.grad(g, x)
    assert (g.item(), h.item()) == (12, 12)


def test_no_grad_modes(torch):
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        assert not (x * 2).requires_grad
        with torch.enable_grad():
            assert (x * 2).requires_grad

    @torch.no_grad()
    def inner():
        return x * 2

    assert not inner().requires_grad and (x * 2).requires_grad
    with torch.inference_mode():
        assert not (x * 2).requires_grad
    assert not x.detach().requires_grad


def test_hook_may_change_hooks_of_its_tensor(torch):
    x = torch.ones(3, requires_grad=True)
    y, handles, calls = x * 2, [], []

    def change(g):
        calls.append("change")
        for handle in handles:
            handle.remove()
        y.register_hook(lambda g: calls.append("added"))

    y.register_hook(change)
    handles.append(y.register_hook(lambda g: (calls.append(g.tolist()), g * 10)[1]))
    y.sum().backward()
    # The changes apply to the next backward pass, so this one still calls the removed hook.
    assert calls == ["change", [1.0, 1.0, 1.0]]
    assert x.grad.tolist() == [20.0, 20.0, 20.0]


def test_tensor_hooks_receive_and_replace_gradients(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    seen = []
    handle = y.register_hook(lambda g: seen.append(g.tolist()) or g * 10)
    y.sum().backward(retain_graph=True)
    assert seen == [[1, 1]] and x.grad.tolist() == [20, 20]
    handle.remove()
    x.grad = None
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_retain_grad(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 3
    y.retain_grad()
    (y * y).sum().backward()
    assert y.grad.tolist() == [6, 6]


def test_retained_gradients_share_no_memory(torch):
    a = torch.zeros(4, requires_grad=True) * 1
    b = a + 1
    c = b.view(2, 2)
    for t in (a, b, c):
        t.retain_grad()
    seed = torch.ones(())
    c.square().sum().backward(seed)
    b.grad.zero_()
    assert a.grad.tolist() == [2, 2, 2, 2] and c.grad.tolist() == [[2, 2], [2, 2]]
    c.grad.fill_(7)
    a.grad.fill_(5)
    assert b.grad.tolist() == [0, 0, 0, 0] and a.grad.tolist() == [5, 5, 5, 5]


def test_a_retained_gradient_shares_no_memory_with_the_seed_or_a_leaf(torch):
    x = torch.ones(3, requires_grad=True)
    y = x + 0
    y.retain_grad()
    seen = []
    y.register_hook(lambda g: seen.append(g))
    seed = torch.full((3,), 2.0)
    y.backward(seed)
    y.grad.zero_()
    assert seed.tolist() == x.grad.tolist() == seen[0].tolist() == [2, 2, 2]


def test_retained_gradients_of_a_recorded_pass_can_be_differentiated(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    z = y + 0
    y.retain_grad()
    z.retain_grad()
    z.pow(3).sum().backward(create_graph=True)
    (second,) = torch.autograd.grad(y.grad.sum(), x)
    assert y.grad.tolist() == z.grad.tolist() == [3, 12] and second.tolist() == [6, 12]


# Results whose graph autograd.grad() of a later tensor leaves as it is; of a leaf [1, 2].
INTERMEDIATES = {
    "one operation": lambda torch, x: x.exp(),
    "fused operations": lambda torch, x: (x.exp() * 3 + 1).sigmoid(),
    "a composed operator": lambda torch, x: torch.nn.functional.cosine_similarity(x, x.exp(), dim=0),
    "several results": lambda torch, x: torch.sort(x.exp())[0],
    "a view": lambda torch, x: x.exp()[1:],
    "written in place": lambda torch, x: (x * x).add_(x),
}


@pytest.mark.parametrize("function", INTERMEDIATES.values(), ids=INTERMEDIATES)
def test_grad_of_an_intermediate_keeps_the_graph_before_it(torch, function):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    function(torch, x).pow(2).sum().backward()
    whole, x.grad = x.grad, None
    y = function(torch, x)
    z = y.pow(2).sum()
    (g,) = torch.autograd.grad(z, y)
    torch.testing.assert_close(g, 2 * y.detach())
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        z.backward()
    x.grad = None
    y.backward(g)
    torch.testing.assert_close(x.grad, whole)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward(g)


def test_grad_of_a_functions_result_does_not_run_its_backward(torch):
    runs = []

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            runs.append(g.tolist())
            return g * 2

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = Double.apply(x)
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    (g,) = torch.autograd.grad((y * y).sum(), y)
    assert (g.tolist(), seen, runs) == ([4, 8], [[4, 8]], [])
    y.backward(g)
    assert (x.grad.tolist(), runs) == ([8, 16], [[4, 8]])


def test_custom_function(torch):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(x)
            ctx.scale = scale
            return x * x * x * scale

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3 * x * x * ctx.scale, None

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = Cube.apply(x * 1, 2.0)
    assert y.requires_grad and y.grad_fn.name() == "CubeBackward"
    (y * 2).sum().backward()
    assert x.grad.tolist() == [12, 48]
    d = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda v: Cube.apply(v, 2.0), d)
    assert torch.autograd.gradgradcheck(lambda v: Cube.apply(v, 2.0), d)


def test_exception_in_a_function_reaches_the_caller(torch):
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            raise KeyError("mine")

    x = torch.ones(2, requires_grad=True)
    with pytest.raises(KeyError, match="mine"):
        Bad.apply(x).sum().backward()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_errors_equal_pytorchs(torch):
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.ones(1).backward()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.add_(1)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()
    a = x * 2
    b = a * a
    a.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        b.sum().backward()
        x.grad.tolist()


@pytest.mark.parametrize("name", ["div", "erfinv", "logaddexp", "sinc"])
def test_results_that_backward_does_not_need_may_be_changed_in_place(torch, name):
    """Their gradients need the operands only, as in PyTorch."""
    values = [torch.tensor([0.5, -0.25]), torch.tensor([0.75, 0.125])][: 2 if name in ("div", "logaddexp") else 1]

    def gradients(change):
        leaves = [value.clone().requires_grad_() for value in values]
        result = getattr(torch, name)(*leaves)
        if change:
            result += 1
        result.sum().backward()
        return [leaf.grad.tolist() for leaf in leaves]

    assert gradients(change=True) == gradients(change=False)
    if name == "div":
        assert gradients(change=True) == [[pytest.approx(4 / 3), 8.0], [pytest.approx(-8 / 9), 16.0]]


def test_in_place_on_a_view_updates_the_base(torch):
    x = torch.ones(2, 2, requires_grad=True)
    y = x * 1
    y[0].mul_(5)
    y.sum().backward()
    assert x.grad.tolist() == [[5, 5], [1, 1]]


def test_anomaly_names_the_operation(torch):
    x = torch.zeros(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="nan"):
        with torch.autograd.set_detect_anomaly(True):
            (x.sqrt() * 0).sum().backward()
            x.grad.item()


def test_gradgradcheck_leaves_the_generator_unchanged(torch):
    x = torch.tensor([0.5, 1.5], dtype=torch.float64, requires_grad=True)
    torch.manual_seed(3)
    before = torch.get_rng_state().tolist(), torch.initial_seed()
    assert torch.autograd.gradgradcheck(lambda v: v**3, x)
    assert torch.autograd.gradgradcheck(lambda v: torch.complex(v, v) ** 3, x)
    assert (torch.get_rng_state().tolist(), torch.initial_seed()) == before


def test_a_failed_pass_invalidates_the_gradient_until_it_is_set(torch):
    """A later pass must not add to a gradient that lacks a failed pass's part."""
    table = torch.nn.Embedding(5, 4)
    for row in (1, 12, 2):  # the second root's computation fails
        table(torch.tensor([row])).sum().backward()
    with pytest.raises(IndexError, match="out of range"):
        table.weight.grad.tolist()
    table.zero_grad()
    table(torch.tensor([2])).sum().backward()
    assert table.weight.grad.sum().item() == 4


def test_a_failed_hooked_pass_invalidates_the_gradient(torch):
    w = torch.ones(3, requires_grad=True)
    bad = torch.ones(3)[torch.tensor([7, 0, 0])]
    (w * 2).sum().backward()
    y = w * bad
    y.register_hook(lambda g: g)
    y.sum().backward()
    (w * 2).sum().backward()
    with pytest.raises(IndexError):
        w.grad.tolist()
    w.grad = None
    (w * 2).sum().backward()
    assert w.grad.tolist() == [2, 2, 2]


def test_second_derivative_of_group_norm_of_an_empty_batch(torch):
    x, weight = torch.zeros(0, 4, 5, requires_grad=True), torch.ones(4, requires_grad=True)
    (grad,) = torch.autograd.grad(torch.nn.functional.group_norm(x, 2, weight).sum(), weight, create_graph=True)
    (grad**2).sum().backward()
    assert grad.tolist() == [0] * 4 and list(x.grad.shape) == [0, 4, 5]


@pytest.mark.parametrize("write", [
    lambda base, x: base.copy_(x), lambda base, x: base[0].add_(x[0]), lambda base, x: base.view(12)[:4].mul_(x[0]).add_(x[0]),
    lambda base, x: base.t()[:, 0].copy_(x[0]),
])  # fmt: skip
@pytest.mark.parametrize("use", [lambda v: (v * 2).sum(), lambda v: v.sum(), lambda v: v.exp().sum(), lambda v: v[0].sum()])
def test_views_made_before_their_base_requires_grad(torch, write, use):
    x = torch.rand(3, 4, requires_grad=True)
    base = torch.zeros(3, 4)
    rows, flat, row = base[:2], base.view(12), base[0]
    assert not rows.requires_grad
    write(base, x)
    assert rows.requires_grad and flat.requires_grad and not rows.is_leaf
    for view, same in ((rows, base[:2]), (flat, base.reshape(12)), (row, base[0])):
        want = torch.autograd.grad(use(same), x, retain_graph=True)[0]
        assert torch.equal(torch.autograd.grad(use(view), x, retain_graph=True)[0], want)
    before = torch.autograd.grad(flat[:8].sum(), x, retain_graph=True)[0]
    rows.mul_(2)
    assert torch.equal(torch.autograd.grad(flat[:8].sum(), x)[0], 2 * before)


def test_views_made_without_gradients_stay_constants(torch):
    p = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        view = p[:2]
    assert not view.requires_grad and not (view * 1).requires_grad
    base = torch.zeros(3)
    view = base[:2]
    base.requires_grad_()
    assert not view.requires_grad and not (view * 1).requires_grad
