"""Passes, hooks, views and in-place changes that decide which gradients reach a tensor."""

import pytest


def test_inputs_that_no_root_reaches(torch):
    x, z = (torch.ones(2, requires_grad=True) for _ in "xz")
    calls = []
    x.register_post_accumulate_grad_hook(lambda t: calls.append(t))
    (x**3).sum().backward(inputs=[z])
    assert x.grad is None and z.grad is None and not calls
    with pytest.raises(RuntimeError, match="scalar outputs"):
        (x * 2).backward(inputs=[z])
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2] and len(calls) == 1


def test_hooks_after_accumulation_need_an_accumulation(torch):
    p, q = (torch.ones(2, requires_grad=True) for _ in "pq")
    calls = []
    p.register_post_accumulate_grad_hook(lambda t: calls.append(t.grad.tolist()))
    torch.autograd.grad((p * p).sum(), p)
    (p * q).sum().backward(inputs=[q])
    assert not calls
    (p * q).sum().backward(inputs=[p])
    (p * q).sum().backward()
    assert calls == [[1, 1], [2, 2]]


def test_client_code_that_leads_to_no_input_is_not_run(torch):
    """Of hooks, functions, checkpoints and stored tensors of backward(inputs=); without inputs, all run."""
    calls = []

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            calls.append("function")
            return grad * 2

    def computed(x, y):
        a = Twice.apply(x)
        a.register_hook(lambda g: calls.append("a"))
        b = torch.utils.checkpoint.checkpoint(lambda t: (calls.append("checkpoint"), t.sin())[1], a, use_reentrant=False)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: (calls.append("unpack"), t)[1]):
            c = b.exp()
        c.grad_fn.register_prehook(lambda grads: calls.append("prehook"))
        c.grad_fn.register_hook(lambda *grads: calls.append("node"))
        d = y * 3
        d.register_hook(lambda g: calls.append("d"))
        calls.clear()
        return a, c, d, c * d

    x, y = (torch.tensor(0.5, requires_grad=True) for _ in "xy")
    for tensor, name in ((x, "x"), (y, "y")):
        tensor.register_hook(lambda g, name=name: calls.append(name))
    *_, result = computed(x, y)
    result.backward(inputs=[y])
    assert calls == ["d", "y"] and x.grad is None and y.grad is not None
    a, c, d, result = computed(x, y)
    result.backward(inputs=[a])
    assert calls == ["prehook", "unpack", "node", "checkpoint", "a", "function"] and x.grad is None
    expected = d * c * a.cos()
    assert a.grad.item() == pytest.approx(expected.item()) and d.grad is None
    *_, result = computed(x, y)
    result.backward(inputs=[result])
    assert calls == [] and x.grad is None and result.grad.item() == 1
    *_, result = computed(x, y)
    result.backward()
    assert sorted(calls) == sorted(["d", "y", "prehook", "unpack", "node", "checkpoint", "a", "function", "x"])
    assert x.grad.item() == pytest.approx(2 * expected.item())


@pytest.mark.parametrize("name", ["scatter", "scatter_add"])
@pytest.mark.parametrize("sizes", [((), (), (1,)), ((1,), (), (1,)), ((), (), (3,)), ((), (1,), ()), ((1,), (), ()), ((), (), ())])
def test_scatter_of_zero_dim_tensors(torch, name, sizes):
    of_input, of_index, of_src = sizes
    a, b = torch.ones(of_input, requires_grad=True), torch.ones(of_src, requires_grad=True)
    getattr(a, name)(0, torch.zeros(of_index, dtype=torch.int64), b).sum().backward()
    assert a.grad.sum() == (name == "scatter_add") and a.grad.shape == of_input
    assert b.grad.shape == of_src and b.grad.reshape(-1).tolist() == [1.0] + [0.0] * (b.numel() - 1)


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("sizes", [((), (1,), ()), ((1,), (), ()), ((), (), (3,)), ((1,), (1,), ()), ((2,), (), (1,)), ((), (1,), (2,))])
@pytest.mark.parametrize("include_self", [True, False])
def test_scatter_reduce_of_zero_dim_tensors(torch, reduce, sizes, include_self):
    of_input, of_index, of_src = sizes
    a, b = torch.full(of_input, 2.0, requires_grad=True), torch.full(of_src, 3.0, requires_grad=True)
    index = torch.zeros(of_index, dtype=torch.int64)
    a.scatter_reduce(0, index, b, reduce, include_self=include_self).sum().backward()
    assert a.grad.shape == of_input and b.grad.shape == of_src
    expected = {"sum": 1.0, "prod": 2.0, "mean": 0.5, "amax": 1.0, "amin": 0.0}[reduce] if include_self else 1.0
    assert b.grad.reshape(-1).tolist() == [expected] + [0.0] * (b.numel() - 1)


