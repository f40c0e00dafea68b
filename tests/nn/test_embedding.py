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


def test_embedding_bag_with_invalid_arguments(torch):
    weight, indices, offsets = torch.arange(12.0).reshape(4, 3), torch.tensor([1, 2, 0, 3]), torch.tensor([0, 2])
    ones = torch.ones(4)
    for arguments, options, error, message in [
        ((indices, weight), {}, ValueError, "offsets has to be a 1D Tensor but got None"),
        ((indices, weight, offsets.reshape(1, 2)), {}, ValueError, "offsets has to be a 1D Tensor"),
        ((indices.reshape(1, 2, 2), weight), {}, ValueError, "input has to be 1D or 2D Tensor, but got Tensor of dimension 3"),
        ((indices, weight, offsets[:0]), {"include_last_offset": True}, RuntimeError, "number of offset should be at least 1"),
        ((indices.reshape(2, 2), weight), {"mode": "sum", "per_sample_weights": ones}, ValueError, "must have the same shape"),
        ((indices, weight, offsets), {"mode": "sum", "per_sample_weights": ones.double()}, RuntimeError, "float64"),
        ((indices, weight, offsets), {"padding_idx": 4}, RuntimeError, "-4 through 3, but got 4"),
        ((indices, weight, offsets), {"mode": "max", "scale_grad_by_freq": True}, ValueError, "max mode does not support"),
        ((indices, weight, torch.tensor([0, 9])), {}, IndexError, "got 9"),
        ((indices, weight, torch.tensor([1, 2])), {}, IndexError, "got -1"),
    ]:
        with pytest.raises(error, match=message):
            torch.nn.functional.embedding_bag(*arguments, **options).tolist()


@pytest.mark.parametrize("mode, expected", [("sum", [3.0, 2.0]), ("mean", [1.5, 2.0]), ("max", [2.0, 2.0])])
def test_embedding_bag_drops_indices_after_the_last_offset(torch, mode, expected):
    weight, indices = torch.arange(4.0).reshape(4, 1), torch.tensor([1, 2, 2, 3])
    bags = torch.nn.functional.embedding_bag(indices, weight, torch.tensor([0, 2, 3]), mode=mode, include_last_offset=True)
    assert bags.flatten().tolist() == expected


def test_embedding_bag_counts_exactly_in_half_precision(torch):
    indices, weight = torch.arange(1000).remainder(2).reshape(1, -1), torch.tensor([[0.0], [1.0]], dtype=torch.bfloat16)
    total = torch.nn.functional.embedding_bag(indices, weight, mode="sum")
    assert torch.nn.functional.embedding_bag(indices, weight, mode="mean").item() == (total / 1000).item()


def test_embedding_bag_keeps_a_maximum_of_minus_infinity(torch):
    weight, indices = torch.tensor([[-float("inf")], [5.0]]), torch.tensor([[0, 1], [1, 1]])
    assert torch.nn.functional.embedding_bag(indices, weight, mode="max", padding_idx=1).tolist() == [[-float("inf")], [0.0]]
