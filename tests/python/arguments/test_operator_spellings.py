"""Further ways to call operators: older orders of arguments, other names, and keywords that their parser rejects."""

import pytest

from .spelling_rows import check_same

# Pairs of expressions with the same value. x, y, v and i are tensors.
SAME = [
    ("torch.add(x, 2, y)", "x + 2 * y"),
    ("x.add(2, y)", "x + 2 * y"),
    ("x.clone().add_(2, y)", "x + 2 * y"),
    ("torch.sub(x, 2, y)", "x - 2 * y"),
    ("torch.addmm(2, x, 3, x, y)", "2 * x + 3 * (x @ y)"),
    ("torch.addmm(2, x, x, y)", "2 * x + x @ y"),
    ("torch.addmm(2, x, 3, x, y, out=torch.empty(2, 2))", "2 * x + 3 * (x @ y)"),
    ("x.addmm(2, x, y)", "2 * x + x @ y"),
    ("x.addmm(2, 3, x, y)", "2 * x + 3 * (x @ y)"),
    ("x.clone().addmm_(2, x, y)", "2 * x + x @ y"),
    ("torch.addmv(2, v, 3, x, v)", "2 * v + 3 * (x @ v)"),
    ("torch.addbmm(2, x, 3, x[None], y[None])", "2 * x + 3 * (x @ y)"),
    ("torch.baddbmm(2, x[None], 3, x[None], y[None])", "(2 * x + 3 * (x @ y))[None]"),
    ("torch.addcmul(x, 2, x, y)", "x + 2 * x * y"),
    ("torch.addcdiv(x, 2, x, y)", "x + 2 * x / y"),
    ("torch.subtract(x, 3, 2)", "x - 6"),
    ("torch.swapaxes(x, axis0=0, axis1=1)", "x.T"),
    ("torch.sin(a=x)", "x.sin()"),
    ("torch.add(x1=x, x2=y)", "x + y"),
    ("torch.softmax(x, 0, torch.float64)", "x.double().softmax(0)"),
    ("x.log_softmax(0, torch.float64)", "x.double().log_softmax(0)"),
    ("x.split(split_size=1)[1]", "x[1:]"),
    ("x.expand(2, 2, implicit=True)", "x"),
    ("x.broadcast_to(2, 2, 2)", "x.expand(2, 2, 2)"),
    ("x[None].squeeze(0, 1)", "x"),
    ("x.count_nonzero(0, 1)", "x.count_nonzero()"),
    ("torch.nan_to_num(x, None)", "x"),
    ("x.nan_to_num(nan=None)", "x"),
    ("x.contiguous(torch.contiguous_format)", "x"),
    ("torch.tensor(x.size(dim=0))", "torch.tensor(2)"),
    ("torch.tensor(x.stride(dim=0))", "torch.tensor(2)"),
]


@pytest.mark.filterwarnings("ignore:.*is deprecated")
@pytest.mark.parametrize("code, same", SAME)
def test_same(names, code, same):
    check_same(names, code, same)


# Calls that PyTorch rejects.
REFUSED = [
    "torch.mul(x, y, layout=torch.strided)", "torch.relu(x, memory_format=None)", "torch.relu(x, generator=None)",
    "x.unsqueeze(True)", "x.sum(True)", "torch.zeros(True)", "torch.zeros((True, 2))", "x.view(True, 4)",
    "x.permute(True, False)", "x.topk(True)", "x.std(dim=True)",
]  # fmt: skip


@pytest.mark.parametrize("code", REFUSED)
def test_refused(names, code):
    with pytest.raises(TypeError):
        eval(code, names)  # noqa: S307


def test_older_orders_warn(torch):
    with pytest.warns(UserWarning, match="This overload of add is deprecated"):
        torch.add(torch.ones(2), 2, torch.ones(2))


def test_channels_last(torch):
    x = torch.ones(2, 3, 4, 5)
    last = torch.ones(2, 4, 5, 3).permute(0, 3, 1, 2)
    assert x.is_contiguous() and not x.is_contiguous(memory_format=torch.channels_last)
    assert last.is_contiguous(memory_format=torch.channels_last) and not last.is_contiguous()
    assert not x[0].is_contiguous(memory_format=torch.channels_last)
    assert torch.ones(2, 4, 5, 6, 3).permute(0, 4, 1, 2, 3).is_contiguous(memory_format=torch.channels_last_3d)
    with pytest.raises(TypeError):
        x.is_contiguous(memory_format=3)


@pytest.mark.parametrize("rtol, expected", [(0.4, [True, True, False]), (0, [False, False, False])])
def test_isclose_of_integers(torch, rtol, expected):
    a, b = torch.tensor([5, -5, 1]), torch.tensor([8, -8, 2])
    assert torch.isclose(a, b, rtol=rtol).tolist() == expected
    assert torch.isclose(torch.tensor([100001]), torch.tensor([100000])).item()