def test_functions_that_return_their_input_without_recording(torch):
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, both):
            return (x, x * 2) if both else x

        @staticmethod
        def backward(ctx, *gradients):
            return gradients[0], None

    x, w = (torch.ones(2, requires_grad=True) for _ in "xw")
    for both in (False, True):
        with torch.no_grad():
            y = Same.apply(x, both)
        y = y[0] if both else y
        assert y is not x and not y.requires_grad
        (y * w).sum().backward()
        assert x.grad is None
    plain = torch.ones(2)
    same = Same.apply(plain, False)
    assert same is not plain
    same.add_(1)
    assert plain.tolist() == [2, 2]


def test_gradients_of_tensors_whose_sizes_change_in_place(torch):
    plain = torch.ones(1, 3)
    plain.grad = torch.arange(3.0).reshape(1, 3)
    plain.squeeze_(0)
    assert plain.grad.tolist() == [0, 1, 2]
    x = torch.ones(1, 3, requires_grad=True)
    (x * x).sum().backward()
    with torch.no_grad():
        x.t_()
    assert x.grad.shape == (3, 1)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [[4], [4], [4]]
    a = x * 2
    a.retain_grad()
    a.unsqueeze_(0)
    a.sum().backward()
    assert a.grad.tolist() == [[[1], [1], [1]]]
    for t in (x, a):
        before = t.grad
        t.detach_()
        assert torch.equal(t.grad, before) and not t.requires_grad


def test_leaves_in_use_keep_their_sizes(torch):
    x = torch.ones(1, 3, requires_grad=True)
    loss = (x * 2).sum()
    with torch.no_grad(), pytest.raises(NotImplementedError, match="earlier result"):
        x.unsqueeze_(0)
    loss.backward()
    assert x.grad.tolist() == [[2, 2, 2]]
    hooked = torch.ones(3, requires_grad=True)
    hooked.register_hook(lambda g: g * 10)
    with torch.no_grad(), pytest.raises(NotImplementedError, match="hooks"):
        hooked.unsqueeze_(0)


def test_writes_to_views_made_without_recording(torch):
    x = torch.ones(2, 2, requires_grad=True)
    a = x * 1
    with torch.no_grad():
        row = a[0]
        row.mul_(2)
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        row.mul_(2)
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        torch.add(torch.ones(2), 1, out=row)
    (a * 2).sum().backward()
    assert x.grad.tolist() == [[2, 2], [2, 2]]


def test_as_strided_of_overlapping_tensors(torch):
    v = torch.tensor([1.0, 2, 3], requires_grad=True)
    v.expand(2, 3).as_strided((2,), (1,)).sum().backward()
    assert v.grad.tolist() == [1, 1, 0]
    a = torch.arange(4.0, requires_grad=True)
    a.unfold(0, 2, 1).as_strided((2, 2), (1, 1)).sum().backward()
    assert a.grad.tolist() == [1, 2, 1, 0]


def test_dirty_views_are_refused(torch):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, gradient):
            return 2 * gradient

    v = torch.ones(3, requires_grad=True)
    a = v * 1
    with pytest.raises(NotImplementedError, match="its base would not depend on the function"):
        Double.apply(a[0:1])
    Double.apply(a).sum().backward()
    assert v.grad.tolist() == [2, 2, 2]
