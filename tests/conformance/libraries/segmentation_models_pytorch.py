"""segmentation_models_pytorch: networks that segment images, losses, metrics and their training."""

import segmentation_models_pytorch as smp
import torch

from .tools import backward, fill, integers, randn, train

ARCHITECTURES = (
    "unet",
    "unetplusplus",
    "manet",
    "linknet",
    "fpn",
    "pspnet",
    "deeplabv3",
    "deeplabv3plus",
    "pan",
    "upernet",
    "segformer",
    "dpt",
)
ENCODERS = (
    "resnet18",
    "mobilenet_v2",
    "efficientnet-b0",
    "mit_b0",
    "timm-mobilenetv3_small_075",
    "tu-resnet10t",
)
LOSSES = {
    "dice": lambda: smp.losses.DiceLoss("multiclass"),
    "jaccard": lambda: smp.losses.JaccardLoss("multiclass"),
    "tversky": lambda: smp.losses.TverskyLoss("multiclass", alpha=0.3, beta=0.7),
    "focal": lambda: smp.losses.FocalLoss("multiclass"),
    "lovasz": lambda: smp.losses.LovaszLoss("multiclass"),
    "cross entropy": lambda: smp.losses.SoftCrossEntropyLoss(smooth_factor=0.1),
}


def _model(architecture="unet", encoder="resnet18", **options):
    return fill(smp.create_model(architecture, encoder, encoder_weights=None, in_channels=3, classes=3, **options))


def architectures_forward():
    found = {}
    with torch.no_grad():
        for name in ARCHITECTURES:
            encoder = "tu-vit_tiny_patch16_224" if name == "dpt" else "resnet18"
            size = {"dpt": 224, "pan": 128}.get(name, 64)
            found[name] = _model(name, encoder).eval()(randn(1, 3, size, size))
    return found


def encoders_forward():
    with torch.no_grad():
        return {name: _model(encoder=name).eval()(randn(1, 3, 64, 64)) for name in ENCODERS}


def classes_forward():
    model = _model(
        aux_params={"classes": 4, "pooling": "avg", "activation": "sigmoid"}, decoder_attention_type="scse"
    ).eval()
    with torch.no_grad():
        return list(model(randn(2, 3, 64, 64)))


def model_backward():
    model = _model("fpn").eval()  # with dropout
    return backward(model, smp.losses.DiceLoss("multiclass")(model(randn(2, 3, 64, 64)), integers(3, 2, 64, 64)))


def losses_backward():
    found = {}
    for name, make in LOSSES.items():
        x = randn(2, 3, 8, 8).requires_grad_()
        value = make()(x, integers(3, 2, 8, 8))
        value.backward()
        found[name] = [value, x.grad]
    return found


def metrics_other():
    scores = smp.metrics.get_stats(integers(3, 4, 8, 8), integers(3, 4, 8, 8, seed=1), mode="multiclass", num_classes=3)
    functions = (smp.metrics.iou_score, smp.metrics.f1_score, smp.metrics.accuracy, smp.metrics.recall)
    return [*scores, *(f(*scores, reduction=kind) for f in functions for kind in ("micro", "macro", "micro-imagewise"))]


def saved_other():
    import tempfile

    model = _model().eval()
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        again = smp.from_pretrained(folder).eval()
    with torch.no_grad():
        return again(randn(1, 3, 64, 64))


def unet_training():
    model, x, target = _model(), randn(2, 3, 64, 64), integers(3, 2, 64, 64)
    loss = smp.losses.JaccardLoss("multiclass")
    return train(model, lambda: loss(model(x), target), steps=3)
