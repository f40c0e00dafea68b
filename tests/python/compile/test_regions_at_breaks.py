"""Regions of modes around graph breaks: what follows has the modes that eager code has, also after an exception."""

from __future__ import annotations

import pytest

import teletensor as torch


@torch.compiler.disable
def pause():
    pass


def autocast():
    return torch.autocast("cpu", dtype=torch.bfloat16)


def autocast_left(x):
    with autocast():
        pause()
    return x @ x


def autocast_left_by_an_exception(x):
    try:
        with autocast():
            pause()
            raise ValueError
    except ValueError:
        pass
    return x @ x


def autocast_with_an_operator(x):
    with autocast():
        y = x @ x
        pause()
        z = y @ x
    return z.float() + x @ x


def inference_left(x):
    with torch.inference_mode():
        y = x.sum().item()
    return x @ x * y


def inference_left_for_good(x):
    with torch.inference_mode(), torch.enable_grad():
        pause()
    return x @ x


def no_grad_left(x):
    with torch.no_grad():
        pause()
    with torch.enable_grad():
        return x @ x


def no_grad_entered_after_it(x):
    with torch.inference_mode():
        pause()
    with torch.no_grad():
        y = x * 2
    return x @ y


def inference_left_inside(x):
    with torch.inference_mode(False):
        y = x * 2
        pause()
        return y @ x


def inference_left_inside_a_graph(x):
    with torch.inference_mode(False):
        return x @ x


def autocast_left_inside(x):
    with torch.autocast("cpu", enabled=False):
        y = x @ x
        pause()
        z = y @ x
    return z @ x.to(z.dtype)


FUNCTIONS = [autocast_left, autocast_left_by_an_exception, autocast_with_an_operator, inference_left, inference_left_for_good,
             no_grad_left, no_grad_entered_after_it, inference_left_inside, inference_left_inside_a_graph,
             autocast_left_inside]  # fmt: skip
OUTER = {"none": torch.enable_grad, "no_grad": torch.no_grad, "inference": torch.inference_mode, "autocast": autocast}


def modes():
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize("backend", ["inductor", "eager"])
@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_equals_eager(function, outer, backend):
    found = []
    for call in (function, *[torch.compile(function, backend=backend)] * 3):
        x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        with OUTER[outer]():
            inside = modes()
            y = call(x)
            assert modes() == inside
        assert modes() == (True, False, False)
        if y.requires_grad:
            y.sum().backward()
        found.append((y.tolist(), y.dtype, y.requires_grad, None if x.grad is None else x.grad.tolist()))
    assert found == [found[0]] * 4
    torch._dynamo.reset()


@pytest.mark.parametrize("region", [autocast, torch.inference_mode, torch.no_grad], ids=lambda r: r.__name__)
def test_an_operator_raises_after_a_break(region):
    """The region around a graph break ends when the code after the break raises."""

    @torch.compile
    def function(x, y):
        with region():
            pause()
            z = x @ y
        return z

    assert function(torch.ones(2, 2), torch.ones(2, 2)).shape == (2, 2)
    for _ in range(2):
        with pytest.raises((RuntimeError, IndexError)):
            function(torch.ones(2, 2), torch.ones(2, 2)[torch.tensor([0, 1, 5])])[0].tolist()
        assert modes() == (True, False, False)
    torch._dynamo.reset()


def transposed(x):
    n = x.shape[0]
    x.t_()
    return n, x.shape[0], tuple(x.shape), len(x), x.shape[1] * 2


def unsqueezed(x):
    x.unsqueeze_(0)
    return x * 2, tuple(x.shape), x.size(-1)


def joined(x):
    torch.cat([x, x], out=x)
    return x.shape[0], x.size(0) + 1


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("function", [transposed, unsqueezed, joined], ids=lambda f: f.__name__)
def test_sizes_after_a_change_of_shape(function, dynamic):
    call = torch.compile(function, dynamic=dynamic)
    for shape in ((2, 3), (4, 5), (3, 2), (4, 5)):
        x, y = torch.ones(shape), torch.ones(shape)
        found, expected = call(x), function(y)
        assert x.shape == y.shape
        assert str(found) == str(expected)
    torch._dynamo.reset()
