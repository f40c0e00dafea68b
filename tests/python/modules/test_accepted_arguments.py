"""Arguments of losses, embeddings, packed sequences and transforms that PyTorch accepts or rejects."""

import pytest

import teletensor as torch
from teletensor import nn
from teletensor.nn import functional as F  # noqa: N812 - PyTorch's name


def test_lengths_are_integers():
    log_probs, targets = torch.randn(5, 1, 4).log_softmax(2), torch.tensor([[1, 2]])
    assert F.ctc_loss(log_probs, targets, torch.tensor([5]), torch.tensor([2])).shape == ()
    for lengths, name in (((torch.tensor([5.0]), torch.tensor([2])), "input"), ((torch.tensor([5]), torch.tensor([2.5])), "target")):
        with pytest.raises(RuntimeError, match=f"{name}_lengths must be integral"):
            F.ctc_loss(log_probs, targets, *lengths)


@pytest.mark.parametrize("sizes", [((15, 10), (15, 10), (15, 1)), ((10,), (10,), (10,)), ((2, 5), (2, 5), ()), ((0, 0), (0,), (0,))])
def test_sizes_of_cosine_embedding_loss(sizes):
    with pytest.raises(RuntimeError, match="target"):
        F.cosine_embedding_loss(*map(torch.ones, sizes))


@pytest.mark.parametrize("dims", [3, 6])
def test_dropout3d_warns_of_other_dimensions(dims):
    with pytest.warns(UserWarning, match=f"{dims}-D input to dropout3d"):
        assert nn.Dropout3d()(torch.ones(dims * [2])).dim() == dims


def test_layer_norm_over_no_dimensions():
    norm = nn.LayerNorm([])
    assert norm.weight.shape == norm.bias.shape == ()
    with pytest.raises(RuntimeError, match="at least 1"):
        norm(torch.ones(2))


def test_sizes_of_multi_margin_loss():
    x = torch.randn(5)
    assert F.multi_margin_loss(x, torch.tensor([1]), reduction="none").shape == (1,)
    assert F.multi_margin_loss(x, torch.tensor(1), reduction="none").shape == ()


def test_tables_of_integers_and_names():
    table = nn.Embedding.from_pretrained(torch.arange(6).reshape(3, 2))
    assert not table.weight.requires_grad and table(torch.tensor([1])).tolist() == [[2, 3]]
    assert callable(nn.grad.conv2d_input)


def test_casts_of_packed_sequences():
    packed = nn.utils.rnn.pack_padded_sequence(torch.ones(3, 2, 1), [3, 2])
    for name, dtype in (
        ("half", torch.float16), ("long", torch.int64), ("int", torch.int32), ("short", torch.int16), ("char", torch.int8),
        ("byte", torch.uint8),
    ):  # fmt: skip
        assert getattr(packed, name)().data.dtype == dtype
    assert packed.to("cpu") is packed.cpu() is packed and packed.is_pinned() is False


def test_jacobians_that_are_refused():
    with pytest.raises(RuntimeError, match="real outputs"):
        torch.func.jacrev(lambda a: a * 1j)(torch.ones(2))
    with pytest.raises(ValueError, match="chunk_size"):
        torch.func.jacrev(torch.sin, chunk_size=0)


def test_permutations_beyond_a_dtype_and_a_tensor_as_its_gradient():
    for n, dtype in ((257, torch.uint8), (2050, torch.float16), (300, torch.bfloat16), (2**24 + 2, torch.float32)):
        with pytest.raises(RuntimeError, match="n is too large for result tensor type"):
            torch.randperm(n, dtype=dtype).sum().item()
    assert torch.randperm(256, dtype=torch.uint8).sort().values.tolist() == list(range(256))
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="can't assign Variable as its own grad"):
        x.grad = x


def test_sizes_of_attention():
    layer, q = nn.MultiheadAttention(4, 2), torch.ones(3, 2, 4)
    zeros = torch.zeros
    for mask in (zeros(2, 3, 3), zeros(1, 3, 3), zeros(3, 2)):
        with pytest.raises(RuntimeError, match=f"The shape of the {mask.dim()}D attn_mask"):
            layer(q, q, q, attn_mask=mask)
    for args, masks in (
        ((q[0], q, q), {}), ((q[None], q, q), {}), ((q, q[:2], q), {}), ((q, q, q), {"key_padding_mask": zeros(3, 3)}),
        ((q, q, q), {"key_padding_mask": zeros(3)}), ((q, q, q), {"attn_mask": zeros(3)}),
    ):  # fmt: skip
        with pytest.raises(AssertionError):
            layer(*args, **masks)
    assert layer(q, q, q, attn_mask=zeros(4, 3, 3))[0].shape == q.shape
    assert layer(q[0], q[0], q[0], attn_mask=zeros(2, 2, 2))[0].shape == (2, 4)
    bias, static = torch.ones(1, 1, 4), torch.ones(4, 3, 2)
    with pytest.raises(AssertionError, match="bias cannot be added to static key"):
        F.multi_head_attention_forward(
            q, q, q, 4, 2, torch.ones(12, 4), None, bias, bias, False, 0.0, torch.ones(4, 4), None, static_k=static, static_v=static
        )


def test_the_warning_of_an_epoch_has_a_name():
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    optimizer.step()
    with pytest.warns(UserWarning) as warned:
        scheduler.step(2)
    assert [str(w.message) for w in warned] == [torch.optim.lr_scheduler.EPOCH_DEPRECATION_WARNING]
