"""Nested tensors: offsets that are wrong, symbolic sizes, gradients, layers, compiled functions, and errors."""

from __future__ import annotations

import copy
import io
from pathlib import Path

import pytest

import teletensor as torch
from teletensor.serialization import _errors, _nested

F, nn = torch.nn.functional, torch.nn


def jagged(*lengths, width=4, seed=0):
    """A jagged tensor of float64 numbers."""
    generator = torch.Generator().manual_seed(seed)
    parts = [torch.randn(n, width, dtype=torch.float64, generator=generator) for n in lengths]
    return torch.nested.nested_tensor(parts, layout=torch.jagged)


def from_offsets(offsets, total=6, lengths=None):
    values = torch.ones(total, 2, 3)
    lengths = None if lengths is None else torch.tensor(lengths)
    return torch.nested.nested_tensor_from_jagged(values, torch.tensor(offsets), lengths)


HOSTILE = {
    "decreasing": ([0, 4, 2, 6], None), "beyond": ([0, 3, 7], None), "far beyond": ([0, 3, 2**62], None), "negative": ([-1, 3, 6], None),
    "most negative": ([-(2**63), 0, 6], None), "overflowing": ([0, 2**63 - 1, -(2**63), 6], None), "long": ([0, 3, 6], [4, 3]),
    "negative length": ([0, 3, 6], [-1, 3]), "huge length": ([0, 3, 6], [2**63 - 1, 3]),
}  # fmt: skip
FOLLOWING = {
    "sum": lambda t: t.sum(dim=1), "amax": lambda t: t.amax(dim=1), "softmax": lambda t: F.softmax(t, dim=1),
    "padded": lambda t: torch.nested.nested_tensor_from_jagged(
        t._values, t.offsets(), t.lengths(), max_seqlen=3).to_padded_tensor(0.0),
    "broadcast": lambda t: (t * torch.ones(t.size(0), 1, 2, 3)).values(),
    "attention": lambda t: F.scaled_dot_product_attention(*[t.transpose(1, 2)] * 3).values(), "unbind": lambda t: t.unbind()[0],
    "chunk": lambda t: t.chunk(2)[0].values(), "select": lambda t: t[0],
}  # fmt: skip


@pytest.mark.parametrize("function", FOLLOWING)
@pytest.mark.parametrize("offsets", HOSTILE)
def test_wrong_offsets_raise(offsets, function):
    nested = from_offsets(HOSTILE[offsets][0], lengths=HOSTILE[offsets][1])
    with pytest.raises(RuntimeError, match="offsets|length"):
        result = FOLLOWING[function](nested)
        (result if isinstance(result, torch.Tensor) and not result.is_nested else result.values()).sum().item()


@pytest.mark.parametrize("offsets, error", [
    (((2, 2), "int64"), "one dimension"), (((0,), "int64"), "one dimension"), (((3,), "float32"), "int64"), (((3,), "uint8"), "int64"),
])  # fmt: skip
def test_wrong_metadata_raises_at_once(offsets, error):
    size, dtype = offsets
    with pytest.raises(RuntimeError, match=error):
        torch.nested.nested_tensor_from_jagged(torch.ones(6, 2), torch.zeros(size, dtype=getattr(torch, dtype)))


def test_sizes_are_equal_for_the_same_offsets_only():
    x, y = jagged(2, 3), jagged(2, 3)
    size = x.size(1)
    assert size == (x * 2).size(1) == x.to(torch.float32).size(1) == x.transpose(1, 2).size(2)
    assert size != y.size(1) and size != 5 and size != 2 and hash(size) == hash((x + 1).size(1))
    assert size >= 2 and not size < 2 and repr(size).startswith("j") and repr(size * 3).startswith("3*j")
    with pytest.raises(ValueError, match="indeterminate"):
        size > 7  # noqa: B015
    with pytest.raises(RuntimeError, match="cannot call binary pointwise function add"):
        x + y
    with pytest.raises(TypeError):
        torch.zeros(size)
    z = torch.nested.nested_tensor_from_jagged(torch.ones(5, 4, dtype=torch.float64), x.offsets())
    assert (x + z).shape == x.shape and x.is_same_size(z) and isinstance(x.shape, torch.Size)


