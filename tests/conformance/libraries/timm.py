"""timm: models of several families, optimizers, schedules, losses and layers."""

import timm
import torch
from timm.loss import LabelSmoothingCrossEntropy, SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import ModelEmaV3

from .tools import backward, fill, integers, randn, train

MODELS = {
    "resnet18": {},
    "convnext_atto": {},
    "vit_tiny_patch16_224": {"img_size": 32},
    "mobilenetv3_small_050": {},
    "efficientnet_lite0": {},
    "regnetx_002": {},
    "densenet121": {},
    "mixer_s32_224": {"img_size": 64},
    "swin_tiny_patch4_window7_224": {"img_size": 56, "embed_dim": 24, "depths": (1, 1), "num_heads": (2, 4)},
}


def _model(name, **options):
    return fill(timm.create_model(name, num_classes=7, **MODELS[name], **options))


def _image(name, count=2):
    return randn(count, 3, MODELS[name].get("img_size", 64), MODELS[name].get("img_size", 64))


def _both(name):
    model = _model(name)
    evaluated = model.eval()(_image(name))
    return [evaluated, model.forward_features(_image(name))]


def resnet_forward():
    return _both("resnet18")


def convnext_forward():
    return _both("convnext_atto")


def vit_forward():
    return _both("vit_tiny_patch16_224")


def mobilenet_forward():
    return _both("mobilenetv3_small_050")


def efficientnet_forward():
    return _both("efficientnet_lite0")


def regnet_forward():
    return _both("regnetx_002")


def densenet_forward():
    return _both("densenet121")


def mixer_forward():
    return _both("mixer_s32_224")


def swin_forward():
    return _both("swin_tiny_patch4_window7_224")


def resnet_backward():
    model = _model("resnet18")
    return backward(model, LabelSmoothingCrossEntropy(0.1)(model(_image("resnet18", 4)), integers(7, 4)))


def vit_backward():
    model = _model("vit_tiny_patch16_224")
    return backward(model, SoftTargetCrossEntropy()(model(_image("vit_tiny_patch16_224", 4)), randn(4, 7).softmax(1)))


def features_forward():
    model = fill(timm.create_model("resnet18", features_only=True, out_indices=(1, 3))).eval()
    return [model(randn(1, 3, 64, 64)), model.feature_info.channels()]


def _trained(optimizer_name, **options):
    torch.manual_seed(0)
    model = fill(
        torch.nn.Sequential(
            torch.nn.Conv2d(3, 4, 3),
            timm.layers.LayerNorm2d(4),
            torch.nn.GELU(),
            torch.nn.Flatten(),
            torch.nn.Linear(144, 3),
        )
    )
    optimizer = create_optimizer_v2(model, opt=optimizer_name, lr=0.01, weight_decay=0.05, **options)
    schedule = CosineLRScheduler(optimizer, t_initial=5, warmup_t=2, warmup_lr_init=1e-3)
    averaged, step = ModelEmaV3(model, decay=0.9), iter(range(100))

    def loss():
        schedule.step(next(step))
        averaged.update(model)
        return torch.nn.functional.cross_entropy(model(randn(4, 3, 8, 8)), torch.tensor([0, 1, 2, 1]))

    return [*train(model, loss, optimizer, 4), dict(averaged.module.state_dict())]


def sgd_training():
    return _trained("sgd", momentum=0.9)


def adamw_training():
    return _trained("adamw", eps=1e-4)


def lamb_training():
    return _trained("lamb")


def lion_training():
    return _trained("lion")


def adafactor_training():
    return _trained("adafactor")


def madgrad_training():
    return _trained("madgrad")


def nadamw_training():
    return _trained("nadamw", eps=1e-4)


def vit_training():
    model = _model("vit_tiny_patch16_224", depth=2, embed_dim=48, num_heads=3)
    return train(
        model,
        lambda: torch.nn.functional.cross_entropy(model(_image("vit_tiny_patch16_224", 4)), integers(7, 4)),
        steps=3,
    )


def layers_other():
    from timm.layers import AttentionPoolLatent, DropPath, PatchEmbed, RotaryEmbeddingCat, resample_abs_pos_embed

    x = randn(2, 16, 24)
    return [
        DropPath(0.5).eval()(x),
        fill(PatchEmbed(16, 4, 3, 8))(randn(2, 3, 16, 16)),
        resample_abs_pos_embed(randn(1, 17, 8), [6, 6]),
        RotaryEmbeddingCat(16, feat_shape=[4, 4]).get_embed(),
        fill(AttentionPoolLatent(24, num_heads=4))(x),
        sorted(timm.list_models("resnet1*"))[:3],
    ]
