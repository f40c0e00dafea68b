"""vit_pytorch: vision transformers of many papers, distillation and masked training."""

import importlib

import torch
from vit_pytorch import SimpleViT, ViT
from vit_pytorch.distill import DistillableViT, DistillWrapper
from vit_pytorch.extractor import Extractor
from vit_pytorch.recorder import Recorder
from vit_pytorch.simmim import SimMIM

from .tools import backward, fill, randn, train

SMALL = {"num_classes": 5, "dim": 16, "depth": 2, "heads": 2, "mlp_dim": 32}
PATCHES = {"image_size": 32, "patch_size": 8}
MODELS = {
    "simple_vit.SimpleViT": {**SMALL, **PATCHES},
    "deepvit.DeepViT": {**SMALL, **PATCHES},
    "simple_vit_with_register_tokens.SimpleViT": {**SMALL, **PATCHES},
    "simple_vit_with_qk_norm.SimpleViT": {**SMALL, **PATCHES},
    "cait.CaiT": {**SMALL, **PATCHES, "cls_depth": 1},
    "parallel_vit.ViT": {**SMALL, **PATCHES, "num_parallel_branches": 2},
    "vit_for_small_dataset.ViT": {**SMALL, **PATCHES},
    "learnable_memory_vit.ViT": {**SMALL, **PATCHES},
    "rvt.RvT": {**SMALL, **PATCHES},
    "t2t.T2TViT": {**SMALL, "image_size": 32, "t2t_layers": ((7, 4), (3, 2))},
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
    "cross_vit.CrossViT": {
        "image_size": 32,
        "num_classes": 5,
        "depth": 1,
        "sm_dim": 16,
        "sm_patch_size": 8,
        "sm_enc_depth": 1,
        "sm_enc_heads": 2,
        "sm_enc_mlp_dim": 16,
        "lg_dim": 16,
        "lg_patch_size": 16,
        "lg_enc_depth": 1,
        "lg_enc_heads": 2,
        "lg_enc_mlp_dim": 16,
    },
    "pit.PiT": {
        "image_size": 32,
        "patch_size": 8,
        "dim": 16,
        "num_classes": 5,
        "depth": (1, 1),
        "heads": 2,
        "mlp_dim": 16,
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
    "cvt.CvT": {
        "num_classes": 5,
        "s1_emb_dim": 16,
        "s2_emb_dim": 16,
        "s2_heads": 1,
        "s3_emb_dim": 16,
        "s3_heads": 1,
        "s2_depth": 1,
        "s3_depth": 1,
    },
    "crossformer.CrossFormer": {
        "num_classes": 5,
        "dim": (8, 16, 16, 16),
        "depth": (1, 1, 1, 1),
        "global_window_size": (2, 2, 2, 1),
        "local_window_size": 1,
    },
    "max_vit.MaxViT": {
        "num_classes": 5,
        "dim": 16,
        "depth": (1, 1),
        "dim_head": 8,
        "window_size": 4,
        "dim_conv_stem": 8,
        "mbconv_expansion_rate": 2,
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
    "mobile_vit.MobileViT": {
        "image_size": (32, 32),
        "dims": [16, 16, 16],
        "channels": [8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 16],
        "num_classes": 5,
        "depths": (1, 1, 1),
        "patch_size": (1, 1),
    },
    "xcit.XCiT": {**SMALL, **PATCHES, "cls_depth": 1},
    "look_vit.LookViT": {**SMALL, "image_size": 32, "patch_size": 8, "highres_patch_size": 4},
}


def _make(path, options):
    module, name = path.split(".")
    return fill(getattr(importlib.import_module(f"vit_pytorch.{module}"), name)(**options))


def models_forward():
    found = {}
    with torch.no_grad():
        for path, options in MODELS.items():
            size = options.get("image_size", 64 if "img_size" not in options else 32)
            size = size[0] if isinstance(size, tuple) else size
            result = _make(path, options).eval()(randn(2, 3, size, size))
            found[path] = result
    return found


def models_backward():
    found = {}
    for path in ("cct.CCT", "rvt.RvT", "levit.LeViT", "xcit.XCiT", "nest.NesT"):
        model = _make(path, MODELS[path]).eval()
        size = MODELS[path].get("image_size", 32)
        found[path] = backward(model, model(randn(2, 3, size, size)).square().mean())
    return found


def shapes_forward():
    from vit_pytorch.simple_vit_1d import SimpleViT as Sequences
    from vit_pytorch.simple_vit_3d import SimpleViT as Videos
    from vit_pytorch.vivit import ViViT as Movies

    videos = {**SMALL, "image_size": 16, "image_patch_size": 8, "frames": 4, "frame_patch_size": 2}
    movies = {**{k: v for k, v in videos.items() if k != "depth"}, "spatial_depth": 1, "temporal_depth": 1}
    with torch.no_grad():
        return [
            fill(Sequences(seq_len=16, patch_size=4, **SMALL)).eval()(randn(2, 3, 16)),
            fill(Videos(**videos)).eval()(randn(2, 3, 4, 16, 16)),
            fill(Movies(**movies)).eval()(randn(2, 3, 4, 16, 16)),
        ]


def recorded_other():
    """The attention and the embeddings that wrappers collect with hooks."""
    model, x = fill(ViT(**SMALL, **PATCHES)).eval(), randn(2, 3, 32, 32)
    with torch.no_grad():
        logits, attention = Recorder(model)(x)
        again, embeddings = Extractor(fill(ViT(**SMALL, **PATCHES)).eval())(x)
    return [logits, attention, again, embeddings]


def masked_other():
    """The loss of masked training. Which patches are masked is drawn: its size only."""
    model = fill(SimMIM(encoder=fill(ViT(**SMALL, **PATCHES)), masking_ratio=0.5))
    loss = model(randn(2, 3, 32, 32))
    return [bool(loss.isfinite()), loss.dim()]


def distilled_training():
    student = fill(DistillableViT(**SMALL, **PATCHES))
    teacher = fill(SimpleViT(**SMALL, **PATCHES))
    wrapper = fill(DistillWrapper(student=student, teacher=teacher, temperature=3, alpha=0.5, hard=False))
    x, labels = randn(2, 3, 32, 32), torch.tensor([1, 3])
    return train(wrapper, lambda: wrapper(x, labels))


def classifier_training():
    model, x, labels = fill(ViT(**SMALL, **PATCHES)), randn(4, 3, 32, 32), torch.tensor([0, 1, 2, 3])
    return train(model, lambda: torch.nn.functional.cross_entropy(model(x), labels))