def test_offsets_that_are_written_are_read_again():
    offsets = torch.tensor([0, 2, 6])
    x = torch.nested.nested_tensor_from_jagged(torch.arange(6.0), offsets)
    assert [len(t) for t in x.unbind()] == [2, 4]
    offsets.copy_(torch.tensor([0, 5, 6]))
    assert [len(t) for t in x.unbind()] == [5, 1]


def test_batch_of_no_sequences():
    x = torch.nested.nested_tensor_from_jagged(torch.ones(0, 2, 3).requires_grad_(), torch.tensor([0]))
    assert x.shape[0] == 0 and len(x) == 0 and x.unbind() == ()
    assert x.sum(dim=1).shape == (0, 2, 3) and F.softmax(x, dim=1).values().shape == (0, 2, 3)
    assert x.to_padded_tensor(0.0).shape == (0, 0, 2, 3)
    heads = x.transpose(1, 2)
    assert F.scaled_dot_product_attention(heads, heads, heads).values().shape == (2, 0, 3)
    x.sum().backward()
    assert str(torch.nested.nested_tensor([])) == "nested_tensor([\n\n])"


def test_empty_sequences():
    x = jagged(0, 3, 0, 1, 0)
    assert x.sum(dim=1)[0].tolist() == [0.0] * 4
    assert x.amax(dim=1)[2].tolist() == [torch.finfo(torch.float64).min] * 4
    heads = torch.nested.nested_tensor_from_jagged(x.values().reshape(4, 2, 2), x.offsets()).transpose(1, 2)
    result = F.scaled_dot_product_attention(heads, heads, heads)
    assert [t.shape[1] for t in result.unbind()] == [0, 3, 0, 1, 0]


def test_extrema_of_infinite_numbers():
    low = -torch.inf
    x = torch.nested.nested_tensor_from_jagged(torch.tensor([low, low, low, 1.0, 2.0, 3.0]), torch.tensor([0, 1, 3, 3, 6]))
    assert x.amax(dim=1).tolist()[:2] == [low, low] and x.argmax(dim=1).tolist()[:2] == [0, 0]
    values, indices = x.max(dim=1)
    assert values.tolist() == [low, low, torch.finfo(torch.float32).min, 3.0] and indices.tolist()[3] == 2
    assert (-x).min(dim=1).values.tolist()[:2] == [torch.inf] * 2 and (-x).argmin(dim=1).tolist()[3] == 2


FUNCTIONS = {
    "sum": lambda t: t.sum(dim=1), "mean": lambda t: t.mean(dim=1), "amax": lambda t: t.amax(dim=1), "amin": lambda t: t.amin(dim=1),
    "prod": lambda t: t.prod(dim=1), "softmax": lambda t: F.softmax(t, dim=1), "log_softmax": lambda t: F.log_softmax(t, dim=1),
    "padded": lambda t: t.to_padded_tensor(0.5), "layer_norm": lambda t: F.layer_norm(t, (4,)), "rms_norm": lambda t: F.rms_norm(t, (4,)),
    "broadcast": lambda t: t * torch.arange(1.0, 13.0, dtype=torch.float64).reshape(3, 1, 4), "gelu": lambda t: F.gelu(t * 2),
    "product": lambda t: torch.bmm(t, torch.linspace(-1, 1, 24, dtype=torch.float64).reshape(3, 4, 2)),
    "attention": lambda t: F.scaled_dot_product_attention(*[t.unflatten(-1, (2, 2)).transpose(1, 2)] * 3),
    "causal": lambda t: F.scaled_dot_product_attention(*[t.unflatten(-1, (2, 2)).transpose(1, 2)] * 3, is_causal=True),
    "parts": lambda t: torch.cat(t.chunk(2, -1)[::-1], -1) * t, "sequences": lambda t: torch.cat([s.sin() for s in t.unbind()]),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name):
    x = jagged(2, 1, 4)

    def on_values(values):
        result = FUNCTIONS[name](torch.nested.nested_tensor_from_jagged(values, x.offsets()))
        return result.values() if result.is_nested else result

    assert torch.autograd.gradcheck(on_values, (x.values().clone().requires_grad_(),))


def test_second_derivative_of_a_reduction():
    x = jagged(2, 0, 3)
    values = x.values().clone().requires_grad_()
    assert torch.autograd.gradgradcheck(
        lambda v: F.softmax(torch.nested.nested_tensor_from_jagged(v, x.offsets()), dim=1).values(), (values,)
    )


