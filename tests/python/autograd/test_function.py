"""autograd.Function: dtypes and gradients of outputs, saved tensors, and checks of the gradients that backward returns."""

import weakref

import pytest


def make(torch, forward, backward):
    return type("Made", (torch.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


def test_complex_outputs_have_gradients(torch):
    function = make(torch, lambda ctx, x: torch.complex(x, 2 * x), lambda ctx, g: g.real + 2 * g.imag)
    x = torch.ones(2, requires_grad=True)
    y = function.apply(x)
    assert y.requires_grad and not y.is_leaf
    y.abs().sum().backward()
    assert torch.allclose(x.grad, torch.full((2,), 5**0.5))


@pytest.mark.parametrize("materialize", [True, False])
def test_outputs_without_gradient(torch, materialize):
    received = []

    def forward(ctx, x):
        ctx.set_materialize_grads(materialize)
        constant = x * 3
        ctx.mark_non_differentiable(constant)
        return x * 2, constant, x.to(torch.int64), x * 5

    def backward(ctx, *gradients):
        received.extend(gradients)
        return gradients[0] * 2

    x = torch.ones(2, requires_grad=True)
    outputs = make(torch, forward, backward).apply(x)
    assert [o.requires_grad for o in outputs] == [True, False, False, True]
    outputs[0].sum().backward()
    assert x.grad.tolist() == [2, 2]
    if materialize:
        assert received[3].tolist() == [0, 0] and [g.tolist() for g in received[1:3]] == [[0, 0]] * 2 and received[2].dtype is torch.int64
    else:
        assert received[1] is received[2] is received[3] is None


@pytest.mark.parametrize(
    "returned, message",
    [
        (lambda g: (g, g, g), r"incorrect number of gradients \(expected 2, got 3\)"),
        (lambda g: (g,), r"incorrect number of gradients \(expected 2, got 1\)"),
        (lambda g: (g, g), "a gradient different than None at position 2"),
        (lambda g: (1, None), r"expected Variable or None \(got int\)"),
        (lambda g: (g * 1j, None), "invalid gradient at index 0"),
    ],
)
def test_invalid_gradients(torch, returned, message):
    function = make(torch, lambda ctx, x, scale: x * scale, lambda ctx, g: returned(g))
    with pytest.raises(RuntimeError, match=message):
        function.apply(torch.ones(2, requires_grad=True), 2.0).sum().backward()


def test_trailing_nones_are_accepted(torch):
    x = torch.ones(2, requires_grad=True)
    make(torch, lambda ctx, x: x * 2, lambda ctx, g: (g * 2, None, None)).apply(x).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_saved_tensors_must_not_change(torch):
    def forward(ctx, x):
        ctx.save_for_backward(x, None)
        return x * x

    function = make(torch, forward, lambda ctx, g: 2 * g * ctx.saved_tensors[0])
    x = torch.ones(2, requires_grad=True)
    z = x * 1
    y = function.apply(z)
    z.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation: a saved tensor of size"):
        y.sum().backward()
    with pytest.raises(TypeError, match="argument 0 is of type int"):
        make(torch, lambda ctx, x: ctx.save_for_backward(3), None).apply(x)


def test_a_tensor_changed_before_forward_ends_may_be_saved(torch):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.mark_dirty(x)
        return x.mul_(2)

    x = torch.ones(1, requires_grad=True)
    make(torch, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x * 3).sum().backward()
    assert x.grad.tolist() == [18]


def test_a_once_differentiable_function_is_not_differentiated_twice(torch):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            return 2 * g

    x = torch.ones(1, requires_grad=True)
    (first,) = torch.autograd.grad((Double.apply(x) ** 2).sum(), x, create_graph=True)
    assert first.tolist() == [8]
    with pytest.raises(RuntimeError, match="differentiate twice a function that was marked with @once_differentiable"):
        torch.autograd.grad(first.sum(), x)
    (first,) = torch.autograd.grad(Double.apply(x * x).sum(), x, create_graph=True)
    assert torch.autograd.grad(first.sum(), x)[0].tolist() == [4]
    (Double.apply(x) ** 2).sum().backward()
    assert x.grad.tolist() == [8]


def test_outputs_that_forward_has_recorded_get_their_gradients_from_backward_alone(torch):
    received = []

    def forward(ctx, x, y):
        with torch.enable_grad():
            recorded, leaf = y * 5, x.detach().requires_grad_()
            of_leaf = leaf * leaf
            constant = of_leaf.exp()
        ctx.mark_non_differentiable(constant)
        return (x * 2).detach().requires_grad_(), y * 3, recorded, leaf, of_leaf, constant

    def backward(ctx, *gradients):
        received.extend(g.tolist() for g in gradients)
        return sum(gradients[:5]), gradients[1]

    x, y = (torch.tensor(v, requires_grad=True) for v in ([1.0, 2.0], [3.0, 4.0]))
    outputs = make(torch, forward, backward).apply(x, y)
    assert [(o.requires_grad, o.is_leaf) for o in outputs] == [(True, False)] * 5 + [(False, True)]
    sum((i * o).sum() for i, o in enumerate(outputs, 1)).backward()
    assert received == [[1, 1], [2, 2], [3, 3], [4, 4], [5, 5], [0, 0]]
    assert x.grad.tolist() == [15, 15] and y.grad.tolist() == [2, 2]


@pytest.mark.parametrize("enabled", [True, False])
def test_outputs_that_forward_has_recorded_require_no_gradient_if_nothing_is_recorded(torch, enabled):
    weight = torch.ones(2, requires_grad=True)

    def forward(ctx, x):
        with torch.enable_grad():
            return weight * x

    x = torch.ones(2, requires_grad=not enabled)
    with torch.set_grad_enabled(enabled):
        output = make(torch, forward, lambda ctx, g: g).apply(x)
    assert not output.requires_grad and output.grad_fn is None


def test_a_saved_output_that_forward_has_recorded_is_differentiated_through_the_function(torch):
    def forward(ctx, x):
        with torch.enable_grad():
            output = x.detach().requires_grad_().exp()
        ctx.save_for_backward(output)
        return output

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    function = make(torch, forward, lambda ctx, g: g * ctx.saved_tensors[0])
    (first,) = torch.autograd.grad(function.apply(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert torch.allclose(second, x.exp())


class Owner:
    pass


@pytest.mark.parametrize("use", ["nothing", "backward", "create_graph"])
def test_saved_results_do_not_own_the_graph(torch, use):
    """Nor does the graph own arguments that are not saved. Python's collector cannot see cycles through the graph."""

    def forward(ctx, x, owner):
        y = x.exp()
        ctx.save_for_backward(y)
        ctx.owner = owner
        return y

    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        assert y.requires_grad and not y.is_leaf
        return g * y, None

    function = make(torch, forward, backward)
    leaf = torch.zeros(3, requires_grad=True)
    x, owner = leaf * 2, Owner()
    argument, mark = weakref.ref(x), weakref.ref(owner)
    y = function.apply(x, owner)
    total = y.sum()
    del x, owner, y
    assert argument() is None
    if use != "nothing":
        (first,) = torch.autograd.grad(total, [leaf], create_graph=use == "create_graph")
        torch.testing.assert_close(first.detach(), torch.full((3,), 2.0))
        if use == "create_graph":
            torch.testing.assert_close(torch.autograd.grad(first.sum(), [leaf])[0], torch.full((3,), 4.0))
        del first
    assert mark() is not None
    del total
    assert mark() is None


def test_saved_results_and_writes(torch):
    """A result that was changed in place since, one that backward receives again, and one of two results."""

    def forward(ctx, x):
        y, z = x.exp(), x.sin()
        ctx.save_for_backward(z, x, y)
        return y, z

    def backward(ctx, g, h):
        z, x, y = ctx.saved_tensors
        return g * y + h * x.cos() + 0 * z

    function = make(torch, forward, backward)
    x = torch.linspace(0, 1, 3).requires_grad_()
    y, z = function.apply(x)
    (first,) = torch.autograd.grad((y * z).sum(), [x], create_graph=True)
    torch.testing.assert_close(first, x.exp() * (x.sin() + x.cos()))
    torch.testing.assert_close(torch.autograd.grad(first.sum(), [x])[0], 2 * x.exp() * x.cos())
    y, z = function.apply(x)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_results_of_inputs_that_are_changed(torch):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.exp_()
        ctx.save_for_backward(x)
        return x

    def backward(ctx, g):
        return g * ctx.saved_tensors[0]

    function = make(torch, forward, backward)
    x = torch.zeros(3, requires_grad=True)
    y = function.apply(x * 2)
    (first,) = torch.autograd.grad(y.sum(), [x], create_graph=True)
    del y
    torch.testing.assert_close(torch.autograd.grad(first.sum(), [x])[0], torch.full((3,), 4.0))


@pytest.mark.parametrize("change", ["nothing", "delete", "detach_", "set_", "no_grad", "detach"])
def test_history_of_saved_results(torch, change):
    """Whatever becomes of the result, backward receives what forward has saved."""

    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    def backward(ctx, g):
        with torch.set_grad_enabled(torch.is_grad_enabled() and change != "no_grad"):
            (y,) = ctx.saved_tensors
        return g * y

    x = torch.zeros(3, requires_grad=True)
    y = make(torch, forward, backward).apply(x * 2)
    total = (y * 1).sum()
    if change == "delete":
        del y
    elif change == "detach_":
        y.detach_()
    elif change == "set_":
        with torch.no_grad():
            y.set_(torch.ones(3))
    elif change == "detach":
        y.detach().mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            total.backward()
        return
    (first,) = torch.autograd.grad(total, [x], create_graph=True)
    torch.testing.assert_close(first, torch.full((3,), 2.0))
    torch.testing.assert_close(torch.autograd.grad(first.sum(), [x])[0], torch.full((3,), 4.0))


def test_detached_tensors_share_the_version(torch):
    x = torch.zeros(3)
    d, data = x.detach(), x.data
    d.add_(1)
    x.add_(1)
    d[0] = 5
    assert x._version == d._version == d.detach()._version == 3
    version = x._version
    data.mul_(2)
    assert x._version == version


def test_vjp_is_another_name_of_backward(torch):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def vjp(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    class Both(Square):
        @staticmethod
        def backward(ctx, g):
            return g

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    assert torch.autograd.grad(Square.apply(x).sum(), x)[0].tolist() == [2, 4]
    with pytest.raises(RuntimeError, match="Implementing both 'backward' and 'vjp'"):
        torch.autograd.grad(Both.apply(x).sum(), x)


def test_sparse_gradients(torch):
    class Rows(torch.autograd.Function):
        @staticmethod
        def forward(ctx, weight):
            return weight.sum(1)

        @staticmethod
        def backward(ctx, g):
            return torch.sparse_coo_tensor(torch.tensor([[0, 2]]), torch.ones(2, 2), (3, 2))

    weight = torch.ones(3, 2, requires_grad=True)
    Rows.apply(weight).sum().backward()
    assert weight.grad.is_sparse and weight.grad.to_dense().tolist() == [[1, 1], [0, 0], [1, 1]]
    assert torch.autograd.grad(Rows.apply(weight).sum(), weight)[0].is_sparse
    weight.grad = None
    (Rows.apply(weight).sum() + (weight * 3).sum()).backward()
    assert not weight.grad.is_sparse and weight.grad.tolist() == [[4, 4], [3, 3], [4, 4]]
    weight.grad = None
    Rows.apply(weight * 2).sum().backward()  # PyTorch's is sparse
    assert weight.grad.tolist() == [[2, 2], [0, 0], [2, 2]]
