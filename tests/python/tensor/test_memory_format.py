"""Layouts of results: strides as PyTorch 2.15 has them, equal in client and engine, and the values of row-major tensors."""

import numpy as np
import pytest

# Expressions of x = last(rows(2, 3, 4, 5)), y = rows(2, 3, 4, 5), z = last(rows(2, 3, 2, 4, 5)) and m = rows(4, 6), and the
# strides of their results, printed by PyTorch. rows() counts upwards; last() copies to channels last.
STRIDES = {
    "x + 1": (60, 1, 15, 3),
    "x + x": (60, 1, 15, 3),
    "x + y": (60, 1, 15, 3),
    "y + x": (60, 20, 5, 1),
    "x.relu()": (60, 1, 15, 3),
    "x * rows(3, 1, 1)": (60, 1, 15, 3),
    "x * rows(5)": (60, 1, 15, 3),
    "rows(1, 3, 1, 1) * x": (60, 1, 15, 3),
    "x[:1] + x": (60, 1, 15, 3),
    "last(rows(2, 1, 4, 5)) + last(rows(2, 1, 4, 5))": (20, 20, 5, 1),
    "last(rows(2, 1, 4, 5)) + 1": (20, 20, 5, 1),
    "last(rows(1, 3, 4, 5)) * 2": (60, 1, 15, 3),
    "last(rows(2, 3, 1, 1)) + 1": (3, 1, 1, 1),
    "last(rows(2, 3, 1, 1)) + x": (60, 1, 15, 3),
    "z.exp()": (120, 1, 60, 15, 3),
    "z + rows(2, 4, 5)": (120, 1, 60, 15, 3),
    "m.t() * 2": (1, 6),
    "m.t() + rows(6, 4)": (1, 6),
    "rows(6, 4) + m.t()": (4, 1),
    "m.t() + m.t()": (1, 6),
    "m[:, ::2] + 1": (3, 1),
    "m[:, ::2].t() + 1": (1, 3),
    "rows(2, 3, 4).permute(2, 0, 1).sin()": (1, 12, 4),
    "rows(2, 3, 4).permute(1, 2, 0) + rows(3, 4, 2)": (4, 1, 12),
    "rows(3, 1).expand(3, 4) + 1": (4, 1),
    "rows(1, 4).expand(3, 4).t() + 1": (3, 1),
    "torch.where(x > 3, x, y)": (60, 1, 15, 3),
    "x > 1": (60, 1, 15, 3),
    "torch.lerp(x, x, 0.5)": (60, 1, 15, 3),
    "x.clamp(0, 1)": (60, 1, 15, 3),
    "torch.addcmul(x, x, y)": (60, 1, 15, 3),
    "x.double() * 1": (60, 1, 15, 3),
    "-x.int()": (60, 1, 15, 3),
    "1 / (x + 1)": (60, 1, 15, 3),
    "x ** 2": (60, 1, 15, 3),
    "F.gelu(x)": (60, 1, 15, 3),
    "x[:, :, ::2] + 1": (30, 1, 15, 3),
    "x[:, 1:] + 1": (40, 1, 10, 2),
    "x.transpose(2, 3) + 1": (60, 1, 3, 15),
    "((x + 1) * y).relu() + x": (60, 1, 15, 3),
    "x.to(torch.float64)": (60, 1, 15, 3),
    "x.clone()": (60, 1, 15, 3),
    "m.t().clone()": (1, 6),
    "x.contiguous()": (60, 20, 5, 1),
    "torch.zeros_like(x)": (60, 1, 15, 3),
    "torch.empty_like(m.t())": (1, 6),
    "m.t().to(torch.float64)": (1, 6),
    "F.dropout(x, 0.0)": (60, 1, 15, 3),
    "x.softmax(1)": (60, 20, 5, 1),
    "torch.cat([x, x], 1)": (120, 1, 30, 6),
    "torch.cat([x, y], 1)": (120, 20, 5, 1),
    "F.conv2d(x, rows(4, 3, 2, 2))": (48, 1, 16, 4),
    "F.conv2d(y, last(rows(4, 3, 2, 2)))": (48, 1, 16, 4),
    "F.conv_transpose2d(x, rows(3, 4, 2, 2))": (120, 1, 24, 4),
    "F.conv3d(z, rows(4, 3, 1, 2, 2))": (96, 1, 48, 16, 4),
    "F.batch_norm(x, torch.zeros(3), torch.ones(3))": (60, 1, 15, 3),
    "F.batch_norm(x, None, None, training=True)": (60, 1, 15, 3),
    "F.group_norm(x, 3)": (60, 1, 15, 3),
    "F.max_pool2d(x, 2)": (12, 1, 6, 3),
    "F.avg_pool2d(x, 2)": (12, 1, 6, 3),
    "F.adaptive_avg_pool2d(x, 2)": (12, 1, 6, 3),
    "F.adaptive_avg_pool2d(x, 1)": (3, 1, 3, 3),
    "F.adaptive_max_pool2d(x, 2)": (12, 1, 6, 3),
    "F.interpolate(x, scale_factor=2)": (240, 1, 30, 3),
    "F.interpolate(x, scale_factor=2, mode='bilinear')": (240, 1, 30, 3),
    "F.pad(x, (1, 1))": (84, 1, 21, 3),
    "x.sum(1, keepdim=True)": (20, 20, 5, 1),
    "x.mean((2, 3), keepdim=True)": (3, 1, 1, 1),
    "x.flip(2)": (60, 1, 15, 3),
    "x.roll(1, 2)": (60, 1, 15, 3),
    "torch.rand_like(x)": (60, 1, 15, 3),
    "x.cumsum(1)": (60, 20, 5, 1),
    "F.prelu(x, rows(3))": (60, 1, 15, 3),
    "F.layer_norm(x, (5,))": (60, 20, 5, 1),
    "F.local_response_norm(x, 2)": (60, 1, 15, 3),
    "x.cumprod(2)": (60, 20, 5, 1),
    "x.index_select(1, torch.tensor([0, 2]))": (40, 20, 5, 1),
    "F.normalize(x)": (60, 1, 15, 3),
    "F.lp_pool2d(x + 1, 2, 2)": (12, 1, 6, 3),
    "y.contiguous(memory_format=torch.channels_last)": (60, 1, 15, 3),
    "y.to(memory_format=torch.channels_last)": (60, 1, 15, 3),
    "y.clone(memory_format=torch.channels_last)": (60, 1, 15, 3),
    "torch.empty(2, 3, 4, 5, memory_format=torch.channels_last)": (60, 1, 15, 3),
    "torch.zeros_like(y, memory_format=torch.channels_last)": (60, 1, 15, 3),
    "x.contiguous(memory_format=torch.contiguous_format)": (60, 20, 5, 1),
    "torch.tensor([x.is_contiguous(memory_format=torch.channels_last), y.is_contiguous(memory_format=torch.channels_last)])": (1,),
    "x.clone(memory_format=torch.contiguous_format)": (60, 20, 5, 1),
    "y.double().to(memory_format=torch.channels_last, dtype=torch.float32)": (60, 1, 15, 3),
    "y.half().float(memory_format=torch.channels_last)": (60, 1, 15, 3),
    "torch.empty_like(z)": (120, 1, 60, 15, 3),
    "torch.ones_like(z, memory_format=torch.channels_last_3d)": (120, 1, 60, 15, 3),
}
UNDEFINED = ("empty", "rand")  # values
# Where the layout differs from PyTorch's (docs/differences.md).
DIFFERENT = {
    "F.instance_norm(x)": (60, 1, 15, 3),
    "x.masked_fill(x > 3, 0)": (60, 1, 15, 3),
}