def test_leaf_and_hooks():
    x = jagged(2, 3).requires_grad_()
    seen = []
    assert x.is_leaf and x.requires_grad and x.grad is None and not x.detach().requires_grad
    x.register_hook(lambda g: seen.append(g.size(1) == x.size(1)))
    y = (x * 2).sin()
    y.retain_grad()
    y.values().sum().backward()
    assert seen == [True] and x.grad.is_nested and x.grad.size(1) == x.size(1) and y.grad is not None
    assert torch.autograd.grad((x * 3).sum(), x)[0].values().unique().tolist() == [3.0]
    copied = copy.deepcopy(x)
    assert copied.requires_grad and torch.equal(copied.values(), x.values())
    with pytest.raises(RuntimeError, match="leaf"):
        x.add_(1)


def test_in_place():
    x = jagged(2, 3)
    values = x._values
    before = values.clone()
    x.add_(1).mul_(2.0)
    x += x
    assert torch.equal(values, (before + 1) * 4)
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.nested.nested_tensor([[1, 2], [3]], layout=torch.jagged).add_(0.5)
    with pytest.raises(RuntimeError, match="sizes"):
        torch.nested.nested_tensor_from_jagged(torch.ones(5, 1), x.offsets()).add_(x.float())
    x[:, :, 1:] = 7.0
    x[1][0] = 3.0
    assert x[0][:, 1:].unique().tolist() == [7.0] and x[1][0].tolist() == [3.0] * 4


@pytest.mark.parametrize("layout", ["jagged", "strided"])
def test_transformer_layers(layout):
    torch.manual_seed(1)
    parts = [torch.randn(n, 8) for n in (3, 1, 5)]
    nested = torch.nested.nested_tensor(parts, layout=getattr(torch, layout))
    attention = nn.MultiheadAttention(8, 2, batch_first=True)
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), 2)
    for module in (lambda t: attention(t, t, t, need_weights=False)[0], encoder):
        for found, part in zip(module(nested).unbind(), parts, strict=True):
            torch.testing.assert_close(found, module(part[None])[0])
    encoder(nested).values().sum().backward()
    jagged_grad = encoder.layers[0].linear1.weight.grad.clone()
    encoder.zero_grad()
    sum(encoder(part[None]).sum() for part in parts).backward()
    torch.testing.assert_close(jagged_grad, encoder.layers[0].linear1.weight.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options, error", [
    ({}, "need_weights=True"), ({"need_weights": False, "key_padding_mask": True}, "key_padding_mask"),
    ({"need_weights": False, "attn_mask": True}, "attn_mask"),
])  # fmt: skip
def test_attention_layers_refuse_what_they_ignore(options, error):
    options = {k: torch.zeros(2, 2, dtype=torch.bool) if k.endswith("mask") else v for k, v in options.items()}
    nested = torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(1, 4)], layout=torch.jagged)
    with pytest.raises(NotImplementedError, match=error):
        nn.MultiheadAttention(4, 2, batch_first=True)(nested, nested, nested, **options)


@pytest.mark.parametrize("dtype, error", [("float16", 2e-3), ("bfloat16", 2e-2), ("float64", 1e-12)])
def test_attention_dtypes(dtype, error):
    heads = torch.nested.nested_tensor([torch.randn(n, 2, 8) for n in (3, 70, 1)], layout=torch.jagged).transpose(1, 2)
    low = heads.to(getattr(torch, dtype))
    result = F.scaled_dot_product_attention(low, low, low, is_causal=True)
    assert result.dtype is low.dtype
    for found, part in zip(result.unbind(), low.unbind(), strict=True):
        exact = F.scaled_dot_product_attention(*[part.double()] * 3, is_causal=True)
        assert (found.double() - exact).abs().max().item() < error


def test_long_sequences_of_attention():
    """More rows and columns than a block of the kernel has, also with keys of other lengths, and gradients."""
    query = torch.nested.nested_tensor([torch.randn(n, 1, 8) for n in (300, 5)], layout=torch.jagged).transpose(1, 2)
    key = torch.nested.nested_tensor([torch.randn(n, 1, 8) for n in (17, 520)], layout=torch.jagged).transpose(1, 2)
    leaves = [t.detach().requires_grad_() for t in (query, key)]
    result = F.scaled_dot_product_attention(leaves[0], leaves[1], leaves[1])
    grads = torch.autograd.grad(result.values().sin().sum(), leaves)
    for i in range(2):
        q, k = query[i].detach().requires_grad_(), key[i].detach().requires_grad_()
        alone = F.scaled_dot_product_attention(q, k, k)
        torch.testing.assert_close(result[i], alone, rtol=1e-4, atol=1e-5)
        for found, expected in zip(grads, torch.autograd.grad(alone.sin().sum(), [q, k]), strict=True):
            torch.testing.assert_close(found[i], expected, rtol=1e-4, atol=1e-5)


