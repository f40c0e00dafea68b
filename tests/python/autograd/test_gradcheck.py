"""gradcheck and gradgradcheck: modes, repeated and batched passes, and functions whose gradients are wrong."""

import pytest

import teletensor as torch
from teletensor.autograd import Function, gradcheck, gradgradcheck

EVERYTHING = {"check_forward_ad": True, "check_batched_grad": True, "check_batched_forward_grad": True, "check_grad_dtypes": True}
ONLY_FORWARD = {"check_forward_ad": True, "check_backward_ad": False}


def leaf(*sizes, dtype=torch.float64):
    return torch.randn(sizes, dtype=dtype, requires_grad=True)


@pytest.mark.parametrize(
    ("function", "sizes"),
    [
        (torch.mm, [(3, 4), (4, 2)]), (lambda a, b: (a.sin(), (a @ b).sum(0)), [(3, 4), (4, 2)]),
        (lambda a, n: a.roll(n), [(3,), 1]),
    ],
)  # fmt: skip
def test_right_gradients_pass_every_check(function, sizes):
    inputs = [leaf(*size) if isinstance(size, tuple) else size for size in sizes]
    assert gradcheck(function, inputs, **EVERYTHING)
    assert gradcheck(function, inputs, **ONLY_FORWARD)


def test_right_gradients_of_complex_numbers_pass_every_check():
    assert gradcheck(lambda z: (z * z.conj() * 2, torch.view_as_real(z.exp())), leaf(3, dtype=torch.complex128), **EVERYTHING)


def test_second_derivatives_by_both_modes():
    assert gradgradcheck(lambda a: a.sin() * a, (leaf(3),), check_fwd_over_rev=True, check_batched_grad=True)
    assert gradgradcheck(torch.mm, (leaf(2, 3), leaf(3, 2)), check_fwd_over_rev=True, check_rev_over_rev=False, check_undefined_grad=False)


class Wrong(Function):
    """The square, with wrong derivatives in both modes."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 3 * g * ctx.saved_tensors[0]

    @staticmethod
    def jvp(ctx, t):
        return 5 * t


def test_wrong_gradients_fail():
    with pytest.raises(RuntimeError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradcheck(Wrong.apply, (leaf(3),))
    with pytest.raises(RuntimeError, match="Jacobian computed with forward mode mismatch for output 0"):
        gradcheck(Wrong.apply, (leaf(3),), **ONLY_FORWARD)
    assert gradcheck(Wrong.apply, (leaf(3),), raise_exception=False) is False


class Unsteady(Function):
    """Twice the argument, with a gradient that differs between passes."""

    passes = 0

    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        Unsteady.passes += 1
        return g * (2 + 1e-7 * Unsteady.passes)


def test_passes_that_differ_fail_beyond_the_tolerance():
    with pytest.raises(RuntimeError, match="Backward is not reentrant"):
        gradcheck(Unsteady.apply, (leaf(2),))
    assert gradcheck(Unsteady.apply, (leaf(2),), nondet_tol=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {"check_backward_ad": False}, {"check_batched_forward_grad": True},
        {"check_forward_ad": True, "check_backward_ad": False, "check_batched_grad": True},
    ],
)  # fmt: skip
def test_checks_of_a_mode_that_is_off_are_refused(options):
    with pytest.raises(AssertionError):
        gradcheck(torch.sin, (leaf(2),), **options)
    with pytest.raises(AssertionError):
        gradgradcheck(torch.sin, (leaf(2),), check_rev_over_rev=False)


def test_functions_receive_inputs_that_require_grad():
    """Also where they are called for finite differences: they may register hooks and compute gradients themselves."""

    def with_hook(x):
        y = x.clone()
        y.register_hook(lambda grad: grad)
        return y * y

    def derivative(x):
        assert x.requires_grad and torch.is_grad_enabled()
        return torch.autograd.grad((x**3).sum(), x, create_graph=True)[0]

    x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    for function in (with_hook, derivative):
        assert gradcheck(function, (x,)) and gradgradcheck(function, (x,))


@pytest.mark.parametrize("fast_mode", [False, True])
def test_inputs_are_changed_where_functions_find_them(fast_mode):
    """Parameters reach a module without its arguments, and have their values again afterwards."""
    module = torch.nn.Linear(3, 2, dtype=torch.float64)
    x, before = leaf(2, 3), module.weight.clone()
    assert gradcheck(lambda x, *_: module(x), (x, *module.parameters()), fast_mode=fast_mode)
    assert gradgradcheck(lambda x, *_: module(x).tanh(), (x, *module.parameters()), fast_mode=fast_mode)
    assert module.weight.equal(before)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_fast_mode_compares_one_projection(dtype):
    """Two calls for the differences whatever the size, one for the gradient; a wrong gradient is found."""
    calls = []

    def sine(x):
        calls.append(x)
        return x.sin()

    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 3

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(30, 20, dtype=dtype)
    assert gradcheck(sine, (x,), fast_mode=True) and len(calls) == 3
    assert gradcheck(lambda x: (x * x.conj(), x.sum()), (x,), fast_mode=True, **EVERYTHING)
    with pytest.raises(RuntimeError, match="fast_mode"):
        gradcheck(Wrong.apply, (x,), fast_mode=True)


def test_inputs_with_shared_elements_are_refused():
    with pytest.raises(RuntimeError, match="stride 0"):
        gradcheck(lambda x: x * 2, (torch.ones(1, dtype=torch.float64).expand(3).requires_grad_(),))
