"""Rules of custom operators for vmap, dispatch modes and subclasses, kernels that fall through, and contexts of fake functions."""

import itertools

import pytest

_numbers = itertools.count()


def product(torch):
    """An operator whose function vmap cannot map: it reads values."""

    def multiply(x, y, scale):
        return torch.tensor(x.numpy() * y.numpy() * scale)

    name = f"rules{next(_numbers)}::multiply"
    return torch.library.custom_op(name, multiply, mutates_args=(), schema="(Tensor x, Tensor y, float scale=1.0) -> Tensor")


def test_register_vmap(torch):
    op, seen = product(torch), []

    @op.register_vmap
    def rule(info, in_dims, x, y, scale=1.0):
        seen.append((info.batch_size, info.randomness, in_dims))
        x = x.movedim(in_dims[0], -1) if in_dims[0] is not None else x.unsqueeze(-1)
        y = y.movedim(in_dims[1], -1) if in_dims[1] is not None else y.unsqueeze(-1)
        return op(x, y, scale), -1

    x, y = torch.randn(4, 3), torch.randn(3, 4)
    assert torch.allclose(torch.vmap(op, (0, 1))(x, y), x * y.T)
    assert torch.allclose(torch.vmap(op, (0, None), 1)(x, y[:, 0]), (x * y[:, 0]).T)
    assert torch.allclose(torch.vmap(lambda a: op(a, a, 2.0))(x), 2 * x * x)
    assert torch.allclose(torch.vmap(torch.vmap(op))(x, x), x * x)
    assert seen[:3] == [(4, "error", (0, 0)), (4, "error", (0, None)), (4, "error", (0, 0, None))]


def test_wrong_rules_for_vmap_are_refused(torch):
    x = torch.randn(4, 3)
    for result in (lambda x: x, lambda x: (x, 1), lambda x: [x, 0]):
        op = product(torch)
        op.register_vmap(lambda info, in_dims, x, y, scale=1.0, result=result: result(x))
        with pytest.raises(RuntimeError, match="expected a r"):
            torch.vmap(op)(x, x)
    name = f"rules{next(_numbers)}::keyword"
    op = torch.library.custom_op(name, lambda x, *, y: x * y, mutates_args=(), schema="(Tensor x, *, Tensor y) -> Tensor")
    op.register_vmap(lambda info, in_dims, x, *, y: (x * y, 0))
    assert torch.allclose(torch.vmap(lambda a: op(a, y=x[0]))(x), x * x[0])
    for call in (lambda a: op(a, y=a), lambda a: op(x[0], y=a)):
        with pytest.raises(NotImplementedError, match="keyword-only"):
            torch.vmap(call)(x)


def test_register_vmap_with_lists_and_several_results(torch):
    name = f"rules{next(_numbers)}::sums"
    op = torch.library.custom_op(
        name, lambda xs: (torch.tensor(sum(x.numpy() for x in xs)), xs[0].clone()), mutates_args=(),
        schema="(Tensor[] xs) -> (Tensor, Tensor)",
    )  # fmt: skip

    @torch.library.register_vmap(name)
    def rule(info, in_dims, xs):
        assert in_dims == ([0, None],) and info.batch_size == 3
        return op([xs[0], xs[1].expand_as(xs[0])]), (0, 0)

    x = torch.randn(3, 2)
    total, first = torch.vmap(lambda a: op([a, torch.ones(2)]))(x)
    assert torch.allclose(total, x + 1) and torch.equal(first, x)


def test_register_torch_dispatch(torch):
    op = product(torch)

    class Mode(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            made = torch.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype)
            made.inner = inner
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    seen = []

    @torch.library.register_torch_dispatch(op._qualname, Mode)
    def of_mode(mode, func, types, args, kwargs):
        seen.append((type(mode), func, types))
        return func(*args, **kwargs) + 1

    @op.register_torch_dispatch(Wrapper)
    def of_wrapper(cls, func, types, args, kwargs):
        seen.append((cls, func, types))
        return func(*(a.inner if isinstance(a, Wrapper) else a for a in args), **kwargs)

    x = torch.ones(2)
    with Mode():
        assert op(x, x).tolist() == [2, 2]
    assert op(x, x).tolist() == [1, 1] and op(Wrapper(x), x, 3.0).tolist() == [3, 3]
    assert seen == [(Mode, op._opoverload, ()), (Wrapper, op._opoverload, (Wrapper,))]
    with pytest.raises(RuntimeError, match="already has"):
        op.register_torch_dispatch(Mode, of_mode)
    with pytest.raises(ValueError, match="expected a class"):
        op.register_torch_dispatch(int, of_mode)


def test_fallthrough_kernel(torch):
    library = torch.library.Library(f"rules{next(_numbers)}", "DEF")
    library.define("f(Tensor x) -> Tensor")
    library.impl("f", lambda x: x + 1, "CompositeExplicitAutograd")
    library.impl("f", lambda x: x + 2, "CPU")
    f, x = getattr(torch.ops, library.ns).f, torch.zeros(1)
    assert f(x).item() == 2
    library.impl("f", torch.library.fallthrough_kernel, "CPU")
    assert f(x).item() == 1
    library.impl("f", torch.library.fallthrough_kernel, "AutocastCPU")
    with torch.autocast("cpu"):
        assert f(x).item() == 1
    with pytest.raises(NotImplementedError, match="should never be called"):
        torch.library.fallthrough_kernel()


def test_get_ctx(torch):
    op = product(torch)
    assert torch.library.get_ctx() is None
    seen = []

    @op.register_fake
    def fake(x, y, scale=1.0):
        seen.append(torch.library.get_ctx())
        return x.new_empty(x.shape)

    x = torch.ones(2, device="meta")
    assert op(x, x).shape == (2,) and seen[0] is not None and torch.library.get_ctx() is None

    @op.register_fake
    def dynamic(x, y, scale=1.0):
        return x.new_empty([torch.library.get_ctx().new_dynamic_size(max=7)])

    with pytest.raises(RuntimeError, match="data-dependent shape.*0 to 7"):
        op(x, x)
    assert torch.library.get_ctx() is None