def test_compiled_functions_follow_other_offsets():
    compiled = torch.compile(lambda t: F.softmax(t * 2, dim=1).sum(dim=1))
    create = torch.compile(lambda v, o: torch.nested.nested_tensor_from_jagged(v, o).sin().sum(dim=1))
    for lengths in ((2, 3), (4, 1), (1, 1, 3)):
        x = jagged(*lengths)
        torch.testing.assert_close(compiled(x), F.softmax(x * 2, dim=1).sum(dim=1))
        torch.testing.assert_close(create(x.values(), x.offsets()), x.sin().sum(dim=1))


def test_autocast_is_that_of_the_values():
    x = jagged(2, 3).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert F.linear(x, torch.ones(2, 4)).dtype is torch.bfloat16
        assert F.softmax(x, dim=-1).dtype is torch.float32
        heads = x.unflatten(-1, (2, 2)).transpose(1, 2)
        assert F.scaled_dot_product_attention(heads, heads, heads).dtype is torch.bfloat16


def test_text():
    x = torch.nested.nested_tensor_from_jagged(torch.ones(3, 2), torch.tensor([0, 1, 3]))
    assert x.contiguous() is x and x.transpose(1, 2).contiguous().is_contiguous()
    assert repr(x) == f"NestedTensor(size=(2, {x.size(1)!r}, 2), offsets=tensor([0, 1, 3]), contiguous=True)"
    strided = torch.nested.nested_tensor([torch.ones(1, 2), torch.zeros(2, 2)])
    assert repr(strided) == "nested_tensor([\n  tensor([[1., 1.]]),\n  tensor([[0., 0.],\n          [0., 0.]])\n])"


@pytest.mark.parametrize("call, name", [
    (lambda t: torch.fft.fft(t), "fft_c2c"), (lambda t: torch.linalg.inv(t), "inv|lu"), (lambda t: t.tolist(), "unbind"),
    (lambda t: t.std(dim=1), "std"),
    (lambda t: F.scaled_dot_product_attention(*[t[..., None].transpose(1, 2)] * 3, attn_mask=torch.ones(1)), "attn_mask"),
])  # fmt: skip
def test_refused_operators_are_named(call, name):
    with pytest.raises((NotImplementedError, RuntimeError), match=name):
        call(jagged(2, 3))


def test_layouts_do_not_mix():
    x, y = jagged(2, 3), torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(3, 4)])
    for call in (lambda: x + y, lambda: y + x):
        with pytest.raises(RuntimeError, match="layout"):
            call()


def test_dense_tensors_cannot_be_padded():
    with pytest.raises(NotImplementedError, match="not nested"):
        torch.ones(2).to_padded_tensor(0.0)
    with pytest.raises(RuntimeError, match="nested tensor"):
        torch.nested.to_padded_tensor(torch.ones(2), 0.0)


def test_meta_tensors():
    x = torch.nested.nested_tensor_from_jagged(torch.ones(5, 4, device="meta"), torch.zeros(3, dtype=torch.int64, device="meta"))
    assert x.sin().sum(dim=1).shape == (2, 4) and x.device.type == "meta"


def test_files_of_pytorch():
    """peer.pt was written by PyTorch (record.py)."""
    loaded = torch.load(Path(__file__).with_name("peer.pt"))
    for _ in range(2):
        nested, strided, holes = loaded["jagged"], loaded["strided"], loaded["holes"]
        assert nested.requires_grad and nested.layout is torch.jagged and strided.layout is torch.strided
        assert [t.tolist() for t in nested.unbind()] == [[[0, 1, 2], [3, 4, 5]], [[1] * 3] * 4]
        assert [t.tolist() for t in strided.unbind()] == [[[0, 1, 2], [3, 4, 5]], [[1] * 4] * 3]
        assert [t.tolist() for t in holes.unbind()] == [[[0, 1], [2, 3]], [[8, 9]]] and not holes.is_contiguous()
        file = io.BytesIO()
        torch.save(loaded, file)
        file.seek(0)
        loaded = torch.load(file)


