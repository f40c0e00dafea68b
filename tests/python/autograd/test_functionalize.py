"""torch.func.functionalize: results and final values of arguments as without it, and no operator that writes."""

import pytest

from teletensor.utils._python_dispatch import TorchDispatchMode

VIEWS = {
    "view": lambda y: y.view(6),
    "reshape": lambda y: y.reshape(3, 2),
    "flatten": lambda y: y.flatten(),
    "unsqueeze": lambda y: y.unsqueeze(1),
    "squeeze": lambda y: y[:1].squeeze(0),
    "transpose": lambda y: y.transpose(0, 1),
    "t": lambda y: y.t(),
    "permute": lambda y: y.unsqueeze(0).permute(2, 0, 1),
    "movedim": lambda y: y.movedim(0, 1),
    "select": lambda y: y[1],
    "select of a select": lambda y: y[1][2],
    "slice": lambda y: y[:, ::2],
    "negative slice": lambda y: y[:, -2:],
    "narrow": lambda y: y.narrow(1, 1, 2),
    "unbind": lambda y: y.unbind(1)[1],
    "split": lambda y: y.split(2, 1)[0],
    "split_with_sizes": lambda y: y.split([1, 2], 1)[1],
    "chunk": lambda y: y.chunk(2)[1],
    "tensor_split": lambda y: y.tensor_split(2, 1)[1],
    "diagonal": lambda y: y.diagonal(1),
    "alias": lambda y: y.view_as(y),
    "detach": lambda y: y.detach(),
    "as_strided": lambda y: y.as_strided((2,), (3,), 1),
    "a chain": lambda y: y.t()[1:].unsqueeze(0).transpose(1, 2)[0, 1],
}
REMOVE = ("mutations", "mutations_and_views")


class Written(TorchDispatchMode):
    """Records the operators that write, and those that make views."""

    def __init__(self):
        super().__init__()
        self.names, self.all = [], []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.all.append(func._schema.name.removeprefix("aten::"))
        if any(a.is_write for a in func._schema.arguments):
            self.names.append(self.all[-1])
        return func(*args, **(kwargs or {}))


def check(torch, f, *given, remove):
    """The results and final arguments of a function and of its functional form are equal."""
    first, second = ([x.clone() for x in given] for _ in range(2))
    want, got = f(*first), torch.func.functionalize(f, remove=remove)(*second)
    for a, b in zip((want, *first) if not isinstance(want, tuple) else (*want, *first),
                    (got, *second) if not isinstance(got, tuple) else (*got, *second), strict=True):  # fmt: skip
        assert type(b) is torch.Tensor and a.dtype == b.dtype and torch.equal(a, b), (a, b)


@pytest.mark.parametrize("remove", REMOVE)
@pytest.mark.parametrize("name", VIEWS)
def test_writes_through_views(torch, name, remove):
    x = torch.arange(6.0).reshape(2, 3)

    def of_intermediate(z):
        y = z * 1
        other, view = y.t(), VIEWS[name](y)
        view.mul_(view + 2)
        y.add_(1)
        view.sub_(0.5)
        return y, view, other

    def of_argument(z):
        view = VIEWS[name](z)
        view.mul_(3)
        z.add_(view.sum())
        return view * 2

    check(torch, of_intermediate, x, remove=remove)
    check(torch, of_argument, x, remove=remove)


@pytest.mark.parametrize("remove", REMOVE)
def test_complex_views(torch, remove):
    z = torch.complex(torch.arange(4.0), torch.ones(4))
    for view in (torch.view_as_real, torch.real, torch.imag, lambda c: torch.view_as_real(c)[:, 1]):
        check(torch, lambda c, view=view: (view(c).mul_(3), c * 2), z, remove=remove)
    check(torch, lambda r: (torch.view_as_complex(r).mul_(1j), r + 0), torch.ones(2, 2), remove=remove)


