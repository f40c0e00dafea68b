"""Functions that fill a tensor which they made, under jvp, jacfwd, hessian and linearize."""

import pytest


def matrix(torch, v):
    a = torch.zeros(2, 2)
    a[0, 0] = v[0]
    a[0, 1] = v[1] * v[0]
    a[1] = v[2].sin()
    return a


def scaled_rows(torch, v):
    e = torch.eye(3)
    e[0] *= v[0]
    return e @ v


def powers(torch, v):
    out = torch.empty(3)
    for i in range(3):
        out[i] = v[i] ** (i + 1)
    return out


def rotation(torch, v):
    r = torch.zeros(3, 3)
    r[0, 1], r[0, 2], r[1, 0], r[1, 2], r[2, 0], r[2, 1] = -v[2], v[1], v[2], -v[0], -v[1], v[0]
    return torch.linalg.matrix_exp(r)


def total(torch, v):
    s = torch.tensor(0.0)
    for i in range(3):
        s += v[i] * v[i]
    return s


def views(torch, v):
    s = torch.full((3,), 2.0)
    s.mul_(v)
    s[1:].add_(v[:2])
    return s * v


def result_of_out(torch, v):
    return torch.sin(v, out=torch.empty(3)) * v


FUNCTIONS = [matrix, scaled_rows, powers, rotation, total, views, result_of_out]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_derivatives_equal_those_of_reverse_mode(torch, function):
    x, v = torch.tensor([0.5, -1.0, 2.0]), torch.tensor([1.0, 0.25, -0.5])

    def of(x):
        return function(torch, x)

    def summed(x):
        return (of(x) * of(x)).sum()

    def close(a, b):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)

    func = torch.func
    supports_out = function is not result_of_out  # out= has no gradient in reverse mode
    if supports_out:
        jacobian = torch.autograd.functional.jacobian(of, x)
        second = torch.autograd.functional.hessian(summed, x)
        close(func.jacfwd(func.jacrev(summed))(x), second)
        close(func.hessian(summed)(x), second)
        close(func.grad(lambda x: func.jvp(summed, (x,), (v,))[1])(x), second @ v)
        close(func.jacfwd(func.jacfwd(summed))(x), second)
    else:
        jacobian = torch.diag(x.cos() * x + x.sin())
    close(func.jacfwd(of)(x), jacobian)
    close(func.jvp(of, (x,), (v,)), (of(x), jacobian @ v))
    close(func.linearize(of, x)[1](v), jacobian @ v)


def test_new_tensors_are_tensors_of_the_program_after_the_transform(torch):
    kept = []

    def remember(x):
        kept.append(torch.ones(2))
        return x * kept[0]

    torch.func.jvp(remember, (torch.ones(2),), (torch.ones(2),))
    ones = kept[0]
    ones += 1
    assert isinstance(ones, torch.Tensor)
    assert (ones * 2).tolist() == [4, 4]
    assert ones.numpy().tolist() == [2, 2]


def test_new_leaves_require_gradients(torch):
    def inner_gradient(x):
        w = torch.ones(2, requires_grad=True)
        return torch.autograd.grad((w * w * x).sum(), w)[0]

    value, tangent = torch.func.jvp(inner_gradient, (torch.tensor([3.0, 4.0]),), (torch.ones(2),))
    assert (value.tolist(), tangent.tolist()) == ([6, 8], [2, 2])


def test_a_tensor_from_outside_is_refused(torch):
    outside = torch.zeros(2)
    with pytest.raises(RuntimeError, match="cannot be written to a tensor that is no dual tensor"):
        torch.func.jvp(lambda x: outside.add_(x), (torch.ones(2),), (torch.ones(2),))
    assert outside.tolist() == [0, 0]