# Expressions with the strides, the storage offset and the values of their results, printed by PyTorch.
RESIZED = {
    "rows(1, 2, 2, 3).resize_(1, 2, 2, 3, memory_format=torch.channels_last)": ((12, 1, 6, 2), 0, [0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11]),
    "rows(1, 2, 2, 3).resize_((1, 2, 2, 2), memory_format=torch.channels_last)": ((8, 1, 4, 2), 0, [0, 2, 4, 6, 1, 3, 5, 7]),
    "last(rows(1, 2, 2, 2)).resize_(1, 2, 2, 2)": ((8, 1, 4, 2), 0, [0, 1, 2, 3, 4, 5, 6, 7]),
    "last(rows(1, 2, 2, 2)).resize_(1, 2, 2, 2, memory_format=torch.contiguous_format)": ((8, 4, 2, 1), 0, [0, 4, 1, 5, 2, 6, 3, 7]),
    "last(rows(1, 2, 2, 3)).resize_(2, 2)": ((2, 1), 0, [0, 6, 1, 7]),
    "rows(2, 3).t().resize_(2, 2)": ((2, 1), 0, [0, 1, 2, 3]),
    "rows(2, 3).t().resize_(3, 2)": ((1, 3), 0, [0, 3, 1, 4, 2, 5]),
    "rows(6)[2:5].resize_(2, 1)": ((1, 1), 2, [2, 3]),
    "rows(6)[1:3].resize_(4)": ((1,), 1, [1, 2, 3, 4]),
    "rows(6)[::2].resize_(2)": ((1,), 0, [0, 1]),
    "rows(1).expand(3).resize_(1)": ((1,), 0, [0]),
    "rows(4).resize_(0)": ((1,), 0, []),
    "rows(4).resize_([])": ((), 0, [0]),
    "rows(4).resize_(0).resize_(3)": ((1,), 0, [0, 1, 2]),
    "rows(8).resize_(1, 2, 1, 1, memory_format=torch.channels_last)": ((2, 1, 2, 2), 0, [0, 1]),
    "rows(8).resize_(2, 0, 3, 4, memory_format=torch.channels_last)": ((0, 1, 0, 0), 0, []),
    "rows(8).resize_(1, 2, 2, 2, 1, memory_format=torch.channels_last_3d)": ((8, 1, 4, 2, 2), 0, [0, 2, 4, 6, 1, 3, 5, 7]),
    "rows(12).resize_as_(last(rows(1, 2, 2, 3)))": ((12, 6, 3, 1), 0, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
    "rows(12).resize_as_(last(rows(1, 2, 2, 3)), memory_format=keep)": ((12, 1, 6, 2), 0, [0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11]),
    "rows(12).resize_as_(rows(2, 2, 3), memory_format=keep)": ((6, 3, 1), 0, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
    "rows(12).resize_as_(rows(2, 2, 1, 1), memory_format=keep)": ((2, 1, 1, 1), 0, [0, 1, 2, 3]),
    "rows(6).resize_as_(last(rows(1, 2, 2, 3))[:, :, ::2], memory_format=keep)": ((6, 1, 6, 2), 0, [0, 2, 4, 1, 3, 5]),
    "rows(12).resize_as_(last(rows(1, 2, 1, 3, 2)), memory_format=keep)": ((12, 1, 12, 4, 2), 0, [0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11]),
    "torch.resize_as_(rows(12), rows(3, 1), memory_format=torch.contiguous_format)": ((1, 1), 0, [0, 1, 2]),
}  # fmt: skip
# Calls for which PyTorch raises RuntimeError, with the message.
REFUSED = {
    "x.contiguous(memory_format=torch.preserve_format)": "preserve memory format is unsupported by the contiguous operator",
    "m.t().contiguous(memory_format=torch.preserve_format)": "preserve memory format is unsupported by the contiguous operator",
    "torch.empty(2, 3, memory_format=torch.preserve_format)": "unsupported memory format Preserve",
    "rows(4).resize_(2, 2, memory_format=torch.preserve_format)": "unsupported memory format Preserve",
    "rows(4).resize_(2, 2, memory_format=torch.channels_last)": "required rank 4 tensor to use channels_last format",
    "rows(4).resize_(1, 1, 2, 2, memory_format=torch.channels_last_3d)": "required rank 5 tensor to use channels_last_3d format",
    "rows(4).resize_as_(rows(2, 2), memory_format=torch.channels_last)": "required rank 4 tensor to use channels_last format",
    "rows(4).resize_(2, -1)": "not negative",
    "rows(4).requires_grad_().resize_(2, 2, memory_format=torch.contiguous_format)": "cannot resize variables that require grad",
    "utils.convert_conv2d_weight_memory_format(torch.nn.Conv2d(2, 3, 1), torch.preserve_format)": "unsupported memory format Preserve",
}


def names(torch, in_order):
    """The names of the expressions. If `in_order`, last() copies nothing."""

    def rows(*sizes):
        return torch.arange(float(np.prod(sizes))).reshape(sizes)

    def last(t):
        there, back = ((0, 2, 3, 1), (0, 3, 1, 2)) if t.dim() == 4 else ((0, 2, 3, 4, 1), (0, 4, 1, 2, 3))
        return t if in_order else t.permute(there).contiguous().permute(back)

    x, y, z, m = last(rows(2, 3, 4, 5)), rows(2, 3, 4, 5), last(rows(2, 3, 2, 4, 5)), rows(4, 6)
    modules = {"torch": torch, "F": torch.nn.functional, "utils": torch.nn.utils}
    return {**modules, "keep": torch.preserve_format, "rows": rows, "last": last, "x": x, "y": y, "z": z, "m": m}


def bytes_by_strides(torch, tensor):
    """The tensor's values, read from the engine's storage with the client's strides."""
    count = tensor.untyped_storage().nbytes() // tensor.element_size()
    flat = torch.as_strided(tensor.detach(), (count,), (1,), 0).numpy()[tensor.storage_offset() :]
    return np.lib.stride_tricks.as_strided(flat, tensor.shape, [s * flat.itemsize for s in tensor.stride()])


@pytest.mark.parametrize("expression", [*STRIDES, *DIFFERENT])
def test_strides_and_values(torch, expression):
    result = eval(expression, names(torch, False))
    assert result.stride() == {**STRIDES, **DIFFERENT}[expression]
    np.testing.assert_array_equal(bytes_by_strides(torch, result), result.numpy())
    if not any(word in expression for word in UNDEFINED):
        expected = eval(expression, names(torch, True)).numpy()
        if "is_contiguous" not in expression:
            np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_formats(torch, n):
    for dims, name in ((4, "channels_last"), (5, "channels_last_3d")):
        form, sizes = getattr(torch, name), [n, 2, 3, 4, 5][:dims]
        x = torch.ones(sizes)
        y = x.contiguous(memory_format=form)
        assert y.is_contiguous(memory_format=form) and y.contiguous(memory_format=form).is_set_to(y)
        assert y.to(memory_format=form) is y and torch.equal(y, x)
        assert y.contiguous().is_contiguous() and y.clone(memory_format=torch.contiguous_format).is_contiguous()
        with pytest.raises(RuntimeError, match=f"required rank {dims} tensor to use {name} format"):
            torch.ones(2, 3).contiguous(memory_format=form)
        with pytest.raises(RuntimeError, match=f"required rank {dims} tensor to use {name} format"):
            torch.empty(2, 3, memory_format=form)
        leaf = torch.zeros(sizes, memory_format=form, requires_grad=True)
        assert leaf.is_leaf and leaf.requires_grad and leaf.is_contiguous(memory_format=form)


@pytest.mark.parametrize("expression", RESIZED)
def test_resized(torch, expression):
    result = eval(expression, names(torch, False))
    assert (result.stride(), result.storage_offset(), result.flatten().tolist()) == RESIZED[expression]


def test_resized_beyond_the_storage(torch):
    base = torch.arange(6.0)
    part = base[2:4]
    assert part.resize_(3, 2) is part and part.storage_offset() == 2
    assert part.flatten()[:4].tolist() == [2, 3, 4, 5] and part.untyped_storage().nbytes() == 8 * 4
    assert part.fill_(7).sum() == 42 and base.tolist() == [0, 1, 2, 3, 4, 5]
    assert base[:3].resize_(4).fill_(7).is_set_to(base[:4]) and base.tolist() == [7, 7, 7, 7, 4, 5]


@pytest.mark.parametrize("expression", REFUSED)
def test_refused_formats(torch, expression):
    with pytest.raises(RuntimeError, match=REFUSED[expression]):
        eval(expression, names(torch, False))


def test_preserved_formats(torch):
    keep, x = torch.preserve_format, names(torch, False)["x"]
    assert not x.is_contiguous(memory_format=keep) and x.contiguous().is_contiguous(memory_format=keep)
    y = x.contiguous()
    assert y.contiguous(memory_format=keep) is y
    for copy in (x.clone, x.double, x.cpu, x.to):
        assert copy(memory_format=keep).stride() == x.stride()
    assert torch.zeros_like(x, memory_format=keep).stride() == x.stride()
    module = torch.nn.Conv2d(2, 3, 2).to(memory_format=torch.channels_last)
    assert module.to(memory_format=keep).weight.stride() == (8, 1, 4, 2)
    point = torch.nn.utils.convert_conv2d_weight_memory_format(torch.nn.Conv2d(2, 3, 1), torch.channels_last)
    assert point.weight.stride() == (2, 1, 2, 2)


def test_model_trains_as_in_row_major_order(torch):
    nn, losses = torch.nn, []
    for form in (torch.contiguous_format, torch.channels_last):
        torch.manual_seed(0)
        body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8))
        head = nn.Sequential(nn.ReLU(), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2))
        skip = nn.Conv2d(3, 8, 1)
        model = nn.ModuleList([body, head, skip]).to(memory_format=form)
        assert skip.weight.is_contiguous(memory_format=form) and body[0].weight.is_contiguous(memory_format=form)
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        x = torch.randn(4, 3, 8, 8).to(memory_format=form)
        for _ in range(6):  # repeated instructions are sent as templates, and fused
            inner = body(x) + skip(x)
            assert inner.is_contiguous(memory_format=form)
            loss = head(inner * 2 - inner.tanh()).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        for p in model.parameters():
            np.testing.assert_array_equal(bytes_by_strides(torch, p.grad), p.grad.numpy())
    np.testing.assert_allclose(losses[:6], losses[6:], rtol=2e-4)


