"""call_for_per_sample_grads: the gradient of each sample's loss, as a loop over samples computes it."""

from __future__ import annotations

import pytest

import teletensor as torch
from teletensor import nn
from teletensor.nn.utils._per_sample_grad import call_for_per_sample_grads


class _Tied(nn.Module):
    """A layer that is used twice, and reads the batch size."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.last = nn.Linear(4, 4), nn.Linear(4, 2)
        self.last.bias.requires_grad_(False)

    def forward(self, x: torch.Tensor, scale: torch.Tensor | None = None) -> torch.Tensor:
        x = self.layer(self.layer(x).relu()).view(x.shape[0], -1)
        return self.last(x if scale is None else x * scale)


# By name: a module and the sizes of a sample.
MODULES = {
    "linear": (lambda: nn.Linear(4, 3), (4,)),
    "linear of sequences": (lambda: nn.Linear(4, 3), (5, 4)),
    "convolution": (
        lambda: nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2)), (2, 4, 4)
    ),
    "layer norm": (lambda: nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 1)), (6,)),
    "tied": (_Tied, (4,)),
}  # fmt: skip


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("name", MODULES)
def test_equal_to_a_loop(name: str, reduction: str) -> None:
    torch.manual_seed(0)
    make, sizes = MODULES[name]
    module, x = make(), torch.randn(6, *sizes, requires_grad=True)
    result = call_for_per_sample_grads(module, loss_reduction=reduction)(x)
    torch.testing.assert_close(result, module(x))
    loss = (result**2).flatten(1).sum(1)
    (loss.sum() if reduction == "sum" else loss.mean()).backward()
    trainable = [p for p in module.parameters() if p.requires_grad]
    for i in range(6):
        expected = torch.autograd.grad((module(x[i : i + 1]) ** 2).sum(), trainable)
        for p, gradient in zip(trainable, expected, strict=True):
            assert p.grad is None and p.grad_sample.shape == (6, *p.shape)
            torch.testing.assert_close(p.grad_sample[i], gradient, rtol=1e-4, atol=1e-5)
    assert x.grad.shape == x.shape
    assert all(not hasattr(p, "grad_sample") for p in module.parameters() if not p.requires_grad)
    with pytest.raises(RuntimeError, match="clear out the grad_sample"):
        call_for_per_sample_grads(module)


def test_indices_other_arguments_and_a_batch_in_the_second_dimension() -> None:
    embedding, indices = nn.Embedding(5, 3), torch.tensor([[0, 1], [1, 1], [4, 0]])
    call_for_per_sample_grads(embedding)(indices).sum().backward()
    counts = torch.tensor([[1.0, 1, 0, 0, 0], [0, 2, 0, 0, 0], [1, 0, 0, 0, 1]])
    assert torch.equal(embedding.weight.grad_sample, counts[..., None].expand(3, 5, 3))
    module, x, scale = _Tied(), torch.randn(3, 4), torch.randn(4)
    call_for_per_sample_grads(module, batch_size=3)(x, scale=scale).sum().backward()  # scale is every sample's
    assert module.layer.weight.grad_sample.shape == (3, 4, 4)
    linear, sequences = nn.Linear(2, 2), torch.randn(7, 3, 2)
    result = call_for_per_sample_grads(linear, batch_first=False)(sequences)
    torch.testing.assert_close(result, linear(sequences))
    result.sum().backward()
    torch.testing.assert_close(linear.weight.grad_sample, sequences.sum(0)[:, None].expand(3, 2, 2))


def test_two_calls_before_a_pass_are_added() -> None:
    linear, a, b = nn.Linear(2, 1, bias=False), torch.randn(3, 2), torch.randn(3, 2)
    call = call_for_per_sample_grads(linear)
    (call(a).sum() + call(b).sum()).backward()
    torch.testing.assert_close(linear.weight.grad_sample, (a + b)[:, None])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"module": 3}, "Module passed must be nn.Module, got int"),
        ({"batch_size": "4"}, "must be None or an integer, got str"),
        ({"batch_size": 0}, "must be positive, got 0"),
        ({"loss_reduction": ""}, "Expected loss_reduction argument to be sum or mean"),
    ],
)
def test_invalid_arguments(arguments: dict, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        call_for_per_sample_grads(**{"module": nn.Linear(2, 2), **arguments})


def test_the_batch_size_of_the_arguments() -> None:
    bilinear = nn.Bilinear(2, 2, 2)
    with pytest.raises(RuntimeError, match="one input with batch size 3 and one with batch size 4"):
        call_for_per_sample_grads(bilinear)(torch.ones(4, 2), torch.ones(3, 2))
    with pytest.raises(RuntimeError, match="Unable to find a tensor"):
        call_for_per_sample_grads(bilinear)(1, 2)
    with pytest.raises(RuntimeError, match="got input batch size of 4 with ExpandedWeight of batch size 3"):
        call_for_per_sample_grads(nn.Linear(3, 2), batch_size=3)(torch.ones(4, 3))


def test_results_that_are_no_tensors() -> None:
    class Results(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 3)

        def forward(self, x: torch.Tensor) -> tuple:
            y = self.layer(x)
            return y, {"twice": y * 2}, 5, None, "text"

    module, x = Results(), torch.randn(4, 2)
    y, twice, *rest = call_for_per_sample_grads(module)(x)
    assert y.shape == (4, 3) and torch.equal(twice["twice"], y * 2) and rest == [5, None, "text"]
    (y.sum() + twice["twice"].sum()).backward()
    assert torch.equal(module.layer.bias.grad_sample, torch.full((4, 3), 3.0))
