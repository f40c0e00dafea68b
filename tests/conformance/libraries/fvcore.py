"""fvcore: counts of operations, activations and parameters; layers, losses and weight initialisations."""

import torch
from fvcore import nn as layers
from fvcore.common import param_scheduler as schedulers
from fvcore.nn import ActivationCountAnalysis, FlopCountAnalysis, flop_count_table, parameter_count
from fvcore.nn.precise_bn import get_bn_modules, update_bn_stats
from fvcore.nn.weight_init import c2_msra_fill, c2_xavier_fill

from .tools import fill, randn, train


def _model():
    return fill(
        torch.nn.Sequential(
            torch.nn.Conv2d(3, 6, 3, padding=1), torch.nn.BatchNorm2d(6), torch.nn.ReLU(), torch.nn.AvgPool2d(2),
            torch.nn.Conv2d(6, 6, 3, groups=2, bias=False), torch.nn.Flatten(), torch.nn.Linear(24, 5),
        )
    )  # fmt: skip


def flops_other():
    flops = FlopCountAnalysis(_model(), randn(2, 3, 8, 8)).unsupported_ops_warnings(False)
    return [flops.total(), dict(flops.by_operator()), dict(flops.by_module()), dict(flops.unsupported_ops())]


def attention_flops_other():
    layer = fill(torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True))
    flops = FlopCountAnalysis(layer.train(), randn(2, 5, 8)).unsupported_ops_warnings(False)
    return dict(flops.by_module())["linear1"], dict(flops.by_module())["linear2"]


def activations_other():
    counts = ActivationCountAnalysis(_model(), randn(2, 3, 8, 8)).unsupported_ops_warnings(False)
    return [counts.total(), dict(counts.by_module())]


def table_other():
    model = _model()
    flops = FlopCountAnalysis(model, randn(2, 3, 8, 8)).unsupported_ops_warnings(False).uncalled_modules_warnings(False)
    return [dict(parameter_count(model)), flop_count_table(flops)]


def schedules_other():
    parts = [schedulers.LinearParamScheduler(0.1, 1), schedulers.CosineParamScheduler(1, 0.2), schedulers.ConstantParamScheduler(0.2)]
    schedule = schedulers.CompositeParamScheduler(parts, [0.2, 0.5, 0.3], ["rescaled", "rescaled", "fixed"])
    return [schedule(step / 10) for step in range(10)]


def initialisations_other():
    found = []
    for initialise in (c2_msra_fill, c2_xavier_fill):
        layer = torch.nn.Conv2d(16, 64, 3)
        initialise(layer)
        found.append([bool((layer.bias == 0).all()), 0.5 < layer.weight.std().item() * 12 < 2.5])
    return found


def losses_forward():
    x, target = randn(4, 5), (randn(4, 5, seed=1) > 0).float()
    boxes = torch.tensor([[0.0, 0, 2, 2], [1, 1, 4, 3]])
    moved = boxes + torch.tensor([0.5, 0.25, 1, 0.5])
    return [
        layers.sigmoid_focal_loss(x, target, 0.25, 2, "mean"), layers.sigmoid_focal_loss(x, target, reduction="none"),
        layers.smooth_l1_loss(x, target, 0.5, "sum"), layers.giou_loss(boxes, moved, "none"),
    ]  # fmt: skip


def losses_backward():
    x = randn(4, 5).requires_grad_()
    layers.sigmoid_focal_loss(x, (randn(4, 5, seed=1) > 0).float(), 0.25, 2, "sum").backward()
    return x.grad


def precise_statistics_other():
    model = _model().train()
    update_bn_stats(model, [randn(4, 3, 8, 8, seed=seed) for seed in range(5)], 5)
    return [[norm.running_mean, norm.running_var] for norm in get_bn_modules(model)]


def layers_training():
    model, x = _model(), randn(4, 3, 8, 8)
    model[2] = layers.Swish() if hasattr(layers, "Swish") else torch.nn.SiLU()
    return train(model, lambda: model(x).square().mean())
