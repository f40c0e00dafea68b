"""Sparse gradients of embeddings and optimizers, against PyTorch's results (training.json, made by record_training.py)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import teletensor as torch

from . import training
from .test_layouts import _close

pytestmark = pytest.mark.usefixtures("device")  # on the CPU and on a GPU
WANTED = json.loads(Path(__file__).with_name("training.json").read_text())


def _texts(value):
    if isinstance(value, dict):
        return {k: _texts(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_texts(v) for v in value]
    return str(value) if isinstance(value, float) else value


@pytest.mark.parametrize("part", WANTED)
def test_results_are_those_of_pytorch(part: str) -> None:
    got, want = _texts(getattr(training, part)(torch)), _texts(WANTED[part])
    if isinstance(want, dict):
        wrong = [f"{k}\n  expected {want[k]}\n  got {got.get(k)}" for k in want if not _close(want[k], got.get(k))]
        assert not wrong, "\n".join(wrong)
    else:
        assert _close(want, got)


def test_training_is_that_of_strided_gradients() -> None:
    index = torch.tensor([[0, 3, 3], [1, 0, 2]])
    weights = []
    for sparse in (False, True):
        module = torch.nn.EmbeddingBag(6, 4, mode="sum", sparse=sparse, _weight=torch.arange(24.0).reshape(6, 4) / 10)
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            module(index).square().sum().backward()
            assert module.weight.grad.is_sparse == sparse
            optimizer.step()
        weights.append(module.weight.detach())
    torch.testing.assert_close(*weights)


def test_state_of_sparse_adam_can_be_saved() -> None:
    weight = torch.ones(4, 2, requires_grad=True)
    optimizer = torch.optim.SparseAdam([weight], lr=0.1)
    torch.nn.functional.embedding(torch.tensor([1]), weight, sparse=True).sum().backward()
    optimizer.step()
    other = torch.optim.SparseAdam([weight.detach().clone().requires_grad_()], lr=0.1)
    other.load_state_dict(optimizer.state_dict())
    assert other.state_dict()["state"][0]["step"] == 1
    torch.testing.assert_close(other.state_dict()["state"][0]["exp_avg"], optimizer.state[weight]["exp_avg"])


def test_refusals() -> None:
    weight = torch.ones(4, 2, requires_grad=True)
    index = torch.tensor([1, 1])
    with pytest.raises(RuntimeError, match="scale_grad_by_freq not supported with sparse gradients"):
        torch.nn.functional.embedding(index, weight, scale_grad_by_freq=True, sparse=True)
    out = torch.nn.functional.embedding(index, weight, sparse=True).sum()
    with pytest.raises(RuntimeError, match="expects sparse=False"):
        out.backward(create_graph=True)


def test_gradient_of_a_weight_that_is_no_leaf_is_strided() -> None:
    leaf = torch.ones(4, 2, requires_grad=True)
    torch.nn.functional.embedding(torch.tensor([1, 1]), leaf * 2, sparse=True).sum().backward()
    assert leaf.grad.tolist() == [[0, 0], [4, 4], [0, 0], [0, 0]]