def vectors(*numbers):
    return torch.tensor(list(numbers), dtype=torch.int64)


@pytest.mark.parametrize("components", [
    lambda: 3, lambda: {"values": torch.ones(3)}, lambda: {"values": torch.ones(3), "offsets": torch.ones(2)},
    lambda: {"values": torch.ones(3), "offsets": vectors(0, 3), "_ragged_idx": 2}, lambda: {"values": 1, "offsets": vectors(0, 3)},
    lambda: {"values": torch.ones(3), "offsets": vectors(0, 3), "lengths": vectors(1, 1)},
    lambda: {"values": vectors(1, 2), "offsets": vectors(0, 2), "requires_grad": True},
    lambda: {"values": torch.ones(3), "offsets": vectors(0, 3), "more": 1},
])  # fmt: skip
def test_damaged_files(components):
    with pytest.raises(_errors.LoadError):
        _nested.rebuild_njt(components())


@pytest.mark.parametrize("sizes, strides, starts", [
    ([[2, 2]], [[2, 1]], [0]), ([[2, 3], [1, 1]], [[3, 1], [1, 1]], [0, 6]), ([[-2, -3]], [[3, 1]], [0]),
    ([[2**62, 4]], [[4, 1]], [0]), ([[2, 3]], [[3, 1]], [0, 1]),
])  # fmt: skip
def test_damaged_sizes(sizes, strides, starts):
    with pytest.raises(_errors.LoadError):
        _nested.rebuild_nested_tensor(torch.ones(6), torch.tensor(sizes), torch.tensor(strides), torch.tensor(starts))


def test_constituents_with_other_strides_are_refused():
    with pytest.raises(NotImplementedError, match="contiguous"):
        _nested.rebuild_nested_tensor(torch.ones(6), torch.tensor([[2, 3]]), torch.tensor([[1, 2]]), torch.tensor([0]))


def test_gradient_operators_check_dtypes():
    """The gradients' buffers have the operands' dtypes, and their loops the query's."""
    offsets, query, logsumexp = torch.tensor([0, 3, 5]), torch.ones(1, 5, 4, dtype=torch.float64), torch.zeros(1, 5, dtype=torch.float64)
    key = torch.ones(1, 5, 4, dtype=torch.uint8)
    with pytest.raises(RuntimeError, match="same dtype"):
        torch._C.ops.jagged_attention_backward(query, query, key, key, offsets, None, offsets, None, query, logsumexp, False, 1.0)
    dense, low = query.unsqueeze(0), key.unsqueeze(0)
    with pytest.raises(RuntimeError, match="same dtype"):
        torch._C.ops.attention_backward(dense, dense, low, low, None, dense, logsumexp.unsqueeze(0), False, 1.0)


def test_sequences_without_bytes_are_not_counted_one_by_one():
    count, ops = 2**60, torch._C.ops
    offsets = torch.tensor([0, count])
    assert ops.jagged_expand(torch.ones(1, 0), offsets, None, count).shape == (count, 0)
    assert ops.jagged_reduce(torch.ones(count, 0), offsets, None, "sum").shape == (1, 0)
    query, key = torch.ones(1, 1, 0), torch.ones(1, count, 0)
    with pytest.raises(RuntimeError, match="keys without elements"):
        ops.jagged_attention_forward(query, key, key, torch.tensor([0, 1]), None, offsets, None, False, 1.0)[0].sum().item()
    with pytest.raises(RuntimeError, match="keys without elements"):
        ops.attention_forward(query.unsqueeze(0), key.unsqueeze(0), key.unsqueeze(0), None, False, 1.0)[0].sum().item()


def _encoder(**options):
    torch.manual_seed(3)
    norm = nn.LayerNorm(8)
    norm.bias.data.fill_(0.5)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, **options)
    return nn.TransformerEncoder(layer, 2, norm=norm).eval()


