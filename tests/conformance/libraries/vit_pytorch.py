"""vit_pytorch: vision transformers of several papers, their attention, and distillation."""

import importlib

import torch
from vit_pytorch import SimpleViT, ViT
from vit_pytorch.distill import DistillableViT, DistillWrapper
from vit_pytorch.extractor import Extractor
from vit_pytorch.recorder import Recorder

from .tools import backward, fill, randn, train

SMALL = {"num_classes": 5, "dim": 16, "depth": 2, "heads": 2, "mlp_dim": 32}
PATCHES = {"image_size": 32, "patch_size": 8}
MODELS = {
    "rvt.RvT": {"num_classes": 5, "dim": 16, "depth": 2, "heads": 2, "mlp_dim": 32, "image_size": 32, "patch_size": 8},
    "cct.CCT": {
        "img_size": 32,
        "embedding_dim": 16,
        "n_conv_layers": 1,
        "num_layers": 2,
        "num_heads": 2,
        "mlp_ratio": 2,
        "num_classes": 5,
        "positional_embedding": "learnable",
    },
    "levit.LeViT": {
        "image_size": 64,
        "num_classes": 5,
        "stages": 2,
        "dim": (16, 32),
        "depth": 1,
        "heads": (2, 2),
        "mlp_mult": 2,
    },
    "nest.NesT": {
        "image_size": 32,
        "patch_size": 4,
        "dim": 8,
        "heads": 1,
        "num_hierarchies": 2,
        "block_repeats": (1, 1),
        "num_classes": 5,
    },
    "xcit.XCiT": {
        "num_classes": 5,
        "dim": 16,
        "depth": 2,
        "heads": 2,
        "mlp_dim": 32,
        "image_size": 32,
        "patch_size": 8,
        "cls_depth": 1,
    },
}


def _make(path, options):
    module, name = path.split(".")
    return fill(getattr(importlib.import_module(f"vit_pytorch.{module}"), name)(**options))


def models_backward():
    found = {}
    for path in MODELS:
        model = _make(path, MODELS[path]).eval()
        size = MODELS[path].get("image_size", 32)
        found[path] = backward(model, model(randn(2, 3, size, size)).square().mean())
    return found


def recorded_other():
    """The attention and the embeddings that wrappers collect with hooks."""
    model, x = fill(ViT(**SMALL, **PATCHES)).eval(), randn(2, 3, 32, 32)
    with torch.no_grad():
        logits, attention = Recorder(model)(x)
        again, embeddings = Extractor(fill(ViT(**SMALL, **PATCHES)).eval())(x)
    return [logits, attention, again, embeddings]


def distilled_training():
    student = fill(DistillableViT(**SMALL, **PATCHES))
    teacher = fill(SimpleViT(**SMALL, **PATCHES))
    wrapper = fill(DistillWrapper(student=student, teacher=teacher, temperature=3, alpha=0.5, hard=False))
    x, labels = randn(2, 3, 32, 32), torch.tensor([1, 3])
    return train(wrapper, lambda: wrapper(x, labels))
