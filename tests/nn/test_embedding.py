"""Embedding and EmbeddingBag."""

import numpy as np
import pytest

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)


def table(torch, kind, **kwargs):
    return getattr(torch.nn, kind).from_pretrained(torch.from_numpy(ROWS), **kwargs)


def test_rows_by_index(torch):
    found = table(torch, "Embedding")(torch.tensor([[3, 0], [1, 1]]))
    assert np.array_equal(found.numpy(), ROWS[[[3, 0], [1, 1]]])


@pytest.mark.parametrize("mode, expected", [("sum", ROWS[1] + ROWS[2]), ("mean", (ROWS[1] + ROWS[2]) / 2), ("max", ROWS[2])])
def test_bags(torch, mode, expected):
    bag = table(torch, "EmbeddingBag", mode=mode)
    assert np.array_equal(bag(torch.tensor([3, 1, 2]), torch.tensor([0, 1])).numpy(), np.stack([ROWS[3], expected]))


@pytest.mark.parametrize("kind", ["Embedding", "EmbeddingBag"])
def test_padding_row_is_zero_and_may_be_negative(torch, kind):
    made = getattr(torch.nn, kind)(4, 3, padding_idx=-1)
    assert made.padding_idx == 3
    values = made.weight.detach().numpy()
    assert (values[3] == 0).all() and (values[:3] != 0).any()


@pytest.mark.parametrize("kind", ["Embedding", "EmbeddingBag"])
def test_from_pretrained_is_trained_only_if_requested(torch, kind):
    assert not table(torch, kind).weight.requires_grad
    assert table(torch, kind, freeze=False).weight.requires_grad


@pytest.mark.parametrize("kind", ["Embedding", "EmbeddingBag"])
def test_invalid_embedding_weights_are_rejected(torch, kind):
    with pytest.raises(AssertionError, match="within num_embeddings"):
        getattr(torch.nn, kind)(4, 3, padding_idx=4)
    with pytest.raises(AssertionError, match="Shape of weight"):
        getattr(torch.nn, kind)(5, 3, _weight=torch.from_numpy(ROWS))


def test_from_pretrained_arguments_in_pytorchs_order(torch):
    assert torch.nn.Embedding.from_pretrained(torch.from_numpy(ROWS), True, 2).padding_idx == 2
    assert torch.nn.EmbeddingBag.from_pretrained(torch.from_numpy(ROWS), True, None, 2.0, False, "sum").mode == "sum"