@pytest.mark.parametrize("floating", [False, True])
def test_encoders_drop_padding_in_inference(floating):
    encoder, lengths = _encoder(), (5, 2, 0)
    source = torch.randn(3, 5, 8, generator=torch.Generator().manual_seed(4))
    padding = torch.arange(5) >= torch.tensor(lengths)[:, None]
    dirty = source.masked_fill(padding[..., None], float("nan"))  # is not read
    mask = padding.float() * -2.0 if floating else padding  # as in PyTorch, any number but 0 means padding
    with torch.no_grad():
        result = encoder(dirty, src_key_padding_mask=mask)
        for row, part, length in zip(result, source, lengths, strict=True):
            if length:
                torch.testing.assert_close(row[:length], encoder(part[None, :length])[0], rtol=1e-4, atol=1e-5)
            assert (row[length:] == 0.5).all()  # norm() of zeros


@pytest.mark.parametrize("case", ["training", "gradients", "holes", "norm_first", "mask", "disabled", "fastpath"])
def test_encoders_keep_padding_otherwise(case):
    encoder = _encoder(norm_first=case == "norm_first")
    encoder.train(case == "training")
    encoder.use_nested_tensor &= case != "disabled"
    padding = torch.tensor([[False, case == "holes", False, True]])
    mask = torch.zeros(4, 4) if case == "mask" else None
    torch.backends.mha.set_fastpath_enabled(case != "fastpath")
    try:
        with torch.set_grad_enabled(case == "gradients"):
            result = encoder(torch.ones(1, 4, 8), mask=mask, src_key_padding_mask=padding)
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
    assert not (result[0, 3] == 0.5).any()


def test_index_put_counts_sequences_from_the_end():
    x = jagged(2, 3, 1)
    x[torch.tensor([-2, 0]), torch.tensor([0, 1])] = 9.0
    assert [c[:, 0].eq(9.0).tolist() for c in x.unbind()] == [[False, True], [True, False, False], [False]]
    for batch, place in (([0], [-1]), ([0], [2]), ([2], [1])):
        with pytest.raises(RuntimeError, match="out of bounds"):
            x.index_put((torch.tensor(batch), torch.tensor(place)), torch.tensor(1.0, dtype=torch.float64))
    with pytest.raises(NotImplementedError, match="masks"):
        x[torch.tensor([True, False, True]), torch.tensor([0, 0])] = 1.0


def test_attention_refuses_masks_as_pytorch_does():
    query = jagged(2, 3).unflatten(-1, (2, 2)).transpose(1, 2)
    with pytest.raises(NotImplementedError, match="attn_mask"):
        F.scaled_dot_product_attention(query, query, query, attn_mask=torch.ones(3, 3, dtype=torch.bool), dropout_p=0.5)


def test_sums_of_long_sequences_are_accurate():
    x = torch.nested.nested_tensor([torch.full((1_000_000,), 0.1)], layout=torch.jagged)
    torch.testing.assert_close(x.sum(dim=1), torch.tensor([100000.0]))


def test_some_of_the_constituents_of_a_strided_tensor(torch):
    parts = [torch.ones(2, 3), torch.full((1, 4), 2.0), torch.full((2, 2), 3.0)]
    x = torch.nested.nested_tensor(parts, requires_grad=True)
    y = x.narrow(0, 1, 2)
    assert [t.tolist() for t in y.unbind()] == [t.tolist() for t in parts[1:]]
    (y * 2).values().sum().backward()
    assert [t.sum().item() for t in x.grad.unbind()] == [0, 8, 8]
    assert len(x.narrow(0, 1, 0)) == 0 and x.narrow(0, -1, 1)[0].tolist() == parts[2].tolist()
    for start, length, error in ((2, 2, RuntimeError), (5, 1, IndexError), (0, -1, RuntimeError)):
        with pytest.raises(error, match="start"):
            x.narrow(0, start, length)
    jagged = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)], layout=torch.jagged)
    chosen = torch.nested.narrow(jagged, 0, 1, 1)
    assert chosen.layout == torch.strided and chosen[0].tolist() == [[1, 1, 1]]


def test_reshaping_like_another_strided_tensor(torch):
    x = torch.nested.nested_tensor([torch.arange(6.0).reshape(2, 3), torch.arange(4.0).reshape(1, 4)])
    like = torch.nested.nested_tensor([torch.zeros(6, 1), torch.zeros(2, 2)])
    assert [t.tolist() for t in x.reshape_as(like).unbind()] == [[[0], [1], [2], [3], [4], [5]], [[0, 1], [2, 3]]]
    with pytest.raises(RuntimeError, match="as many elements"):
        x.reshape_as(torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)]))