def test_large_chains_follow_their_operands(torch):
    x = torch.randn(64, 300).t()
    for _ in range(4):
        y = ((x * 2).exp() + x).relu() * x.sigmoid()
        assert y.stride() == (1, 300)
        z = (y + torch.randn(300, 64).sign() * 0).tanh()
    np.testing.assert_array_equal(bytes_by_strides(torch, z), z.numpy())
    expected = np.maximum(np.exp(x.numpy() * 2) + x.numpy(), 0) / (1 + np.exp(-x.numpy()))
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_gradients_of_results_in_another_order(torch):
    x = torch.randn(3, 4, requires_grad=True)
    weight = torch.arange(12.0).reshape(4, 3)
    for _ in range(3):
        x.grad = None
        ((x.t() * 3 + 1) * weight).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 * weight.t().numpy())
    y = x.t().exp()
    z = y * y.sigmoid()
    saved = [y.grad_fn._saved_result, z.grad_fn._saved_other]
    for t in (*saved, *torch.autograd.grad((y * weight).sum(), x)):
        np.testing.assert_array_equal(bytes_by_strides(torch, t), t.detach().numpy())


@pytest.mark.parametrize("size", [(2, 1, 3, 5), (2, 3, 1, 1), (2, 3, 4, 5)])
def test_requested_formats_of_sizes_of_one(torch, size):
    """Sizes of 1 leave the format open: the strides are those of the requested one, in another tensor."""
    n, c, h, w = size
    x, last = torch.arange(float(n * c * h * w)).reshape(size), (h * w * c, 1, w * c, c)
    for made in (
        x.to(memory_format=torch.channels_last), x.clone(memory_format=torch.channels_last),
        x.to(torch.float64, memory_format=torch.channels_last), torch.empty_like(x, memory_format=torch.channels_last),
    ):  # fmt: skip
        assert made.stride() == last and made.data_ptr() != x.data_ptr()
    assert torch.equal(x.to(memory_format=torch.channels_last), x)
    again = x.to(memory_format=torch.channels_last)
    assert again.to(memory_format=torch.channels_last) is again
    x.requires_grad_()
    (gradient,) = torch.autograd.grad((x.to(memory_format=torch.channels_last) * 2).sum(), x)
    assert gradient.flatten().tolist() == [2] * x.numel()
    layer = torch.nn.Conv2d(1, 4, 3).to(memory_format=torch.channels_last)
    assert layer(torch.ones(2, 1, 5, 5)).stride() == (36, 1, 12, 4)


