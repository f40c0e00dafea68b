"""Writes through `.data`, which backward accepts, and gradients that did not arrive at a Function."""

import pytest

import teletensor as tt

WRITES = {
    "index": lambda y: y.data.__setitem__(..., 3.0),
    "add": lambda y: y.data.add_(2.0),
    "view": lambda y: y.data[:1].mul_(3.0),
    "fill": lambda y: y.data.fill_(3.0),
    "zero": lambda y: y.data.zero_(),
    "fill of a view": lambda y: y.data[:1].fill_(3.0),
    "foreach": lambda y: tt._foreach_zero_([y.data]),
    "copy": lambda y: y.data.copy_(tt.tensor([3.0, 3.0])),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_backward_accepts_writes_through_data(write):
    x = tt.ones(2, requires_grad=True)
    y = x * 1
    total = (y * y).sum()
    write(y)
    values = y.tolist()
    total.backward()
    assert x.grad.tolist() == [2 * v for v in values]


@pytest.mark.parametrize("write", [
    lambda y: y.clamp_(0, 1), lambda y: y.clip_(max=1), lambda y: y[1:].clamp_(tt.zeros(2), tt.ones(2)), lambda y: y.clamp_(min=0.0),
])  # fmt: skip
def test_operators_that_overwrite_what_backward_needs(write):
    """Written in place, an operator that is made of others keeps a copy of the argument that it overwrites."""
    x = tt.tensor([-1.0, 0.5, 2.0], requires_grad=True)
    y = x * 1
    write(y)
    y.sum().backward()
    expected = tt.tensor([-1.0, 0.5, 2.0], requires_grad=True)
    gradient = [1.0 if value == start else 0.0 for value, start in zip(y.tolist(), expected.tolist(), strict=True)]
    assert x.grad.tolist() == gradient


def test_other_writes_are_still_noticed():
    x = tt.ones(2, requires_grad=True)
    y = x * 1
    total = (y * y).sum()
    y.data.add_(1)
    with tt.no_grad():
        y.add_(1)
    total.backward()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        x.grad.tolist()


def test_write_to_data_that_an_operation_saved_is_noticed():
    w = tt.ones(2, requires_grad=True)
    y = tt.ones(2).data
    total = (w * y).sum()
    y.add_(1)
    total.backward()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        w.grad.tolist()


class Two(tt.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, first, second):
        Two.arrived = (first is not None, second is not None)
        return first * 2 if second is None else second


@pytest.mark.parametrize("used", [0, 1])
def test_gradients_that_did_not_arrive_are_none(used):
    x = tt.ones(2, requires_grad=True)
    Two.apply(x)[used].sum().backward()
    assert Two.arrived == (used == 0, used == 1)
    assert x.grad.tolist() == ([2.0, 2.0] if used == 0 else [1.0, 1.0])


def test_changing_a_leaf_in_a_function_is_rejected():
    class Doubled(tt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used in an in-place operation"):
        Doubled.apply(tt.ones(2, requires_grad=True))


# Gradients at bounds: PyTorch 2.15's. A number takes all of the gradient at a bound, a tensor half of it.
CLAMPS = [
    ({"min": 0}, [0, 0, 1, 1, 1], {}),
    ({"max": 1}, [1, 1, 1, 0, 0], {}),
    ({"min": 0, "max": 1}, [0, 0, 1, 0, 0], {}),
    ({"min": [0.0]}, [0, 0.5, 1, 1, 1], {"min": [1.5]}),
    ({"max": [1.0]}, [1, 1, 1, 0.5, 0], {"max": [1.5]}),
    ({"min": [0.0], "max": [1.0]}, [0, 0.5, 1, 0.5, 0], {"min": [1.5], "max": [1.5]}),
    ({"min": [1.0], "max": [1.0]}, [0, 0, 0, 1, 0], {"min": [3], "max": [1]}),
    ({"min": [1.0], "max": [0.0]}, [0, 0, 0, 0, 0], {"min": [0], "max": [5]}),
]


@pytest.mark.parametrize(("bounds", "gradient", "of_bounds"), CLAMPS)
def test_gradient_of_clamp_at_its_bounds(bounds, gradient, of_bounds):
    x = tt.tensor([-1.0, 0, 0.5, 1, 2], requires_grad=True)
    tensors = {k: tt.tensor(v, requires_grad=True) if isinstance(v, list) else v for k, v in bounds.items()}
    x.clamp(**tensors).sum().backward()
    assert x.grad.tolist() == gradient
    assert {k: tensors[k].grad.tolist() for k in of_bounds} == of_bounds


def test_writes_through_data_wait_for_room_in_the_frame():
    x = tt.zeros(2)
    for _ in range(3000):  # more calls than the engine lets wait
        x.data.add_(tt.ones(2), alpha=0.5)
    assert x.tolist() == [1500.0, 1500.0]
