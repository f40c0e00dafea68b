"""LinearCrossEntropyLoss: values and gradients, whole and in parts of the batch."""

from ..names.record import error
from .hooks_cases import filled, values


def case_linear_cross_entropy(torch):
    nn, results = torch.nn, []
    options = [None, {}, {"batch_chunk_size": 2}, {"chunking_method": "aspect_ratio:2"}]
    for given in options:
        for reduction in ("mean", "sum", "none"):
            for extra in ({}, {"ignore_index": 1}, {"weight": values(torch, 4) + 1.5, "bias": True}):
                made = None if given is None else nn.LinearCrossEntropyOptions(allow_retain_graph=True, **given)
                loss = filled(torch, nn.LinearCrossEntropyLoss(3, 4, reduction=reduction, options=made, **extra))
                x = values(torch, 5, 3).requires_grad_()
                value = loss(x, torch.tensor([0, 1, 3, 2, 1]))
                value.sum().backward()
                results.append([value, x.grad, [p.grad for p in loss.parameters()]])
    many = filled(torch, nn.LinearCrossEntropyLoss(3, 4, out_features=(2,), label_smoothing=0.1))
    results.append(many(values(torch, 2, 3), torch.tensor([[0, 3], [2, 1]])))
    probabilities = filled(torch, nn.LinearCrossEntropyLoss(3, 4, options=nn.LinearCrossEntropyOptions(batch_chunk_size=2)))
    results.append(probabilities(values(torch, 5, 3), values(torch, 5, 4).abs()))
    return results


def case_linear_cross_entropy_errors(torch):
    nn = torch.nn
    make = nn.LinearCrossEntropyLoss
    return [
        error(make, 3, 4, weight=torch.ones(3)), error(make, 3, 4, label_smoothing=2.0),
        error(make(3, 4), torch.ones(2, 2, 3), torch.tensor([0, 1])), error(make(3, 4), torch.ones(2, 5), torch.tensor([0, 1])),
        error(make(3, 4, out_features=(2,)), torch.ones(3), torch.tensor([0, 1])),
        error(make(3, 4, ignore_index=1), torch.ones(2, 3), torch.ones(2, 4)),
        error(nn.LinearCrossEntropyOptions, chunking_method="all"), error(nn.LinearCrossEntropyOptions, batch_chunk_size=0),
        error(nn.LinearCrossEntropyOptions, acc_policy="none"), repr(make(3, 4, bias=True)),
    ]  # fmt: skip


def case_shapes(torch):
    """Variances per column, a divergence without a batch, and pooling at the positions of given samples."""
    nn, x = torch.nn, values(torch, 4, 3)
    samples = values(torch, 2, 2, 3).abs()
    pool = nn.FractionalMaxPool3d((2, 2, 1), output_size=(3, 4, 2), _random_samples=samples)
    flat = nn.FractionalMaxPool2d(2, output_size=(3, 4), _random_samples=samples[..., :2])
    return [
        nn.GaussianNLLLoss()(x, x * 2, values(torch, 1, 3).abs() + 1), nn.GaussianNLLLoss()(x, x * 2, values(torch, 4).abs() + 1),
        error(nn.GaussianNLLLoss(), x, x, torch.ones(1, 2)), nn.KLDivLoss(reduction="batchmean")(torch.tensor(0.5), torch.tensor(0.2)),
        pool(values(torch, 2, 2, 7, 6, 5)), pool(values(torch, 2, 7, 6, 5)), flat(values(torch, 2, 2, 6, 7)),
    ]  # fmt: skip