def test_requested_formats_reach_modes_and_transforms(torch):
    x, last = torch.arange(120.0).reshape(2, 3, 4, 5), (60, 1, 15, 3)
    formats = {"memory_format": torch.channels_last}
    calls = {
        "clone": lambda x: x.clone(**formats), "contiguous": lambda x: x.contiguous(**formats), "to": lambda x: x.to(**formats),
        "double": lambda x: x.double(**formats), "zeros_like": lambda x: torch.zeros_like(x, **formats),
        "empty": lambda x: torch.empty(2, 3, 4, 5, **formats),
    }  # fmt: skip
    seen = []

    class Mode(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((kwargs or {}).get("memory_format"))
            return func(*args, **(kwargs or {}))

    for name, call in calls.items():
        with Mode():
            assert call(x).stride() == last, name
        assert seen[-1] == torch.channels_last, name
        traced = torch.fx.experimental.proxy_tensor.make_fx(call)(x)
        assert traced(x).stride() == last, name
        if name != "empty":
            assert torch.func.functionalize(call)(x).stride() == last, name
    value, tangent = torch.func.jvp(calls["clone"], (x,), (x,))
    assert value.stride() == last and torch.equal(tangent, x)
    assert torch.vmap(calls["clone"])(x[None]).stride() == (120, *last)
    q = torch.quantize_per_tensor(x, 0.5, 0, torch.quint8)
    assert torch.empty_like(q, **formats).stride() == q.clone(**formats).stride() == last