@pytest.mark.parametrize("remove", REMOVE)
def test_kinds_of_writes(torch, remove):
    x = torch.arange(6.0).reshape(2, 3)

    def f(z, w):
        y = torch.zeros_like(z)
        torch.add(z, w, out=y)
        y[0] = w[1]
        y[:, 1] += 4
        y[y > 4] = 0.5
        y[torch.tensor([0, 1]), torch.tensor([1, 0])] = 9
        y.index_fill_(1, torch.tensor([2]), -1)
        y.scatter_add_(1, torch.tensor([[0, 0]]), torch.ones(1, 2))
        y.t_().unsqueeze_(0)
        w.copy_(z.sum(0, keepdim=True))
        z.zero_()
        values, places = torch.zeros(2), torch.zeros(2, dtype=torch.long)
        torch.max(w, 1, out=(values, places))
        return y, values, places, z

    check(torch, f, x, x + 1, remove=remove)


def test_no_operator_writes(torch):
    def f(z):
        y = z.view(-1)
        y[1:].add_(1)
        y.mul_(2)
        return y.sum() + z.sum()

    x = torch.arange(4.0).reshape(2, 2)
    want = f(x.clone())
    for remove in REMOVE:
        given = x.clone()
        with Written() as seen:
            got = torch.func.functionalize(f, remove=remove)(given)
        assert torch.equal(got, want) and given.tolist() == [[0, 4], [6, 8]]
        assert "add_" not in seen.all and "mul_" not in seen.all and "add" in seen.all
        assert seen.names[-1] == "copy_" and seen.all[-1] == "copy_"
        shares = torch.func.functionalize(lambda z: z.view(-1), remove=remove)(x).untyped_storage() == x.untyped_storage()
        assert shares == (remove == "mutations")


def test_modules_and_buffers(torch):
    net = torch.nn.BatchNorm1d(3)
    x = torch.randn(4, 3)
    buffers = {k: v.clone() for k, v in net.named_buffers()}

    def f(b, z):
        return torch.func.functional_call(net, b, (z,))

    first, second = ({k: v.clone() for k, v in buffers.items()} for _ in range(2))
    want, got = f(first, x), torch.func.functionalize(f)(second, x)
    assert torch.allclose(want, got)
    for k, v in first.items():
        assert torch.allclose(v, second[k]) and not torch.equal(v, buffers[k])


def test_other_transforms(torch):
    x, func = torch.tensor([0.5, -1.0, 2.0]), torch.func

    def f(z):
        y = z.sin()
        y[1:].mul_(z[:2])
        return (y * y).sum()

    functional = func.functionalize(f)
    want = func.grad(f)(x)
    assert torch.allclose(func.grad(functional)(x), want)
    assert torch.allclose(func.functionalize(func.grad(f))(x), want)
    assert torch.allclose(func.jvp(functional, (x,), (x,))[1], (want * x).sum())
    xs = torch.stack([x, 2 * x])
    assert torch.allclose(torch.vmap(functional)(xs), torch.stack([f(x), f(2 * x)]))
    assert torch.allclose(func.functionalize(torch.vmap(f))(xs), torch.vmap(f)(xs))
    w = x.clone().requires_grad_()
    functional(w).backward()
    assert torch.allclose(w.grad, want)


def test_same_and_shared_arguments(torch):
    x = torch.ones(3)
    assert torch.func.functionalize(lambda a, b: a.add_(1) + b)(x, x).tolist() == [4, 4, 4] and x.tolist() == [2, 2, 2]
    with pytest.raises(NotImplementedError, match="shares memory"):
        torch.func.functionalize(lambda a, b: b.add_(1))(x, x[:2])
    assert torch.func.functionalize(lambda a, b: a[:2] + b)(x, x[:2]).tolist() == [4, 4]
    outside = torch.zeros(3)
    torch.func.functionalize(lambda a: outside.add_(a))(x)
    assert outside.tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="broadcast shape"):
        torch.func.functionalize(lambda a: a[0].add_(a))(x)
    with pytest.raises(RuntimeError, match="Valid options"):
        torch.func.functionalize(torch.sin, remove="nothing")


def test_debug_unwrap(torch):
    seen = []

    def f(z):
        seen.append((torch.func.debug_unwrap(z), torch.func.debug_unwrap(z, recurse=False)))
        return z.sum()

    x = torch.ones(2, 3)
    torch.vmap(lambda z: torch.func.jvp(f, (z,), (z,))[1])(x)
    assert type(seen[0][0]) is torch.Tensor and seen[0][0].shape == (2, 3) and type(seen[0][1]) is not torch.Tensor
    assert torch.func.debug_unwrap(x) is x
